// Which device --device names, and what is said of words and files that are none.
#include "device_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace alloclab::bench {
namespace {

using device::cost_profile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string head = R"({"device":"NVIDIA T-1","total":16000000000,"driver":13000,"runtime":13000})";
const std::string tail = R"({"done":true})";

std::string op(const std::string& name, double bytes, double p50, double per_second = 0) {
    std::string line = R"({"op":")" + name + R"(","bytes":)" + std::to_string(bytes) +
                       R"(,"n":100,"min_ns":1,"p50_ns":)" + std::to_string(p50) + R"(,"p99_ns":9e9)";
    if (per_second > 0) line += R"(,"per_second":)" + std::to_string(per_second);
    return line + "}";
}

/// A file of these lines, gone at the end.
class lines {
public:
    lines(std::initializer_list<std::string> all)
        : file_(std::filesystem::temp_directory_path() / ("alloclab." + std::to_string(::getpid()) + ".jsonl")) {
        std::ofstream out(file_);
        for (const std::string& line : all) out << line << '\n';
    }
    lines(const lines&) = delete;
    lines& operator=(const lines&) = delete;
    ~lines() { std::filesystem::remove(file_); }
    [[nodiscard]] std::string words() const { return "sim:" + file_.string(); }
    [[nodiscard]] std::string at(int line) const { return file_.string() + ":" + std::to_string(line) + ": "; }

private:
    std::filesystem::path file_;
};

std::string refusal(const std::string& words) {
    try {
        static_cast<void>(find_device(words));
    } catch (const bad_device& e) {
        return e.what();
    }
    ADD_FAILURE() << words << " was taken for a device";
    return "";
}

TEST(device_profile_test, every_built_in_profile_is_found_by_its_name) {
    ASSERT_THAT(built_in_devices(), Not(IsEmpty()));
    for (const device_profile& each : built_in_devices()) {
        const device_profile found = find_device("sim:" + each.name);
        EXPECT_EQ(found.name, each.name);
        EXPECT_EQ(found.cost.name, each.name);
        EXPECT_THAT(found.file, IsEmpty());
        EXPECT_GE(found.cost.capacity, 1'000'000'000u);
    }
    EXPECT_EQ(find_device("sim:default").cost.launch, cost_profile{}.launch);
}

TEST(device_profile_test, words_that_name_no_device_are_refused_with_what_there_is) {
    for (const char* words : {"sim:nonsense", "sim:", "", "h200", "default"})
        EXPECT_THAT(refusal(words), AllOf(HasSubstr("sim:NAME"), HasSubstr("default"), HasSubstr("sim:FILE"))) << words;
    for (const char* words : {"cuda", "cuda:0"})
        EXPECT_THAT(refusal(words), AllOf(HasSubstr("simulated"), HasSubstr("cuda/gpu_check.sh"))) << words;
}

TEST(device_profile_test, each_figure_comes_from_its_operation_at_the_fewest_bytes_or_the_flow_at_the_most) {
    const double mib = 1 << 20;
    const lines file{head,
                     op("cudaMalloc", 256 * mib, 1'100'100),  // the order of lines means nothing
                     op("cudaMalloc", mib, 100'100),
                     op("cudaMalloc", 16 * mib, 500'000),
                     op("cudaFree_idle", 1, 101),
                     op("cudaMallocAsync_parked", 1, 102),
                     op("cudaFreeAsync", 1, 103),
                     op("cudaHostAlloc", mib, 1'000'000),
                     op("cudaHostAlloc", 11 * mib, 3'000'000),
                     op("cudaEventCreate", 0, 104),
                     op("cudaEventDestroy", 0, 105),
                     op("cudaEventRecord", 0, 106.4),
                     op("cudaStreamWaitEvent", 0, 107),
                     op("cudaEventQuery", 0, 108),
                     op("cudaStreamSynchronize_idle", 0, 109),
                     op("copy_call", 4096, 110),
                     op("kernel_launch", 0, 111.6),
                     op("copy_to_device", 1024, 5, 1e9),
                     op("copy_to_device", 64 * mib, 5, 25e9),
                     op("memory", mib, 5, 2e12),
                     op("flops", 0, 5, 30e12),
                     op("cuMemMap", 1, 999),
                     tail};
    const device_profile p = find_device(file.words());
    EXPECT_EQ(p.name, "NVIDIA T-1");
    EXPECT_EQ(p.cost.capacity, 16'000'000'000u);
    EXPECT_THAT(p.defaults, IsEmpty());
    const cost_profile& c = p.cost;
    EXPECT_EQ(c.allocate, 100'100);
    EXPECT_EQ(c.allocate_time(1 << 20), 100'100);
    EXPECT_NEAR(static_cast<double>(c.allocate_time(256 << 20)), 1'100'100, 200);
    EXPECT_THAT((std::vector{c.deallocate, c.allocate_parked, c.deallocate_async, c.create_event, c.destroy_event,
                             c.record, c.wait, c.query, c.synchronize, c.copy, c.launch}),
                ElementsAre(101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 112));
    EXPECT_EQ(c.allocate_host, 1'000'000);
    EXPECT_EQ(c.allocate_host_per_mib, 200'000);
    EXPECT_EQ(c.copy_bytes, 25e9);
    EXPECT_EQ(c.memory_bytes, 2e12);
    EXPECT_EQ(c.flops, 30e12);
}

TEST(device_profile_test, what_a_calibration_lacks_stays_as_it_is_by_default_and_is_said) {
    const lines file{head, op("kernel_launch", 0, 3000), op("cudaMalloc", 1, 9), op("memory", 1, 9), tail};
    const device_profile p = find_device(file.words());
    EXPECT_EQ(p.cost.launch, 3000);
    EXPECT_EQ(p.cost.record, cost_profile{}.record);
    EXPECT_EQ(p.cost.memory_bytes, cost_profile{}.memory_bytes);
    EXPECT_EQ(p.cost.allocate_per_mib, cost_profile{}.allocate_per_mib) << "one size tells no growth";
    for (const char* name : {"record", "memory_bytes", "allocate_per_mib", "flops"})
        EXPECT_NE(std::find(p.defaults.begin(), p.defaults.end(), name), p.defaults.end()) << name;
    for (const char* name : {"launch", "allocate"})
        EXPECT_EQ(std::find(p.defaults.begin(), p.defaults.end(), name), p.defaults.end()) << name;
    const auto facts = p.facts();
    ASSERT_EQ(facts.size(), 3u);
    EXPECT_THAT(facts[2].second, HasSubstr("record"));
}

TEST(device_profile_test, the_facts_name_the_device_and_differ_with_every_figure) {
    const device_profile p = find_device("sim:default");
    ASSERT_EQ(p.facts().size(), 2u);
    EXPECT_THAT(p.facts()[0].second, AllOf(HasSubstr("simulated"), HasSubstr("default")));
    EXPECT_THAT(p.facts()[1].second, HasSubstr("launch " + std::to_string(p.cost.launch) + " ns"));
    device_profile other = p;
    other.cost.allocate_host_per_mib += 1;
    EXPECT_NE(other.facts()[1], p.facts()[1]);
    other = p;
    other.cost.flops *= 1.01;
    EXPECT_NE(other.facts()[1], p.facts()[1]);
    other = p;
    other.cost.capacity += 1;
    EXPECT_NE(other.facts()[1], p.facts()[1]);
}

TEST(device_profile_test, a_bad_file_is_refused_by_file_and_line_with_what_was_expected) {
    EXPECT_THAT(refusal("sim:/nonexistent/file.jsonl"), HasSubstr("/nonexistent/file.jsonl"));
    EXPECT_THAT(refusal("sim:/dev/null"), HasSubstr("regular file"));
    const struct {
        std::vector<std::string> text;
        int line;
        const char* expected;
    } bad[]{
        {{}, 1, "\"device\""},
        {{head}, 2, "\"done\""},
        {{head, op("kernel_launch", 0, 1)}, 3, "\"done\""},
        {{tail}, 1, "\"device\""},
        {{R"({"device":"","total":16000000000})"}, 1, "\"device\""},
        {{R"({"device":"x"})", tail}, 1, "\"total\""},
        {{R"({"device":"x","total":-1})", tail}, 1, "\"total\""},
        {{R"({"device":"x","total":1e300})", tail}, 1, "\"total\""},
        {{R"({"skip":"no CUDA device"})"}, 1, "no CUDA device"},
        {{head, "op kernel_launch", tail}, 2, "JSON object"},
        {{head, "[1]", tail}, 2, "JSON object"},
        {{head, R"({"op":"kernel_launch","bytes":0)", tail}, 2, "JSON object"},
        {{head, R"({"bytes":0,"p50_ns":3})", tail}, 2, "\"op\""},
        {{head, R"({"op":7})", tail}, 2, "\"op\""},
        {{head, R"({"op":"kernel_launch","bytes":0})", tail}, 2, "\"p50_ns\""},
        {{head, R"({"op":"kernel_launch","bytes":0,"p50_ns":"3"})", tail}, 2, "\"p50_ns\""},
        {{head, R"({"op":"kernel_launch","bytes":0,"p50_ns":-3})", tail}, 2, "\"p50_ns\""},
        {{head, R"({"op":"kernel_launch","p50_ns":3})", tail}, 2, "\"bytes\""},
        {{head, R"({"op":"flops","bytes":0,"p50_ns":3,"per_second":0})", tail}, 2, "\"per_second\""},
        {{head, tail, op("kernel_launch", 0, 1)}, 3, "nothing behind"},
        {{head, head, tail}, 2, "\"op\""},
    };
    for (const auto& each : bad) {
        const std::string name =
            (std::filesystem::temp_directory_path() / ("alloclab.bad." + std::to_string(::getpid()))).string();
        {
            std::ofstream out(name);
            for (const std::string& line : each.text) out << line << '\n';
        }
        EXPECT_THAT(refusal("sim:" + name),
                    AllOf(HasSubstr(name + ":" + std::to_string(each.line) + ": expected "), HasSubstr(each.expected)));
        std::filesystem::remove(name);
    }
}

}  // namespace
}  // namespace alloclab::bench
