// What a row of figures does: exponents, quantiles, and growth told apart from what only warms up or comes back.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "alloclab/report/verdicts.hpp"
#include "sample_run.hpp"

namespace alloclab::report {
namespace {

cell at(const std::string& live, const std::vector<double>& values) {
    cell c;
    c.parameters = {{"live", live}};
    for (std::size_t i = 0; i < values.size(); ++i) c.samples.push_back({i, values[i]});
    return c;
}

/// Cells at these places whose time is 5 x place^exponent, in blocks that drift.
std::vector<cell> growing(double exponent, const std::vector<double>& places, std::size_t blocks) {
    std::vector<cell> all;
    for (const double place : places) {
        std::vector<double> values;
        for (std::size_t block = 0; block < blocks; ++block)
            values.push_back(5 * std::pow(place, exponent) * std::exp2(static_cast<double>(block)));
        all.push_back(at(std::to_string(place), values));
    }
    return all;
}
std::optional<scaling> scaling_of(const std::vector<cell>& cells) {
    std::vector<const cell*> along;
    for (const cell& c : cells) along.push_back(&c);
    return scaling_of(along, "live");
}

TEST(scaling_test, the_exponent_is_that_of_the_power_law_whatever_the_drift_from_block_to_block) {
    for (const double exponent : {-1.0, 0.0, 0.5, 1.0, 2.0}) {
        const auto s = scaling_of(growing(exponent, {1, 4, 64, 1024}, 7));
        ASSERT_TRUE(s);
        EXPECT_NEAR(s->exponent, exponent, 1e-9);
        EXPECT_NEAR(s->bounds.value().low, exponent, 1e-9);
        EXPECT_NEAR(s->bounds.value().high, exponent, 1e-9);
        EXPECT_EQ(s->blocks, 7u);
        EXPECT_EQ(s->from, 1);
        EXPECT_EQ(s->to, 1024);
    }
}

TEST(scaling_test, the_interval_is_that_of_the_exponents_of_the_blocks) {
    std::vector<cell> all = growing(1, {1, 10, 100}, 7);
    for (std::size_t block = 0; block < 7; ++block)  // exponents 1, 1.1 ... 1.6
        all[2].samples[block].value *= std::pow(100, 0.1 * static_cast<double>(block));
    const auto s = scaling_of(all);
    ASSERT_TRUE(s);
    EXPECT_NEAR(s->exponent, 1.3, 1e-9);
    EXPECT_NEAR(s->bounds.value().low, 1, 1e-9);
    EXPECT_NEAR(s->bounds.value().high, 1.6, 1e-9);
}

TEST(scaling_test, wants_3_positive_places_and_a_block_with_all_of_them) {
    EXPECT_FALSE(scaling_of(growing(1, {1, 4}, 7)));
    EXPECT_FALSE(scaling_of(growing(0, {0, 1, 4}, 7)));
    EXPECT_FALSE(scaling_of(growing(0, {-1, 1, 4}, 7)));
    EXPECT_FALSE(scaling_of(growing(1, {4, 4, 4}, 7)));
    EXPECT_FALSE(scaling_of(std::vector<cell>{}));
    std::vector<cell> all = growing(1, {1, 4, 16}, 7);
    all.push_back(at("64", {}));           // refused there
    all.push_back(at("fast", {1, 1, 1}));  // no number
    all.push_back(at("inf", {1, 1, 1}));
    all[0].samples[0].value = NAN;
    all[1].samples.resize(6);
    const auto s = scaling_of(all);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->blocks, 5u);
    EXPECT_EQ(s->to, 16);
    EXPECT_FALSE(s->bounds) << "5 blocks have no interval";
    for (std::size_t i = 0; i < 3; ++i)
        for (sample& at : all[i].samples) at.machine = i;
    EXPECT_FALSE(scaling_of(all)) << "each place on a machine of its own";
}

TEST(quantile_test, is_the_first_time_that_covers_the_share) {
    const latency_curve l{10, 1000, {{20, 0.5}, {30, 0.9}, {500, 0.999}, {9000, 1}}};
    EXPECT_EQ(quantile(l, 0), 20);
    EXPECT_EQ(quantile(l, 0.5), 20);
    EXPECT_EQ(quantile(l, 0.51), 30);
    EXPECT_EQ(quantile(l, 0.99), 500);
    EXPECT_EQ(quantile(l, 1), 9000);
    for (const double outside : {-0.1, 1.1, double(NAN)}) EXPECT_FALSE(quantile(l, outside)) << outside;
    EXPECT_FALSE(quantile({}, 0.5));
    EXPECT_FALSE(quantile({10, 0, {{1, 1}}}, 0.5));
    EXPECT_EQ(quantile({10, 5, {{1, 0.5}, {2, 0.9999999}}}, 1), 2) << "the last one, where a writer rounded";
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

/// `evals` values that rise by `rise` an eval, fall back after each `period`, and climb by `climb` from fall to fall.
std::vector<double> teeth(int evals, int period, double rise, double climb = 0) {
    std::vector<double> values;
    for (int i = 0; i < evals; ++i) values.push_back(rise * (1 + i % period) + climb * (i / period));
    return values;
}

TEST(trend_test, a_saw_tooth_that_returns_to_its_level_is_no_leak) {
    for (const int period : {2, 7, 50, 150, 333}) {
        const auto t = trend_of(teeth(1000, period, 200));
        ASSERT_TRUE(t);
        EXPECT_EQ(t->shape, growth::saw_tooth) << period;
        EXPECT_FALSE(t->leak) << period;
        EXPECT_EQ(t->slope.value().low, 0) << period;
        EXPECT_EQ(t->low, 200);
        EXPECT_EQ(t->high, 200 * period);
    }
    EXPECT_FALSE(trend_of(teeth(1000, 700, 200))->leak) << "a single fall";
}

TEST(trend_test, a_saw_tooth_whose_lows_climb_leaks_what_they_climb) {
    for (const int period : {2, 7, 50, 100}) {
        const auto t = trend_of(teeth(1000, period, 200, 30));
        ASSERT_TRUE(t);
        EXPECT_EQ(t->shape, growth::saw_tooth) << period;
        EXPECT_TRUE(t->leak) << period;
        EXPECT_LE(t->slope.value().low, 30.0 / period) << period;
        EXPECT_GE(t->slope.value().high, 30.0 / period) << period;
    }
    EXPECT_FALSE(trend_of(teeth(1000, 50, 200, -30))->leak);
}

TEST(trend_test, falls_of_all_heights_or_to_lows_all_over_make_no_saw_tooth) {
    std::vector<double> heights, levels;
    for (int i = 0; i < 1000; ++i) {
        const int tooth = i / 50;
        heights.push_back(i % 50 * (1 + tooth % 5));
        const double low = 15 * std::abs(tooth - 10), next = 15 * std::abs(tooth - 9);
        levels.push_back(low + (next + 100 - low) * (i % 50) / 49);  // each fall is one of 100
    }
    EXPECT_EQ(trend_of(heights)->shape, growth::other);
    EXPECT_EQ(trend_of(levels)->shape, growth::other);
    EXPECT_FALSE(trend_of(heights)->leak);
    EXPECT_FALSE(trend_of(levels)->leak);
}

TEST(trend_test, a_staircase_is_a_leak_but_neither_linear_nor_a_saw_tooth) {
    for (const int tread : {10, 100, 125}) {
        std::vector<double> stairs;
        for (int i = 0; i < 1000; ++i) stairs.push_back(200 * tread * (i / tread));
        const auto t = trend_of(stairs);
        ASSERT_TRUE(t);
        EXPECT_EQ(t->shape, growth::other) << tread;
        EXPECT_TRUE(t->leak) << tread;
        EXPECT_LE(t->slope.value().low, 200) << tread;
        EXPECT_GE(t->slope.value().high, 195) << tread;
    }
}

TEST(trend_test, noise_about_a_level_is_no_leak_and_a_leak_under_noise_is_one) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> noise(0, 1000);
    int false_alarms = 0, found = 0, shapes = 0;
    for (int trial = 0; trial < 400; ++trial) {
        std::vector<double> level, leaking;
        for (int i = 0; i < 1000; ++i) {
            const double off = noise(random);
            level.push_back(50'000 + off);
            leaking.push_back(50'000 + off + 20 * i);
        }
        false_alarms += trend_of(level)->leak;
        found += trend_of(leaking)->leak;
        shapes += trend_of(level)->shape == growth::other;
    }
    EXPECT_LE(false_alarms, 4);
    EXPECT_GE(found, 390);
    EXPECT_EQ(shapes, 400);
}

TEST(trend_test, rounding_is_no_leak_and_a_byte_among_gigabytes_is_one) {
    std::vector<double> rounded, byte;
    for (int i = 0; i < 1000; ++i) rounded.push_back(1 + i * 1e-16), byte.push_back(4e9 + i);
    EXPECT_FALSE(trend_of(rounded)->leak);
    EXPECT_EQ(trend_of(rounded)->shape, growth::flat);
    EXPECT_TRUE(trend_of(byte)->leak);
    EXPECT_EQ(trend_of(byte)->slope.value().low, 1);
    EXPECT_EQ(trend_of(byte)->slope.value().high, 1);
}

TEST(trend_test, one_late_step_and_a_fall_are_no_leaks) {
    std::vector<double> step(500, 10);
    step.resize(1000, 20);
    EXPECT_EQ(trend_of(step)->shape, growth::other);
    EXPECT_FALSE(trend_of(step)->leak);
    EXPECT_EQ(trend_of(line(100, -5, 1000))->shape, growth::linear);
    EXPECT_FALSE(trend_of(line(100, -5, 1000))->leak);
    EXPECT_EQ(trend_of(line(100, -5, 1000))->slope.value().low, 0);
}

TEST(trend_test, too_short_or_not_finite_has_no_trend) {
    EXPECT_FALSE(trend_of({}));
    EXPECT_FALSE(trend_of({1, 2, 3}));
    EXPECT_TRUE(trend_of({1, 2, 3, 4}));
    EXPECT_FALSE(trend_of({1, 2, 3, 4, 5, 6, 7})->slope) << "6 values after the warm-up";
    EXPECT_FALSE(trend_of({1, 2, 3, 4, 5, 6, 7})->leak);
    EXPECT_TRUE(trend_of({1, 2, 3, 4, 5, 6, 7, 8})->leak);
    EXPECT_FALSE(trend_of(std::vector<double>(100, NAN)));
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
