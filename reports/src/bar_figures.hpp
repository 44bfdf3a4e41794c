// bar_figures: the few ways in which a bar's figure is had from a run. Some have parts, all of which must hold; a part
// that the run lacks is told and leaves the figure undecided.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bars.hpp"
#include "claim_rules.hpp"

namespace alloclab::report {

/// A ratio or a count of the run, or why there is none.
struct part {
    std::string where;                 ///< "magazine_pool / malloc, live = 0"
    std::optional<double> value = {};  ///< nullopt: unmeasured
    std::optional<interval> bounds = {};
    std::string why = {};          ///< no value or no interval: "not run"
    const cell* ours = nullptr;    ///< nullptr for none
    const cell* theirs = nullptr;  ///< likewise
};

struct measured_parts {
    std::vector<part> parts = {};   ///< at least one
    std::vector<part> beside = {};  ///< shown and not judged
    sentence would_tell = {};
    const workload* on = nullptr;
};
using measure = std::function<measured_parts(const roster&)>;

using settings_of_cell = std::map<std::string, std::string>;

/// `ours` to each rival, at each value of the axis, times a factor.
struct quotient {
    std::string workload = {}, ours = {};
    std::vector<std::string> rivals = {};
    std::vector<std::string> beside = {};  ///< others in the place of `ours`
    std::string axis = {};                 ///< "" for none
    std::vector<std::string> values = {};
    std::string rival_value = {};  ///< of the axis; "" for the same as ours
    double factor = 1;
};
[[nodiscard]] measure ratio_of(quotient q);

/// The greatest median to the least over the values of the axis. Which cells these are is chosen by the samples that
/// then tell the ratio, so that it comes out too large rather than too small.
struct spread {
    std::string workload = {}, ours = {}, axis = {};
    std::vector<std::string> values = {};
};
[[nodiscard]] measure worst_to_best(spread s);

/// The greatest of a counter over all cells that have it, controls and some strategies left out.
struct most {
    std::vector<std::string> workloads = {};
    std::string counter = {};
    std::vector<std::string> except = {};
    std::string ours = {};        ///< this strategy alone; "" for all
    settings_of_cell where = {};  ///< that a cell must have
    std::string asked_with = {};  ///< of the command that would count it: " --instructions"
};
[[nodiscard]] measure most_of(most m);

}  // namespace alloclab::report
