// stream_pool: device memory that is kept and served again in the order of streams, without a call to the device: to
// the stream that gave it back at once, to another one after an event wait. Choose it where cudaMalloc and cudaFree
// stand in the way; cudaFree stops the whole device. Cost: a look at a list by size class, an event record at a release
// and a wait at a reuse across streams. Threads: single. Full: what is kept goes back to the device, once, and the
// request is tried again; then nullptr. Idea: the pools of rmm and PyTorch; a block is keyed by the stream that freed
// it and the event recorded there.
//
// Sizes are rounded up to eight classes between one power of two and the next: less than an eighth of a block is
// rounding, beyond whole granules of the device. Only when memory is short a block is made as large as was asked.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/device/event_pool.hpp"
#include "alloclab/tensor/backend.hpp"

namespace alloclab::device {

struct pool_usage {
    std::size_t live = 0;            ///< blocks handed out and not given back
    std::size_t live_bytes = 0;      ///< as they were asked for
    std::size_t reserved_bytes = 0;  ///< held of the device, kept blocks included
    std::size_t kept = 0;            ///< blocks that wait to be served again
    std::size_t source_calls = 0;    ///< allocations asked of the device, failed ones too
    std::size_t same_stream = 0;     ///< served again to the stream that gave it back
    std::size_t other_stream = 0;    ///< served again after a wait
    std::size_t flushes = 0;         ///< times that all kept blocks went back for want of memory
};

template <tensor::device_backend Device>
class stream_pool {
public:
    static constexpr std::string_view name = "stream_pool";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t alignment = Device::alignment;
    using stream = typename Device::stream;

    /// The device must outlive the pool.
    explicit stream_pool(Device& device) noexcept : device_(device), events_(device) {}
    stream_pool(const stream_pool&) = delete;
    stream_pool& operator=(const stream_pool&) = delete;
    /// Live blocks go back too; the device waits for what uses them.
    ~stream_pool() {
        for (auto& [memory, b] : blocks_) {
            events_.release(b.freed);
            device_.deallocate(memory);
        }
    }

    /// For use by what `s` is given from now on. nullptr when exhausted, also for a size above PTRDIFF_MAX; size 0
    /// counts as 1 byte.
    [[nodiscard]] void* allocate(std::size_t bytes, stream s) noexcept {
        bytes = at_least_one(bytes);
        const std::size_t exact = align_up(bytes, alignment);
        if (!is_size(exact)) return nullptr;
        const size_class c = class_of(exact);
        block* b = take_kept(c, exact, s);
        if (b == nullptr) b = obtain(c, c.bytes());
        if (b == nullptr && flush()) b = obtain(c, c.bytes());
        if (b == nullptr && exact != c.bytes()) b = obtain(c, exact);
        if (b == nullptr) return nullptr;
        b->asked = bytes;
        ++usage_.live;
        usage_.live_bytes += bytes;
        return b->memory;
    }

    /// `s` is the last to use it, or waits for those who are. The stream may be destroyed afterwards. False for what is
    /// not a live block of this pool; nullptr is none, and true.
    bool deallocate(void* p, stream s) noexcept {
        if (p == nullptr) return true;
        const auto found = blocks_.find(p);
        if (found == blocks_.end() || found->second.asked == 0) return false;
        block& b = found->second;
        --usage_.live;
        usage_.live_bytes -= b.asked;
        b.asked = 0;
        if (!close(b, s) || !keep(b, s)) give_back(b);
        return true;
    }

    /// True for the start of a live block.
    [[nodiscard]] bool owns(const void* p) const noexcept {
        const auto found = blocks_.find(const_cast<void*>(p));
        return found != blocks_.end() && found->second.asked != 0;
    }

    /// All kept blocks go back to the device.
    void release() noexcept {
        for (auto& shelf : shelves_) {
            for (const lane& l : shelf)
                for (block *b = l.newest, *older = nullptr; b != nullptr; b = older) {
                    older = b->older;
                    --usage_.kept;
                    give_back(*b);
                }
            shelf.clear();
        }
    }

    [[nodiscard]] pool_usage usage() const noexcept { return usage_; }
    [[nodiscard]] const event_pool<Device>& events() const noexcept { return events_; }

private:
    using event = typename Device::event;
    static_assert(is_alignment(alignment));

    struct block {
        void* memory;
        std::size_t bytes;       // of the device
        std::size_t asked = 0;   // 0: kept
        std::size_t shelf;       // where it is kept, whatever its size
        event freed{};           // recorded where it was given back; none: the host knows it to be free
        std::uint64_t turn = 0;  // counts what is given back
        block *older = nullptr, *newer = nullptr;
    };
    /// Kept blocks of one size class and stream, in the order in which they came.
    struct lane {
        stream of;
        block *oldest = nullptr, *newest = nullptr;
    };
    /// Sizes of (steps - 1) << shift granules, exclusive, to steps << shift, inclusive; steps are 9 to 16 above shift
    /// 0.
    struct size_class {
        std::size_t steps, shift;
        [[nodiscard]] std::size_t bytes() const noexcept { return product(steps << shift, alignment); }
        [[nodiscard]] std::size_t index() const noexcept { return shift * 8 + steps - 1; }
    };
    static constexpr std::size_t classes = 8 * (64 - 3);

    // `exact` is a multiple of the alignment.
    [[nodiscard]] static size_class class_of(std::size_t exact) noexcept {
        const std::size_t last = exact / alignment - 1;
        const auto width = static_cast<std::size_t>(std::bit_width(last));
        const std::size_t shift = width > 4 ? width - 4 : 0;
        return {(last >> shift) + 1, shift};
    }

    // The stream's own last block comes first: its bytes may still be in a cache. Of others' the one given back longest
    // ago, whose wait is the most likely to be over.
    [[nodiscard]] block* take_kept(size_class c, std::size_t exact, stream s) noexcept {
        auto& shelf = shelves_[c.index()];
        block* best = nullptr;
        std::size_t from = 0;
        for (std::size_t i = 0; i < shelf.size(); ++i) {
            if (shelf[i].of == s) {
                for (block* b = shelf[i].newest; b != nullptr; b = b->older)
                    if (b->bytes >= exact) {
                        ++usage_.same_stream;
                        return take(*b, shelf, i);
                    }
                continue;
            }
            block* b = shelf[i].oldest;
            while (b != nullptr && b->bytes < exact) b = b->newer;
            if (b != nullptr && (best == nullptr || b->turn < best->turn)) best = b, from = i;
        }
        if (best == nullptr || !comes_after(s, best->freed)) return nullptr;
        ++usage_.other_stream;
        return take(*best, shelf, from);
    }
    [[nodiscard]] bool comes_after(stream s, event e) noexcept {
        return e == event{} || device_.wait(s, e) || device_.synchronize(e);
    }
    block* take(block& b, std::vector<lane>& shelf, std::size_t at) noexcept {
        lane& l = shelf[at];
        (b.older != nullptr ? b.older->newer : l.oldest) = b.newer;
        (b.newer != nullptr ? b.newer->older : l.newest) = b.older;
        if (l.newest == nullptr) {
            l = shelf.back();
            shelf.pop_back();
        }
        --usage_.kept;
        events_.release(std::exchange(b.freed, event{}));
        return &b;
    }

    [[nodiscard]] block* obtain(size_class c, std::size_t bytes) noexcept {
        if (!is_size(bytes)) return nullptr;
        ++usage_.source_calls;
        void* memory = device_.allocate(bytes);
        if (memory == nullptr) return nullptr;
        try {
            block& made =
                blocks_.try_emplace(memory, block{.memory = memory, .bytes = bytes, .shelf = c.index()}).first->second;
            usage_.reserved_bytes += bytes;
            return &made;
        } catch (const std::bad_alloc&) {
            device_.deallocate(memory);
            return nullptr;
        }
    }

    // Whoever takes the block next must be able to come after `s`. False when nothing can tell.
    [[nodiscard]] bool close(block& b, stream s) noexcept {
        b.freed = events_.acquire();
        if (b.freed != event{} && device_.record(b.freed, s)) return true;
        events_.release(std::exchange(b.freed, event{}));
        return device_.synchronize(s);
    }
    [[nodiscard]] bool keep(block& b, stream s) noexcept try {
        auto& shelf = shelves_[b.shelf];
        std::size_t at = 0;
        while (at < shelf.size() && shelf[at].of != s) ++at;
        if (at == shelf.size()) shelf.push_back({.of = s});
        lane& l = shelf[at];
        b.turn = ++turns_;
        b.newer = nullptr;
        b.older = std::exchange(l.newest, &b);
        (b.older != nullptr ? b.older->newer : l.oldest) = &b;
        ++usage_.kept;
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    // While a stream captures, what the captured work uses must stay, kept or not.
    [[nodiscard]] bool flush() noexcept {
        if constexpr (requires { device_.captures(); })
            if (device_.captures()) return false;
        if (usage_.kept == 0) return false;
        ++usage_.flushes;
        release();
        return true;
    }
    // The device waits for all that it was given, so no event is needed.
    void give_back(block& b) noexcept {
        void* const memory = b.memory;
        usage_.reserved_bytes -= b.bytes;
        events_.release(b.freed);
        blocks_.erase(memory);
        device_.deallocate(memory);
    }

    Device& device_;
    event_pool<Device> events_;
    std::unordered_map<void*, block> blocks_;  // whose addresses stay
    std::array<std::vector<lane>, classes> shelves_;
    std::uint64_t turns_ = 0;
    pool_usage usage_;
};

}  // namespace alloclab::device
