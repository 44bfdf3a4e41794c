// How one cell is timed: what a compiler or a clock could make of it. Workloads of its own stand in for the
// catalogue's.
#include "worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "keep.hpp"

namespace alloclab::bench {
namespace {

constexpr auto pause = std::chrono::milliseconds(2);
constexpr double pause_ns = 2e6;

void add(catalogue& c, const char* name, double operations, void (*loop)(benchmark::State&)) {
    c.add<type_list<malloc_source>>(
        {.name = name, .kind = "source", .title = "", .question = "", .unit = "ns", .baseline = "", .axis = ""}, {},
        [=](auto, const parameters&) {
            measurement m;
            m.operations = operations;
            m.loop = loop;
            return m;
        });
}

outcome timed(const char* workload) {
    return measure({.workload = workload, .strategy = "malloc", .where = {}, .min_seconds = 0.001});
}

}  // namespace

const catalogue& everything() {
    static const catalogue all = [] {
        catalogue c;
        add(c, "emptied", 1e6, [](benchmark::State& state) {
            for (auto _ : state) continue;
        });
        add(c, "kept", 64, [](benchmark::State& state) {
            for (auto _ : state)
                for (int i = 0; i < 64; ++i) {
                    void* block = std::malloc(96);
                    keep(block);
                    std::free(block);
                }
        });
        add(c, "elsewhere", 1, [](benchmark::State& state) {
            for (auto _ : state) std::jthread([] { std::this_thread::sleep_for(pause); }).join();
        });
        add(c, "in batches", 1000, [](benchmark::State& state) {
            for (auto _ : state) std::this_thread::sleep_for(pause);
        });
        add(c, "broken", 1, [](benchmark::State& state) { state.SkipWithError("it broke"); });
        return c;
    }();
    return all;
}

namespace {

// g++ and clang drop malloc and free in pairs where the pointer does not escape.
TEST(worker, a_loop_that_the_compiler_has_emptied_is_an_error_and_no_triumph) {
    EXPECT_THAT([] { (void)timed("emptied"); },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("nothing was measured")));
}

TEST(worker, keeping_a_pointer_keeps_the_pair_that_made_it) { EXPECT_GT(timed("kept").value, 0.5); }

// google/benchmark#170: by CPU time, work that another thread does would be free.
TEST(worker, what_another_thread_does_counts_as_time) {
    const outcome o = timed("elsewhere");
    EXPECT_TRUE(o.timed);
    EXPECT_GE(o.value, pause_ns);
}

TEST(worker, the_time_of_a_batch_is_shared_by_its_operations) {
    EXPECT_GE(timed("in batches").value, pause_ns / 1000);
    EXPECT_LT(timed("in batches").value, pause_ns);
}

TEST(worker, what_google_benchmark_calls_an_error_is_one) {
    EXPECT_THAT([] { (void)timed("broken"); },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("it broke")));
    EXPECT_THAT(timed("missing").error, testing::HasSubstr("no workload"));
}

TEST(worker, every_timing_has_the_machines_speed_beside_it) { EXPECT_GT(timed("kept").calibration, 0); }

}  // namespace
}  // namespace alloclab::bench
