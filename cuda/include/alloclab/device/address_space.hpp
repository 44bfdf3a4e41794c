// address_space: best fit over a range of offsets with full coalescing; the memory itself is never touched, so it may
// be another device's. Choose it where blocks cannot carry headers.
// Cost: allocate and release are O(log blocks); allocate makes two small heap nodes when it splits, release none.
// Threads: single. Full: `too_many`, also when the heap cannot give the nodes; nothing changes then.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "alloclab/bytes.hpp"

namespace alloclab::device {

class address_space {
public:
    /// A live block: where it starts and how many bytes were asked for. No bytes: no such block.
    struct block {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };

    /// Offsets [0, capacity), capacity rounded down to whole granules (a power of two). Throws std::bad_alloc.
    address_space(std::size_t capacity, std::size_t granule) : granule_(granule), capacity_(capacity & ~(granule - 1)) {
        if (capacity_ == 0) return;
        blocks_.try_emplace(0, range{capacity_, 0, {}});
        free_.emplace(capacity_, 0);
    }

    /// The offset of the smallest gap that fits, the lowest of several; a multiple of the granule.
    [[nodiscard]] std::size_t allocate(std::size_t bytes) noexcept {
        const std::size_t need = align_up(at_least_one(bytes), granule_);
        const auto best = is_size(need) ? free_.lower_bound({need, 0}) : free_.end();
        if (best == free_.end()) return too_many;
        const auto at = blocks_.find(best->second);
        if (at->second.extent > need && !split(at, need)) return too_many;
        at->second.bytes = at_least_one(bytes);
        at->second.gap = free_.extract(best);
        reserved_ += need;
        return at->first;
    }

    /// Gives the live block that starts there back and tells which it was; no bytes and no change when there is none.
    block release(std::size_t offset) noexcept {
        auto at = blocks_.find(offset);
        if (at == blocks_.end() || at->second.bytes == 0) return {};
        const block released{offset, std::exchange(at->second.bytes, 0)};
        gaps::node_type gap = std::move(at->second.gap);
        reserved_ -= at->second.extent;
        if (const auto next = std::next(at); next != blocks_.end() && next->second.bytes == 0) {
            free_.erase({next->second.extent, next->first});
            at->second.extent += next->second.extent;
            blocks_.erase(next);
        }
        if (const auto here = at; here != blocks_.begin() && std::prev(here)->second.bytes == 0) {
            at = std::prev(here);
            free_.erase({at->second.extent, at->first});
            at->second.extent += here->second.extent;
            blocks_.erase(here);
        }
        gap.value() = {at->second.extent, at->first};
        free_.insert(std::move(gap));
        return released;
    }

    /// The live block whose granules hold the offset.
    [[nodiscard]] block find(std::size_t offset) const noexcept {
        auto at = blocks_.upper_bound(offset);
        if (offset >= capacity_ || (--at)->second.bytes == 0) return {};
        return {at->first, at->second.bytes};
    }

    /// Bytes in whole granules of the live block that starts there; 0 when there is none.
    [[nodiscard]] std::size_t extent(std::size_t offset) const noexcept {
        const auto at = blocks_.find(offset);
        return at != blocks_.end() && at->second.bytes != 0 ? at->second.extent : 0;
    }
    /// The live block that starts there serves another request, of at most its extent.
    void rename(std::size_t offset, std::size_t bytes) noexcept {
        blocks_.find(offset)->second.bytes = at_least_one(bytes);
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// Bytes of live blocks in whole granules.
    [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }
    /// The largest request that could be served without the live blocks whose offsets `may_go` says. O(blocks).
    template <class MayGo>
    [[nodiscard]] std::size_t largest_gap_without(const MayGo& may_go) const noexcept {
        std::size_t largest = 0, gap = 0;
        for (const auto& [offset, r] : blocks_) {
            gap = r.bytes == 0 || may_go(offset) ? gap + r.extent : 0;
            if (gap > largest) largest = gap;
        }
        return largest;
    }
    /// The largest request that can be served.
    [[nodiscard]] std::size_t largest_gap() const noexcept { return free_.empty() ? 0 : free_.rbegin()->first; }

private:
    using gaps = std::set<std::pair<std::size_t, std::size_t>>;  // extent, offset
    struct range {
        std::size_t extent;
        std::size_t bytes;    // 0: a gap
        gaps::node_type gap;  // a live block keeps its place in free_ here, so that release cannot run out of heap
    };
    using ranges = std::map<std::size_t, range>;  // by offset; they tile [0, capacity), and no two gaps touch

    /// Cuts a gap that is about to be taken to `extent`; the rest becomes a gap of its own.
    bool split(ranges::iterator at, std::size_t extent) noexcept try {
        const std::size_t rest = at->second.extent - extent;
        gaps cut{{rest, at->first + extent}};
        blocks_.emplace_hint(std::next(at), at->first + extent, range{rest, 0, {}});
        free_.merge(cut);
        at->second.extent = extent;
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    ranges blocks_;
    gaps free_;
    std::size_t granule_;
    std::size_t capacity_;
    std::size_t reserved_ = 0;
};

}  // namespace alloclab::device
