// verdicts: what the samples of a run say, computed once and read by every writer.
// Times are compared only as ratios to the baseline within one block, because the machine's state drifts between
// blocks. The interval of the median ratio comes from order statistics (the sign test turned round), exact for any
// distribution; a percentile bootstrap at 15 pairs calls 7 % of identical strategies different. Cost: n log n per cell.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// A ratio this near to 1 is of no use to anybody, however certain it is.
inline constexpr double margin = 0.03;
/// Least coverage of every interval.
inline constexpr double confidence = 0.95;

enum class verdict {
    baseline,      ///< ratios are formed to this one
    faster,        ///< interval wholly below 1 - margin
    slower,        ///< interval wholly above 1 + margin
    same,          ///< interval wholly inside the margin
    inconclusive,  ///< none of these, or no interval; the reason tells which
    full,          ///< refused: a bounded strategy has no room for this
    refused,       ///< refused for another reason, such as that the strategy is not available here
    untimed,       ///< went well as far as it went, without a sample: series alone, or the run ended before
    failed         ///< measuring failed
};
[[nodiscard]] std::string_view to_string(verdict v) noexcept;

struct interval {
    double low = 0;
    double high = 0;
    double coverage = 0;  ///< achieved, at least what was asked for
};

/// nullopt for no values.
[[nodiscard]] std::optional<double> median(std::vector<double> values);

/// The narrowest symmetric order-statistic interval of the median that covers at least `coverage`; nullopt when there
/// are too few values for any (below 6 at 95 %).
[[nodiscard]] std::optional<interval> median_interval(std::vector<double> values, double coverage = confidence);

/// One cell against the baseline's cell of the same workload and parameters.
struct comparison {
    const cell* of = nullptr;        ///< into the run that was compared
    bool control = false;            ///< its strategy is kept to show a fault
    std::optional<double> median;    ///< of the finite samples, in the workload's unit
    std::size_t pairs = 0;           ///< blocks in which both were measured
    std::optional<double> ratio;     ///< median over the pairs of candidate / baseline
    std::optional<interval> bounds;  ///< of the ratio
    verdict decided = verdict::failed;
    std::string reason;  ///< why inconclusive, without a time or failed
};

/// All comparisons of a run, in the order of its cells; they point into `r`. Throws bad_results when a cell names a
/// workload that the run does not describe.
[[nodiscard]] std::vector<comparison> compare(const run& r);
std::vector<comparison> compare(run&&) = delete;

enum class growth { flat, linear, other };

/// How a figure that is read after every eval develops once the first tenth is dropped as warm-up.
struct trend {
    growth shape = growth::flat;
    double per_eval = 0;  ///< rise per eval between first and last
    double low = 0;
    double high = 0;
    bool leak = false;  ///< linear rise, or lows and highs rise from third to third, the lows by a quarter of the range
};

/// nullopt when fewer than 3 finite values are left. Linear: no value is further from the straight line than half of
/// one eval's rise, so neither a saw-tooth nor a staircase is. Linear in the values.
[[nodiscard]] std::optional<trend> trend_of(const std::vector<double>& series);

}  // namespace alloclab::report
