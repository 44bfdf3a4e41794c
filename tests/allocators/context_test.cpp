// Context strategies: the laws, for each in the registry and for pools of odd sizes; then what is particular to each.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "../laws/slot_laws.hpp"
#include "alloclab/registry.hpp"

namespace alloclab::laws {
namespace {

struct context_header {
    alignas(16) std::array<std::byte, 96> bytes;
};
struct alignas(64) cache_line {
    std::byte bytes[64];
};

using odd_sizes = type_list<static_pool<char, 1>, static_pool<cache_line, 3>, static_pool<std::array<char, 3>, 63>,
                            static_pool<int, 65>, static_pool<short, 4096>, scan_pool<cache_line, 5>,
                            scan_pool<char, 1, lock_over::buffer>, locked_static_pool<char, 129>>;

INSTANTIATE_TYPED_TEST_SUITE_P(registered, slot_laws, context_strategies<context_header>::into<::testing::Types>,
                               by_name);
INSTANTIATE_TYPED_TEST_SUITE_P(odd_sizes, slot_laws, odd_sizes::into<::testing::Types>, by_name);

// whisper.cpp#2521: 64 contexts, one for the model and 7 for each state; with 4 for each state, 15 states fit.
TEST(static_pool, refuses_the_state_that_does_not_fit_and_serves_it_after_another_is_gone) {
    for (const std::size_t contexts : {7u, 4u}) {
        static_pool<context_header, 64> pool;
        std::vector<std::vector<void*>> states;
        const auto make_state = [&] {
            std::vector<void*> taken;
            while (taken.size() < contexts) {
                void* slot = pool.acquire();
                if (slot == nullptr) {
                    for (void* t : taken) pool.release(t);
                    return false;
                }
                taken.push_back(slot);
            }
            states.push_back(taken);
            return true;
        };
        ASSERT_NE(pool.acquire(), nullptr);
        while (make_state()) {
        }
        EXPECT_EQ(states.size(), contexts == 7 ? 9u : 15u);
        EXPECT_EQ(pool.usage().live, 1 + states.size() * contexts);
        for (void* slot : states[3]) pool.release(slot);
        states.erase(states.begin() + 3);
        EXPECT_TRUE(make_state());
        EXPECT_FALSE(make_state());
    }
}

TEST(static_pool, hands_out_the_slot_at_hand_and_then_the_lowest_free_one) {
    static_pool<int, 130> pool;
    std::array<void*, 130> slots;
    for (void*& s : slots) s = pool.acquire();
    for (std::size_t i = 1; i < slots.size(); ++i) EXPECT_LT(slots[i - 1], slots[i]);
    for (const std::size_t i : {129u, 64u, 3u, 63u}) pool.release(slots[i]);
    for (const std::size_t i : {129u, 3u, 63u, 64u}) EXPECT_EQ(pool.acquire(), slots[i]);
    EXPECT_EQ(pool.acquire(), nullptr);
}

TEST(static_pool, serves_no_slot_to_two_owners_after_double_releases) {
    static_pool<int, 3> pool;
    void* a = pool.acquire();
    void* b = pool.acquire();
    void* c = pool.acquire();
    for (void* each : {a, a, b, b, a, b}) pool.release(each);
    EXPECT_EQ(pool.usage().live, 1u);
    EXPECT_EQ(pool.acquire(), a);
    pool.release(b);  // free, while none is at hand
    EXPECT_EQ(pool.usage().live, 2u);
    EXPECT_EQ(pool.acquire(), b);
    EXPECT_EQ(pool.acquire(), nullptr);
    pool.release(b);
    pool.release(c);
    pool.release(b);
    EXPECT_EQ(pool.usage().live, 1u);
    EXPECT_NE(pool.acquire(), pool.acquire());
    EXPECT_EQ(pool.acquire(), nullptr);
}

// A write after release corrupts the user's data only, never the pool's: its bitmap lies outside of the slots.
TEST(static_pool, a_write_after_release_does_not_harm_the_pool) {
    static_pool<std::array<std::byte, 32>, 64> pool;
    std::vector<void*> slots;
    while (void* s = pool.acquire()) slots.push_back(s);
    for (void* s : slots) pool.release(s);
    for (void* s : slots) std::fill_n(static_cast<std::byte*>(s), 32, std::byte{0xFF});
    for (void* s : slots) EXPECT_EQ(pool.acquire(), s);
}

TEST(scan_pool, lock_over_buffer_keeps_its_lock_while_the_buffer_is_made) {
    scan_pool<context_header, 4, lock_over::buffer> pool;
    static_assert(locks_over_buffer<decltype(pool)>);
    std::atomic<int> inside{0}, most{0}, made{0};
    const auto work = [&](void*) {
        most = std::max(most.load(), ++inside);
        std::this_thread::yield();
        --inside;
        ++made;
        return true;
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 500; ++n) {
                void* slot = pool.acquire_then(work);
                pool.release_after(slot, [&](void*) { work(nullptr); });
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(most, 1);
    EXPECT_EQ(made, 4000);
    EXPECT_EQ(pool.usage().live, 0u);
}

TEST(scan_pool, a_buffer_that_cannot_be_made_gives_the_slot_back) {
    scan_pool<context_header, 2, lock_over::buffer> pool;
    EXPECT_EQ(pool.acquire_then([](void*) { return false; }), nullptr);
    EXPECT_EQ(pool.usage().live, 0u);
    int calls = 0;
    const auto made = [&](void*) { return ++calls > 0; };
    EXPECT_NE(pool.acquire_then(made), nullptr);
    EXPECT_NE(pool.acquire_then(made), nullptr);
    EXPECT_EQ(pool.acquire_then(made), nullptr);
    EXPECT_EQ(calls, 2) << "nothing is made without a slot";
}

TEST(first_call_heap, all_objects_share_one_process) {
    first_call_heap<context_header> a, b;
    void* from_a = a.acquire();
    b.release(from_a);  // malloc's and free's: any of them may release
    EXPECT_NE(from_a, nullptr);
}

// libstdc++ PR 70966: a default resource that is dead in late static destructors.
TEST(contexts, serve_in_late_static_destructors) {
    EXPECT_EQ(in_child([] {
                  struct late {
                      first_call_heap<int> heap;
                      ~late() {
                          void* slot = heap.acquire();
                          if (slot == nullptr) ::_exit(2);
                          heap.release(slot);
                          ::_exit(0);
                      }
                  };
                  static late last;
                  first_call_heap<int> first_use;
                  first_use.release(first_use.acquire());
                  std::exit(3);
                  return false;
              }),
              child_end::succeeded);
}

}  // namespace
}  // namespace alloclab::laws
