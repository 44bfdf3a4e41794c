// Gates: what fails, what passes, what cannot be told, and why; never silence.
#include "alloclab/report/gates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sample_run.hpp"

namespace alloclab::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// `factor` slows "fast" alone; `speed` is the machine's, in which every block differs.
struct recipe {
    std::size_t blocks = 9;
    double factor = 1;
    double speed = 1;
    bool calibrated = true;
    std::string machine = "m1";
};

std::vector<sample> times(double around, const recipe& how, double noise) {
    std::vector<sample> all;
    for (std::size_t block = 0; block < how.blocks; ++block) {
        const double drift = how.speed * (1 + 0.3 * std::sin(static_cast<double>(block) * 1.7));
        const double wobble = 1 + noise * std::cos(static_cast<double>(block) * 2.9);
        all.push_back({block, around * drift * wobble, how.calibrated ? 5 * drift : 0, 0, 0});
    }
    return all;
}

result_file made(const recipe& how = {}) {
    run r;
    r.environment = {{"machine", how.machine}, {"build", "Release: -O3"}, {"compiler", "GNU 12"}};
    for (const char* name : {"heap", "fast"}) {
        strategy s{};
        s.name = name;
        s.kind = "context";
        r.strategies.push_back(s);
    }
    r.strategies.push_back(r.strategies[0]);
    r.strategies.back().name = "heap (A/A)";
    r.strategies.back().twin_of = "heap";
    r.workloads.push_back({"slots", "context", "Slots", "", "ns/op", "heap", "live"});
    const auto add = [&](const std::string& name, double ns, double noise) {
        cell c{};
        c.workload = "slots";
        c.strategy = name;
        c.parameters = {{"live", "64"}};
        c.samples = times(ns, how, noise);
        c.counters = {{"peak_bytes", 1000}, {"leaked", 0}, {"instructions", 40}};
        r.cells.push_back(std::move(c));
    };
    add("heap", 20, 0.002);
    add("heap (A/A)", 20, 0.01);
    add("fast", 5 * how.factor, 0.003);
    return {std::move(r), origin::alloclab};
}

cell& fast(result_file& f) { return f.results.cells.at(2); }

std::vector<gate> gates(const std::vector<std::string>& texts) {
    std::vector<gate> all;
    for (const std::string& text : texts) all.push_back(parse_gate(text));
    return all;
}

/// Outcome and the changes of "fast" under one gate.
struct verdict_on {
    verdict_on(const result_file& base, const result_file& next, const std::string& gate_text, bool lenient = false)
        : report{judge(base, next, gates({gate_text}), lenient)}, all{overall(report)} {
        for (const change& c : report.changes)
            if (c.base->strategy == "fast") of_fast = c;
    }
    gate_report report;
    outcome all;
    std::optional<change> of_fast;
};

std::string refusal_of(const std::string& text) {
    try {
        static_cast<void>(parse_gate(text));
    } catch (const bad_gate& e) {
        return e.what();
    }
    return "";
}

TEST(gates_test, an_expression_reads_as_metric_limit_and_percent) {
    const gate g = parse_gate(" peak_bytes > 2.5 % ");
    EXPECT_EQ(g.metric, "peak_bytes");
    EXPECT_DOUBLE_EQ(g.limit, 0.025);
    EXPECT_TRUE(g.relative);
    EXPECT_EQ(to_string(g), "peak_bytes>2.5%");
    EXPECT_EQ(parse_gate("a>b>7").metric, "a>b");
    EXPECT_FALSE(parse_gate("leaked>0").relative);
}

TEST(gates_test, what_is_no_gate_is_refused_with_what_was_expected) {
    EXPECT_THAT(refusal_of("time"), AllOf(HasSubstr("\"time\""), HasSubstr("METRIC>NUMBER")));
    EXPECT_THAT(refusal_of(">3"), HasSubstr("name of a metric"));
    for (const char* text :
         {"leaked>", "leaked>x", "leaked>-1", "leaked>nan", "leaked>inf", "leaked>1 2", "leaked>1%%"})
        EXPECT_THAT(refusal_of(text), HasSubstr("number from 0")) << text;
    EXPECT_THAT(refusal_of("time>3"), HasSubstr("percentage"));
    EXPECT_THAT(refusal_of("a\nb"), Not(HasSubstr("\n")));
}

TEST(gates_test, a_run_held_against_itself_passes_every_gate) {
    const result_file r = made();
    const gate_report report = judge(r, r, gates({"time>3%", "peak_bytes>0", "instructions>0", "leaked>0%"}));
    EXPECT_EQ(overall(report), outcome::passed);
    for (const change& c : report.changes) EXPECT_TRUE(c.state == gate_state::passed || c.state == gate_state::noise);
}

TEST(gates_test, a_counter_fails_above_its_limit_and_passes_at_it) {
    const result_file base = made();
    result_file next = made();
    fast(next).counters["peak_bytes"] = 1030;
    EXPECT_EQ(verdict_on(base, next, "peak_bytes>30").all, outcome::passed);
    EXPECT_EQ(verdict_on(base, next, "peak_bytes>3%").all, outcome::passed);
    EXPECT_EQ(verdict_on(base, next, "peak_bytes>29").all, outcome::failed);
    const verdict_on relative(base, next, "peak_bytes>2.9%");
    EXPECT_EQ(relative.all, outcome::failed);
    EXPECT_DOUBLE_EQ(*relative.of_fast->share, 0.03);
    fast(next).counters["peak_bytes"] = 10;
    EXPECT_EQ(verdict_on(base, next, "peak_bytes>0").all, outcome::passed);
}

TEST(gates_test, from_a_base_of_zero_any_rise_is_above_any_percentage) {
    const result_file base = made();
    result_file next = made();
    fast(next).counters["leaked"] = 1e-3;
    EXPECT_EQ(verdict_on(base, next, "leaked>1000%").all, outcome::failed);
    EXPECT_EQ(verdict_on(base, next, "leaked>1").all, outcome::passed);
}

TEST(gates_test, a_missing_metric_or_one_that_is_no_number_fails_with_its_reason) {
    const result_file base = made();
    const auto reason = [](const result_file& before, const result_file& after, const std::string& gate_text) {
        const verdict_on v(before, after, gate_text);
        EXPECT_EQ(v.all, outcome::failed);
        return v.of_fast ? v.of_fast->reason : "not gated";
    };
    result_file next = made();
    fast(next).counters.erase("leaked");
    EXPECT_THAT(reason(base, next, "leaked>0"), HasSubstr("missing or no number in NEW"));
    fast(next).counters["leaked"] = NAN;
    EXPECT_THAT(reason(base, next, "leaked>0"), HasSubstr("missing or no number in NEW"));
    EXPECT_THAT(reason(next, base, "leaked>0"), HasSubstr("no number in BASE"));
    fast(next).samples.clear();
    EXPECT_THAT(reason(base, next, "time>3%"), HasSubstr("the time is missing or no number in NEW"));
    fast(next).samples = {{0, NAN}, {1, INFINITY}};
    EXPECT_THAT(reason(base, next, "time>3%"), HasSubstr("no number in NEW"));
    EXPECT_THAT(reason(next, base, "time>3%"), HasSubstr("the time is no number in BASE"));
}

TEST(gates_test, a_cell_that_fails_or_is_refused_fails_its_gates_though_its_figures_are_good) {
    const result_file base = made();
    for (const std::string gate_text : {"time>3%", "peak_bytes>0"}) {
        result_file next = made();
        fast(next).error = "ended by signal 11";
        EXPECT_THAT(verdict_on(base, next, gate_text).of_fast->reason, HasSubstr("failed in NEW: ended by signal 11"));
        EXPECT_EQ(verdict_on(base, next, gate_text).all, outcome::failed);
        next = made();
        fast(next).refusal = "full at 64 of 64";
        EXPECT_THAT(verdict_on(base, next, gate_text).of_fast->reason, HasSubstr("refused in NEW: full at 64"));
        EXPECT_EQ(verdict_on(next, next, gate_text).all, outcome::passed) << "refused in both";
        next = made();
        fast(next).error = "killed";
        EXPECT_THAT(verdict_on(next, base, gate_text).of_fast->reason, HasSubstr("failed in BASE: killed"));
    }
}

TEST(gates_test, a_cell_that_is_missing_in_either_file_fails_unless_lenient) {
    const result_file whole = made();
    result_file less = made();
    less.results.cells.pop_back();
    const verdict_on strict(whole, less, "peak_bytes>0");
    EXPECT_EQ(strict.all, outcome::failed);
    EXPECT_EQ(strict.of_fast->reason, "missing in NEW");
    EXPECT_EQ(verdict_on(whole, less, "peak_bytes>0", true).all, outcome::passed);
    EXPECT_EQ(verdict_on(whole, less, "peak_bytes>0", true).of_fast->state, gate_state::ungated);

    const verdict_on more(less, whole, "peak_bytes>0");
    EXPECT_EQ(more.all, outcome::failed);
    ASSERT_EQ(more.report.only_in_next.size(), 1u);
    EXPECT_THAT(to_terminal(more.report, false), HasSubstr("BASE has nothing to hold them against: 1 cell of fast"));
    const verdict_on allowed(less, whole, "peak_bytes>0", true);
    EXPECT_EQ(allowed.all, outcome::passed);
    EXPECT_THAT(to_terminal(allowed.report, false), HasSubstr("only in NEW and so not gated: 1 cell of fast"));
}

TEST(gates_test, lenient_lets_no_missing_metric_pass_and_needs_something_to_gate) {
    const result_file base = made();
    result_file next = made();
    fast(next).counters.clear();
    EXPECT_EQ(verdict_on(base, next, "leaked>0", true).all, outcome::failed);
    next.results.cells.clear();
    EXPECT_EQ(verdict_on(base, next, "leaked>0", true).all, outcome::nothing_matched);
    EXPECT_EQ(verdict_on(base, next, "leaked>0").all, outcome::failed);
}

TEST(gates_test, a_metric_that_no_cell_of_the_base_has_is_nothing_to_gate) {
    const result_file r = made();
    const verdict_on v(r, r, "page_faults>0");
    EXPECT_EQ(v.all, outcome::nothing_matched);
    EXPECT_THAT(summary(v.report), HasSubstr("page_faults"));
    const gate_report both = judge(r, r, gates({"page_faults>0", "leaked>0"}));
    EXPECT_EQ(overall(both), outcome::nothing_matched);
}

TEST(gates_test, a_slower_strategy_fails_a_time_gate_and_a_slower_machine_does_not) {
    const result_file base = made();
    const result_file ten_percent = made({.factor = 1.1}), half_speed = made({.speed = 2}),
                      two = made({.factor = 1.02});
    const verdict_on slow(base, ten_percent, "time>3%");
    EXPECT_EQ(slow.all, outcome::failed);
    EXPECT_EQ(slow.of_fast->relative_to, "heap");
    EXPECT_NEAR(*slow.of_fast->share, 0.1, 0.005);
    ASSERT_TRUE(slow.of_fast->bounds);
    EXPECT_LT(slow.of_fast->bounds->low, 0.1);
    EXPECT_GT(slow.of_fast->bounds->high, 0.1);
    EXPECT_GE(slow.of_fast->bounds->coverage, 0.95);
    EXPECT_EQ(verdict_on(base, half_speed, "time>3%").all, outcome::passed);
    EXPECT_EQ(verdict_on(ten_percent, base, "time>3%").all, outcome::passed);
    EXPECT_EQ(verdict_on(base, two, "time>2%").all, outcome::inconclusive);
    EXPECT_THAT(verdict_on(base, two, "time>2%").of_fast->reason, HasSubstr("holds the limit of 2.0 %"));
}

TEST(gates_test, the_baseline_itself_is_held_against_the_calibration_loop) {
    const result_file base = made();
    result_file next = made({.speed = 3});
    for (sample& s : next.results.cells[0].samples) s.value *= 1.2;
    const gate_report r = judge(base, next, gates({"time>3%"}));
    ASSERT_FALSE(r.changes.empty());
    EXPECT_EQ(r.changes[0].base->strategy, "heap");
    EXPECT_EQ(r.changes[0].state, gate_state::failed);
    EXPECT_EQ(r.changes[0].relative_to, "calibration");
    EXPECT_NEAR(*r.changes[0].share, 0.2, 0.01);

    const result_file bare = made({.calibrated = false});
    const gate_report without = judge(bare, bare, gates({"time>3%"}));
    EXPECT_EQ(overall(without), outcome::inconclusive);
    EXPECT_EQ(without.changes[0].base->strategy, "heap");
    EXPECT_THAT(without.changes[0].reason, HasSubstr("no calibration"));
}

TEST(gates_test, a_lost_baseline_fails_what_was_a_ratio_to_it_unless_calibrations_stand_in) {
    result_file base = made({.calibrated = false}), next = made({.calibrated = false});
    next.results.cells[0].samples.clear();
    EXPECT_THAT(verdict_on(base, next, "time>3%").of_fast->reason, HasSubstr("heap has no time in NEW"));
    EXPECT_THAT(verdict_on(next, base, "time>3%").of_fast->reason, HasSubstr("heap has no time in BASE"));
    EXPECT_EQ(verdict_on(next, next, "time>3%").all, outcome::failed);
    base = made(), next = made();
    next.results.cells.erase(next.results.cells.begin());
    EXPECT_EQ(verdict_on(base, next, "time>3%").of_fast->state, gate_state::passed);
    EXPECT_EQ(verdict_on(base, next, "time>3%").of_fast->relative_to, "calibration");
    EXPECT_EQ(verdict_on(base, next, "time>3%").all, outcome::failed) << "the baseline's own cell is missing";
}

TEST(gates_test, another_unit_or_baseline_is_another_figure) {
    const result_file base = made();
    result_file next = made();
    next.results.workloads[0].baseline = "fast";
    EXPECT_THAT(verdict_on(base, next, "time>3%").of_fast->reason,
                HasSubstr("baseline \"heap\" in BASE, \"fast\" in NEW"));
    next = made();
    next.results.workloads[0].unit = "us/op";
    EXPECT_THAT(verdict_on(base, next, "time>3%").of_fast->reason, HasSubstr("unit \"ns/op\" in BASE"));
}

TEST(gates_test, five_blocks_are_inconclusive_with_the_reason_and_six_are_not) {
    const result_file five = made({.blocks = 5}), six = made({.blocks = 6}), many = made();
    EXPECT_EQ(verdict_on(five, many, "time>3%").all, outcome::inconclusive);
    EXPECT_THAT(verdict_on(five, many, "time>3%").of_fast->reason, AllOf(HasSubstr("BASE"), HasSubstr("5 block")));
    EXPECT_THAT(verdict_on(many, five, "time>3%").of_fast->reason, HasSubstr("NEW"));
    EXPECT_EQ(verdict_on(six, six, "time>3%").of_fast->state, gate_state::passed);
}

TEST(gates_test, a_twin_never_fails_and_shows_the_noise) {
    const result_file base = made();
    result_file next = made();
    next.results.cells[1].counters["peak_bytes"] = 1e9;
    for (sample& s : next.results.cells[1].samples) s.value *= 1.5;
    EXPECT_EQ(verdict_on(base, next, "peak_bytes>0").all, outcome::passed);
    const verdict_on timed(base, next, "time>3%");
    EXPECT_EQ(timed.all, outcome::passed);
    EXPECT_THAT(to_terminal(timed.report, false), HasSubstr("noise seen in 1 figure of A/A rows: up to +50.0 %"));
    EXPECT_THAT(to_terminal(judge(base, next, gates({"peak_bytes>0", "time>3%"})), false),
                HasSubstr("noise seen in 2 figures of A/A rows: up to +99999900.0 %"));
    next.results.cells.erase(next.results.cells.begin() + 1);
    EXPECT_EQ(verdict_on(base, next, "time>3%").all, outcome::passed);
    EXPECT_THAT(verdict_on(next, base, "time>3%").report.only_in_next, IsEmpty());
}

TEST(gates_test, times_of_two_machines_are_refused_and_other_gates_go_on) {
    const result_file base = made();
    result_file next = made({.machine = "m2"});
    const verdict_on timed(base, next, "time>3%");
    EXPECT_EQ(timed.all, outcome::not_comparable);
    EXPECT_THAT(summary(timed.report), HasSubstr("measured on different machines: BASE on m1, NEW on m2"));
    EXPECT_EQ(verdict_on(base, next, "leaked>0").all, outcome::passed);
    fast(next).counters["leaked"] = 1;
    EXPECT_EQ(overall(judge(base, next, gates({"time>3%", "leaked>0"}))), outcome::failed);
}

TEST(gates_test, an_unnamed_machine_is_no_machine) {
    const result_file nameless = made({.machine = ""});
    EXPECT_EQ(verdict_on(nameless, nameless, "time>3%").all, outcome::not_comparable);
    EXPECT_EQ(verdict_on(nameless, made(), "time>3%").all, outcome::not_comparable);
    EXPECT_EQ(verdict_on(nameless, nameless, "leaked>0").all, outcome::passed);
    result_file described = made({.machine = ""});
    described.results.environment.insert(described.results.environment.end(),
                                         {{"cpu", "X"}, {"cores", "2"}, {"system", "Linux"}});
    EXPECT_EQ(verdict_on(described, described, "time>3%").all, outcome::passed);
    described.results.environment[3].second = "unknown";
    EXPECT_EQ(verdict_on(described, described, "time>3%").all, outcome::not_comparable);
}

TEST(gates_test, merged_runs_are_comparable_when_all_their_machines_are_the_same) {
    result_file base = made();
    base.results.machines = {{"a", {{"machine", "m1"}}, {}}, {"b", {{"machine", "m2"}}, {}}};
    result_file next = base;
    std::swap(next.results.machines[0], next.results.machines[1]);
    EXPECT_EQ(verdict_on(base, next, "time>3%").all, outcome::not_comparable) << "each cell on another than before";
    for (cell& c : next.results.cells)
        for (sample& s : c.samples) s.machine = 1;
    EXPECT_EQ(verdict_on(base, next, "time>3%").all, outcome::passed);
    next.results.machines.pop_back();
    EXPECT_EQ(verdict_on(base, next, "time>3%").all, outcome::not_comparable);
}

TEST(gates_test, debug_against_release_leaves_bytes_alone_comparable) {
    const result_file base = made();
    result_file next = made();
    next.results.environment[1].second = "Debug: -g";
    EXPECT_EQ(verdict_on(base, next, "time>3%").all, outcome::not_comparable);
    EXPECT_EQ(verdict_on(base, next, "instructions>0").all, outcome::not_comparable);
    EXPECT_EQ(verdict_on(base, next, "peak_bytes>0").all, outcome::passed);
    next.results.environment[1].second = "Release: -O2";
    const verdict_on flags(base, next, "time>3%");
    EXPECT_EQ(flags.all, outcome::passed);
    EXPECT_THAT(flags.report.notes, ::testing::ElementsAre(HasSubstr("build: \"Release: -O3\" in BASE")));
}

TEST(gates_test, without_gates_all_metrics_are_compared_and_nothing_fails) {
    const result_file base = made();
    result_file next = made({.factor = 1.5});
    fast(next).counters["peak_bytes"] = 900;
    fast(next).counters.erase("leaked");
    const gate_report r = judge(base, next, {});
    EXPECT_EQ(overall(r), outcome::passed);
    const std::string text = to_terminal(r, false);
    EXPECT_THAT(text,
                AllOf(HasSubstr("worse"), HasSubstr("better"), HasSubstr("lost"), HasSubstr("no gate asked for")));
    result_file other = made({.machine = "m2"});
    EXPECT_EQ(overall(judge(base, other, {})), outcome::passed);
    for (cell& c : other.results.cells) c.counters.clear();
    result_file times_only = made();
    for (cell& c : times_only.results.cells) c.counters.clear();
    EXPECT_EQ(overall(judge(times_only, other, {})), outcome::not_comparable);
    result_file nothing = made();
    nothing.results.cells.clear();
    EXPECT_EQ(overall(judge(nothing, base, {})), outcome::nothing_matched);
}

TEST(gates_test, runs_on_different_devices_are_not_comparable_not_even_in_what_they_count) {
    const auto on = [](const char* device, const char* figures) {
        result_file f = made();
        f.results.environment.insert(f.results.environment.end(), {{"device", device}, {"device figures", figures}});
        return f;
    };
    const result_file h200 = on("h200", "launch 2800 ns"), other = on("default", "launch 2800 ns"),
                      recalibrated = on("h200", "launch 3000 ns"), silent = made();
    for (const result_file* next : {&other, &recalibrated}) {
        EXPECT_THROW(static_cast<void>(judge(h200, *next, {})), not_comparable);
        EXPECT_THROW(static_cast<void>(judge(*next, h200, {parse_gate("peak_bytes>0")})), not_comparable);
    }
    try {
        static_cast<void>(judge(h200, other, {}));
    } catch (const not_comparable& e) {
        EXPECT_THAT(e.what(), AllOf(HasSubstr("h200"), HasSubstr("default"), HasSubstr("devices")));
    }
    EXPECT_EQ(overall(judge(h200, h200, {})), outcome::passed);
    EXPECT_EQ(overall(judge(silent, h200, {})), outcome::passed) << "a file that names no device is none of another";
}

TEST(gates_test, files_of_two_programs_are_not_comparable) {
    const result_file ours = made();
    result_file theirs = made();
    theirs.from = origin::google_benchmark;
    EXPECT_THROW(static_cast<void>(judge(ours, theirs, {})), not_comparable);
    EXPECT_THROW(static_cast<void>(judge(theirs, ours, {})), not_comparable);
}

TEST(gates_test, failures_stand_first_and_the_summary_names_gate_and_strategy) {
    const result_file base = made();
    result_file next = made();
    next.results.cells[0].counters["peak_bytes"] = 900;
    fast(next).counters["peak_bytes"] = 1001;
    const gate_report r = judge(base, next, gates({"peak_bytes>0"}));
    EXPECT_EQ(r.changes.front().base->strategy, "fast");
    EXPECT_THAT(summary(r), HasSubstr("FAILED peak_bytes>0 by fast: 1 figure too high or lost"));
    const std::string text = to_terminal(r, false);
    EXPECT_LT(text.find("failed"), text.find("better"));
    EXPECT_THAT(text, HasSubstr("+1 (+0.10 %)"));
    EXPECT_THAT(text, HasSubstr("−100 (−10.0 %)"));
}

TEST(gates_test, unpleasant_names_survive_json_and_harm_no_table) {
    result_file base = made();
    for (auto* where : {&base.results.cells[2].strategy, &base.results.strategies[1].name}) *where = odd_name;
    result_file next = base;
    next.results.cells[2].counters["peak_bytes"] = 2000;
    const gate_report r = judge(base, next, gates({"peak_bytes>0"}));
    const auto document = nlohmann::json::parse(to_json(r));
    EXPECT_EQ(document.at("outcome"), "failed");
    EXPECT_EQ(document.at("changes").at(0).at("strategy"), odd_name);
    EXPECT_EQ(document.at("changes").at(0).at("new"), 2000);
    EXPECT_EQ(document.at("changes").at(0).at("gate"), "peak_bytes>0");
    EXPECT_THAT(to_terminal(r, false), Not(HasSubstr("\"λ\"\n")));
    const std::string markdown = to_markdown(r);
    EXPECT_THAT(markdown, AllOf(HasSubstr(":x:"), Not(HasSubstr("\n</script>"))));
}

TEST(gates_test, a_comment_for_a_pull_request_stays_within_what_is_taken) {
    result_file base = made();
    for (int i = 0; i < 400; ++i) {
        base.results.cells.push_back(base.results.cells[2]);
        base.results.cells.back().parameters["live"] = std::string(300, 'x') + std::to_string(i);
    }
    result_file next = base;
    for (cell& c : next.results.cells) c.counters["leaked"] = 1;
    const gate_report r = judge(base, next, gates({"leaked>0"}));
    const std::string markdown = to_markdown(r);
    EXPECT_LT(markdown.size(), 60'001u);
    EXPECT_THAT(markdown, HasSubstr("more are in the JSON"));
    EXPECT_EQ(nlohmann::json::parse(to_json(r)).at("changes").size(), base.results.cells.size());
}

}  // namespace
}  // namespace alloclab::report
