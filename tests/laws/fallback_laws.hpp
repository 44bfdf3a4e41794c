// The laws of a bounded front before a back: whole strategies that give access to both, under any layers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "alloclab/concepts.hpp"
#include "named.hpp"

namespace alloclab::laws {

/// The fallback in a strategy, below its layers.
template <class P>
[[nodiscard]] auto& fallback_in(P& strategy) {
    if constexpr (requires { strategy.front(); }) return strategy;
    else return fallback_in(strategy.base());
}

template <class P>
struct is_fallback : std::false_type {};
template <class P>
requires requires(P& p) { p.front(), p.back(); }
struct is_fallback<P> : std::true_type {};
template <class P>
requires requires(P& p) { p.base(); }
struct is_fallback<P> : is_fallback<std::remove_reference_t<decltype(std::declval<P&>().base())>> {};

template <slot_strategy P>
class fallback_laws : public of_available<P> {
protected:
    static constexpr std::size_t front_slots =
        std::remove_reference_t<decltype(fallback_in(std::declval<P&>()).front())>::capacity;

    [[nodiscard]] std::size_t in_front() { return fallback_in(strategy).front().usage().live; }
    [[nodiscard]] std::size_t in_back() { return fallback_in(strategy).in_back(); }
    void take(std::size_t slots) {
        for (std::size_t i = 0; i < slots; ++i) {
            live.push_back(strategy.acquire());
            ASSERT_NE(live.back(), nullptr);
        }
    }
    void give_back(std::size_t slots) {
        for (; slots > 0; --slots, live.pop_back()) strategy.release(live.back());
    }
    void TearDown() override { give_back(live.size()); }

    P strategy;
    std::vector<void*> live;
};
TYPED_TEST_SUITE_P(fallback_laws);

TYPED_TEST_P(fallback_laws, the_front_serves_first_and_the_back_only_when_it_is_full) {
    this->take(this->front_slots);
    EXPECT_EQ(this->in_front(), this->front_slots);
    EXPECT_EQ(this->in_back(), 0u);
    this->take(3);
    EXPECT_EQ(this->in_front(), this->front_slots);
    EXPECT_EQ(this->in_back(), 3u);
}

TYPED_TEST_P(fallback_laws, each_slot_goes_home_in_any_order_and_the_front_serves_first_again) {
    std::mt19937 random{3};
    for (int round = 0; round < 50; ++round) {
        this->take(2 * this->front_slots);
        ASSERT_EQ(this->in_back(), this->front_slots);
        std::shuffle(this->live.begin(), this->live.end(), random);
        while (!this->live.empty()) {
            const bool was_in_front = fallback_in(this->strategy).front().owns(this->live.back());
            const std::size_t front = this->in_front(), back = this->in_back();
            this->give_back(1);
            ASSERT_EQ(this->in_front(), front - (was_in_front ? 1 : 0));
            ASSERT_EQ(this->in_back(), back - (was_in_front ? 0 : 1));
        }
        this->take(this->front_slots);
        ASSERT_EQ(this->in_back(), 0u) << "released slots did not come back to the front";
        this->give_back(this->front_slots);
    }
}

TYPED_TEST_P(fallback_laws, a_slot_freed_in_the_front_is_used_before_the_back) {
    this->take(this->front_slots + 2);
    void* in_front = this->live.front();
    this->strategy.release(in_front);
    this->live.front() = this->strategy.acquire();
    EXPECT_EQ(this->live.front(), in_front);
    EXPECT_EQ(this->in_back(), 2u);
}

TYPED_TEST_P(fallback_laws, usage_counts_both_sides) {
    this->take(this->front_slots);
    const usage full = this->strategy.usage();
    EXPECT_EQ(full.live, this->front_slots);
    this->take(5);
    const usage spilled = this->strategy.usage();
    EXPECT_EQ(spilled.live, this->front_slots + 5);
    EXPECT_GE(spilled.reserved_bytes, full.live * sizeof(typename TypeParam::value_type));
    using back = std::remove_reference_t<decltype(fallback_in(this->strategy).back())>;
    if constexpr (!measured<back>) {
        EXPECT_EQ(spilled.reserved_bytes, full.reserved_bytes + 5 * sizeof(typename TypeParam::value_type));
    }
    this->give_back(this->live.size());
    EXPECT_EQ(this->strategy.usage().live, 0u);
    this->strategy.release(nullptr);
    EXPECT_EQ(this->strategy.usage().live, 0u);
}

// whisper.cpp#2521: 64 contexts, one for the model and 7 for each state; the ninth state used to be the last.
TYPED_TEST_P(fallback_laws, states_beyond_the_pool_spill_to_the_heap) {
    if constexpr (TestFixture::front_slots == 64) {
        this->take(1);
        for (int state = 1; state <= 9; ++state) {
            this->take(7);
            EXPECT_EQ(this->in_back(), 0u) << "state " << state;
        }
        EXPECT_EQ(this->in_front(), 64u);
        this->take(7);
        EXPECT_EQ(this->in_front(), 64u);
        EXPECT_EQ(this->in_back(), 7u);
    }
}

REGISTER_TYPED_TEST_SUITE_P(fallback_laws, the_front_serves_first_and_the_back_only_when_it_is_full,
                            each_slot_goes_home_in_any_order_and_the_front_serves_first_again,
                            a_slot_freed_in_the_front_is_used_before_the_back, usage_counts_both_sides,
                            states_beyond_the_pool_spill_to_the_heap);

}  // namespace alloclab::laws
