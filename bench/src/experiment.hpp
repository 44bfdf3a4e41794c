// experiment: which cells, in which order, how often. Blocks follow each other; a block measures every cell once,
// groups of cells that differ in the strategy alone side by side, groups and strategies in seeded random order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "alloclab/report/results.hpp"
#include "worker.hpp"

namespace alloclab::bench {

struct plan {
    std::vector<std::string> workloads;                      ///< names or patterns with * and ?; empty: all
    std::vector<std::string> strategies;                     ///< likewise
    std::map<std::string, std::vector<std::string>> values;  ///< by axis, instead of its own
    bool quick = false;
    std::size_t blocks = 7;
    double min_seconds = 0.01;
    std::uint64_t seed = 1;
};

/// A name that does not exist, or a value that an axis cannot take. The text says which there are.
class unknown_name : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// The cells of a plan, grouped: those of one group differ in the strategy alone. Throws unknown_name.
[[nodiscard]] std::vector<std::vector<job>> select(const plan& p);

/// Measures every cell in every block and fills `r`; marks it partial when `interrupted()` turns true. Progress goes to
/// stderr.
void carry_out(const plan& p, std::vector<std::vector<job>> groups, report::run& r, bool (*interrupted)());

}  // namespace alloclab::bench
