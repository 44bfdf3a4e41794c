// latency: single operations timed one by one, for the tails that a mean over a batch cannot show. The clock costs more
// than many an operation, so the curve comes with its floor: what the same timing gives for an empty operation.
#pragma once

#include <functional>
#include <vector>

#include "alloclab/report/results.hpp"

namespace alloclab::bench {

/// Times up to `most` operations, ending early after 50 ms but not before 1000 of them; a hundredth as many run before,
/// untimed.
[[nodiscard]] report::latency_curve time_one_by_one(const std::function<void()>& operation, std::size_t most);

/// The share of `times` within each of at most 200 of their values, denser towards the tail. Every point lies on the
/// whole curve, and p50, p90, p99, p99.9 and the longest are among them. n log n.
[[nodiscard]] std::vector<std::pair<double, double>> ecdf_of(std::vector<double> times);

}  // namespace alloclab::bench
