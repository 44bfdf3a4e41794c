#include "alloclab/report/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <tuple>

#include "text.hpp"

namespace alloclab::report {
namespace {

/// The median sample of each block, so that samples of one block never count as independent.
std::map<std::size_t, double> by_block(const cell& c) {
    std::map<std::size_t, std::vector<double>> blocks;
    for (const sample& s : c.samples) blocks[s.block].push_back(s.value);
    std::map<std::size_t, double> medians;
    for (auto& [block, values] : blocks) {
        if (std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
            medians[block] = *median(std::move(values));
        }
    }
    return medians;
}

verdict decide(const interval& ratio) noexcept {
    if (ratio.high < 1 - margin) return verdict::faster;
    if (ratio.low > 1 + margin) return verdict::slower;
    if (ratio.low >= 1 - margin && ratio.high <= 1 + margin) return verdict::same;
    return verdict::inconclusive;
}

/// Fewest pairs that have an interval at all: 1 - 2^(1-n) is the coverage of the whole range.
std::size_t fewest_pairs() noexcept { return static_cast<std::size_t>(std::ceil(1 - std::log2(1 - confidence))); }

void compare_to(const cell& base, comparison& c) {
    const auto ours = by_block(*c.of);
    const auto theirs = by_block(base);
    std::vector<double> log_ratios;
    for (const auto& [block, value] : ours) {
        const auto pair = theirs.find(block);
        if (pair != theirs.end() && value > 0 && pair->second > 0) log_ratios.push_back(std::log(value / pair->second));
    }
    c.pairs = log_ratios.size();
    if (const auto middle = median(log_ratios)) c.ratio = std::exp(*middle);
    if (auto bounds = median_interval(log_ratios)) {
        c.bounds = interval{std::exp(bounds->low), std::exp(bounds->high), bounds->coverage};
        c.decided = decide(*c.bounds);
        if (c.decided == verdict::inconclusive) c.reason = "the interval crosses the margin";
    } else {
        c.decided = verdict::inconclusive;
        c.reason = fmt::format("{} pair{}; an interval needs {}", c.pairs, c.pairs == 1 ? "" : "s", fewest_pairs());
    }
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
    std::vector<double> finite;
    for (const sample& s : c.samples) {
        if (std::isfinite(s.value)) finite.push_back(s.value);
    }
    result.median = median(std::move(finite));
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
        compare_to(*base, result);
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

std::optional<trend> trend_of(const std::vector<double>& series) {
    struct point {
        double eval, value;
    };
    std::vector<point> points;
    for (std::size_t i = (series.size() + 9) / 10; i < series.size(); ++i) {
        if (std::isfinite(series[i])) points.push_back({static_cast<double>(i), series[i]});
    }
    if (points.size() < 3) return std::nullopt;

    const auto less = [](point a, point b) { return a.value < b.value; };
    const auto [low, high] = std::minmax_element(points.begin(), points.end(), less);
    trend t{.low = low->value, .high = high->value};
    const point first = points.front(), last = points.back();
    t.per_eval = (last.value - first.value) / (last.eval - first.eval);
    const double rounding = 1e-9 * std::max(std::abs(t.low), std::abs(t.high));
    if (t.high - t.low <= rounding) return t;

    const bool straight = std::all_of(points.begin(), points.end(), [&](point p) {
        const double on_line = first.value + t.per_eval * (p.eval - first.eval);
        return std::abs(p.value - on_line) <= std::abs(t.per_eval) / 2 + rounding;
    });
    t.shape = straight ? growth::linear : growth::other;

    const auto third = [&](std::size_t which) {
        const auto edge = [&](std::size_t n) {
            return points.begin() + static_cast<std::ptrdiff_t>(n * points.size() / 3);
        };
        const auto [least, most] = std::minmax_element(edge(which), edge(which + 1), less);
        return std::pair{least->value, most->value};
    };
    const auto above = [](auto a, auto b) { return a.first > b.first && a.second > b.second; };
    const auto begin = third(0), middle = third(1), end = third(2);
    const bool climbs = above(middle, begin) && above(end, middle) && end.first - begin.first > (t.high - t.low) / 4;
    t.leak = straight ? t.per_eval > 0 : climbs;
    return t;
}

}  // namespace alloclab::report
