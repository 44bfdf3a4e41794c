// Extra strategies: the laws, for each in the registry; then what is particular to each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../laws/extra_laws.hpp"
#include "alloclab/registry.hpp"

namespace alloclab::laws {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(registered, extra_laws, extra_strategies<record>::into<::testing::Types>, by_name);

using counted_malloc = compose<malloc_source, counting>;

template <class S>
class keeping_memory : public ::testing::Test {};
using keepers =
    ::testing::Types<bump_arena<record, any_source>, free_list<record, any_source>, ring<record, 300, any_source>>;
TYPED_TEST_SUITE(keeping_memory, keepers, by_name);

TYPED_TEST(keeping_memory, an_eval_of_the_same_size_calls_no_source) {
    counted_malloc source;
    TypeParam extras = [&] {
        if constexpr (std::constructible_from<TypeParam, growth, any_source>)
            return TypeParam(growth{}, any_source(source));
        else return TypeParam(any_source(source));
    }();
    std::size_t calls = 0;
    for (int eval = 0; eval < 50; ++eval) {
        extras.begin_eval();
        for (int i = 0; i < 200; ++i) ASSERT_NE(extras.acquire(lifetime::temporary), nullptr);
        extras.end_eval();
        if (eval == 0) calls = source.traffic().acquired;
        EXPECT_EQ(source.traffic().acquired, calls);
    }
    EXPECT_GT(calls, 0u);
}

// So that no later eval of the same size faults a page in: the same addresses again, under any retain limit.
template <class S>
class under_a_retain_limit : public ::testing::Test {};
using limited = ::testing::Types<bump_arena<record, any_source>, free_list<record, any_source>>;
TYPED_TEST_SUITE(under_a_retain_limit, limited, by_name);

TYPED_TEST(under_a_retain_limit, an_eval_of_the_same_size_finds_its_extras_where_they_were) {
    for (const std::size_t retained : {std::size_t{0}, std::size_t{5000}, too_many})
        for (const std::size_t tensors : {16u, 64u, 1061u, 8192u}) {
            counted_malloc source;
            TypeParam extras({.retain_bytes = retained}, any_source(source));
            std::vector<record*> first;
            std::size_t calls = 0;
            for (int eval = 0; eval < 4; ++eval) {
                std::vector<record*> taken;
                extras.begin_eval();
                for (std::size_t i = 0; i < tensors; ++i) taken.push_back(extras.acquire(lifetime::temporary));
                extras.end_eval();
                if (eval == 0) first = taken, calls = source.traffic().acquired;
                ASSERT_EQ(taken, first) << tensors << " tensors, " << retained << " bytes retained";
                ASSERT_EQ(source.traffic().acquired, calls);
            }
        }
}

TEST(per_tensor, gives_the_memory_of_temporaries_back_at_the_end_of_the_eval) {
    counted_malloc source;
    per_tensor<record, any_source> extras{any_source(source)};
    record* persistent = extras.acquire(lifetime::persistent);
    extras.begin_eval();
    for (int i = 0; i < 200; ++i) ASSERT_NE(extras.acquire(lifetime::temporary), nullptr);
    EXPECT_EQ(source.traffic().live, 201u);
    extras.end_eval();
    EXPECT_EQ(source.traffic().live, 1u);
    extras.release(persistent);
    EXPECT_EQ(source.traffic().live, 0u);
}

TEST(free_list, a_released_temporary_serves_the_same_eval_again_the_last_one_first) {
    free_list<record> extras;
    extras.begin_eval();
    record* a = extras.acquire(lifetime::temporary);
    record* b = extras.acquire(lifetime::temporary);
    extras.release(a);
    extras.release(b);
    record* persistent = extras.acquire(lifetime::persistent);
    EXPECT_TRUE(persistent != a && persistent != b) << "it would die with the eval";
    EXPECT_EQ(extras.acquire(lifetime::temporary), b);
    EXPECT_EQ(extras.acquire(lifetime::temporary), a);
    extras.release(b);
    extras.end_eval();
    EXPECT_EQ(extras.usage().live, 1u);
    EXPECT_EQ(extras.acquire(lifetime::temporary), a) << "the first of the last eval is the first again";
    EXPECT_EQ(extras.acquire(lifetime::temporary), b);
    EXPECT_NE(extras.acquire(lifetime::temporary), b) << "released in an eval that has ended, so served once";
}

TEST(free_list, released_persistent_extras_serve_the_next_persistent_ones) {
    counted_malloc source;
    free_list<record, any_source> extras({.first_bytes = 1024, .max_bytes = 1024}, any_source(source));
    std::vector<record*> model;
    for (int i = 0; i < 100; ++i) model.push_back(extras.acquire(lifetime::persistent));
    const std::size_t calls = source.traffic().acquired;
    for (int load = 0; load < 5; ++load) {
        for (record* e : model) extras.release(e);
        EXPECT_EQ(extras.usage().live, 0u);
        for (record*& e : model) e = extras.acquire(lifetime::persistent);
        EXPECT_EQ(extras.usage().live, 100u);
    }
    EXPECT_EQ(source.traffic().acquired, calls);
}

TEST(free_list, no_extra_is_lost_over_evals_with_early_releases) {
    counted_malloc source;
    free_list<record, any_source> extras({.first_bytes = 1024, .max_bytes = 1024}, any_source(source));
    std::size_t calls = 0;
    for (int eval = 0; eval < 100; ++eval) {
        extras.begin_eval();
        std::vector<record*> live;
        for (int i = 0; i < 100; ++i) live.push_back(extras.acquire(lifetime::temporary));
        std::sort(live.begin(), live.end());
        ASSERT_EQ(std::unique(live.begin(), live.end()), live.end());
        for (std::size_t i = static_cast<std::size_t>(eval); i < 100; i += 7) extras.release(live[i]);
        extras.end_eval();
        ASSERT_EQ(extras.usage().live, 0u);
        if (eval == 0) calls = source.traffic().acquired;
        ASSERT_EQ(source.traffic().acquired, calls) << "nodes were lost by eval " << eval;
    }
}

// It can tell cheaply, so it must not serve one extra to two tensors.
TEST(free_list, an_extra_that_is_released_twice_or_after_its_eval_has_one_owner_only) {
    free_list<record> extras;
    record* persistent = extras.acquire(lifetime::persistent);
    extras.begin_eval();
    record* temporary = extras.acquire(lifetime::temporary);
    record* forgotten = extras.acquire(lifetime::temporary);
    for (int i = 0; i < 2; ++i) {
        extras.release(persistent);
        extras.release(temporary);
    }
    EXPECT_EQ(extras.usage().live, 1u);
    extras.end_eval();
    extras.release(forgotten);
    EXPECT_EQ(extras.usage().live, 0u);
    std::vector<record*> live;
    for (int i = 0; i < 10; ++i) live.push_back(extras.acquire(lifetime::temporary));
    std::sort(live.begin(), live.end());
    EXPECT_EQ(std::unique(live.begin(), live.end()), live.end());
}

TEST(bump_arena, temporaries_lie_one_behind_the_other_and_start_over_at_the_same_place) {
    bump_arena<record> extras;
    record* first = nullptr;
    for (int eval = 0; eval < 3; ++eval) {
        extras.begin_eval();
        record* before = extras.acquire(lifetime::temporary);
        if (eval == 0) first = before;
        EXPECT_EQ(before, first);
        for (int i = 0; i < 50; ++i) EXPECT_EQ(extras.acquire(lifetime::temporary), ++before);
        extras.end_eval();
    }
}

// What is live is told by where the arena stands, which must be right beyond a chunk that no extra fills to its end.
TEST(bump_arena, counts_live_extras_over_many_chunks_and_early_releases) {
    bump_arena<record> extras({.first_bytes = 100, .max_bytes = 300});
    for (int eval = 0; eval < 3; ++eval) {
        extras.begin_eval();
        std::vector<record*> live;
        for (std::size_t i = 0; i < 100; ++i) {
            live.push_back(extras.acquire(lifetime::temporary));
            ASSERT_EQ(extras.usage().live, i + 1);
        }
        for (std::size_t i = 0; i < 100; i += 3) extras.release(live[i]);
        EXPECT_EQ(extras.usage().live, 66u);
        EXPECT_NE(extras.acquire(lifetime::temporary), nullptr);
        EXPECT_EQ(extras.usage().live, 67u);
        extras.end_eval();
        EXPECT_EQ(extras.usage().live, 0u);
    }
}

TEST(bump_arena, one_huge_eval_is_not_kept_for_ever_under_a_retain_limit) {
    counted_malloc source;
    bump_arena<record, any_source> extras({.first_bytes = 4096, .max_bytes = 65536, .retain_bytes = 16384},
                                          any_source(source));
    const auto eval = [&](std::size_t n) {
        extras.begin_eval();
        for (std::size_t i = 0; i < n; ++i) ASSERT_NE(extras.acquire(lifetime::temporary), nullptr);
        extras.end_eval();
    };
    eval(100);
    const std::size_t small = extras.usage().reserved_bytes;
    eval(50'000);
    EXPECT_GT(extras.usage().reserved_bytes, 50'000 * sizeof(record));
    for (int i = 0; i < 100; ++i) eval(100);
    EXPECT_LE(extras.usage().reserved_bytes, std::max(small, std::size_t{16384}));
    EXPECT_EQ(extras.usage().reserved_bytes, source.traffic().live_bytes);
}

// llama.cpp PR#2220 handed out live extras again without a word when an eval had more than the ring.
TEST(ring, an_overrun_is_refused_and_counted) {
    ring<record, 8> extras;
    for (int eval = 0; eval < 5; ++eval) {
        extras.begin_eval();
        std::vector<record*> live;
        for (int i = 0; i < 8; ++i) live.push_back(extras.acquire(lifetime::temporary));
        std::sort(live.begin(), live.end());
        EXPECT_EQ(std::unique(live.begin(), live.end()), live.end());
        EXPECT_NE(live.front(), nullptr);
        EXPECT_EQ(extras.overruns(), static_cast<std::size_t>(2 * eval));
        for (int i = 0; i < 2; ++i) EXPECT_EQ(extras.acquire(lifetime::temporary), nullptr);
        EXPECT_EQ(extras.overruns(), static_cast<std::size_t>(2 * eval + 2));
        EXPECT_NE(extras.acquire(lifetime::persistent), nullptr);
        EXPECT_EQ(extras.usage().live, static_cast<std::size_t>(8 + eval + 1));
        extras.end_eval();
    }
}

TEST(ring, walks_on_from_eval_to_eval_and_wraps) {
    ring<record, 8> extras;
    std::vector<record*> taken;
    for (int eval = 0; eval < 4; ++eval) {
        extras.begin_eval();
        for (int i = 0; i < 5; ++i) taken.push_back(extras.acquire(lifetime::temporary));
        extras.end_eval();
    }
    for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], taken[0] + i % 8);
}

TEST(ring, a_place_that_was_released_early_is_not_used_again_within_its_eval) {
    ring<record, 3> extras;
    extras.begin_eval();
    record* e = extras.acquire(lifetime::temporary);
    extras.release(e);
    EXPECT_EQ(extras.usage().live, 0u);
    EXPECT_NE(extras.acquire(lifetime::temporary), e);
    EXPECT_NE(extras.acquire(lifetime::temporary), e);
    EXPECT_EQ(extras.acquire(lifetime::temporary), nullptr);
    EXPECT_EQ(extras.usage().live, 2u);
    extras.end_eval();
    EXPECT_EQ(extras.usage().live, 0u);
    EXPECT_NE(extras.acquire(lifetime::temporary), nullptr);
    EXPECT_EQ(extras.usage().live, 1u);
}

TEST(inline_extra, lies_in_the_tensor) {
    inline_extra<record> extras;
    alignas(record) std::byte in_tensor[sizeof(record)];
    static_assert(inline_extra<record>::bytes_in_tensor == sizeof(record));
    EXPECT_EQ(static_cast<void*>(extras.acquire(lifetime::persistent, in_tensor)), static_cast<void*>(in_tensor));
}

TEST(leaky, frees_what_it_has_leaked_at_its_end_so_that_a_process_can_go_on) {
    counted_malloc source;
    {
        leaky<record, any_source> extras{any_source(source)};
        for (int eval = 0; eval < 10; ++eval) {
            extras.begin_eval();
            for (int i = 0; i < 200; ++i) ASSERT_NE(extras.acquire(lifetime::temporary), nullptr);
            extras.end_eval();
            EXPECT_EQ(source.traffic().live, static_cast<std::size_t>(200 * (eval + 1)));
        }
    }
    EXPECT_EQ(source.traffic().live, 0u);
}

TEST(offload_scope, takes_temporaries_from_the_strategy_it_is_over) {
    bump_arena<record> extras;
    {
        offload_scope scope(extras);
        EXPECT_NE(scope.acquire(), nullptr);
        EXPECT_EQ(&scope.extras(), &extras);
        EXPECT_EQ(extras.usage().live, 1u);
    }
    EXPECT_EQ(extras.usage().live, 0u);
}

}  // namespace
}  // namespace alloclab::laws
