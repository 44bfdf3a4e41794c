// Streams of the simulated device that end, and what reports of a stream's work say and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "heap_limit.hpp"

namespace alloclab::device {
namespace {

using ::testing::HasSubstr;
constexpr auto main_stream = sim_device::default_stream();

class sim_streams : public ::testing::Test {
public:
    sim_device device{1 << 20};
    sim_device::stream a = device.create_stream(stream_kind::non_blocking, "a");
    sim_device::stream b = device.create_stream(stream_kind::non_blocking, "b");
    std::vector<std::byte> here = std::vector<std::byte>(4096);

    [[nodiscard]] std::size_t races() const { return device.usage().races; }
    /// Rows of 8 floats, one behind the other, in a block of its own.
    [[nodiscard]] tensor::tensor matrix(tensor::op o, std::int64_t rows) {
        tensor::tensor t{};
        t.op = o;
        t.type = tensor::type::f32;
        t.ne = {8, rows, 1, 1};
        t.nb = {4, 32, 32 * static_cast<std::size_t>(rows), 32 * static_cast<std::size_t>(rows)};
        t.data = device.allocate(4096);
        return t;
    }
};

// --- destroyed streams

TEST_F(sim_streams, waiting_for_the_device_orders_destroyed_ones_too_though_their_time_is_over) {
    void* p = device.allocate(4096);
    ASSERT_TRUE(device.copy_to_host(here.data(), p, 4096, a));
    ASSERT_TRUE(device.destroy(a));
    device.host().spend(1'000'000'000);
    ASSERT_TRUE(device.synchronize());
    EXPECT_TRUE(device.host_touches(here.data(), 4096, access::read)) << device.last_error();
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_streams, the_default_stream_starts_behind_a_destroyed_blocking_one_and_not_behind_its_successor) {
    void* p = device.allocate(4096);
    const auto old = device.create_stream(stream_kind::blocking);
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, old));
    ASSERT_TRUE(device.destroy(old));
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, main_stream));
    EXPECT_EQ(races(), 0U) << device.last_error();
    const auto other = device.create_stream(stream_kind::blocking);
    ASSERT_TRUE(device.work(other, 10));
    ASSERT_TRUE(device.synchronize(other));
    ASSERT_TRUE(device.destroy(other));
    ASSERT_TRUE(device.synchronize());
    const auto successor = device.create_stream(stream_kind::non_blocking);
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, successor));
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, main_stream));
    EXPECT_EQ(races(), 1U) << "it is a non-blocking one";
}

TEST_F(sim_streams, a_stream_that_takes_the_place_of_one_the_host_has_waited_for_is_ordered_by_its_own_kind) {
    void* p = device.allocate(4096);
    const auto old = device.create_stream(stream_kind::blocking);
    ASSERT_TRUE(device.work(old, 10));
    ASSERT_TRUE(device.synchronize(old));
    ASSERT_TRUE(device.destroy(old));
    const auto fresh = device.create_stream(stream_kind::non_blocking);
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, fresh));
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, main_stream));
    EXPECT_EQ(races(), 1U);
}

// --- reports

TEST_F(sim_streams, one_missing_wait_is_one_race_however_often_a_launch_touches_what_it_is_missing_for) {
    tensor::tensor source = matrix(tensor::op::none, 16), twice = matrix(tensor::op::add, 16);
    twice.sources = {&source, &source, nullptr};
    ASSERT_TRUE(device.fill(source.data, std::byte{0}, 4096, a, "source"));
    ASSERT_TRUE(device.launch(twice, b, "twice"));
    EXPECT_EQ(races(), 1U) << device.last_error();

    source = matrix(tensor::op::none, 16);
    tensor::tensor in_place = source;
    in_place.op = tensor::op::silu;
    in_place.sources = {&source, nullptr, nullptr};
    ASSERT_TRUE(device.fill(source.data, std::byte{0}, 4096, a, "source"));
    ASSERT_TRUE(device.launch(in_place, b, "in place"));
    EXPECT_EQ(races(), 2U) << device.last_error();

    source = matrix(tensor::op::none, 16);
    source.nb = {4, 64, 1024, 1024};
    tensor::tensor rows = matrix(tensor::op::silu, 16);
    rows.sources = {&source, nullptr, nullptr};
    ASSERT_TRUE(device.fill(source.data, std::byte{0}, 4096, a, "source"));
    ASSERT_TRUE(device.launch(rows, b, "of 16 rows"));
    EXPECT_EQ(races(), 3U) << device.last_error();
    ASSERT_TRUE(device.launch(rows, b, "of 16 rows"));
    EXPECT_EQ(races(), 4U) << "the next launch misses it too";
}

TEST_F(sim_streams, a_launch_without_a_name_is_named_by_its_operation_and_address) {
    tensor::tensor source = matrix(tensor::op::none, 4), t = matrix(tensor::op::silu, 4);
    t.sources = {&source, nullptr, nullptr};
    ASSERT_TRUE(device.fill(source.data, std::byte{0}, 128, a));
    ASSERT_TRUE(device.launch(t, b));
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "silu \"%p\" on stream \"b\"", t.data);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr(name.data()));
}

TEST_F(sim_streams, work_with_long_names_needs_no_heap_once_it_was_done_before) {
    const event e = device.create_event("an event with a rather long name");
    tensor::tensor source = matrix(tensor::op::none, 4), t = matrix(tensor::op::silu, 4);
    t.sources = {&source, nullptr, nullptr};
    const auto round = [&] {
        return device.wait(a, e) &&
               device.copy_to_device(source.data, here.data(), 64, a, "a copy with a rather long name") &&
               device.launch(t, a, "blk.17.ffn_up.weight (copied)") &&
               device.work(a, 5, "some work with a rather long name") &&
               device.also_touches(a, here.data() + 128, 64, access::read, "extra of blk.17.ffn_up.weight") &&
               device.fill(source.data, std::byte{1}, 64, a, "a fill with a rather long name") &&
               device.copy_to_host(here.data() + 64, t.data, 64, a, "another copy with a long name") &&
               device.record(e, a) && device.wait(b, e) && device.record(e, b);
    };
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(round());
    heap_left = 0;
    bool all = true;
    for (int i = 0; i < 100; ++i) all = round() && all;
    heap_left = -1;
    EXPECT_TRUE(all);
    EXPECT_EQ(races(), 0U) << device.last_error();
}

}  // namespace
}  // namespace alloclab::device
