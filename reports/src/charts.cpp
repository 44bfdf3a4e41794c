#include "charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart_json.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

std::string axis_value(const std::string& text) { return json(number(text)); }

std::optional<chart> times_chart(const chapter& ch, const panel& p) {
    const bool along_axis = p.at.size() > 1;
    std::vector<std::string> rows;
    for (const std::string& name : p.strategies) {
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c == nullptr || !(c->median > 0.0) || (!along_axis && !c->ratio)) continue;
            rows.push_back(json(fields{{"s", json_string(name)},
                                       {"x", axis_value(at)},
                                       {"place", json_string(at)},
                                       {"y", json(c->median)},
                                       {"ratio", json(c->ratio)},
                                       {"low", c->bounds ? json(c->bounds->low) : "null"},
                                       {"high", c->bounds ? json(c->bounds->high) : "null"},
                                       {"verdict", json_string(to_string(c->decided))}}));
        }
    }
    if (rows.empty()) return std::nullopt;
    fields members = common(along_axis ? "cost" : "intervals", *ch.on, ch.on->unit);
    members.emplace_back("axis", json_string(label(ch.on->axis)));
    members.emplace_back("places", json_strings(p.at));
    members.emplace_back("margin", json(margin));
    members.emplace_back("rows", json(rows));
    return chart{along_axis ? fmt::format("Median {} over {}", ch.on->unit, label(ch.on->axis))
                            : fmt::format("Ratio to {} with its interval", ch.on->baseline),
                 json(members)};
}

std::optional<chart> parts_chart(const chapter& ch, const panel& p) {
    const std::string at = busiest(p, has_parts);
    std::vector<std::string> rows, groups;
    for (const std::string& part : ch.parts) groups.push_back(json_string(label(part)));
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, at);
        if (c == nullptr) continue;
        double sum = 0;
        for (const auto& [part, value] : c->of->parts) sum += value;
        for (const std::string& part : ch.parts) {
            const auto value = c->of->parts.find(part);
            if (value == c->of->parts.end() || !(sum > 0)) continue;
            rows.push_back(json(fields{{"s", json_string(name)},
                                       {"group", json_string(label(part))},
                                       {"y", json(value->second)},
                                       {"share", json(100 * value->second / sum)}}));
        }
    }
    if (rows.empty()) return std::nullopt;
    fields members = common("parts", *ch.on, ch.on->unit);
    members.emplace_back("groups", json(groups));
    members.emplace_back("rows", json(rows));
    return chart{"Where the time goes" + place(ch, at), json(members)};
}

std::optional<chart> growth_chart(const chapter& ch, const panel& p, const std::string& key) {
    const std::string at = busiest(p, [&](const cell& c) { return c.series.contains(key); });
    const byte_unit unit = unit_of(p, key);
    std::vector<std::string> lines;
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, at);
        if (c == nullptr) continue;
        const auto series = c->of->series.find(key);
        if (series == c->of->series.end()) continue;
        std::vector<std::string> points;
        for (const auto& [eval, value] : outline(series->second))
            points.push_back(fmt::format("[{},{}]", eval, json(value / unit.bytes)));
        if (!points.empty()) lines.push_back(json(fields{{"s", json_string(name)}, {"points", json(points)}}));
    }
    if (lines.empty()) return std::nullopt;
    fields members = common("growth", *ch.on, unit.name);
    members.emplace_back("label", json_string(label(key)));
    members.emplace_back("lines", json(lines));
    return chart{capital(full_label(key)) + " over evals" + place(ch, at), json(members)};
}

}  // namespace

std::vector<exhibit> exhibits_of(const chapter& ch, const panel& p) {
    const auto with = [](table figures, const std::vector<std::optional<chart>>& charts) {
        exhibit e{{}, std::move(figures)};
        for (const std::optional<chart>& c : charts) {
            if (c) e.charts.push_back(*c);
        }
        return e;
    };
    std::vector<std::optional<chart>> growth;
    for (const std::string& key : ch.series) growth.push_back(growth_chart(ch, p, key));
    std::vector<exhibit> all{with(times_table(ch, p), {times_chart(ch, p)}),
                             speedup_exhibit(ch, p),
                             with(parts_table(ch, p), {parts_chart(ch, p)}),
                             latency_exhibit(ch, p),
                             distribution_exhibit(ch, p),
                             pareto_exhibit(ch, p),
                             memory_exhibit(ch, p),
                             timeline_exhibit(ch, p),
                             with(growth_table(ch, p), growth)};
    std::erase_if(all, [](const exhibit& e) { return e.figures.rows.empty(); });
    return all;
}

std::string strategies_json(const run& r) {
    std::vector<std::string> all;
    for (const strategy& s : r.strategies) {
        all.push_back(json(fields{{"name", json_string(s.name)},
                                  {"kind", json_string(s.kind)},
                                  {"control", s.control ? "true" : "false"},
                                  {"twin", s.twin_of.empty() ? "false" : "true"}}));
    }
    return json(all);
}

std::vector<std::pair<std::size_t, double>> outline(const std::vector<double>& values, std::size_t at_most) {
    std::vector<std::pair<std::size_t, double>> points;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) continue;
        const bool straight = i > 0 && i + 1 < values.size() && values[i] - values[i - 1] == values[i + 1] - values[i];
        if (!straight) points.emplace_back(i, values[i]);
    }
    if (points.size() <= at_most) return points;

    const std::size_t stretch = (2 * points.size() + at_most - 1) / at_most;
    std::vector<std::pair<std::size_t, double>> extremes;
    for (std::size_t i = 0; i < points.size(); i += stretch) {
        const auto from = points.begin() + static_cast<std::ptrdiff_t>(i);
        const auto to = points.begin() + static_cast<std::ptrdiff_t>(std::min(i + stretch, points.size()));
        auto [low, high] =
            std::minmax_element(from, to, [](const auto& a, const auto& b) { return a.second < b.second; });
        if (high < low) std::swap(low, high);
        extremes.push_back(*low);
        if (high != low) extremes.push_back(*high);
    }
    return extremes;
}

}  // namespace alloclab::report
