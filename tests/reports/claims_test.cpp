// Claims that compare two sides on hand-made runs: each ruling, the place where it flips, and what a run lacks.
#include "claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "claim_cells.hpp"

namespace alloclab::report {
namespace {

using namespace made;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// malloc takes `value` where scanning takes 100, by live count.
std::vector<cell> against_scanning(const std::vector<std::pair<const char*, double>>& malloc, double spread = 0,
                                   std::size_t blocks = 11) {
    std::vector<cell> cells;
    for (const auto& [live, value] : malloc) {
        cells.push_back(timed("context/slots", "heap_malloc", {{"live", live}}, value, spread, blocks));
        cells.push_back(timed("context/slots", "scan_pool", {{"live", live}}, 100, 0, blocks));
    }
    return cells;
}

TEST(claims, each_has_its_own_id_a_source_and_words) {
    const run r = with({});
    const book b(r);
    std::set<std::string> ids;
    for (const claim& c : claims_of(b)) {
        EXPECT_TRUE(ids.insert(c.id).second) << c.id;
        EXPECT_THAT(c.id, ::testing::MatchesRegex("[a-z-]+"));
        EXPECT_THAT(c.source, HasSubstr("#")) << c.id;
        EXPECT_FALSE(c.says.empty());
    }
    EXPECT_THAT(ids, SizeIs(13));
}

TEST(claims, that_the_run_has_no_cell_for_are_unmeasured_and_say_which_run_would_tell) {
    const run r = with({timed("context/slots", "λ\n\"<b>", {{"live", "1"}}, 1), timed("extra/eval", "mine", {}, 1)});
    const book b(r);
    for (const claim& c : claims_of(b)) {
        EXPECT_EQ(c.ruled, ruling::unmeasured) << c.id;
        ASSERT_THAT(c.evidence, SizeIs(1)) << c.id;
        EXPECT_THAT(plain(c.evidence[0]), AllOf(HasSubstr("alloclab run -w "), HasSubstr(" would tell."))) << c.id;
        EXPECT_TRUE(c.flips.empty()) << c.id;
        EXPECT_EQ(c.on, nullptr) << c.id;
    }
}

// Contests: two sides in two settings each.
struct sides {
    const char* id;
    bool faster;  ///< else: no slower
    std::function<cell(int setting)> first, second;
    bool bytes = false;  ///< a second part of the claim
};
cell of_strategy(const char* workload, const char* strategy, const char* axis, int setting) {
    return timed(workload, strategy, {{axis, std::to_string(8 << setting)}}, 100);
}
cell of_value(const char* workload, const char* strategy, const char* name, const char* value, int setting) {
    return timed(workload, strategy, {{name, value}, {"model", std::to_string(setting)}}, 100);
}
std::vector<sides> contests() {
    const auto strategy = [](auto... a) { return [=](int s) { return of_strategy(a..., s); }; };
    const auto value = [](auto... a) { return [=](int s) { return of_value(a..., s); }; };
    return {
        {"scan-against-malloc", true, strategy("context/slots", "heap_malloc", "live"),
         strategy("context/slots", "scan_pool", "live")},
        {"aligned-malloc", true, strategy("context/init_free", "heap_malloc", "live"),
         strategy("context/init_free", "heap_aligned_malloc", "live")},
        {"reset", true, value("eval/contexts", "hybrid", "context", "reset"),
         value("eval/contexts", "hybrid", "context", "fresh")},
        {"growing-buffers", false, value("eval/buffers", "hybrid", "buffer", "growing"),
         value("eval/buffers", "hybrid", "buffer", "fixed")},
        {"free-list", false, strategy("extra/eval_72", "free_list", "tensors"),
         strategy("extra/eval_72", "bump_arena", "tensors"), true},
        {"extra-in-tensor", false, strategy("eval/extras", "inline_extra", "model"),
         strategy("eval/extras", "bump_arena", "model"), true},
        {"explicit-scope", false, value("extra/scope", "bump_arena", "scope", "explicit"),
         value("extra/scope", "bump_arena", "scope", "thread_local")},
    };
}
/// The first side takes `values` per cent of the second's time, with that spread.
outcome contested(const sides& s, std::vector<double> values, double spread = 0, std::size_t blocks = 11) {
    std::vector<cell> cells;
    int setting = 0;
    for (const double value : values) {
        cell a = s.first(setting), b = s.second(setting);
        a.samples = timed("", "", {}, value, spread, blocks).samples;
        b.samples = timed("", "", {}, 100, 0, blocks).samples;
        if (s.bytes) a.counters["reserved_bytes"] = b.counters["reserved_bytes"] = 4096;
        cells.push_back(std::move(a));
        cells.push_back(std::move(b));
        ++setting;
    }
    return claimed(s.id, std::move(cells));
}

TEST(contest, holds_where_every_interval_says_so) {
    for (const sides& s : contests()) {
        EXPECT_EQ(contested(s, {50, 60}).ruled, ruling::holds) << s.id;
        EXPECT_EQ(contested(s, {100, 101}).ruled, s.faster ? ruling::fails : ruling::holds) << s.id;
    }
}

TEST(contest, fails_where_every_interval_says_the_opposite) {
    for (const sides& s : contests()) EXPECT_EQ(contested(s, {150, 190}).ruled, ruling::fails) << s.id;
}

TEST(contest, depends_where_the_intervals_contradict_each_other_and_says_where) {
    for (const sides& s : contests()) {
        const outcome o = contested(s, {50, 150});
        EXPECT_EQ(o.ruled, ruling::depends) << s.id;
        EXPECT_THAT(o.flips, AllOf(HasSubstr(s.faster ? "faster" : "no slower"),
                                   HasSubstr(s.faster ? "not faster" : "; slower")))
            << s.id;
        EXPECT_FALSE(o.on.empty()) << s.id;
    }
}

TEST(contest, is_undecided_where_the_intervals_reach_over_the_line) {
    for (const sides& s : contests()) {
        const outcome o = contested(s, {100, 100}, 0.2);
        EXPECT_EQ(o.ruled, ruling::undecided) << s.id;
        EXPECT_THAT(o.evidence, Contains(HasSubstr("undecided in both settings (the interval crosses"))) << s.id;
        EXPECT_THAT(o.flips, "") << s.id;
    }
}

TEST(contest, of_one_block_is_undecided_and_says_how_many_it_needs) {
    for (const sides& s : contests()) {
        const outcome o = contested(s, {50, 60}, 0, 1);
        EXPECT_EQ(o.ruled, ruling::undecided) << s.id;
        EXPECT_THAT(o.evidence[0], AllOf(HasSubstr("1"), HasSubstr("6"), HasSubstr("no interval"))) << s.id;
    }
}

TEST(contest, without_a_finite_sample_is_undecided) {
    for (const sides& s : contests()) EXPECT_EQ(contested(s, {nan, nan}).ruled, ruling::undecided) << s.id;
}

TEST(contest, is_decided_by_most_settings_as_long_as_none_contradicts) {
    auto cells = against_scanning({{"1", 50}, {"2", 50}});
    const auto wide = against_scanning({{"4", 97}}, 0.2);
    cells.insert(cells.end(), wide.begin(), wide.end());
    const outcome o = claimed("scan-against-malloc", cells);
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence, ElementsAre(HasSubstr("faster in 2 of 3 settings, undecided in 1 (")));
    const auto wider = against_scanning({{"8", 97}, {"16", 97}}, 0.2);
    cells.insert(cells.end(), wider.begin(), wider.end());
    EXPECT_EQ(claimed("scan-against-malloc", cells).ruled, ruling::undecided);
}

// [0.98, 1.22] reaches over the upper margin, so that no verdict says what it is; but it is surely not faster.
TEST(contest, is_decided_by_the_interval_even_where_the_verdict_is_inconclusive) {
    EXPECT_EQ(claimed("scan-against-malloc", against_scanning({{"1", 110}}, 0.1)).ruled, ruling::fails);
}

TEST(contest, tells_one_setting_in_one_sentence) {
    EXPECT_THAT(
        claimed("scan-against-malloc", against_scanning({{"8", 50}}, 0.1)).evidence,
        ElementsAre("heap_malloc against scan_pool in context/slots: faster; ratio 0.500 (interval 0.450 to 0.550)."));
}

TEST(contest, names_the_extremes_of_many_settings) {
    EXPECT_THAT(
        claimed("scan-against-malloc", against_scanning({{"8", 50}, {"63", 20}, {"32", 40}}, 0.1)).evidence,
        ElementsAre("heap_malloc against scan_pool in context/slots: faster in all 3 settings; ratio from 0.200 "
                    "(interval 0.180 to 0.220; live = 63) to 0.500 (interval 0.450 to 0.550; live = 8)."));
}

TEST(contest, leaves_out_where_one_side_refused_or_failed_and_says_so) {
    auto cells = against_scanning({{"8", 50}, {"64", 50}, {"256", 50}});
    for (const std::size_t i : {3u, 5u}) cells[i] = refused("context/slots", "scan_pool", cells[i].parameters);
    const outcome o = claimed("scan-against-malloc", cells);
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence,
                ElementsAre("heap_malloc against scan_pool in context/slots: faster; ratio 0.500; scan_pool "
                            "refuses 2 more."));
    for (const std::size_t i : {1u, 3u, 5u}) cells[i] = refused("context/slots", "scan_pool", cells[i].parameters);
    cells[1].refusal = "", cells[1].error = "ended by signal 11";
    const outcome none = claimed("scan-against-malloc", cells);
    EXPECT_EQ(none.ruled, ruling::unmeasured);
    EXPECT_THAT(none.evidence[0], AllOf(HasSubstr("scan_pool failed in 1"), HasSubstr("scan_pool refuses 2")));
}

TEST(contest, never_counts_an_a_a_twin) {
    run r = with(against_scanning({{"8", 50}}));
    r.strategies.insert(r.strategies.begin(), named("scan_pool", "context", "heap_malloc"));
    EXPECT_EQ(claimed("scan-against-malloc", r).ruled, ruling::unmeasured);

    run twin = with({timed("eval/contexts", "heap_malloc", {}, 100), timed("eval/contexts", "hybrid", {}, 100),
                     timed("eval/contexts", "heap_malloc (A/A)", {}, 50)});
    for (cell& c : twin.cells) c = with_parts(c, 1, "context");
    twin.strategies.push_back(named("heap_malloc (A/A)", "context", "heap_malloc"));
    EXPECT_EQ(claimed("contexts-in-inference", twin).ruled, ruling::holds);
}

TEST(contest, of_values_leaves_controls_out) {
    std::vector<cell> cells;
    for (const auto& [strategy, value] : {std::pair{"bump_arena", 100}, {"leaky", 200}}) {
        cells.push_back(timed("extra/scope", strategy, {{"scope", "explicit"}}, value));
        cells.push_back(timed("extra/scope", strategy, {{"scope", "thread_local"}}, 100));
    }
    EXPECT_EQ(claimed("explicit-scope", cells).ruled, ruling::holds);
}

TEST(contest, takes_the_first_of_two_equal_cells) {
    auto cells = against_scanning({{"8", 50}, {"8", 150}});
    EXPECT_EQ(claimed("scan-against-malloc", cells).ruled, ruling::holds);
}

TEST(flips, are_found_between_two_neighbours_on_the_axis) {
    const outcome o =
        claimed("scan-against-malloc", against_scanning({{"8", 190}, {"1024", 10}, {"16", 80}, {"0", 200}}, 0.01));
    EXPECT_EQ(o.ruled, ruling::depends);
    EXPECT_EQ(
        o.flips,
        "heap_malloc: faster from live = 16 on: ratio 0.800 (interval 0.792 to 0.808); not faster up to live = 8: "
        "ratio 1.90 (interval 1.88 to 1.92).");
}

TEST(flips, are_found_downwards_too) {
    EXPECT_EQ(claimed("scan-against-malloc", against_scanning({{"8", 50}, {"16", 150}})).flips,
              "heap_malloc: faster up to live = 8: ratio 0.500; not faster from live = 16 on: ratio 1.50.");
}

TEST(flips, name_the_undecided_settings_between) {
    auto cells = against_scanning({{"1", 150}, {"64", 50}});
    const auto open = against_scanning({{"16", 97}, {"8", 97}, {"128", 97}}, 0.2);
    cells.insert(cells.end(), open.begin(), open.end());
    EXPECT_THAT(claimed("scan-against-malloc", cells).flips, HasSubstr("1.50; undecided at live = 8, 16."));
}

TEST(flips, that_go_to_and_fro_are_listed) {
    EXPECT_EQ(claimed("scan-against-malloc", against_scanning({{"1", 50}, {"2", 150}, {"4", 50}})).flips,
              "heap_malloc: faster at live = 1, 4, not faster at live = 2.");
}

TEST(flips, are_told_by_the_parameter_that_tells_the_votes_apart) {
    std::vector<cell> cells;
    for (const char* strategy : {"hybrid", "heap_malloc", "static_pool"}) {
        for (const char* context : {"reset", "fresh"}) {
            const double value = context == std::string("reset") ? 100 : 200;
            cells.push_back(timed("eval/buffers", strategy, {{"buffer", "growing"}, {"context", context}}, value));
            cells.push_back(timed("eval/buffers", strategy, {{"buffer", "fixed"}, {"context", context}}, 100));
        }
    }
    const outcome o = claimed("growing-buffers", cells);
    EXPECT_EQ(o.flips, "buffer = growing: no slower at context = reset, slower at context = fresh.");
    EXPECT_THAT(o.evidence, ElementsAre(AllOf(HasSubstr("context = reset"), HasSubstr("no slower in all 3 settings")),
                                        AllOf(HasSubstr("context = fresh"), HasSubstr(": slower in all 3 settings"))));
}

TEST(flips, are_told_by_workload_where_no_parameter_does) {
    std::vector<cell> cells;
    for (const char* strategy : {"hybrid", "static_pool"}) {
        for (const char* context : {"reset", "fresh"}) {
            const bool reset = context == std::string("reset");
            cells.push_back(timed("eval/buffers", strategy, {{"context", context}}, reset ? 20 : 100));
            cells.push_back(timed("eval/contexts", strategy, {{"context", context}}, 100));
        }
    }
    const outcome o = claimed("reset", cells);
    EXPECT_EQ(o.flips, "context = reset: faster in eval/buffers, not faster in eval/contexts.");
    EXPECT_THAT(o.evidence, SizeIs(2));
}

TEST(flips, are_told_by_the_parameter_with_the_fewest_values) {
    std::vector<cell> cells;
    for (const auto& [strategy, model, value] :
         {std::tuple{"hybrid", "b", 100}, {"static_pool", "a", 50}, {"heap_malloc", "a", 50}}) {
        cells.push_back(timed("eval/contexts", strategy, {{"context", "reset"}, {"model", model}}, value));
        cells.push_back(timed("eval/contexts", strategy, {{"context", "fresh"}, {"model", model}}, 100));
    }
    EXPECT_EQ(claimed("reset", cells).flips, "context = reset: faster at model = a, not faster at model = b.");
}

TEST(flips, are_told_workload_by_workload_where_numbers_mean_something_else_in_each) {
    std::vector<cell> cells;
    for (const auto& [workload, tensors, value] :
         {std::tuple{"extra/eval", "16", 100}, {"extra/eval", "8192", 200}, {"extra/eval_72", "64", 150}}) {
        cells.push_back(timed(workload, "free_list", {{"tensors", tensors}}, value));
        cells.push_back(timed(workload, "bump_arena", {{"tensors", tensors}}, 100));
    }
    EXPECT_EQ(claimed("free-list", cells).flips,
              "free_list: in extra/eval no slower up to tensors = 16: ratio 1.00; slower from tensors = 8192 on: ratio "
              "2.00; in extra/eval_72 slower.");
}

TEST(flips, list_the_fewer_settings_where_nothing_tells_them_apart) {
    std::vector<cell> cells;
    for (const char* strategy : {"hybrid", "static_pool"}) {
        for (const char* model : {"a", "b"}) {
            const bool odd = strategy == std::string("hybrid") && model == std::string("b");
            cells.push_back(timed("eval/contexts", strategy, {{"context", "reset"}, {"model", model}}, odd ? 100 : 50));
            cells.push_back(timed("eval/contexts", strategy, {{"context", "fresh"}, {"model", model}}, 100));
        }
    }
    EXPECT_EQ(claimed("reset", cells).flips,
              "context = reset: faster in 3 settings, not faster in 1: ratio 1.00 (model = b, hybrid).");
}
}  // namespace
}  // namespace alloclab::report
