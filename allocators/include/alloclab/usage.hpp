// The counters that measured strategies report, and the cell they are counted in.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

#include "alloclab/concepts.hpp"

namespace alloclab {

/// What a strategy knows of itself without extra bookkeeping.
struct usage {
    std::size_t live = 0;            ///< objects handed out and not released
    std::size_t reserved_bytes = 0;  ///< bytes held from the source, used or not
    std::size_t source_calls = 0;    ///< allocate calls to the source so far
};

/// Both together.
[[nodiscard]] constexpr usage operator+(const usage& a, const usage& b) noexcept {
    return {.live = a.live + b.live,
            .reserved_bytes = a.reserved_bytes + b.reserved_bytes,
            .source_calls = a.source_calls + b.source_calls};
}

/// What the counting layer saw pass through.
struct traffic {
    std::size_t acquired = 0;
    std::size_t released = 0;
    std::size_t refused = 0;     ///< requests answered with nullptr
    std::size_t live = 0;        ///< acquired and not released
    std::size_t peak = 0;        ///< highest live
    std::size_t live_bytes = 0;  ///< bytes requested and not released; size 0 counts as 1
    std::size_t peak_bytes = 0;  ///< highest live_bytes
};

/// A counter that costs an atomic operation only where threads share it. Relaxed: counts, never orders.
template <thread_use Use>
class counter {
public:
    counter() = default;
    explicit counter(std::size_t start) noexcept : value_(start) {}

    /// Adds and returns the new value.
    std::size_t add(std::size_t n = 1) noexcept {
        if constexpr (Use == thread_use::shared) return value_.fetch_add(n, std::memory_order_relaxed) + n;
        else return value_ += n;
    }
    /// Adds unless the value would exceed `limit`: true when added.
    [[nodiscard]] bool add_within(std::size_t n, std::size_t limit) noexcept {
        std::size_t seen = get();
        const auto fits = [&] { return seen <= limit && n <= limit - seen; };
        if constexpr (Use == thread_use::shared) {
            while (fits())
                if (value_.compare_exchange_weak(seen, seen + n, std::memory_order_relaxed)) return true;
            return false;
        } else {
            if (!fits()) return false;
            value_ += n;
            return true;
        }
    }
    void subtract(std::size_t n = 1) noexcept {
        if constexpr (Use == thread_use::shared) value_.fetch_sub(n, std::memory_order_relaxed);
        else value_ -= n;
    }
    void raise_to(std::size_t n) noexcept {
        std::size_t seen = get();
        if constexpr (Use == thread_use::shared) {
            while (seen < n && !value_.compare_exchange_weak(seen, n, std::memory_order_relaxed)) {
            }
        } else if (seen < n) value_ = n;
    }
    void set(std::size_t n) noexcept {
        if constexpr (Use == thread_use::shared) value_.store(n, std::memory_order_relaxed);
        else value_ = n;
    }
    [[nodiscard]] std::size_t get() const noexcept {
        if constexpr (Use == thread_use::shared) return value_.load(std::memory_order_relaxed);
        else return value_;
    }

private:
    std::conditional_t<Use == thread_use::shared, std::atomic<std::size_t>, std::size_t> value_{0};
};

}  // namespace alloclab
