// What the simulated device sees of order: every use of memory that no event, stream or wait puts behind the earlier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device {
namespace {

using ::testing::HasSubstr;
constexpr auto main_stream = sim_device::default_stream();

/// A device with two non-blocking streams, a block, and the reports so far.
class sim_order : public ::testing::Test {
public:
    sim_order() {
        device.report_to(
            [](std::string_view line, void* to) noexcept { static_cast<sim_order*>(to)->said.emplace_back(line); },
            this);
    }

    sim_device device{1 << 20};
    sim_device::stream a = device.create_stream(stream_kind::non_blocking, "decode 1");
    sim_device::stream b = device.create_stream(stream_kind::non_blocking, "copies");
    void* block = device.allocate(4096);
    std::vector<std::string> said;
    std::vector<std::byte> here = std::vector<std::byte>(4096), there = std::vector<std::byte>(4096);

    [[nodiscard]] std::size_t races() const { return device.usage().races; }
};

TEST_F(sim_order, a_missing_wait_is_one_race_that_names_both_works_their_streams_and_the_event) {
    const event ready = device.create_event("logits ready");
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a, "logits"));
    ASSERT_TRUE(device.record(ready, a));
    ASSERT_TRUE(device.copy_to_host(here.data(), block, 4096, b, "result"));
    ASSERT_EQ(races(), 1U);
    ASSERT_EQ(said.size(), 1U);
    for (const char* part :
         {"race: copy_to_host \"result\" on stream \"copies\" reads", "+0..4096",
          "fill \"logits\" on stream \"decode 1\" wrote", "event \"logits ready\"", "not waited for"})
        EXPECT_THAT(said[0], HasSubstr(part));
    EXPECT_EQ(device.last_error(), said[0]);
    EXPECT_EQ(device.usage().errors, 0U) << "a race is no misuse";
    EXPECT_EQ(here[0], std::byte{1}) << "the work is done all the same";
}

TEST_F(sim_order, a_wait_for_an_event_orders) {
    const event ready = device.create_event();
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a));
    ASSERT_TRUE(device.record(ready, a));
    ASSERT_TRUE(device.wait(b, ready));
    ASSERT_TRUE(device.copy_to_host(here.data(), block, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_order, a_wait_keeps_to_the_record_it_was_made_for) {
    const event e = device.create_event();
    ASSERT_TRUE(device.record(e, a));
    ASSERT_TRUE(device.wait(b, e));
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a));
    ASSERT_TRUE(device.record(e, a));
    ASSERT_TRUE(device.fill(block, std::byte{2}, 4096, b));
    EXPECT_EQ(races(), 1U) << "the second record came too late for b";
}

TEST_F(sim_order, reads_do_not_race_with_each_other_but_with_the_write_behind_them) {
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, main_stream));
    ASSERT_TRUE(device.synchronize());
    ASSERT_TRUE(device.copy_to_host(here.data(), block, 4096, a));
    ASSERT_TRUE(device.copy_to_host(there.data(), block, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, b));
    EXPECT_EQ(races(), 1U) << "with the read of a";
}

TEST_F(sim_order, what_lies_beside_is_not_touched) {
    auto* bytes = static_cast<std::byte*>(block);
    ASSERT_TRUE(device.fill(bytes, std::byte{1}, 2048, a));
    ASSERT_TRUE(device.fill(bytes + 2048, std::byte{1}, 2048, b));
    EXPECT_EQ(races(), 0U);
    ASSERT_TRUE(device.fill(bytes + 2047, std::byte{1}, 1, b));
    EXPECT_EQ(races(), 1U);
}

tensor::tensor rows_of(void* data, std::int64_t rows) {
    tensor::tensor t{};
    t.op = tensor::op::silu;
    t.type = tensor::type::f32;
    t.ne = {16, rows, 1, 1};
    t.nb = {4, 128, 128 * static_cast<std::size_t>(rows), 128 * static_cast<std::size_t>(rows)};
    t.data = data;
    return t;
}

TEST_F(sim_order, rows_that_lie_apart_leave_what_is_between_them_to_others_but_where_they_are_many) {
    for (const std::int64_t rows : {8, 100}) {
        auto* base = static_cast<std::byte*>(device.allocate(128 * 100));
        const auto other = device.create_stream();
        for (const auto s : {a, other}) {
            tensor::tensor source = rows_of(base + (s == a ? 0 : 64), rows);
            tensor::tensor into = source;
            into.sources = {&source, nullptr, nullptr};
            ASSERT_TRUE(device.launch(into, s, "interleaved"));
        }
        EXPECT_EQ(races() != 0, rows > 64) << rows << " rows: " << device.last_error();
    }
}

TEST_F(sim_order, the_host_orders_by_waiting_and_by_a_query_that_succeeds) {
    const event e = device.create_event();
    for (const int how : {0, 1, 2, 3}) {
        ASSERT_TRUE(device.copy_to_device(block, here.data(), 4096, a));
        ASSERT_TRUE(device.record(e, a));
        if (how == 0) ASSERT_TRUE(device.synchronize(a));
        else if (how == 1) ASSERT_TRUE(device.synchronize(e));
        else if (how == 2) ASSERT_TRUE(device.synchronize());
        else
            while (!device.done(e)) {
            }
        ASSERT_TRUE(device.copy_to_device(block, there.data(), 4096, b));
        ASSERT_TRUE(device.synchronize());
        EXPECT_EQ(races(), 0U) << how << ": " << device.last_error();
    }
    ASSERT_TRUE(device.copy_to_device(block, here.data(), 4096, a));
    ASSERT_TRUE(device.work(a, 1'000'000));
    ASSERT_TRUE(device.record(e, a));
    ASSERT_FALSE(device.done(e));
    ASSERT_TRUE(device.copy_to_device(block, there.data(), 4096, b));
    EXPECT_EQ(races(), 1U) << "a query that failed orders nothing";
}

TEST_F(sim_order, time_that_merely_passes_orders_nothing) {
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a));
    device.host().spend(1'000'000'000);
    ASSERT_TRUE(device.fill(block, std::byte{2}, 4096, b));
    EXPECT_EQ(races(), 1U);
}

TEST_F(sim_order, memory_of_the_host_that_a_copy_uses_is_watched_too) {
    ASSERT_TRUE(device.copy_to_host(here.data(), block, 4096, a, "result"));
    EXPECT_FALSE(device.host_touches(here.data(), 16, access::read, "sampling"));
    ASSERT_EQ(said.size(), 1U);
    EXPECT_THAT(said[0], HasSubstr("host \"sampling\""));
    EXPECT_THAT(said[0], HasSubstr("copy_to_host \"result\" on stream \"decode 1\" wrote"));
    ASSERT_TRUE(device.synchronize(a));
    EXPECT_TRUE(device.host_touches(here.data(), 16, access::write, "sampling"));
    ASSERT_TRUE(device.copy_to_device(block, here.data(), 4096, a));
    EXPECT_FALSE(device.host_touches(here.data(), 16, access::write, "next input"));
    EXPECT_TRUE(device.host_touches(here.data(), 16, access::read)) << "the host is behind itself";
    device.forget_host(here.data(), 4096);
    EXPECT_TRUE(device.host_touches(here.data() + 16, 16, access::write));
}

TEST_F(sim_order, what_a_work_also_touches_is_watched_as_its_operands_are) {
    ASSERT_TRUE(device.work(a, 1000, "matmul"));
    EXPECT_TRUE(device.also_touches(a, here.data(), 64, access::read, "extra of matmul"));
    ASSERT_TRUE(device.work(b, 1000));
    EXPECT_FALSE(device.also_touches(b, here.data(), 64, access::write, "extra made anew"));
    EXPECT_THAT(said.back(), HasSubstr("extra of matmul"));
}

// --- the legacy default stream

TEST_F(sim_order, the_default_stream_is_ordered_with_blocking_streams_and_not_with_others) {
    const auto blocking = device.create_stream(stream_kind::blocking);
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, blocking));
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, main_stream));
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, blocking));
    EXPECT_EQ(races(), 0U) << device.last_error();
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a));
    EXPECT_EQ(races(), 1U);
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, main_stream));
    EXPECT_EQ(races(), 2U);
}

TEST_F(sim_order, two_blocking_streams_are_ordered_by_default_work_between_them_alone) {
    const auto one = device.create_stream(stream_kind::blocking), two = device.create_stream(stream_kind::blocking);
    void* other = device.allocate(64);
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, one));
    ASSERT_TRUE(device.fill(other, std::byte{1}, 64, main_stream));
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, two));
    EXPECT_EQ(races(), 0U) << device.last_error();
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, one));
    EXPECT_EQ(races(), 1U) << "nothing was given to the default stream since";
}

TEST_F(sim_order, blocking_streams_wait_for_the_default_stream_in_time_too) {
    const auto blocking = device.create_stream(stream_kind::blocking);
    ASSERT_TRUE(device.work(main_stream, 1'000'000));
    ASSERT_TRUE(device.work(a, 10));
    ASSERT_TRUE(device.synchronize(a));
    EXPECT_LT(device.now(), 1'000'000);
    ASSERT_TRUE(device.work(blocking, 10));
    ASSERT_TRUE(device.synchronize(blocking));
    EXPECT_GT(device.now(), 1'000'000);
}

// --- destroyed streams, freed memory

TEST_F(sim_order, a_destroyed_streams_work_still_counts) {
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a));
    ASSERT_TRUE(device.destroy(a));
    EXPECT_FALSE(device.fill(block, std::byte{1}, 4096, a)) << "the handle is refused";
    EXPECT_EQ(device.usage().errors, 1U);
    ASSERT_TRUE(device.fill(block, std::byte{2}, 4096, b));
    EXPECT_EQ(races(), 1U);
    const auto later = device.create_stream();
    EXPECT_NE(later, a) << "a number is never given twice";
}

TEST_F(sim_order, memory_that_was_freed_at_once_begins_anew) {
    ASSERT_TRUE(device.fill(block, std::byte{1}, 4096, a));
    device.deallocate(block);
    void* again = device.allocate(4096);
    ASSERT_EQ(again, block) << "best fit gives the same place";
    ASSERT_TRUE(device.fill(again, std::byte{1}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

// --- many operations

// Four streams write and read 16 blocks that they hand to each other; each takes a block over by the event that its
// last user recorded.
TEST_F(sim_order, a_hundred_thousand_operations_in_order_are_no_race_and_one_left_out_is_one) {
    std::array<sim_device::stream, 4> streams{a, b, device.create_stream(), device.create_stream()};
    struct owned {
        std::byte* data;
        event last;
    };
    std::vector<owned> blocks;
    for (int i = 0; i < 16; ++i)
        blocks.push_back({static_cast<std::byte*>(device.allocate(8192)), device.create_event()});
    std::mt19937 random(7);
    std::size_t operations = 0;
    const auto use = [&](bool wait) {
        owned& of = blocks[random() % blocks.size()];
        const auto s = streams[random() % streams.size()];
        if (wait) {
            EXPECT_TRUE(device.wait(s, of.last));
        }
        EXPECT_TRUE(random() % 2 == 0 ? device.fill(of.data, std::byte{3}, 8192, s)
                                      : device.copy_to_host(here.data(), of.data + 4096, 16, s));
        device.forget_host(here.data(), here.size());
        EXPECT_TRUE(device.record(of.last, s));
        operations += 3;
    };
    while (operations < 100'000) use(true);
    EXPECT_EQ(races(), 0U) << device.last_error();
    for (int i = 0; i < 20; ++i) use(false);
    EXPECT_GT(races(), 0U);
}

}  // namespace
}  // namespace alloclab::device
