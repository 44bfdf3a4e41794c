// findings: the sentences that sum a run up, and the book of all that a writer prints.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "chapters.hpp"

namespace alloclab::report {

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
    std::vector<sentence> limits = {};  ///< who refuses where, in brief
};

/// What a reader must know before any figure.
struct notice {
    std::string lead;  ///< "Warning", "Partial run"
    std::string text;
};

/// What the A/A rows say: their verdicts are noise by construction.
struct noise {
    std::size_t rows = 0;       ///< that have a ratio with an interval
    std::size_t same = 0;       ///< called so; the others were too noisy to tell
    std::size_t different = 0;  ///< called faster or slower all the same
    /// Whether chance at 95 % coverage would show so many less than once in 100 runs.
    [[nodiscard]] bool suspicious() const;
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
    std::size_t uneven = 0;          ///< pairs that were left out of all ratios
    noise null;                      ///< of the A/A rows, which count in none of the figures above

private:
    void tally(const comparison& c, bool twin);
};

[[nodiscard]] std::string plain(const sentence& s);
[[nodiscard]] sentence joined(std::initializer_list<sentence> parts);
[[nodiscard]] sentence words(std::string text);
/// The fewest pairs that have an interval.
[[nodiscard]] std::size_t least_pairs();
/// "Full at 64 of 64 slots at live = 256: static_pool, scan_pool (control)."
[[nodiscard]] sentence told(const chapter& ch, const outage& o);
/// Which cells no table shows; for a chapter that has such.
[[nodiscard]] std::string repetition(const chapter& ch);
/// "grow by 200 per eval"
[[nodiscard]] std::string in_words(const trend& t);
/// "A/A: 1 of 46 rows called different; 5 % is what chance allows."; "" without A/A rows.
[[nodiscard]] std::string in_words(const noise& n);
/// Partial, what of the plan stayed open, warnings, merged machines, too few blocks, too much noise: most serious
/// first.
[[nodiscard]] std::vector<notice> notices(const book& b);
/// How the run was judged, in sentences.
[[nodiscard]] std::vector<std::string> method(const book& b);

}  // namespace alloclab::report
