// merge: the shards of a sweep, or repeated runs of one build, as one run.
// Times stay beside the machine and the block that they were taken in, so ratios are formed within one run on one
// machine and never across.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// Joins the cells of named runs, usually by their files. A machine is told by the fact "machine"; a run without it is
/// taken to be from a machine of its own. A merged run may be merged again. What is deterministic and yet differs is
/// kept at their highest, with a warning; shards that are missing are named in plan.unmet, and plan.shard then
/// lists those that are there, "1,3/8". Throws bad_results, which names two runs, when they describe a strategy or a
/// workload differently, differ in build, compiler, version or device, are shards of different sweeps, or hold one and
/// the same sample; when there are none; and when one run has two samples of one cell in one block. n log n in the
/// samples.
[[nodiscard]] run merge(std::vector<std::pair<std::string, run>> inputs);

}  // namespace alloclab::report
