#include "alloclab/device/cost_profile.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace alloclab::device {
namespace {

TEST(cost_profile, is_found_by_name) {
    ASSERT_NE(find_cost_profile("default"), nullptr);
    EXPECT_EQ(find_cost_profile("default")->name, "default");
    EXPECT_EQ(find_cost_profile("no such device"), nullptr);
}

TEST(cost_profile, allocation_time_grows_only_above_the_flat_part) {
    const cost_profile cost;
    EXPECT_EQ(cost.allocate_time(0), 14'000);
    EXPECT_EQ(cost.allocate_time(2u << 20), 14'000);
    EXPECT_EQ(cost.allocate_time(3u << 20), 44'000);
    EXPECT_EQ(cost.allocate_time((2u << 20) + (1u << 19)), 29'000);
}

TEST(cost_profile, a_kernel_takes_the_longer_of_arithmetic_and_traffic) {
    cost_profile cost;
    cost.flops = 1e9;
    cost.memory_bytes = 2e9;
    EXPECT_EQ(cost.kernel_time({.flops = 100, .bytes = 20}), 100);
    EXPECT_EQ(cost.kernel_time({.flops = 100, .bytes = 400}), 200);
    EXPECT_EQ(cost.kernel_time({}), 0);
}

TEST(cost_profile, absurd_work_takes_long_but_does_not_overflow) {
    const cost_profile cost;
    EXPECT_GT(cost.kernel_time({.flops = 1e300}), nanoseconds{1} << 60);
    EXPECT_GT(cost.kernel_time({.flops = std::numeric_limits<double>::quiet_NaN()}), -1);
    EXPECT_GT(cost.copy_time(std::numeric_limits<std::size_t>::max()), 0);
    EXPECT_GT(cost.allocate_time(std::numeric_limits<std::size_t>::max()), 0);
}

}  // namespace
}  // namespace alloclab::device
