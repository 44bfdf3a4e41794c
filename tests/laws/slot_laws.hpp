// The laws of slot strategies. A strategy joins by its line in the registry, never by a new test. A law about what a
// strategy need not offer (owns, reset, usage, threads, a capacity) asks nothing of those that do not offer it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "alloclab/concepts.hpp"
#include "child.hpp"
#include "named.hpp"

namespace alloclab::laws {

template <slot_strategy P>
class slot_laws : public of_available<P> {
protected:
    static constexpr std::size_t slot_bytes = sizeof(typename P::value_type);
    static constexpr std::size_t enough = 200;  // of a strategy without bounds

    /// Acquires until the strategy is exhausted or `at_most` slots are live; each is stamped with its number.
    std::vector<void*>& fill(std::size_t at_most = [] {
        if constexpr (bounded<P>) return P::capacity + 1;
        else return enough;
    }()) {
        while (live.size() < at_most) {
            void* slot = strategy.acquire();
            if (slot == nullptr) break;
            std::fill_n(static_cast<unsigned char*>(slot), slot_bytes, stamp_of(live.size()));
            live.push_back(slot);
        }
        return live;
    }
    /// In the order that `live` has now; each slot must still have the stamp of one live slot all over.
    void release_all() {
        for (void* slot : live) strategy.release(slot);
        live.clear();
    }
    void expect_stamps() const {
        for (std::size_t i = 0; i < live.size(); ++i) {
            const auto* bytes = static_cast<const unsigned char*>(live[i]);
            ASSERT_EQ(std::count(bytes, bytes + slot_bytes, stamp_of(i)), static_cast<std::ptrdiff_t>(slot_bytes))
                << "slot " << i << " was written by another";
        }
    }
    void TearDown() override { release_all(); }

    static unsigned char stamp_of(std::size_t number) { return static_cast<unsigned char>(1 + number % 251); }

    P strategy;
    std::vector<void*> live;
};
TYPED_TEST_SUITE_P(slot_laws);

TYPED_TEST_P(slot_laws, live_slots_are_distinct_aligned_and_wholly_ones_own) {
    auto& slots = this->fill();
    EXPECT_EQ(std::set<void*>(slots.begin(), slots.end()).size(), slots.size());
    for (void* slot : slots) EXPECT_TRUE(is_aligned(slot, alignof(typename TypeParam::value_type)));
    this->expect_stamps();
}

TYPED_TEST_P(slot_laws, bounded_ones_serve_their_capacity_then_null_and_are_usable_afterwards) {
    const std::size_t full = this->fill().size();
    if constexpr (bounded<TypeParam>) {
        EXPECT_EQ(full, TypeParam::capacity);
        const auto usage = [&] {
            if constexpr (measured<TypeParam>) return this->strategy.usage();
            else return alloclab::usage{};
        };
        const auto before = usage();
        for (int i = 0; i < 3; ++i) EXPECT_EQ(this->strategy.acquire(), nullptr);
        EXPECT_EQ(usage(), before);
        this->expect_stamps();
    }
    void* given_back = this->live.back();
    this->live.pop_back();
    this->strategy.release(given_back);
    EXPECT_EQ(this->fill(full).size(), full);
}

// Random traffic alone does not see a pool that loses capacity: exhaustion merely looks like nullptr.
// foonathan/memory#111: one order only was tried.
TYPED_TEST_P(slot_laws, capacity_survives_any_release_order) {
    const std::size_t full = this->fill().size();
    const std::set<void*> first(this->live.begin(), this->live.end());
    std::mt19937 random{42};
    const std::size_t rounds = full > 1000 ? 20 : 1000;
    for (std::size_t round = 0; round < rounds; ++round) {
        if (round == 1) std::reverse(this->live.begin(), this->live.end());
        if (round > 1) std::shuffle(this->live.begin(), this->live.end(), random);
        this->release_all();
        ASSERT_EQ(this->fill().size(), full) << "in round " << round;
        this->expect_stamps();
        if constexpr (bounded<TypeParam>) {
            ASSERT_EQ(std::set<void*>(this->live.begin(), this->live.end()), first) << "in round " << round;
        }
    }
}

TYPED_TEST_P(slot_laws, partial_releases_are_served_again_and_leave_the_others_alone) {
    this->fill();
    std::mt19937 random{7};
    for (int round = 0; round < 200; ++round) {
        const std::size_t full = this->live.size();
        const std::size_t gone = 1 + random() % full;
        // The last are released, so that the stamps of those that stay still fit their places.
        for (std::size_t i = 0; i < gone; ++i) {
            this->strategy.release(this->live.back());
            this->live.pop_back();
        }
        this->expect_stamps();
        ASSERT_EQ(this->fill(full).size(), full);
        ASSERT_EQ(std::set<void*>(this->live.begin(), this->live.end()).size(), full);
    }
}

TYPED_TEST_P(slot_laws, releasing_null_does_nothing) {
    this->strategy.release(nullptr);
    const std::size_t full = this->fill().size();
    this->strategy.release(nullptr);
    EXPECT_EQ(this->fill().size(), full);
    this->expect_stamps();
}

TYPED_TEST_P(slot_laws, live_count_balances) {
    if constexpr (measured<TypeParam>) {
        EXPECT_EQ(this->strategy.usage().live, 0u);
        std::size_t n = 0;
        for (; void* slot = n < this->enough ? this->strategy.acquire() : nullptr; ++n) {
            EXPECT_EQ(this->strategy.usage().live, n + 1);
            this->live.push_back(slot);
        }
        EXPECT_GE(this->strategy.usage().reserved_bytes, n * sizeof(typename TypeParam::value_type));
        for (; n > 0; --n) {
            EXPECT_EQ(this->strategy.usage().live, n);
            this->strategy.release(this->live.back());
            this->live.pop_back();
        }
        EXPECT_EQ(this->strategy.usage().live, 0u);
    }
}

TYPED_TEST_P(slot_laws, owns_its_slots_and_nothing_beside_them) {
    if constexpr (owning<TypeParam>) {
        using value_type = typename TypeParam::value_type;
        TypeParam other;
        void* foreign = other.acquire();
        value_type on_stack{};
        this->fill();
        for (void* slot : this->live) {
            EXPECT_TRUE(this->strategy.owns(slot));
            EXPECT_FALSE(other.owns(slot));
        }
        for (const void* p : {static_cast<const void*>(nullptr), static_cast<const void*>(foreign),
                              static_cast<const void*>(&on_stack)})
            EXPECT_FALSE(this->strategy.owns(p));
        if constexpr (bounded<TypeParam>) {
            const auto [lowest, highest] = std::minmax_element(this->live.begin(), this->live.end());
            EXPECT_FALSE(this->strategy.owns(static_cast<value_type*>(*highest) + 1));
            EXPECT_FALSE(this->strategy.owns(static_cast<value_type*>(*lowest) - 1));
        }
        other.release(foreign);
    }
}

// A pool that knows the starts of its slots can tell cheaply, and must not serve one slot to two owners; one that says
// `trusts_release` keeps free slots where it cannot tell.
TYPED_TEST_P(slot_laws, pools_of_ones_own_ignore_what_is_no_slot) {
    if constexpr (owning<TypeParam> && bounded<TypeParam> && !requires { TypeParam::trusts_release; }) {
        using value_type = typename TypeParam::value_type;
        const std::size_t full = this->fill().size();
        value_type on_stack{};
        this->strategy.release(&on_stack);
        if constexpr (sizeof(value_type) > 1)
            this->strategy.release(static_cast<std::byte*>(this->live[full / 2]) + sizeof(value_type) / 2);
        const auto highest = std::max_element(this->live.begin(), this->live.end());
        this->strategy.release(static_cast<value_type*>(*highest) + 1);
        EXPECT_EQ(this->strategy.acquire(), nullptr);

        void* released_twice = this->live.back();
        this->live.pop_back();
        this->strategy.release(released_twice);
        this->strategy.release(released_twice);
        EXPECT_EQ(this->fill().size(), full);
        EXPECT_EQ(std::set<void*>(this->live.begin(), this->live.end()).size(), full);
    }
}

TYPED_TEST_P(slot_laws, reset_keeps_memory_and_capacity) {
    if constexpr (resettable<TypeParam>) {
        const std::size_t full = this->fill().size();
        alloclab::usage filled;
        if constexpr (measured<TypeParam>) filled = this->strategy.usage();
        this->live.clear();
        this->strategy.reset();
        if constexpr (measured<TypeParam>) {
            EXPECT_EQ(this->strategy.usage().live, 0u);
            EXPECT_EQ(this->strategy.usage().reserved_bytes, filled.reserved_bytes);
        }
        EXPECT_EQ(this->fill().size(), full);
        if constexpr (measured<TypeParam>) {
            EXPECT_EQ(this->strategy.usage(), filled);
        }
        this->expect_stamps();
    }
}

// ThreadSanitizer sees two owners of one slot as a race on its bytes.
TYPED_TEST_P(slot_laws, threads_never_share_a_slot) {
    if (!threads_are_judged<TypeParam>) GTEST_SKIP() << "ThreadSanitizer cannot judge " << TypeParam::name;
    if constexpr (TypeParam::threads == thread_use::shared) {
        using value_type = typename TypeParam::value_type;
        constexpr std::size_t held_by_each = 8;
        std::atomic<std::size_t> foreign_stamps{0}, served{0};
        const auto work = [&](unsigned char id) {
            std::vector<unsigned char*> held;
            std::mt19937 random{id};
            for (int step = 0; step < 4000; ++step)
                if (held.size() < held_by_each && random() % 2 == 0) {
                    auto* slot = static_cast<unsigned char*>(this->strategy.acquire());
                    if (slot == nullptr) continue;
                    std::fill_n(slot, sizeof(value_type), id);
                    held.push_back(slot);
                    ++served;
                } else if (!held.empty()) {
                    std::swap(held[random() % held.size()], held.back());
                    if (std::count(held.back(), held.back() + sizeof(value_type), id) !=
                        static_cast<std::ptrdiff_t>(sizeof(value_type)))
                        ++foreign_stamps;
                    this->strategy.release(held.back());
                    held.pop_back();
                }
            for (unsigned char* slot : held) this->strategy.release(slot);
        };
        std::vector<std::thread> threads;
        for (unsigned char id = 1; id <= 4; ++id) threads.emplace_back(work, id);
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(foreign_stamps, 0u);
        EXPECT_GT(served, 100u);
        if constexpr (measured<TypeParam>) {
            EXPECT_EQ(this->strategy.usage().live, 0u);
        }
        if constexpr (bounded<TypeParam>) {
            EXPECT_EQ(this->fill().size(), TypeParam::capacity);
        }
    }
}

// jemalloc#2402, gperftools#499: the child hangs on a lock that a thread held which the child does not have. Run-times
// of sanitizers hang the same way, so there no other thread runs at the fork.
TYPED_TEST_P(slot_laws, a_forked_child_can_acquire_and_release) {
    constexpr bool shared = TypeParam::threads == thread_use::shared;
    constexpr std::size_t capacity = [] {
        if constexpr (bounded<TypeParam>) return TypeParam::capacity;
        else return TestFixture::enough;
    }();
    // Together they hold less than all slots, so the child cannot be refused one.
    constexpr std::size_t held = capacity > 16 ? 4 : 1;
    const busy_threads others(shared && !sanitized ? std::min<std::size_t>(4, capacity - 1) : 0, [&](std::size_t) {
        void* slots[held];
        for (void*& slot : slots) slot = this->strategy.acquire();
        for (void* slot : slots) this->strategy.release(slot);
    });
    for (int forks = 0; forks < (shared && !sanitized ? 50 : 3); ++forks) {
        const child_end end = in_child([&] {
            for (int i = 0; i < 10; ++i) {
                void* slot = this->strategy.acquire();
                if (slot == nullptr) return false;
                std::fill_n(static_cast<unsigned char*>(slot), sizeof(typename TypeParam::value_type), 1);
                this->strategy.release(slot);
            }
            return true;
        });
        ASSERT_EQ(end, child_end::succeeded) << (end == child_end::hung ? "it hung" : "it got no slot");
    }
}

REGISTER_TYPED_TEST_SUITE_P(slot_laws, live_slots_are_distinct_aligned_and_wholly_ones_own,
                            bounded_ones_serve_their_capacity_then_null_and_are_usable_afterwards,
                            capacity_survives_any_release_order,
                            partial_releases_are_served_again_and_leave_the_others_alone, releasing_null_does_nothing,
                            live_count_balances, owns_its_slots_and_nothing_beside_them,
                            pools_of_ones_own_ignore_what_is_no_slot, reset_keeps_memory_and_capacity,
                            threads_never_share_a_slot, a_forked_child_can_acquire_and_release);

}  // namespace alloclab::laws
