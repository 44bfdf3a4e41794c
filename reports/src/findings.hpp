// findings: the comparisons of a run laid out for a reader, and the sentences that sum them up. Shared by the writers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/report/verdicts.hpp"

namespace alloclab::report {

/// The cells of one workload that differ only in strategy and in the parameter on the x axis.
struct panel {
    std::map<std::string, std::string> parameters;  ///< the others
    std::vector<std::string> at;          ///< values on the axis in rising order; one "" where there is no axis
    std::vector<std::string> strategies;  ///< in registered order
    std::map<std::pair<std::string, std::string>, const comparison*> cells;  ///< by strategy and place on the axis

    [[nodiscard]] const comparison* find(const std::string& strategy, const std::string& place) const;
};

/// One strategy over all settings of one workload.
struct standing {
    std::string strategy;
    bool control = false;
    bool leaks = false;
    std::map<verdict, std::size_t> verdicts;
    std::size_t settings = 0;
    std::optional<double> ratio;  ///< geometric mean over the settings where there is one

    [[nodiscard]] std::size_t count(verdict v) const;
    /// What most of the measured settings say, unless some say the opposite; else inconclusive.
    [[nodiscard]] verdict overall() const;
    /// "faster in 9 of 11, same in 2"
    [[nodiscard]] std::string tally() const;
};

struct chapter {
    const workload* on = nullptr;
    std::vector<panel> panels;
    std::vector<standing> standings;    ///< in registered order
    std::vector<std::string> counters;  ///< names of all counters of its cells
    std::vector<std::string> parts;     ///< in the order of an eval
    std::vector<std::string> series;
    std::vector<std::string> failures;  ///< one line for each strategy and reason
};

/// A part of a sentence, so that every writer can set names in its own way.
struct piece {
    enum class kind { plain, name, figure } as = kind::plain;
    std::string text;
};
using sentence = std::vector<piece>;

struct finding {
    const workload* on = nullptr;
    verdict tone = verdict::same;  ///< faster: the baseline is beaten; failed: a leak
    std::vector<sentence> sentences;
};

/// Everything a writer prints. Points into the run.
struct book {
    explicit book(const run& r);
    book(const book&) = delete;
    book& operator=(const book&) = delete;

    const run& of;
    std::vector<comparison> comparisons;
    std::vector<chapter> chapters;  ///< in the order of the run's workloads, those without cells left out
    std::vector<finding> findings;  ///< one a chapter
    std::vector<finding> leaks;     ///< one a strategy and workload
    std::size_t ratios = 0;         ///< cells that were compared to a baseline
    std::size_t most_pairs = 0;
    std::size_t fewest_pairs = 0;
    std::optional<double> coverage;  ///< the least that any interval has
};

/// "live = 64, threads = 2"; "" for none.
[[nodiscard]] std::string describe(const std::map<std::string, std::string>& parameters);
[[nodiscard]] std::string plain(const sentence& s);
/// "live_extras" as "live extras"; the unit of byte counts is left to the caller.
[[nodiscard]] std::string label(std::string_view key);
[[nodiscard]] bool counts_bytes(std::string_view key);
/// "grows by exactly 200 per eval"
[[nodiscard]] std::string in_words(const trend& t);
[[nodiscard]] const std::string& title_of(const workload& w);
/// How the run was judged, in sentences.
[[nodiscard]] std::vector<std::string> method(const book& b);

}  // namespace alloclab::report
