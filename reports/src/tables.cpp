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

/// Whether times, or their lack, say anything of the strategy.
bool is_timed(const panel& p, const std::string& strategy) {
    return std::any_of(p.cells.begin(), p.cells.end(), [&](const auto& c) {
        return c.first.first == strategy && c.second->decided != verdict::untimed;
    });
}

/// What stands in place of a time.
std::string_view word(verdict v) noexcept { return v == verdict::untimed ? "–" : to_string(v); }

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

table times_along_axis(const chapter& ch, const panel& p) {
    table t{fmt::format("Ratio to {} and median in {}, by {}", ch.on->baseline, ch.on->unit, ch.on->axis),
            {{"strategy", kind::name}},
            {}};
    for (const std::string& at : p.at) t.columns.push_back({at.empty() ? "–" : at});
    for (const std::string& name : p.strategies) {
        if (!is_timed(p, name)) continue;
        t.rows.push_back({name_of(name, is_control(p, name))});
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
    }
    return t;
}

/// "5 ▼, 2 full": how many settings say what.
std::string counts(const standing& s) {
    if (s.count(verdict::baseline) > 0) return "baseline";
    if (s.settings == 1) return "";
    std::vector<std::string> parts;
    for (const auto& [v, n] : s.verdicts) parts.push_back(fmt::format("{} {}", n, mark(v).empty() ? word(v) : mark(v)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// The average ratio and how it came about; without one, why, or how the strategy's series grow.
entry stands(const standing& s) {
    constexpr std::array<const char*, 4> growths{"–", "flat", "varies", "leaks"};
    const verdict overall = s.overall();
    const auto tone = s.leaks() ? verdict::failed : overall;
    if (overall == verdict::untimed) return {.text = growths[static_cast<std::size_t>(s.growth)], .tone = tone};
    if (!s.ratio)
        return {.text = std::string(word(overall)), .detail = s.verdicts.size() > 1 ? counts(s) : "", .tone = tone};
    const auto symbol = overall == verdict::inconclusive ? "" : mark(overall);
    return {.text = fmt::format("{}{}{}", figure(*s.ratio), symbol.empty() ? "" : " ", symbol),
            .detail = counts(s) + (s.leaks() ? (s.settings > 1 ? ", leaks" : "leaks") : ""),
            .tone = tone};
}

}  // namespace

std::string_view mark(verdict v) noexcept {
    constexpr std::array<std::string_view, 5> marks{"", "▼", "▲", "=", "?"};
    return v < verdict::full ? marks[static_cast<std::size_t>(v)] : "";
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
    table t{fmt::format("{}: ratio to the baseline, geometric mean over the settings",
                        of.empty() ? "Strategies" : capital(of) + " strategies"),
            {{"strategy", kind::name}},
            {}};
    std::vector<const chapter*> chapters;
    std::vector<std::string> names;
    for (const chapter& ch : b.chapters) {
        if (ch.on->kind != of) continue;
        chapters.push_back(&ch);
        t.columns.push_back({short_name(*ch.on), kind::figure,
                             fmt::format("{} setting{}", ch.settings(), ch.settings() == 1 ? "" : "s")});
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
            row.push_back(stands(*s));
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
        if (!is_timed(p, name)) continue;
        t.rows.push_back({name_of(name, c->control)});
        for (entry& e : judgement(*c)) t.rows.back().push_back(std::move(e));
    }
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
    fill_rows(t, p, at, has_parts, [&](std::vector<entry>& row, const comparison& c) {
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
    if (std::none_of(cells.begin(), cells.end(), [](const cell* c) { return has_counters(*c); })) return t;
    const auto tells = [](const cell& c) { return has_counters(c) || !c.refusal.empty(); };
    fill_rows(t, p, at, tells, [&](std::vector<entry>& row, const comparison& c) {
        counters.add_to(row, *c.of);
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
                std::vector<entry> row{name_of(name, c->control)};
                if (p.at.size() > 1) row.push_back({.text = at});
                row.push_back({.text = heading({label(key), kind::text, std::string(unit.name)})});
                if (const auto grown = trend_of(values)) {
                    constexpr std::array<const char*, 3> shapes{"flat", "linear", "other"};
                    row.push_back({.text = fmt::format("{}{}", shapes[static_cast<std::size_t>(grown->shape)],
                                                       grown->leak ? ": leaks" : ""),
                                   .tone = grown->leak ? std::optional{verdict::failed} : std::nullopt});
                    for (const double value : {grown->per_eval, grown->low, grown->high})
                        row.push_back({.text = count(value / unit.bytes)});
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
    for (const char* heading : {"kind", "threads", "room", "when full"}) t.columns.push_back({heading, kind::text});
    for (const strategy& s : r.strategies) {
        t.rows.push_back({name_of(s.name, s.control),
                          {.text = s.kind},
                          {.text = s.threads},
                          {.text = s.bounded ? fmt::format("{} slots", s.capacity) : "unbounded"},
                          {.text = s.when_full}});
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

byte_unit unit_of(const panel& p, const std::string& series) {
    double largest = 0;
    if (!counts_bytes(series)) return {1, ""};
    for (const auto& [where, c] : p.cells) {
        const auto values = c->of->series.find(series);
        if (values == c->of->series.end()) continue;
        for (const double v : values->second) largest = std::max(largest, v);
    }
    return unit_for(largest);
}

std::string counted_place(const panel& p) {
    const std::string at = busiest(p, [](const cell& c) { return has_counters(c) || !c.refusal.empty(); });
    const bool served = std::any_of(p.cells.begin(), p.cells.end(), [&](const auto& c) {
        return c.first.second == at && has_counters(*c.second->of) && c.second->of->refusal.empty();
    });
    return served ? at : busiest(p, has_counters);
}

std::string place(const chapter& ch, const std::string& at) {
    return ch.on->axis.empty() || at.empty() ? "" : fmt::format(" at {} = {}", ch.on->axis, at);
}

}  // namespace alloclab::report
