// Claims with a rule of their own on hand-made runs, in each ruling that they can have: limits, whole evals, leaks,
// bytes.
#include "claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claim_cells.hpp"

namespace alloclab::report {
namespace {

using namespace made;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// static_pool at 7 and 4 contexts, by number of states: the first refused number, and those that were asked for.
std::vector<cell> states(const parameters& first_refused, const std::vector<int>& asked) {
    std::vector<cell> cells;
    for (const auto& [contexts, refused_at] : first_refused) {
        for (const int n : asked) {
            const parameters where{{"contexts", contexts}, {"states", std::to_string(n)}};
            cells.push_back(n < std::stoi(refused_at) ? timed("context/whisper_states", "static_pool", where, 1)
                                                      : refused("context/whisper_states", "static_pool", where));
        }
    }
    return cells;
}

TEST(states_limit, holds_where_both_limits_are_found_exactly) {
    const outcome o = claimed("states-limit", states({{"7", "10"}, {"4", "16"}}, {16, 15, 1, 9, 10}));
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence, ElementsAre("static_pool at contexts = 7 serves 9 states and refuses 10.",
                                        "static_pool at contexts = 4 serves 15 states and refuses 16."));
}
TEST(states_limit, fails_where_one_limit_is_another) {
    EXPECT_EQ(claimed("states-limit", states({{"7", "10"}, {"4", "12"}}, {9, 10, 11, 12, 15, 16})).ruled,
              ruling::fails);
    EXPECT_EQ(claimed("states-limit", states({{"7", "9"}, {"4", "16"}}, {9, 10, 15, 16})).ruled, ruling::fails);
    EXPECT_EQ(claimed("states-limit", states({{"7", "17"}, {"4", "17"}}, {9, 10, 15, 16})).ruled, ruling::fails);
    EXPECT_EQ(claimed("states-limit", states({{"7", "1"}, {"4", "16"}}, {9, 10, 15, 16})).ruled, ruling::fails);
}
TEST(states_limit, is_undecided_where_the_run_left_a_gap_and_says_what_to_run) {
    const outcome o = claimed("states-limit", states({{"7", "10"}, {"4", "16"}}, {9, 10, 16}));
    EXPECT_EQ(o.ruled, ruling::undecided);
    EXPECT_THAT(o.evidence,
                ElementsAre(HasSubstr("serves 9"), "static_pool at contexts = 4 serves 10 states and refuses 16.",
                            AllOf(HasSubstr("-p contexts=7,4 -p states=9,10,15,16"))));
    EXPECT_EQ(claimed("states-limit", states({{"7", "11"}, {"4", "16"}}, {9, 11, 15, 16})).ruled, ruling::undecided);
    EXPECT_EQ(claimed("states-limit", states({{"7", "10"}}, {9, 10})).ruled, ruling::undecided);
    EXPECT_EQ(claimed("states-limit", states({{"7", "10"}, {"4", "16"}}, {1})).ruled, ruling::undecided);
}

/// hybrid's time by live count where both others take 100; static_pool refuses from 64 on.
std::vector<cell> spilling(const std::vector<std::pair<int, double>>& hybrid) {
    std::vector<cell> cells;
    for (const auto& [live, value] : hybrid) {
        const parameters where{{"live", std::to_string(live)}};
        cells.push_back(timed("context/slots", "heap_malloc", where, live < 64 ? 1 : 100));
        cells.push_back(timed("context/slots", "hybrid", where, value));
        cells.push_back(live < 64 ? timed("context/slots", "static_pool", where, 100)
                                  : refused("context/slots", "static_pool", where));
    }
    return cells;
}

TEST(hybrid, holds_where_it_serves_what_the_pool_refuses_and_is_never_slower) {
    const outcome o = claimed("hybrid", spilling({{8, 101}, {63, 100}, {64, 99}}));
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence, ElementsAre("static_pool refuses 1 of 3 settings; hybrid refuses none of them.",
                                        HasSubstr("hybrid against static_pool in context/slots: no slower in both"),
                                        HasSubstr("hybrid against heap_malloc in context/slots: no slower;")));
}
TEST(hybrid, depends_where_it_costs_once_it_spills) {
    const outcome o = claimed("hybrid", spilling({{8, 100}, {63, 100}, {64, 130}, {256, 140}}));
    EXPECT_EQ(o.ruled, ruling::depends);
    EXPECT_THAT(o.flips, AllOf(HasSubstr("hybrid: no slower up to live = 63: ratio 1.00"),
                               HasSubstr("slower from live = 64 on: ratio 1.30")));
}
TEST(hybrid, fails_where_it_refuses_or_costs_everywhere) {
    auto cells = spilling({{8, 100}, {64, 100}, {256, 100}});
    cells[7] = refused("context/slots", "hybrid", cells[7].parameters);
    const outcome o = claimed("hybrid", cells);
    EXPECT_EQ(o.ruled, ruling::fails);
    EXPECT_EQ(o.evidence[0], "static_pool refuses 2 of 3 settings; hybrid refuses 1 of them.");
    EXPECT_EQ(o.flips, "");
    cells[4] = timed("context/slots", "hybrid", cells[4].parameters, 130);
    EXPECT_EQ(claimed("hybrid", cells).ruled, ruling::fails) << "a cost that depends hides the refusal";
    EXPECT_EQ(claimed("hybrid", spilling({{8, 120}, {64, 120}})).ruled, ruling::fails);
}
TEST(hybrid, is_undecided_where_nothing_was_refused) {
    const outcome o = claimed("hybrid", spilling({{8, 100}, {63, 100}}));
    EXPECT_EQ(o.ruled, ruling::undecided);
    EXPECT_THAT(o.evidence[0], HasSubstr("no limit to remove"));
}

/// Whole evals of heap_malloc (100) and two others; `part` of 1000 are the contexts'.
std::vector<cell> inference(double hybrid, double pool, double spread = 0, bool computed = true, double part = 20) {
    std::vector<cell> cells{timed("eval/contexts", "heap_malloc", {{"model", "m"}}, 100),
                            timed("eval/contexts", "hybrid", {{"model", "m"}}, hybrid, spread),
                            timed("eval/contexts", "static_pool", {{"model", "m"}}, pool, spread),
                            timed("eval/contexts", "scan_pool", {{"model", "m"}}, 10)};
    for (cell& c : cells) c = with_parts(c, part, "context", computed);
    cells.back().parts["context"] = 500;
    return cells;
}

TEST(inference, does_not_depend_on_allocations_where_no_win_is_beyond_the_margin) {
    const outcome o = claimed("contexts-in-inference", inference(98, 150));
    EXPECT_EQ(o.ruled, ruling::holds) << "a control counts, or a slower strategy does";
    EXPECT_THAT(
        o.evidence,
        ElementsAre(
            "With heap_malloc the context part is 2.0 % of a whole eval.",
            AllOf(HasSubstr("Other strategies against heap_malloc in eval/contexts: no faster in both settings"),
                  HasSubstr("1.50 (static_pool)"))));
}
TEST(inference, depends_on_them_where_one_strategy_wins) {
    EXPECT_EQ(claimed("contexts-in-inference", inference(50, 60)).ruled, ruling::fails);
    const outcome o = claimed("contexts-in-inference", inference(50, 100));
    EXPECT_EQ(o.ruled, ruling::depends);
    EXPECT_EQ(o.flips, "no faster with static_pool, faster with hybrid.");
}
TEST(inference, is_undecided_where_the_noise_is_larger_than_the_margin) {
    EXPECT_EQ(claimed("contexts-in-inference", inference(97, 97, 0.2)).ruled, ruling::undecided);
}
TEST(inference, is_decided_by_a_part_that_is_too_small_to_win_the_margin_where_the_interval_does_not_tell) {
    const outcome o = claimed("contexts-in-inference", inference(97, 97, 0.2, true, 3));
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence, Contains("In 2 of them the interval alone does not tell, but the context part is 0.30 % or "
                                     "less, so that saving all of it wins no 3.0 %."));
    EXPECT_EQ(claimed("contexts-in-inference", inference(97, 97, 0.2, true, 4)).ruled, ruling::undecided);
    EXPECT_EQ(claimed("contexts-in-inference", inference(50, 50, 0, true, 3)).ruled, ruling::fails)
        << "what was measured counts more than what was reckoned";
}
TEST(inference, is_not_measured_by_evals_that_are_not_computed) {
    const outcome o = claimed("contexts-in-inference", inference(50, 50, 0, false));
    EXPECT_EQ(o.ruled, ruling::unmeasured);
    EXPECT_THAT(o.evidence, Contains("Not counted, since without compute: model = m."));
}
TEST(inference, is_unmeasured_without_its_baseline) {
    auto cells = inference(100, 100);
    cells.erase(cells.begin());
    EXPECT_EQ(claimed("contexts-in-inference", cells).ruled, ruling::unmeasured);
}
TEST(inference, of_extras_is_a_claim_of_its_own) {
    std::vector<cell> cells{timed("eval/extras", "per_tensor", {}, 100), timed("eval/extras", "bump_arena", {}, 80),
                            timed("eval/extras", "leaky", {}, 100)};
    for (cell& c : cells) c = with_parts(c, 20, "extras");
    const outcome o = claimed("extras-in-inference", cells);
    EXPECT_EQ(o.ruled, ruling::fails);
    EXPECT_EQ(o.on, "eval/extras");
    EXPECT_EQ(claimed("contexts-in-inference", cells).ruled, ruling::unmeasured);
}

TEST(counter_reset, holds_where_the_arena_stays_flat_and_the_control_leaks) {
    const outcome o = claimed("counter-reset", {grown("bump_arena", {}, 0), grown("leaky", {}, 200)});
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence,
                ElementsAre("bump_arena: live extras stay at 200.", "leaky: live extras grow by 200 per eval."));
    EXPECT_EQ(o.on, "extra/growth");
}
TEST(counter_reset, fails_where_the_arena_leaks) {
    EXPECT_EQ(claimed("counter-reset", {grown("bump_arena", {}, 1), grown("leaky", {}, 200)}).ruled, ruling::fails);
}
TEST(counter_reset, depends_where_the_arena_leaks_in_some_settings) {
    const outcome o = claimed("counter-reset", {grown("bump_arena", {{"tensors", "1"}}, 1), grown("leaky", {}, 200),
                                                grown("bump_arena", {{"tensors", "2"}}, 0)});
    EXPECT_EQ(o.ruled, ruling::depends);
    EXPECT_EQ(o.flips, "bump_arena leaks in 1 of 2 settings.");
}
TEST(counter_reset, is_undecided_without_a_leak_to_end_or_a_trend) {
    const outcome o = claimed("counter-reset", {grown("bump_arena", {}, 0)});
    EXPECT_EQ(o.ruled, ruling::undecided);
    EXPECT_THAT(o.evidence, Contains("leaky shows no leak here that could be ended."));
    EXPECT_EQ(claimed("counter-reset", {grown("bump_arena", {}, 0), grown("leaky", {}, 0)}).ruled, ruling::undecided);
    EXPECT_EQ(claimed("counter-reset", {grown("bump_arena", {}, nan), grown("leaky", {}, 200)}).ruled,
              ruling::undecided);
}
TEST(counter_reset, looks_at_temporaries_alone) {
    EXPECT_EQ(claimed("counter-reset", {grown("bump_arena", {{"lifetime", "temporary"}}, 0),
                                        grown("bump_arena", {{"lifetime", "persistent"}}, 5),
                                        grown("leaky", {{"lifetime", "temporary"}}, 200)})
                  .ruled,
              ruling::holds);
}

/// Growth of leaky and of another by lifetime.
std::vector<cell> lifetimes(double leaky_temporary, double leaky_persistent, double temporary = 0,
                            double persistent = 0) {
    return {grown("leaky", {{"lifetime", "temporary"}}, leaky_temporary),
            grown("leaky", {{"lifetime", "persistent"}}, leaky_persistent),
            grown("ring", {{"lifetime", "temporary"}}, temporary),
            grown("ring", {{"lifetime", "persistent"}}, persistent)};
}

TEST(temporaries_leak, holds_where_who_leaks_leaks_nothing_persistent) {
    const outcome o = claimed("temporaries-leak", lifetimes(200, 0));
    EXPECT_EQ(o.ruled, ruling::holds);
    EXPECT_THAT(o.evidence,
                ElementsAre("leaky: live extras grow by 200 per eval (lifetime = temporary).",
                            "leaky: live extras stay at 200 (lifetime = persistent).", "1 strategy leaks neither."));
}
TEST(temporaries_leak, fails_where_persistent_ones_leak_or_outlive_the_model) {
    EXPECT_EQ(claimed("temporaries-leak", lifetimes(200, 1)).ruled, ruling::fails);
    auto cells = lifetimes(200, 0);
    cells[1].counters["left_after_model"] = 3;
    const outcome o = claimed("temporaries-leak", cells);
    EXPECT_EQ(o.ruled, ruling::fails);
    EXPECT_THAT(o.evidence, Contains(HasSubstr("and 3 outlive the model")));
}
TEST(temporaries_leak, depends_where_strategies_differ) {
    const outcome o = claimed("temporaries-leak", lifetimes(200, 0, 0, 1));
    EXPECT_EQ(o.ruled, ruling::depends);
    EXPECT_EQ(o.flips, "leaky: temporary ones alone; what is persistent leaks too with ring.");
}
TEST(temporaries_leak, is_undecided_where_nothing_leaks) {
    EXPECT_EQ(claimed("temporaries-leak", lifetimes(0, 0)).ruled, ruling::undecided);
}
TEST(temporaries_leak, is_unmeasured_by_one_lifetime) {
    EXPECT_EQ(claimed("temporaries-leak", {grown("leaky", {}, 200)}).ruled, ruling::unmeasured);
}

/// free_list and bump_arena at equal times, with these bytes.
std::vector<cell> reserving(double list, double arena) {
    return {counted(timed("extra/eval", "free_list", {{"tensors", "64"}}, 100), "reserved_bytes", list),
            counted(timed("extra/eval", "bump_arena", {{"tensors", "64"}}, 100), "reserved_bytes", arena)};
}

TEST(bytes, count_as_much_as_time) {
    const outcome o = claimed("free-list", reserving(2000, 1000));
    EXPECT_EQ(o.ruled, ruling::fails);
    EXPECT_THAT(o.evidence,
                ElementsAre("free_list against bump_arena in extra/eval: no slower; ratio 1.00.",
                            "free_list against bump_arena in extra/eval: more reserved bytes; ratio 2.00."));
    EXPECT_EQ(claimed("free-list", reserving(1020, 1000)).ruled, ruling::holds);
    EXPECT_EQ(claimed("free-list", reserving(0, 0)).ruled, ruling::holds);
    EXPECT_EQ(claimed("free-list", reserving(1, 0)).ruled, ruling::fails);
    EXPECT_EQ(claimed("free-list", reserving(nan, 1000)).ruled, ruling::undecided);
}
TEST(bytes, of_one_ratio_in_many_settings_are_told_once) {
    auto cells = reserving(1000, 1000);
    for (cell& c : reserving(2000, 2001)) c.workload = "extra/eval_72", cells.push_back(c);
    EXPECT_THAT(claimed("free-list", cells).evidence,
                Contains("free_list against bump_arena: no more reserved bytes in both settings; ratio 1.00."));
}
TEST(bytes, are_told_for_each_node_where_nodes_were_counted) {
    std::vector<cell> cells;
    for (const auto& [model, inside] : {std::pair{"a", 9000}, {"b", 14000}}) {
        cells.push_back(
            counted(timed("eval/extras", "inline_extra", {{"model", model}}, 100), "reserved_bytes", inside));
        cells.back().counters["nodes"] = 10;
        cells.push_back(counted(timed("eval/extras", "bump_arena", {{"model", model}}, 100), "reserved_bytes", 10000));
    }
    const outcome o = claimed("extra-in-tensor", cells);
    EXPECT_EQ(o.ruled, ruling::depends);
    EXPECT_EQ(o.evidence.back(),
              "inline_extra: 100 less to 400 more reserved bytes than bump_arena for each of the nodes.");
    cells[0].counters["nodes"] = cells[2].counters["nodes"] = 0;
    EXPECT_THAT(claimed("extra-in-tensor", cells).evidence, Not(Contains(HasSubstr("for each"))));
}
TEST(bytes, that_were_not_counted_leave_the_claim_undecided) {
    auto cells = reserving(1, 1);
    for (cell& c : cells) c.counters.clear();
    const outcome o = claimed("free-list", cells);
    EXPECT_EQ(o.ruled, ruling::undecided);
    EXPECT_THAT(o.evidence, Contains(HasSubstr("would tell")));
}
}  // namespace
}  // namespace alloclab::report
