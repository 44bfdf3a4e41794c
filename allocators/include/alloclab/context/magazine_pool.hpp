// magazine_pool and magazine_heap: a thread's private stack of slots in front of a static pool or of malloc.
// Choose them where several threads take and release slots of their own: no lock and no locked instruction while the
// magazine serves. The pool is bounded and exact: parked slots are stolen back before it says nullptr; the heap is not
// bounded. Cost: 0.13 of a glibc pair. Threads: shared. Full: the pool nullptr when all N are live, the heap as malloc.
// Idea: magazines (Bonwick and Adams, USENIX 2001); how a thread's slots are stolen: magazines.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/context/heap.hpp"
#include "alloclab/context/magazines.hpp"
#include "alloclab/context/static_pool.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

namespace detail {

template <class T, std::size_t N>
class pool_home {
public:
    static constexpr bool bounded = true;
    static constexpr std::size_t capacity = N;

    [[nodiscard]] std::size_t take(void** to, std::size_t most, const magazine*) noexcept {
        std::size_t n = 0;
        while (n < most && (to[n] = pool_.acquire()) != nullptr) ++n;
        return n;
    }
    void give(void* const* slots, std::size_t count) noexcept {
        std::for_each(slots, slots + count, [&](void* slot) { pool_.release(slot); });
    }
    [[nodiscard]] std::size_t free() const noexcept { return N - pool_.usage().live; }
    [[nodiscard]] bool owns(const void* pointer) const noexcept { return pool_.owns(pointer); }
    void reset() noexcept { pool_.reset(); }
    [[nodiscard]] struct usage usage() const noexcept { return pool_.usage(); }

private:
    static_pool<T, N> pool_;
};

// Keeps a few magazines' worth, so that slots that one thread acquires and another releases need not pass malloc.
template <class T>
class heap_home {
public:
    static constexpr bool bounded = false;

    heap_home() = default;
    ~heap_home() {
        while (kept_ != 0) heap_.release(depot_[--kept_]);
    }
    heap_home(const heap_home&) = delete;
    heap_home& operator=(const heap_home&) = delete;

    [[nodiscard]] std::size_t take(void** to, std::size_t most, const magazine*) noexcept {
        const std::size_t n = std::min(most, kept_);
        kept_ -= n;
        std::copy_n(depot_.begin() + static_cast<std::ptrdiff_t>(kept_), n, to);
        if (n != 0 || (to[0] = heap_.acquire()) == nullptr) return n;
        ++held_;
        ++source_calls_;
        return 1;
    }
    void give(void* const* slots, std::size_t count) noexcept {
        for (; count != 0; ++slots, --count)
            if (kept_ < depot_.size()) {
                depot_[kept_++] = *slots;
            } else {
                heap_.release(*slots);
                --held_;
            }
    }
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = held_ - kept_, .reserved_bytes = held_ * sizeof(T), .source_calls = source_calls_};
    }

private:
    heap<T> heap_;
    std::size_t held_ = 0;  // from malloc: live, in magazines and here
    std::size_t source_calls_ = 0;
    std::size_t kept_ = 0;
    std::array<void*, 2 * magazine_slots> depot_;
};

}  // namespace detail

template <class T, std::size_t N = 64>
class magazine_pool : public detail::magazines<detail::pool_home<T, N>> {
public:
    using value_type = T;
    static constexpr std::string_view name = "magazine_pool";
    static constexpr std::size_t capacity = N;
};

template <class T>
class magazine_heap : public detail::magazines<detail::heap_home<T>> {
public:
    using value_type = T;
    static constexpr std::string_view name = "magazine_heap";
};

}  // namespace alloclab
