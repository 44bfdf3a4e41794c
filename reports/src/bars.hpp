// bars: what the fastest strategies are held to, beside other people's allocators and the same work without one. Each
// bar is a figure of one run, its limit and a further one that is aimed at; what became of it is computed from the
// cells, by the whole interval and never by a median.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "findings.hpp"

namespace alloclab::report {

/// In the order in which they are shown.
enum class grade {
    missed,     ///< the whole interval is beyond the bar; one part of a figure is enough
    undecided,  ///< the interval reaches over the bar, or a part of the figure is missing
    reached,    ///< no part of the interval is beyond the bar
    stretch,    ///< nor beyond the stretch
    unmeasured  ///< the run has no cells to tell it by
};
[[nodiscard]] std::string_view to_string(grade g) noexcept;

struct limits {
    double bar = 0;
    std::optional<double> stretch = {};
    bool at_least = false;  ///< the figure must not be below, else not above
};
/// "at most 0.15"
[[nodiscard]] std::string in_words(const limits& held_to);
/// Never unmeasured; undecided without bounds.
[[nodiscard]] grade grade_of(const std::optional<interval>& bounds, const limits& held_to) noexcept;

struct bar {
    std::string figure;  ///< "slot pair, inlined, to malloc": short, and no two alike
    limits held_to = {};
    bool counted = false;  ///< a count and no ratio: exact, and not drawn
    grade graded = grade::unmeasured;
    std::optional<double> value = {};  ///< of the part that is nearest to missing it
    std::optional<interval> bounds = {};
    std::string where = {};                         ///< that part: "magazine_pool / malloc, live = 0"
    std::optional<double> instructions = {};        ///< of one operation of ours there
    std::optional<double> their_instructions = {};  ///< of what it is compared with
    std::optional<double> share = {};               ///< of an eval: all such operations that it makes, at ours' median
    std::string per_eval = {};                      ///< how many: "1 pair", "1061 extras"
    std::vector<sentence> evidence = {};            ///< what the figure alone does not say; the run that would tell
    const workload* on = nullptr;                   ///< whose chapter shows it, nullptr for none
};

struct bar_list {
    std::vector<bar> bars = {};  ///< the missed ones first
    sentence eval = {};          ///< which eval the shares are of; empty without one
};

/// Whether the run has a workload of the kind "peer".
[[nodiscard]] bool has_peers(const book& b);
/// All bars; none for a run without peers. Points into the book's run. Cost: a pairing for each part of each figure.
[[nodiscard]] bar_list bars_of(const book& b);

}  // namespace alloclab::report
