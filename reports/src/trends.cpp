// What a row of figures does: how time grows with a parameter, how late the last operations are, whether memory stays.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "alloclab/report/verdicts.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

/// Least squares: the slope of y over x, which must not all be equal.
double slope_of(const std::vector<std::pair<double, double>>& points) {
    double x = 0, y = 0, xx = 0, xy = 0;
    for (const auto& [px, py] : points) x += px, y += py;
    x /= static_cast<double>(points.size());
    y /= static_cast<double>(points.size());
    for (const auto& [px, py] : points) xx += (px - x) * (px - x), xy += (px - x) * (py - y);
    return xy / xx;
}

struct reading {
    double eval, value;
};
using readings = std::vector<reading>;

/// Windows that the lows are read in: 6 slopes between them are the fewest that have an interval. Few and long, so that
/// a staircase rises in every one.
constexpr std::size_t windows = 7;

/// How the low that is never gone below again rises from window to window: the least value from a window's first eval
/// to the end. A saw-tooth that returns to its level holds it down to the last tooth, whatever the period.
std::vector<double> slopes_of_lows(const readings& points, double rounding) {
    std::vector<double> least(points.size());
    double low = points.back().value;
    for (std::size_t i = points.size(); i-- > 0;) least[i] = low = std::min(low, points[i].value);

    std::vector<double> slopes;
    for (std::size_t w = 1; w < windows; ++w) {
        const std::size_t from = (w - 1) * points.size() / windows, to = w * points.size() / windows;
        const double rise = least[to] - least[from];
        slopes.push_back(rise <= rounding ? 0 : rise / (points[to].eval - points[from].eval));
    }
    return slopes;
}

/// Teeth: falls of about one height, at least two, to lows that lie on a straight line, level or not.
bool has_teeth(const readings& points, double rounding) {
    readings lows;
    double least = INFINITY, most = 0;
    for (std::size_t i = 1; i < points.size(); ++i) {
        std::size_t top = i - 1;
        while (i < points.size() && points[i].value < points[i - 1].value - rounding) ++i;
        if (i - 1 == top) continue;
        lows.push_back(points[i - 1]);
        least = std::min(least, points[top].value - points[i - 1].value);
        most = std::max(most, points[top].value - points[i - 1].value);
    }
    if (lows.size() < 2 || least < most / 2) return false;
    const reading first = lows.front(), last = lows.back();
    const double rise = (last.value - first.value) / (last.eval - first.eval);
    return std::all_of(lows.begin(), lows.end(), [&](reading low) {
        return std::abs(low.value - first.value - rise * (low.eval - first.eval)) <= most / 4;
    });
}

}  // namespace

std::optional<scaling> scaling_of(const std::vector<const cell*>& along, const std::string& axis) {
    using block = std::pair<std::size_t, std::size_t>;  // machine and number
    std::map<block, std::map<double, std::vector<double>>> times;
    std::set<double> steps;
    for (const cell* c : along) {
        const auto text = c->parameters.find(axis);
        const auto place = text == c->parameters.end() ? std::nullopt : number(text->second);
        if (!place || !std::isfinite(*place) || *place <= 0) continue;
        for (const sample& s : c->samples) {
            if (!std::isfinite(s.value) || s.value <= 0) continue;
            times[{s.machine, s.block}][*place].push_back(s.value);
            steps.insert(*place);
        }
    }
    if (steps.size() < 3) return std::nullopt;

    std::vector<double> exponents;
    for (auto& [at, samples] : times) {
        if (samples.size() < steps.size()) continue;
        std::vector<std::pair<double, double>> points;
        for (auto& [place, values] : samples)
            points.emplace_back(std::log(place), std::log(*median(std::move(values))));
        exponents.push_back(slope_of(points));
    }
    if (exponents.empty()) return std::nullopt;
    return scaling{.exponent = *median(exponents),
                   .bounds = median_interval(exponents),
                   .blocks = exponents.size(),
                   .from = *steps.begin(),
                   .to = *steps.rbegin()};
}

std::optional<double> quantile(const latency_curve& l, double share) {
    if (l.count == 0 || l.ecdf.empty() || !(share >= 0 && share <= 1)) return std::nullopt;
    const auto within = [&](const auto& point) { return point.second >= share; };
    const auto found = std::find_if(l.ecdf.begin(), l.ecdf.end(), within);
    return found != l.ecdf.end() ? found->first : l.ecdf.back().first;
}

std::optional<trend> trend_of(const std::vector<double>& series) {
    readings points;
    for (std::size_t i = (series.size() + 9) / 10; i < series.size(); ++i) {
        if (std::isfinite(series[i])) points.push_back({static_cast<double>(i), series[i]});
    }
    if (points.size() < 3) return std::nullopt;

    const auto [low, high] =
        std::minmax_element(points.begin(), points.end(), [](reading a, reading b) { return a.value < b.value; });
    trend t{.low = low->value, .high = high->value};
    const reading first = points.front(), last = points.back();
    t.per_eval = (last.value - first.value) / (last.eval - first.eval);
    const double rounding = 1e-9 * std::max(std::abs(t.low), std::abs(t.high));
    if (points.size() >= windows) t.slope = median_interval(slopes_of_lows(points, rounding));
    t.leak = t.slope && t.slope->low > 0;

    const bool straight = std::all_of(points.begin(), points.end(), [&](reading p) {
        const double on_line = first.value + t.per_eval * (p.eval - first.eval);
        return std::abs(p.value - on_line) <= std::abs(t.per_eval) / 2 + rounding;
    });
    t.shape = t.high - t.low <= rounding    ? growth::flat
              : straight                    ? growth::linear
              : has_teeth(points, rounding) ? growth::saw_tooth
                                            : growth::other;
    return t;
}

}  // namespace alloclab::report
