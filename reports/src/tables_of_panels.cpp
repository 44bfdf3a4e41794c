// The tables of one panel or chapter.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tables.hpp"

namespace alloclab::report {
namespace {

using kind = column::kind;

entry verdict_of(const comparison& c) {
    const auto symbol = mark(c.decided);
    return {.text = fmt::format("{}{}{}", symbol, symbol.empty() ? "" : " ", to_string(c.decided)), .tone = c.decided};
}

/// Whether times, or their lack, say anything of the strategy.
bool is_timed(const panel& p, const std::string& strategy) {
    return std::any_of(p.cells.begin(), p.cells.end(), [&](const auto& c) {
        return c.first.first == strategy && c.second->decided != verdict::untimed;
    });
}

/// Columns for counters, each in one unit, and the entries below them.
class counter_columns {
public:
    template <class Cells>
    counter_columns(const std::vector<std::string>& names, const Cells& cells) : names_{names} {
        for (const std::string& name : names) {
            double largest = 0;
            for (const cell* c : cells) {
                if (const auto value = c->counters.find(name); value != c->counters.end())
                    largest = std::max(largest, value->second);
            }
            units_.push_back(counts_bytes(name) ? unit_for(largest) : byte_unit{1, ""});
        }
    }
    void add_to(std::vector<column>& columns) const {
        for (std::size_t i = 0; i < names_.size(); ++i)
            columns.push_back({label(names_[i]), kind::figure, std::string(units_[i].name)});
    }
    void add_to(std::vector<entry>& row, const cell& c) const {
        for (std::size_t i = 0; i < names_.size(); ++i) {
            const auto value = c.counters.find(names_[i]);
            row.push_back({.text = value == c.counters.end() ? "–"
                                   : units_[i].bytes == 1    ? count(value->second)
                                                             : figure(value->second / units_[i].bytes)});
        }
    }

private:
    const std::vector<std::string>& names_;
    std::vector<byte_unit> units_;
};

/// One row a strategy at one place, for those that have what the table is about.
template <class Has, class Fill>
void fill_rows(table& t, const chapter& ch, const panel& p, const std::string& at, Has has, Fill fill) {
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, at);
        if (c == nullptr || !has(*c->of)) continue;
        t.rows.push_back({name_of(ch, name)});
        fill(t.rows.back(), *c);
    }
}

std::vector<entry> judgement(const comparison& c) {
    return {{.text = c.median ? figure(*c.median) : "–"},
            {.text = c.ratio ? figure(*c.ratio) : "–"},
            {.text = c.bounds ? fmt::format("{} to {}", figure(c.bounds->low), figure(c.bounds->high)) : "–"},
            {.text = c.pairs > 0 ? fmt::format("{}", c.pairs) : "–"},
            verdict_of(c)};
}

void judgement_columns(std::vector<column>& columns, const workload& on) {
    columns.push_back({"median", kind::figure, on.unit});
    columns.push_back({on.baseline.empty() ? "ratio" : "ratio to " + on.baseline});
    columns.push_back({"interval"});
    columns.push_back({"pairs"});
    columns.push_back({"verdict", kind::text});
}

/// Columns for what a device takes for an eval, one a place, and the entries below them; none where no cell tells.
class device_columns {
public:
    explicit device_columns(const panel& p) : of_{p} {
        for (const std::string& at : p.at)
            if (std::any_of(p.cells.begin(), p.cells.end(),
                            [&](const auto& c) { return c.first.second == at && has_device_time(*c.second->of); }))
                at_.push_back(at);
    }
    void add_to(table& t) const {
        for (const std::string& at : at_)
            t.columns.push_back({of_.at.size() > 1 ? "device at " + at : "device", kind::figure, "virtual ns/eval"});
    }
    void add_to(std::vector<entry>& row, const std::string& strategy) const {
        for (const std::string& at : at_) {
            const comparison* c = of_.find(strategy, at);
            const bool known = c != nullptr && has_device_time(*c->of);
            row.push_back({.text = known ? figure(c->of->counters.at(device_time)) : "–"});
        }
    }

private:
    const panel& of_;
    std::vector<std::string> at_;
};

table times_along_axis(const chapter& ch, const panel& p) {
    table t{fmt::format("Ratio to {} and median in {}, by {}", ch.on->baseline, ch.on->unit, ch.on->axis),
            {{"strategy", kind::name}},
            {}};
    for (const std::string& at : p.at) t.columns.push_back({at.empty() ? "–" : at});
    const device_columns device(p);
    device.add_to(t);
    for (const std::string& name : p.strategies) {
        if (!is_timed(p, name)) continue;
        t.rows.push_back({name_of(ch, name)});
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c == nullptr) {
                t.rows.back().push_back({.text = "–"});
            } else if (!c->median) {
                t.rows.back().push_back({.text = std::string(word(c->decided)), .tone = c->decided});
            } else if (!c->ratio) {
                t.rows.back().push_back({.text = figure(*c->median) + " " + ch.on->unit, .tone = c->decided});
            } else {
                const auto symbol = mark(c->decided);
                t.rows.back().push_back(
                    {.text = fmt::format("{}{}{}", figure(*c->ratio), symbol.empty() ? "" : " ", symbol),
                     .detail = figure(*c->median),
                     .tone = c->decided});
            }
        }
        device.add_to(t.rows.back(), name);
    }
    return t;
}

}  // namespace

table times_table(const chapter& ch, const panel& p) {
    if (p.at.size() > 1) return times_along_axis(ch, p);
    table t{"Times" + place(ch, p.at.front()), {{"strategy", kind::name}}, {}};
    judgement_columns(t.columns, *ch.on);
    const device_columns device(p);
    device.add_to(t);
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, p.at.front());
        if (!is_timed(p, name)) continue;
        t.rows.push_back({name_of(ch, name)});
        for (entry& e : judgement(*c)) t.rows.back().push_back(std::move(e));
        device.add_to(t.rows.back(), name);
    }
    return t;
}

table scaling_table(const chapter& ch, const panel& p) {
    const std::string& axis = ch.on->axis;
    table t{fmt::format("Growth of the time along {0}, as {0}^b: 0 does not depend on it, 1 is in proportion", axis),
            {{"strategy", kind::name}, {"b"}, {"interval"}, {"from"}, {"to"}, {"blocks"}},
            {}};
    if (axis.empty()) return t;
    for (const std::string& name : p.strategies) {
        std::vector<const cell*> along;
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c != nullptr && c->median && number(at)) along.push_back(c->of);
        }
        const auto grown = scaling_of(along, axis);
        if (!grown) continue;
        const auto& bounds = grown->bounds;
        t.rows.push_back({name_of(ch, name),
                          {.text = fmt::format("{:.2f}", grown->exponent)},
                          {.text = bounds ? fmt::format("{:.2f} to {:.2f}", bounds->low, bounds->high) : "–"},
                          {.text = count(grown->from)},
                          {.text = count(grown->to)},
                          {.text = fmt::format("{}", grown->blocks)}});
    }
    return t;
}

table latency_table(const chapter& ch, const panel& p) {
    const std::string at = busiest(p, has_latency);
    table t{"Single operations" + place(ch, at) + "; the floor, the clock's own time, is in each of them",
            {{"strategy", kind::name}, {"floor", kind::figure, "ns"}},
            {}};
    for (const auto& [label, share] : quantiles) t.columns.push_back({std::string(label), kind::figure, "ns"});
    t.columns.push_back({"count"});
    fill_rows(t, ch, p, at, has_latency, [](std::vector<entry>& row, const comparison& c) {
        const latency_curve& l = *c.of->latency;
        row.push_back({.text = figure(l.floor)});
        for (const auto& [label, share] : quantiles) {
            const auto within = quantile(l, share);
            row.push_back({.text = within ? figure(*within) : "–"});
        }
        row.push_back({.text = fmt::format("{}", l.count)});
    });
    return t;
}

table parts_table(const chapter& ch, const panel& p) {
    const std::string at = busiest(p, has_parts);
    table t{"Parts of the whole" + place(ch, at), {{"strategy", kind::name}}, {}};
    if (const auto missing = left_out(ch, p); !missing.empty()) t.caption += ", without " + listed(missing, "or");
    if (const auto compared = share_of(ch, p))
        t.caption += fmt::format("; the {} part is {} of it", compared_part(*ch.on), in_words(*compared));
    for (const std::string& part : ch.parts) t.columns.push_back({label(part), kind::figure, ch.on->unit});
    t.columns.push_back({"sum", kind::figure, ch.on->unit});
    fill_rows(t, ch, p, at, has_parts, [&](std::vector<entry>& row, const comparison& c) {
        double sum = 0;
        for (const auto& [part, value] : c.of->parts) sum += value;
        for (const std::string& part : ch.parts) {
            const auto value = c.of->parts.find(part);
            if (value == c.of->parts.end()) row.push_back({.text = "–"});
            else row.push_back({.text = figure(value->second), .detail = sum > 0 ? percent(value->second / sum) : ""});
        }
        row.push_back({.text = figure(sum)});
    });
    return t;
}

table counters_table(const chapter& ch, const panel& p) {
    const std::string at = counted_place(p);
    std::vector<const cell*> cells;
    for (const std::string& name : p.strategies) {
        if (const comparison* c = p.find(name, at)) cells.push_back(c->of);
    }
    const counter_columns counters(ch.counters, cells);
    table t{"Counters" + place(ch, at), {{"strategy", kind::name}}, {}};
    counters.add_to(t.columns);
    const bool fragmented =
        std::any_of(cells.begin(), cells.end(), [](const cell* c) { return fragmentation(*c).has_value(); });
    if (fragmented) {
        t.columns.push_back({"fragmentation"});
        t.caption += fmt::format("; {}", fragmentation_defined);
    }
    if (std::none_of(cells.begin(), cells.end(), [](const cell* c) { return has_counters(*c); })) return t;
    const auto tells = [](const cell& c) { return has_counters(c) || !c.refusal.empty(); };
    fill_rows(t, ch, p, at, tells, [&](std::vector<entry>& row, const comparison& c) {
        counters.add_to(row, *c.of);
        const auto unused = fragmentation(*c.of);
        if (fragmented) row.push_back({.text = unused ? percent(*unused) : "–"});
        const std::string without(word(c.decided));
        if (!has_counters(*c.of)) row[1] = {.text = without, .tone = c.decided};
        else if (!c.of->refusal.empty()) row[1].detail = without, row[1].tone = c.decided;
    });
    return t;
}

table growth_table(const chapter& ch, const panel& p) {
    table t{"Growth after warm-up", {{"strategy", kind::name}}, {}};
    if (p.at.size() > 1) t.columns.push_back({ch.on->axis});
    for (const char* text : {"series", "shape"}) t.columns.push_back({text, kind::text});
    for (const char* text : {"per eval", "lowest", "highest", "evals"}) t.columns.push_back({text});
    std::map<std::string, byte_unit> units;
    for (const std::string& key : ch.series) units[key] = unit_of(p, key);
    for (const std::string& name : p.strategies) {
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c == nullptr) continue;
            for (const auto& [key, values] : c->of->series) {
                const byte_unit unit = units.at(key);
                std::vector<entry> row{name_of(ch, name)};
                if (p.at.size() > 1) row.push_back({.text = at});
                row.push_back({.text = heading({label(key), kind::text, std::string(unit.name)})});
                if (const auto grown = trend_of(values)) {
                    constexpr std::array<const char*, 4> shapes{"flat", "linear", "saw-tooth", "other"};
                    row.push_back({.text = fmt::format("{}{}", shapes[static_cast<std::size_t>(grown->shape)],
                                                       grown->leak ? ": leaks" : ""),
                                   .tone = grown->leak ? std::optional{verdict::failed} : std::nullopt});
                    for (const double value : {grown->per_eval, grown->low, grown->high})
                        row.push_back({.text = count(value / unit.bytes)});
                    if (grown->slope && grown->shape != growth::flat) {
                        row[row.size() - 3].detail =
                            fmt::format("lows {} to {}", figure(grown->slope->low / unit.bytes),
                                        figure(grown->slope->high / unit.bytes));
                    }
                } else {
                    row.insert(row.end(), {{.text = "too short"}, {.text = "–"}, {.text = "–"}, {.text = "–"}});
                }
                row.push_back({.text = fmt::format("{}", values.size())});
                t.rows.push_back(std::move(row));
            }
        }
    }
    return t;
}

table cells_table(const chapter& ch) {
    std::set<std::string> parameters;
    std::vector<const cell*> cells;
    for (const panel& p : ch.panels) {
        for (const auto& [key, c] : p.cells) {
            cells.push_back(c->of);
            for (const auto& [name, value] : c->of->parameters) parameters.insert(name);
        }
    }
    const counter_columns counters(ch.counters, cells);
    table t{"Every cell of " + title_of(*ch.on), {{"strategy", kind::name}}, {}};
    for (const std::string& name : parameters) t.columns.push_back({name});
    judgement_columns(t.columns, *ch.on);
    t.columns.push_back({"coverage"});
    counters.add_to(t.columns);
    t.columns.push_back({"note", kind::text});
    for (const panel& p : ch.panels) {
        for (const std::string& name : p.strategies) {
            for (const std::string& at : p.at) {
                const comparison* c = p.find(name, at);
                if (c == nullptr) continue;
                std::vector<entry> row{name_of(ch, name)};
                for (const std::string& parameter : parameters) {
                    const auto value = c->of->parameters.find(parameter);
                    row.push_back({.text = value == c->of->parameters.end() ? "–" : value->second});
                }
                for (entry& e : judgement(*c)) row.push_back(std::move(e));
                row.push_back({.text = c->bounds ? percent(c->bounds->coverage) : "–"});
                counters.add_to(row, *c->of);
                row.push_back({.text = c->reason});
                t.rows.push_back(std::move(row));
            }
        }
    }
    return t;
}

}  // namespace alloclab::report
