#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "text.hpp"

namespace alloclab::report {
namespace {

using kind = column::kind;

entry name_of(const std::string& strategy, bool control) { return {.text = strategy, .control = control}; }

entry verdict_of(const comparison& c) {
    const auto symbol = mark(c.decided);
    return {.text = fmt::format("{}{}{}", symbol, symbol.empty() ? "" : " ", to_string(c.decided)), .tone = c.decided};
}

bool is_control(const panel& p, const std::string& strategy) {
    const auto cell =
        std::find_if(p.cells.begin(), p.cells.end(), [&](const auto& c) { return c.first.first == strategy; });
    return cell != p.cells.end() && cell->second->control;
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
void fill_rows(table& t, const panel& p, const std::string& at, Has has, Fill fill) {
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, at);
        if (c == nullptr || !has(*c->of)) continue;
        t.rows.push_back({name_of(name, c->control)});
        fill(t.rows.back(), *c->of);
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

table times_along_axis(const chapter& ch, const panel& p) {
    table t{fmt::format("Ratio to {} and median in {}, by {}", ch.on->baseline, ch.on->unit, ch.on->axis),
            {{"strategy", kind::name}},
            {}};
    for (const std::string& at : p.at) t.columns.push_back({at.empty() ? "–" : at});
    for (const std::string& name : p.strategies) {
        t.rows.push_back({name_of(name, is_control(p, name))});
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c == nullptr) {
                t.rows.back().push_back({.text = "–"});
            } else if (!c->median) {
                t.rows.back().push_back({.text = "–", .detail = "failed", .tone = c->decided});
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
    }
    return t;
}

}  // namespace

std::string_view mark(verdict v) noexcept {
    constexpr std::array<std::string_view, 6> marks{"", "▼", "▲", "=", "?", ""};
    return marks[static_cast<std::size_t>(v)];
}

std::string heading(const column& c) { return c.unit.empty() ? c.heading : fmt::format("{} ({})", c.heading, c.unit); }

std::vector<std::string> kinds(const book& b) {
    std::vector<std::string> all;
    for (const chapter& ch : b.chapters) {
        if (std::find(all.begin(), all.end(), ch.on->kind) == all.end()) all.push_back(ch.on->kind);
    }
    return all;
}

table standings_table(const book& b, const std::string& of) {
    table t{of.empty() ? "Ratio to the baseline" : "Ratio to the baseline: " + of + " strategies",
            {{"strategy", kind::name}},
            {}};
    std::vector<const chapter*> chapters;
    std::vector<std::string> names;
    for (const chapter& ch : b.chapters) {
        if (ch.on->kind != of) continue;
        chapters.push_back(&ch);
        t.columns.push_back({title_of(*ch.on)});
        for (const standing& s : ch.standings) {
            if (std::find(names.begin(), names.end(), s.strategy) == names.end()) names.push_back(s.strategy);
        }
    }
    for (const std::string& name : names) {
        std::vector<entry> row{name_of(name, false)};
        for (const chapter* ch : chapters) {
            const auto s = std::find_if(ch->standings.begin(), ch->standings.end(),
                                        [&](const standing& x) { return x.strategy == name; });
            if (s == ch->standings.end()) {
                row.push_back({.text = "–"});
                continue;
            }
            row.front().control = s->control;
            const auto symbol = mark(s->overall());
            const bool shown = !symbol.empty() && s->overall() != verdict::inconclusive;
            row.push_back({.text = s->ratio ? figure(*s->ratio) + (shown ? fmt::format(" {}", symbol) : "") : "–",
                           .detail = s->tally() + (s->leaks ? ", leaks" : ""),
                           .tone = s->leaks ? verdict::failed : s->overall()});
        }
        t.rows.push_back(std::move(row));
    }
    return t;
}

table times_table(const chapter& ch, const panel& p) {
    if (p.at.size() > 1) return times_along_axis(ch, p);
    table t{"Times" + place(ch, p.at.front()), {{"strategy", kind::name}}, {}};
    judgement_columns(t.columns, *ch.on);
    for (const std::string& name : p.strategies) {
        const comparison* c = p.find(name, p.at.front());
        t.rows.push_back({name_of(name, c->control)});
        for (entry& e : judgement(*c)) t.rows.back().push_back(std::move(e));
    }
    return t;
}

table parts_table(const chapter& ch, const panel& p) {
    const std::string at = busiest(p, has_parts);
    table t{"Parts of the whole" + place(ch, at), {{"strategy", kind::name}}, {}};
    for (const std::string& part : ch.parts) t.columns.push_back({label(part), kind::figure, ch.on->unit});
    t.columns.push_back({"sum", kind::figure, ch.on->unit});
    fill_rows(t, p, at, has_parts, [&](std::vector<entry>& row, const cell& c) {
        double sum = 0;
        for (const auto& [part, value] : c.parts) sum += value;
        for (const std::string& part : ch.parts) {
            const auto value = c.parts.find(part);
            if (value == c.parts.end()) row.push_back({.text = "–"});
            else row.push_back({.text = figure(value->second), .detail = sum > 0 ? percent(value->second / sum) : ""});
        }
        row.push_back({.text = figure(sum)});
    });
    return t;
}

table counters_table(const chapter& ch, const panel& p) {
    const std::string at = busiest(p, has_counters);
    std::vector<const cell*> cells;
    for (const std::string& name : p.strategies) {
        if (const comparison* c = p.find(name, at)) cells.push_back(c->of);
    }
    const counter_columns counters(ch.counters, cells);
    table t{"Counters" + place(ch, at), {{"strategy", kind::name}}, {}};
    counters.add_to(t.columns);
    fill_rows(t, p, at, has_counters, [&](std::vector<entry>& row, const cell& c) { counters.add_to(row, c); });
    return t;
}

table growth_table(const chapter& ch, const panel& p) {
    table t{"Growth after warm-up", {{"strategy", kind::name}}, {}};
    if (p.at.size() > 1) t.columns.push_back({ch.on->axis});
    for (const char* heading : {"series", "shape"}) t.columns.push_back({heading, kind::text});
    for (const char* heading : {"per eval", "lowest", "highest", "evals"}) t.columns.push_back({heading});
    for (const std::string& name : p.strategies) {
        for (const std::string& at : p.at) {
            const comparison* c = p.find(name, at);
            if (c == nullptr) continue;
            for (const auto& [key, values] : c->of->series) {
                std::vector<entry> row{name_of(name, c->control)};
                if (p.at.size() > 1) row.push_back({.text = at});
                row.push_back({.text = label(key)});
                if (const auto grown = trend_of(values)) {
                    constexpr std::array<const char*, 3> shapes{"flat", "linear", "other"};
                    row.push_back({.text = fmt::format("{}{}", shapes[static_cast<std::size_t>(grown->shape)],
                                                       grown->leak ? ": leaks" : ""),
                                   .tone = grown->leak ? std::optional{verdict::failed} : std::nullopt});
                    for (const double value : {grown->per_eval, grown->low, grown->high})
                        row.push_back({.text = count(value)});
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
                std::vector<entry> row{name_of(name, c->control)};
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

table strategies_table(const run& r) {
    table t{"Strategies of this run", {{"strategy", kind::name}}, {}};
    for (const char* heading : {"kind", "threads", "room", "when full", "what it is"})
        t.columns.push_back({heading, kind::text});
    for (const strategy& s : r.strategies) {
        t.rows.push_back({name_of(s.name, s.control),
                          {.text = s.kind},
                          {.text = s.threads},
                          {.text = s.bounded ? fmt::format("{} slots", s.capacity) : "unbounded"},
                          {.text = s.when_full},
                          {.text = s.summary}});
    }
    return t;
}

table environment_table(const run& r) {
    table t{"Environment", {{"what", kind::text}, {"value", kind::text}}, {}};
    for (const auto& [name, value] : r.environment) t.rows.push_back({{.text = name}, {.text = value}});
    return t;
}

std::vector<table> tables_of(const chapter& ch, const panel& p) {
    std::vector<table> tables;
    for (table& t : std::array{times_table(ch, p), parts_table(ch, p), counters_table(ch, p), growth_table(ch, p)}) {
        if (!t.rows.empty()) tables.push_back(std::move(t));
    }
    return tables;
}

std::string place(const chapter& ch, const std::string& at) {
    return ch.on->axis.empty() || at.empty() ? "" : fmt::format(" at {} = {}", ch.on->axis, at);
}

}  // namespace alloclab::report
