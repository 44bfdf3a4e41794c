// merge: nothing is lost, nothing counts twice, and times are never paired across runs or machines.
#include "alloclab/report/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "equal.hpp"
#include "sample_run.hpp"

namespace alloclab::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using named = std::pair<std::string, run>;

cell timed(const std::string& strategy, const std::string& live, std::vector<double> values) {
    cell c{};
    c.workload = "slots";
    c.strategy = strategy;
    c.parameters = {{"live", live}};
    for (std::size_t i = 0; i < values.size(); ++i) c.samples.push_back({i, values[i], 1.5, 0, i + 1});
    return c;
}

/// Of two strategies at one live count; `first` makes its times its own.
run small(const std::string& host, double first, const std::string& live = "8") {
    run r;
    r.started = "2026-01-02T03:04:05Z";
    r.seconds = 2;
    r.seed = 42;
    r.command = "alloclab run --quick";
    r.environment = {{"host", host},   {"machine", "id-" + host}, {"compiler", "g++"},
                     {"build", "-O3"}, {"alloclab", "0.1.0"},     {"load at start", "0.1"}};
    r.strategies.resize(2);
    r.strategies[0].name = "heap";
    r.strategies[1].name = "pool";
    r.workloads.push_back({"slots", "context", "Slots", "Which?", "ns/op", "heap", "live"});
    r.cells = {timed("heap", live, {first, first + 0.5}), timed("pool", live, {first + 0.1, first + 0.6})};
    return r;
}

run shard(const std::string& which, double first, const std::string& live) {
    run r = small("one", first, live);
    r.plan.shard = which;
    r.command = "alloclab run --shard " + which + " --quick --resume -o 'it'\\''s a folder/" + live + ".json'";
    return r;
}

const cell& at(const run& r, const std::string& strategy, const std::string& live) {
    for (const cell& c : r.cells)
        if (c.strategy == strategy && c.parameters.at("live") == live) return c;
    throw std::out_of_range(strategy);
}

std::string refusal(std::vector<named> inputs) {
    try {
        static_cast<void>(merge(std::move(inputs)));
    } catch (const bad_results& e) {
        return e.what();
    }
    ADD_FAILURE() << "was merged";
    return "";
}

TEST(merge_test, one_run_keeps_every_cell_as_it_was) {
    const run whole = made_run();
    const run r = merge({{"a", whole}});
    EXPECT_EQ(r.cells, whole.cells);
    EXPECT_EQ(r.strategies, whole.strategies);
    EXPECT_EQ(r.workloads, whole.workloads);
    EXPECT_EQ(r.maps, whole.maps);
    EXPECT_EQ(r.plan, whole.plan);
}

TEST(merge_test, repeated_runs_on_one_machine_keep_their_blocks_apart) {
    const run r = merge({{"a", small("one", 10)}, {"b", small("one", 20)}});
    ASSERT_EQ(r.cells.size(), 2u);
    ASSERT_EQ(r.machines.size(), 1u);
    EXPECT_EQ(
        at(r, "pool", "8").samples,
        (std::vector<sample>{{0, 10.1, 1.5, 0, 1}, {1, 10.6, 1.5, 0, 2}, {2, 20.1, 1.5, 0, 3}, {3, 20.6, 1.5, 0, 4}}));
    EXPECT_EQ(r.seconds, 4);
    EXPECT_EQ(r.command, "alloclab run --quick");
}

TEST(merge_test, a_pair_of_blocks_is_of_one_run_even_when_a_cell_lacks_some) {
    run a = small("one", 10), b = small("one", 20);
    a.cells[1].samples.pop_back();
    const run r = merge({{"a", a}, {"b", b}});
    for (const sample& s : at(r, "pool", "8").samples)
        EXPECT_EQ(at(r, "heap", "8").samples.at(s.block).value, s.value - 0.1) << s.block;
}

TEST(merge_test, machines_are_told_by_their_identity_and_samples_point_to_theirs) {
    run c = small("one", 30);
    c.environment[5].second = "0.7";
    const run r = merge({{"a", small("one", 10)}, {"b", small("two", 20)}, {"c", c}});
    ASSERT_EQ(r.machines.size(), 2u);
    EXPECT_EQ(r.machines[0].name, "one");
    EXPECT_EQ(r.machines[1].name, "two");
    const auto& samples = at(r, "heap", "8").samples;
    EXPECT_EQ(samples.at(0), (sample{0, 10, 1.5, 0, 1}));
    EXPECT_EQ(samples.at(2), (sample{0, 20, 1.5, 1, 1}));
    EXPECT_EQ(samples.at(4), (sample{2, 30, 1.5, 0, 3}));
    // Common facts are the run's; what differed between runs on one machine is kept, each value once.
    EXPECT_THAT(r.environment,
                ElementsAre(std::pair("compiler", "g++"), std::pair("build", "-O3"), std::pair("alloclab", "0.1.0")));
    EXPECT_THAT(r.machines[0].environment,
                Contains(std::pair<const std::string, std::string>("load at start", "0.1; 0.7")));
    EXPECT_THAT(r.machines[1].environment, Contains(std::pair<const std::string, std::string>("load at start", "0.1")));
}

TEST(merge_test, hosts_of_one_name_stay_two_machines) {
    run other = small("one", 20);
    other.environment[1].second = "id-other";
    const run r = merge({{"a", small("one", 10)}, {"b", other}});
    ASSERT_EQ(r.machines.size(), 2u);
    EXPECT_NE(r.machines[0].name, r.machines[1].name);
}

TEST(merge_test, runs_that_do_not_tell_their_machine_are_not_taken_for_one) {
    run a = small("one", 10), b = small("one", 20);
    a.environment.erase(a.environment.begin() + 1);
    b.environment.erase(b.environment.begin() + 1);
    EXPECT_EQ(merge({{"a", a}, {"b", b}}).machines.size(), 2u);
}

TEST(merge_test, a_merged_run_merges_again_to_the_same) {
    run one = small("one", 10), two = small("two", 20), three = small("one", 30);
    one.warnings = {"busy"};
    const run at_once = merge({{"a", one}, {"b", two}, {"c", three}});
    const run in_steps = merge({{"ab", merge({{"a", one}, {"b", two}})}, {"c", three}});
    EXPECT_EQ(in_steps.cells, at_once.cells);
    EXPECT_EQ(in_steps.machines, at_once.machines);
    EXPECT_EQ(in_steps.environment, at_once.environment);
    EXPECT_EQ(in_steps.warnings, at_once.warnings);
}

TEST(merge_test, warnings_of_all_machines_are_said_once_the_others_with_their_machine) {
    run a = small("one", 10), b = small("two", 20);
    a.warnings = {"SMT: on", "busy"};
    b.warnings = {"SMT: on"};
    EXPECT_THAT(merge({{"a", a}, {"b", b}}).warnings, ElementsAre("SMT: on", "one: busy"));
}

TEST(merge_test, a_warning_of_one_fact_of_one_machine_is_said_once) {
    run a = small("one", 10), b = small("one", 20);
    a.warnings = {"load at start: 2.1; busy", "cells: odd"};
    b.warnings = {"load at start: 2.2; busy", "cells: even"};
    EXPECT_THAT(merge({{"a", a}, {"b", b}}).warnings,
                ElementsAre("load at start: 2.1; busy", "cells: odd", "cells: even"));
}

TEST(merge_test, counters_that_differ_are_kept_at_their_highest_with_a_warning_of_cell_and_values) {
    run a = small("one", 10), b = small("two", 20);
    for (run* r : {&a, &b})
        for (cell& c : r->cells) c.counters = {{"faults", r == &a ? 3.0 : 4.0}, {"peak", 64}, {"odd", NAN}};
    b.cells[1].counters["only here"] = 7;
    const run r = merge({{"a.json", a}, {"b.json", b}});
    EXPECT_EQ(at(r, "pool", "8").counters.at("faults"), 4);
    EXPECT_EQ(at(r, "pool", "8").counters.at("only here"), 7);
    EXPECT_THAT(r.warnings,
                ElementsAre("faults differs between runs in 2 cells, the highest is kept: slots heap live=8: "
                            "3 in a.json, 4 in b.json"));
}

TEST(merge_test, means_of_parts_weigh_each_runs_blocks) {
    run a = small("one", 10), b = small("one", 20);
    a.cells[0].parts = {{"build", 3}};
    b.cells[0].parts = {{"build", 9}, {"plan", 1}};
    b.cells[0].samples.resize(1);
    const run r = merge({{"a", a}, {"b", b}});
    EXPECT_DOUBLE_EQ(at(r, "heap", "8").parts.at("build"), (3 * 2 + 9 * 1) / 3.0);
    EXPECT_EQ(at(r, "heap", "8").parts.at("plan"), 1);
}

TEST(merge_test, what_is_taken_once_comes_from_the_first_that_has_it) {
    run a = small("one", 10), b = small("two", 20);
    b.cells[0].series = {{"live", {1, 2}}};
    b.cells[0].timeline = {{"live_bytes", {3}}};
    b.cells[0].latency = latency_curve{20, 9, {{25, 1}}};
    b.maps.resize(1);
    b.maps[0].name = "decode";
    const run r = merge({{"a", a}, {"b", b}, {"c", small("one", 30)}});
    EXPECT_EQ(at(r, "heap", "8").series, b.cells[0].series);
    EXPECT_EQ(at(r, "heap", "8").timeline, b.cells[0].timeline);
    EXPECT_EQ(at(r, "heap", "8").latency, b.cells[0].latency);
    EXPECT_EQ(r.maps, b.maps);
}

TEST(merge_test, a_refusal_on_one_machine_names_it) {
    run b = small("two", 20);
    b.cells[1].samples.clear();
    b.cells[1].refusal = "not available";
    EXPECT_EQ(at(merge({{"a", small("one", 10)}, {"b", b}}), "pool", "8").refusal, "two: not available");
}

TEST(merge_test, a_partial_run_makes_the_whole_partial) {
    run b = small("one", 20);
    EXPECT_FALSE(merge({{"a", small("one", 10)}, {"b", b}}).partial);
    b.partial = true;
    EXPECT_TRUE(merge({{"a", small("one", 10)}, {"b", b}}).partial);
}

TEST(merge_test, all_shards_make_the_whole_in_the_order_of_its_parameters) {
    const run r = merge({{"2", shard("2/3", 20, "64")}, {"1", shard("1/3", 10, "128")}, {"3", shard("3/3", 30, "8")}});
    EXPECT_EQ(r.plan.shard, "");
    EXPECT_THAT(r.plan.unmet, IsEmpty());
    EXPECT_EQ(r.command, "alloclab run --quick");
    std::vector<std::string> order;
    for (const cell& c : r.cells) order.push_back(c.strategy + c.parameters.at("live"));
    EXPECT_THAT(order, ElementsAre("heap8", "pool8", "heap64", "pool64", "heap128", "pool128"));
}

TEST(merge_test, missing_shards_are_named_until_they_come) {
    const run two = merge({{"1", shard("1/4", 10, "8")}, {"3", shard("3/4", 30, "64")}});
    EXPECT_EQ(two.plan.shard, "1,3/4");
    EXPECT_THAT(two.plan.unmet, ElementsAre("2 of 4 shards missing: 2, 4"));
    const run three = merge({{"two", two}, {"2", shard("2/4", 20, "128")}});
    EXPECT_EQ(three.plan.shard, "1,2,3/4");
    EXPECT_THAT(three.plan.unmet, ElementsAre("1 of 4 shards missing: 4"));
    const run all = merge({{"three", three}, {"4", shard("4/4", 40, "256")}});
    EXPECT_EQ(all.plan.shard, "");
    EXPECT_THAT(all.plan.unmet, IsEmpty());
}

TEST(merge_test, shards_may_describe_only_the_workloads_that_they_hold) {
    run a = shard("1/2", 10, "8"), b = shard("2/2", 20, "64");
    workload other = a.workloads[0];
    other.name = "aged";
    b.workloads.insert(b.workloads.begin(), other);
    EXPECT_EQ(merge({{"a", a}, {"b", b}}).workloads, b.workloads);
    EXPECT_EQ(merge({{"b", b}, {"a", a}}).workloads, b.workloads);
}

TEST(merge_test, what_a_run_left_open_is_said_of_it) {
    run a = shard("1/2", 10, "8"), b = shard("2/2", 20, "64");
    b.plan.unmet = {"time was up"};
    EXPECT_THAT(merge({{"a", a}, {"b", b}}).plan.unmet, ElementsAre("shard 2/2: time was up"));
}

TEST(merge_test, shards_of_different_sweeps_are_refused) {
    EXPECT_THAT(refusal({{"a", shard("1/2", 10, "8")}, {"b", shard("2/3", 20, "64")}}),
                AllOf(HasSubstr("a is shard 1/2"), HasSubstr("b is shard 2/3"), HasSubstr("one sweep")));
    run b = shard("2/2", 20, "64");
    b.seed = 43;
    EXPECT_THAT(refusal({{"a", shard("1/2", 10, "8")}, {"b", b}}), HasSubstr("seed 43"));
    for (const char* bad : {"x", "0/2", "3/2", "1/", "/2", "1,/2", "1/2/3", "-1/2", "1"})
        EXPECT_THAT(refusal({{"a", shard(bad, 10, "8")}}), AllOf(StartsWith("a: /design/shard"), HasSubstr(bad)));
}

TEST(merge_test, runs_that_describe_things_differently_or_come_from_other_builds_are_refused) {
    const auto refused = [](auto change) {
        run b = small("two", 20);
        change(b);
        return refusal({{"a.json", small("one", 10)}, {"b.json", b}});
    };
    for (const std::string& text : {refused([](run& b) { b.strategies[1].capacity = 64; }),
                                    refused([](run& b) { b.workloads[0].baseline = "pool"; }),
                                    refused([](run& b) { b.environment[2].second = "clang"; }),
                                    refused([](run& b) { b.environment[3].second = "-O0"; }),
                                    refused([](run& b) { b.environment[4].second = "0.2.0"; })})
        EXPECT_THAT(text, StartsWith("a.json and b.json differ in "));
    EXPECT_THAT(refused([](run& b) { b.strategies[1].capacity = 64; }), HasSubstr("the strategy pool"));
    EXPECT_THAT(refused([](run& b) { b.environment[2].second = "clang"; }),
                AllOf(HasSubstr("g++"), HasSubstr("clang")));
}

TEST(merge_test, runs_on_different_devices_are_refused) {
    for (const char* fact : {"device", "device figures"}) {
        run a = small("one", 10), b = small("two", 20);
        a.environment.emplace_back(fact, "h200");
        b.environment.emplace_back(fact, "default");
        EXPECT_THAT(refusal({{"a.json", a}, {"b.json", b}}),
                    AllOf(HasSubstr(fact), HasSubstr("h200"), HasSubstr("default"), HasSubstr("and device")));
        b.environment.back().second = "h200";
        EXPECT_EQ(fact_of(merge({{"a.json", a}, {"b.json", b}}).environment, fact), "h200");
    }
}

TEST(merge_test, other_revisions_of_one_version_are_a_warning) {
    run a = small("one", 10), b = small("two", 20);
    a.environment.emplace_back("revision", "abc");
    b.environment.emplace_back("revision", "def");
    EXPECT_THAT(merge({{"a", a}, {"b", b}}).warnings, ElementsAre("built from different revisions: abc and def"));
}

TEST(merge_test, one_sample_twice_is_refused_naming_both_files) {
    const run a = small("one", 10), b = small("one", 20);
    EXPECT_THAT(refusal({{"a", a}, {"b", b}, {"copy of a", a}}),
                AllOf(HasSubstr("a and copy of a"), HasSubstr("slots heap live=8")));
    EXPECT_THAT(refusal({{"ab", merge({{"a", a}, {"b", b}})}, {"b", b}}), HasSubstr("ab and b"));
    run twice = a;
    twice.cells[0].samples[1].block = 0;
    EXPECT_THAT(refusal({{"twice", twice}}), AllOf(StartsWith("twice: "), HasSubstr("in one block")));
}

TEST(merge_test, a_sample_of_a_machine_that_is_not_listed_is_refused) {
    run a = small("one", 10);
    a.cells[1].samples[1].machine = 1;
    EXPECT_THAT(refusal({{"a.json", a}}), AllOf(StartsWith("a.json: "), HasSubstr("machine 1")));
    EXPECT_THAT(refusal({}), HasSubstr("nothing to merge"));
}

TEST(merge_test, unpleasant_names_stay_on_one_line) {
    run a = small("one", 10);
    a.strategies[1].name = odd_name;
    a.cells[1].strategy = odd_name;
    EXPECT_THAT(refusal({{"a", a}, {"b", a}}), Not(HasSubstr("\n")));
    run b = a;
    b.strategies[1].capacity = 9;
    EXPECT_THAT(refusal({{"a\n", a}, {"b", b}}), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace alloclab::report
