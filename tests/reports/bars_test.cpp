// Bars: each figure is had from the cells that it is defined by, its whole interval decides, what is missing is told,
// and every writer shows it.
#include "bars.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "alloclab/report/writers.hpp"
#include "claim_cells.hpp"
#include "tables.hpp"

namespace alloclab::report {
namespace {

using made::counted;
using made::named;
using made::timed;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

run of_peers(std::vector<cell> cells) {
    run r;
    for (const char* name : {"no_allocator", "malloc", "new_delete", "magazine_pool", "magazine_hybrid", "owner_pool",
                             "bump_arena", "ggml_pool", "ggml_heap", "fixed", "growing", "last_order"})
        r.strategies.push_back(named(name, "peer"));
    r.strategies.front().control = true;
    for (const auto& [name, unit, axis] : {std::tuple{"slots", "ns/pair", "live"},
                                           {"random", "ns/slot", "live"},
                                           {"foreign", "ns/slot", "batch"},
                                           {"threads", "ns/pair", "threads"},
                                           {"contexts", "ns/pair", "live"},
                                           {"extras", "ns/extra", "tensors"},
                                           {"graph", "ns/node", ""},
                                           {"nodes", "ns/node", "nodes"}})
        r.workloads.push_back({std::string("peers/") + name, "peer", "", "", unit, "malloc", axis});
    r.workloads.push_back({"eval/extras", "extra", "", "", "us/eval", "per_tensor", ""});
    r.workloads.push_back({"context/slots", "context", "", "", "ns/op", "heap_malloc", "live"});
    r.cells = std::move(cells);
    return r;
}

/// What became of one bar, as text.
struct held {
    grade graded = grade::unmeasured;
    double value = -1, low = -1, high = -1, share = -1;
    std::string where, per_eval, evidence;
};
held bar_of(const std::string& begin, const run& r) {
    const book b(r);
    for (const bar& x : bars_of(b).bars) {
        if (!x.figure.starts_with(begin)) continue;
        held h{x.graded, x.value.value_or(-1), -1, -1, x.share.value_or(-1), x.where, x.per_eval, ""};
        if (x.bounds) h.low = x.bounds->low, h.high = x.bounds->high;
        for (const sentence& s : x.evidence) h.evidence += plain(s) + '\n';
        return h;
    }
    ADD_FAILURE() << "no bar " << begin;
    return {};
}
held bar_of(const std::string& begin, std::vector<cell> cells) { return bar_of(begin, of_peers(std::move(cells))); }

const made::parameters idle{{"live", "0"}};
std::vector<cell> slot_pair(double ours, double spread = 0, std::size_t blocks = 11) {
    return {timed("peers/slots", "magazine_pool", idle, ours, spread, blocks),
            timed("peers/slots", "malloc", idle, 100, 0, blocks)};
}
std::vector<cell> contexts(double at_63) {
    std::vector<cell> cells;
    for (const char* live : {"0", "8", "32", "63"}) {
        const made::parameters where{{"live", live}};
        const bool last = std::string_view(live) == "63";
        cells.push_back(timed("peers/contexts", "magazine_hybrid", where, last ? at_63 : 10));
        cells.push_back(timed("peers/contexts", "ggml_heap", where, 100));
        cells.push_back(timed("peers/contexts", "ggml_pool", where, 80));
    }
    return cells;
}

TEST(grade_of_a_bar, is_decided_by_the_whole_interval) {
    const limits most{0.15, 0.10};
    EXPECT_EQ(grade_of(interval{0.05, 0.10, 1}, most), grade::stretch);
    EXPECT_EQ(grade_of(interval{0.05, 0.11, 1}, most), grade::reached);
    EXPECT_EQ(grade_of(interval{0.14, 0.15, 1}, most), grade::reached);
    EXPECT_EQ(grade_of(interval{0.15, 0.16, 1}, most), grade::undecided);
    EXPECT_EQ(grade_of(interval{0.151, 0.16, 1}, most), grade::missed);
    EXPECT_EQ(grade_of(std::nullopt, most), grade::undecided);
    const limits least{1.9, 2.0, true};
    EXPECT_EQ(grade_of(interval{2.0, 2.2, 1}, least), grade::stretch);
    EXPECT_EQ(grade_of(interval{1.9, 2.2, 1}, least), grade::reached);
    EXPECT_EQ(grade_of(interval{1.8, 1.95, 1}, least), grade::undecided);
    EXPECT_EQ(grade_of(interval{1.7, 1.8, 1}, least), grade::missed);
    EXPECT_EQ(grade_of(interval{22, 22, 1}, limits{22}), grade::reached);
}

TEST(bars, there_are_none_without_peers) {
    const run r = of_peers({timed("context/slots", "heap_malloc", idle, 100)});
    const book b(r);
    EXPECT_TRUE(bars_of(b).bars.empty());
    EXPECT_THAT(to_html(r, "nowhere"), Not(HasSubstr("id=\"bars\"")));
    EXPECT_THAT(to_markdown(r), Not(HasSubstr("Bars")));
    EXPECT_THAT(to_terminal(r, false), Not(HasSubstr("Bars")));
}

TEST(bars, that_the_run_has_no_cell_for_are_unmeasured_and_say_which_run_would_tell) {
    const run r = of_peers({timed("peers/random", "malloc", {{"live", "48"}}, 100)});
    const book b(r);
    std::vector<std::string> figures;
    for (const bar& x : bars_of(b).bars) {
        EXPECT_EQ(x.graded, grade::unmeasured) << x.figure;
        EXPECT_FALSE(x.value) << x.figure;
        ASSERT_FALSE(x.evidence.empty()) << x.figure;
        EXPECT_THAT(plain(x.evidence.back()), AllOf(HasSubstr("alloclab run -w peers/"), HasSubstr("would tell")));
        EXPECT_THAT(figures, Not(Contains(x.figure)));
        figures.push_back(x.figure);
    }
    EXPECT_EQ(figures.size(), 15u);
    EXPECT_THAT(bar_of("release by another", r).evidence, HasSubstr("-s owner_pool,magazine_pool,malloc would"));
    EXPECT_THAT(bar_of("throughput", r).evidence, HasSubstr("-s magazine_pool -p threads=1,2 would"));
    EXPECT_THAT(bar_of("instructions", r).evidence, HasSubstr("-s magazine_pool -p live=0 --instructions would"));
}

TEST(bars, a_ratio_of_two_strategies_is_reached_stretched_missed_or_undecided) {
    EXPECT_EQ(bar_of("slot pair, inlined", slot_pair(9)).graded, grade::stretch);
    EXPECT_EQ(bar_of("slot pair, inlined", slot_pair(14)).graded, grade::reached);
    const held open = bar_of("slot pair, inlined", slot_pair(15, 0.1)),
               missed = bar_of("slot pair, inlined", slot_pair(20));
    EXPECT_EQ(open.graded, grade::undecided);
    EXPECT_THAT(open.evidence, HasSubstr("reaches over the bar of 0.15"));
    EXPECT_LT(open.low, 0.15);
    EXPECT_GT(open.high, 0.15);
    EXPECT_EQ(missed.graded, grade::missed);
    EXPECT_EQ(missed.where, "magazine_pool / malloc, live = 0");
    EXPECT_NEAR(missed.value, 0.2, 1e-9);
    EXPECT_THAT(missed.evidence, HasSubstr("magazine_pool / malloc, live = 0: 0.200, where the bar is at most 0.15."));
}

TEST(bars, too_few_blocks_decide_nothing) {
    const held h = bar_of("slot pair, inlined", slot_pair(9, 0, 3));
    EXPECT_EQ(h.graded, grade::undecided);
    EXPECT_THAT(h.evidence, HasSubstr("3 blocks, 6 needed"));
}

TEST(bars, a_figure_of_several_parts_is_as_good_as_its_worst) {
    const held good = bar_of("context init", contexts(10)), bad = bar_of("context init", contexts(30));
    EXPECT_EQ(good.graded, grade::stretch);
    EXPECT_NEAR(good.value, 0.125, 1e-9);
    EXPECT_EQ(bad.graded, grade::missed);  // 30 to 80 and, within the bar, to 100
    EXPECT_EQ(bad.where, "magazine_hybrid / ggml_pool, live = 63");
    EXPECT_THAT(bad.evidence, HasSubstr("The hardest of 8 is magazine_hybrid / ggml_pool, live = 63: 0.375"));
}

TEST(bars, a_missing_part_leaves_undecided_what_no_other_part_misses) {
    for (const double at_63 : {10.0, 30.0}) {
        std::vector<cell> cells = contexts(at_63);
        std::erase_if(cells, [](const cell& c) { return c.parameters.at("live") == "8"; });
        cells[1] = made::refused("peers/contexts", "ggml_heap", {{"live", "0"}});
        cells[1].refusal = "not available here";
        const held h = bar_of("context init", cells);
        EXPECT_EQ(h.graded, at_63 < 20 ? grade::undecided : grade::missed);
        EXPECT_THAT(h.evidence,
                    HasSubstr("Not told: magazine_hybrid / ggml_heap, live = 0 (ggml_heap: not available here)"));
        EXPECT_THAT(
            h.evidence,
            HasSubstr("magazine_hybrid / ggml_pool, live = 8; magazine_hybrid / ggml_heap, live = 8 (not run)"));
        EXPECT_THAT(h.evidence, HasSubstr("-p live=0,8,32,63 would tell"));
    }
}

TEST(bars, every_cell_that_a_figure_names_counts_whatever_its_other_parameters) {
    std::vector<cell> cells;
    for (const auto& [heap, ours] : {std::pair{"bare", 110.0}, {"aged", 150.0}}) {
        const made::parameters where{{"heap", heap}, {"tensors", "1061"}};
        cells.push_back(timed("peers/extras", "bump_arena", where, ours));
        cells.push_back(timed("peers/extras", "no_allocator", where, 100));
        cells.push_back(timed("peers/extras", "new_delete", where, std::string_view(heap) == "bare" ? 20000 : 1));
    }
    const held all = bar_of("extras, uncleared", cells), bare = bar_of("extras on a bare heap", cells);
    EXPECT_EQ(all.graded, grade::missed);
    EXPECT_EQ(all.where, "bump_arena / no_allocator, heap = aged, tensors = 1061");
    EXPECT_EQ(bare.graded, grade::reached);
    EXPECT_NEAR(bare.value, 0.0055, 1e-9);
}

TEST(bars, two_threads_have_twice_the_throughput_where_a_pair_takes_each_as_long) {
    const auto pairs = [](double alone, double together) {
        return std::vector{timed("peers/threads", "magazine_pool", {{"threads", "1"}}, alone),
                           timed("peers/threads", "magazine_pool", {{"threads", "2"}}, together)};
    };
    const held twice = bar_of("throughput", pairs(100, 100)), once = bar_of("throughput", pairs(100, 200));
    EXPECT_EQ(twice.graded, grade::stretch);
    EXPECT_NEAR(twice.value, 2, 1e-9);
    EXPECT_EQ(once.graded, grade::missed);
    EXPECT_NEAR(once.value, 1, 1e-9);
    EXPECT_EQ(once.where, "magazine_pool, threads = 1 to 2");
    EXPECT_THAT(once.evidence, HasSubstr("the bar is at least 1.9"));
}

TEST(bars, worst_to_best_pairs_the_slowest_setting_with_the_fastest_of_its_range) {
    std::vector<cell> cells;
    for (const auto& [live, ns] :
         {std::pair{"0", 110.0}, {"8", 100.0}, {"32", 105.0}, {"63", 120.0}, {"128", 900.0}, {"1024", 1800.0}})
        cells.push_back(timed("peers/slots", "magazine_hybrid", {{"live", live}}, ns));
    const held below = bar_of("slots, live < 64", cells), above = bar_of("slots, live ≥ 64", cells);
    EXPECT_NEAR(below.value, 1.2, 1e-9);
    EXPECT_EQ(below.graded, grade::reached);
    EXPECT_EQ(below.where, "magazine_hybrid, live = 63 to 8");
    EXPECT_NEAR(above.value, 2, 1e-9);
    EXPECT_EQ(above.graded, grade::missed);
    cells.erase(cells.begin());
    EXPECT_EQ(bar_of("slots, live < 64", cells).graded, grade::undecided);
    cells.resize(1);
    EXPECT_EQ(bar_of("slots, live < 64", cells).graded, grade::unmeasured);
}

TEST(bars, page_faults_are_the_most_of_any_strategy_but_controls_and_the_plain_heap) {
    std::vector<cell> cells;
    for (const auto& [name, faults] :
         {std::pair{"no_allocator", 9.0}, {"new_delete", 9.0}, {"malloc", 9.0}, {"bump_arena", 0.0}})
        cells.push_back(counted(timed("peers/extras", name, {}, 100), "faults_per_eval", faults));
    cells.push_back(counted(timed("peers/graph", "fixed", {}, 100), "faults_per_eval", 0));
    EXPECT_EQ(bar_of("page faults", cells).graded, grade::stretch);
    cells.push_back(counted(timed("peers/graph", "growing", {}, 100), "faults_per_eval", 0.05));
    const held h = bar_of("page faults", cells);
    EXPECT_EQ(h.graded, grade::missed);
    EXPECT_EQ(h.where, "growing");
    EXPECT_EQ(h.value, 0.05);
    cells.resize(4);
    EXPECT_EQ(bar_of("page faults", cells).graded, grade::undecided);  // no graph was counted
}

TEST(bars, instructions_are_exact_and_shown_beside_the_ratio) {
    auto cells = slot_pair(9);
    cells[0] = counted(cells[0], "instructions", 22);
    EXPECT_EQ(bar_of("instructions", cells).graded, grade::reached);
    cells[0] = counted(cells[0], "instructions", 22.5);
    cells[1] = counted(cells[1], "instructions", 80);
    EXPECT_EQ(bar_of("instructions", cells).graded, grade::missed);
    const run r = of_peers(cells);
    const book b(r);
    const auto bars = bars_of(b).bars;
    const auto pair =
        std::find_if(bars.begin(), bars.end(), [](const bar& x) { return x.figure.starts_with("slot pair, inlined"); });
    EXPECT_EQ(pair->instructions, 22.5);
    EXPECT_EQ(pair->their_instructions, 80);
}

TEST(bars, what_stands_beside_a_figure_does_not_judge_it) {
    const made::parameters where{{"batch", "16"}};
    const held h = bar_of("release by another", {timed("peers/foreign", "owner_pool", where, 30),
                                                 timed("peers/foreign", "magazine_pool", where, 90),
                                                 timed("peers/foreign", "malloc", where, 100)});
    EXPECT_EQ(h.graded, grade::reached);
    EXPECT_THAT(h.evidence, HasSubstr("Beside it, magazine_pool / malloc, batch = 16: 0.900"));
}

TEST(bars, a_share_is_of_the_fastest_eval_that_was_computed) {
    auto cells = slot_pair(9);
    cells.push_back(timed("peers/extras", "bump_arena", {{"heap", "bare"}}, 2));
    cells.push_back(timed("peers/extras", "new_delete", {{"heap", "bare"}}, 200));
    const auto eval = [](const char* strategy, double us, bool computed) {
        cell c = made::with_parts(timed("eval/extras", strategy, {}, us), 10, "extras", computed);
        return counted(counted(c, "nodes", 1000), "offloaded", 500);
    };
    EXPECT_EQ(bar_of("slot pair, inlined", cells).share, -1);
    cells.push_back(eval("free_list", 10, false));
    EXPECT_EQ(bar_of("slot pair, inlined", cells).share, -1);
    cells.push_back(eval("per_tensor", 900, true));
    cells.push_back(eval("bump_arena", 100, true));
    const held pair = bar_of("slot pair, inlined", cells), extras = bar_of("extras on a bare heap", cells);
    EXPECT_NEAR(pair.share, 9.0 / 100'000, 1e-12);
    EXPECT_EQ(pair.per_eval, "1 pair");
    EXPECT_NEAR(extras.share, 2.0 * 500 / 100'000, 1e-12);
    EXPECT_EQ(extras.per_eval, "500 extras");
    const run r = of_peers(cells);
    const book b(r);
    EXPECT_THAT(plain(bars_of(b).eval), AllOf(HasSubstr("bump_arena in eval/extras"), HasSubstr("100 µs")));
}

TEST(bars, the_missed_ones_come_first_and_the_unmeasured_ones_last) {
    auto cells = contexts(10);
    for (cell& c : slot_pair(20)) cells.push_back(std::move(c));
    const run r = of_peers(cells);
    const book b(r);
    const auto bars = bars_of(b).bars;
    EXPECT_EQ(bars.front().figure, "slot pair, inlined, to malloc");
    EXPECT_EQ(bars[1].figure, "context init and free, to ggml");
    EXPECT_TRUE(
        std::is_sorted(bars.begin(), bars.end(), [](const bar& x, const bar& y) { return x.graded < y.graded; }));
}

TEST(bars_table_test, has_columns_for_instructions_and_shares_only_where_there_are_such) {
    const auto headings = [](const run& r) {
        const book b(r);
        std::vector<std::string> all;
        for (const column& c : bars_table(bars_of(b)).columns) all.push_back(c.heading);
        return all;
    };
    auto cells = slot_pair(20);
    EXPECT_THAT(headings(of_peers(cells)), ElementsAre("figure", "verdict", "measured", "interval", "bar", "stretch"));
    cells[0] = counted(cells[0], "instructions", 20);
    cell eval = made::with_parts(timed("eval/extras", "bump_arena", {}, 100), 10, "extras");
    cells.push_back(counted(counted(eval, "nodes", 1000), "offloaded", 500));
    EXPECT_THAT(headings(of_peers(cells)), AllOf(Contains("instructions"), Contains("of an eval")));
}

TEST(bars_in_reports, every_writer_shows_them_with_what_was_missed) {
    const run r = of_peers(slot_pair(20));
    for (const std::string& text : {to_html(r, "nowhere"), to_markdown(r), to_terminal(r, false)}) {
        EXPECT_THAT(text, HasSubstr("slot pair, inlined, to malloc"));
        EXPECT_THAT(text, HasSubstr("missed"));
        EXPECT_THAT(text, HasSubstr("where the bar is at most 0.15"));
        EXPECT_THAT(text, HasSubstr("would tell"));
    }
    EXPECT_THAT(to_html(r, "nowhere"), HasSubstr("comes out too large rather than too small"));
}

TEST(bars_in_reports, claims_are_left_out_where_no_cell_of_a_peers_run_could_tell_one) {
    auto cells = slot_pair(20);
    const std::string without = to_html(of_peers(cells), "nowhere");
    EXPECT_THAT(without, AllOf(Not(HasSubstr("id=\"claims\"")), Not(HasSubstr("#claims")),
                               HasSubstr("class=\"skip\" href=\"#bars\"")));
    cells.push_back(timed("context/slots", "heap_malloc", idle, 50));
    cells.push_back(timed("context/slots", "scan_pool", idle, 100));
    const std::string with = to_html(of_peers(cells), "nowhere");
    const auto claims = with.find("id=\"claims\""), bars = with.find("id=\"bars\"");
    ASSERT_NE(claims, std::string::npos);
    EXPECT_LT(claims, bars);
    EXPECT_LT(bars, with.find("id=\"verdicts\""));
}

}  // namespace
}  // namespace alloclab::report
