// selection: which cells a run has, in groups whose cells differ in the strategy alone.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "alloclab/report/results.hpp"
#include "worker.hpp"

namespace alloclab::bench {

/// What to measure, and how.
struct plan {
    std::vector<std::string> workloads;                      ///< names or patterns with * and ?; empty: all
    std::vector<std::string> strategies;                     ///< likewise
    std::vector<std::string> baselines;                      ///< each is that of the workloads that have it
    std::map<std::string, std::vector<std::string>> values;  ///< by axis, instead of its own
    bool quick = false;
    bool full = false;
    bool twin = true;           ///< every group measures its baseline once more
    bool instructions = false;  ///< count them too
    bool within_time = false;   ///< design.max_seconds holds before design.least_blocks are through, too
    std::size_t shard = 1, shards = 1;
    std::uint64_t seed = 1;
    report::design design;
};

/// A name that does not exist, or a value that an axis cannot take. The text says which there are.
class unknown_name : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// What is measured side by side: the baseline first, then, if wanted, its twin, then the others.
using group = std::vector<job>;

/// The groups of a plan's shard: the same for the same plan everywhere, and all shards together have every group once.
/// Throws unknown_name.
[[nodiscard]] std::vector<group> select(const plan& p);

/// Of the workload in this plan. Throws unknown_name when several of plan::baselines are among its strategies.
[[nodiscard]] std::string baseline_of(const plan& p, const family& f);

/// How a baseline is called in the results when it is measured once more.
[[nodiscard]] inline std::string twin_name(const std::string& baseline) { return baseline + " (A/A)"; }

/// A run of these groups with its strategies, workloads and cells, in their order, and nothing measured yet.
[[nodiscard]] report::run prepared(const plan& p, const std::vector<group>& groups);

}  // namespace alloclab::bench
