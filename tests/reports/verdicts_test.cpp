// Verdicts: the interval covers what it claims, noise alone convinces nobody, a real difference is found, a leak is
// named.
#include "alloclab/report/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "sample_run.hpp"

namespace alloclab::report {
namespace {

using ::testing::HasSubstr;

cell measured(const char* strategy, const std::vector<double>& values, const char* live = "1") {
    cell c{"w", strategy, {{"live", live}}, {}, {}, {}, {}, "", ""};
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
    EXPECT_THAT(c.reason, HasSubstr("1 pair; an interval needs 6"));
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

std::vector<double> line(std::size_t evals, double per_eval, double start = 0) {
    std::vector<double> values;
    for (std::size_t i = 0; i < evals; ++i) values.push_back(start + per_eval * static_cast<double>(i));
    return values;
}

TEST(trend_test, 200_per_eval_reads_exactly_200) {
    const auto t = trend_of(line(1000, 200, 200));
    ASSERT_TRUE(t);
    EXPECT_EQ(t->shape, growth::linear);
    EXPECT_EQ(t->per_eval, 200);
    EXPECT_TRUE(t->leak);
}

// Growth that users reported: llama.cpp#25953 (3.23 and 3.33 MB a token), llama.cpp#27155 (10 MB a cycle).
TEST(trend_test, reported_leaks_are_linear_with_their_rate) {
    for (const double rate : {3.23, 3.33, 10.0}) {
        const auto t = trend_of(line(300, rate, 5000));
        ASSERT_TRUE(t);
        EXPECT_EQ(t->shape, growth::linear) << rate;
        EXPECT_NEAR(t->per_eval, rate, 1e-9);
        EXPECT_TRUE(t->leak);
    }
}

TEST(trend_test, what_only_warms_up_is_flat) {
    std::vector<double> values = line(100, 40);
    values.resize(1000, values.back());
    const auto t = trend_of(values);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->shape, growth::flat);
    EXPECT_EQ(t->per_eval, 0);
    EXPECT_FALSE(t->leak);
}

TEST(trend_test, a_saw_tooth_is_no_leak) {
    for (const int period : {2, 7, 50, 333}) {
        std::vector<double> values;
        for (int i = 0; i < 1000; ++i) values.push_back(200 * (1 + i % period));
        const auto t = trend_of(values);
        ASSERT_TRUE(t);
        EXPECT_EQ(t->shape, growth::other) << period;
        EXPECT_FALSE(t->leak) << period;
        EXPECT_EQ(t->low, 200);
        EXPECT_EQ(t->high, 200 * period);
    }
}

TEST(trend_test, a_staircase_and_a_saw_tooth_that_climb_are_leaks_but_not_linear) {
    std::vector<double> stairs, climbing;
    for (int i = 0; i < 1000; ++i) stairs.push_back(2000 * (i / 10)), climbing.push_back(10 * i + 500 * (i % 4));
    for (const auto& values : {stairs, climbing}) {
        const auto t = trend_of(values);
        ASSERT_TRUE(t);
        EXPECT_EQ(t->shape, growth::other);
        EXPECT_TRUE(t->leak);
    }
}

TEST(trend_test, one_late_step_and_a_fall_are_no_leaks) {
    std::vector<double> step(500, 10);
    step.resize(1000, 20);
    EXPECT_EQ(trend_of(step)->shape, growth::other);
    EXPECT_FALSE(trend_of(step)->leak);
    EXPECT_EQ(trend_of(line(100, -5, 1000))->shape, growth::linear);
    EXPECT_FALSE(trend_of(line(100, -5, 1000))->leak);
}

TEST(trend_test, too_short_or_not_finite_has_no_trend) {
    EXPECT_FALSE(trend_of({}));
    EXPECT_FALSE(trend_of({1, 2, 3}));
    EXPECT_TRUE(trend_of({1, 2, 3, 4}));
    EXPECT_FALSE(trend_of(repeated(NAN, 100)));
}

TEST(made_run_test, only_the_leaky_strategy_leaks) {
    const run r = made_run();
    int leaks = 0;
    for (const cell& c : r.cells) {
        const auto series = c.series.find("live_extras");
        if (series == c.series.end()) continue;
        const auto t = trend_of(series->second);
        ASSERT_TRUE(t);
        EXPECT_EQ(t->leak, c.strategy == "leaky") << c.strategy;
        leaks += t->leak;
    }
    EXPECT_EQ(leaks, 1);
}

}  // namespace
}  // namespace alloclab::report
