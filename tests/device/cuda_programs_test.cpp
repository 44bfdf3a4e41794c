// What programs with CUDA on board need of the machine, and how they end.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "alloclab/device/cuda_device.hpp"

namespace alloclab::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// What the command writes, to either stream, and how it ends.
std::pair<std::string, int> outcome_of(const std::string& command) {
    std::string said;
    std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return {"no pipe", -1};
    std::array<char, 4096> part{};
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) said.append(part.data(), n);
    const int status = ::pclose(pipe);
    return {said, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

std::string libraries_of(const char* program) {
    const auto [said, code] = outcome_of(std::string("'") + ALLOCLAB_OBJDUMP + "' -p '" + program + "' | grep NEEDED");
    EXPECT_EQ(code, 0) << said;
    return said;
}
bool has_real_runtime(const char* program) {
    const auto [said, code] = outcome_of(std::string("grep -c libcudart_static_ '") + program + "'");
    EXPECT_LE(code, 1) << said;
    return code == 0;
}

TEST(cuda_programs, end_in_silence_when_the_driver_is_unloaded_before_the_last_device) {
    const auto [said, code] = outcome_of(ALLOCLAB_CUDA_AT_EXIT);
    EXPECT_EQ(code, 0);
    EXPECT_EQ(said, "");
}

TEST(cuda_programs, never_need_the_drivers_library_to_start) {
    EXPECT_THAT(libraries_of(ALLOCLAB_CUDA_REAL), AllOf(HasSubstr("libcublas"), Not(HasSubstr("libcuda.so"))));
    EXPECT_TRUE(has_real_runtime(ALLOCLAB_CUDA_REAL)) << "or this test looks for the wrong thing";
    EXPECT_THAT(libraries_of(ALLOCLAB_CUDA_PROBE), Not(HasSubstr("libcu"))) << "a probe needs no cuBLAS either";
}

TEST(cuda_programs, on_the_fake_have_no_real_runtime_beside_it) {
    for (const char* program : {ALLOCLAB_CUDA_AT_EXIT, ALLOCLAB_CUDA_FAKE_TEST}) {
        EXPECT_THAT(libraries_of(program), Not(HasSubstr("libcu")));
        EXPECT_FALSE(has_real_runtime(program)) << program;
    }
}

TEST(cuda_programs, say_in_one_line_that_there_is_no_device) {
    for (const char* program : {ALLOCLAB_CUDA_REAL, ALLOCLAB_CUDA_PROBE}) {
        const auto [said, code] = outcome_of(program);
        EXPECT_EQ(code, 0) << said;
        if (said.starts_with("found: ")) GTEST_SKIP() << "there is a device here: " << said;
        EXPECT_THAT(said, StartsWith("no CUDA device: cudaGetDeviceCount: cudaError"));
        EXPECT_EQ(said.find('\n'), said.size() - 1);
    }
}

}  // namespace
}  // namespace alloclab::device
