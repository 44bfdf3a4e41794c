#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device {
namespace {

constexpr auto main_stream = sim_device::default_stream();

/// Round figures: 1 byte a nanosecond each way, 1 operation a nanosecond.
constexpr cost_profile round_costs() {
    cost_profile cost;
    cost.allocate = 1000, cost.allocate_per_mib = 0, cost.deallocate = 2000;
    cost.create_event = 10, cost.destroy_event = 20, cost.record = 1, cost.wait = 2, cost.query = 3;
    cost.synchronize = 4, cost.copy = 100, cost.launch = 50;
    cost.copy_bytes = 1e9, cost.memory_bytes = 1e9, cost.flops = 1e9;
    return cost;
}

TEST(sim_device_time, a_stream_runs_its_work_one_after_the_other) {
    sim_device device(1 << 20, round_costs());
    void* p = device.allocate(4096);
    const std::vector<char> host(1000);
    EXPECT_EQ(device.now(), 1000);
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 1000, main_stream));
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 1000, main_stream));
    EXPECT_EQ(device.now(), 1200) << "the host only issues";
    ASSERT_TRUE(device.synchronize(main_stream));
    EXPECT_EQ(device.now(), 1100 + 1000 + 1000) << "the first copy started at 1100";
}

TEST(sim_device_time, streams_overlap_and_a_wait_puts_them_in_order) {
    nanoseconds end[2];
    for (const bool ordered : {false, true}) {
        sim_device device(1 << 20, round_costs());
        const auto other = device.create_stream();
        const event ready = device.create_event();
        void* p = device.allocate(4096);
        const std::vector<char> host(4000);
        ASSERT_TRUE(device.copy_to_device(p, host.data(), 4000, main_stream));
        if (ordered) {
            ASSERT_TRUE(device.record(ready, main_stream));
            ASSERT_TRUE(device.wait(other, ready));
        }
        ASSERT_TRUE(device.copy_to_device(p, host.data(), 4000, other));
        device.synchronize();
        end[ordered] = device.now();
    }
    EXPECT_EQ(end[0], 10 + 1000 + 100 + 100 + 4000);
    EXPECT_EQ(end[1], 10 + 1000 + 100 + 4000 + 4000);
}

TEST(sim_device_time, an_event_is_complete_when_the_work_before_it_is) {
    sim_device device(1 << 20, round_costs());
    const event e = device.create_event();
    EXPECT_TRUE(device.done(e)) << "never recorded";
    EXPECT_TRUE(device.synchronize(e));
    void* p = device.allocate(4096);
    const std::vector<char> host(300);
    const nanoseconds issued = device.now() + 100;
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 300, main_stream));
    ASSERT_TRUE(device.record(e, main_stream));
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 300, main_stream));
    EXPECT_FALSE(device.done(e));
    while (!device.done(e)) {
    }  // asking takes time, so this ends
    EXPECT_GE(device.now(), issued + 300);
    EXPECT_LT(device.now(), issued + 300 + 2 * device.cost().query) << "not the work after it";

    ASSERT_TRUE(device.record(e, main_stream));
    ASSERT_TRUE(device.synchronize(e));
    EXPECT_EQ(device.now(), issued + 600);
    EXPECT_TRUE(device.done(e));
}

TEST(sim_device_time, a_new_event_knows_nothing_of_the_one_whose_place_it_takes) {
    sim_device device(1 << 20, round_costs());
    void* p = device.allocate(8192);
    const std::vector<char> host(8000);
    const event old = device.create_event();
    ASSERT_TRUE(device.copy_to_device(p, host.data(), host.size(), main_stream));
    ASSERT_TRUE(device.record(old, main_stream));
    device.destroy(old);
    EXPECT_TRUE(device.done(device.create_event()));
}

TEST(sim_device_time, a_wait_keeps_to_the_record_it_was_made_for) {
    sim_device device(1 << 20, round_costs());
    const auto slow = device.create_stream(), waiting = device.create_stream(), early = device.create_stream();
    const event e = device.create_event();
    void* p = device.allocate(8192);
    const std::vector<char> host(8000);
    ASSERT_TRUE(device.wait(early, e)) << "never recorded: nothing to wait for";
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 1000, slow));
    const nanoseconds first = device.now() + 1000;
    ASSERT_TRUE(device.record(e, slow));
    ASSERT_TRUE(device.wait(waiting, e));
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 8000, slow));
    ASSERT_TRUE(device.record(e, slow));
    ASSERT_TRUE(device.synchronize(early));
    EXPECT_LT(device.now(), first);
    ASSERT_TRUE(device.synchronize(waiting));
    EXPECT_EQ(device.now(), first);
    ASSERT_TRUE(device.synchronize(e));
    EXPECT_EQ(device.now(), first + 8000);
}

TEST(sim_device_time, releasing_memory_waits_for_every_stream) {
    sim_device device(1 << 20, round_costs());
    const auto other = device.create_stream();
    void* p = device.allocate(8192);
    void* unrelated = device.allocate(1);
    const std::vector<char> host(8000);
    const nanoseconds start = device.now() + 100;
    ASSERT_TRUE(device.copy_to_device(p, host.data(), 8000, other));
    ASSERT_TRUE(device.destroy(other));
    device.deallocate(unrelated);
    EXPECT_EQ(device.now(), start + 8000) << "work of a destroyed stream counts";
    device.deallocate(p);
    EXPECT_EQ(device.now(), start + 8000 + 2000);
}

TEST(sim_device_time, every_call_costs_what_the_profile_says) {
    constexpr cost_profile cost = round_costs();
    sim_device device(1 << 20, cost);
    nanoseconds before = 0;
    const auto took = [&] { return device.now() - std::exchange(before, device.now()); };
    void* p = device.allocate(1);
    EXPECT_EQ(took(), cost.allocate);
    const event e = device.create_event();
    EXPECT_EQ(took(), cost.create_event);
    ASSERT_TRUE(device.record(e, main_stream));
    EXPECT_EQ(took(), cost.record);
    ASSERT_TRUE(device.wait(main_stream, e));
    EXPECT_EQ(took(), cost.wait);
    ASSERT_TRUE(device.done(e));
    EXPECT_EQ(took(), cost.query);
    ASSERT_TRUE(device.synchronize(e));
    EXPECT_EQ(took(), cost.synchronize);
    device.destroy(e);
    EXPECT_EQ(took(), cost.destroy_event);
    device.deallocate(p);
    EXPECT_EQ(took(), cost.deallocate);
}

TEST(sim_device_time, the_same_calls_take_the_same_time_in_every_run) {
    const auto run = [] {
        sim_device device(1 << 22);
        std::mt19937 random{5};
        std::vector<sim_device::stream> streams{main_stream, device.create_stream(), device.create_stream()};
        std::vector<event> events;
        for (int i = 0; i < 8; ++i) events.push_back(device.create_event());
        std::vector<void*> blocks;
        std::vector<nanoseconds> times;
        const std::vector<char> host(100'000);
        for (int step = 0; step < 3000; ++step) {
            const auto s = streams[random() % streams.size()];
            const event e = events[random() % events.size()];
            switch (random() % 6) {
                case 0:
                    if (void* p = device.allocate(100'000)) blocks.push_back(p);
                    break;
                case 1:
                    if (random() % 8 != 0 || blocks.empty()) break;
                    device.deallocate(blocks.back());
                    blocks.pop_back();
                    break;
                case 2:
                    EXPECT_TRUE(device.record(e, s));
                    break;
                case 3:
                    EXPECT_TRUE(device.wait(s, e));
                    break;
                case 4:
                    times.push_back(device.done(e));
                    break;
                default:
                    if (blocks.empty()) break;
                    EXPECT_TRUE(device.copy_to_device(blocks.back(), host.data(), 1 + random() % 100'000, s));
            }
            times.push_back(device.now());
        }
        return times;
    };
    EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace alloclab::device
