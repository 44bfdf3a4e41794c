// The curve of latencies: few points, none beside the whole curve, and the quantiles that readers ask for exact.
#include "latency.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace alloclab::bench {
namespace {

std::vector<double> heavy_tailed(std::size_t n) {
    std::mt19937 random(5);
    std::lognormal_distribution<double> body(4, 1.5);
    std::vector<double> times(n);
    for (double& t : times) t = std::round(body(random));
    return times;
}

TEST(ecdf, has_at_most_200_points_that_all_lie_on_the_whole_curve_and_rise_to_1) {
    for (const std::size_t n : {1u, 2u, 7u, 199u, 5000u, 100'000u}) {
        const auto times = heavy_tailed(n);
        const auto curve = ecdf_of(times);
        ASSERT_FALSE(curve.empty());
        EXPECT_LE(curve.size(), 200u);
        EXPECT_EQ(curve.back().second, 1);
        for (std::size_t i = 0; i < curve.size(); ++i) {
            const auto within =
                std::count_if(times.begin(), times.end(), [&](double t) { return t <= curve[i].first; });
            EXPECT_EQ(curve[i].second, static_cast<double>(within) / static_cast<double>(n));
            if (i == 0) continue;
            EXPECT_LT(curve[i - 1].first, curve[i].first);
            EXPECT_LT(curve[i - 1].second, curve[i].second);
        }
    }
}

TEST(ecdf, keeps_the_median_the_tails_and_the_longest_exact) {
    auto times = heavy_tailed(100'000);
    const auto curve = ecdf_of(times);
    std::sort(times.begin(), times.end());
    for (const double share : {0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto at = std::find_if(curve.begin(), curve.end(), [&](const auto& p) { return p.second >= share; });
        ASSERT_NE(at, curve.end());
        EXPECT_EQ(at->first, times[static_cast<std::size_t>(std::ceil(share * 100'000)) - 1]) << share;
    }
}

TEST(ecdf, of_nothing_is_nothing) { EXPECT_TRUE(ecdf_of({}).empty()); }

TEST(latency, counts_the_operations_that_it_timed_and_no_others) {
    std::size_t done = 0;
    const auto curve = time_one_by_one([&done] { ++done; }, 1000);
    EXPECT_EQ(curve.count, 1000u);
    EXPECT_EQ(done, 1010u);  // a hundredth before, untimed
    EXPECT_GT(curve.floor, 0);
}

}  // namespace
}  // namespace alloclab::bench
