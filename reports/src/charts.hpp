// charts: the figures of a panel as JSON for web/report.js, which turns them into Vega-Lite specs.
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
};

/// Cost over the axis or intervals of the ratios; the parts; memory and calls; growth. Those without a row are left
/// out.
[[nodiscard]] std::vector<exhibit> exhibits_of(const chapter& ch, const panel& p);

/// Name, kind and control of every strategy: what charts need to give each the same colour everywhere.
[[nodiscard]] std::string strategies_json(const run& r);

/// The points of a line drawn through `values` by index: those on a straight line between their neighbours left out,
/// and of more than `at_most` left the lowest and highest of each stretch.
[[nodiscard]] std::vector<std::pair<std::size_t, double>> outline(const std::vector<double>& values,
                                                                  std::size_t at_most = 2000);

}  // namespace alloclab::report
