// writers: one run as text for a reader. All of them print the verdicts of verdicts.hpp and compute none themselves.
// HTML to keep and to show, Markdown for a pull request, CSV for one's own statistics, terminal right after a run.
// Names are escaped for each format; control characters and broken UTF-8 are made visible, save in CSV, which is exact.
// Pure functions: no file is touched except the chart scripts that to_html inlines. All throw bad_results as compare
// does.
#pragma once

#include <filesystem>
#include <string>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// The folder that npm installed Vega into, as known at configure time (ALLOCLAB_WEB_ASSETS).
[[nodiscard]] std::filesystem::path default_assets();

/// One file that opens offline and under a strict content security policy. Where `assets` lacks vega, vega-lite or
/// vega-embed, the charts are left out and the page says so; every figure stands in its tables either way.
[[nodiscard]] std::string to_html(const run& r, const std::filesystem::path& assets = default_assets());

/// GitHub-flavoured: findings, one table per kind of strategy, each workload folded away.
[[nodiscard]] std::string to_markdown(const run& r);

/// RFC 4180, a header and one row a sample; a cell without a sample has one row without a value, which gives its
/// refusal or error. A parameter's column bears its name, with "parameter." before it where a fixed column is named so.
[[nodiscard]] std::string to_csv(const run& r);

/// Findings and a table for each workload; `colour` adds ANSI colours, which the caller withholds from pipes and
/// NO_COLOR.
[[nodiscard]] std::string to_terminal(const run& r, bool colour);

}  // namespace alloclab::report
