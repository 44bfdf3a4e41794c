// Result files of Google Benchmark: what is read as a time, a counter or an error, and what is refused where.
#include "alloclab/report/google_benchmark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>

#include "alloclab/report/gates.hpp"
#include "sample_run.hpp"

namespace alloclab::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class google_benchmark_test : public ::testing::Test {
protected:
    const fs::path file =
        fs::path(::testing::TempDir()) / ("alloclab_google_benchmark_" + std::to_string(::getpid()) + ".json");
    void TearDown() override { fs::remove(file); }

    result_file read(const std::string& text) const {
        std::ofstream(file, std::ios::binary) << text;
        return read_results(file);
    }
    result_file read_rows(const std::string& rows) const {
        return read(R"({"context": {"host_name": "h", "num_cpus": 2}, "benchmarks": [)" + rows + "]}");
    }
    std::string refusal_of(const std::string& text) const {
        try {
            static_cast<void>(read(text));
        } catch (const bad_results& e) {
            EXPECT_THAT(e.what(), AllOf(::testing::StartsWith(file.string()), Not(HasSubstr("\n"))));
            return e.what();
        }
        ADD_FAILURE() << "was read: " << text;
        return "";
    }
    std::string refusal_of_rows(const std::string& rows) const {
        return refusal_of("{\"context\": {}, \"benchmarks\": [" + rows + "]}");
    }
    static fs::path shared(const std::string& name) { return fs::path(ALLOCLAB_SHARED_DATA) / name; }
    static const cell& find(const result_file& f, const std::string& name) {
        for (const cell& c : f.results.cells)
            if (c.strategy == name) return c;
        throw std::runtime_error("no cell " + name);
    }
    static std::vector<double> values(const cell& c) {
        std::vector<double> all;
        for (const sample& s : c.samples) all.push_back(s.value);
        return all;
    }
};

TEST_F(google_benchmark_test, repetitions_are_samples_and_aggregates_beside_them_are_not) {
    const fs::path input = shared("gbench_odd_names/gbench_1.7.1_aggregates.json");
    if (!fs::exists(input)) GTEST_SKIP() << "no " << input;
    const result_file f = read_results(input);
    EXPECT_EQ(f.from, origin::google_benchmark);
    ASSERT_EQ(f.results.cells.size(), 2u);
    EXPECT_EQ(f.results.workloads.at(0).unit, "ns");
    const cell& kept = find(f, "BM_kept");
    ASSERT_EQ(kept.samples.size(), 3u);
    EXPECT_DOUBLE_EQ(kept.samples[2].value, 28.067297657002694);
    EXPECT_EQ(kept.samples[2].block, 2u);
    EXPECT_TRUE(kept.counters.empty());
    EXPECT_EQ(find(f, "BM_pause").samples.size(), 3u);
}

TEST_F(google_benchmark_test, aggregates_alone_give_the_median_and_never_a_cv) {
    const result_file f = read_rows(
        R"({"name": "a_mean", "run_name": "a", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 7, "time_unit": "us", "k": 1},
           {"name": "a_median", "run_name": "a", "run_type": "aggregate", "aggregate_name": "median", "real_time": 6, "time_unit": "us", "k": 2},
           {"name": "a_stddev", "run_name": "a", "run_type": "aggregate", "aggregate_name": "stddev", "real_time": 1, "time_unit": "us", "k": 3},
           {"name": "a_cv", "run_name": "a", "run_type": "aggregate", "aggregate_name": "cv", "aggregate_unit": "percentage", "real_time": 0.03, "time_unit": "us", "k": 4},
           {"name": "b_mean", "run_name": "b", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 9},
           {"name": "c_cv", "run_name": "c", "run_type": "aggregate", "aggregate_name": "cv", "real_time": 0.5})");
    EXPECT_THAT(values(find(f, "a")), ElementsAre(6000));
    EXPECT_THAT(find(f, "a").counters, ElementsAre(::testing::Pair("k", 2)));
    EXPECT_THAT(values(find(f, "b")), ElementsAre(9));
    EXPECT_TRUE(find(f, "c").samples.empty());
    EXPECT_THAT(f.results.warnings, ElementsAre(HasSubstr("2 of 3 benchmarks have aggregates alone")));
    const gate_report r = judge(f, f, {parse_gate("time>3%")});
    EXPECT_EQ(overall(r), outcome::inconclusive);
    EXPECT_THAT(r.changes.at(0).reason, HasSubstr("1 repetition, 6 needed"));
}

TEST_F(google_benchmark_test, aggregates_of_old_files_are_known_by_name_only_with_their_sisters) {
    const result_file f = read_rows(
        R"({"name": "a_mean", "real_time": 7}, {"name": "a_median", "real_time": 6}, {"name": "a_stddev", "real_time": 1},
           {"name": "a_BigO", "real_time": 3}, {"name": "a_RMS", "real_time": 4}, {"name": "arithmetic_mean", "real_time": 5})");
    ASSERT_EQ(f.results.cells.size(), 2u);
    EXPECT_THAT(values(find(f, "a")), ElementsAre(6));
    EXPECT_THAT(values(find(f, "arithmetic_mean")), ElementsAre(5));
}

TEST_F(google_benchmark_test, every_time_unit_becomes_nanoseconds) {
    const result_file f = read_rows(
        R"({"name": "s", "real_time": 0.5, "time_unit": "s"}, {"name": "ms", "real_time": 0.5, "time_unit": "ms"},
           {"name": "us", "real_time": 0.5, "time_unit": "us"}, {"name": "ns", "real_time": 0.5, "time_unit": "ns"},
           {"name": "none", "real_time": 0.5})");
    EXPECT_THAT(values(find(f, "s")), ElementsAre(5e8));
    EXPECT_THAT(values(find(f, "ms")), ElementsAre(5e5));
    EXPECT_THAT(values(find(f, "us")), ElementsAre(500));
    EXPECT_THAT(values(find(f, "ns")), ElementsAre(0.5));
    EXPECT_THAT(values(find(f, "none")), ElementsAre(0.5));
    EXPECT_THAT(refusal_of_rows(R"({"name": "a", "real_time": 1, "time_unit": "min"})"),
                AllOf(HasSubstr("/benchmarks/0/time_unit"), HasSubstr("\"ms\""), HasSubstr("found \"min\"")));
}

TEST_F(google_benchmark_test, an_error_row_is_an_error_and_a_skipped_one_a_refusal) {
    const result_file f = read_rows(
        R"({"name": "a", "error_occurred": true, "error_message": "bad \"x\"\n", "real_time": 0, "time_unit": "ns"},
           {"name": "b", "error_occurred": true}, {"name": "c", "skipped": true, "skip_message": "no GPU", "real_time": 0},
           {"name": "d", "error_occurred": false, "real_time": 4})");
    EXPECT_EQ(find(f, "a").error, "bad \"x\"\n");
    EXPECT_TRUE(find(f, "a").samples.empty());
    EXPECT_FALSE(find(f, "b").error.empty());
    EXPECT_EQ(find(f, "c").refusal, "skipped: no GPU");
    EXPECT_THAT(values(find(f, "d")), ElementsAre(4));
}

TEST_F(google_benchmark_test, user_counters_and_memory_figures_are_counters_by_the_median_of_repetitions) {
    const result_file f = read_rows(
        R"({"name": "a", "run_type": "iteration", "repetition_index": 0, "threads": 4, "iterations": 9, "real_time": 1, "cpu_time": 8,
            "peak_bytes": 100, "allocs_per_iter": 2.5, "label": "7", "weird \"λ\"": 1},
           {"name": "a", "run_type": "iteration", "repetition_index": 1, "real_time": 2, "peak_bytes": 300, "allocs_per_iter": 2.5},
           {"name": "a", "run_type": "iteration", "repetition_index": 2, "real_time": 3, "peak_bytes": 200, "allocs_per_iter": NaN})");
    const auto& counters = find(f, "a").counters;
    EXPECT_EQ(counters.size(), 3u);
    EXPECT_EQ(counters.at("peak_bytes"), 200);
    EXPECT_EQ(counters.at("weird \"λ\""), 1);
    EXPECT_TRUE(std::isnan(counters.at("allocs_per_iter")));
}

TEST_F(google_benchmark_test, numbers_that_are_not_finite_are_missing_however_they_are_written) {
    for (const char* spelt : {"NaN", "nan", "-nan", "Infinity", "-Infinity", "inf", "-inf", "-nan(ind)", "\"NaN\"",
                              "\"-inf\"", "\"Infinity\"", "null"}) {
        const result_file f =
            read_rows(std::string(R"({"name": "nan, inf", "real_time": )") + spelt + R"(, "k":)" + spelt + "}");
        ASSERT_EQ(f.results.cells.size(), 1u) << spelt;
        const cell& c = f.results.cells[0];
        EXPECT_EQ(c.strategy, "nan, inf");
        ASSERT_EQ(c.samples.size(), 1u) << spelt;
        EXPECT_TRUE(std::isnan(c.samples[0].value)) << spelt;
        EXPECT_TRUE(std::isnan(c.counters.at("k"))) << spelt;
        EXPECT_EQ(overall(judge(f, f, {parse_gate("time>3%")})), outcome::failed) << spelt;
    }
    EXPECT_THAT(refusal_of_rows(R"({"name": "a", "real_time": nano})"), HasSubstr("line 1, column 60"));
    EXPECT_THAT(refusal_of_rows(R"({"name": "a", "real_time": "fast"})"),
                HasSubstr("/benchmarks/0/real_time: expected a number, found \"fast\""));
}

TEST_F(google_benchmark_test, a_place_after_a_bare_nan_keeps_its_line_and_column) {
    EXPECT_THAT(refusal_of("{\"context\": {},\n\"benchmarks\": [{\"name\": \"a\", \"k\": NaN, oops}]}"),
                HasSubstr("line 2, column 40"));
}

TEST_F(google_benchmark_test, unpleasant_names_are_read_exactly) {
    const result_file f = read_rows(R"({"name": "we<ird>,\"q\"/=cmd|αβ\n\u2028'", "real_time": 1})");
    EXPECT_EQ(f.results.cells.at(0).strategy, "we<ird>,\"q\"/=cmd|αβ\n\u2028'");
    const fs::path input = shared("gbench_odd_names/gbench_1.7.1_valid.json");
    if (!fs::exists(input)) GTEST_SKIP() << "no " << input;
    const result_file odd = read_results(input);
    EXPECT_EQ(odd.results.cells.size(), 7u);
    EXPECT_EQ(find(odd, "we<ird>,\"q\"/=cmd|α€").samples.size(), 1u);
    EXPECT_NEAR(find(odd, "BM_sleep/iterations:10/real_time/threads:4").samples.at(0).value, 5025130.97, 0.01);
}

TEST_F(google_benchmark_test, a_broken_file_is_named_with_line_and_column) {
    const fs::path input = shared("gbench_odd_names/gbench_1.7.1_invalid.json");
    if (!fs::exists(input)) GTEST_SKIP() << "no " << input;
    try {
        static_cast<void>(read_results(input));
        ADD_FAILURE() << "was read";
    } catch (const bad_results& e) {
        EXPECT_THAT(e.what(),
                    AllOf(HasSubstr("gbench_1.7.1_invalid.json: line 133, column 48"), HasSubstr("expected JSON")));
    }
}

TEST_F(google_benchmark_test, csv_is_refused_with_how_to_get_the_json) {
    for (const char* name : {"gbench_odd_names/gbench_1.7.1_odd.csv", "gbench_odd_names/gbench_1.7.1_aggregates.csv"}) {
        const fs::path input = shared(name);
        if (!fs::exists(input)) GTEST_SKIP() << "no " << input;
        try {
            static_cast<void>(read_results(input));
            ADD_FAILURE() << "was read";
        } catch (const bad_results& e) {
            EXPECT_THAT(e.what(),
                        AllOf(HasSubstr("CSV of Google Benchmark"), HasSubstr("--benchmark_out_format=json")));
        }
    }
}

TEST_F(google_benchmark_test, comparing_its_own_examples_finds_what_their_names_say) {
    const fs::path first = shared("gbench_inputs/test1_run1.json"), second = shared("gbench_inputs/test1_run2.json");
    if (!fs::exists(first)) GTEST_SKIP() << "no " << first;
    const result_file base = read_results(first), next = read_results(second);
    EXPECT_EQ(find(base, "BM_NotBadTimeUnit").samples.at(0).value, 0.4e9);
    EXPECT_EQ(find(base, "BM_DifferentTimeUnit").samples.at(0).value, 1e9);
    for (const cell& c : base.results.cells) EXPECT_EQ(c.samples.size(), 1u) << "a fit is no cell: " << c.strategy;
    EXPECT_EQ(overall(judge(base, next, {parse_gate("time>3%")})), outcome::not_comparable) << "no host is named";

    result_file here = base, there = next;
    for (result_file* f : {&here, &there}) f->results.environment = {{"machine", "h"}};
    const gate_report r = judge(here, there, {parse_gate("time>3%")});
    EXPECT_EQ(overall(r), outcome::inconclusive);
    std::map<std::string, double> shares;
    for (const change& c : r.changes) shares[c.base->strategy] = c.share.value();
    EXPECT_DOUBLE_EQ(shares.at("BM_SameTimes"), 0);
    EXPECT_DOUBLE_EQ(shares.at("BM_2xSlower"), 1);
    EXPECT_DOUBLE_EQ(shares.at("BM_100xFaster"), -0.99);
    EXPECT_DOUBLE_EQ(shares.at("BM_DifferentTimeUnit"), 1e-9 - 1) << "1 s in BASE, 1 ns in NEW";
}

TEST_F(google_benchmark_test, every_shared_example_is_read_whole_or_refused_with_a_place) {
    const fs::path inputs = shared("gbench_inputs");
    if (!fs::exists(inputs)) GTEST_SKIP() << "no " << inputs;
    for (const auto& entry : fs::directory_iterator(inputs)) {
        const result_file f = read_results(entry.path());
        EXPECT_GT(f.results.cells.size(), 2u) << entry.path();
        for (const cell& c : f.results.cells)
            for (const sample& s : c.samples) EXPECT_GT(s.value, 0) << entry.path() << c.strategy;
    }
    const result_file repeated = read_results(inputs / "test3_run0.json");
    EXPECT_THAT(values(find(repeated, "BM_Two")), ElementsAre(9, 8));
    EXPECT_TRUE(find(repeated, "BM_One").samples.empty());
    EXPECT_THAT(repeated.results.warnings, ElementsAre(HasSubstr("3 aggregate rows do not say what they are")));
}

TEST_F(google_benchmark_test, many_repetitions_on_one_host_fail_a_time_gate) {
    const auto rows = [](double around) {
        std::string all;
        for (int i = 0; i < 9; ++i)
            all += (i > 0 ? "," : "") + std::string(R"({"name": "a", "run_type": "iteration", "real_time": )") +
                   std::to_string(around * (1 + 0.002 * i)) + "}";
        return all;
    };
    const result_file base = read_rows(rows(10)), slow = read_rows(rows(11));
    EXPECT_EQ(overall(judge(base, slow, {parse_gate("time>3%")})), outcome::failed);
    EXPECT_EQ(overall(judge(base, base, {parse_gate("time>3%")})), outcome::passed);
    EXPECT_EQ(overall(judge(slow, base, {parse_gate("time>3%")})), outcome::passed);
}

TEST_F(google_benchmark_test, the_kinds_of_files_are_told_apart_by_what_is_in_them) {
    write_run(made_run(1), file);
    EXPECT_EQ(read_results(file).from, origin::alloclab);
    EXPECT_EQ(read_results(file).results.cells.size(), made_run(1).cells.size());
    EXPECT_THROW(static_cast<void>(read(R"({"schema": "alloclab-run/99"})")), not_comparable);
    EXPECT_THAT(refusal_of(R"({"schema": 7})"), HasSubstr("/schema"));
    EXPECT_THAT(refusal_of("[]"), HasSubstr("expected an object"));
    EXPECT_THAT(refusal_of("{\"schema\": NaN}"), HasSubstr("line 1, column 12"));
    EXPECT_THAT(refusal_of(""), HasSubstr("empty file"));
    EXPECT_THAT(refusal_of(R"({"context": {}, "benchmarks": {}})"), HasSubstr("/benchmarks: expected an array"));
    EXPECT_THAT(refusal_of_rows("7"), HasSubstr("/benchmarks/0: expected an object, found 7"));
    EXPECT_THAT(refusal_of_rows("{}"), HasSubstr("/benchmarks/0/name: missing"));
    EXPECT_THAT(refusal_of_rows(R"({"name": "a"})"), HasSubstr("/benchmarks/0/real_time: missing"));
    EXPECT_THAT(refusal_of_rows(R"({"name": "a", "error_occurred": 1})"), HasSubstr("expected true or false, found 1"));
}

}  // namespace
}  // namespace alloclab::report
