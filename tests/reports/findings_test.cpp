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

cell timed(const std::string& strategy, const parameters& where, double value) {
    cell c{"context/w", strategy, where, {}, {}, {}, {}, "", ""};
    for (std::size_t block = 0; block < 7; ++block) c.samples.push_back({block, value});
    return c;
}
cell refused(const std::string& strategy, const parameters& where, const std::string& why) {
    return {"context/w", strategy, where, {}, {}, {}, {}, why, ""};
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

/// What a page shows, without its style.
std::string body(const run& r) {
    const std::string page = to_html(r, "none");
    return page.substr(page.find("<body>"));
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

TEST(standings_test, are_geometric_means_with_the_number_of_settings_and_of_each_verdict) {
    run r = full_from_64();
    r.cells.push_back(timed("heap", {{"live", "2"}}, 10));
    r.cells.push_back(timed("pool", {{"live", "2"}}, 40));
    const book b(r);
    const table t = standings_table(b, "context");
    EXPECT_EQ(heading(t.columns[1]), "w (5 settings)");
    EXPECT_EQ(t.rows[1][0].text, "pool");
    EXPECT_EQ(t.rows[1][1].text, "1.41");  // of 0.5 and 4
    EXPECT_EQ(t.rows[1][1].detail, "1 ▼, 1 ▲, 3 full");
    EXPECT_EQ(t.rows[2][1].text, "1.00 =");
    EXPECT_EQ(t.rows[2][1].detail, "4 =");
}

}  // namespace
}  // namespace alloclab::report
