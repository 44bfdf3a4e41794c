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

/// GitHub-flavoured, for a pull request: notices, findings, claims, one table of verdicts, all else folded away.
/// Shorter than the 65536 characters that GitHub takes; what had to be left out for that is said.
[[nodiscard]] std::string to_markdown(const run& r);

/// RFC 4180 in long form: a header, then a row a figure. `measure` says which: "time" for a sample, with its block,
/// machine, turn and calibration; "counter.NAME", "part.NAME", "latency.p99" and so on, without. A cell of which
/// nothing was measured has one row without a measure, which gives its refusal or error. Series and timelines are left
/// to JSON. A parameter's column bears its name, with "parameter." before it where a fixed column is named so. Names
/// are exact, even one that a spreadsheet would take for a formula: import the columns as text where names may come
/// from a stranger.
[[nodiscard]] std::string to_csv(const run& r);

/// Notices, then findings and tables for each workload, claims last; `colour` adds ANSI colours, which the caller
/// withholds from pipes and NO_COLOR.
[[nodiscard]] std::string to_terminal(const run& r, bool colour);

}  // namespace alloclab::report
