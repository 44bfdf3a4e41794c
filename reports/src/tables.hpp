// tables: every figure of a report as a table that knows no format; HTML, Markdown and terminal only draw them.
// tables_of_panels.cpp has those of one panel, tables_of_runs.cpp those of a whole run.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bars.hpp"
#include "claims.hpp"
#include "findings.hpp"
#include "text.hpp"

namespace alloclab::report {

struct entry {
    std::string text;
    std::string detail = {};           ///< second line, or in brackets; a terminal leaves it out
    std::optional<verdict> tone = {};  ///< colours the entry
    bool control = false;              ///< names a strategy that is a control
    bool twin = false;                 ///< names an A/A row
    sentence said = {};                ///< the same as `text` with its names marked, where it has names among words
};
/// What a writer puts behind the name of such a strategy: "control", "noise check", "" for all others.
[[nodiscard]] std::string_view role(const entry& e) noexcept;

struct column {
    std::string heading;
    enum class kind { text, name, figure } as = kind::figure;
    std::string unit = {};
};

/// "peak (KiB)"
[[nodiscard]] std::string heading(const column& c);

struct table {
    std::string caption;
    std::vector<column> columns;
    std::vector<std::vector<entry>> rows;  ///< each as long as `columns`
};

/// The first column of a row, with what the strategy is.
[[nodiscard]] entry name_of(const chapter& ch, const std::string& strategy);

/// "▼" for faster, "▲" for slower, "=" for same, "?" for inconclusive, "" for the others.
[[nodiscard]] std::string_view mark(verdict v) noexcept;
/// What stands in place of a time: "full", "failed", "–" where none was to be taken.
[[nodiscard]] std::string_view word(verdict v) noexcept;

/// The kinds of strategies that workloads compare, in the order of the run.
[[nodiscard]] std::vector<std::string> kinds(const book& b);

/// A row a workload: which strategies are faster, the same, slower, undecided or without room, with their ratios. The
/// one table to show where there is room for one.
[[nodiscard]] table verdicts_table(const book& b);
/// Strategies of one kind by workload: average ratio and how often which verdict, or what growth there is.
[[nodiscard]] table standings_table(const book& b, const std::string& kind);
/// Ids, claims and rulings, those left out on which the run has no word.
[[nodiscard]] table claims_table(const std::vector<claim>& claims);
/// The ids of those.
[[nodiscard]] std::vector<std::string> unmeasured(const std::vector<claim>& claims);

/// Every bar with its figure, interval, limits and grade, and as far as the run has them instructions and shares of an
/// eval.
[[nodiscard]] table bars_table(const bar_list& list);

/// Strategies by place on the axis; without an axis by median, ratio, interval and verdict. Behind them what a device
/// takes for an eval, where that is known. Without a row where nothing was to be timed.
[[nodiscard]] table times_table(const chapter& ch, const panel& p);
/// The exponent by which time grows along the axis.
[[nodiscard]] table scaling_table(const chapter& ch, const panel& p);
/// Times of single operations where the most strategies have them: floor, quantiles, count.
[[nodiscard]] table latency_table(const chapter& ch, const panel& p);
/// Strategies by part of the whole, with shares; the caption has that of the compared part.
[[nodiscard]] table parts_table(const chapter& ch, const panel& p);
/// Strategies by counter at counted_place, and the fragmentation where peak and reserved bytes are known.
[[nodiscard]] table counters_table(const chapter& ch, const panel& p);
/// What every series does after warm-up.
[[nodiscard]] table growth_table(const chapter& ch, const panel& p);
/// Every cell of a workload with all that is known of it.
[[nodiscard]] table cells_table(const chapter& ch);

/// Height of every activation plan against its lower bound.
[[nodiscard]] table maps_table(const run& r);
[[nodiscard]] table strategies_table(const run& r);
[[nodiscard]] table environment_table(const run& r);
/// What the machines of a merged run differ in.
[[nodiscard]] table machines_table(const run& r);
/// How the samples were to be taken, and what came of it.
[[nodiscard]] table design_table(const book& b);

/// Those of one panel, without the empty ones: times, scaling, latency, parts, counters, growth.
[[nodiscard]] std::vector<table> tables_of(const chapter& ch, const panel& p);

/// The quantiles that reports show of single operations.
inline constexpr std::array<std::pair<std::string_view, double>, 5> quantiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}};

/// 1 - peak live bytes / peak reserved bytes: the share of what was taken that was never in use at once. nullopt unless
/// the cell counts both.
[[nodiscard]] std::optional<double> fragmentation(const cell& c);
inline constexpr std::string_view fragmentation_defined = "fragmentation is 1 - peak / reserved";

/// Where on the axis the most strategies have some of `wanted`, the furthest of these.
template <class F>
std::string busiest(const panel& p, F has) {
    std::string best;
    std::size_t most = 0;
    for (const std::string& at : p.at) {
        std::size_t n = 0;
        for (const std::string& name : p.strategies) {
            const comparison* c = p.find(name, at);
            n += c != nullptr && has(*c->of);
        }
        if (n > 0 && n >= most) most = n, best = at;
    }
    return best;
}
[[nodiscard]] inline bool has_parts(const cell& c) { return !c.parts.empty(); }
[[nodiscard]] inline bool has_counters(const cell& c) { return !c.counters.empty(); }
[[nodiscard]] inline bool has_latency(const cell& c) { return c.latency && c.latency->count > 0; }
/// Likewise for counters, where a refusal is as good as one: the furthest place shows who still serves there. Never one
/// that all refused.
[[nodiscard]] std::string counted_place(const panel& p);

/// In which the figures of a series read well; no unit for what counts no bytes.
[[nodiscard]] byte_unit unit_of(const panel& p, const std::string& series);

/// " at live = 64", "" without an axis.
[[nodiscard]] std::string place(const chapter& ch, const std::string& at);

}  // namespace alloclab::report
