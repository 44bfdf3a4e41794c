// What charts may leave out of a line without changing its drawing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "charts.hpp"

namespace alloclab::report {
namespace {

using points = std::vector<std::pair<std::size_t, double>>;

TEST(outline_test, a_straight_line_is_its_ends_and_a_kink_is_kept) {
    EXPECT_EQ(outline({}), points{});
    EXPECT_EQ(outline({0, 200, 400, 600}), (points{{0, 0}, {3, 600}}));
    EXPECT_EQ(outline({0, 1, 2, 2, 2}), (points{{0, 0}, {2, 2}, {4, 2}}));
    EXPECT_EQ(outline({1, NAN, 3}), (points{{0, 1}, {2, 3}}));
}

TEST(outline_test, of_a_long_noisy_line_the_extremes_of_every_stretch_are_kept) {
    std::vector<double> values;
    for (int i = 0; i < 100'000; ++i) values.push_back(i * 7919 % 1000);
    values[54'321] = -5;
    values[12'345] = 5000;
    const auto thinned = outline(values, 2000);
    EXPECT_LE(thinned.size(), 2000u);
    EXPECT_GT(thinned.size(), 1000u);
    EXPECT_NE(std::find(thinned.begin(), thinned.end(), std::pair<std::size_t, double>(54'321, -5)), thinned.end());
    EXPECT_NE(std::find(thinned.begin(), thinned.end(), std::pair<std::size_t, double>(12'345, 5000)), thinned.end());
    EXPECT_TRUE(std::is_sorted(thinned.begin(), thinned.end()));
}

}  // namespace
}  // namespace alloclab::report
