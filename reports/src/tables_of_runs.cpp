// The tables of a whole run: verdicts and claims, then what it was measured with.
#include <fmt/format.h>

#include <algorithm>

#include "tables.hpp"

namespace alloclab::report {
namespace {

using kind = column::kind;

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
    if (s.mixed())
        return {.text = fmt::format("{} to {}", figure(s.least), figure(s.most)), .detail = counts(s), .tone = tone};
    const auto symbol = overall == verdict::inconclusive ? "" : mark(overall);
    return {.text = fmt::format("{}{}{}", figure(*s.ratio), symbol.empty() ? "" : " ", symbol),
            .detail = counts(s) + (s.leaks() ? (s.settings > 1 ? ", leaks" : "leaks") : ""),
            .tone = tone};
}

/// "full in 4 of 12 settings"
std::string absences(const standing& s) {
    std::vector<std::string> parts;
    for (const verdict v : {verdict::full, verdict::refused, verdict::failed}) {
        if (s.count(v) > 0) parts.push_back(fmt::format("{} in {} of {}", to_string(v), s.count(v), s.settings));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> kinds(const book& b) {
    std::vector<std::string> all;
    for (const chapter& ch : b.chapters) {
        if (std::find(all.begin(), all.end(), ch.on->kind) == all.end()) all.push_back(ch.on->kind);
    }
    return all;
}

table verdicts_table(const book& b) {
    table t{"Verdicts against the baseline, with the ratio of the times",
            {{"workload", kind::name}, {"baseline", kind::name}, {"A/A", kind::text}},
            {}};
    constexpr std::array shown{verdict::faster, verdict::same, verdict::slower, verdict::inconclusive};
    for (const verdict v : shown)
        t.columns.push_back(
            {fmt::format("{} {}", mark(v), v == verdict::inconclusive ? "mixed or open" : to_string(v)), kind::text});
    t.columns.push_back({"not everywhere", kind::text});
    t.columns.push_back({"leaks", kind::text});
    for (const chapter& ch : b.chapters) {
        std::vector<sentence> cells(shown.size() + 3);
        std::vector<standing> fastest_first = ch.standings;
        std::stable_sort(fastest_first.begin(), fastest_first.end(), [](const standing& x, const standing& y) {
            return x.ratio.value_or(0) < y.ratio.value_or(0);
        });
        for (const standing& s : fastest_first) {
            if (s.strategy == ch.on->baseline) continue;
            const std::string ratio = s.mixed()             ? fmt::format(" {} to {}", figure(s.least), figure(s.most))
                                      : s.ratio.has_value() ? ' ' + figure(*s.ratio)
                                                            : "";
            const auto add = [&](std::size_t column, const std::string& behind) {
                sentence& cell = cells[column];
                if (!cell.empty()) cell.push_back({piece::kind::plain, ", "});
                cell.push_back({piece::kind::name, s.strategy});
                cell.push_back({piece::kind::plain, (s.control ? " (control)" : "") + behind});
            };
            if (s.twin) {
                if (s.ratio) cells[0] = words(fmt::format("{} {}", figure(*s.ratio), mark(s.overall())));
                continue;
            }
            const auto column = std::find(shown.begin(), shown.end(), s.overall());
            if (s.ratio && column != shown.end()) add(1 + static_cast<std::size_t>(column - shown.begin()), ratio);
            const std::size_t without = s.count(verdict::full) + s.count(verdict::refused) + s.count(verdict::failed);
            if (without > 0)
                add(shown.size() + 1, s.settings == 1 ? fmt::format(" {}", word(s.verdicts.begin()->first))
                                                      : fmt::format(" {}", absences(s)));
            if (s.leaks()) add(shown.size() + 2, "");
        }
        std::vector<entry> row{{.text = ch.on->name}, {.text = ch.on->baseline}};
        for (sentence& cell : cells) row.push_back({.text = cell.empty() ? "–" : plain(cell), .said = cell});
        t.rows.push_back(std::move(row));
    }
    return t;
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
        std::vector<entry> row{{.text = name}};
        for (const chapter* ch : chapters) {
            const auto s = std::find_if(ch->standings.begin(), ch->standings.end(),
                                        [&](const standing& x) { return x.strategy == name; });
            if (s == ch->standings.end()) {
                row.push_back({.text = "–"});
                continue;
            }
            row.front() = name_of(*ch, name);
            row.push_back(stands(*s));
        }
        t.rows.push_back(std::move(row));
    }
    return t;
}

table claims_table(const std::vector<claim>& claims) {
    table t{"Claims under test", {{"id", kind::name}, {"claim", kind::text}, {"verdict", kind::text}}, {}};
    for (const claim& c : claims) {
        if (c.ruled == ruling::unmeasured) continue;
        sentence verdict{{piece::kind::figure, std::string(to_string(c.ruled))}};
        if (!c.flips.empty()) verdict = joined({verdict, words(": "), c.flips});
        t.rows.push_back({{.text = c.id}, {.text = c.says}, {.text = plain(verdict), .said = verdict}});
    }
    return t;
}

std::vector<std::string> unmeasured(const std::vector<claim>& claims) {
    std::vector<std::string> ids;
    for (const claim& c : claims) {
        if (c.ruled == ruling::unmeasured) ids.push_back(c.id);
    }
    return ids;
}

table bars_table(const bar_list& list) {
    const auto any = [&](auto has) { return std::any_of(list.bars.begin(), list.bars.end(), has); };
    const bool counted = any([](const bar& b) { return b.instructions.has_value(); });
    const bool shared = any([](const bar& b) { return b.share.has_value(); });
    table t{"Bars: ratios of times in this run against what they are held to",
            {{"figure", kind::text}, {"verdict", kind::text}, {"measured"}, {"interval"}, {"bar"}, {"stretch"}},
            {}};
    if (counted) t.columns.push_back({"instructions"});
    if (shared) t.columns.push_back({"of an eval"});
    for (const bar& b : list.bars) {
        const char* sign = b.held_to.at_least ? "≥ " : "≤ ";
        const auto text = [](const std::optional<double>& v) { return v ? figure(*v) : "–"; };
        const verdict tone = b.graded == grade::missed                                  ? verdict::slower
                             : b.graded == grade::reached || b.graded == grade::stretch ? verdict::faster
                                                                                        : verdict::inconclusive;
        std::vector<entry> row{
            {.text = b.figure, .detail = b.where},
            {.text = std::string(to_string(b.graded)), .tone = tone},
            {.text = text(b.value)},
            {.text =
                 b.counted || !b.bounds ? "–" : fmt::format("{} to {}", figure(b.bounds->low), figure(b.bounds->high))},
            {.text = sign + exact(b.held_to.bar)},
            {.text = b.held_to.stretch ? sign + exact(*b.held_to.stretch) : "–"}};
        if (counted)
            row.push_back(
                {.text = text(b.instructions),
                 .detail = b.instructions && b.their_instructions ? "to " + figure(*b.their_instructions) : ""});
        if (shared) row.push_back({.text = b.share ? percent(*b.share) : "–", .detail = b.per_eval});
        t.rows.push_back(std::move(row));
    }
    return t;
}

table maps_table(const run& r) {
    table t{"Activation plans", {{"plan", kind::text}, {"steps"}, {"tensors"}}, {}};
    double largest = 0;
    for (const memory_map& m : r.maps) largest = std::max(largest, static_cast<double>(m.bytes));
    const byte_unit unit = unit_for(largest);
    for (const char* heading : {"height", "lower bound"})
        t.columns.push_back({heading, kind::figure, std::string(unit.name)});
    t.columns.push_back({"height / lower bound"});
    for (const memory_map& m : r.maps) {
        const auto height = static_cast<double>(m.bytes), bound = static_cast<double>(m.lower_bound);
        t.rows.push_back({{.text = m.name},
                          {.text = fmt::format("{}", m.steps)},
                          {.text = fmt::format("{}", m.placements.size())},
                          {.text = figure(height / unit.bytes)},
                          {.text = figure(bound / unit.bytes)},
                          {.text = m.lower_bound > 0 ? fmt::format("{:.3f}", height / bound) : "–"}});
    }
    return t;
}

table strategies_table(const run& r) {
    table t{"Strategies of this run", {{"strategy", kind::name}}, {}};
    for (const char* heading : {"kind", "threads", "room", "when full"}) t.columns.push_back({heading, kind::text});
    for (const strategy& s : r.strategies) {
        const bool twin = !s.twin_of.empty();
        t.rows.push_back({{.text = s.name, .control = s.control && !twin, .twin = twin},
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

table machines_table(const run& r) {
    table t{"Machines, and what they differ in", {{"machine", kind::text}, {"samples"}}, {}};
    std::vector<std::string> keys;
    for (const machine& m : r.machines) {
        for (const auto& [key, value] : m.environment) {
            const bool common =
                std::find(r.environment.begin(), r.environment.end(), std::pair{key, value}) != r.environment.end();
            if (!common && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
        }
    }
    for (const std::string& key : keys) t.columns.push_back({key, kind::text});
    std::vector<std::size_t> samples(r.machines.size());
    for (const cell& c : r.cells) {
        for (const sample& s : c.samples)
            if (s.machine < samples.size()) ++samples[s.machine];
    }
    for (std::size_t i = 0; i < r.machines.size(); ++i) {
        std::vector<entry> row{{.text = r.machines[i].name}, {.text = fmt::format("{}", samples[i])}};
        for (const std::string& key : keys) {
            const auto& facts = r.machines[i].environment;
            const auto fact = std::find_if(facts.begin(), facts.end(), [&](auto& f) { return f.first == key; });
            row.push_back({.text = fact == facts.end() ? "–" : fact->second});
        }
        t.rows.push_back(std::move(row));
    }
    return t;
}

table design_table(const book& b) {
    const design& d = b.of.plan;
    table t{"Design of the measurements", {{"what", kind::text}, {"value", kind::text}}, {}};
    const auto add = [&](const char* what, std::string value) {
        t.rows.push_back({{.text = what}, {.text = std::move(value)}});
    };
    if (d.most_blocks > 0) {
        add("blocks", d.least_blocks == d.most_blocks ? fmt::format("{}", d.most_blocks)
                                                      : fmt::format("{} to {}", d.least_blocks, d.most_blocks));
    }
    if (b.ratios > 0) {
        add("pairs for each ratio", b.fewest_pairs == b.most_pairs
                                        ? fmt::format("{}", b.most_pairs)
                                        : fmt::format("{} to {}", b.fewest_pairs, b.most_pairs));
        add("pairs left out for uneven speed", fmt::format("{}", b.uneven));
    }
    if (d.min_seconds > 0) add("one measurement takes about", figure(1000 * d.min_seconds) + " ms");
    if (d.precision > 0) add("narrow enough", fmt::format("± {}", percent(d.precision)));
    if (d.max_seconds > 0) add("no block begins after", figure(d.max_seconds) + " s");
    if (!d.shard.empty()) add("shard", d.shard);
    add("seed of the order", fmt::format("{}", b.of.seed));
    if (b.null.rows > 0) add("A/A rows called different", fmt::format("{} of {}", b.null.different, b.null.rows));
    for (const std::string& criterion : d.unmet) add("left open", criterion);
    return t;
}

}  // namespace alloclab::report
