// gates: what got worse from one result file to another, held against limits that the user set.
// Figures that are the same in every run of the same code (bytes, calls, instructions, leaked objects) are compared as
// they are, on any machine. A time is compared only as a ratio that the machine's speed has no part in, with an exact
// interval, and never across machines. A figure that is missing is a failure: silence never passes a gate (elfuse#223).
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloclab/report/google_benchmark.hpp"
#include "alloclab/report/verdicts.hpp"

namespace alloclab::report {

/// METRIC > NUMBER[%]: "time>3%", "peak_bytes>0". The metric is "time" or the name of a counter.
struct gate {
    std::string metric;
    double limit = 0;       ///< rise that is still let pass, from 0; a share of the base where relative
    bool relative = false;  ///< a base of 0 lets no rise pass
};

/// What is no gate; says what was expected.
class bad_gate : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
/// Throws bad_gate.
[[nodiscard]] gate parse_gate(std::string_view text);
/// As parse_gate reads it.
[[nodiscard]] std::string to_string(const gate& g);

/// "time" where there is one, then the names of all counters.
[[nodiscard]] std::vector<std::string> metrics_of(const run& r);

enum class gate_state {
    failed,
    inconclusive,  ///< a time whose interval holds the limit, or that has none
    ungated,       ///< missing, and the user lets that pass
    passed,
    noise  ///< an A/A twin: never fails, its change is what noise looks like
};
[[nodiscard]] std::string_view to_string(gate_state s) noexcept;

/// One figure of one cell in both files, under one gate.
struct change {
    const cell* base = nullptr;
    const cell* next = nullptr;  ///< nullptr where the new file has no such cell
    gate by;
    std::string relative_to;              ///< what times are ratios to: a strategy, "calibration", "" for plain figures
    std::optional<double> before, after;  ///< nullopt where missing or no number
    std::optional<double> share = {};     ///< rise as a share of the base; nullopt from a base of 0
    std::optional<interval> bounds = {};  ///< of `share`, times alone
    gate_state state = gate_state::failed;  ///< judged one way: each end of `bounds` holds with at least 95 %
    std::string reason = {};                ///< why failed without a rise, inconclusive or ungated
};

/// Points into the two files.
struct gate_report {
    bool asked = false;                     ///< by gates; else all metrics were compared and nothing can fail
    std::vector<gate> gates;                ///< that were asked for, or stand in for them
    std::vector<change> changes;            ///< failed first, in the order of gate_state
    bool lenient = false;                   ///< whole cells may be missing in either file
    std::vector<const cell*> only_in_next;  ///< there is nothing to hold them against: they fail unless lenient
    std::vector<std::pair<gate, std::string>> refused;  ///< not comparable between these files, and why
    std::vector<gate> unmatched;                        ///< no cell of the base has such a figure
    std::vector<std::string> notes;                     ///< that a reader of the result must know
};

/// Compares cell by cell: the same workload, strategy and parameters. Without gates, every metric of the base as far as
/// it can be compared. `lenient`: a whole cell may be missing in one of them. Throws not_comparable where the two were
/// written by different programs, or measured on different devices. n log n in cells and samples.
[[nodiscard]] gate_report judge(const result_file& base, const result_file& next, const std::vector<gate>& gates,
                                bool lenient = false);
gate_report judge(result_file&&, const result_file&, const std::vector<gate>&, bool = false) = delete;
gate_report judge(const result_file&, result_file&&, const std::vector<gate>&, bool = false) = delete;

/// What it all comes to; the first that applies.
enum class outcome { failed, not_comparable, nothing_matched, inconclusive, passed };
[[nodiscard]] outcome overall(const gate_report& r) noexcept;

/// One line: which gates failed by whom, else why nothing can be said, else that all passed.
[[nodiscard]] std::string summary(const gate_report& r);
/// What changed as a table, failures first, then the summary.
[[nodiscard]] std::string to_terminal(const gate_report& r, bool colour);
/// For a pull request: the summary, the table and what else to know; stays within 60 000 characters.
[[nodiscard]] std::string to_markdown(const gate_report& r);
/// Every change, also those that a table leaves out ("alloclab-compare/1").
[[nodiscard]] std::string to_json(const gate_report& r);

}  // namespace alloclab::report
