// Charts of the whole run: who stands where, how steady the machine was, and in what order it was measured.
#include <algorithm>
#include <cmath>

#include "chart_json.hpp"
#include "charts.hpp"

namespace alloclab::report {
namespace {

using kind = column::kind;

std::string machine_name(const run& r, std::size_t index) {
    return index < r.machines.size() ? r.machines[index].name : "this machine";
}

bool is_twin(const run& r, const std::string& name) {
    return std::any_of(r.strategies.begin(), r.strategies.end(),
                       [&](const strategy& s) { return s.name == name && !s.twin_of.empty(); });
}

}  // namespace

exhibit standings_exhibit(const book& b, const std::string& of) {
    exhibit e{{}, standings_table(b, of)};
    std::vector<std::string> rows, columns, strategies;
    for (const std::vector<entry>& row : e.figures.rows) strategies.push_back(row.front().text);
    for (const chapter& ch : b.chapters) {
        if (ch.on->kind != of) continue;
        columns.push_back(short_name(*ch.on));
        for (const standing& s : ch.standings) {
            const verdict overall = s.leaks() ? verdict::failed : s.overall();
            rows.push_back(json(fields{{"s", json_string(s.strategy)},
                                       {"w", json_string(ch.on->name)},
                                       {"column", json_string(columns.back())},
                                       {"ratio", json(s.ratio)},
                                       {"mixed", s.mixed() ? "true" : "false"},
                                       {"least", json(s.least)},
                                       {"most", json(s.most)},
                                       {"verdict", json_string(s.leaks() ? "leaks" : to_string(overall))},
                                       {"tally", json_string(s.tally())}}));
        }
    }
    if (columns.size() < 2) return e;  // one column says no more than the table
    const fields members{{"kind", json_string("verdicts")},  {"of", json_string(of)},
                         {"baseline", json_string("")},      {"strategies", json_strings(strategies)},
                         {"columns", json_strings(columns)}, {"rows", json(rows)}};
    e.charts.push_back({fmt::format("{}: ratio to the baseline in each workload",
                                    of.empty() ? "Strategies" : capital(of) + " strategies"),
                        json(members)});
    return e;
}

exhibit bars_exhibit(const bar_list& list) {
    exhibit e{{}, bars_table(list)};
    std::vector<std::string> rows;
    for (const bar& b : list.bars) {
        if (b.counted || !(b.value > 0.0)) continue;
        rows.push_back(json(fields{{"label", json_string(b.figure)},
                                   {"where", json_string(b.where)},
                                   {"ratio", json(b.value)},
                                   {"low", b.bounds ? json(b.bounds->low) : "null"},
                                   {"high", b.bounds ? json(b.bounds->high) : "null"},
                                   {"bar", json(b.held_to.bar)},
                                   {"stretch", json(b.held_to.stretch)},
                                   {"least", b.held_to.at_least ? "true" : "false"},
                                   {"verdict", json_string(to_string(b.graded))}}));
    }
    if (!rows.empty())
        e.charts.push_back({"Ratios with their intervals; the bar allows what is shaded, the tick is the stretch",
                            json(fields{{"kind", json_string("limits")}, {"rows", json(rows)}})});
    return e;
}

table overview_table(const chapter& ch) {
    table t{"Ratio to " + ch.on->baseline + " in every setting" +
                (ch.on->axis.empty() ? "" : ", geometric mean over " + label(ch.on->axis)),
            {{"strategy", kind::name}},
            {}};
    for (const panel& p : ch.panels) t.columns.push_back({describe(p.parameters)});
    for (const standing& s : ch.standings) {
        std::vector<entry> row{name_of(ch, s.strategy)};
        for (const panel& p : ch.panels) {
            standing here;
            for (const std::string& at : p.at) {
                if (const comparison* c = p.find(s.strategy, at)) here.add(c->decided, c->ratio);
            }
            if (here.settings == 0) {
                row.push_back({.text = "–"});
                continue;
            }
            const verdict v = here.overall();
            row.push_back({.text = here.ratio
                                       ? fmt::format("{}{}{}", figure(*here.ratio), mark(v).empty() ? "" : " ", mark(v))
                                       : std::string(to_string(v)),
                           .detail = here.settings > 1 ? here.tally() : "",
                           .tone = v});
        }
        t.rows.push_back(std::move(row));
    }
    return t;
}

exhibit speed_exhibit(const run& r) {
    exhibit e{{}, {"Speed of the machine: time of one fixed loop beside every sample", {}, {}}};
    e.figures.columns = {{"machine", kind::text}, {"samples"}};
    for (const char* heading : {"least", "median", "most"}) e.figures.columns.push_back({heading, kind::figure, "ns"});
    e.figures.columns.push_back({fmt::format("more than {:.0f} % above the least", 100 * (uneven_speed - 1))});
    std::vector<std::string> lines;
    for (std::size_t m = 0; m < std::max<std::size_t>(1, r.machines.size()); ++m) {
        std::vector<std::pair<std::size_t, double>> turns;
        for (const cell& c : r.cells) {
            for (const sample& s : c.samples) {
                if (s.machine == m && s.calibration > 0 && s.turn > 0) turns.emplace_back(s.turn, s.calibration);
            }
        }
        if (turns.empty()) continue;
        std::sort(turns.begin(), turns.end());
        std::vector<double> values;
        for (const auto& [turn, ns] : turns) values.push_back(ns);
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        const auto slow = std::count_if(values.begin(), values.end(),
                                        [&, fast = *least](double v) { return v > uneven_speed * fast; });
        e.figures.rows.push_back({{.text = machine_name(r, m)},
                                  {.text = fmt::format("{}", values.size())},
                                  {.text = figure(*least)},
                                  {.text = figure(*median(values))},
                                  {.text = figure(*most)},
                                  {.text = fmt::format("{}", slow),
                                   .detail = percent(static_cast<double>(slow) / static_cast<double>(values.size()))}});
        std::vector<std::string> points;
        for (const auto& [i, ns] : outline(values, 1500))
            points.push_back(fmt::format("[{},{:.5g}]", turns[i].first, ns));
        lines.push_back(json(fields{{"m", json_string(machine_name(r, m))}, {"points", json(points)}}));
    }
    if (lines.empty()) return {};
    const fields members{{"kind", json_string("speed")}, {"lines", json(lines)}};
    e.charts.push_back({"Speed of the machine over the run", json(members)});
    return e;
}

table twins_table(const book& b) {
    table t{"A/A rows: the baseline measured once more under another name, so every difference is noise",
            {{"strategy", kind::name},
             {"workload", kind::text},
             {"setting", kind::text},
             {"ratio"},
             {"interval"},
             {"pairs"},
             {"verdict", kind::text}},
            {}};
    for (const comparison& c : b.comparisons) {
        if (!is_twin(b.of, c.of->strategy) || !c.ratio) continue;
        t.rows.push_back(
            {{.text = c.of->strategy},
             {.text = c.of->workload},
             {.text = describe(c.of->parameters)},
             {.text = figure(*c.ratio)},
             {.text = c.bounds ? fmt::format("{} to {}", figure(c.bounds->low), figure(c.bounds->high)) : "–"},
             {.text = fmt::format("{}", c.pairs)},
             {.text = fmt::format("{} {}", mark(c.decided), to_string(c.decided)), .tone = c.decided}});
    }
    return t;
}

table order_table(const run& r) {
    constexpr std::size_t most_rows = 60;
    std::vector<std::pair<const sample*, const cell*>> all;
    for (const cell& c : r.cells) {
        for (const sample& s : c.samples) {
            if (s.turn > 0) all.emplace_back(&s, &c);
        }
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return std::pair{a.first->machine, a.first->turn} < std::pair{b.first->machine, b.first->turn};
    });
    const std::size_t rows = std::min(most_rows, all.size());
    table t{fmt::format("Order of the measurements: the first {} of {}", rows, all.size()),
            {{"turn"}, {"block"}, {"strategy", kind::name}, {"workload", kind::text}, {"setting", kind::text}},
            {}};
    if (!r.machines.empty()) t.columns.insert(t.columns.begin() + 1, {"machine", kind::text});
    for (std::size_t i = 0; i < rows; ++i) {
        const auto& [s, c] = all[i];
        std::vector<entry> row{{.text = fmt::format("{}", s->turn)},
                               {.text = fmt::format("{}", s->block + 1)},
                               {.text = c->strategy},
                               {.text = c->workload},
                               {.text = describe(c->parameters)}};
        if (!r.machines.empty()) row.insert(row.begin() + 1, {.text = machine_name(r, s->machine)});
        t.rows.push_back(std::move(row));
    }
    return t;
}

}  // namespace alloclab::report
