// What the head of a report says beyond times: who refuses where and why, what stays flat, how much of an eval is at
// stake; and that a refusal is never drawn as a failure.
#include "findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alloclab/report/writers.hpp"
#include "charts.hpp"

namespace alloclab::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using parameters = std::map<std::string, std::string>;

cell refused(const std::string& strategy, const parameters& where, const std::string& why) {
    cell c;
    c.workload = "context/w", c.strategy = strategy, c.parameters = where, c.refusal = why;
    return c;
}
cell timed(const std::string& strategy, const parameters& where, double value) {
    cell c = refused(strategy, where, "");
    for (std::size_t block = 0; block < 7; ++block) c.samples.push_back({block, value});
    return c;
}

/// heap is the baseline, pool and scan (a control) have 64 slots, hybrid has no end.
run with(std::vector<cell> cells, const std::string& axis = "live") {
    run r;
    r.strategies = {{"heap", "context", "shared", false, 0, "", false},
                    {"pool", "context", "single", true, 64, "nullptr", false},
                    {"hybrid", "context", "single", false, 0, "", false},
                    {"scan", "context", "shared", true, 64, "nullptr", true}};
    r.workloads = {{"context/w", "context", "W", "", "ns", "heap", axis}};
    r.cells = std::move(cells);
    return r;
}

std::vector<std::string> limits(const run& r) {
    const book b(r);
    std::vector<std::string> texts;
    for (const sentence& s : b.findings.at(0).limits) texts.push_back(plain(s));
    return texts;
}
std::vector<std::string> refusals(const run& r) {
    const book b(r);
    std::vector<std::string> texts;
    for (const outage& o : b.chapters.at(0).refusals) texts.push_back(plain(told(b.chapters.at(0), o)));
    return texts;
}

/// What a page shows, without its style and scripts.
std::string body(const run& r) {
    std::string page = to_html(r, "none");
    page.erase(0, page.find("<body>"));
    for (std::size_t at = 0; (at = page.find("<script", at)) != std::string::npos;)
        page.erase(at, page.find("</script>", at) - at);
    return page;
}

/// Both bounded strategies are full from 64 on.
run full_from_64() {
    std::vector<cell> cells;
    for (const char* live : {"8", "1024", "64", "256"}) {
        const bool room = live == std::string("8");
        for (const char* name : {"heap", "hybrid"}) cells.push_back(timed(name, {{"live", live}}, 10));
        for (const char* name : {"pool", "scan"}) {
            cells.push_back(room ? timed(name, {{"live", live}}, 5)
                                 : refused(name, {{"live", live}}, "full at 64 of 64 slots"));
        }
    }
    return with(std::move(cells));
}

std::vector<std::string> sentences(const run& r) {
    const book b(r);
    std::vector<std::string> texts;
    for (const sentence& s : b.findings.at(0).sentences) texts.push_back(plain(s));
    return texts;
}

/// heap 10, hybrid 5, pool as given, one setting.
run three(const std::vector<double>& pool) {
    run r = with({timed("heap", {}, 10), timed("hybrid", {}, 5), timed("pool", {}, 0)}, "");
    for (std::size_t i = 0; i < pool.size(); ++i) r.cells[2].samples[i].value = pool[i];
    r.cells[2].samples.resize(pool.size());
    return r;
}

TEST(winner_test, is_compared_with_the_runner_up_block_by_block) {
    EXPECT_THAT(sentences(three({6, 6, 6, 6, 6, 6, 6})),
                ElementsAre("Fastest: hybrid takes 50 % less time than heap (ratio 0.500, interval 0.500 to 0.500).",
                            "Runner-up: pool takes 20 % more time than hybrid (slower)."));
}

TEST(winner_test, is_not_said_to_be_ahead_of_what_is_not_told_apart_from_it) {
    EXPECT_THAT(sentences(three({4, 6, 4.9, 5.1, 5.1, 6, 5.2})),
                ElementsAre("Fastest: hybrid takes 50 % less time than heap (ratio 0.500, interval 0.500 to 0.500).",
                            "Not told apart from it: pool."));
}

TEST(winner_test, is_said_to_be_ahead_only_where_most_settings_tell_the_two_apart) {
    std::vector<cell> cells;
    for (const char* live : {"1", "2", "3"}) {
        cells.push_back(timed("heap", {{"live", live}}, 10));
        cells.push_back(timed("hybrid", {{"live", live}}, 5));
        cells.push_back(timed("pool", {{"live", live}}, live == std::string("1") ? 6 : 5));
    }
    EXPECT_THAT(sentences(with(std::move(cells)))[1], "Slower than it in few settings, level in the others: pool.");
}

TEST(winner_test, is_no_control_and_no_twin_and_neither_of_them_is_the_slowest) {
    for (const double value : {1.0, 100.0}) {
        run r = three({6, 6, 6, 6, 6, 6, 6});
        r.strategies.push_back({"heap (A/A)", "context", "shared", false, 0, "", true, "heap"});
        r.cells.push_back(timed("scan", {}, value));
        r.cells.push_back(timed("heap (A/A)", {}, value));
        const std::string control = value < 10
                                        ? "Controls, against the baseline: scan takes 0.100 times as long (faster)."
                                        : "Controls, against the baseline: scan takes 10.0 times as long (slower).";
        EXPECT_THAT(sentences(r), ElementsAre(::testing::StartsWith("Fastest: hybrid"),
                                              ::testing::StartsWith("Runner-up: pool"), control));
    }
}

TEST(winner_test, that_loses_in_one_setting_is_told_by_settings_and_not_by_a_mean) {
    std::vector<cell> cells;
    for (const char* live : {"1", "8", "63", "64"}) {
        cells.push_back(timed("heap", {{"live", live}}, 10));
        cells.push_back(timed("hybrid", {{"live", live}}, live == std::string("63") ? 20 : 2));
    }
    const run r = with(std::move(cells));
    EXPECT_THAT(
        sentences(r),
        ElementsAre("Fastest by the mean, not everywhere: hybrid is faster than heap at live = 1, 8, 64 and slower "
                    "at live = 63 (ratios 0.200 to 2.00)."));
}

TEST(winner_test, is_not_named_from_fewer_blocks_than_an_interval_takes) {
    run r = three({6, 6, 6, 6, 6, 6, 6});
    for (cell& c : r.cells) c.samples.resize(4);
    EXPECT_THAT(sentences(r), ElementsAre("No verdict: 4 blocks, 6 needed."));
    const book b(r);
    ASSERT_EQ(notices(b).size(), 1u);
    EXPECT_EQ(notices(b)[0].lead + ": " + notices(b)[0].text, "No verdict: 4 blocks, 6 needed.");
}

TEST(twin_test, follows_the_baseline_in_every_table_and_is_no_control) {
    run r = three({6, 6, 6, 6, 6, 6, 6});
    r.strategies.push_back({"heap (A/A)", "context", "shared", false, 0, "", true, "heap"});
    r.cells.push_back(timed("heap (A/A)", {}, 10));
    for (cell& c : r.cells) c.counters = {{"source_calls", 1}};
    const book b(r);
    const chapter& ch = b.chapters[0];
    for (const table& t : {times_table(ch, ch.panels[0]), counters_table(ch, ch.panels[0]), cells_table(ch),
                           standings_table(b, "context")}) {
        EXPECT_EQ(t.rows[0][0].text, "heap");
        EXPECT_EQ(t.rows[1][0].text, "heap (A/A)");
        EXPECT_EQ(role(t.rows[1][0]), "noise check");
        EXPECT_EQ(role(t.rows[0][0]), "");
    }
    const table verdicts = verdicts_table(b);
    EXPECT_EQ(verdicts.rows[0][2].text, "1.00 =");
    EXPECT_EQ(verdicts.rows[0][3].text, "hybrid 0.500, pool 0.600");
}

TEST(twin_test, is_counted_as_noise_and_in_no_other_figure) {
    run r = with({}, "live");
    r.strategies.push_back({"heap (A/A)", "context", "shared", false, 0, "", true, "heap"});
    for (int live = 0; live < 46; ++live) {
        const parameters where{{"live", std::to_string(live)}};
        r.cells.push_back(timed("heap", where, 10));
        r.cells.push_back(timed("heap (A/A)", where, live == 7 ? 12 : 10));
    }
    {
        const book b(r);
        EXPECT_EQ(
            in_words(b.null),
            "A/A: 1 of 46 rows called different, 45 the same, 0 too noisy to tell; 5 % different is what chance allows "
            "at most.");
        EXPECT_EQ(b.ratios, 0u);
        EXPECT_TRUE(notices(b).empty());
    }
    for (std::size_t i = 1; i < 20; i += 2) {
        for (sample& s : r.cells[i].samples) s.value = 12;
    }
    const book b(r);
    EXPECT_EQ(b.null.different, 10u);
    ASSERT_EQ(notices(b).size(), 1u);
    EXPECT_THAT(notices(b)[0].text, AllOf(HasSubstr("10 of 46 rows called different, 36 the same"),
                                          HasSubstr("so this is more than chance")));
}

TEST(notices_test, say_what_was_left_open_and_on_how_many_machines) {
    run r = three({6, 6, 6, 6, 6, 6, 6});
    r.partial = true;
    r.plan.unmet = {"37 of 410 ratios are wider than ±3 %"};
    r.warnings = {"one: busy"};
    r.machines = {{"one", {}, {"busy"}}, {"two", {}, {"throttled"}}};
    const book b(r);
    std::vector<std::string> texts;
    for (const notice& n : notices(b)) texts.push_back(n.lead + ": " + n.text);
    EXPECT_THAT(texts, ElementsAre("Partial run: it ended before all cells were measured.",
                                   "Left open: 37 of 410 ratios are wider than ±3 %",
                                   "Merged: 2 machines (one and two); each ratio is formed within one of them.",
                                   "Warning: one: busy", "Warning, two: throttled"));
    for (const std::string& text : {to_markdown(r), to_terminal(r, false), to_html(r, "none")})
        EXPECT_THAT(text, AllOf(HasSubstr("37 of 410 ratios"), HasSubstr("2 machines"), HasSubstr("hrottled")));
}

TEST(method_test, counts_the_pairs_that_the_machine_spoilt) {
    run r = three({6, 6, 6, 6, 6, 6, 6});
    for (cell& c : r.cells) {
        for (sample& s : c.samples) s.calibration = 1;
    }
    r.cells[1].samples[3].calibration = 1.3;
    const book b(r);
    EXPECT_EQ(b.uneven, 1u);
    EXPECT_EQ(b.fewest_pairs, 6u);
    const auto lines = method(b);
    EXPECT_THAT(lines, ::testing::Contains(::testing::StartsWith("Another 1 pair was left out")));
    EXPECT_THAT(lines, ::testing::Contains(HasSubstr("It takes 6 pairs or more.")));
}

TEST(method_test, says_on_which_device_times_are_virtual_where_there_are_such) {
    run r = full_from_64();
    r.environment.emplace_back("device", "simulated: h200");
    EXPECT_THAT(method(book(r)), ::testing::Not(::testing::Contains(HasSubstr("virtual"))));
    r.cells[0].counters[device_time] = 5;
    EXPECT_THAT(method(book(r)), ::testing::Contains(::testing::AllOf(HasSubstr("virtual"), HasSubstr("h200"))));
}

TEST(refusals_test, of_one_reason_are_one_sentence_with_the_settings_and_the_strategies) {
    EXPECT_THAT(
        refusals(full_from_64()),
        ElementsAre("Full at 64 of 64 slots from live = 64 on (measured: 64, 256, 1024): pool, scan (control)."));
    EXPECT_THAT(limits(full_from_64()),
                ElementsAre("pool and scan (control) are full from live = 64 on; the other 2 never refuse."));
}

TEST(refusals_test, that_are_not_the_last_on_the_axis_are_listed) {
    std::vector<cell> cells;
    for (const char* live : {"1", "2", "3", "4"}) {
        cells.push_back(timed("heap", {{"live", live}}, 10));
        cells.push_back(live == std::string("4") ? timed("pool", {{"live", live}}, 5)
                                                 : refused("pool", {{"live", live}}, "full at 64 of 64 slots"));
    }
    EXPECT_THAT(limits(with(std::move(cells))),
                ElementsAre("pool is full at live = 1, 2, 3; the other one never refuses."));
}

TEST(refusals_test, name_the_other_parameters_and_join_reasons_that_differ_in_figures) {
    std::vector<cell> cells;
    for (const int contexts : {7, 4}) {
        for (const int states : {9, 10, 16}) {
            const parameters where{{"contexts", std::to_string(contexts)}, {"states", std::to_string(states)}};
            const int wanted = contexts * states + 1;
            for (const char* name : {"heap", "hybrid"}) cells.push_back(timed(name, where, 10));
            cells.push_back(wanted <= 64 ? timed("pool", where, 5)
                                         : refused("pool", where, "refused context 65 of " + std::to_string(wanted)));
        }
    }
    const run r = with(std::move(cells), "states");
    EXPECT_THAT(limits(r),
                ElementsAre("pool is full at states = 10, 16 (contexts = 7) and 16 (contexts = 4); the other 2 "
                            "never refuse."));
    EXPECT_THAT(refusals(r), ElementsAre("Refused context 65 of 65, 71 or 113 at states = 10, 16 (contexts = 7) and 16 "
                                         "(contexts = 4): pool."));
}

TEST(refusals_test, of_two_capacities_are_two_sentences) {
    EXPECT_THAT(refusals(with({timed("heap", {}, 1), refused("pool", {}, "full at 64 of 64 slots"),
                               refused("scan", {}, "full at 16 of 16 slots")})),
                ElementsAre("Full at 64 of 64 slots: pool.", "Full at 16 of 16 slots: scan (control)."));
}

TEST(refusals_test, of_what_the_system_lacks_stay_out_of_the_findings) {
    const run r = with({timed("heap", {{"live", "1"}}, 1), timed("heap", {{"live", "2"}}, 1),
                        refused("hybrid", {{"live", "1"}}, "not available on this system"),
                        refused("hybrid", {{"live", "2"}}, "not available on this system")});
    EXPECT_THAT(limits(r), ElementsAre());
    EXPECT_THAT(refusals(r), ElementsAre("Not available on this system in every setting: hybrid."));
    const book b(r);
    EXPECT_EQ(b.chapters[0].of("hybrid").overall(), verdict::refused);
}

TEST(refusals_test, are_no_failures_in_any_writer) {
    const run r = full_from_64();
    for (const std::string& text : {body(r), to_markdown(r), to_terminal(r, true), to_csv(r)})
        EXPECT_THAT(text,
                    AllOf(HasSubstr("ull at 64 of 64 slots"), Not(HasSubstr("failed")), Not(HasSubstr("Failed"))));
    EXPECT_THAT(body(r), HasSubstr("<td class=\"figure full\">full</td>"));
}

TEST(failures_test, are_said_as_such_and_grouped_likewise) {
    run r = full_from_64();
    for (cell& c : r.cells) {
        if (!c.refusal.empty()) c.error = "ended by signal: Killed", c.refusal = "";
    }
    const char* said = "Ended by signal: Killed from live = 64 on (measured: 64, 256, 1024): pool, scan (control).";
    EXPECT_THAT(to_terminal(r, false), AllOf(HasSubstr(std::string("failed: ") + said), HasSubstr("  failed\n")));
    EXPECT_THAT(body(r), AllOf(HasSubstr("<td class=\"figure failed\">failed</td>"),
                               HasSubstr("<span class=\"failed\">Failed.</span> Ended by signal")));
    EXPECT_THAT(limits(r), ElementsAre());
}

TEST(counters_test, stand_at_the_furthest_place_beside_those_who_refused_it) {
    run r = full_from_64();
    for (cell& c : r.cells) {
        if (c.refusal.empty()) c.counters["contexts"] = std::stod(c.parameters.at("live"));
    }
    const book b(r);
    const table t = counters_table(b.chapters[0], b.chapters[0].panels[0]);
    EXPECT_EQ(t.caption, "Counters at live = 1024");
    std::vector<std::string> rows;
    for (const auto& row : t.rows) rows.push_back(row[0].text + ' ' + row[1].text);
    EXPECT_THAT(rows, ElementsAre("heap 1024", "pool full", "hybrid 1024", "scan full"));
}

TEST(counters_test, of_who_refused_are_shown_as_such) {
    run r = full_from_64();
    for (cell& c : r.cells) c.counters["contexts"] = c.refusal.empty() ? std::stod(c.parameters.at("live")) : 64;
    const book b(r);
    const table t = counters_table(b.chapters[0], b.chapters[0].panels[0]);
    EXPECT_EQ(t.caption, "Counters at live = 1024");
    EXPECT_EQ(t.rows[1][1].text, "64");
    EXPECT_EQ(t.rows[1][1].detail, "full");
    EXPECT_EQ(t.rows[2][1].detail, "");
}

/// Series alone: three stay flat, scan rises by 2 per eval.
run grown() {
    run r = with({}, "");
    for (const char* name : {"heap", "pool", "hybrid", "scan"}) {
        cell& c = r.cells.emplace_back(refused(name, {}, ""));
        for (int eval = 0; eval < 1000; ++eval) {
            c.series["live_extras"].push_back(name == std::string("scan") ? 2 * eval : 7);
            c.series["reserved_bytes"].push_back(name == std::string("scan") ? 1048576.0 * eval : 524288);
        }
    }
    return r;
}

TEST(growth_test, alone_is_a_finding_of_its_own_and_nothing_of_it_failed) {
    const run r = grown();
    const book b(r);
    ASSERT_EQ(b.findings[0].sentences.size(), 1u);
    EXPECT_EQ(plain(b.findings[0].sentences[0]), "Live extras stay flat over 1000 evals: heap, pool, hybrid.");
    EXPECT_EQ(plain(b.leaks.at(0).sentences[0]), "scan (control) leaks: live extras grow by 2 per eval.");
    for (const std::string& text : {body(r), to_markdown(r), to_terminal(r, false)})
        EXPECT_THAT(text, AllOf(Not(HasSubstr("failed</td>")), Not(HasSubstr("failed |")), Not(HasSubstr("  failed")),
                                Not(HasSubstr("Nothing could be compared")), Not(HasSubstr("Times"))));
    std::vector<std::string> standings;
    for (const auto& row : standings_table(b, "context").rows) standings.push_back(row[1].text);
    EXPECT_THAT(standings, ElementsAre("flat", "flat", "flat", "leaks"));
}

TEST(growth_test, of_bytes_is_shown_in_a_binary_unit) {
    const run r = grown();
    const book b(r);
    const table t = growth_table(b.chapters[0], b.chapters[0].panels[0]);
    std::vector<std::string> last;
    for (const entry& e : t.rows.back()) last.push_back(e.text);
    EXPECT_THAT(last, ElementsAre("scan", "reserved (MiB)", "linear: leaks", "1", "100", "999", "1000"));
    const auto exhibits = exhibits_of(b.chapters[0], b.chapters[0].panels[0]);
    const chart& drawn = exhibits.at(0).charts.at(1);
    EXPECT_EQ(drawn.caption, "Reserved bytes over evals");
    EXPECT_THAT(drawn.json, AllOf(HasSubstr("\"unit\":\"MiB\""), HasSubstr("[999,999]"), HasSubstr("[999,0.5]")));
}

cell eval(const std::string& model, const std::string& strategy, double context, double compute) {
    cell c = timed(strategy, {{"model", model}}, context + compute + 90);
    c.parts = {{"context", context}, {"build", 90}};
    if (compute > 0) c.parts["compute"] = compute;
    return c;
}

TEST(share_test, of_the_compared_part_is_said_apart_where_nothing_is_computed) {
    const run r = with({eval("small", "heap", 10, 900), eval("small", "pool", 1, 909), eval("large", "heap", 10, 0),
                        eval("large", "pool", 10, 0)},
                       "");
    const book b(r);
    EXPECT_EQ(plain(b.findings[0].sentences.back()),
              "The context part is 0.10 % to 1.0 % of an eval (model = small); 10.0 % of one without compute (model = "
              "large).");
    EXPECT_EQ(parts_table(b.chapters[0], b.chapters[0].panels[0]).caption,
              "Parts of the whole; the context part is 0.10 % to 1.0 % of it");
    EXPECT_EQ(parts_table(b.chapters[0], b.chapters[0].panels[1]).caption,
              "Parts of the whole, without compute; the context part is 10.0 % of it");
}

TEST(standings_test, are_means_unless_settings_contradict_each_other_and_say_how_many_have_which_verdict) {
    run r = full_from_64();
    r.cells.push_back(timed("heap", {{"live", "2"}}, 10));
    r.cells.push_back(timed("pool", {{"live", "2"}}, 40));
    const book b(r);
    const table t = standings_table(b, "context");
    EXPECT_EQ(heading(t.columns[1]), "w (5 settings)");
    EXPECT_EQ(t.rows[1][0].text, "pool");
    EXPECT_EQ(t.rows[1][1].text, "0.500 to 4.00");
    EXPECT_EQ(t.rows[1][1].detail, "1 ▼, 1 ▲, 3 full");
    EXPECT_EQ(t.rows[2][1].text, "1.00 =");
    EXPECT_EQ(t.rows[2][1].detail, "4 =");
}

}  // namespace
}  // namespace alloclab::report
