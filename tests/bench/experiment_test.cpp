// The design of the experiment over instruments that give made-up figures: what is measured, how often and in which
// order, whatever machine the test runs on.
#include "experiment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace alloclab::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job cell_of(const std::string& strategy, const std::string& live, bool twin = false) {
    job j;
    j.workload = "w";
    j.strategy = strategy;
    j.where["live"] = live;
    j.twin = twin;
    return j;
}

/// Groups of a baseline, its twin and two candidates; a cell's n-th timing is asked for by name, live and n.
class experiment_test : public ::testing::Test {
protected:
    experiment_test() {
        asked.design = {.min_seconds = 0.001,
                        .least_blocks = 6,
                        .most_blocks = 9,
                        .precision = 0.03,
                        .max_seconds = 0,
                        .shard = "",
                        .unmet = {}};
        with.measure = [this](const job& j) {
            outcome o;
            o.has_time = true;
            if (j.task != job::timing) return o;
            const std::string name = j.strategy + (j.twin ? " twin" : "");
            order.push_back(name + " " + j.where.at("live"));
            o.timed = true;
            o.value = 100;
            o.calibration = 1;
            if (answer) answer(name, j.where.at("live"), taken[name + j.where.at("live")]++, o);
            return o;
        };
        with.count_instructions = [this](const job&) {
            return ++counted, instruction_count{.per_operation = 7, .own = 7};
        };
        with.interrupted = [this] { return order.size() >= ends_after; };
        groups_of({"1"});
    }

    void groups_of(const std::vector<std::string>& lives) {
        groups.clear();
        r = {};
        for (const std::string& live : lives) {
            groups.push_back(
                {cell_of("base", live), cell_of("base", live, true), cell_of("steady", live), cell_of("noisy", live)});
            for (const job& j : groups.back()) {
                report::cell& c = r.cells.emplace_back();
                c.workload = j.workload;
                c.strategy = j.twin ? twin_name(j.strategy) : j.strategy;
                c.parameters = j.where;
            }
        }
    }
    void carry_out() {
        bench::carry_out(asked, groups, r, with, [this] { saved.push_back(r); });
    }
    [[nodiscard]] std::vector<std::size_t> blocks(std::size_t cell) const {
        std::vector<std::size_t> all;
        for (const report::sample& s : r.cells[cell].samples) all.push_back(s.block);
        return all;
    }

    plan asked;
    std::vector<group> groups;
    instruments with;
    std::function<void(const std::string&, const std::string&, std::size_t, outcome&)> answer;
    std::map<std::string, std::size_t> taken;
    std::vector<std::string> order;
    std::size_t counted = 0;
    std::size_t ends_after = 1'000'000;
    report::run r;
    std::vector<report::run> saved;
};

TEST_F(experiment_test, a_cell_is_left_when_its_ratio_is_known_and_its_references_go_on_while_another_is_not) {
    answer = [](const std::string& name, const std::string&, std::size_t n, outcome& o) {
        if (name == "noisy") o.value = n % 2 == 0 ? 90 : 115;
    };
    carry_out();
    EXPECT_EQ(blocks(0).size(), 9u);
    EXPECT_EQ(blocks(1).size(), 9u);
    EXPECT_THAT(blocks(2), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(blocks(3).size(), 9u);
    ASSERT_EQ(r.plan.unmet.size(), 1u);
    EXPECT_THAT(
        r.plan.unmet[0],
        HasSubstr("1 of 2 ratios are wider than ±3 % or cross the margin; the widest: w noisy live=1, 0.9 to 1.15"));
    EXPECT_FALSE(r.partial);
}

TEST_F(experiment_test, all_ends_at_the_least_when_every_ratio_is_known) {
    carry_out();
    EXPECT_THAT(blocks(0), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(r.plan.unmet, IsEmpty());
}

TEST_F(experiment_test, a_ratio_far_from_1_is_known_however_wide) {
    answer = [](const std::string& name, const std::string&, std::size_t n, outcome& o) {
        if (name == "noisy") o.value = n % 2 == 0 ? 200 : 900;
    };
    carry_out();
    EXPECT_EQ(blocks(3).size(), 6u);
}

TEST_F(experiment_test, a_sample_taken_at_a_lower_speed_is_taken_once_more_and_the_faster_one_kept) {
    answer = [](const std::string& name, const std::string&, std::size_t n, outcome& o) {
        o.value = static_cast<double>(n);
        if (name == "steady" && n == 3) o.calibration = 1.2;  // the next is as all others
        if (name == "base" && (n == 3 || n == 4)) o.calibration = 1 + static_cast<double>(n) / 20;
        if (name == "noisy" && (n == 3 || n == 4)) o.calibration = 1.4 - static_cast<double>(n) / 20;
    };
    carry_out();
    EXPECT_EQ(r.cells[0].samples[3].value, 3);  // the second was slower still
    EXPECT_EQ(r.cells[2].samples[3].value, 4);
    EXPECT_EQ(r.cells[2].samples[3].calibration, 1);
    EXPECT_EQ(r.cells[3].samples[3].value, 4);  // once more, and not a third time
    EXPECT_EQ(r.cells[3].samples[3].calibration, 1.2);
    std::set<std::size_t> turns;
    for (const report::cell& c : r.cells)
        for (const report::sample& s : c.samples) EXPECT_TRUE(turns.insert(s.turn).second);
    EXPECT_EQ(*turns.rbegin(), order.size());
}

TEST_F(experiment_test, a_machine_that_gets_slower_for_good_costs_repeats_in_one_block_alone) {
    answer = [](const std::string&, const std::string&, std::size_t n, outcome& o) { o.calibration = n < 3 ? 1 : 1.5; };
    carry_out();
    EXPECT_EQ(order.size(), 4 * 6 + 4u);
}

TEST_F(experiment_test, the_cells_of_a_group_stand_side_by_side_in_an_order_that_follows_from_the_seed) {
    groups_of({"1", "2", "3"});
    carry_out();
    const auto first = order;
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].back(), first[i / 4 * 4].back());
    EXPECT_NE(std::vector(first.begin(), first.begin() + 12), std::vector(first.begin() + 12, first.begin() + 24));
    order.clear();
    groups_of({"1", "2", "3"});
    carry_out();
    EXPECT_EQ(order, first);
    order.clear();
    groups_of({"1", "2", "3"});
    asked.seed = 2;
    carry_out();
    EXPECT_NE(order, first);
}

TEST_F(experiment_test, what_is_refused_or_fails_is_measured_no_more) {
    answer = [](const std::string& name, const std::string&, std::size_t n, outcome& o) {
        if (name == "steady" && n == 2) {
            o = {};
            o.error = "broke";
        }
    };
    carry_out();
    EXPECT_THAT(blocks(2), ElementsAre(0, 1));
    EXPECT_EQ(r.cells[2].error, "broke");
    EXPECT_EQ(blocks(3).size(), 6u);
}

TEST_F(experiment_test, the_file_is_kept_partial_after_each_block_until_the_end) {
    carry_out();
    EXPECT_EQ(saved.size(), 6u);
    for (std::size_t i = 0; i < saved.size(); ++i) {
        EXPECT_TRUE(saved[i].partial);
        for (const report::cell& c : saved[i].cells) EXPECT_EQ(c.samples.size(), i + 1);
    }
}

TEST_F(experiment_test, a_run_broken_off_anywhere_and_resumed_has_the_same_samples_as_one_that_was_not) {
    groups_of({"1", "2"});
    for (std::size_t cut = 1; cut < 48; ++cut) {
        groups_of({"1", "2"});
        order.clear();
        ends_after = cut;
        carry_out();
        EXPECT_TRUE(r.partial);
        const auto so_far = r.cells;
        ends_after = 1'000'000;
        carry_out();
        EXPECT_FALSE(r.partial);
        for (std::size_t i = 0; i < r.cells.size(); ++i) {
            EXPECT_THAT(blocks(i), ElementsAre(0, 1, 2, 3, 4, 5)) << "cut after " << cut;
            for (std::size_t k = 0; k + 1 < so_far[i].samples.size(); ++k)
                EXPECT_EQ(r.cells[i].samples[k].turn, so_far[i].samples[k].turn);
        }
        EXPECT_LE(order.size(), 48 + 3u) << "more than a group was measured again; cut after " << cut;
    }
}

TEST_F(experiment_test, the_parts_are_means_over_the_samples_that_are_kept_wherever_the_run_was_broken_off) {
    answer = [this](const std::string& name, const std::string& live, std::size_t n, outcome& o) {
        if (order.size() >= ends_after) {  // the signal ends what measures, too
            o = {};
            return;
        }
        if (name == "steady" && live == "2" && n == 2) {
            o = {};
            o.error = "broke";  // and is tried once more when the run is resumed
            return;
        }
        o.value += static_cast<double>(n % 5) / 10;
        o.parts["build"] = o.value;
    };
    for (std::size_t cut = 1; cut < 48; ++cut) {
        groups_of({"1", "2"});
        taken.clear();
        for (const std::size_t at : {cut, cut + 3, std::size_t{1'000'000}}) {
            order.clear();
            ends_after = at;
            carry_out();
        }
        for (const report::cell& c : r.cells) {
            double sum = 0;
            for (const report::sample& s : c.samples) sum += s.value;
            ASSERT_FALSE(c.samples.empty());
            EXPECT_NEAR(c.parts.at("build"), sum / static_cast<double>(c.samples.size()), 1e-9)
                << to_string(c) << ", cut after " << cut;
        }
    }
}

TEST_F(experiment_test, instructions_are_counted_where_asked_in_loops_of_one_thread) {
    carry_out();
    EXPECT_EQ(counted, 0u);
    asked.instructions = true;
    groups_of({"1"});
    groups[0][3].where["threads"] = "2";
    carry_out();
    EXPECT_EQ(counted, 3u);
    EXPECT_EQ(r.cells[2].counters.at("instructions"), 7);
    EXPECT_FALSE(r.cells[3].counters.contains("instructions"));
}

TEST_F(experiment_test, time_that_is_up_ends_the_run_between_blocks_and_says_so) {
    asked.design.max_seconds = 1e-9;
    carry_out();
    EXPECT_EQ(blocks(0).size(), 6u);  // the least is measured all the same
    EXPECT_THAT(r.plan.unmet, IsEmpty());
    asked.within_time = true;
    groups_of({"1"});
    carry_out();
    EXPECT_EQ(blocks(0).size(), 1u);  // without one there would be nothing to say
    ASSERT_FALSE(r.plan.unmet.empty());
    EXPECT_EQ(r.plan.unmet[0], "time was up after block 1 of at least 6");
}

}  // namespace
}  // namespace alloclab::bench
