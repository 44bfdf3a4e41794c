#include "alloclab/device/stream_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "heap_limit.hpp"
#include "mutants.hpp"

namespace alloclab::device {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A device, a pool and streams with names.
template <class Device = sim_device>
struct setup {
    explicit setup(std::size_t capacity, std::size_t streams = 2) : device(capacity), pool(device), said(device) {
        for (std::size_t i = 0; i < streams; ++i)
            s.push_back(device.create_stream(stream_kind::non_blocking, "lane " + std::to_string(i)));
    }
    /// A kernel of 20 us that writes the whole block.
    void use(void* p, std::size_t bytes, stream on, const std::string& called) {
        ASSERT_TRUE(device.work(on, 20'000, "kernel"));
        device.also_touches(on, p, bytes, access::write, called);
    }

    Device device;
    stream_pool<Device> pool;
    test::reports said;
    std::vector<stream> s;
};

// ---- classes, counts, streams

TEST(stream_pool, rounds_by_less_than_an_eighth_beyond_whole_granules) {
    setup<> t(std::size_t{64} << 30);
    for (std::size_t bytes = 1; bytes < std::size_t{8} << 30; bytes += bytes / 7 + 1) {
        const std::size_t before = t.pool.usage().reserved_bytes;
        void* p = t.pool.allocate(bytes, t.s[0]);
        ASSERT_NE(p, nullptr) << bytes;
        const std::size_t got = t.pool.usage().reserved_bytes - before;
        ASSERT_GE(got, bytes);
        const std::size_t granules = (bytes + sim_device::alignment - 1) / sim_device::alignment;
        ASSERT_LT(got, granules * sim_device::alignment * 9 / 8 + 1) << bytes;
        t.pool.deallocate(p, t.s[0]);
        t.pool.release();
    }
    EXPECT_EQ(t.device.usage().live, 0U);
}

TEST(stream_pool, a_block_kept_serves_every_size_of_its_class_and_no_larger_one) {
    setup<> t(mib);
    void* p = t.pool.allocate(17 * 512, t.s[0]);
    t.pool.deallocate(p, t.s[0]);
    EXPECT_EQ(t.pool.allocate(18 * 512, t.s[0]), p) << "17 and 18 granules are of one class";
    t.pool.deallocate(p, t.s[0]);
    void* larger = t.pool.allocate(18 * 512 + 1, t.s[0]);
    EXPECT_NE(larger, nullptr);
    EXPECT_NE(larger, p);
}

TEST(stream_pool, serves_the_same_stream_at_once_and_another_one_after_a_wait) {
    setup<> t(mib);
    void* p = t.pool.allocate(1000, t.s[0]);
    t.use(p, 1000, t.s[0], "first");
    EXPECT_TRUE(t.pool.deallocate(p, t.s[0]));
    EXPECT_EQ(t.pool.allocate(1000, t.s[0]), p);
    EXPECT_EQ(t.device.usage().count(call::wait), 0U);
    t.use(p, 1000, t.s[0], "second");
    EXPECT_TRUE(t.pool.deallocate(p, t.s[0]));
    EXPECT_EQ(t.pool.allocate(1000, t.s[1]), p);
    EXPECT_EQ(t.device.usage().count(call::wait), 1U);
    t.use(p, 1000, t.s[1], "third");
    const pool_usage u = t.pool.usage();
    EXPECT_EQ(u.same_stream, 1U);
    EXPECT_EQ(u.other_stream, 1U);
    EXPECT_EQ(u.source_calls, 1U);
    EXPECT_EQ(u.live, 1U);
    EXPECT_EQ(u.live_bytes, 1000U);
    EXPECT_EQ(u.kept, 0U);
    EXPECT_EQ(t.device.usage().races, 0U) << t.device.last_error();
}

TEST(stream_pool, of_other_streams_the_block_given_back_longest_ago_comes_first) {
    setup<> t(mib, 3);
    std::array<void*, 4> p{};
    for (auto& block : p) block = t.pool.allocate(512, t.s[0]);
    t.pool.deallocate(p[0], t.s[1]);
    t.pool.deallocate(p[1], t.s[0]);
    t.pool.deallocate(p[2], t.s[1]);
    t.pool.deallocate(p[3], t.s[0]);
    for (void* expected : p) EXPECT_EQ(t.pool.allocate(512, t.s[2]), expected);
}

TEST(stream_pool, blocks_of_a_destroyed_stream_stay_usable_and_in_order) {
    setup<> t(mib);
    void* p = t.pool.allocate(1000, t.s[0]);
    t.use(p, 1000, t.s[0], "late work");
    t.pool.deallocate(p, t.s[0]);
    ASSERT_TRUE(t.device.destroy(t.s[0]));
    const stream later = t.device.create_stream(stream_kind::non_blocking, "later");
    EXPECT_EQ(t.pool.allocate(1000, later), p);
    EXPECT_EQ(t.pool.usage().other_stream, 1U) << "a later stream was taken for the destroyed one";
    t.use(p, 1000, later, "later work");
    EXPECT_EQ(t.device.usage().races, 0U) << t.device.last_error();
    EXPECT_EQ(t.device.usage().errors, 0U) << t.device.last_error();
}

TEST(stream_pool, many_short_lived_streams_leave_no_list_behind) {
    sim_device device(mib);
    stream_pool pool(device);
    for (int i = 0; i < 1000; ++i) {
        const stream s = device.create_stream();
        if (i >= 10) heap_left = 0;  // a list more would need memory, and the block without one goes back
        void* p = pool.allocate(1000, s);
        pool.deallocate(p, s);
        heap_left = -1;
        ASSERT_NE(p, nullptr);
        device.destroy(s);
    }
    EXPECT_EQ(pool.usage().source_calls, 1U);
    EXPECT_EQ(pool.events().created(), 1U);
}

TEST(stream_pool, refuses_what_is_not_a_live_block_of_its_own) {
    setup<> t(mib);
    stream_pool other(t.device);
    void* p = t.pool.allocate(1000, t.s[0]);
    EXPECT_TRUE(t.pool.owns(p));
    EXPECT_FALSE(other.owns(p));
    EXPECT_FALSE(other.deallocate(p, t.s[0]));
    EXPECT_FALSE(t.pool.deallocate(static_cast<std::byte*>(p) + 512, t.s[0]));
    EXPECT_TRUE(t.pool.deallocate(p, t.s[0]));
    EXPECT_FALSE(t.pool.owns(p));
    EXPECT_FALSE(t.pool.deallocate(p, t.s[0])) << "given back twice";
    EXPECT_TRUE(t.pool.deallocate(nullptr, t.s[0]));
    EXPECT_EQ(t.pool.usage().kept, 1U);
    EXPECT_EQ(t.pool.usage().live, 0U);
}

TEST(stream_pool, counts_a_size_of_0_as_1_and_refuses_what_no_object_can_have) {
    setup<> t(mib);
    void* a = t.pool.allocate(0, t.s[0]);
    void* b = t.pool.allocate(0, t.s[0]);
    EXPECT_TRUE(a != nullptr && b != nullptr && a != b);
    EXPECT_EQ(t.pool.usage().live_bytes, 2U);
    const std::size_t calls = t.device.usage().count(call::allocate);
    for (const std::size_t bytes : {too_many, too_many / 2 + 1, too_many - 511})
        EXPECT_EQ(t.pool.allocate(bytes, t.s[0]), nullptr);
    EXPECT_EQ(t.device.usage().count(call::allocate), calls);
}

TEST(stream_pool, gives_all_back_when_it_dies_live_blocks_too) {
    sim_device device(mib);
    {
        stream_pool pool(device);
        const stream s = sim_device::default_stream();
        void* kept = pool.allocate(1000, s);
        EXPECT_NE(pool.allocate(5000, s), nullptr);
        pool.deallocate(kept, s);
    }
    EXPECT_EQ(device.usage().live, 0U);
    EXPECT_EQ(device.usage().live_events, 0U);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

// ---- want of memory

TEST(stream_pool, flushes_what_it_keeps_and_tries_again_when_the_device_is_full) {
    setup<> t(64 * 512);
    std::vector<void*> all;
    for (int i = 0; i < 64; ++i) all.push_back(t.pool.allocate(512, t.s[0]));
    EXPECT_EQ(t.pool.allocate(512, t.s[0]), nullptr);
    EXPECT_EQ(t.pool.usage().flushes, 0U) << "nothing was kept";
    for (int i = 0; i < 32; ++i) t.pool.deallocate(all[static_cast<std::size_t>(i)], t.s[0]);
    EXPECT_NE(t.pool.allocate(32 * 512, t.s[0]), nullptr);
    pool_usage u = t.pool.usage();
    EXPECT_EQ(u.flushes, 1U);
    EXPECT_EQ(u.kept, 0U);
    EXPECT_EQ(t.pool.events().idle(), 32U) << "events went with their blocks";
    EXPECT_EQ(u.live, 33U);
    EXPECT_EQ(u.reserved_bytes, 64U * 512);
    EXPECT_EQ(t.pool.allocate(512, t.s[0]), nullptr);
    EXPECT_EQ(t.pool.usage().live, 33U);
}

TEST(stream_pool, keeps_what_captured_work_may_use_even_where_that_is_all_the_memory_there_is) {
    setup<> t(64 * 1024);
    const auto s = t.device.create_stream();
    void* p = t.pool.allocate(40'000, s);
    ASSERT_TRUE(t.device.begin_capture(s));
    ASSERT_TRUE(t.device.fill(p, std::byte{1}, 40'000, s));
    ASSERT_TRUE(t.pool.deallocate(p, s));
    EXPECT_EQ(t.pool.allocate(60'000, s), nullptr);
    EXPECT_EQ(t.pool.usage().flushes, 0U);
    EXPECT_EQ(t.pool.usage().kept, 1U);
    const captured graph = t.device.end_capture(s);
    ASSERT_TRUE(t.device.launch(graph, s));
    EXPECT_EQ(t.device.usage().races, 0U) << t.device.last_error();
}

TEST(stream_pool, serves_what_fits_the_device_only_without_rounding) {
    setup<> t(33 * 512);
    void* p = t.pool.allocate(33 * 512, t.s[0]);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(t.pool.usage().reserved_bytes, 33U * 512);
    t.pool.deallocate(p, t.s[0]);
    EXPECT_EQ(t.pool.allocate(33 * 512, t.s[0]), p) << "kept as it was made";
    t.pool.deallocate(p, t.s[0]);
    EXPECT_EQ(t.pool.allocate(34 * 512, t.s[0]), nullptr) << "of the same class, and larger";
    EXPECT_NE(t.pool.allocate(33 * 512, t.s[0]), nullptr);
}

// cub#328: counts that went wrong where a call failed.
TEST(stream_pool, any_failing_call_leaves_counts_right_and_loses_nothing) {
    for (const call at : {call::allocate, call::create_event, call::record, call::wait, call::synchronize})
        for (std::size_t k = 1; k <= 12; ++k) {
            SCOPED_TRACE(std::string(name_of(at)) + " number " + std::to_string(k));
            sim_device device(mib);
            const test::reports said(device);
            {
                stream_pool pool(device);
                const std::array s{device.create_stream(), device.create_stream()};
                device.inject({.at = at, .first = k, .every = 3});
                if (at == call::synchronize) device.inject({.at = call::record, .first = 1, .every = 1});
                std::size_t live = 0;
                for (std::size_t i = 0; i < 40; ++i) {
                    void* p = pool.allocate(400'000, s[i % 2]);
                    live += p != nullptr;
                    ASSERT_EQ(pool.usage().live, live);
                    ASSERT_EQ(pool.usage().live_bytes, live * 400'000);
                    ASSERT_EQ(device.usage().live, live + pool.usage().kept);
                    if (p == nullptr) continue;
                    ASSERT_TRUE(device.work(s[i % 2], 20'000, "kernel"));
                    device.also_touches(s[i % 2], p, 400'000, access::write, "block");
                    ASSERT_TRUE(pool.deallocate(p, s[i % 2]));
                    --live;
                    ASSERT_EQ(pool.usage().live, 0U);
                    ASSERT_EQ(device.usage().live, pool.usage().kept);
                }
                device.clear_faults();
                EXPECT_NE(pool.allocate(400'000, s[0]), nullptr);
            }
            EXPECT_EQ(device.usage().live, 0U);
            EXPECT_EQ(device.usage().live_events, 0U);
            if (k == 1) {
                EXPECT_GT(device.usage().faults, 0U) << "the workload makes no such call";
            }
            EXPECT_EQ(device.usage().races, 0U) << device.last_error();
        }
}

// ---- order across streams

/// One block of 94 % of the device goes from stream to stream; with `small`, so do others beside it.
template <class Device>
void run_workload(setup<Device>& t, std::size_t capacity, int operations, std::uint32_t seed, bool small) {
    std::mt19937 random(seed);
    for (int i = 0; i < operations; i += 2) {
        const stream on = t.s[random() % t.s.size()];
        const std::size_t bytes = small ? capacity / (random() % 3 == 0 ? 3 : 12) : capacity / 100 * 94;
        void* p = t.pool.allocate(bytes, on);
        ASSERT_NE(p, nullptr) << t.device.last_error();
        t.use(p, bytes, on, "block " + std::to_string(i / 2));
        ASSERT_TRUE(t.pool.deallocate(p, on));
    }
}

constexpr std::size_t capacity = 64 * mib;
constexpr int operations = 100'000;

TEST(stream_pool, a_hundred_thousand_operations_on_four_streams_have_no_race) {
    for (const bool small : {false, true}) {
        setup<> t(capacity, 4);
        run_workload(t, capacity, operations, 11, small);
        EXPECT_GT(t.pool.usage().other_stream, static_cast<std::size_t>(operations) / 8) << "no reuse across streams";
        EXPECT_EQ(t.device.usage().races, 0U) << t.device.last_error();
        EXPECT_EQ(t.device.usage().errors, 0U) << t.device.last_error();
        EXPECT_LE(t.pool.events().created(), 8U);
    }
}

TEST(stream_pool, without_the_wait_every_reuse_across_streams_is_a_race_that_names_both_streams_and_blocks) {
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U, 5U}) {
        setup<test::deaf_device> t(capacity, 4);
        run_workload(t, capacity, 2000, seed, false);
        EXPECT_EQ(t.device.usage().races, t.pool.usage().other_stream);
        EXPECT_GT(t.device.usage().races, 500U);
        EXPECT_EQ(t.said.lines.size(), t.device.usage().races);
        for (const std::string& line : t.said.lines) {
            const auto first = line.find("lane ");
            ASSERT_NE(first, std::string::npos) << line;
            ASSERT_NE(line.find("lane ", first + 1), std::string::npos) << line;
            const auto block = line.find("block ");
            ASSERT_NE(block, std::string::npos) << line;
            ASSERT_NE(line.find("block ", block + 1), std::string::npos) << line;
        }
    }
}

}  // namespace
}  // namespace alloclab::device
