// charts: the figures of a panel or of the whole run as JSON for web/charts.js, which turns them into Vega-Lite specs
// (and web/map.js, which draws the memory maps itself). Each chart comes with a table of the same figures.
#pragma once

#include <string>
#include <vector>

#include "tables.hpp"

namespace alloclab::report {

struct chart {
    std::string caption;
    std::string json;  ///< safe inside a <script> element
};

/// Charts and the table that holds their figures.
struct exhibit {
    std::vector<chart> charts;
    table figures;
    bool folded = false;  ///< the table is long: a reader opens it
};

/// Cost over the axis or intervals of the ratios; speed-up over threads; every sample; single operations; the parts;
/// memory and calls; time against memory; memory over a round; growth. Those without a row are left out.
[[nodiscard]] std::vector<exhibit> exhibits_of(const chapter& ch, const panel& p);

/// Strategies of one kind by workload.
[[nodiscard]] exhibit standings_exhibit(const book& b, const std::string& kind);
/// The bars' ratios with their intervals against the limits; counts stand in the table alone.
[[nodiscard]] exhibit bars_exhibit(const bar_list& list);
/// Strategies by panel, for a chapter that has too many to read one after the other.
[[nodiscard]] table overview_table(const chapter& ch);

/// Threads x time of one thread / time of so many, which is what a time per operation and thread says of throughput.
/// Empty unless the axis is "threads" and holds 1.
[[nodiscard]] exhibit speedup_exhibit(const chapter& ch, const panel& p);
/// Every sample with its quartiles, as a time and as a ratio to the baseline's median in the same block.
[[nodiscard]] exhibit distribution_exhibit(const chapter& ch, const panel& p);
/// Distribution of the times of single operations, with what reading the clock costs.
[[nodiscard]] exhibit latency_exhibit(const chapter& ch, const panel& p);

/// Median time against peak bytes (reserved ones where no peak was counted): who is beaten in both by whom.
[[nodiscard]] exhibit pareto_exhibit(const chapter& ch, const panel& p);
/// Peak and reserved bytes, and the share of what is reserved that was never live: 1 - peak / reserved.
[[nodiscard]] exhibit memory_exhibit(const chapter& ch, const panel& p);
/// Live and reserved bytes over the steps of one round.
[[nodiscard]] exhibit timeline_exhibit(const chapter& ch, const panel& p);
/// Offset x time, with the largest tensors as a table.
[[nodiscard]] exhibit map_exhibit(const memory_map& m);

/// The calibration loop over the run: how steady the machine was. Empty where it was not taken.
[[nodiscard]] exhibit speed_exhibit(const run& r);
/// Every A/A row with its verdict, which only noise decides.
[[nodiscard]] table twins_table(const book& b);
/// The first measurements in the order in which they were taken.
[[nodiscard]] table order_table(const run& r);

/// Name, kind, control and twin of every strategy: what charts need to give each the same look everywhere.
[[nodiscard]] std::string strategies_json(const run& r);

/// The points of a line drawn through `values` by index: those on a straight line between their neighbours left out,
/// and of more than `at_most` left the lowest and highest of each stretch.
[[nodiscard]] std::vector<std::pair<std::size_t, double>> outline(const std::vector<double>& values,
                                                                  std::size_t at_most = 2000);

}  // namespace alloclab::report
