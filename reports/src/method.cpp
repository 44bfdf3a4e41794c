// How a run was judged, and what a reader must know before its figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bars.hpp"
#include "findings.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

/// "1 of 46 rows", "1 of 1 row"
std::string of_rows(std::size_t some, std::size_t all) {
    return fmt::format("{} of {} row{}", some, all, all == 1 ? "" : "s");
}

void how_ratios_are_formed(std::vector<std::string>& lines, const book& b) {
    if (b.ratios == 0) {
        lines.emplace_back("No cell could be paired with its baseline, so there is no ratio and no verdict.");
        return;
    }
    const auto pairs = b.fewest_pairs == b.most_pairs ? fmt::format("{}", b.most_pairs)
                                                      : fmt::format("{} to {}", b.fewest_pairs, b.most_pairs);
    lines.push_back(
        fmt::format("Strategies are measured side by side in blocks, and only the two samples of one block are "
                    "compared: {} pairs for each of {} comparisons. The ratio is the median over the pairs of the "
                    "strategy's time to the baseline's; below 1 is faster. A ratio beyond a factor of 1.25 either way "
                    "is left at the least number of blocks however wide its interval is: that is a direction, not a "
                    "measure.",
                    pairs, b.ratios));
    if (b.uneven > 0) {
        lines.push_back(fmt::format(
            "Another {} pair{} left out: the speed of the machine, taken beside each sample by a fixed loop, "
            "differed by more than {:.0f} % between the two.",
            b.uneven, b.uneven == 1 ? " was" : "s were", 100 * (uneven_speed - 1)));
    }
    lines.push_back(
        fmt::format("The interval is the exact order-statistic interval of that median, with at least {:.0f} % "
                    "coverage{} for a fixed number of blocks. Blocks are added until there is a verdict, so that an "
                    "interval of a ratio right at the margin misses it more often, up to once in ten; of two equal "
                    "strategies it still calls fewer than one in {:.0f} different. It takes {} pairs or more.",
                    100 * confidence, b.coverage ? fmt::format(" (achieved here: {:.1f} %)", 100 * *b.coverage) : "",
                    1 / (1 - confidence), least_pairs()));
}

}  // namespace

std::size_t least_pairs() {
    std::size_t n = 1;
    while (!median_interval(std::vector<double>(n, 1.0))) ++n;
    return n;
}

bool noise::suspicious() const {
    constexpr double chance = 1 - confidence, rare = 0.01;
    const auto n = static_cast<double>(rows);
    double below = 0;  // probability of fewer than `different`
    for (std::size_t k = 0; k < different; ++k) {
        const auto i = static_cast<double>(k);
        below += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) + i * std::log(chance) +
                          (n - i) * std::log(1 - chance));
    }
    return 1 - below < rare;
}

std::string in_words(const noise& n) {
    if (n.rows == 0) return "";
    return fmt::format(
        "A/A: {} called different, {} the same, {} too noisy to tell; {:.0f} % different is what chance "
        "allows at most{}.",
        of_rows(n.different, n.rows), n.same, n.rows - n.different - n.same, 100 * (1 - confidence),
        n.suspicious() ? ", so this is more than chance" : "");
}

std::string in_words(const trend& t) {
    if (t.shape == growth::flat) return fmt::format("stay at {}", count(t.low));
    if (t.shape == growth::linear)
        return fmt::format("{} by {} per eval", t.per_eval > 0 ? "grow" : "fall", count(std::abs(t.per_eval)));
    const char* how = t.shape == growth::saw_tooth ? (t.leak ? "rise and fall, each time less deep," : "rise and fall")
                      : t.leak                     ? "grow unevenly"
                                                   : "vary";
    return fmt::format("{} between {} and {}", how, count(t.low), count(t.high));
}

std::vector<notice> notices(const book& b) {
    const run& r = b.of;
    std::vector<notice> all;
    if (r.partial) all.push_back({"Partial run", "it ended before all cells were measured."});
    for (const std::string& criterion : r.plan.unmet) all.push_back({"Left open", criterion});
    if (b.ratios > 0 && !b.coverage) {
        const auto enough = std::any_of(b.comparisons.begin(), b.comparisons.end(),
                                        [](const comparison& c) { return c.pairs >= least_pairs(); });
        if (!enough) {
            all.push_back({"No verdict", fmt::format("{} block{}, {} needed.", b.most_pairs,
                                                     b.most_pairs == 1 ? "" : "s", least_pairs())});
        }
    }
    if (b.null.suspicious()) all.push_back({"Noise", in_words(b.null) + " Distrust small differences."});
    if (r.machines.size() > 1) {
        std::vector<std::string> names;
        for (const machine& m : r.machines) names.push_back(m.name);
        all.push_back({"Merged", fmt::format("{} machines ({}); each ratio is formed within one of them.", names.size(),
                                             listed(names))});
    }
    for (const std::string& warning : r.warnings) all.push_back({"Warning", warning});
    for (const machine& m : r.machines) {
        for (const std::string& warning : m.warnings) {
            const bool said = std::any_of(r.warnings.begin(), r.warnings.end(), [&](const std::string& other) {
                return other.find(warning) != std::string::npos;
            });
            if (!said) all.push_back({"Warning, " + m.name, warning});
        }
    }
    return all;
}

std::vector<std::string> method(const book& b) {
    std::vector<std::string> lines;
    how_ratios_are_formed(lines, b);
    lines.push_back(
        fmt::format("Verdict: faster when the whole interval lies below {:.2f}, slower when above {:.2f}, same when "
                    "between the two (the {:.0f} % margin), otherwise inconclusive.",
                    1 - margin, 1 + margin, 100 * margin));
    if (b.null.rows > 0) {
        lines.push_back(
            "An A/A row is the baseline measured once more under another name, a check of the noise: any "
            "verdict but same or inconclusive is false. " +
            in_words(b.null));
    }
    lines.emplace_back(
        "An average over settings is the geometric mean of their ratios; settings that a strategy refused are missing "
        "from its own average. Where a strategy is faster in one setting and slower in another, the least and the "
        "greatest ratio stand in place of an average.");
    lines.emplace_back(
        "The fastest strategy and those behind it are compared by the same rule, block by block, in the settings that "
        "both have.");
    lines.emplace_back(
        "A claim holds or fails when most of its counted settings say so by their verdicts and none says the opposite; "
        "it depends when some say yes and some no; it is undecided when too few tell.");
    if (has_peers(b)) {
        lines.push_back(fmt::format(
            "A bar is reached when the whole interval of its figure is on the right side of it, missed when all of it "
            "is on the wrong side, and undecided between. A figure with several parts is as good as its worst part; "
            "one that lacks a part is undecided, unless another part misses the bar. Each interval has its {:.0f} % "
            "by itself: of all parts together, one more often is off.",
            100 * confidence));
        lines.emplace_back(
            "Worst to best: the setting with the greatest median is paired with the one with the least. As the same "
            "samples choose the two and tell their ratio, it comes out too large rather than too small, the more so "
            "the more settings there are.");
        lines.emplace_back(
            "A share of an eval is the median of one operation, times as many as an eval makes, of the fastest "
            "eval with its computing in this run.");
    }
    if (std::any_of(b.of.cells.begin(), b.of.cells.end(), has_device_time)) {
        const std::string device = fact_of(b.of.environment, "device");
        lines.push_back(fmt::format(
            "Device times are virtual and the same in every run: what the calls and kernels of an eval cost on a "
            "device "
            "({}), not what a GPU was seen to take. They are no part of the times beside them, which are the host's. "
            "With several "
            "evals in flight they are the least possible, as kernels of two overlap wholly.",
            device.empty() ? "one that the run does not name" : device));
    }
    lines.emplace_back(
        "Growth is judged after the first tenth of the evals: flat, linear with its slope, a saw-tooth, or other. It "
        "is a leak when what is left at the low points rises from eval to eval.");
    return lines;
}

}  // namespace alloclab::report
