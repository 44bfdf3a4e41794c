// arena: bytes bumped from chunks of a source, each address stable, everything forgotten at once by reset.
// Choose it for many objects that die together: the metadata of a graph, the extras of an eval.
// Cost: an addition and a compare; a source call per new chunk. Threads: single. Full: when the source is, or at once
// where growth is off. reset keeps the chunks, release gives them back and starts the growth over.
//
//   first buffer (given or taken)     chunk            chunk (twice as large)
//   [used used used gap]           -> [h|used used] -> [h|used free free free ... ]
//                                                              ^cursor         ^end
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

/// How an arena grows. Sizes are those of chunks as asked from the source, headers included.
struct growth {
    std::size_t first_bytes = std::size_t{16} << 10;  ///< size of the first chunk; 0: never grows
    std::size_t max_bytes = std::size_t{1} << 20;     ///< doubling stops here; a larger request gets its own chunk
    std::size_t retain_bytes = too_many;              ///< what reset may keep above the recent need; see arena::reset
};

/// Growth that never happens: the first buffer is all there is.
inline constexpr growth fixed{.first_bytes = 0, .max_bytes = 0, .retain_bytes = too_many};

template <memory_source Source>
class arena {
    static_assert(Source::max_alignment >= alignof(std::max_align_t), "arena: the source cannot align a chunk");

public:
    static constexpr std::string_view name = "arena";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t max_alignment = 4096;

    explicit arena(growth by = {}, Source source = Source{}) noexcept : source_(std::move(source)), growth_(by) {}
    /// Starts in `first`, which stays the caller's and must outlive the arena; any size and alignment are allowed.
    explicit arena(std::span<std::byte> first, growth by = {}, Source source = Source{}) noexcept
        : source_(std::move(source)), growth_(by) {
        start_in(first);
    }
    /// The same for an arena that has none yet and nothing in it.
    void start_in(std::span<std::byte> first) noexcept {
        first_ = first;
        rewind();
    }
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;
    ~arena() {
        if (chunks_ != nullptr) free_chunks(chunks_);
    }

    /// nullptr when no chunk can be had; nothing has changed then.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        if (!is_request(bytes, align, max_alignment)) [[unlikely]]
            return nullptr;
        const std::size_t gap = padding(cursor_, align);
        bytes = at_least_one(bytes);
        if (bytes + gap <= end_ - cursor_) [[likely]] {
            const std::uintptr_t at = cursor_ + gap;
            cursor_ = at + bytes;
            return reinterpret_cast<void*>(at);
        }
        return allocate_from_next_chunk(bytes, align);
    }
    /// From the present chunk alone, else nullptr and nothing has changed; `allocate` may still serve it then. Leaves
    /// unchecked that there is at least 1 byte and that `align` may be asked for.
    [[nodiscard]] void* bump(std::size_t bytes, std::size_t align) noexcept {
        const std::uintptr_t at = cursor_ + padding(cursor_, align);
        if (at > end_ || bytes > end_ - at) [[unlikely]]
            return nullptr;
        cursor_ = at + bytes;
        return reinterpret_cast<void*>(at);
    }
    /// Storage for one T in an arena that holds nothing but T and has no first buffer: what lies behind a T is aligned
    /// for the next, so no gap is computed. nullptr when no chunk can be had.
    template <class T>
    [[nodiscard]] void* allocate_next() noexcept {
        static_assert(is_request(sizeof(T), alignof(T), max_alignment));
        const std::uintptr_t at = cursor_;
        // Nothing lies so high that the sum wraps.
        if (at + sizeof(T) > end_) [[unlikely]]
            return allocate_from_next_chunk(sizeof(T), alignof(T));
        if (at == 0) __builtin_unreachable();  // end_ would be 0 too; spares the caller's test for nullptr
        cursor_ = at + sizeof(T);
        return reinterpret_cast<void*>(at);
    }
    /// How many T were taken by allocate_next since the last reset. O(chunks).
    template <class T>
    [[nodiscard]] std::size_t count() const noexcept {
        if (current_ == nullptr) return 0;
        const auto between = [](std::uintptr_t from, std::uintptr_t to) {
            return (to - from - padding(from, alignof(T))) / sizeof(T);
        };
        std::size_t taken = between(current_->begin(), cursor_);
        for (const chunk* c = chunks_; c != current_; c = c->next) taken += between(c->begin(), c->end());
        return taken;
    }
    /// Does nothing: blocks go with reset or release.
    void deallocate(void*, std::size_t, std::size_t) noexcept {}

    /// True for an address inside a chunk or the first buffer, handed out or not. O(chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(p);
        const auto within = [at](std::uintptr_t from, std::uintptr_t to) { return at >= from && at < to; };
        if (within(begin_of(first_), begin_of(first_) + first_.size())) return true;
        for (const chunk* c = chunks_; c != nullptr; c = c->next)
            if (within(c->begin(), c->end())) return true;
        return false;
    }

    /// Forgets all blocks and keeps the memory: the same requests again call no source. Chunks beyond the
    /// level that recent rounds used go back only when more than `retain_bytes` are reserved; the level forgets an
    /// eighth of an old peak per reset, so one huge eval is not kept for ever (upb#547, onnxruntime#7284). O(1) unless
    /// more than `retain_bytes` are reserved: O(chunks).
    void reset() noexcept {
        recent_bytes_ = std::max(used_bytes(), recent_bytes_ - recent_bytes_ / 8);
        rewind();
        if (reserved_bytes_ > growth_.retain_bytes) trim();
    }

    /// Gives every chunk back to the source; growth starts over.
    void release() noexcept {
        rewind();
        free_chunks(std::exchange(chunks_, nullptr));
        next_bytes_ = recent_bytes_ = 0;
    }

    /// Bytes handed out since the last reset, with the gaps before and between them and what was left of chunks passed.
    [[nodiscard]] std::size_t used_bytes() const noexcept {
        return passed_bytes_ + (cursor_ - (current_ != nullptr ? current_->begin() : begin_of(first_)));
    }
    /// Bytes left in the present chunk, from the next multiple of `align` on.
    [[nodiscard]] std::size_t available_bytes(std::size_t align = 1) const noexcept {
        return end_ - cursor_ - std::min(end_ - cursor_, padding(cursor_, align));
    }
    /// Bytes that chunks and the first buffer can serve without another source call.
    [[nodiscard]] std::size_t capacity_bytes() const noexcept {
        std::size_t bytes = first_.size();
        for (const chunk* c = chunks_; c != nullptr; c = c->next) bytes += c->end() - c->begin();
        return bytes;
    }
    /// `live` is left 0: an arena does not count its blocks.
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = 0, .reserved_bytes = reserved_bytes_ + first_.size(), .source_calls = source_calls_};
    }
    [[nodiscard]] growth policy() const noexcept { return growth_; }
    [[nodiscard]] Source& source() noexcept { return source_; }

private:
    struct chunk {
        chunk* next;
        std::size_t bytes;
        [[nodiscard]] std::uintptr_t begin() const noexcept { return reinterpret_cast<std::uintptr_t>(this + 1); }
        [[nodiscard]] std::uintptr_t end() const noexcept { return reinterpret_cast<std::uintptr_t>(this) + bytes; }
    };
    static constexpr std::size_t chunk_alignment = alignof(std::max_align_t);
    static_assert(sizeof(chunk) % chunk_alignment == 0);

    static std::uintptr_t begin_of(std::span<std::byte> s) noexcept {
        return reinterpret_cast<std::uintptr_t>(s.data());
    }

    void rewind() noexcept {
        current_ = nullptr;
        passed_bytes_ = 0;
        cursor_ = begin_of(first_);
        end_ = cursor_ + first_.size();
    }

    void enter(chunk* c) noexcept {
        passed_bytes_ = used_bytes() + available_bytes();
        current_ = c;
        cursor_ = c->begin();
        end_ = c->end();
    }

    [[gnu::noinline]] void* allocate_from_next_chunk(std::size_t bytes, std::size_t align) noexcept {
        // The worst gap is asked for, so the block fits whatever the chunk's address turns out to be.
        const std::size_t needed = sum(bytes, align > chunk_alignment ? align - chunk_alignment : 0);
        chunk** link = current_ != nullptr ? &current_->next : &chunks_;
        chunk** fit = link;
        while (*fit != nullptr && (*fit)->end() - (*fit)->begin() < needed) fit = &(*fit)->next;
        chunk* next = *fit != nullptr ? std::exchange(*fit, (*fit)->next) : make_chunk(needed);
        if (next == nullptr) return nullptr;
        next->next = std::exchange(*link, next);
        enter(next);
        return allocate(bytes, align);
    }

    chunk* make_chunk(std::size_t payload) noexcept {
        if (growth_.first_bytes == 0) return nullptr;
        if (next_bytes_ == 0) next_bytes_ = std::min(growth_.first_bytes, growth_.max_bytes);
        const std::size_t bytes = std::max(sum(payload, sizeof(chunk)), next_bytes_);
        if (!is_size(bytes)) return nullptr;
        ++source_calls_;
        void* memory = source_.allocate(bytes, chunk_alignment);
        if (memory == nullptr) return nullptr;
        next_bytes_ = std::min(product(next_bytes_, 2), growth_.max_bytes);
        reserved_bytes_ += bytes;
        return ::new (memory) chunk{nullptr, bytes};
    }

    [[gnu::noinline]] void free_chunks(chunk* c) noexcept {
        while (c != nullptr) {
            chunk* next = c->next;
            reserved_bytes_ -= c->bytes;
            source_.deallocate(c, c->bytes, chunk_alignment);
            c = next;
        }
    }

    // In the order of use. A chunk above the cap was one request's: it goes as soon as most of it is beyond the level,
    // wherever it stands, or a huge eval among small ones would be kept for the few bytes that are bumped in it.
    [[gnu::noinline]] void trim() noexcept {
        std::size_t needed = recent_bytes_ - std::min(recent_bytes_, first_.size());
        for (chunk** link = &chunks_; *link != nullptr;) {
            const std::size_t size = (*link)->end() - (*link)->begin();
            if (needed == 0 || (size > growth_.max_bytes && size / 2 > needed)) {
                chunk* gone = std::exchange(*link, (*link)->next);
                gone->next = nullptr;
                free_chunks(gone);
            } else {
                needed -= std::min(needed, size);
                link = &(*link)->next;
            }
        }
        next_bytes_ = 0;
    }

    std::uintptr_t cursor_ = 0;
    std::uintptr_t end_ = 0;
    chunk* current_ = nullptr;  // nullptr: bumping in first_
    chunk* chunks_ = nullptr;   // in the order of use
    [[no_unique_address]] Source source_;
    growth growth_;
    std::span<std::byte> first_;
    std::size_t passed_bytes_ = 0;  // used in chunks before current_
    std::size_t recent_bytes_ = 0;
    std::size_t next_bytes_ = 0;  // 0: start over at growth_.first_bytes
    std::size_t reserved_bytes_ = 0;
    std::size_t source_calls_ = 0;
};

}  // namespace alloclab
