// Layers but checked: each keeps the interface of what it wraps, and does its one thing exactly.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "../laws/child.hpp"
#include "../laws/named.hpp"
#include "../laws/slot_laws.hpp"
#include "alloclab/arena.hpp"
#include "alloclab/layer/checked.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/layer/limiting.hpp"
#include "alloclab/layer/locked.hpp"
#include "alloclab/presets.hpp"
#include "alloclab/source/buffer.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab::laws {
namespace {

// ---- every layer keeps what its base offers, and offers nothing else

using pool = static_pool<int, 8>;
template <class Layer, class Base, class Layered = compose<Base, Layer>>
constexpr bool keeps_interface =
    slot_strategy<Layered> == slot_strategy<Base>&& memory_source<Layered> == memory_source<Base>&& owning<Layered> ==
    owning<Base>&& bounded<Layered> == bounded<Base>&& resettable<Layered> == resettable<Base>&& measured<Layered> ==
    measured<Base>&& front<Layered> == front<Base>;
template <class... Layers>
constexpr bool all_keep_interface =
    ((keeps_interface<Layers, pool> && keeps_interface<Layers, heap<int>> && keeps_interface<Layers, hybrid<int>> &&
      keeps_interface<Layers, scan_pool<int, 8>> && keeps_interface<Layers, malloc_source> &&
      keeps_interface<Layers, buffer_source> && keeps_interface<Layers, arena<malloc_source>>)&&...);
static_assert(all_keep_interface<counting, locked, failing, limiting, checked>);
static_assert(compose<pool, counting, checked>::capacity == 8);
static_assert(compose<buffer_source, counting>::max_alignment == buffer_source::max_alignment);
static_assert(std::same_as<compose<pool>, pool>);
static_assert(std::same_as<compose<pool, counting, locked>, locked::over<counting::over<pool>>>);
static_assert(compose<pool, locked>::threads == thread_use::shared);
static_assert(compose<scan_pool<int, 8>, failing>::threads == thread_use::single);
static_assert(compose<pool, counting>::threads == thread_use::single);
static_assert(compose<heap<int>, counting>::threads == thread_use::shared);

TEST(compose, names_read_from_the_outermost_layer_to_the_base) {
    EXPECT_EQ((compose<pool, counting, locked>::name), "locked:counting:static_pool");
    EXPECT_EQ((compose<pool, locked, counting>::name), "counting:locked:static_pool");
    EXPECT_EQ((compose<malloc_source, limiting, failing, checked>::name), "checked:failing:limiting:malloc");
}

TEST(compose, a_layer_passes_arguments_on_to_the_base) {
    std::array<std::byte, 64> memory;
    compose<buffer_source, counting, failing> source{std::span<std::byte>(memory)};
    EXPECT_NE(source.allocate(64, 1), nullptr);
    EXPECT_EQ(source.allocate(1, 1), nullptr);
    EXPECT_TRUE(source.owns(memory.data()));
    EXPECT_EQ(source.base().traffic().refused, 1u);
}

using layered =
    type_list<compose<pool, counting>, compose<pool, limiting>, compose<pool, failing>, compose<pool, locked>,
              compose<pool, checked>, compose<scan_pool<int, 64>, counting, limiting>,
              compose<static_pool<int, 64>, counting, limiting, failing, locked, checked>, compose<heap<int>, checked>,
              compose<static_pool<int, 64>, locked, checked>,
              compose<fallback<compose<pool, checked>, compose<heap<int>, checked>>, checked>>;
INSTANTIATE_TYPED_TEST_SUITE_P(layered, slot_laws, layered::into<::testing::Types>, by_name);

// ---- counting

TEST(counting, counts_slots_bytes_and_refusals_and_keeps_the_peak) {
    compose<static_pool<std::array<char, 24>, 3>, counting> counted;
    void* slots[] = {counted.acquire(), counted.acquire(), counted.acquire()};
    EXPECT_EQ(counted.acquire(), nullptr);
    EXPECT_EQ(counted.acquire(), nullptr);
    counted.release(slots[0]);
    counted.release(slots[1]);
    counted.release(nullptr);
    EXPECT_NE(counted.acquire(), nullptr);
    const traffic t = counted.traffic();
    EXPECT_EQ(t.acquired, 4u);
    EXPECT_EQ(t.released, 2u);
    EXPECT_EQ(t.refused, 2u);
    EXPECT_EQ(t.live, 2u);
    EXPECT_EQ(t.peak, 3u);
    EXPECT_EQ(t.live_bytes, 48u);
    EXPECT_EQ(t.peak_bytes, 72u);
}

TEST(counting, counts_blocks_of_no_bytes_as_one_byte) {
    compose<malloc_source, counting> counted;
    void* none = counted.allocate(0, 1);
    void* some = counted.allocate(10, 1);
    EXPECT_EQ(counted.traffic().live_bytes, 11u);
    counted.deallocate(some, 10, 1);
    counted.deallocate(none, 0, 1);
    EXPECT_EQ(counted.traffic().live_bytes, 0u);
    EXPECT_EQ(counted.traffic().peak_bytes, 11u);
    EXPECT_EQ(counted.allocate(SIZE_MAX, 1), nullptr);
    EXPECT_EQ(counted.traffic().refused, 1u);
    EXPECT_EQ(counted.traffic().peak_bytes, 11u);
}

TEST(counting, a_reset_releases_what_is_live_and_keeps_the_peak) {
    compose<pool, counting> counted;
    for (int i = 0; i < 5; ++i) ASSERT_NE(counted.acquire(), nullptr);
    counted.reset();
    const traffic t = counted.traffic();
    EXPECT_EQ(t.released, 5u);
    EXPECT_EQ(t.live, 0u);
    EXPECT_EQ(t.live_bytes, 0u);
    EXPECT_EQ(t.peak, 5u);
}

TEST(counting, is_exact_under_threads) {
    compose<heap<int>, counting> counted;
    std::vector<std::thread> threads;
    void* left_live[4];
    for (void*& left : left_live)
        threads.emplace_back([&] {
            void* slots[5];
            for (int n = 0; n < 2000; ++n) {
                for (void*& s : slots) s = counted.acquire();
                for (void* s : slots) counted.release(s);
            }
            left = counted.acquire();
        });
    for (std::thread& t : threads) t.join();
    const traffic t = counted.traffic();
    EXPECT_EQ(t.acquired, 40'004u);
    EXPECT_EQ(t.released, 40'000u);
    EXPECT_EQ(t.live, 4u);
    EXPECT_EQ(t.live_bytes, 4 * sizeof(int));
    EXPECT_GE(t.peak, 5u);
    EXPECT_LE(t.peak, 20u);
    EXPECT_GE(t.peak_bytes, 5 * sizeof(int));
    EXPECT_LE(t.peak_bytes, 20 * sizeof(int));
    for (void* slot : left_live) counted.release(slot);
}

// ---- failing

TEST(failing, serves_so_many_requests_then_refuses_until_told_otherwise) {
    compose<heap<int>, failing> strategy;
    const auto served = [&] {
        void* slot = strategy.acquire();
        strategy.release(slot);
        return slot != nullptr;
    };
    EXPECT_TRUE(served());
    strategy.fail_after(2);
    EXPECT_TRUE(served());
    EXPECT_TRUE(served());
    EXPECT_FALSE(served());
    EXPECT_FALSE(served());
    EXPECT_EQ(strategy.refused(), 2u);
    strategy.fail_after(too_many);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(served());
}

// ---- limiting

TEST(limiting, refuses_what_would_pass_the_limit_and_serves_what_just_fits) {
    compose<malloc_source, limiting> source;
    source.limit(100);
    void* a = source.allocate(60, 1);
    void* b = source.allocate(40, 1);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(source.allocate(0, 1), nullptr) << "no bytes count as one";
    EXPECT_EQ(source.live_bytes(), 100u);
    source.deallocate(b, 40, 1);
    EXPECT_EQ(source.allocate(41, 1), nullptr);
    EXPECT_EQ(source.allocate(40, 3), nullptr) << "refused by the base";
    EXPECT_EQ(source.live_bytes(), 60u);
    b = source.allocate(40, 1);
    EXPECT_NE(b, nullptr);
    source.limit(10);
    source.deallocate(b, 40, 1);
    EXPECT_EQ(source.allocate(1, 1), nullptr) << "still above the new limit";
    source.deallocate(a, 60, 1);
    EXPECT_EQ(source.live_bytes(), 0u);
    a = source.allocate(10, 1);
    EXPECT_NE(a, nullptr);
    source.deallocate(a, 10, 1);
}

TEST(limiting, requests_that_wrap_do_not_pass) {
    compose<malloc_source, limiting> source;
    source.limit(100);
    void* p = source.allocate(50, 1);
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 49, std::size_t{PTRDIFF_MAX}, std::size_t{PTRDIFF_MAX} + 1})
        EXPECT_EQ(source.allocate(bytes, 1), nullptr);
    EXPECT_EQ(source.live_bytes(), 50u);
    source.deallocate(p, 50, 1);
}

TEST(limiting, bounds_slots_and_starts_over_after_a_reset) {
    compose<pool, limiting> strategy;
    strategy.limit(3 * sizeof(int));
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 3; ++i) EXPECT_NE(strategy.acquire(), nullptr);
        EXPECT_EQ(strategy.acquire(), nullptr);
        strategy.reset();
    }
}

/// Tells how many slots it has handed out, from before it serves until after it took back.
struct watched_heap : heap<int> {
    static constexpr std::string_view name = "watched";
    std::atomic<int> held{0}, most{0};
    void* acquire() noexcept {
        for (int seen = most, now = ++held; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        return heap::acquire();
    }
    void release(void* slot) noexcept {
        std::this_thread::yield();
        heap::release(slot);
        --held;
    }
};

TEST(limiting, threads_never_pass_the_limit_and_are_not_refused_below_it) {
    compose<watched_heap, limiting> strategy;
    strategy.limit(4 * sizeof(int));
    std::atomic<std::size_t> above{0}, refused_alone{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 5000; ++n) {
                // Four threads, one slot each: all fit, always.
                void* slot = strategy.acquire();
                if (slot == nullptr) ++refused_alone;
                if (strategy.live_bytes() > 4 * sizeof(int)) ++above;
                strategy.release(slot);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(refused_alone, 0u);
    threads.clear();
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 5000; ++n) {
                void* slots[] = {strategy.acquire(), strategy.acquire(), strategy.acquire()};
                if (strategy.live_bytes() > 4 * sizeof(int)) ++above;
                for (void* s : slots) strategy.release(s);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(above, 0u);
    EXPECT_LE(strategy.base().most, 4);
    EXPECT_EQ(strategy.live_bytes(), 0u);
}

TEST(limiting, a_refused_giant_does_not_stand_in_the_way_of_others) {
    compose<malloc_source, limiting> source;
    source.limit(1000);
    std::atomic<bool> stop{false};
    std::thread giant([&] {
        while (!stop)
            if (source.allocate(5000, 1) != nullptr) std::abort();
    });
    std::size_t refused = 0;
    for (int n = 0; n < 20'000; ++n) {
        void* p = source.allocate(10, 1);
        if (p == nullptr) ++refused;
        source.deallocate(p, 10, 1);
    }
    stop = true;
    giant.join();
    EXPECT_EQ(refused, 0u);
}

// ---- locked

// A growing base changes what `owns` walks through: without the lock ThreadSanitizer sees the race.
TEST(locked, owns_may_be_asked_while_another_thread_makes_it_grow) {
    compose<arena<malloc_source>, locked> shared(growth{.first_bytes = 64, .max_bytes = 64});
    void* first = shared.allocate(8, 8);
    std::thread growing([&] {
        for (int i = 0; i < 500; ++i) static_cast<void>(shared.allocate(40, 8));
    });
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(shared.owns(first));
    growing.join();
}

TEST(locked, locks_of_several_layers_are_all_free_in_a_forked_child) {
    compose<static_pool<int, 64>, locked, locked, counting, checked> strategy;
    const busy_threads others(sanitized ? 0 : 3, [&](std::size_t) { strategy.release(strategy.acquire()); });
    const busy_threads builders(sanitized ? 0 : 1, [](std::size_t) {
        compose<pool, locked> short_lived;
        short_lived.release(short_lived.acquire());
    });
    for (int i = 0; i < 30; ++i)
        ASSERT_EQ(in_child([&] {
                      void* slot = strategy.acquire();
                      strategy.release(slot);
                      return slot != nullptr;
                  }),
                  child_end::succeeded);
}

// Forks from several threads at once wait for each other.
TEST(locked, threads_may_fork_at_the_same_time) {
    if (sanitized) GTEST_SKIP() << "a sanitizer's run-time does not fork from threads";
    compose<static_pool<int, 64>, locked> strategy;
    std::atomic<int> succeeded{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 10; ++n)
                if (in_child([&] { return strategy.acquire() != nullptr; }) == child_end::succeeded) ++succeeded;
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(succeeded, 30);
}

}  // namespace
}  // namespace alloclab::laws
