// experiment: in which order the cells are measured, how often, and when it is enough. Blocks follow each other; a
// block measures every open cell once, the cells of a group side by side, groups and cells in seeded random order. A
// cell is open until its ratio to the baseline is known well enough (nvbench stops likewise, by noise; ratios are
// steadier than times here).
#pragma once

#include <functional>
#include <vector>

#include "alloclab/report/results.hpp"
#include "callgrind.hpp"
#include "selection.hpp"

namespace alloclab::bench {

/// Whether something was measured that is worth keeping: what takes time to find out again.
[[nodiscard]] bool has_figures(const report::cell& c);

/// What figures are taken with.
struct instruments {
    std::function<outcome(const job&)> measure;                       ///< as measure_apart()
    std::function<instruction_count(const job&)> count_instructions;  ///< as the function of that name
    std::function<bool()> interrupted;  ///< once true, the run ends; what measures may end at once
};

/// Measures what `r`, as prepared(), still lacks. A block that was broken off begins anew for the groups that it had
/// not reached whole, and what failed is tried once more. `r` is partial until the end, and for good when interrupted;
/// `save` is called after each block. Progress goes to stderr.
void carry_out(const plan& p, const std::vector<group>& groups, report::run& r, const instruments& with,
               const std::function<void()>& save);

}  // namespace alloclab::bench
