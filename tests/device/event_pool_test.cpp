#include "alloclab/device/event_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device {
namespace {

constexpr std::size_t device_bytes = std::size_t{1} << 20;

TEST(event_pool, makes_no_event_before_one_is_needed_and_none_twice) {
    sim_device device(device_bytes);
    event_pool<sim_device> pool(device);
    EXPECT_EQ(device.usage().count(call::create_event), 0U);
    for (int round = 0; round < 1000; ++round) {
        std::vector<event> taken;
        for (int i = 0; i < 20; ++i) taken.push_back(pool.acquire());
        std::sort(taken.begin(), taken.end());
        ASSERT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end()) << "one event has two users";
        ASSERT_NE(taken.front(), event::none);
        for (const event e : taken) pool.release(e);
    }
    EXPECT_EQ(pool.created(), 20U);
    EXPECT_EQ(pool.idle(), 20U);
    EXPECT_EQ(device.usage().count(call::create_event), 20U);
}

TEST(event_pool, destroys_each_event_once_when_it_dies) {
    sim_device device(device_bytes);
    {
        event_pool<sim_device> pool(device);
        const event a = pool.acquire(), b = pool.acquire();
        pool.release(b);
        pool.release(a);
        pool.release(event::none);
        EXPECT_EQ(device.usage().live_events, 2U);
    }
    EXPECT_EQ(device.usage().live_events, 0U);
    EXPECT_EQ(device.usage().count(call::destroy_event), 2U);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

TEST(event_pool, answers_none_when_the_device_has_none_and_serves_again_when_it_has) {
    sim_device device(device_bytes);
    event_pool<sim_device> pool(device);
    device.inject({.at = call::create_event, .first = 2});
    const event first = pool.acquire();
    EXPECT_NE(first, event::none);
    EXPECT_EQ(pool.acquire(), event::none);
    EXPECT_EQ(pool.created(), 1U);
    const event second = pool.acquire();
    EXPECT_NE(second, event::none);
    pool.release(first);
    pool.release(second);
    EXPECT_EQ(pool.idle(), 2U);
}

}  // namespace
}  // namespace alloclab::device
