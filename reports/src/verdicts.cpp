#include "alloclab/report/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "blocks.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

verdict decide(const interval& ratio) noexcept {
    if (ratio.high < 1 - margin) return verdict::faster;
    if (ratio.low > 1 + margin) return verdict::slower;
    if (ratio.low >= 1 - margin && ratio.high <= 1 + margin) return verdict::same;
    return verdict::inconclusive;
}

/// Fewest pairs that have an interval at all: 1 - 2^(1-n) is the coverage of the whole range.
std::size_t fewest_pairs(double coverage) noexcept {
    return static_cast<std::size_t>(std::ceil(1 - std::log2(1 - coverage)));
}

std::string why_unmeasured(const cell& c) {
    return !c.error.empty() ? c.error : !c.refusal.empty() ? c.refusal : "no samples";
}

/// What became of a cell that has no finite sample.
verdict without_time(const cell& c, bool bounded) {
    if (!c.error.empty()) return verdict::failed;
    // A strategy that ran out of room names the figure; one that is not available here does not.
    if (!c.refusal.empty()) {
        return bounded && c.refusal.find_first_of("0123456789") != std::string::npos ? verdict::full : verdict::refused;
    }
    return c.samples.empty() ? verdict::untimed : verdict::failed;
}

comparison compare_cell(const cell& c, const workload& on, const strategy* by, const cell* base) {
    comparison result;
    result.of = &c;
    result.control = by != nullptr && by->control;
    result.median = median_of(c);
    if (!result.median) {
        result.decided = without_time(c, by != nullptr && by->bounded);
        result.reason = why_unmeasured(c);
    } else if (c.strategy == on.baseline) {
        result.decided = verdict::baseline;
        result.ratio = 1;
    } else if (base == nullptr || by_block(*base).empty()) {
        result.decided = verdict::inconclusive;
        result.reason = on.baseline.empty() ? "the workload names no baseline"
                        : base == nullptr   ? fmt::format("the baseline {} was not run here", visible(on.baseline))
                                            : fmt::format("the baseline {} has no time: {}", visible(on.baseline),
                                                          why_unmeasured(*base));
    } else {
        pairing paired = pair_up(c, *base);
        result.pairs = paired.pairs;
        result.uneven = paired.uneven;
        result.ratio = paired.ratio;
        result.bounds = paired.bounds;
        result.decided = paired.decided;
        result.reason = std::move(paired.reason);
    }
    if (result.median && !(c.error + c.refusal).empty())
        result.reason += (result.reason.empty() ? "" : "; ") + why_unmeasured(c);
    return result;
}

}  // namespace

std::string_view to_string(verdict v) noexcept {
    constexpr std::array<std::string_view, 9> words{"baseline", "faster",  "slower",  "same",  "inconclusive",
                                                    "full",     "refused", "untimed", "failed"};
    return words[static_cast<std::size_t>(v)];
}

std::map<std::pair<std::size_t, std::size_t>, timing> by_block(const cell& c) {
    struct block {
        std::vector<double> values, calibrations;
    };
    std::map<std::pair<std::size_t, std::size_t>, block> blocks;
    for (const sample& s : c.samples) {
        block& at = blocks[{s.machine, s.block}];
        at.values.push_back(s.value);
        if (std::isfinite(s.calibration) && s.calibration > 0) at.calibrations.push_back(s.calibration);
    }
    std::map<std::pair<std::size_t, std::size_t>, timing> medians;
    for (auto& [key, of] : blocks) {
        const auto usable = [](double v) { return std::isfinite(v) && v > 0; };
        if (std::all_of(of.values.begin(), of.values.end(), usable))
            medians[key] = {*median(std::move(of.values)), median(std::move(of.calibrations)).value_or(0)};
    }
    return medians;
}

std::optional<double> median_of(const cell& c) {
    std::vector<double> finite;
    for (const sample& s : c.samples) {
        if (std::isfinite(s.value)) finite.push_back(s.value);
    }
    return median(std::move(finite));
}

bool uneven(double calibration, double other) noexcept {
    const auto [fast, slow] = std::minmax(calibration, other);
    return fast > 0 && slow > fast * uneven_speed;
}

std::optional<double> median(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    const double below = *std::max_element(values.begin(), middle);
    return below + (*middle - below) / 2;
}

std::optional<interval> median_interval(std::vector<double> values, double coverage) {
    const std::size_t n = values.size();
    // P(k or fewer of n fall below the median), summed up while both tails stay within what the coverage leaves.
    double log_chance = -static_cast<double>(n) * std::log(2.0);
    double tail = 0;
    std::size_t rank = 0;
    while (rank < n / 2 && 1 - 2 * (tail + std::exp(log_chance)) >= coverage) {
        tail += std::exp(log_chance);
        log_chance += std::log(static_cast<double>(n - rank) / static_cast<double>(rank + 1));
        ++rank;
    }
    if (rank == 0) return std::nullopt;
    std::sort(values.begin(), values.end());
    return interval{values[rank - 1], values[n - rank], 1 - 2 * tail};
}

pairing pair_up(const cell& first, const cell& second, double coverage) {
    const auto ours = by_block(first), theirs = by_block(second);
    std::vector<double> log_ratios, of_uneven;
    for (const auto& [block, mine] : ours) {
        const auto other = theirs.find(block);
        if (other == theirs.end()) continue;
        (uneven(mine.calibration, other->second.calibration) ? of_uneven : log_ratios)
            .push_back(std::log(mine.value / other->second.value));
    }
    // Uneven pairs are noise, not bias: where too few would be left, a wider interval serves better than none.
    if (log_ratios.size() < fewest_pairs(coverage) && of_uneven.size() <= log_ratios.size())
        log_ratios.insert(log_ratios.end(), of_uneven.begin(), of_uneven.end()), of_uneven.clear();

    pairing result;
    result.uneven = of_uneven.size();
    result.pairs = log_ratios.size();
    if (const auto middle = median(log_ratios)) result.ratio = std::exp(*middle);
    if (const auto bounds = median_interval(std::move(log_ratios), coverage)) {
        result.bounds = interval{std::exp(bounds->low), std::exp(bounds->high), bounds->coverage};
        result.decided = decide(*result.bounds);
        if (result.decided == verdict::inconclusive) result.reason = "the interval crosses the margin";
        return result;
    }
    result.reason =
        fmt::format("{} block{}, {} needed", result.pairs, result.pairs == 1 ? "" : "s", fewest_pairs(coverage));
    if (result.uneven > 0)
        result.reason += fmt::format("; {} left out, as the machine's speed changed within them", result.uneven);
    return result;
}

bool narrow_enough(const interval& ratio, double precision) noexcept {
    constexpr double far = 1.25;
    return ratio.high < 1 / far || ratio.low > far ||
           (ratio.high <= ratio.low * (1 + 2 * precision) && decide(ratio) != verdict::inconclusive);
}

std::vector<comparison> compare(const run& r) {
    std::map<std::string_view, const workload*> workloads;
    for (const workload& w : r.workloads) workloads.emplace(w.name, &w);
    std::map<std::pair<std::string_view, std::string_view>, const strategy*> strategies;  // one name may serve twice
    for (const strategy& s : r.strategies) {
        strategies.emplace(std::pair{std::string_view{s.kind}, std::string_view{s.name}}, &s);
    }

    std::map<std::tuple<std::string_view, std::map<std::string, std::string>>, const cell*> baselines;
    for (const cell& c : r.cells) {
        const auto on = workloads.find(c.workload);
        if (on == workloads.end())
            throw bad_results("the run describes no workload named \"" + visible(c.workload) + '"');
        if (c.strategy == on->second->baseline)
            baselines.emplace(std::tuple{std::string_view{c.workload}, c.parameters}, &c);
    }

    std::vector<comparison> all;
    all.reserve(r.cells.size());
    for (const cell& c : r.cells) {
        const workload& on = *workloads.at(c.workload);
        const auto base = baselines.find({c.workload, c.parameters});
        const auto by = strategies.find({on.kind, c.strategy});
        all.push_back(compare_cell(c, on, by == strategies.end() ? nullptr : by->second,
                                   base == baselines.end() ? nullptr : base->second));
    }
    return all;
}

}  // namespace alloclab::report
