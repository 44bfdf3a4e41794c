// Tables whose figures are not the verdicts': latency, growth along an axis, memory, plans, machines, design, claims.
#include "tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "alloclab/report/writers.hpp"
#include "sample_run.hpp"

namespace alloclab::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> texts(const std::vector<entry>& row) {
    std::vector<std::string> all;
    for (const entry& e : row) all.push_back(e.text);
    return all;
}

/// One workload with an axis, the cells given by strategy, place and time.
run along(const std::string& axis, const std::vector<std::tuple<std::string, std::string, double>>& times) {
    run r;
    r.strategies = {{"heap", "context", "shared", false, 0, "", false},
                    {"pool", "context", "single", false, 0, "", false}};
    r.workloads = {{"context/w", "context", "W", "", "ns", "heap", axis}};
    for (const auto& [name, at, value] : times) {
        cell& c = r.cells.emplace_back();
        c.workload = "context/w", c.strategy = name, c.parameters = {{axis, at}};
        for (std::size_t block = 0; block < 7; ++block) c.samples.push_back({block, value});
    }
    return r;
}

TEST(latency_table_test, shows_floor_quantiles_and_count_where_the_most_strategies_have_them) {
    run r = along("live", {{"heap", "1", 10}, {"pool", "1", 10}, {"heap", "2", 10}});
    const latency_curve curve{21, 4000, {{30, 0.5}, {40, 0.9}, {55, 0.99}, {90, 0.999}, {7000, 1}}};
    r.cells[0].latency = r.cells[1].latency = r.cells[2].latency = curve;
    const book b(r);
    const table t = latency_table(b.chapters[0], b.chapters[0].panels[0]);
    EXPECT_THAT(t.caption, HasSubstr("at live = 1"));
    ASSERT_EQ(t.rows.size(), 2u);
    EXPECT_THAT(texts(t.rows[1]), ElementsAre("pool", "21.0", "30.0", "40.0", "55.0", "90.0", "7000", "4000"));
    EXPECT_EQ(heading(t.columns[5]), "p99.9 (ns)");
}

TEST(latency_table_test, is_empty_where_no_operation_was_timed) {
    run r = along("live", {{"heap", "1", 10}});
    r.cells[0].latency = latency_curve{};
    const book b(r);
    EXPECT_THAT(latency_table(b.chapters[0], b.chapters[0].panels[0]).rows, IsEmpty());
}

TEST(times_table_test, has_what_the_device_takes_beside_the_times_at_each_place_that_knows_it) {
    run r =
        along("frames", {{"heap", "1", 10}, {"pool", "1", 5}, {"heap", "2", 10}, {"pool", "2", 5}, {"heap", "4", 9}});
    r.cells[0].counters[device_time] = 5'000'000;
    r.cells[2].counters[device_time] = 4'000'000;
    r.cells[3].counters[device_time] = 3'500'000;
    const book b(r);
    const table t = times_table(b.chapters[0], b.chapters[0].panels[0]);
    ASSERT_EQ(t.columns.size(), 6u);
    EXPECT_EQ(heading(t.columns[4]), "device at 1 (virtual ns/eval)");
    EXPECT_EQ(heading(t.columns[5]), "device at 2 (virtual ns/eval)");
    EXPECT_THAT(texts(t.rows[0]), ElementsAre("heap", "1.00", "1.00", "1.00", "5000000", "4000000"));
    EXPECT_THAT(texts(t.rows[1]), ElementsAre("pool", "0.500 ▼", "0.500 ▼", "–", "–", "3500000"));
    const auto has = [](const std::string& report, const char* text) { return report.find(text) != std::string::npos; };
    for (const std::string& report : {to_terminal(r, false), to_markdown(r), to_html(r)})
        EXPECT_TRUE(has(report, "virtual ns/eval"));
    for (const std::string& report : {to_terminal(r, false), to_markdown(r)}) EXPECT_TRUE(has(report, "3500000"));
}

TEST(times_table_test, has_what_the_device_takes_without_an_axis_too_and_no_column_where_nobody_knows) {
    run r = along("", {{"heap", "1", 10}, {"pool", "1", 5}});
    {
        const book b(r);
        EXPECT_EQ(times_table(b.chapters[0], b.chapters[0].panels[0]).columns.size(), 6u);
    }
    r.cells[1].counters[device_time] = 7;
    const book b(r);
    const table t = times_table(b.chapters[0], b.chapters[0].panels[0]);
    EXPECT_EQ(heading(t.columns.back()), "device (virtual ns/eval)");
    EXPECT_EQ(t.rows[0].back().text, "–");
    EXPECT_EQ(t.rows[1].back().text, "7.00");
}

TEST(scaling_table_test, has_the_exponent_of_each_strategy_along_a_numeric_axis) {
    const run r = along("live", {{"heap", "0", 9},
                                 {"heap", "1", 10},
                                 {"heap", "4", 10},
                                 {"heap", "16", 10},
                                 {"pool", "1", 3},
                                 {"pool", "4", 12},
                                 {"pool", "16", 48}});
    const book b(r);
    const table t = scaling_table(b.chapters[0], b.chapters[0].panels[0]);
    ASSERT_EQ(t.rows.size(), 2u);
    EXPECT_THAT(texts(t.rows[0]), ElementsAre("heap", "0.00", "0.00 to 0.00", "1", "16", "7"));
    EXPECT_THAT(texts(t.rows[1]), ElementsAre("pool", "1.00", "1.00 to 1.00", "1", "16", "7"));
}

TEST(scaling_table_test, is_empty_along_words_and_without_an_axis) {
    for (const run& r :
         {along("model", {{"heap", "a", 1}, {"heap", "b", 2}, {"heap", "c", 3}}), along("", {{"heap", "1", 1}})}) {
        const book b(r);
        EXPECT_THAT(scaling_table(b.chapters[0], b.chapters[0].panels[0]).rows, IsEmpty());
    }
}

TEST(counters_table_test, has_the_fragmentation_by_its_definition_where_both_figures_are_there) {
    run r = along("live", {{"heap", "1", 10}, {"pool", "1", 10}});
    r.cells[0].counters = {{"peak_bytes", 750}, {"reserved_bytes", 1000}};
    r.cells[1].counters = {{"peak_bytes", 750}};
    const book b(r);
    const table t = counters_table(b.chapters[0], b.chapters[0].panels[0]);
    EXPECT_EQ(t.caption, "Counters at live = 1; fragmentation is 1 - peak / reserved");
    EXPECT_EQ(t.columns.back().heading, "fragmentation");
    EXPECT_EQ(t.rows[0].back().text, "25.0 %");
    EXPECT_EQ(t.rows[1].back().text, "–");
    for (const auto& row : t.rows) EXPECT_EQ(row.size(), t.columns.size());
}

TEST(maps_table_test, sets_each_plan_against_its_lower_bound) {
    run r;
    r.maps = {{"model", 12, 3000, 2000, {{"t", 0, 1, 0, 3000}}}, {"empty", 0, 0, 0, {}}};
    const table t = maps_table(r);
    EXPECT_THAT(texts(t.rows[0]), ElementsAre("model", "12", "1", "3000", "2000", "1.500"));
    EXPECT_THAT(texts(t.rows[1]), ElementsAre("empty", "0", "0", "0", "0", "–"));
}

TEST(machines_table_test, shows_what_they_differ_in_alone) {
    run r = along("live", {{"heap", "1", 10}});
    r.environment = {{"kernel", "6.1"}};
    r.machines = {{"one", {{"kernel", "6.1"}, {"cpu", "A"}}, {}},
                  {"two", {{"kernel", "6.1"}, {"cpu", "B"}, {"gpu", "G"}}, {}}};
    r.cells[0].samples[0].machine = 1;
    const table t = machines_table(r);
    std::vector<std::string> headings;
    for (const column& c : t.columns) headings.push_back(c.heading);
    EXPECT_THAT(headings, ElementsAre("machine", "samples", "cpu", "gpu"));
    EXPECT_THAT(texts(t.rows[0]), ElementsAre("one", "6", "A", "–"));
    EXPECT_THAT(texts(t.rows[1]), ElementsAre("two", "1", "B", "G"));
}

TEST(design_table_test, says_what_was_planned_and_what_stayed_open) {
    run r = along("live", {{"heap", "1", 10}, {"pool", "1", 10}});
    r.seed = 5;
    r.plan = {.min_seconds = 0.01,
              .least_blocks = 7,
              .most_blocks = 15,
              .precision = 0.03,
              .max_seconds = 300,
              .shard = "2/8",
              .unmet = {"time was up"}};
    const book b(r);
    std::vector<std::string> lines;
    for (const auto& row : design_table(b).rows) lines.push_back(row[0].text + ": " + row[1].text);
    EXPECT_THAT(lines, ElementsAre("blocks: 7 to 15", "pairs for each ratio: 7", "pairs left out for uneven speed: 0",
                                   "one measurement takes about: 10.0 ms", "narrow enough: ± 3.0 %",
                                   "no block begins after: 300 s", "shard: 2/8", "seed of the order: 5",
                                   "left open: time was up"));
}

TEST(claims_table_test, has_a_row_a_claim_with_where_it_flips_and_leaves_out_what_was_not_measured) {
    const std::vector<claim> claims{
        {.id = "scan",
         .says = "malloc is faster",
         .source = "x#1",
         .ruled = ruling::depends,
         .flips = {{piece::kind::name, "malloc"}, {piece::kind::plain, " wins from live = 16 on"}}},
        {.id = "other", .says = "nothing", .source = "x#2"}};
    const table t = claims_table(claims);
    ASSERT_EQ(t.rows.size(), 1u);
    EXPECT_THAT(texts(t.rows[0]),
                ElementsAre("scan", "malloc is faster",
                            std::string(to_string(ruling::depends)) + ": malloc wins from live = 16 on"));
    EXPECT_THAT(unmeasured(claims), ElementsAre("other"));
}

TEST(tables_test, every_row_is_as_long_as_its_heading) {
    const run r = made_run();
    const book b(r);
    std::vector<table> all{verdicts_table(b), maps_table(r),   strategies_table(r),       environment_table(r),
                           machines_table(r), design_table(b), claims_table(claims_of(b))};
    for (const std::string& kind : kinds(b)) all.push_back(standings_table(b, kind));
    for (const chapter& ch : b.chapters) {
        all.push_back(cells_table(ch));
        for (const panel& p : ch.panels) {
            for (table& t : tables_of(ch, p)) all.push_back(std::move(t));
        }
    }
    EXPECT_GT(all.size(), 30u);
    for (const table& t : all) {
        for (const auto& row : t.rows) EXPECT_EQ(row.size(), t.columns.size()) << t.caption;
    }
}

}  // namespace
}  // namespace alloclab::report
