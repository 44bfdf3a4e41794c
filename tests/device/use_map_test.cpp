#include "use_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>

#include "alloclab/bytes.hpp"
#include "heap_limit.hpp"

namespace alloclab::device {
namespace {

constexpr auto a = static_cast<actor>(1);
constexpr auto b = static_cast<actor>(2);
constexpr auto c = static_cast<actor>(3);
constexpr auto d = static_cast<actor>(4);
const label work{"work", {}, {}};

/// A map, and a clock for each of four actors who never hear of each other but by `hear`.
class four_actors : public ::testing::Test {
protected:
    four_actors() {
        for (vector_clock& clock : clocks) clock.widen(5);
    }

    vector_clock& clock_of(actor who) { return clocks[static_cast<std::size_t>(who) - 1]; }
    void hear(actor later, actor earlier) { clock_of(later).join(clock_of(earlier)); }

    /// A new work of the actor that uses [begin, end).
    std::span<const race> use(actor who, use_kind does, std::uintptr_t begin, std::uintptr_t end) {
        clock_of(who).step(who);
        return again(who, does, begin, end);
    }
    std::span<const race> again(actor who, use_kind does, std::uintptr_t begin, std::uintptr_t end) {
        const memory_use use{.at = clock_of(who).heard(who), .called = &work, .who = who, .does = does};
        return map.enter(use, clock_of(who), {begin, end - begin, 0});
    }
    std::span<const race> read(actor who, std::uintptr_t begin, std::uintptr_t end) {
        return use(who, use_kind::read, begin, end);
    }
    std::span<const race> write(actor who, std::uintptr_t begin, std::uintptr_t end) {
        return use(who, use_kind::write, begin, end);
    }

    use_map map;
    std::array<vector_clock, 4> clocks;
};

::testing::AssertionResult is_race_over(std::span<const race> races, actor earlier, std::uintptr_t begin,
                                        std::uintptr_t end) {
    if (races.size() != 1) return ::testing::AssertionFailure() << races.size() << " races";
    const race& r = races[0];
    if (r.earlier.who == earlier && r.where.begin == begin && r.where.bytes == end - begin) {
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "with actor " << static_cast<int>(r.earlier.who) << " over "
                                         << r.where.begin << " and " << r.where.bytes << " bytes";
}

TEST_F(four_actors, a_race_covers_the_bytes_in_conflict_and_no_other) {
    write(a, 100, 200);
    EXPECT_TRUE(write(b, 200, 300).empty());
    EXPECT_TRUE(read(c, 0, 100).empty());
    EXPECT_TRUE(is_race_over(read(c, 199, 200), a, 199, 200));
    EXPECT_TRUE(is_race_over(read(c, 0, 101), a, 100, 101));
    EXPECT_EQ(read(c, 150, 250).size(), 2u) << "one with each of the writers";
}

TEST_F(four_actors, a_race_over_ranges_of_one_work_that_touch_is_one_range) {
    write(a, 0, 30);
    hear(b, a);
    read(b, 10, 20);  // splits what a wrote
    EXPECT_EQ(map.live_ranges(), 3u);
    EXPECT_TRUE(is_race_over(read(c, 0, 30), a, 0, 30));
}

TEST_F(four_actors, of_one_actors_uses_the_latest_is_named) {
    write(a, 0, 10);
    write(a, 10, 20);
    write(a, 20, 30);
    const tick last = clock_of(a).heard(a);
    const auto races = write(b, 0, 25);
    ASSERT_TRUE(is_race_over(races, a, 20, 25));
    EXPECT_EQ(races[0].earlier.at, last);
}

TEST_F(four_actors, reads_do_not_race_with_reads_and_a_write_must_have_heard_of_each) {
    EXPECT_TRUE(read(a, 0, 8).empty());
    EXPECT_TRUE(read(b, 0, 8).empty());
    EXPECT_TRUE(read(c, 0, 8).empty());
    hear(c, a);
    EXPECT_TRUE(is_race_over(write(c, 0, 8), b, 0, 8));
}

TEST_F(four_actors, a_later_read_keeps_the_last_write_known) {
    write(a, 0, 8);
    hear(b, a);
    EXPECT_TRUE(read(b, 0, 8).empty());
    EXPECT_TRUE(is_race_over(read(c, 0, 8), a, 0, 8));
}

TEST_F(four_actors, one_missing_wait_behind_a_chain_of_uses_is_one_race) {
    write(a, 0, 8);
    hear(b, a);
    read(b, 0, 8);
    EXPECT_TRUE(is_race_over(write(c, 0, 8), b, 0, 8)) << "who waits for b has waited for a";
}

TEST_F(four_actors, a_read_takes_the_place_of_those_it_has_heard_of) {
    read(a, 0, 8);
    hear(b, a);
    read(b, 0, 8);
    EXPECT_TRUE(is_race_over(write(c, 0, 8), b, 0, 8)) << "who waits for b has waited for a";
}

TEST_F(four_actors, a_read_that_raced_does_not_undo_that_another_has_heard_of_the_write) {
    write(a, 0, 8);
    hear(b, a);
    read(b, 0, 8);
    ASSERT_EQ(read(c, 0, 8).size(), 1u);
    const auto races = write(d, 0, 8);
    ASSERT_EQ(races.size(), 2u);
    EXPECT_EQ(races[0].earlier.who, b);
    EXPECT_EQ(races[1].earlier.who, c);
}

TEST_F(four_actors, a_read_that_raced_does_not_stand_for_the_write_it_missed) {
    write(a, 0, 8);
    ASSERT_EQ(read(b, 0, 8).size(), 1u);
    hear(c, b);
    EXPECT_TRUE(is_race_over(write(c, 0, 8), a, 0, 8));
}

TEST_F(four_actors, after_a_race_the_later_use_counts) {
    write(a, 0, 8);
    ASSERT_EQ(write(b, 0, 8).size(), 1u);
    hear(c, b);
    EXPECT_TRUE(write(c, 0, 8).empty()) << "the race with a was told of already";
}

TEST_F(four_actors, an_in_place_work_does_not_race_with_itself) {
    write(a, 0, 8);
    clock_of(a).step(a);
    EXPECT_TRUE(again(a, use_kind::read, 0, 8).empty());
    EXPECT_TRUE(again(a, use_kind::write, 0, 8).empty());
    EXPECT_TRUE(again(a, use_kind::read, 0, 8).empty());
}

TEST_F(four_actors, behind_a_free_every_use_is_one_after_free_until_the_bytes_are_reborn) {
    write(a, 0, 16);
    ASSERT_TRUE(use(a, use_kind::free, 0, 16).empty());
    hear(b, a);
    for (const actor who : {a, b, c}) {
        for (const use_kind does : {use_kind::read, use_kind::write, use_kind::free}) {
            const auto races = use(who, does, 8, 16);
            ASSERT_TRUE(is_race_over(races, a, 8, 16));
            EXPECT_TRUE(races[0].after_free());
        }
    }
    EXPECT_TRUE(use(b, use_kind::allocate, 0, 12).empty());
    EXPECT_TRUE(write(b, 0, 12).empty());
    EXPECT_TRUE(is_race_over(write(b, 0, 16), a, 12, 16)) << "these are still free";
    EXPECT_FALSE(read(c, 0, 12).empty()) << "c has not heard of the allocation";
}

TEST_F(four_actors, a_free_must_come_after_all_uses_and_an_allocation_after_the_free) {
    read(a, 0, 8);
    const auto early = use(b, use_kind::free, 0, 8);
    ASSERT_TRUE(is_race_over(early, a, 0, 8));
    EXPECT_FALSE(early[0].after_free());
    const auto reborn = use(c, use_kind::allocate, 0, 8);
    ASSERT_TRUE(is_race_over(reborn, b, 0, 8));
    EXPECT_FALSE(reborn[0].after_free());
}

TEST_F(four_actors, neighbours_of_equal_history_are_one_range) {
    for (std::uintptr_t row = 0; row < 1000; ++row) write(a, row * 8, row * 8 + 8);
    EXPECT_EQ(map.live_ranges(), 1000u) << "each row another work";
    clock_of(a).step(a);
    for (std::uintptr_t row = 0; row < 1000; row += 2) again(a, use_kind::write, row * 8, row * 8 + 8);
    for (std::uintptr_t row = 1; row < 1000; row += 2) again(a, use_kind::write, row * 8, row * 8 + 8);
    EXPECT_EQ(map.live_ranges(), 1u) << "all one work's";
    hear(b, a);
    read(b, 80, 88);
    EXPECT_EQ(map.live_ranges(), 3u);
    hear(a, b);
    write(a, 0, 8000);
    EXPECT_EQ(map.live_ranges(), 1u);
}

TEST_F(four_actors, the_order_of_reads_makes_no_other_history) {
    clock_of(a).step(a), clock_of(b).step(b);
    again(a, use_kind::read, 0, 8), again(b, use_kind::read, 0, 8);
    again(b, use_kind::read, 8, 16), again(a, use_kind::read, 8, 16);
    EXPECT_EQ(map.live_ranges(), 1u);
}

TEST_F(four_actors, what_is_forgotten_is_known_outside_only) {
    write(a, 0, 100);
    map.forget({20, 60, 0});
    EXPECT_EQ(map.live_ranges(), 2u);
    EXPECT_TRUE(write(b, 20, 80).empty());
    EXPECT_TRUE(is_race_over(read(b, 0, 100), a, 0, 20)) << "of two stretches the first";
    EXPECT_TRUE(is_race_over(read(b, 20, 100), a, 80, 100));
    map.forget({85, 0, 0});
    EXPECT_EQ(map.live_ranges(), 3u) << "nothing was forgotten, nothing is split";
    map.forget({0, 100, 0});
    EXPECT_EQ(map.live_ranges(), 0u);
    map.forget({0, 0, 0});
    EXPECT_TRUE(write(c, 50, 50).empty());
    EXPECT_EQ(map.live_ranges(), 0u) << "no bytes are no range";
}

TEST_F(four_actors, a_range_to_the_end_of_all_addresses_ends_there) {
    const std::uintptr_t near_end = too_many - 8;
    clock_of(a).step(a);
    const memory_use use{.at = 1, .called = &work, .who = a, .does = use_kind::write};
    EXPECT_TRUE(map.enter(use, clock_of(a), {near_end, 100, 0}).empty());
    EXPECT_TRUE(is_race_over(read(b, near_end, near_end + 4), a, near_end, near_end + 4));
}

TEST_F(four_actors, uses_of_the_same_ranges_again_take_no_heap) {
    const auto round = [&] {
        for (std::uintptr_t block = 0; block < 100; ++block) {
            const std::uintptr_t at = block * 1000;
            EXPECT_TRUE(write(a, at, at + 900).empty());
            hear(b, a), hear(c, a);
            EXPECT_TRUE(read(b, at, at + 300).empty());
            EXPECT_TRUE(read(c, at + 100, at + 900).empty());
            hear(a, b), hear(a, c);
        }
    };
    round(), round();
    heap_left = 1'000'000;
    round(), round();
    const int taken = 1'000'000 - heap_left;
    heap_left = -1;
    EXPECT_EQ(taken, 0);
}

TEST_F(four_actors, reads_without_end_take_no_more_heap_than_one_an_actor) {
    const auto read_all = [&] { read(a, 0, 8), read(b, 0, 8), read(c, 0, 8), read(d, 0, 8); };
    read_all();
    heap_left = 1'000'000;
    for (int i = 0; i < 1000; ++i) read_all();
    const int taken = 1'000'000 - heap_left;
    heap_left = -1;
    EXPECT_EQ(taken, 0);
}

TEST_F(four_actors, without_heap_races_are_still_found) {
    write(a, 0, 8);
    heap_left = 0;
    const bool race = is_race_over(write(b, 0, 8), a, 0, 8);
    heap_left = -1;
    EXPECT_TRUE(race);
}

// Every point at which the heap can end: nothing is thrown, nothing is made up, and the map is as good as new later.
TEST_F(four_actors, without_heap_a_history_is_lost_and_no_race_is_made_up) {
    bool lost = false;
    for (int left = 0; left < 12; ++left) {
        use_map fresh;
        const auto enter = [&](actor who, use_kind does, std::uintptr_t begin, std::uintptr_t end) {
            clock_of(who).step(who);
            const memory_use use{.at = clock_of(who).heard(who), .called = &work, .who = who, .does = does};
            return fresh.enter(use, clock_of(who), {begin, end - begin, 0}).size();
        };
        heap_left = left;
        std::size_t races = enter(a, use_kind::write, 0, 100);
        hear(b, a), hear(c, a);
        races += enter(b, use_kind::read, 10, 90);
        races += enter(c, use_kind::read, 20, 80);
        fresh.forget({30, 10, 0});
        heap_left = -1;
        EXPECT_EQ(races, 0u);
        lost = lost || fresh.live_ranges() < 6;

        hear(a, b), hear(a, c);
        EXPECT_EQ(enter(a, use_kind::write, 0, 100), 0u);
        EXPECT_EQ(fresh.live_ranges(), 1u);
        EXPECT_EQ(enter(b, use_kind::read, 40, 50), 1u);
        EXPECT_EQ(fresh.live_ranges(), 3u);
    }
    EXPECT_TRUE(lost) << "the heap never ended";
}

}  // namespace
}  // namespace alloclab::device
