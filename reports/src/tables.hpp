// tables: every figure of a report as a table that knows no format; HTML, Markdown and terminal only draw them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "findings.hpp"
#include "text.hpp"

namespace alloclab::report {

struct entry {
    std::string text;
    std::string detail = {};           ///< second line, or in brackets; a terminal leaves it out
    std::optional<verdict> tone = {};  ///< colours the entry
    bool control = false;              ///< names a strategy that is a control
};

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

/// "▼" for faster, "▲" for slower, "=" for same, "?" for inconclusive, "" for the others.
[[nodiscard]] std::string_view mark(verdict v) noexcept;

/// The kinds of strategies that workloads compare, in the order of the run.
[[nodiscard]] std::vector<std::string> kinds(const book& b);

/// Strategies of one kind by workload: average ratio and how often which verdict, or what growth there is.
[[nodiscard]] table standings_table(const book& b, const std::string& kind);
/// Strategies by place on the axis; without an axis by median, ratio, interval and verdict. Without a row where nothing
/// was to be timed.
[[nodiscard]] table times_table(const chapter& ch, const panel& p);
/// Strategies by part of the whole, with shares; the caption has that of the compared part.
[[nodiscard]] table parts_table(const chapter& ch, const panel& p);
/// Strategies by counter at counted_place.
[[nodiscard]] table counters_table(const chapter& ch, const panel& p);
/// What every series does after warm-up.
[[nodiscard]] table growth_table(const chapter& ch, const panel& p);
/// Every cell of a workload with all that is known of it.
[[nodiscard]] table cells_table(const chapter& ch);
[[nodiscard]] table strategies_table(const run& r);
[[nodiscard]] table environment_table(const run& r);

/// The times, parts, counters and growth of one panel, without the empty ones.
[[nodiscard]] std::vector<table> tables_of(const chapter& ch, const panel& p);

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
/// Likewise for counters, where a refusal is as good as one: the furthest place shows who still serves there. Never one
/// that all refused.
[[nodiscard]] std::string counted_place(const panel& p);

/// In which the figures of a series read well; no unit for what counts no bytes.
[[nodiscard]] byte_unit unit_of(const panel& p, const std::string& series);

/// " at live = 64", "" without an axis.
[[nodiscard]] std::string place(const chapter& ch, const std::string& at);

}  // namespace alloclab::report
