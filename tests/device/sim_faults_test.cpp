// Failures that the simulated device is told to have, captures, and several devices of one host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device {
namespace {

using ::testing::HasSubstr;
constexpr auto main_stream = sim_device::default_stream();

// --- failures to come

TEST(sim_faults, the_first_and_every_so_many_th_call_after_it_fail) {
    sim_device device(1 << 20);
    device.inject({.at = call::allocate, .first = 2, .every = 3});
    std::vector<bool> made;
    for (int i = 0; i < 9; ++i) made.push_back(device.allocate(16) != nullptr);
    EXPECT_EQ(made, (std::vector<bool>{true, false, true, true, false, true, true, false, true}));
    EXPECT_EQ(device.usage().faults, 3U);
    EXPECT_EQ(device.usage().errors, 0U) << "a fault is no misuse";
    EXPECT_EQ(device.usage().live, 6U);
    device.clear_faults();
    EXPECT_NE(device.allocate(16), nullptr);
}

TEST(sim_faults, only_large_calls_count_where_it_says_so) {
    sim_device device(1 << 20);
    device.inject({.at = call::allocate, .first = 1, .every = 1, .least_bytes = 1000});
    EXPECT_NE(device.allocate(999), nullptr);
    EXPECT_EQ(device.allocate(1000), nullptr);
    EXPECT_EQ(device.allocate(5000), nullptr);
}

TEST(sim_faults, a_call_that_fails_changes_nothing_and_tells_its_code) {
    sim_device device(1 << 20);
    const auto s = device.create_stream();
    const event e = device.create_event();
    void* p = device.allocate(64);
    char byte = 1;
    for (const call c : {call::allocate, call::allocate_async, call::create_event, call::record, call::wait, call::done,
                         call::synchronize, call::copy_to_device, call::copy_to_host, call::copy_on_device, call::fill,
                         call::launch, call::allocate_host, call::destroy_stream, call::capture, call::create_stream})
        device.inject({.at = c, .code = 700});
    const auto before = device.now();
    EXPECT_EQ(device.allocate(1), nullptr);
    EXPECT_EQ(device.last_fault(), 700);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("allocate: fails as it was told to, at call 1"));
    EXPECT_EQ(device.allocate(1, s), nullptr);
    EXPECT_EQ(device.create_event(), event::none);
    EXPECT_FALSE(device.record(e, s));
    EXPECT_FALSE(device.wait(s, e));
    EXPECT_FALSE(device.done(e));
    EXPECT_FALSE(device.synchronize(s));
    EXPECT_FALSE(device.copy_to_device(p, &byte, 1, s));
    EXPECT_FALSE(device.copy_to_host(&byte, p, 1, s));
    EXPECT_FALSE(device.copy_on_device(p, static_cast<char*>(p) + 8, 8, s));
    EXPECT_FALSE(device.fill(p, std::byte{1}, 1, s));
    EXPECT_FALSE(device.work(s, 1000));
    EXPECT_EQ(device.allocate_host(1), nullptr);
    EXPECT_FALSE(device.destroy(s));
    EXPECT_FALSE(device.begin_capture(s));
    EXPECT_THROW((void)device.create_stream(), std::bad_alloc);
    EXPECT_EQ(device.now(), before);
    EXPECT_EQ(device.usage().live, 1U);
    EXPECT_EQ(device.usage().live_streams, 1U);
    EXPECT_EQ(device.usage().live_events, 1U);
    EXPECT_EQ(device.usage().faults, 16U);
    EXPECT_EQ(byte, 1);
    EXPECT_TRUE(device.record(e, s)) << "each failed once";
    EXPECT_EQ(device.last_fault(), 0);
    EXPECT_THROW(device.inject({.at = call::fill, .first = 0}), std::invalid_argument);
}

TEST(sim_faults, several_at_one_call_all_count_it) {
    sim_device device(1 << 20);
    void* p = device.allocate(64);
    device.inject({.at = call::fill, .first = 1, .code = 1});
    device.inject({.at = call::fill, .first = 2, .code = 2});
    EXPECT_FALSE(device.fill(p, std::byte{1}, 64, main_stream));
    EXPECT_EQ(device.last_fault(), 1);
    EXPECT_FALSE(device.fill(p, std::byte{1}, 64, main_stream));
    EXPECT_EQ(device.last_fault(), 2);
    EXPECT_TRUE(device.fill(p, std::byte{1}, 64, main_stream));
    EXPECT_EQ(device.usage().faults, 2U);
}

TEST(sim_faults, a_release_fails_by_the_size_of_its_block) {
    sim_device device(1 << 20);
    void* small = device.allocate(4095);
    void* large = device.allocate(4096);
    for (const call c : {call::deallocate, call::deallocate_async}) device.inject({.at = c, .least_bytes = 4096});
    device.deallocate(small);
    device.deallocate(large);
    device.deallocate(large, main_stream);
    EXPECT_EQ(device.usage().live_bytes, 4096U);
    EXPECT_EQ(device.usage().faults, 2U);
    device.deallocate(large);
    EXPECT_EQ(device.usage().live, 0U);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

TEST(sim_faults, a_driver_may_give_less_than_it_reports) {
    sim_device device(2 << 20);
    device.refuse_beyond(1 << 20);
    void* p = device.allocate(1 << 19);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(device.allocate(1 << 20), nullptr);
    EXPECT_EQ(device.available_bytes(), 3U << 19) << "and reports on as if it could be had";
    EXPECT_EQ(
        device.last_error(),
        "allocate: asked for 1048576 bytes; 1572864 are reported free, 1572864 in one piece, but the driver gives "
        "no more");
    EXPECT_EQ(device.usage().faults, 1U);
    EXPECT_NE(device.allocate(1 << 19), nullptr);
}

TEST(sim_faults, once_the_driver_unloads_every_call_fails_quietly) {
    sim_device device(1 << 20);
    std::size_t said = 0;
    device.report_to([](std::string_view, void* to) noexcept { ++*static_cast<std::size_t*>(to); }, &said);
    const auto s = device.create_stream();
    const event e = device.create_event();
    void* p = device.allocate(64);
    device.unload();
    device.deallocate(p);
    device.deallocate(p);
    device.destroy(e);
    EXPECT_FALSE(device.destroy(s));
    EXPECT_FALSE(device.synchronize());
    EXPECT_EQ(device.allocate(1), nullptr);
    EXPECT_FALSE(device.fill(p, std::byte{1}, 1, s));
    EXPECT_EQ(device.shadow_of(call::launch, &said, 1), nullptr);
    EXPECT_EQ(device.usage().errors, 0U);
    EXPECT_EQ(said, 0U);
    EXPECT_TRUE(device.unloaded());
}

// --- captures

TEST(sim_capture, does_what_was_captured_when_it_is_launched_and_as_often) {
    sim_device device(1 << 20);
    const auto s = device.create_stream();
    void* p = device.allocate(64);
    std::vector<unsigned char> in(64, 1), out(64, 0);
    ASSERT_TRUE(device.begin_capture(s));
    EXPECT_TRUE(device.captures());
    ASSERT_TRUE(device.copy_to_device(p, in.data(), 64, s));
    ASSERT_TRUE(device.copy_to_host(out.data(), p, 64, s));
    const captured graph = device.end_capture(s);
    ASSERT_NE(graph, captured::none);
    EXPECT_EQ(out[5], 0) << "nothing was done yet";
    const auto before = device.now();
    ASSERT_TRUE(device.launch(graph, s));
    EXPECT_EQ(device.now() - before, device.cost().launch) << "one launch to the host";
    ASSERT_TRUE(device.synchronize(s));
    EXPECT_EQ(out[5], 1);
    in.assign(64, 2);
    ASSERT_TRUE(device.launch(graph, s));
    EXPECT_EQ(out[5], 2);
    device.destroy(graph);
    EXPECT_FALSE(device.launch(graph, s));
    EXPECT_EQ(device.usage().errors, 1U);
}

TEST(sim_capture, refuses_what_would_spoil_it_and_stays_usable) {
    sim_device device(1 << 20);
    const auto s = device.create_stream();
    const event e = device.create_event();
    void* p = device.allocate(64);
    EXPECT_FALSE(device.begin_capture(main_stream));
    ASSERT_TRUE(device.begin_capture(s));
    EXPECT_FALSE(device.begin_capture(s)) << "it captures already";
    EXPECT_EQ(device.allocate(64), nullptr);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("reserve before the capture begins"));
    EXPECT_EQ(device.allocate(64, s), nullptr);
    EXPECT_FALSE(device.done(e));
    EXPECT_FALSE(device.synchronize(s));
    EXPECT_FALSE(device.synchronize());
    EXPECT_FALSE(device.destroy(s));
    device.deallocate(p);
    EXPECT_EQ(device.usage().live, 1U) << "p stays";
    ASSERT_TRUE(device.fill(p, std::byte{3}, 64, s));
    const captured graph = device.end_capture(s);
    ASSERT_NE(graph, captured::none);
    ASSERT_TRUE(device.launch(graph, s));
    unsigned char seen = 0;
    ASSERT_TRUE(device.copy_to_host(&seen, p, 1, s));
    EXPECT_EQ(seen, 3);
    EXPECT_EQ(device.end_capture(s), captured::none);
}

TEST(sim_capture, of_a_blocking_stream_would_be_ordered_by_work_of_the_default_one) {
    sim_device device(1 << 20);
    void* p = device.allocate(64);
    for (const stream_kind kind : {stream_kind::blocking, stream_kind::non_blocking}) {
        const auto s = device.create_stream(kind);
        ASSERT_TRUE(device.begin_capture(s));
        EXPECT_EQ(device.fill(p, std::byte{1}, 64, main_stream), kind == stream_kind::non_blocking);
        EXPECT_NE(device.end_capture(s), captured::none);
    }
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("order the capture"));
}

TEST(sim_capture, a_replay_is_held_to_order_as_any_work_is) {
    sim_device device(1 << 20);
    const auto s = device.create_stream(), other = device.create_stream();
    const event e = device.create_event();
    void* p = device.allocate(64);
    ASSERT_TRUE(device.begin_capture(s));
    ASSERT_TRUE(device.fill(p, std::byte{3}, 64, s));
    ASSERT_TRUE(device.record(e, s));
    const captured graph = device.end_capture(s);
    ASSERT_TRUE(device.launch(graph, s));
    ASSERT_TRUE(device.wait(other, e));
    ASSERT_TRUE(device.fill(p, std::byte{4}, 64, other));
    EXPECT_EQ(device.usage().races, 0U) << device.last_error();
    ASSERT_TRUE(device.launch(graph, s));
    EXPECT_EQ(device.usage().races, 1U) << "nothing holds it back behind `other`";
}

// --- several devices

TEST(sim_devices, share_a_clock_and_wait_for_each_others_events) {
    sim_host host;
    sim_device one(host, 1 << 20), two(host, 1 << 20);
    EXPECT_EQ(&one.host(), &host);
    void* p = one.allocate(64);
    void* q = two.allocate(64);
    EXPECT_EQ(one.now(), two.now());
    EXPECT_TRUE(one.owns(p) && two.owns(q) && !one.owns(q) && !two.owns(p));
    const auto s = one.create_stream(), t = two.create_stream();
    const event e = one.create_event();
    std::vector<std::byte> between(64);
    ASSERT_TRUE(one.work(s, 1'000'000));
    ASSERT_TRUE(one.copy_to_host(between.data(), p, 64, s));
    ASSERT_TRUE(one.record(e, s));
    ASSERT_TRUE(two.wait(t, e));
    ASSERT_TRUE(two.copy_to_device(q, between.data(), 64, t));
    EXPECT_EQ(one.usage().races + two.usage().races, 0U) << two.last_error();
    ASSERT_TRUE(two.synchronize(t));
    EXPECT_GT(host.now(), 1'000'000);
    ASSERT_TRUE(one.copy_to_host(between.data(), p, 64, s));
    EXPECT_EQ(one.usage().races, 0U) << "the host has waited for t";
    ASSERT_TRUE(two.copy_to_device(q, between.data(), 64, t));
    EXPECT_EQ(two.usage().races, 1U);
    EXPECT_THAT(std::string(two.last_error()), HasSubstr("stream 1 of device 1"));
}

TEST(sim_devices, keep_their_events_memory_and_limits_to_themselves) {
    sim_host host;
    sim_device one(host, 1 << 20), two(host, 1 << 20);
    const event e = one.create_event();
    EXPECT_FALSE(two.record(e, main_stream));
    two.destroy(e);
    EXPECT_EQ(two.usage().errors, 2U);
    EXPECT_THAT(std::string(two.last_error()), HasSubstr("another device's"));
    void* p = one.allocate(1 << 20);
    EXPECT_NE(two.allocate(1 << 20), nullptr);
    two.deallocate(p);
    EXPECT_EQ(two.usage().errors, 3U);
    EXPECT_TRUE(one.record(e, main_stream)) << "it is still live";
}

TEST(sim_devices, do_not_take_each_others_memory_for_the_hosts) {
    sim_host host;
    sim_device one(host, 1 << 20), two(host, 1 << 20);
    void* p = one.allocate(64);
    void* q = two.allocate(64);
    EXPECT_FALSE(one.copy_to_device(p, q, 64, main_stream));
    EXPECT_FALSE(two.copy_to_host(p, q, 64, main_stream));
    EXPECT_EQ(one.usage().errors + two.usage().errors, 2U);
    EXPECT_THAT(std::string(two.last_error()), HasSubstr("is on a device, not on the host"));
}

TEST(sim_devices, that_come_and_go_leave_no_events_behind) {
    sim_host host;
    std::uint64_t last = 0;
    for (int i = 0; i < 100; ++i) {
        sim_device one(host, 1 << 12);
        for (int k = 0; k < 10; ++k) last = static_cast<std::uint64_t>(one.create_event());
    }
    EXPECT_LE(last & 0xFFFF'FFFF, 10U) << "the lower half of a handle is a place in a table";
}

TEST(sim_devices, one_may_die_before_another_that_waits_for_its_event) {
    sim_host host;
    sim_device two(host, 1 << 20);
    event e{};
    {
        sim_device one(host, 1 << 20);
        e = one.create_event();
        ASSERT_TRUE(one.record(e, main_stream));
    }
    EXPECT_FALSE(two.wait(main_stream, e));
    EXPECT_EQ(two.usage().errors, 1U);
}

}  // namespace
}  // namespace alloclab::device
