// run.json: what is written reads back the same, and what is no run is refused with its place.
#include "alloclab/report/results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>

#include "equal.hpp"
#include "sample_run.hpp"

namespace alloclab::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class results_test : public ::testing::Test {
protected:
    const fs::path folder = fs::path(::testing::TempDir()) / ("alloclab_results_" + std::to_string(::getpid()));
    const fs::path file = folder / "run.json";

    void SetUp() override { fs::create_directories(folder); }
    void TearDown() override { fs::remove_all(folder); }

    static std::string text_of(const fs::path& of) {
        std::ifstream in(of, std::ios::binary);
        std::ostringstream out;
        out << in.rdbuf();
        return std::move(out).str();
    }
    void put(const std::string& text) const { std::ofstream(file, std::ios::binary) << text; }
    /// The message of the refusal; it must be one line that begins with the file's name.
    std::string refusal_of_text(const std::string& text) const {
        put(text);
        return refusal_of_file(file);
    }
    static std::string refusal_of_file(const fs::path& of) {
        try {
            static_cast<void>(read_run(of));
        } catch (const bad_results& e) {
            std::string message = e.what();
            EXPECT_THAT(message, ::testing::StartsWith(of.string()));
            EXPECT_THAT(message, Not(HasSubstr("\n")));
            return message;
        }
        ADD_FAILURE() << "was read";
        return "";
    }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
    }
};

TEST_F(results_test, a_run_reads_back_as_it_was) {
    const run r = made_run();
    write_run(r, file);
    EXPECT_EQ(read_run(file), r);
}

TEST_F(results_test, unpleasant_names_read_back_exactly) {
    run r;
    r.strategies.push_back({odd_name, odd_name, "", false, 0, odd_name, true, odd_name});
    r.workloads.push_back({odd_name, odd_name, odd_name, odd_name, "µs", odd_name, odd_name});
    r.machines.push_back({odd_name, {{odd_name, odd_name}}, {odd_name}});
    r.maps.push_back({odd_name, 1, 1, 1, {{odd_name, 0, 0, 0, 1}}});
    r.plan.shard = odd_name;
    r.plan.unmet = {odd_name, ""};
    cell& c = r.cells.emplace_back();
    c.workload = c.strategy = odd_name;
    c.parameters = {{odd_parameter, odd_value}, {odd_name, "\t\r\n\\\x01"}};
    c.counters = {{odd_name, 1}};
    c.parts = {{"Ł", 2}};
    c.series = {{"", {}}};
    c.timeline = {{odd_name, {0.5}}};
    c.refusal = "\x1f";
    c.error = "\"'";
    r.seed = std::numeric_limits<std::uint64_t>::max();
    r.partial = true;
    write_run(r, file);
    EXPECT_EQ(read_run(file), r);
}

TEST_F(results_test, doubles_keep_their_last_bit_and_what_is_not_finite_becomes_null) {
    run r;
    r.strategies.push_back({"s", "", "", false, 0, "", false});
    r.workloads.push_back({"w", "", "", "", "", "", ""});
    const double tiny = std::numeric_limits<double>::denorm_min();
    cell& c = r.cells.emplace_back();
    c.workload = "w", c.strategy = "s";
    c.samples = {{0, 0.1 + 0.2}, {1, tiny}, {2, NAN}, {3, INFINITY}};
    write_run(r, file);
    const auto samples = read_run(file).cells.at(0).samples;
    EXPECT_EQ(samples.at(0).value, 0.1 + 0.2);
    EXPECT_EQ(samples.at(1).value, tiny);
    EXPECT_TRUE(std::isnan(samples.at(2).value));
    EXPECT_TRUE(std::isnan(samples.at(3).value));
    EXPECT_THAT(text_of(file), HasSubstr("null"));
}

TEST_F(results_test, bytes_that_are_no_utf8_are_written_as_valid_json) {
    run r;
    r.command = "a\xFFz";
    write_run(r, file);
    EXPECT_EQ(read_run(file).command, "a\xEF\xBF\xBDz");
}

TEST_F(results_test, unknown_fields_are_ignored_and_absent_ones_keep_their_defaults) {
    put(R"({"schema": "alloclab-run/1", "later": [1], "strategies": [{"name": "s", "colour": 1}], "workloads": [], "cells": []})");
    const run r = read_run(file);
    EXPECT_EQ(r.strategies.at(0).name, "s");
    EXPECT_FALSE(r.strategies.at(0).bounded);
    EXPECT_EQ(r.seed, 0u);
}

TEST_F(results_test, a_missing_file_a_folder_and_an_empty_file_are_told_apart) {
    EXPECT_THAT(refusal_of_file(folder / "none.json"), HasSubstr("No such file"));
    EXPECT_THAT(refusal_of_file(folder), HasSubstr("folder"));
    EXPECT_THAT(refusal_of_text(""), HasSubstr("empty file"));
    EXPECT_THAT(refusal_of_text(" \n"), HasSubstr("empty file"));
}

TEST_F(results_test, every_truncation_is_refused_as_truncated) {
    run r = made_run(1);
    r.cells.resize(2);
    write_run(r, file);
    const std::string whole = text_of(file);
    for (std::size_t length = 1; length + 2 < whole.size(); length += 1 + whole.size() / 97) {
        EXPECT_THAT(refusal_of_text(whole.substr(0, length)), HasSubstr("truncated")) << length;
    }
}

TEST_F(results_test, text_that_is_no_json_is_refused_with_line_and_column) {
    EXPECT_THAT(refusal_of_text("{\n  \"schema\": hello\n}"),
                AllOf(HasSubstr("line 2, column 13"), HasSubstr("expected JSON")));
    EXPECT_THAT(refusal_of_text("<!doctype html>"), HasSubstr("line 1, column 1"));
    EXPECT_THAT(refusal_of_text("{\"seed\": 1e999}"), HasSubstr("range"));
}

TEST_F(results_test, foreign_json_is_refused_by_its_schema) {
    EXPECT_THAT(refusal_of_text("[]"), HasSubstr("expected an object, found array"));
    EXPECT_THAT(refusal_of_text("{}"), AllOf(HasSubstr("/schema"), HasSubstr("alloclab-run/1")));
    EXPECT_THAT(refusal_of_text(R"({"context": {}, "benchmarks": []})"), HasSubstr("Google Benchmark"));
    EXPECT_THAT(refusal_of_text(R"({"schema": "alloclab-run/2"})"), HasSubstr("found \"alloclab-run/2\""));
    EXPECT_THAT(refusal_of_text(R"({"schema": 1})"), HasSubstr("expected a string, found 1"));
}

TEST_F(results_test, files_of_google_benchmark_are_named_as_such) {
    const fs::path inputs = fs::path(ALLOCLAB_SHARED_DATA) / "gbench_inputs";
    if (!fs::is_directory(inputs)) GTEST_SKIP() << "no " << inputs;
    for (const auto& entry : fs::directory_iterator(inputs)) {
        EXPECT_THAT(refusal_of_file(entry.path()), HasSubstr("Google Benchmark")) << entry.path();
    }
}

TEST_F(results_test, a_wrong_type_is_refused_with_its_place) {
    const auto with = [&](const std::string& cells, const std::string& more = "") {
        return refusal_of_text(
            R"({"schema": "alloclab-run/1", "strategies": [], "workloads": [{"name": "w"}], "cells": )" + cells + more +
            "}");
    };
    const std::string cell = R"([{"workload": "w", "strategy": "s", )";
    EXPECT_THAT(with("{}"), HasSubstr("/cells: expected an array, found object"));
    EXPECT_THAT(with("[7]"), HasSubstr("/cells/0: expected an object, found 7"));
    EXPECT_THAT(with(R"([{"strategy": "s"}])"), HasSubstr("/cells/0/workload: missing"));
    EXPECT_THAT(with(R"([{"workload": "x", "strategy": "s"}])"),
                HasSubstr("/cells/0/workload: expected the name of one of /workloads"));
    EXPECT_THAT(with(cell + R"("samples": [{"block": 0, "value": "fast"}]}])"),
                HasSubstr("/cells/0/samples/0/value: expected a number or null, found \"fast\""));
    EXPECT_THAT(with(cell + R"("samples": [{"block": -1, "value": 1}]}])"),
                HasSubstr("/cells/0/samples/0/block: expected a whole number from 0, found -1"));
    EXPECT_THAT(with(cell + R"("samples": [{"block": 0}]}])"), HasSubstr("/cells/0/samples/0/value: missing"));
    EXPECT_THAT(with(cell + R"("series": {"live\nextras": [1, true]}}])"),
                HasSubstr("/cells/0/series/live␊extras/1: expected a number"));
    EXPECT_THAT(with("[]", R"(, "partial": "no")"), HasSubstr("/partial: expected true or false, found \"no\""));
    EXPECT_THAT(with("[]", R"(, "environment": [{"name": "cpu"}])"), HasSubstr("/environment/0/value: missing"));
}

TEST_F(results_test, a_run_that_contradicts_itself_is_refused_with_its_place) {
    const auto broken = [&](auto change) {
        run r = made_run();
        change(r);
        write_run(r, file);
        return refusal_of_file(file);
    };
    EXPECT_THAT(broken([](run& r) { r.cells.push_back(r.cells[3]); }),
                AllOf(HasSubstr(": /cells/"), HasSubstr("expected another than /cells/3, found the same once more")));
    EXPECT_THAT(broken([](run& r) { r.strategies.push_back(r.strategies[2]); }),
                HasSubstr("expected another than /strategies/2"));
    EXPECT_THAT(broken([](run& r) { r.workloads.push_back(r.workloads[0]); }),
                HasSubstr("expected another than /workloads/0"));
    EXPECT_THAT(broken([](run& r) { r.cells[2].workload = "none"; }),
                HasSubstr("/cells/2/workload: expected the name of one of /workloads, found \"none\""));
    EXPECT_THAT(broken([](run& r) { r.cells[2].strategy = "none\n"; }),
                HasSubstr("/cells/2/strategy: expected the name of one of /strategies of kind \"context\", found "
                          "\"none␊\""));
    EXPECT_THAT(broken([](run& r) { r.cells[2].strategy = "per_tensor"; }), HasSubstr("/cells/2/strategy"));
    EXPECT_THAT(broken([](run& r) { r.strategies[1].twin_of = "none"; }),
                HasSubstr("/strategies/1/twin_of: expected the name of one of /strategies, found \"none\""));
    EXPECT_THAT(broken([](run& r) { r.cells[2].samples[1].value = -1; }),
                HasSubstr("/cells/2/samples/1/value: expected a time from 0, found -1"));
    EXPECT_THAT(broken([](run& r) { r.cells[2].samples[1].calibration = -0.5; }),
                HasSubstr("/cells/2/samples/1/calibration: expected a time from 0, found -0.5"));
    EXPECT_THAT(broken([](run& r) { r.cells[2].samples[1].machine = 2; }),
                HasSubstr("/cells/2/samples/1/machine: expected the place of one of 2 /machines, found 2"));
    EXPECT_THAT(broken([](run& r) {
                    r.machines.clear();
                    for (cell& c : r.cells)
                        for (sample& s : c.samples) s.machine = &c == r.cells.data() ? 0 : 1;
                }),
                HasSubstr("/cells/1/samples/0/machine: expected the place of one of no /machines, found 1"));
}

TEST_F(results_test, latencies_that_fall_and_placements_outside_their_map_are_refused) {
    const auto latency = [&](auto change) {
        run r = made_run();
        const auto timed = std::find_if(r.cells.begin(), r.cells.end(), [](const cell& c) { return c.latency; });
        change(*timed->latency);
        write_run(r, file);
        return refusal_of_file(file);
    };
    EXPECT_THAT(latency([](latency_curve& l) { l.ecdf[4].first = 1; }), HasSubstr("/latency/ecdf/4/ns: expected"));
    EXPECT_THAT(latency([](latency_curve& l) { l.ecdf[4].first = NAN; }), HasSubstr("/latency/ecdf/4/ns: expected"));
    EXPECT_THAT(latency([](latency_curve& l) { l.ecdf[4].second = 0.01; }), HasSubstr("/latency/ecdf/4/share"));
    EXPECT_THAT(latency([](latency_curve& l) { l.ecdf[59].second = 1.5; }), HasSubstr("/latency/ecdf/59/share"));
    EXPECT_THAT(latency([](latency_curve& l) { l.ecdf.pop_back(); }), HasSubstr("share: expected 1 at the end"));
    EXPECT_THAT(latency([](latency_curve& l) { l.floor = -1; }), HasSubstr("/latency/floor: expected a time from 0"));

    const auto map = [&](auto change) {
        run r = made_run();
        change(r.maps[0].placements[7]);
        write_run(r, file);
        return refusal_of_file(file);
    };
    EXPECT_THAT(map([](placement& p) { p.last = p.first - 1; }), HasSubstr("/maps/0/placements/7/last: expected"));
    EXPECT_THAT(map([](placement& p) { p.last = 40; }), HasSubstr("to before 40, found 40"));
    EXPECT_THAT(map([](placement& p) { p.bytes = SIZE_MAX; }), HasSubstr("/maps/0/placements/7/bytes: expected"));
    EXPECT_THAT(map([](placement& p) { p.offset = SIZE_MAX; }), HasSubstr("/maps/0/placements/7/bytes: expected"));
}

TEST_F(results_test, writing_replaces_the_whole_file_and_leaves_nothing_beside_it) {
    write_file(file, std::string(100'000, 'a'));
    write_file(file, "short");
    EXPECT_EQ(text_of(file), "short");
    EXPECT_EQ(files(), 1u);
}

TEST_F(results_test, a_target_that_cannot_be_written_throws_and_leaves_nothing) {
    EXPECT_THROW(write_file(folder / "none" / "run.json", "x"), std::system_error);
    fs::create_directory(file);
    try {
        write_file(file, "x");
        ADD_FAILURE() << "wrote over a folder";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::is_a_directory);
        EXPECT_THAT(e.what(), HasSubstr("run.json"));
    }
    EXPECT_EQ(files(), 1u);
}

TEST_F(results_test, a_write_that_fails_half_way_keeps_the_old_file) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
    put("old");
    // What write_file writes beside its target is led to a device without room.
    const fs::path beside = file.string() + "." + std::to_string(::getpid()) + ".partial";
    fs::create_symlink("/dev/full", beside);
    EXPECT_THROW(write_file(file, std::string(100'000, 'x')), std::system_error);
    EXPECT_EQ(text_of(file), "old");
    EXPECT_EQ(files(), 1u);
}

TEST_F(results_test, a_device_is_written_to_and_a_link_keeps_its_place) {
    EXPECT_NO_THROW(write_file("/dev/null", "x"));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    const fs::path target = folder / "target", link = folder / "link";
    write_file(target, "old");
    fs::create_symlink(target, link);
    write_file(link, "new");
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(text_of(target), "new");
}

}  // namespace
}  // namespace alloclab::report
