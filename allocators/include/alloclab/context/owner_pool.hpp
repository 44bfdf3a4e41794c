// owner_pool: N slots in blocks that threads own. What its owner releases goes to the owner's magazine, what another
// thread releases to the block's atomic mask of free slots, where the owner finds it when its magazine is empty.
// Choose it where slots are released by other threads than the ones that acquired them: no lock, no touch of the slot.
// Cost: magazine_pool's and a division by a constant; a foreign release one atomic OR. Threads: shared. Full: nullptr
// when all N are live: parked slots and free bits of other owners' blocks are taken before that.
// Idea: owner-biased free masks, as mimalloc and snmalloc send frees home; blocks without an owner are adopted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/context/magazines.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

namespace detail {

template <class T, std::size_t N>
class owned_blocks {
    static_assert(N >= 1 && N <= 64 * 64, "owner_pool: 1 to 4096 slots");

public:
    static constexpr bool bounded = true;
    static constexpr std::size_t capacity = N;

    owned_blocks() noexcept { reset(); }
    owned_blocks(const owned_blocks&) = delete;
    owned_blocks& operator=(const owned_blocks&) = delete;

    /// From the owner's blocks, else from one block that nobody owns, else from the other block that has most: that one
    /// becomes `mine`'s, so that who needs slots gets their releases too.
    [[nodiscard]] std::size_t take(void** to, std::size_t most, magazine* mine) noexcept {
        std::size_t n = 0, best = 0, best_free = 0;
        for (std::size_t b = 0; b < blocks && n < most; ++b) {
            magazine* const owner = owner_[b].load(std::memory_order_relaxed);
            if (owner == mine && mine != nullptr) n += take_from(b, to + n, most - n);
            const std::size_t free = 2 * free_in(b) + (owner == nullptr ? 2 * per_block : 0);
            if (free_in(b) != 0 && free > best_free) best_free = free, best = b;
        }
        if (n != 0 || best_free == 0) return n;
        if (mine != nullptr) owner_[best].store(mine, std::memory_order_relaxed);
        return take_from(best, to, most);
    }
    /// Without the lock, from any thread.
    void give(void* const* slots, std::size_t count) noexcept {
        for (const auto* const end = slots + count; slots != end;) {
            const std::size_t block = block_of(*slots);
            std::uint64_t bits = 0;
            for (; slots != end && block_of(*slots) == block; ++slots) bits |= bit_of(*slots);
            free_[block].bits.fetch_or(bits);
        }
    }
    [[nodiscard]] bool is_of(const void* slot, const magazine& mine) const noexcept {
        return owner_[block_of(slot)].load(std::memory_order_relaxed) == &mine;
    }
    void leave(const magazine& gone) noexcept {
        for (auto& owner : owner_)
            if (owner.load(std::memory_order_relaxed) == &gone) owner.store(nullptr, std::memory_order_relaxed);
    }
    [[nodiscard]] std::size_t free() const noexcept {
        std::size_t n = 0;
        for (std::size_t b = 0; b < blocks; ++b) n += free_in(b);
        return n;
    }
    [[nodiscard]] bool owns(const void* pointer) const noexcept { return offset_of(pointer) < sizeof slots_; }
    void reset() noexcept {
        for (std::size_t b = 0; b < blocks; ++b) {
            const std::size_t slots = std::min(per_block, N - b * per_block);
            free_[b].bits.store(~std::uint64_t{0} >> (64 - slots), std::memory_order_relaxed);
            owner_[b].store(nullptr, std::memory_order_relaxed);
        }
    }
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = N - free(), .reserved_bytes = sizeof slots_, .source_calls = 0};
    }

private:
    struct alignas(T) storage {
        std::byte bytes[sizeof(T)];
    };
    struct alignas(64) mask {
        std::atomic<std::uint64_t> bits;
    };
    static constexpr std::size_t per_block = std::clamp<std::size_t>(N / 4, 1, 64);
    static constexpr std::size_t blocks = (N + per_block - 1) / per_block;

    [[nodiscard]] std::size_t take_from(std::size_t block, void** to, std::size_t most) noexcept {
        std::uint64_t left = free_[block].bits.load(), taken = 0;
        std::size_t n = 0;
        for (; n < most && left != 0; left &= left - 1, ++n) {
            taken |= left & (~left + 1);
            to[n] = &slots_[block * per_block + static_cast<std::size_t>(std::countr_zero(left))];
        }
        free_[block].bits.fetch_and(~taken);  // after which their last owners' writes are seen
        return n;
    }
    [[nodiscard]] std::size_t free_in(std::size_t block) const noexcept {
        // Not relaxed: a look after the store of `sought` must not come before it.
        return static_cast<std::size_t>(std::popcount(free_[block].bits.load()));
    }
    [[nodiscard]] std::size_t offset_of(const void* pointer) const noexcept {
        return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(slots_.data());
    }
    [[nodiscard]] std::size_t block_of(const void* slot) const noexcept {
        return offset_of(slot) / (sizeof(storage) * per_block);
    }
    [[nodiscard]] std::uint64_t bit_of(const void* slot) const noexcept {
        return std::uint64_t{1} << (offset_of(slot) / sizeof(storage) % per_block);
    }

    std::array<std::atomic<magazine*>, blocks> owner_;  // written under the lock
    std::array<mask, blocks> free_;                     // bit set: free and in no magazine; cleared under the lock
    std::array<storage, N> slots_;                      // left uninitialised: no page is touched before it is used
};

}  // namespace detail

template <class T, std::size_t N = 64>
class owner_pool : public detail::magazines<detail::owned_blocks<T, N>> {
public:
    using value_type = T;
    static constexpr std::string_view name = "owner_pool";
    static constexpr std::size_t capacity = N;
};

}  // namespace alloclab
