// The doctor's judgements on what no fixture of files can change: the speed, the clock and the build.
#include "doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace alloclab::bench {
namespace {

using ::testing::HasSubstr;

std::vector<double> around(std::vector<double> speeds, double noise, std::size_t n = 100) {
    std::mt19937 random(7);
    std::normal_distribution<double> spread(1, noise);
    std::vector<double> times;
    for (std::size_t i = 0; i < n; ++i) times.push_back(speeds[i % speeds.size()] * spread(random));
    return times;
}

TEST(doctor_test, one_steady_speed_is_well) {
    EXPECT_EQ(judge_speed(around({1.1}, 0.01)).judged, state::ok);
    EXPECT_EQ(judge_speed(std::vector<double>(100, 1.1)).judged, state::ok);
}

TEST(doctor_test, a_few_slow_slices_are_no_second_speed) {
    auto times = around({1}, 0.01);
    times[3] = 2;
    times[50] = 5;
    EXPECT_EQ(judge_speed(times).judged, state::ok);
}

TEST(doctor_test, two_speeds_are_told_apart_with_their_factor_and_share) {
    const check c = judge_speed(around({1, 1, 1, 1.6}, 0.01));
    EXPECT_EQ(c.judged, state::warn);
    EXPECT_THAT(c.found, HasSubstr("two speeds: 25 %"));
    EXPECT_THAT(c.found, HasSubstr("1.6 times"));
}

TEST(doctor_test, one_speed_that_wanders_widely_warns_as_such) {
    const check c = judge_speed(around({1}, 0.15));
    EXPECT_EQ(c.judged, state::warn);
    EXPECT_THAT(c.found, HasSubstr("one speed"));
}

TEST(doctor_test, two_speeds_that_differ_by_less_than_pairs_may_are_well) {
    EXPECT_EQ(judge_speed(around({1, 1.05}, 0.001)).judged, state::ok);
}

TEST(doctor_test, too_few_slices_tell_nothing) {
    EXPECT_EQ(judge_speed({}).judged, state::unknown);
    EXPECT_EQ(judge_speed({1, 2, 1}).judged, state::unknown);
}

TEST(doctor_test, the_speed_is_watched_for_as_long_as_was_asked) {
    const auto times = watch_speed(0.1);
    ASSERT_FALSE(times.empty());
    EXPECT_LE(times.size(), 10u);  // slices of 10 ms, fewer where the machine is busy
    for (const double t : times) EXPECT_GT(t, 0);
}

TEST(doctor_test, a_slow_or_coarse_clock_warns) {
    EXPECT_EQ(judge_timer(25, 1).judged, state::ok);
    EXPECT_EQ(judge_timer(1200, 1).judged, state::warn);
    EXPECT_EQ(judge_timer(0, 1000).judged, state::warn);
    EXPECT_THAT(judge_timer(25, 1).found, HasSubstr("25 ns"));
}

TEST(doctor_test, a_build_with_asserts_or_without_optimisation_warns) {
    EXPECT_EQ(judge_build("Release: -O3 -DNDEBUG", false).judged, state::ok);
    EXPECT_EQ(judge_build("RelWithDebInfo: -O2 -g -DNDEBUG", false).judged, state::ok);
    EXPECT_THAT(judge_build("Release: -O3", true).why, HasSubstr("NDEBUG"));
    EXPECT_THAT(judge_build("Debug: -g", false).why, HasSubstr("-O2"));
}

TEST(doctor_test, a_missing_mimalloc_warns_but_spoils_nothing) {
    EXPECT_EQ(judge_mimalloc(209).judged, state::ok);
    EXPECT_THAT(judge_mimalloc(209).found, HasSubstr("2.0.9"));
    EXPECT_EQ(judge_mimalloc(0).judged, state::warn);
    EXPECT_FALSE(judge_mimalloc(0).spoils);
}

TEST(doctor_test, says_which_toolkit_the_build_saw_and_why_cuda_is_off_and_never_warns_of_it) {
    EXPECT_EQ(judge_cuda_toolkit("13.0.48", "").found, "13.0.48");
    EXPECT_EQ(judge_cuda_toolkit("", "it is switched off").found,
              "none seen by this build; CUDA is off: it is switched off");
    EXPECT_EQ(judge_cuda_toolkit("12.4", "it has no cuBLAS").found, "12.4; CUDA is off: it has no cuBLAS");
    for (const char* version : {"", "13.0"})
        for (const char* why : {"", "some reason"}) EXPECT_EQ(judge_cuda_toolkit(version, why).judged, state::ok);
}

TEST(doctor_test, names_the_devices_that_there_are_or_why_there_is_none) {
    const check two = judge_cuda_devices({"NVIDIA H200", "Tesla T4"}, "");
    EXPECT_EQ(two.found, "NVIDIA H200, Tesla T4");
    const check none = judge_cuda_devices({}, "no driver");
    EXPECT_EQ(none.found, "none: no driver");
    EXPECT_EQ(two.judged, state::ok);
    EXPECT_EQ(none.judged, state::ok);
}

TEST(doctor_test, a_malloc_that_is_not_the_c_librarys_warns_with_its_file) {
    EXPECT_EQ(judge_malloc({"/lib/libc.so.6", true}).judged, state::ok);
    EXPECT_EQ(judge_malloc({"/opt/libother.so", false}).judged, state::warn);
    EXPECT_THAT(judge_malloc({"/opt/libother.so", false}).found, HasSubstr("/opt/libother.so"));
}

}  // namespace
}  // namespace alloclab::bench
