// verdicts: what the samples of a run say, computed once and read by every writer.
// Times are compared only as ratios to the baseline within one block, because the machine's state drifts between
// blocks. The interval of the median ratio comes from order statistics (the sign test turned round), exact for any
// distribution; a percentile bootstrap at 15 pairs calls 7 % of identical strategies different. Cost: n log n per cell.
// How often a verdict is wrong and how small a difference it finds on recorded noise:
// tests/reports/calibration_test.cpp.
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

/// Two cells over the blocks in which both were measured on one machine.
struct pairing {
    std::size_t pairs = 0;  ///< that the ratio rests on
    /// Left out: the machine's speed differed by more than `uneven_speed` between the two. Kept where too few would be
    /// left, unless that is most of them.
    std::size_t uneven = 0;
    std::optional<double> ratio;     ///< median over the pairs of first / second
    std::optional<interval> bounds;  ///< of the ratio
    verdict decided = verdict::inconclusive;
    std::string reason;  ///< why inconclusive
};
/// Calibrations of a pair that differ by more than this factor: the machine changed its clock between the two.
inline constexpr double uneven_speed = 1.1;
/// Pairs are formed by machine and block, from the median of a block's samples; a block with a sample that is not
/// finite or not above 0 has none. For any two cells, such as one strategy under two parameter values, or the winner
/// and the runner-up. `coverage` is that of `bounds`.
[[nodiscard]] pairing pair_up(const cell& first, const cell& second, double coverage = confidence);

/// Whether more blocks would tell a reader no more: the interval is no wider than 2 x `precision` and gives a verdict,
/// or lies so far from 1 that its width does not matter (wholly beyond a factor of 1.25).
[[nodiscard]] bool narrow_enough(const interval& ratio, double precision) noexcept;

/// One cell against the baseline's cell of the same workload and parameters.
struct comparison {
    const cell* of = nullptr;      ///< into the run that was compared
    bool control = false;          ///< its strategy is kept to show a fault
    std::optional<double> median;  ///< of the finite samples, in the workload's unit
    std::size_t pairs = 0;         ///< as in pairing
    std::size_t uneven = 0;
    std::optional<double> ratio;     ///< median over the pairs of candidate / baseline
    std::optional<interval> bounds;  ///< of the ratio
    verdict decided = verdict::failed;
    std::string reason;  ///< why inconclusive, without a time or failed
};

/// All comparisons of a run, in the order of its cells; they point into `r`. Throws bad_results when a cell names a
/// workload that the run does not describe.
[[nodiscard]] std::vector<comparison> compare(const run& r);
std::vector<comparison> compare(run&&) = delete;

/// How time grows with a numeric parameter: the exponent b of time ~ parameter^b, fitted in each block by itself, so
/// that the interval of the blocks' median is as exact as that of a ratio.
struct scaling {
    double exponent = 0;
    std::optional<interval> bounds;
    std::size_t blocks = 0;
    double from = 0, to = 0;  ///< the parameter's range, zeros left out
};
/// `along` holds cells that differ in `axis` alone. nullopt for fewer than 3 positive places with a common block.
[[nodiscard]] std::optional<scaling> scaling_of(const std::vector<const cell*>& along, const std::string& axis);

/// The time within which a share of the operations was done; nullopt without operations or outside 0 to 1.
[[nodiscard]] std::optional<double> quantile(const latency_curve& l, double share);

enum class growth { flat, linear, saw_tooth, other };

/// How a figure that is read after every eval develops once the first tenth is dropped as warm-up.
struct trend {
    growth shape = growth::flat;
    double per_eval = 0;  ///< rise per eval between first and last
    double low = 0;
    double high = 0;
    /// Of the lows per eval, which is what stays behind: the low of a window is the least value from there to the end,
    /// so a saw-tooth that returns to its level has 0, and what falls has 0 too. nullopt for fewer than 7 values.
    std::optional<interval> slope = {};
    bool leak = false;  ///< the whole interval of `slope` lies above 0: the lows rise in every seventh of the series
};

/// nullopt when fewer than 3 finite values are left. Linear: no value is further from the straight line than half of
/// one eval's rise, so neither a saw-tooth nor a staircase is. Saw-tooth: falls of about one height, to lows on a
/// straight line, which may climb. Linear in the values.
[[nodiscard]] std::optional<trend> trend_of(const std::vector<double>& series);

}  // namespace alloclab::report
