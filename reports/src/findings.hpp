// findings: the sentences that sum a run up, and the book of all that a writer prints.
#pragma once

#include <cstddef>
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

[[nodiscard]] std::string plain(const sentence& s);
/// "Full at 64 of 64 slots at live = 256: static_pool, scan_pool (control)."
[[nodiscard]] sentence told(const chapter& ch, const outage& o);
/// Which cells no table shows; for a chapter that has such.
[[nodiscard]] std::string repetition(const chapter& ch);
/// "grow by 200 per eval"
[[nodiscard]] std::string in_words(const trend& t);
/// How the run was judged, in sentences.
[[nodiscard]] std::vector<std::string> method(const book& b);

}  // namespace alloclab::report
