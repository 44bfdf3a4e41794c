// Memory of the simulated device that is freed and taken again in the order of streams.
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

class sim_async_memory : public ::testing::Test {
public:
    static constexpr std::size_t capacity = 1 << 20;
    sim_device device{capacity};
    sim_device::stream a = device.create_stream(stream_kind::non_blocking, "a");
    sim_device::stream b = device.create_stream(stream_kind::non_blocking, "b");

    [[nodiscard]] std::size_t races() const { return device.usage().races; }
    /// A block that `a` has used for long and then freed.
    void* freed_by_a(std::size_t bytes = 4096) {
        void* p = device.allocate(bytes, a);
        EXPECT_TRUE(device.fill(p, std::byte{1}, bytes, a));
        EXPECT_TRUE(device.work(a, 1'000'000));
        device.deallocate(p, a);
        return p;
    }
};

TEST_F(sim_async_memory, its_own_stream_is_served_again_at_once_and_cheaply) {
    void* p = freed_by_a();
    EXPECT_EQ(device.usage().parked_bytes, 4096U);
    EXPECT_EQ(device.usage().live, 0U);
    const auto before = device.now();
    EXPECT_EQ(device.allocate(4096, a), p);
    EXPECT_EQ(device.now() - before, device.cost().allocate_parked);
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, a));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_async_memory, a_stream_behind_the_free_is_served_without_a_wait) {
    void* p = freed_by_a();
    const event behind = device.create_event();
    ASSERT_TRUE(device.record(behind, a));
    ASSERT_TRUE(device.wait(b, behind));
    EXPECT_EQ(device.allocate(4096, b), p);
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_async_memory, another_stream_is_made_to_wait_for_the_free) {
    void* p = freed_by_a();
    EXPECT_EQ(device.allocate(4096, b), p);
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
    ASSERT_TRUE(device.synchronize(b));
    EXPECT_GE(device.now(), 1'000'000) << "b starts when a is through";
}

TEST_F(sim_async_memory, what_the_host_may_know_to_be_through_is_served_without_a_wait) {
    void* p = freed_by_a();
    device.host().spend(2'000'000);
    const auto before = device.now();
    EXPECT_EQ(device.allocate(4096, b), p);
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
    ASSERT_TRUE(device.synchronize(b));
    EXPECT_LT(device.now() - before, 100'000);
}

TEST_F(sim_async_memory, a_use_behind_the_free_is_reported_whoever_makes_it) {
    std::vector<std::byte> host(4096);
    void* p = freed_by_a();
    ASSERT_TRUE(device.copy_to_host(host.data(), p, 64, a, "late"));
    EXPECT_EQ(races(), 1U);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("use after free: copy_to_host \"late\" on stream \"a\""));
    ASSERT_TRUE(device.copy_to_host(host.data() + 64, p, 64, b));
    EXPECT_EQ(races(), 2U);
}

TEST_F(sim_async_memory, a_free_that_another_streams_use_may_overtake_is_a_race) {
    void* p = device.allocate(4096, a);
    const event made = device.create_event();
    ASSERT_TRUE(device.record(made, a));
    ASSERT_TRUE(device.wait(b, made));
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
    device.deallocate(p, a);
    EXPECT_EQ(races(), 1U) << "a does not wait for b";
}

TEST_F(sim_async_memory, a_use_that_may_come_before_the_allocation_is_a_race) {
    void* p = device.allocate(4096, a);
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, b));
    EXPECT_EQ(races(), 1U);
}

TEST_F(sim_async_memory, parked_blocks_go_back_when_the_host_waits_but_for_what_is_to_be_kept) {
    (void)freed_by_a();
    EXPECT_EQ(device.available_bytes(), capacity - 4096);
    ASSERT_TRUE(device.synchronize(b));
    EXPECT_EQ(device.usage().parked_bytes, 4096U) << "the free is not through";
    ASSERT_TRUE(device.synchronize(a));
    EXPECT_EQ(device.usage().parked_bytes, 0U);
    EXPECT_EQ(device.available_bytes(), capacity);
    device.keep_parked(4096);
    (void)freed_by_a();
    ASSERT_TRUE(device.synchronize());
    EXPECT_EQ(device.usage().parked_bytes, 4096U);
}

TEST_F(sim_async_memory, parked_blocks_make_room_for_what_does_not_fit_beside_them) {
    (void)freed_by_a(capacity * 3 / 4);
    void* large = device.allocate(capacity, b);
    ASSERT_NE(large, nullptr) << device.last_error();
    ASSERT_TRUE(device.fill(large, std::byte{2}, capacity, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
    EXPECT_EQ(device.usage().parked_bytes, 0U);
    EXPECT_EQ(device.allocate(1, a), nullptr);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("asked for 1 bytes; 0 are reported free"));
    EXPECT_EQ(device.usage().errors, 0U) << "being full is no misuse";
}

TEST_F(sim_async_memory, what_is_left_of_several_parked_blocks_is_nobodys_before_their_frees_are_through) {
    (void)freed_by_a(capacity / 4);
    (void)freed_by_a(capacity / 2);
    void* large = device.allocate(capacity * 3 / 4 - 4096, b);
    ASSERT_NE(large, nullptr) << device.last_error();
    EXPECT_GT(device.now(), 2'000'000) << "the host waited";
    void* rest = device.allocate(4096);
    ASSERT_NE(rest, nullptr);
    ASSERT_TRUE(device.fill(rest, std::byte{1}, 4096, device.create_stream()));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_async_memory, a_request_that_parked_blocks_cannot_serve_leaves_them_and_waits_for_nothing) {
    void* kept = device.allocate(capacity / 2);
    (void)freed_by_a(capacity / 4);
    EXPECT_EQ(device.allocate(capacity * 3 / 4, b), nullptr);
    EXPECT_EQ(device.usage().parked_bytes, capacity / 4);
    ASSERT_TRUE(device.synchronize(b));
    EXPECT_LT(device.now(), 1'000'000);
    device.deallocate(kept);
}

TEST_F(sim_async_memory, a_block_that_served_less_the_second_time_leaves_nothing_behind) {
    void* p = device.allocate(1000, a);
    device.deallocate(p, a);
    ASSERT_EQ(device.allocate(600, a), p);
    device.deallocate(p);
    ASSERT_EQ(device.allocate(1000), p);
    ASSERT_TRUE(device.fill(p, std::byte{1}, 1000, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_async_memory, a_request_that_is_served_in_the_end_leaves_no_error_text) {
    device.keep_parked(capacity);
    (void)freed_by_a(capacity);
    ASSERT_TRUE(device.synchronize());
    EXPECT_NE(device.allocate(capacity / 2), nullptr);
    EXPECT_EQ(device.last_error(), "");
}

TEST_F(sim_async_memory, what_is_released_because_its_time_is_over_tells_the_host_nothing) {
    std::vector<std::byte> host(64);
    void* q = device.allocate(4096);
    ASSERT_TRUE(device.copy_to_host(host.data(), q, 64, a));
    (void)freed_by_a(capacity / 2);
    device.host().spend(2'000'000);
    ASSERT_NE(device.allocate(capacity * 3 / 4), nullptr) << "in place of the parked block";
    EXPECT_FALSE(device.host_touches(host.data(), 64, access::read)) << "the host has waited for nothing";
}

TEST_F(sim_async_memory, an_allocation_at_once_takes_only_what_is_through) {
    (void)freed_by_a(capacity);
    EXPECT_EQ(device.allocate(4096), nullptr);
    ASSERT_TRUE(device.synchronize(a));
    void* p = device.allocate(4096);
    ASSERT_NE(p, nullptr);
    ASSERT_TRUE(device.fill(p, std::byte{1}, 4096, b));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_async_memory, either_way_of_giving_back_takes_memory_of_either_way_of_taking) {
    void* at_once = device.allocate(4096);
    device.deallocate(at_once, a);
    void* in_order = device.allocate(8192, b);
    device.deallocate(in_order);
    ASSERT_TRUE(device.synchronize());
    EXPECT_EQ(device.usage().reserved_bytes, 0U);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

TEST_F(sim_async_memory, a_second_release_is_refused_either_way) {
    void* p = freed_by_a();
    device.deallocate(p, a);
    EXPECT_EQ(device.usage().errors, 1U);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("is not live; released twice?"));
    device.deallocate(p);
    EXPECT_EQ(device.usage().errors, 2U);
    device.deallocate(&p, a);
    EXPECT_EQ(device.usage().errors, 3U);
    EXPECT_EQ(device.usage().parked_bytes, 4096U);
    device.deallocate(nullptr, a);
    EXPECT_EQ(device.usage().errors, 3U);
}

TEST_F(sim_async_memory, a_destroyed_streams_blocks_serve_others) {
    void* p = freed_by_a();
    ASSERT_TRUE(device.destroy(a));
    EXPECT_EQ(device.allocate(4096, sim_device::default_stream()), p);
    ASSERT_TRUE(device.fill(p, std::byte{2}, 4096, sim_device::default_stream()));
    EXPECT_EQ(races(), 0U) << device.last_error();
}

TEST_F(sim_async_memory, page_locked_memory_is_counted_and_costs_by_size) {
    const auto before = device.now();
    void* p = device.allocate_host(1 << 20);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(device.now() - before, device.cost().allocate_host + device.cost().allocate_host_per_mib);
    EXPECT_EQ(device.usage().live_host_bytes, std::size_t{1} << 20);
    static_cast<char*>(p)[(1 << 20) - 1] = 1;
    device.deallocate_host(p);
    EXPECT_EQ(device.usage().live_host_bytes, 0U);
    device.deallocate_host(p);
    EXPECT_EQ(device.usage().errors, 1U);
}

TEST_F(sim_async_memory, random_traffic_on_four_streams_is_no_race_and_loses_nothing) {
    std::array<sim_device::stream, 4> streams{a, b, device.create_stream(), device.create_stream()};
    struct taken {
        void* p;
        std::size_t bytes;
        sim_device::stream by;
    };
    std::vector<taken> live;
    std::mt19937 random(11);
    device.keep_parked(capacity);
    std::size_t served = 0;
    for (int i = 0; i < 30'000; ++i) {
        const auto s = streams[random() % 4];
        if (live.size() < 12 || random() % 2 == 0) {
            const std::size_t bytes = 1 + random() % 100'000;
            if (void* p = device.allocate(bytes, s); p != nullptr) {
                ASSERT_TRUE(device.fill(p, std::byte{5}, bytes, s));
                live.push_back({p, bytes, s});
                ++served;
            }
        }
        if (!live.empty() && (live.size() > 8 || random() % 2 == 0)) {
            const std::size_t n = random() % live.size();
            device.deallocate(live[n].p, live[n].by);
            live[n] = live.back();
            live.pop_back();
        }
    }
    EXPECT_GT(served, 10'000U);
    EXPECT_EQ(races(), 0U) << device.last_error();
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
    for (const taken& t : live) device.deallocate(t.p, t.by);
    device.keep_parked(0);
    ASSERT_TRUE(device.synchronize());
    EXPECT_EQ(device.available_bytes(), device.capacity());
    EXPECT_EQ(device.usage().largest_free, device.capacity()) << "all of it is one piece again";
}

}  // namespace
}  // namespace alloclab::device
