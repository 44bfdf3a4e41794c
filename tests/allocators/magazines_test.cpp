// What threads do with the pools that keep slots for each of them: nothing is lost in a magazine, nothing is served
// twice, whenever threads, pools and processes begin and end.
#include "alloclab/context/magazines.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include "../laws/child.hpp"
#include "../laws/fallback_laws.hpp"
#include "../laws/named.hpp"
#include "../laws/slot_laws.hpp"
#include "alloclab/asymmetric_fence.hpp"
#include "alloclab/presets.hpp"

namespace alloclab::laws {
namespace {

struct alignas(64) cache_line {
    std::byte bytes[64];
};

using odd_sizes = type_list<magazine_pool<char, 1>, magazine_pool<std::array<char, 3>, 65>, owner_pool<cache_line, 3>,
                            owner_pool<short, 300>>;
using small_hybrids = type_list<magazine_hybrid<char, 1>, owner_hybrid<int, 5>>;
INSTANTIATE_TYPED_TEST_SUITE_P(magazines, slot_laws, odd_sizes::into<::testing::Types>, by_name);
INSTANTIATE_TYPED_TEST_SUITE_P(magazines, fallback_laws, small_hybrids::into<::testing::Types>, by_name);

template <class P>
std::vector<void*> take_all(P& pool, std::size_t at_most = P::capacity + 1) {
    std::vector<void*> slots;
    while (slots.size() < at_most) {
        void* slot = pool.acquire();
        if (slot == nullptr) break;
        slots.push_back(slot);
    }
    return slots;
}
template <class P>
void give_back(P& pool, const std::vector<void*>& slots) {
    for (void* slot : slots) pool.release(slot);
}
/// Runs in a thread of its own, to its end.
template <class Work>
void in_thread(Work work) {
    std::thread(work).join();
}

// ---- pools of any size ----

template <class P>
class bounded_magazines : public ::testing::Test {};
using bounded_ones =
    type_list<magazine_pool<long, 1>, magazine_pool<long, 2>, magazine_pool<long, 64>, magazine_pool<long, 200>,
              owner_pool<long, 1>, owner_pool<long, 7>, owner_pool<long, 64>>;
TYPED_TEST_SUITE(bounded_magazines, bounded_ones::into<::testing::Types>, by_name);

TYPED_TEST(bounded_magazines, what_a_sleeping_thread_has_parked_is_served_to_others) {
    TypeParam pool;
    std::barrier step(2);
    std::thread sleeper([&] {
        give_back(pool, take_all(pool, 48));
        step.arrive_and_wait();
        step.arrive_and_wait();
        EXPECT_EQ(pool.acquire(), nullptr) << "all are live in the other thread";
        step.arrive_and_wait();
        step.arrive_and_wait();
        EXPECT_EQ(take_all(pool).size(), TypeParam::capacity) << "the other thread has parked them";
    });
    step.arrive_and_wait();
    EXPECT_EQ(pool.usage().live, 0u);
    const std::vector<void*> slots = take_all(pool);
    EXPECT_EQ(std::set<void*>(slots.begin(), slots.end()).size(), TypeParam::capacity);
    EXPECT_EQ(pool.usage().live, TypeParam::capacity);
    step.arrive_and_wait();
    step.arrive_and_wait();
    give_back(pool, slots);
    EXPECT_EQ(pool.usage().live, 0u);
    step.arrive_and_wait();
    sleeper.join();
}

TYPED_TEST(bounded_magazines, a_thread_that_ends_leaves_nothing_behind) {
    TypeParam pool;
    for (int i = 0; i < 3; ++i) in_thread([&] { give_back(pool, take_all(pool)); });
    std::vector<void*> others;
    in_thread([&] { others = take_all(pool); });
    EXPECT_EQ(others.size(), TypeParam::capacity);
    EXPECT_EQ(pool.acquire(), nullptr);
    give_back(pool, others);
    EXPECT_EQ(take_all(pool).size(), TypeParam::capacity);
}

TYPED_TEST(bounded_magazines, reset_forgets_what_is_live_and_parked_in_any_thread) {
    TypeParam pool;
    std::barrier step(2);
    std::thread other([&] {
        const auto slots = take_all(pool);
        give_back(pool, {slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2)});
        step.arrive_and_wait();
        step.arrive_and_wait();
        give_back(pool, take_all(pool));
    });
    step.arrive_and_wait();
    pool.reset();
    EXPECT_EQ(pool.usage().live, 0u);
    step.arrive_and_wait();
    other.join();
    EXPECT_EQ(take_all(pool).size(), TypeParam::capacity);
}

// Each slot carries the number of the thread that has it; 0 while it is free.
TYPED_TEST(bounded_magazines, no_slot_has_two_owners_while_threads_steal_at_full_speed) {
    static_assert(std::is_same_v<typename TypeParam::value_type, long>);
    constexpr int cycles = thread_sanitized ? 2'000 : 25'000;
    constexpr std::size_t held_at_most = TypeParam::capacity < 8 ? 1 : TypeParam::capacity / 6;
    TypeParam pool;
    for (void* slot : take_all(pool)) static_cast<long*>(slot)[0] = 0;
    pool.reset();
    std::atomic<std::size_t> stolen_while_owned{0}, served{0};
    std::vector<std::thread> threads;
    for (long id = 1; id <= 8; ++id)
        threads.emplace_back([&, id] {
            std::mt19937 random(static_cast<unsigned>(id));
            std::vector<long*> held;
            const auto let_go = [&] {
                std::swap(held[random() % held.size()], held.back());
                if (*held.back() != id) ++stolen_while_owned;
                *held.back() = 0;
                pool.release(held.back());
                held.pop_back();
            };
            for (int i = 0; i < cycles; ++i) {
                if (held.size() >= held_at_most || (!held.empty() && random() % 2 == 0)) let_go();
                if (auto* slot = static_cast<long*>(pool.acquire())) {
                    if (*slot != 0) ++stolen_while_owned;
                    *slot = id;
                    held.push_back(slot);
                    ++served;
                }
                while (held.size() > held_at_most) let_go();
            }
            while (!held.empty()) let_go();
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(stolen_while_owned, 0u);
    EXPECT_GT(served, 0u);
    EXPECT_EQ(pool.usage().live, 0u);
    EXPECT_EQ(take_all(pool).size(), TypeParam::capacity);
}

// No thread ever holds more than its share, so a refusal is a slot that was lost sight of.
TYPED_TEST(bounded_magazines, no_thread_is_refused_while_a_slot_is_free) {
    constexpr std::size_t threads_at_once = TypeParam::capacity < 8 ? TypeParam::capacity : 8;
    constexpr std::size_t each = TypeParam::capacity / threads_at_once;
    TypeParam pool;
    std::atomic<std::size_t> refused{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < threads_at_once; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < (thread_sanitized ? 200 : 2'000); ++i) {
                const auto slots = take_all(pool, each);
                refused += each - slots.size();
                give_back(pool, slots);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(refused, 0u);
}

TYPED_TEST(bounded_magazines, slots_pass_between_threads_both_ways_without_end) {
    TypeParam pool;
    std::array<std::atomic<void*>, 2> handed{};
    const auto work = [&](std::size_t me) {
        for (int i = 0; i < (thread_sanitized ? 500 : 5'000); ++i) {
            if (void* slot = handed[me].exchange(nullptr)) pool.release(slot);
            void* mine = pool.acquire();
            void* nobodys = nullptr;
            if (mine != nullptr && !handed[1 - me].compare_exchange_strong(nobodys, mine)) pool.release(mine);
        }
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
    for (auto& each : handed) pool.release(each.load());
    EXPECT_EQ(pool.usage().live, 0u);
    EXPECT_EQ(take_all(pool).size(), TypeParam::capacity);
}

// ---- all of them ----

template <class P>
class any_magazines : public ::testing::Test {};
using every = type_list<magazine_pool<long, 64>, owner_pool<long, 64>, magazine_heap<long>, magazine_hybrid<long, 8>>;
TYPED_TEST_SUITE(any_magazines, every::into<::testing::Types>, by_name);

template <class P>
bool serves(P& pool, std::size_t slots = 60) {
    const auto taken = take_all<P>(pool, slots);
    give_back(pool, taken);
    return taken.size() == slots;
}

TYPED_TEST(any_magazines, serve_in_destructors_of_a_thread_that_ends) {
    static TypeParam* pool;
    TypeParam here;
    pool = &here;
    static std::atomic<int> served;
    served = 0;
    struct late {
        ~late() { served += serves(*pool) ? 1 : 0; }
    };
    in_thread([] {
        static thread_local late before;  // dies after what the pool registers at its first use
        static_cast<void>(&before);
        served += serves(*pool) ? 1 : 0;
    });
    EXPECT_EQ(served, 2);
    EXPECT_EQ(here.usage().live, 0u);
}

TYPED_TEST(any_magazines, pools_may_die_before_the_threads_that_used_them) {
    std::optional<TypeParam> pool;
    std::barrier step(2);
    std::thread user([&] {
        for (int i = 0; i < 20; ++i) {
            step.arrive_and_wait();
            EXPECT_TRUE(serves(*pool)) << "an old magazine at the address of a new pool, in round " << i;
            step.arrive_and_wait();
        }
    });
    for (int i = 0; i < 20; ++i) {
        pool.emplace();
        step.arrive_and_wait();
        step.arrive_and_wait();
        pool.reset();
    }
    user.join();
}

// More than a thread's table has room for.
TYPED_TEST(any_magazines, a_thread_may_alternate_between_many_pools) {
    std::vector<std::unique_ptr<TypeParam>> pools;
    std::vector<std::pair<TypeParam*, void*>> live;
    for (int i = 0; i < 40; ++i) pools.push_back(std::make_unique<TypeParam>());
    std::mt19937 random{5};
    for (int i = 0; i < 20'000; ++i)
        if (live.size() < 60 && random() % 2 == 0) {
            TypeParam* pool = pools[random() % pools.size()].get();
            live.emplace_back(pool, pool->acquire());
            ASSERT_NE(live.back().second, nullptr);
        } else if (!live.empty()) {
            std::swap(live[random() % live.size()], live.back());
            live.back().first->release(live.back().second);
            live.pop_back();
        }
    for (const auto& [pool, slot] : live) pool->release(slot);
    for (const auto& pool : pools) {
        EXPECT_EQ(pool->usage().live, 0u);
        EXPECT_TRUE(serves(*pool));
    }
}

TYPED_TEST(any_magazines, first_use_by_many_threads_at_once) {
    for (int round = 0; round < 20; ++round) {
        TypeParam pool;
        std::barrier start(16);
        std::atomic<int> refused{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 16; ++t)
            threads.emplace_back([&] {
                start.arrive_and_wait();
                refused += serves(pool, 4) ? 0 : 1;
            });
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(refused, 0);
        EXPECT_EQ(pool.usage().live, 0u);
    }
}

// cppalliance/capy#362, folly#1969: each thread leaves something in its cache when it ends.
TYPED_TEST(any_magazines, a_thousand_short_threads_leave_no_memory_behind) {
    TypeParam pool;
    const auto short_threads = [&](int n) {
        for (int i = 0; i < n; ++i) in_thread([&] { give_back(pool, take_all<TypeParam>(pool, 10)); });
    };
    short_threads(20);
    const usage before = pool.usage();
    const std::size_t from_malloc = ::mallinfo2().uordblks;
    short_threads(thread_sanitized ? 200 : 1000);
    EXPECT_EQ(pool.usage().live, 0u);
    EXPECT_EQ(pool.usage().reserved_bytes, before.reserved_bytes);
    if (!sanitized) {
        EXPECT_LT(::mallinfo2().uordblks, from_malloc + 1000 * 16) << "some bytes for each thread";
    }
}

// jemalloc#2402: a slot that is parked in a thread that the child does not have must not be lost to the child.
TYPED_TEST(bounded_magazines, a_child_finds_all_slots_that_no_thread_held_at_the_fork) {
    constexpr std::size_t threads = TypeParam::capacity > 4 ? 4 : 1;
    TypeParam pool;
    const busy_threads others(sanitized ? 0 : threads, [&](std::size_t) {
        // Never more than one slot is live in a thread, and up to its whole magazine is parked.
        pool.release(pool.acquire());
    });
    for (int i = 0; i < (sanitized ? 3 : 40); ++i) {
        const child_end end = in_child([&] {
            const std::size_t found = take_all(pool).size();
            if (found > TypeParam::capacity || found + threads < TypeParam::capacity) return false;
            bool again = true;  // with a thread of the child's, at the address of a thread that is gone
            if (!sanitized) in_thread([&] { again = pool.acquire() == nullptr; });
            return again;
        });
        ASSERT_EQ(end, child_end::succeeded)
            << (end == child_end::hung ? "it hung" : "slots were lost") << ", fork " << i;
    }
}

// ---- the heap ----

TEST(magazine_heap, counts_live_slots_and_reuses_what_another_thread_released) {
    magazine_heap<long> heap;
    for (int round = 0; round < 50; ++round) {
        auto slots = take_all<magazine_heap<long>>(heap, 60);
        EXPECT_EQ(heap.usage().live, 60u);
        in_thread([&] { give_back(heap, slots); });
        EXPECT_EQ(heap.usage().live, 0u);
    }
    EXPECT_LT(heap.usage().source_calls, 130u) << "malloc was asked again for what was at hand";
}

// A refusal leaves a magazine that serves: what is released after it is not lost.
TEST(magazine_heap, loses_nothing_that_is_released_after_malloc_has_failed) {
    if (sanitized) GTEST_SKIP() << "a limit on address space stops a sanitizer";
    struct large {
        std::byte bytes[std::size_t{64} << 20];
    };
    const auto loses_nothing = [] {
        const auto limit_memory = [](bool on) {
            rlimit limit{};
            if (::getrlimit(RLIMIT_AS, &limit) != 0) return false;
            limit.rlim_cur = on ? 1 : limit.rlim_max;
            return ::setrlimit(RLIMIT_AS, &limit) == 0;
        };
        magazine_heap<large> heap;
        const auto slots = take_all<magazine_heap<large>>(heap, 2);
        if (slots.size() != 2 || !limit_memory(true)) return false;
        const bool refused = heap.acquire() == nullptr;
        if (!limit_memory(false) || !refused) return false;
        give_back(heap, slots);
        return heap.usage().live == 0;
    };
    EXPECT_EQ(in_child(loses_nothing), child_end::succeeded);
}

// A pool may live in a slot of another that shares its entry in the table: each finds its own slots alone.
TEST(magazine_pool, takes_no_slot_of_a_pool_that_lives_in_its_own_slot) {
    using inner = magazine_pool<long, 4>;
    const auto outer = std::make_unique<magazine_pool<inner, 128>>();
    std::vector<inner*> inside;
    for (int i = 0; i < 64; ++i) {  // one in eight shares the entry
        auto* in = inside.emplace_back(new (outer->acquire()) inner);
        for (int k = 0; k < 70; ++k) in->release(in->acquire());
        const auto* next = static_cast<std::byte*>(outer->acquire());
        const auto* begin = reinterpret_cast<std::byte*>(in);
        EXPECT_TRUE(next < begin || next >= begin + sizeof(inner)) << "given out while the pool in it lives";
    }
    for (inner* in : inside) in->~inner();
}

// ---- the fence ----

// Dekker: each side stores, then loads what the other stored. Both see nothing only if a store was still on its way.
template <class Heavy>
std::size_t both_saw_nothing(int rounds, Heavy heavy) {
    std::atomic<int> often{0}, rarely{0}, seen_often{0}, seen_rarely{0};
    std::size_t faults = 0;
    std::barrier step(2);
    std::thread other([&] {
        for (int i = 0; i < rounds; ++i) {
            step.arrive_and_wait();
            often.store(1, std::memory_order_relaxed);
            light_fence();
            seen_rarely.store(rarely.load(std::memory_order_relaxed), std::memory_order_relaxed);
            step.arrive_and_wait();
        }
    });
    for (int i = 0; i < rounds; ++i) {
        often = rarely = 0;
        step.arrive_and_wait();
        rarely.store(1, std::memory_order_relaxed);
        heavy();
        seen_often.store(often.load(std::memory_order_relaxed), std::memory_order_relaxed);
        step.arrive_and_wait();
        faults += seen_often.load() == 0 && seen_rarely.load() == 0 ? 1 : 0;
    }
    other.join();
    return faults;
}

TEST(asymmetric_fence, one_side_always_sees_the_other) {
    ASSERT_TRUE(heavy_fence_available());
    EXPECT_EQ(both_saw_nothing(5'000, [] { heavy_fence(); }), 0u);
}
TEST(asymmetric_fence, works_without_membarrier_too) {
    EXPECT_EQ(both_saw_nothing(5'000, [] { alloclab::detail::shoot_down_fence(); }), 0u);
}

}  // namespace
}  // namespace alloclab::laws
