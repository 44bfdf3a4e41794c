// fallback and its presets: the laws for those in the registry and for other pairs, then what is particular.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "../laws/fallback_laws.hpp"
#include "../laws/slot_laws.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/registry.hpp"

namespace alloclab::laws {
namespace {

struct context_header {
    alignas(16) std::array<std::byte, 96> bytes;
};

using registered = only<context_strategies<context_header>, is_fallback>::type;
static_assert(registered::size == 4, "hybrid, locked, magazine and owner hybrids");

using two_pools = fallback<static_pool<int, 4>, static_pool<int, 3>>;
using pairs = type_list<fallback<static_pool<int, 3>, heap<int, aligned_malloc_source>>,
                        fallback<scan_pool<context_header, 64>, heap<context_header>>,
                        compose<fallback<static_pool<char, 65>, heap<char>>, counting, locked>>;
using chains =
    type_list<two_pools, fallback<static_pool<int, 2>, two_pools>, fallback<static_pool<int, 4>, hybrid<int, 2>>>;

INSTANTIATE_TYPED_TEST_SUITE_P(registered, fallback_laws, registered::into<::testing::Types>, by_name);
INSTANTIATE_TYPED_TEST_SUITE_P(pairs, fallback_laws, pairs::into<::testing::Types>, by_name);
INSTANTIATE_TYPED_TEST_SUITE_P(chains, slot_laws, chains::into<::testing::Types>, by_name);

TEST(fallback, is_named_by_its_parts_and_as_shared_as_the_weaker) {
    EXPECT_EQ(two_pools::name, "fallback<static_pool,static_pool>");
    EXPECT_EQ((fallback<static_pool<int, 2>, heap<int>>::name), "fallback<static_pool,heap_malloc>");
    static_assert(two_pools::threads == thread_use::single);
    static_assert(fallback<static_pool<int, 2>, heap<int>>::threads == thread_use::single);
    static_assert(fallback<scan_pool<int, 2>, heap<int>>::threads == thread_use::shared);
    static_assert(fallback<scan_pool<int, 2>, static_pool<int, 2>>::threads == thread_use::single);
}

TEST(fallback, offers_what_both_sides_offer) {
    static_assert(owning<two_pools> && resettable<two_pools> && measured<two_pools> && front<two_pools>);
    static_assert(!owning<hybrid<int>> && !resettable<hybrid<int>> && measured<hybrid<int>>);
    static_assert(!bounded<hybrid<int>>);
}

TEST(fallback, refuses_when_both_are_exhausted_and_counts_nothing) {
    fallback<static_pool<int, 2>, compose<heap<int>, failing>> both;
    both.back().fail_after(1);
    void* slots[] = {both.acquire(), both.acquire(), both.acquire()};
    EXPECT_EQ(both.in_back(), 1u);
    EXPECT_EQ(both.acquire(), nullptr);
    EXPECT_EQ(both.in_back(), 1u);
    for (void* s : slots) both.release(s);
    EXPECT_EQ(both.in_back(), 0u);
    EXPECT_EQ(both.usage().live, 0u);
    EXPECT_EQ(both.usage().source_calls, 1u) << "of the slots that the back made";
}

TEST(fallback, reset_forgets_both_sides) {
    two_pools both;
    for (int i = 0; i < 7; ++i) ASSERT_NE(both.acquire(), nullptr);
    EXPECT_EQ(both.in_back(), 3u);
    both.reset();
    EXPECT_EQ(both.in_back(), 0u);
    EXPECT_EQ(both.usage().live, 0u);
    for (int i = 0; i < 7; ++i) ASSERT_NE(both.acquire(), nullptr);
    EXPECT_EQ(both.acquire(), nullptr);
}

// cumo#173: each object returns to its maker. The counting layers on both sides agree.
TEST(fallback, both_sides_end_at_zero) {
    fallback<compose<static_pool<int, 2>, counting>, compose<heap<int>, counting>> both;
    void* slots[5];
    for (void*& s : slots) s = both.acquire();
    EXPECT_EQ(both.front().traffic().live, 2u);
    EXPECT_EQ(both.back().traffic().live, 3u);
    for (void* s : slots) both.release(s);
    EXPECT_EQ(both.front().traffic().released, 2u);
    EXPECT_EQ(both.back().traffic().released, 3u);
    EXPECT_EQ(both.back().traffic().live, 0u);
}

TEST(hybrid, is_the_pool_and_the_heap_under_one_name) {
    EXPECT_EQ(hybrid<int>::name, "hybrid");
    EXPECT_EQ(locked_hybrid<int>::name, "locked_hybrid");
    static_assert(locked_hybrid<int>::threads == thread_use::shared);
    static_assert(hybrid<int>::threads == thread_use::single);
}

}  // namespace
}  // namespace alloclab::laws
