// Verdicts: the interval covers what it claims, pairs are formed where they may be, noise alone convinces nobody, a
// real difference is found.
#include "alloclab/report/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace alloclab::report {
namespace {

using ::testing::HasSubstr;

cell measured(const char* strategy, const std::vector<double>& values, const char* live = "1") {
    cell c;
    c.workload = "w", c.strategy = strategy, c.parameters = {{"live", live}};
    for (std::size_t i = 0; i < values.size(); ++i) c.samples.push_back({i, values[i]});
    return c;
}

run with(std::vector<cell> cells) {
    run r;
    r.workloads.push_back({"w", "context", "", "", "ns/op", "base", "live"});
    r.cells = std::move(cells);
    return r;
}

std::vector<double> repeated(double value, std::size_t times) { return std::vector<double>(times, value); }

/// Two strategies in blocks: both share each block's drift, each has its own noise.
run noisy(std::mt19937_64& random, std::size_t blocks, double ratio) {
    std::normal_distribution<double> drift(0, 0.15), noise(0, 0.03);
    std::vector<double> base, candidate;
    for (std::size_t i = 0; i < blocks; ++i) {
        const double shared = 20 * std::exp(drift(random));
        base.push_back(shared * std::exp(noise(random)));
        candidate.push_back(shared * ratio * std::exp(noise(random)));
    }
    return with({measured("base", base), measured("other", candidate)});
}

TEST(median_interval_test, has_the_ranks_and_the_coverage_of_the_binomial_distribution) {
    std::vector<double> values(15);
    std::iota(values.begin(), values.end(), 1.0);
    std::shuffle(values.begin(), values.end(), std::mt19937{1});
    const auto bounds = median_interval(values);
    ASSERT_TRUE(bounds);
    EXPECT_EQ(bounds->low, 4);
    EXPECT_EQ(bounds->high, 12);
    EXPECT_NEAR(bounds->coverage, 1 - 2 * 576 / 32768.0, 1e-12);
}

TEST(median_interval_test, needs_six_values_for_95_percent) {
    EXPECT_FALSE(median_interval({}));
    EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}));
    const auto bounds = median_interval({6, 1, 5, 2, 4, 3});
    ASSERT_TRUE(bounds);
    EXPECT_EQ(bounds->low, 1);
    EXPECT_EQ(bounds->high, 6);
    EXPECT_NEAR(bounds->coverage, 1 - 2 / 64.0, 1e-12);
}

TEST(median_interval_test, thousands_of_values_do_not_underflow) {
    std::vector<double> values(5000);
    std::iota(values.begin(), values.end(), 0.0);
    const auto bounds = median_interval(values);
    ASSERT_TRUE(bounds);
    EXPECT_NEAR(bounds->low, 2500 - 1.96 * std::sqrt(5000) / 2, 2);
    EXPECT_NEAR(bounds->high, 2499 + 1.96 * std::sqrt(5000) / 2, 2);
    EXPECT_GE(bounds->coverage, 0.95);
}

TEST(median_interval_test, covers_the_true_median_of_a_skewed_distribution_as_often_as_it_says) {
    std::mt19937_64 random(7);
    std::exponential_distribution<double> skewed(1);
    for (const std::size_t n : {6u, 7u, 15u, 40u}) {
        int covered = 0;
        double claimed = 0;
        for (int trial = 0; trial < 4000; ++trial) {
            std::vector<double> values(n);
            for (double& v : values) v = skewed(random);
            const auto bounds = median_interval(values);
            covered += bounds->low <= std::log(2) && std::log(2) <= bounds->high;
            claimed = bounds->coverage;
        }
        EXPECT_NEAR(covered / 4000.0, claimed, 0.012) << n << " values";
    }
}

TEST(median_test, is_the_middle_or_the_mean_of_the_two_middle_values) {
    EXPECT_FALSE(median({}));
    EXPECT_EQ(median({3, 1, 2}), 2);
    EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(compare_test, noise_alone_gives_at_most_5_percent_false_verdicts) {
    std::mt19937_64 random(11);
    for (const std::size_t blocks : {7u, 15u}) {
        int wrong = 0;
        for (int trial = 0; trial < 400; ++trial) {
            const run r = noisy(random, blocks, 1);
            const verdict v = compare(r).at(1).decided;
            wrong += v == verdict::faster || v == verdict::slower;
        }
        EXPECT_LE(wrong, 20) << blocks << " blocks";
    }
}

TEST(compare_test, a_true_difference_of_10_percent_is_found) {
    std::mt19937_64 random(12);
    int slower = 0, faster = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const run up = noisy(random, 15, 1.1), down = noisy(random, 15, 1 / 1.1);
        slower += compare(up).at(1).decided == verdict::slower;
        faster += compare(down).at(1).decided == verdict::faster;
    }
    EXPECT_GE(slower, 360);
    EXPECT_GE(faster, 360);
}

TEST(compare_test, only_a_difference_beyond_3_percent_counts_however_certain_it_is) {
    const auto decided = [](double value) {
        const run r = with({measured("base", repeated(100, 15)), measured("other", repeated(value, 15))});
        return compare(r).at(1).decided;
    };
    EXPECT_EQ(decided(96.9), verdict::faster);
    EXPECT_EQ(decided(97.1), verdict::same);
    EXPECT_EQ(decided(102.9), verdict::same);
    EXPECT_EQ(decided(103.1), verdict::slower);
}

TEST(compare_test, an_interval_across_the_margin_is_inconclusive) {
    std::vector<double> wide;
    for (int i = 0; i < 15; ++i) wide.push_back(100 + 4 * (i - 4));
    const run r = with({measured("base", repeated(100, 15)), measured("other", wide)});
    const comparison c = compare(r).at(1);
    EXPECT_EQ(c.decided, verdict::inconclusive);
    EXPECT_THAT(c.reason, HasSubstr("margin"));
}

TEST(compare_test, samples_are_paired_by_block_and_not_by_place) {
    // The machine halves its speed from block to block; paired by block, the candidate takes exactly 0.8 of the time.
    cell base = measured("base", {}), other = measured("other", {});
    for (std::size_t block = 0; block < 8; ++block) {
        const double drift = std::exp2(static_cast<double>(block));
        base.samples.push_back({block, 10 * drift});
        other.samples.insert(other.samples.begin(), {block, 8 * drift});
    }
    other.samples.push_back({99, 1});  // has no partner
    const run r = with({base, other});
    const comparison c = compare(r).at(1);
    EXPECT_EQ(c.pairs, 8u);
    EXPECT_NEAR(c.ratio.value(), 0.8, 1e-12);
    EXPECT_EQ(c.decided, verdict::faster);
}

TEST(compare_test, samples_of_one_block_count_as_one_pair) {
    cell base = measured("base", {}), other = measured("other", {});
    for (int i = 0; i < 50; ++i) base.samples.push_back({0, 10}), other.samples.push_back({0, 20});
    const run r = with({base, other});
    const comparison c = compare(r).at(1);
    EXPECT_EQ(c.pairs, 1u);
    EXPECT_EQ(c.decided, verdict::inconclusive);
    EXPECT_THAT(c.reason, HasSubstr("1 block, 6 needed"));
}

TEST(pair_up_test, fewer_than_6_blocks_give_a_ratio_and_say_how_many_are_needed) {
    const pairing p = pair_up(measured("a", repeated(3, 4)), measured("b", repeated(2, 4)));
    EXPECT_EQ(p.pairs, 4u);
    EXPECT_NEAR(p.ratio.value(), 1.5, 1e-12);
    EXPECT_FALSE(p.bounds);
    EXPECT_EQ(p.decided, verdict::inconclusive);
    EXPECT_EQ(p.reason, "4 blocks, 6 needed");
    EXPECT_EQ(pair_up(measured("a", repeated(3, 6)), measured("b", repeated(2, 6)), 0.975).reason,
              "6 blocks, 7 needed");
    EXPECT_EQ(pair_up(measured("a", {}), measured("b", {})).reason, "0 blocks, 6 needed");
}

TEST(pair_up_test, blocks_of_one_number_from_two_machines_are_never_paired) {
    cell a = measured("a", repeated(10, 6)), b = measured("b", repeated(5, 6));
    for (sample& s : b.samples) s.machine = 1;
    EXPECT_EQ(pair_up(a, b).pairs, 0u);
    EXPECT_FALSE(pair_up(a, b).ratio);

    // The second machine is 100 times slower: within each, b takes half the time of a.
    for (std::size_t block = 0; block < 6; ++block) {
        a.samples.push_back({block, 1000, 0, 1});
        b.samples[block].value = 500;
        b.samples.push_back({block, 5, 0, 0});
    }
    const pairing p = pair_up(b, a);
    EXPECT_EQ(p.pairs, 12u);
    EXPECT_NEAR(p.bounds.value().low, 0.5, 1e-12);
    EXPECT_NEAR(p.bounds.value().high, 0.5, 1e-12);
}

TEST(pair_up_test, the_median_of_a_block_is_what_is_paired) {
    cell a = measured("a", repeated(10, 6)), b = measured("b", repeated(10, 6));
    for (std::size_t block = 0; block < 6; ++block) {
        a.samples.push_back({block, 20});
        a.samples.push_back({block, 1e9});
    }
    EXPECT_NEAR(pair_up(a, b).ratio.value(), 2, 1e-12);
}

/// 20 ns each, twice as long in the blocks that the machine slowed down in between.
std::pair<cell, cell> with_uneven(std::size_t even, std::size_t uneven, double factor) {
    cell a = measured("a", repeated(20, even + uneven)), b = a;
    for (std::size_t i = 0; i < even + uneven; ++i) {
        a.samples[i].calibration = b.samples[i].calibration = 1.5;
        if (i >= even) a.samples[i].value *= 2, a.samples[i].calibration *= factor;
    }
    return {a, b};
}

TEST(pair_up_test, pairs_between_which_the_machine_changed_its_speed_are_left_out_and_counted) {
    const auto [a, b] = with_uneven(8, 5, 1.11);
    for (const pairing& p : {pair_up(a, b), pair_up(b, a)}) {
        EXPECT_EQ(p.pairs, 8u);
        EXPECT_EQ(p.uneven, 5u);
        EXPECT_EQ(p.ratio, 1);
        EXPECT_EQ(p.decided, verdict::same);
    }
    const auto [c, d] = with_uneven(8, 5, 1.09);
    EXPECT_EQ(pair_up(c, d).uneven, 0u);
    EXPECT_EQ(pair_up(c, d).pairs, 13u);

    run r = with({b, a});
    r.workloads[0].baseline = r.cells[0].strategy = "base";
    EXPECT_EQ(compare(r).at(1).uneven, 5u);
    EXPECT_EQ(compare(r).at(1).pairs, 8u);
}

TEST(pair_up_test, a_calibration_that_is_not_known_leaves_nothing_out) {
    for (const double unknown : {0.0, -1.0, double(NAN), double(INFINITY)}) {
        auto [a, b] = with_uneven(6, 6, 3);
        for (sample& s : b.samples) s.calibration = unknown;
        EXPECT_EQ(pair_up(a, b).pairs, 12u) << unknown;
        EXPECT_EQ(pair_up(a, b).uneven, 0u) << unknown;
    }
}

TEST(pair_up_test, uneven_pairs_stay_where_too_few_would_be_left_but_not_where_they_are_most) {
    const auto [a, b] = with_uneven(5, 2, 1.5);
    EXPECT_EQ(pair_up(a, b).pairs, 7u);
    EXPECT_EQ(pair_up(a, b).uneven, 0u);
    EXPECT_TRUE(pair_up(a, b).bounds);
    const auto [c, d] = with_uneven(3, 9, 1.5);
    const pairing p = pair_up(c, d);
    EXPECT_EQ(p.pairs, 3u);
    EXPECT_EQ(p.uneven, 9u);
    EXPECT_EQ(p.ratio, 1);
    EXPECT_EQ(p.decided, verdict::inconclusive);
    EXPECT_EQ(p.reason, "3 blocks, 6 needed; 9 left out, as the machine's speed changed within them");
}

TEST(narrow_enough_test, asks_for_a_narrow_interval_with_a_verdict_or_for_one_far_from_1) {
    EXPECT_TRUE(narrow_enough({0.97, 1.028, 0.95}, 0.03));
    EXPECT_FALSE(narrow_enough({0.96, 1.03, 0.95}, 0.03)) << "too wide";
    EXPECT_FALSE(narrow_enough({0.99, 1.04, 0.95}, 0.03)) << "across the margin";
    EXPECT_TRUE(narrow_enough({1.04, 1.09, 0.95}, 0.03));
    EXPECT_FALSE(narrow_enough({1.04, 1.09, 0.95}, 0.01));
    EXPECT_TRUE(narrow_enough({1.26, 3, 0.95}, 0.03)) << "far above";
    EXPECT_TRUE(narrow_enough({0.2, 0.79, 0.95}, 0.03)) << "far below";
    EXPECT_FALSE(narrow_enough({1.24, 3, 0.95}, 0.03));
    EXPECT_FALSE(narrow_enough({0.2, 0.81, 0.95}, 0.03));
    EXPECT_FALSE(narrow_enough({NAN, NAN, 0.95}, 0.03));
}

TEST(compare_test, a_twin_is_judged_like_any_other_and_never_the_baseline) {
    run r = with({measured("base (A/A)", repeated(20, 7)), measured("base", repeated(10, 7))});
    r.strategies = {{"base", "context", "", false, 0, "", false},
                    {"base (A/A)", "context", "", false, 0, "", true, "base"}};
    const auto all = compare(r);
    EXPECT_EQ(all.at(0).decided, verdict::slower);
    EXPECT_EQ(all.at(0).ratio, 2);
    EXPECT_EQ(all.at(1).decided, verdict::baseline);
}

TEST(compare_test, each_parameter_set_has_its_own_baseline) {
    const run r = with({measured("base", repeated(10, 7), "1"), measured("base", repeated(100, 7), "64"),
                        measured("other", repeated(50, 7), "64"), measured("other", repeated(50, 7), "9")});
    const auto all = compare(r);
    EXPECT_EQ(all.at(0).decided, verdict::baseline);
    EXPECT_EQ(all.at(1).decided, verdict::baseline);
    EXPECT_DOUBLE_EQ(all.at(2).ratio.value(), 0.5);
    EXPECT_EQ(all.at(3).decided, verdict::inconclusive);
    EXPECT_FALSE(all.at(3).ratio);
    EXPECT_THAT(all.at(3).reason, HasSubstr("baseline base was not run here"));
}

TEST(compare_test, a_baseline_that_failed_gives_its_reason) {
    cell base = measured("base", {});
    base.error = "killed by signal 9";
    const run r = with({base, measured("other", repeated(1, 7))});
    const auto all = compare(r);
    EXPECT_EQ(all.at(0).decided, verdict::failed);
    EXPECT_EQ(all.at(0).reason, "killed by signal 9");
    EXPECT_EQ(all.at(1).decided, verdict::inconclusive);
    EXPECT_THAT(all.at(1).reason, HasSubstr("killed by signal 9"));
}

TEST(compare_test, what_has_no_time_was_full_refused_untimed_or_failed) {
    const auto decided = [](const std::string& refusal, const std::string& error, bool bounded) {
        run r = with({measured("base", repeated(1, 7)), measured("other", {})});
        r.strategies.push_back({"other", "context", "", bounded, 64, "", false});
        r.cells[1].refusal = refusal;
        r.cells[1].error = error;
        return compare(r).at(1).decided;
    };
    EXPECT_EQ(decided("full at 64 of 64 slots", "", true), verdict::full);
    EXPECT_EQ(decided("refused context 65 of 71", "", true), verdict::full);
    EXPECT_EQ(decided("refused context 65 of 71", "", false), verdict::refused);
    EXPECT_EQ(decided("not available on this system", "", true), verdict::refused);
    EXPECT_EQ(decided("", "ended by signal 9", true), verdict::failed);
    EXPECT_EQ(decided("", "", true), verdict::untimed);
}

TEST(compare_test, zero_negative_and_infinite_samples_never_reach_a_ratio) {
    const run r =
        with({measured("base", {0, 1, 1, 1, 1, 1, 1, 1}), measured("other", {1, 0, -1, NAN, INFINITY, 2, 2, 2})});
    const comparison c = compare(r).at(1);
    EXPECT_EQ(c.pairs, 3u);
    EXPECT_EQ(c.ratio, 2);
    EXPECT_EQ(c.decided, verdict::inconclusive);
    const run none = with({measured("base", repeated(0, 7)), measured("other", repeated(NAN, 7))});
    EXPECT_EQ(compare(none).at(1).decided, verdict::failed);
}

TEST(compare_test, a_control_is_known_by_kind_and_name) {
    run r = with({measured("base", repeated(1, 7)), measured("other", repeated(1, 7))});
    r.strategies.push_back({"other", "extra", "", false, 0, "", true});
    EXPECT_FALSE(compare(r).at(1).control);
    r.strategies.push_back({"other", "context", "", false, 0, "", true});
    EXPECT_TRUE(compare(r).at(1).control);
}

TEST(compare_test, a_cell_of_no_workload_is_refused) {
    run r = with({measured("base", {1})});
    r.workloads.clear();
    EXPECT_THROW(static_cast<void>(compare(r)), bad_results);
}

}  // namespace
}  // namespace alloclab::report
