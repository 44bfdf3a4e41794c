// static_pool: N slots for T inside the object itself; one released slot is kept at hand, then the lowest is taken.
// Choose it when the number of live objects has a known bound and the memory may be spent up front.
// Cost: O(1); no slot memory is read or written. Threads: single. Full: nullptr, nothing changes.
// Idea: a two-level bitmap outside the objects, as slab allocators keep it: a write after release cannot corrupt it,
// and a second release finds its bit set. The slot at hand stays out of the bitmap: a pair that takes turns would
// otherwise wait for its own bitmap stores (workload context/slots: 0.15 of a glibc pair instead of 1.2 to 1.3).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

template <class T, std::size_t N>
class static_pool {
    static_assert(N >= 1 && N <= 64 * 64, "static_pool: 1 to 4096 slots");

public:
    using value_type = T;
    static constexpr std::string_view name = "static_pool";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t capacity = N;

    static_pool() noexcept { reset(); }
    static_pool(const static_pool&) = delete;
    static_pool& operator=(const static_pool&) = delete;

    /// Storage for one T, aligned for T and uninitialised; nullptr when all N slots are live.
    [[nodiscard]] void* acquire() noexcept {
        if (recent_ != nullptr) return std::exchange(recent_, nullptr);
        if (with_free_ == 0) return nullptr;
        const auto word = static_cast<std::size_t>(std::countr_zero(with_free_));
        const auto bit = static_cast<std::size_t>(std::countr_zero(free_[word]));
        free_[word] &= free_[word] - 1;
        if (free_[word] == 0) with_free_ &= ~(std::uint64_t{1} << word);
        return &slots_[word * 64 + bit];
    }

    /// Gives a slot back. What is no slot's start, or is free already, does nothing; nullptr neither.
    void release(void* slot) noexcept {
        const std::size_t at = offset_of(slot), index = at / sizeof(storage);
        if (at >= sizeof slots_ || at % sizeof(storage) != 0) return;
        const std::uint64_t bit = std::uint64_t{1} << (index % 64);
        if ((free_[index / 64] & bit) != 0 || slot == recent_) return;
        if (recent_ == nullptr) {
            recent_ = slot;
            return;
        }
        free_[index / 64] |= bit;
        with_free_ |= std::uint64_t{1} << (index / 64);
    }

    /// True for an address inside this pool's slots, live or free.
    [[nodiscard]] bool owns(const void* pointer) const noexcept { return offset_of(pointer) < sizeof slots_; }

    /// Forgets every live slot; the memory stays.
    void reset() noexcept {
        for (std::size_t word = 0; word < words; ++word) free_[word] = lowest(N - word * 64);
        with_free_ = lowest(words);
        recent_ = nullptr;
    }

    /// O(N / 64).
    [[nodiscard]] struct usage usage() const noexcept {
        std::size_t idle = recent_ != nullptr ? 1 : 0;
        for (const std::uint64_t word : free_) idle += static_cast<std::size_t>(std::popcount(word));
        return {.live = N - idle, .reserved_bytes = sizeof slots_, .source_calls = 0};
    }

private:
    struct alignas(T) storage {
        std::byte bytes[sizeof(T)];
    };
    static constexpr std::size_t words = (N + 63) / 64;

    static constexpr std::uint64_t lowest(std::size_t bits) noexcept {
        return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    }
    // Wraps to a huge number for pointers before the pool and for nullptr.
    [[nodiscard]] std::size_t offset_of(const void* pointer) const noexcept {
        return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(slots_.data());
    }

    void* recent_;                           // one free slot whose bit is not set; nullptr: none
    std::uint64_t with_free_;                // bit w set: free_[w] has a free slot
    std::array<std::uint64_t, words> free_;  // bit set: slot free
    std::array<storage, N> slots_;           // left uninitialised: no page is touched before it is used
};

}  // namespace alloclab
