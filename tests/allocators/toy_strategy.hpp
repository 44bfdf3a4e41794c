// toy_strategy: a stack of N slots, the last released first; shows that a new strategy is this header and one line.
// Choose it never. Cost: O(1), and a pointer for each slot. Threads: single. Full: nullptr, nothing changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

template <class T, std::size_t N = 64>
class toy_strategy {
public:
    using value_type = T;
    static constexpr std::string_view name = "toy_strategy";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t capacity = N;

    toy_strategy() noexcept { reset(); }
    toy_strategy(const toy_strategy&) = delete;
    toy_strategy& operator=(const toy_strategy&) = delete;

    [[nodiscard]] void* acquire() noexcept { return live_ == N ? nullptr : &slots_[free_[live_++]]; }
    /// nullptr and what is no live slot's start do nothing.
    void release(void* slot) noexcept {
        if (!owns(slot)) return;
        const auto index = static_cast<std::size_t>(static_cast<storage*>(slot) - slots_.data());
        for (std::size_t i = live_; i < N; ++i)
            if (free_[i] == index) return;
        free_[--live_] = index;
    }
    [[nodiscard]] bool owns(const void* p) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(slots_.data());
        return at < sizeof slots_ && at % sizeof(storage) == 0;
    }
    void reset() noexcept {
        live_ = 0;
        for (std::size_t i = 0; i < N; ++i) free_[i] = i;
    }
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = live_, .reserved_bytes = sizeof slots_, .source_calls = 0};
    }

private:
    struct alignas(T) storage {
        std::byte bytes[sizeof(T)];
    };

    std::size_t live_ = 0;
    std::array<std::size_t, N> free_;  // those from live_ on are free
    std::array<storage, N> slots_;
};

}  // namespace alloclab
