// Charts of memory: how much, how well used, over a round, against time, and where each tensor of a plan lies.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "chart_json.hpp"
#include "charts.hpp"

namespace alloclab::report {
namespace {

using kind = column::kind;

std::optional<double> counter(const comparison* c, const char* name) {
    if (c == nullptr || !c->of->refusal.empty()) return std::nullopt;
    const auto value = c->of->counters.find(name);
    if (value == c->of->counters.end() || !std::isfinite(value->second)) return std::nullopt;
    return value->second;
}

chart bytes_chart(const chapter& ch, const panel& p, const std::string& at, byte_unit unit) {
    std::vector<std::string> rows, groups;
    for (const char* name : {"peak_bytes", "reserved_bytes"}) {
        const std::size_t before = rows.size();
        for (const std::string& strategy : p.strategies) {
            if (const auto value = counter(p.find(strategy, at), name))
                rows.push_back(json(fields{{"s", json_string(strategy)},
                                           {"group", json_string(label(name))},
                                           {"y", json(*value / unit.bytes)}}));
        }
        if (rows.size() > before) groups.push_back(label(name));
    }
    fields members = common("bytes", *ch.on, unit.name);
    members.emplace_back("groups", json_strings(groups));
    members.emplace_back("rows", json(rows));
    return {"Memory" + place(ch, at), json(members)};
}

std::optional<chart> fragmentation_chart(const chapter& ch, const panel& p, const std::string& at) {
    std::vector<std::string> rows;
    for (const std::string& strategy : p.strategies) {
        const comparison* c = p.find(strategy, at);
        if (const auto share = c == nullptr ? std::nullopt : fragmentation(*c->of))
            rows.push_back(json(fields{{"s", json_string(strategy)}, {"y", json(*share)}}));
    }
    if (rows.empty()) return std::nullopt;
    fields members = common("fragmentation", *ch.on, "");
    members.emplace_back("rows", json(rows));
    return chart{"Fragmentation, 1 - peak / reserved" + place(ch, at), json(members)};
}

/// One strategy at one place, as far as both figures are known.
struct cost {
    const comparison* of;
    double time;
    double bytes;
    bool candidate;  ///< neither a control nor an A/A row
    const cost* beaten_by = nullptr;
};

/// Fills beaten_by: a candidate that is no worse in either and better in one, the fastest such.
void find_frontier(std::vector<cost>& costs) {
    for (cost& c : costs) {
        for (const cost& other : costs) {
            if (!other.candidate || other.time > c.time || other.bytes > c.bytes) continue;
            if (other.time == c.time && other.bytes == c.bytes) continue;
            if (c.beaten_by == nullptr || other.time < c.beaten_by->time) c.beaten_by = &other;
        }
    }
}

}  // namespace

exhibit memory_exhibit(const chapter& ch, const panel& p) {
    exhibit e{{}, counters_table(ch, p)};
    const std::string at = counted_place(p);
    double largest = 0;
    for (const std::string& strategy : p.strategies) {
        for (const char* name : {"peak_bytes", "reserved_bytes"})
            largest = std::max(largest, counter(p.find(strategy, at), name).value_or(0));
    }
    if (largest > 0) e.charts.push_back(bytes_chart(ch, p, at, unit_for(largest)));
    if (auto c = fragmentation_chart(ch, p, at)) e.charts.push_back(std::move(*c));
    return e;
}

exhibit pareto_exhibit(const chapter& ch, const panel& p) {
    const bool peaks = std::any_of(p.cells.begin(), p.cells.end(),
                                   [](const auto& c) { return c.second->median && counter(c.second, "peak_bytes"); });
    const char* bytes = peaks ? "peak_bytes" : "reserved_bytes";
    std::map<std::string, std::vector<cost>> by_place;
    double largest = 0;
    for (const std::string& at : p.at) {
        std::vector<cost>& costs = by_place[at];
        for (const std::string& name : p.strategies) {
            const comparison* c = p.find(name, at);
            const auto value = counter(c, bytes);
            if (!value || !c->median || !(*c->median > 0)) continue;
            const bool candidate = ch.of(name).candidate();
            costs.push_back({c, *c->median, *value, candidate});
            largest = std::max(largest, *value);
        }
        find_frontier(costs);
    }
    const byte_unit unit = unit_for(largest);
    exhibit e{
        {}, {fmt::format("Time against {} bytes: who is beaten in both, by medians", label(bytes)), {}, {}}, true};
    e.figures.columns = {{"strategy", kind::name}};
    if (p.at.size() > 1) e.figures.columns.push_back({ch.on->axis});
    e.figures.columns.push_back({"median", kind::figure, ch.on->unit});
    e.figures.columns.push_back({label(bytes), kind::figure, std::string(unit.name)});
    e.figures.columns.push_back({"on the frontier", kind::text});
    std::vector<std::string> rows;
    bool choice = false;  // a single strategy is no trade
    for (const std::string& at : p.at) {
        choice = choice || by_place[at].size() > 1;
        for (const cost& c : by_place[at]) {
            const bool frontier = c.candidate && c.beaten_by == nullptr;
            std::vector<entry> row{name_of(ch, c.of->of->strategy)};
            if (p.at.size() > 1) row.push_back({.text = at});
            row.push_back({.text = figure(c.time)});
            row.push_back({.text = figure(c.bytes / unit.bytes)});
            row.push_back({.text = frontier                 ? "yes"
                                   : c.beaten_by != nullptr ? "beaten by " + c.beaten_by->of->of->strategy
                                                            : "not counted"});
            e.figures.rows.push_back(std::move(row));
            rows.push_back(json(fields{{"s", json_string(c.of->of->strategy)},
                                       {"place", json_string(at)},
                                       {"x", json(c.time)},
                                       {"y", json(c.bytes / unit.bytes)},
                                       {"frontier", frontier ? "true" : "false"}}));
        }
    }
    if (!choice) return {};
    fields members = common("pareto", *ch.on, ch.on->unit);
    members.emplace_back("bytes", json_string(fmt::format("{}, {}", label(bytes), unit.name)));
    members.emplace_back("axis", json_string(label(ch.on->axis)));
    members.emplace_back("places", json_strings(p.at));
    members.emplace_back("shown", json_string(busiest(p, [&](const cell& c) {
                             return !c.samples.empty() && c.refusal.empty() && c.counters.contains(bytes);
                         })));
    members.emplace_back("rows", json(rows));
    e.charts.push_back({fmt::format("Time against {} memory", label(bytes)), json(members)});
    return e;
}

exhibit timeline_exhibit(const chapter& ch, const panel& p) {
    constexpr std::array<const char*, 2> groups{"live_bytes", "reserved_bytes"};
    const std::string at = busiest(p, [](const cell& c) { return !c.timeline.empty(); });
    const auto over_round = [&](const comparison* c, const char* name) {
        std::vector<double> values;
        if (c != nullptr) {
            if (const auto line = c->of->timeline.find(name); line != c->of->timeline.end()) values = line->second;
        }
        return values;
    };
    const auto most = [](const std::vector<double>& values) {
        return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    };
    double largest = 0;
    for (const std::string& name : p.strategies) {
        for (const char* group : groups) largest = std::max(largest, most(over_round(p.find(name, at), group)));
    }
    if (!(largest > 0)) return {};
    const byte_unit unit = unit_for(largest);
    exhibit e{{},
              {"Live and reserved bytes over one round" + place(ch, at), {{"strategy", kind::name}, {"steps"}}, {}}};
    for (const char* heading : {"most live", "most reserved", "live at the end", "reserved at the end"})
        e.figures.columns.push_back({heading, kind::figure, std::string(unit.name)});
    std::vector<std::string> lines;
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, at);
        const auto live = over_round(c, groups[0]), reserved = over_round(c, groups[1]);
        if (live.empty() && reserved.empty()) continue;
        const auto shown = [&](const std::vector<double>& values, double value) {
            return entry{.text = values.empty() ? "–" : figure(value / unit.bytes)};
        };
        e.figures.rows.push_back({name_of(ch, name),
                                  {.text = fmt::format("{}", std::max(live.size(), reserved.size()))},
                                  shown(live, most(live)),
                                  shown(reserved, most(reserved)),
                                  shown(live, live.empty() ? 0 : live.back()),
                                  shown(reserved, reserved.empty() ? 0 : reserved.back())});
        for (const char* group : groups) {
            std::vector<std::string> points;
            for (const auto& [step, value] : outline(over_round(c, group), 400))
                points.push_back(fmt::format("[{},{}]", step, json(value / unit.bytes)));
            if (!points.empty())
                lines.push_back(json(
                    fields{{"s", json_string(name)}, {"group", json_string(label(group))}, {"points", json(points)}}));
        }
    }
    fields members = common("timeline", *ch.on, unit.name);
    members.emplace_back("lines", json(lines));
    e.charts.push_back({"Live and reserved bytes over one round" + place(ch, at), json(members)});
    return e;
}

exhibit map_exhibit(const memory_map& m) {
    constexpr std::size_t most_rows = 20;
    if (m.placements.empty() || m.steps == 0) return {};
    std::map<std::string_view, std::size_t> index;
    std::vector<std::string> names;
    std::array<std::vector<std::string>, 5> columns;
    std::size_t largest = 0;
    for (const placement& t : m.placements) {
        const auto [at, fresh] = index.emplace(t.tensor, names.size());
        if (fresh) names.push_back(t.tensor);
        const std::array<std::size_t, 5> values{t.first, t.last, t.offset, t.bytes, at->second};
        for (std::size_t i = 0; i < values.size(); ++i) columns[i].push_back(fmt::format("{}", values[i]));
        largest = std::max(largest, t.bytes);
    }
    fields members{{"kind", json_string("map")},
                   {"steps", fmt::format("{}", m.steps)},
                   {"bytes", fmt::format("{}", m.bytes)},
                   {"bound", fmt::format("{}", m.lower_bound)},
                   {"names", json_strings(names)}};
    constexpr std::array<const char*, 5> titles{"first", "last", "offset", "size", "name"};
    for (std::size_t i = 0; i < columns.size(); ++i) members.emplace_back(titles[i], json(columns[i]));
    std::vector<const placement*> order;
    for (const placement& t : m.placements) order.push_back(&t);
    const std::size_t rows = std::min(most_rows, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(rows), order.end(),
                      [](const placement* a, const placement* b) {
                          return a->bytes != b->bytes ? a->bytes > b->bytes : a->first < b->first;
                      });
    const byte_unit unit = unit_for(static_cast<double>(largest));
    exhibit e{{}, {fmt::format("{}: the {} largest of {} tensors", m.name, rows, order.size()), {}, {}}, true};
    e.figures.columns = {{"tensor", kind::text}, {"first step"}, {"last step"}, {"offset", kind::figure, "B"}};
    e.figures.columns.push_back({"size", kind::figure, std::string(unit.name)});
    for (std::size_t i = 0; i < rows; ++i) {
        const placement& t = *order[i];
        e.figures.rows.push_back({{.text = t.tensor},
                                  {.text = fmt::format("{}", t.first)},
                                  {.text = fmt::format("{}", t.last)},
                                  {.text = fmt::format("{}", t.offset)},
                                  {.text = figure(static_cast<double>(t.bytes) / unit.bytes)}});
    }
    e.charts.push_back({fmt::format("{}: where each tensor lies while it lives", m.name), json(members)});
    return e;
}

}  // namespace alloclab::report
