// Charts of what was measured one by one: every sample, every timed operation, and what threads make of them.
#include <algorithm>
#include <cmath>

#include "blocks.hpp"
#include "chart_json.hpp"
#include "charts.hpp"

namespace alloclab::report {
namespace {

using kind = column::kind;

/// Enough digits for a pixel; a chart of every sample is the largest part of the page.
std::string rounded(double value) { return std::isfinite(value) ? fmt::format("{:.5g}", value) : "null"; }

/// Five figures of a box: least, quartiles by linear interpolation, most.
std::vector<double> box(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    std::vector<double> five;
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        const double at = share * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(at);
        const double above = values[std::min(below + 1, values.size() - 1)];
        five.push_back(values[below] + (at - static_cast<double>(below)) * (above - values[below]));
    }
    return five;
}

/// Of ratios, whose middle is a geometric one.
std::vector<double> log_box(std::vector<double> ratios) {
    for (double& r : ratios) r = std::log(r);
    std::vector<double> five = box(std::move(ratios));
    for (double& v : five) v = std::exp(v);
    return five;
}

}  // namespace

exhibit speedup_exhibit(const chapter& ch, const panel& p) {
    exhibit e{{}, {"Speed-up: threads × time of one thread / time of so many, 95 % interval below", {}, {}}};
    std::vector<std::pair<std::string, double>> threads;
    for (const std::string& at : p.at) {
        if (ch.on->axis != "threads") return {};
        const auto n = number(at);
        if (n && *n >= 1) threads.emplace_back(at, *n);
    }
    const auto one = std::find_if(threads.begin(), threads.end(), [](const auto& t) { return t.second == 1; });
    if (threads.size() < 2 || one == threads.end()) return {};
    e.figures.columns.push_back({"strategy", kind::name});
    for (const auto& [at, n] : threads) e.figures.columns.push_back({at});
    std::vector<std::string> rows;
    for (const std::string& name : p.strategies) {
        const comparison* alone = p.find(name, one->first);
        if (alone == nullptr || !alone->median) continue;
        std::vector<entry> row{name_of(ch, name)};
        for (const auto& [at, n] : threads) {
            const comparison* c = p.find(name, at);
            pairing pairs;
            if (at == one->first) pairs.ratio = 1;
            else if (c != nullptr && c->median) pairs = pair_up(*alone->of, *c->of);
            if (!pairs.ratio) {
                row.push_back({.text = "–"});
                continue;
            }
            row.push_back({.text = figure(n * *pairs.ratio)});
            if (pairs.bounds)
                row.back().detail =
                    fmt::format("{} to {}", figure(n * pairs.bounds->low), figure(n * pairs.bounds->high));
            rows.push_back(json(fields{{"s", json_string(name)},
                                       {"x", json(n)},
                                       {"y", rounded(n * *pairs.ratio)},
                                       {"low", pairs.bounds ? rounded(n * pairs.bounds->low) : "null"},
                                       {"high", pairs.bounds ? rounded(n * pairs.bounds->high) : "null"}}));
        }
        e.figures.rows.push_back(std::move(row));
    }
    fields members = common("speedup", *ch.on, "");
    members.emplace_back("rows", json(rows));
    if (!rows.empty()) e.charts.push_back({"Speed-up over one thread", json(members)});
    return e;
}

exhibit distribution_exhibit(const chapter& ch, const panel& p) {
    exhibit e{
        {}, {"Every sample: least, quartiles and most of the times and of the ratios within a block", {}, {}}, true};
    e.figures.columns = {{"strategy", kind::name}};
    if (p.at.size() > 1) e.figures.columns.push_back({ch.on->axis});
    e.figures.columns.push_back({"samples"});
    for (const char* heading : {"least", "quartile", "median", "quartile", "most"})
        e.figures.columns.push_back({heading, kind::figure, ch.on->unit});
    for (const char* heading : {"least", "quartile", "quartile", "most"})
        e.figures.columns.push_back({heading, kind::figure, "ratio"});
    std::vector<std::string> rows;
    for (const std::string& name : p.strategies) {
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c == nullptr || !c->median) continue;
            const comparison* against = p.find(ch.on->baseline, at);
            const auto base = by_block(against != nullptr ? *against->of : cell{});
            std::vector<double> times, ratios;
            std::vector<std::string> points;
            for (const sample& s : c->of->samples) {
                if (!std::isfinite(s.value)) continue;
                times.push_back(s.value);
                const auto pair = base.find({s.machine, s.block});
                const bool paired = pair != base.end() && s.value > 0;
                if (paired) ratios.push_back(s.value / pair->second.value);
                const bool odd = paired && uneven(s.calibration, pair->second.calibration);
                points.push_back(fmt::format("[{},{},{},{},{}]", s.block, s.machine, rounded(s.value),
                                             paired ? rounded(ratios.back()) : "null", odd ? 1 : 0));
            }
            const std::vector<double> time = box(times), ratio = log_box(ratios);
            std::vector<entry> row{name_of(ch, name)};
            if (p.at.size() > 1) row.push_back({.text = at});
            row.push_back({.text = fmt::format("{}", times.size())});
            for (const double v : time) row.push_back({.text = figure(v)});
            for (const std::size_t i : {0u, 1u, 3u, 4u})
                row.push_back({.text = ratio.empty() ? "–" : figure(ratio[i])});
            e.figures.rows.push_back(std::move(row));
            rows.push_back(json(fields{{"s", json_string(name)},
                                       {"place", json_string(at)},
                                       {"time", json(time)},
                                       {"ratio", json(ratio)},
                                       {"points", json(points)}}));
        }
    }
    if (rows.empty()) return {};
    fields members = common("distribution", *ch.on, ch.on->unit);
    members.emplace_back("axis", json_string(label(ch.on->axis)));
    members.emplace_back("places", json_strings(p.at));
    members.emplace_back("shown", json_string(busiest(p, [](const cell& c) { return !c.samples.empty(); })));
    members.emplace_back("margin", json(margin));
    members.emplace_back("rows", json(rows));
    e.charts.push_back({"Every sample and its quartiles", json(members)});
    return e;
}

exhibit latency_exhibit(const chapter& ch, const panel& p) {
    exhibit e{{}, latency_table(ch, p)};
    const std::string at = busiest(p, has_latency);
    std::vector<std::string> rows;
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, at);
        if (c == nullptr || !has_latency(*c->of)) continue;
        const latency_curve& l = *c->of->latency;
        std::vector<std::string> points;
        for (const auto& [ns, share] : l.ecdf) points.push_back(fmt::format("[{},{}]", rounded(ns), json(share)));
        rows.push_back(json(fields{{"s", json_string(name)},
                                   {"floor", json(l.floor)},
                                   {"count", fmt::format("{}", l.count)},
                                   {"points", json(points)}}));
    }
    if (rows.empty()) return e;
    fields members = common("latency", *ch.on, "ns");
    members.emplace_back("rows", json(rows));
    e.charts.push_back({"Time of single operations" + place(ch, at), json(members)});
    return e;
}

}  // namespace alloclab::report
