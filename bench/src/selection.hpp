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

/// A selection with a name, for `alloclab run --preset NAME`.
struct preset {
    /// Cells of the workloads that the pattern names.
    struct part {
        std::string workload;
        std::vector<std::string> strategies = {};                     ///< likewise; empty: all
        std::map<std::string, std::vector<std::string>> values = {};  ///< by axis, instead of its own
    };
    std::string name;
    std::vector<part> parts;
    part counted;  ///< cells whose instructions are counted too, where there is valgrind
};

/// What to measure, and how.
struct plan {
    const preset* of = nullptr;                              ///< what all of the below choose from; nullptr: everything
    std::vector<std::string> workloads;                      ///< names or patterns with * and ?; empty: all
    std::vector<std::string> strategies;                     ///< likewise
    std::vector<std::string> baselines;                      ///< each is that of the workloads that have it
    std::map<std::string, std::vector<std::string>> values;  ///< by axis, instead of its own
    bool quick = false;
    bool full = false;
    bool twin = true;              ///< every group measures its baseline once more
    bool instructions = false;     ///< count them too
    bool without_counted = false;  ///< not even those of the preset
    bool within_time = false;      ///< design.max_seconds holds before design.least_blocks are through, too
    std::size_t shard = 1, shards = 1;
    std::uint64_t seed = 1;
    std::string device = std::string(default_device);  ///< of evals, as find_device() takes it
    report::design design;
};

/// A name that does not exist, or a value that an axis cannot take. The text says which there are.
class unknown_name : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// Throws unknown_name.
[[nodiscard]] const preset& find_preset(const std::string& name);

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
