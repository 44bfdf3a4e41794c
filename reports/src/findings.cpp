#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "text.hpp"

namespace alloclab::report {
namespace {

using kind = piece::kind;

std::optional<double> number(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// Numbers by value, before words.
bool before_on_axis(const std::string& a, const std::string& b) {
    const auto x = number(a), y = number(b);
    return x && y ? std::tie(*x, a) < std::tie(*y, b) : x || y ? x.has_value() : a < b;
}

std::vector<std::string> ordered(std::set<std::string> names, std::initializer_list<const char*> first) {
    std::vector<std::string> result;
    for (const char* name : first) {
        if (names.erase(name) != 0) result.emplace_back(name);
    }
    result.insert(result.end(), names.begin(), names.end());
    return result;
}

/// Registered strategies of the workload's kind, then whatever else has cells.
std::vector<std::string> names_in_order(const run& r, const std::string& of,
                                        const std::vector<const comparison*>& cells) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const strategy& s : r.strategies) {
        if (s.kind == of) add(s.name);
    }
    for (const comparison* c : cells) add(c->of->strategy);
    return names;
}

std::vector<panel> panels_of(const workload& on, const std::vector<const comparison*>& cells,
                             const std::vector<std::string>& strategies) {
    std::vector<panel> panels;
    for (const comparison* c : cells) {
        auto parameters = c->of->parameters;
        const auto axis = on.axis.empty() ? parameters.end() : parameters.find(on.axis);
        const std::string at = axis == parameters.end() ? "" : axis->second;
        if (axis != parameters.end()) parameters.erase(axis);
        auto here =
            std::find_if(panels.begin(), panels.end(), [&](const panel& p) { return p.parameters == parameters; });
        if (here == panels.end()) here = panels.insert(here, panel{std::move(parameters), {}, {}, {}});
        if (std::find(here->at.begin(), here->at.end(), at) == here->at.end()) here->at.push_back(at);
        here->cells.emplace(std::pair{c->of->strategy, at}, c);
    }
    for (panel& p : panels) {
        std::sort(p.at.begin(), p.at.end(), before_on_axis);
        std::copy_if(strategies.begin(), strategies.end(), std::back_inserter(p.strategies),
                     [&](const std::string& name) {
                         return std::any_of(p.cells.begin(), p.cells.end(),
                                            [&](const auto& c) { return c.first.first == name; });
                     });
    }
    return panels;
}

std::optional<trend> live_extras(const cell& c) {
    const auto series = c.series.find("live_extras");
    return series == c.series.end() ? std::nullopt : trend_of(series->second);
}

std::vector<standing> standings_of(const std::vector<const comparison*>& cells,
                                   const std::vector<std::string>& strategies) {
    std::vector<standing> result;
    for (const std::string& name : strategies) {
        standing s;
        s.strategy = name;
        double logs = 0, ratios = 0;
        for (const comparison* c : cells) {
            if (c->of->strategy != name) continue;
            s.control = c->control;
            ++s.settings;
            ++s.verdicts[c->decided];
            if (c->ratio) logs += std::log(*c->ratio), ++ratios;
            const auto growing = live_extras(*c->of);
            s.leaks = s.leaks || (growing && growing->leak);
        }
        if (ratios > 0) s.ratio = std::exp(logs / ratios);
        if (s.settings > 0) result.push_back(std::move(s));
    }
    return result;
}

std::vector<std::string> failures_of(const std::vector<const comparison*>& cells, const workload& on) {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> places;
    for (const comparison* c : cells) {
        if (c->decided != verdict::failed && c->of->error.empty()) continue;
        const auto axis = c->of->parameters.find(on.axis);
        places[{c->of->strategy, c->reason}].push_back(axis == c->of->parameters.end() ? describe(c->of->parameters)
                                                                                       : axis->second);
    }
    std::vector<std::string> lines;
    for (auto& [what, where] : places) {
        std::sort(where.begin(), where.end(), before_on_axis);
        where.erase(std::unique(where.begin(), where.end()), where.end());
        const std::string at = fmt::format("{}", fmt::join(where, ", "));
        lines.push_back(fmt::format("{}{}{}: {}", what.first, at.empty() ? "" : " at ",
                                    at.empty() || on.axis.empty() ? at : on.axis + " " + at, what.second));
    }
    return lines;
}

chapter chapter_of(const workload& on, const std::vector<const comparison*>& cells,
                   const std::vector<std::string>& strategies) {
    chapter ch;
    ch.on = &on;
    ch.panels = panels_of(on, cells, strategies);
    ch.standings = standings_of(cells, strategies);
    ch.failures = failures_of(cells, on);
    std::size_t shown = 0;
    for (const panel& p : ch.panels) shown += p.cells.size();
    if (shown < cells.size()) {
        ch.failures.push_back(fmt::format(
            "{} cells repeat another's strategy and parameters; tables show the first of each", cells.size() - shown));
    }
    std::set<std::string> counters, parts, series;
    for (const comparison* c : cells) {
        for (const auto& [name, value] : c->of->counters) counters.insert(name);
        for (const auto& [name, value] : c->of->parts) parts.insert(name);
        for (const auto& [name, value] : c->of->series) series.insert(name);
    }
    ch.counters =
        ordered(std::move(counters), {"peak_bytes", "reserved_bytes", "page_faults", "faults", "source_calls"});
    ch.parts = ordered(std::move(parts), {"context", "build", "plan", "extras", "compute"});
    ch.series = ordered(std::move(series), {"live_extras"});
    return ch;
}

/// Geometric mean of both strategies' ratios over the settings where each has one.
std::pair<double, double> side_by_side(const chapter& ch, const std::string& a, const std::string& b) {
    double logs_a = 0, logs_b = 0, n = 0;
    for (const panel& p : ch.panels) {
        for (const std::string& at : p.at) {
            const comparison *x = p.find(a, at), *y = p.find(b, at);
            if (x == nullptr || y == nullptr || !x->ratio || !y->ratio) continue;
            logs_a += std::log(*x->ratio), logs_b += std::log(*y->ratio), ++n;
        }
    }
    return n > 0 ? std::pair{std::exp(logs_a / n), std::exp(logs_b / n)} : std::pair{0.0, 0.0};
}

sentence among(std::string lead, const std::vector<const standing*>& of) {
    sentence s{{kind::plain, std::move(lead)}};
    for (std::size_t i = 0; i < of.size(); ++i) {
        if (i > 0) s.push_back({kind::plain, i + 1 < of.size() ? ", " : " and "});
        s.push_back({kind::name, of[i]->strategy});
    }
    s.push_back({kind::plain, "."});
    return s;
}

/// "`a` takes 57 % less time than `heap`"
sentence against(const standing& s, const std::string& baseline) {
    sentence words{{kind::name, s.strategy}, {kind::plain, s.control ? " (control) takes " : " takes "}};
    words.push_back({kind::figure, in_words(*s.ratio)});
    words.push_back({kind::plain, " "});
    words.push_back({kind::name, baseline});
    return words;
}

/// The interval of the only setting, or the tally of many.
std::string evidence(const chapter& ch, const standing& s) {
    if (s.settings > 1) return fmt::format(" over {} settings ({}).", s.settings, s.tally());
    const panel& p = ch.panels.front();
    const comparison* c = p.find(s.strategy, p.at.front());
    if (c == nullptr || !c->bounds) return ".";
    return fmt::format(" (ratio {}, interval {} to {}).", figure(*c->ratio), figure(c->bounds->low),
                       figure(c->bounds->high));
}

finding finding_of(const chapter& ch) {
    finding f;
    f.on = ch.on;
    const std::string& baseline = ch.on->baseline;

    std::vector<const standing*> able;
    for (const standing& s : ch.standings) {
        const bool everywhere =
            s.count(verdict::failed) == 0 &&
            s.settings == std::max_element(ch.standings.begin(), ch.standings.end(), [](auto& a, auto& b) {
                              return a.settings < b.settings;
                          })->settings;
        if (!s.control && !s.leaks && s.ratio && everywhere) able.push_back(&s);
    }
    std::stable_sort(able.begin(), able.end(), [](auto* a, auto* b) { return *a->ratio < *b->ratio; });
    const bool compared = std::any_of(ch.standings.begin(), ch.standings.end(),
                                      [&](const standing& s) { return s.ratio && s.strategy != baseline; });
    if (!compared || able.empty()) {
        f.tone = verdict::inconclusive;
        const bool alone = std::all_of(ch.standings.begin(), ch.standings.end(),
                                       [&](const standing& s) { return s.strategy == baseline; });
        f.sentences.push_back({{kind::plain, compared           ? "No strategy that may be chosen ran in every setting."
                                             : baseline.empty() ? "The workload names no baseline to compare with."
                                             : alone            ? "Only the baseline was run: "
                                                                : "Nothing could be compared with the baseline "}});
        if (!compared && !baseline.empty()) {
            f.sentences.back().push_back({kind::name, baseline});
            f.sentences.back().push_back({kind::plain, "."});
        }
        return f;
    }

    const standing& best = *able.front();
    const standing* shown = &best;
    if (best.strategy != baseline && best.count(verdict::faster) > 0) {
        f.tone = verdict::faster;
        sentence s{{kind::plain, "Fastest: "}};
        for (piece& p : against(best, baseline)) s.push_back(std::move(p));
        s.push_back({kind::plain, evidence(ch, best)});
        f.sentences.push_back(std::move(s));
    } else {
        f.tone = verdict::same;
        sentence s{{kind::plain, "Nothing beats the baseline "}, {kind::name, baseline}, {kind::plain, "; "}};
        const auto next = std::find_if(able.begin(), able.end(), [&](auto* a) { return a->strategy != baseline; });
        if (next == able.end()) {
            s.back().text = ", the only one that ran in every setting.";
        } else {
            shown = *next;
            s.back().text += "nearest: ";
            for (piece& p : against(**next, baseline)) s.push_back(std::move(p));
            s.push_back({kind::plain, evidence(ch, **next)});
        }
        f.sentences.push_back(std::move(s));
    }

    std::vector<const standing*> level;
    for (const standing* s : able) {
        if (s != shown && s->strategy != baseline && *s->ratio <= *shown->ratio * (1 + margin)) level.push_back(s);
    }
    if (level.size() > 4) {
        f.sentences.push_back({{kind::plain, fmt::format("{} others are within 3 % of it.", level.size())}});
    } else if (!level.empty()) {
        f.sentences.push_back(among("Within 3 % of it: ", level));
    }

    for (const standing& s : ch.standings) {
        const bool partly = !s.control && !s.leaks && s.ratio && s.count(verdict::failed) > 0;
        if (!partly) continue;
        const auto [its, bests] = side_by_side(ch, s.strategy, best.strategy);
        if (its > 0 && its < bests * (1 - margin)) {
            sentence words{{kind::plain, fmt::format("Where it has room ({} of {} settings), ",
                                                     s.settings - s.count(verdict::failed), s.settings)}};
            for (piece& p : against(s, baseline)) words.push_back(std::move(p));
            words.push_back({kind::plain, "."});
            f.sentences.push_back(std::move(words));
        }
    }

    const auto slowest = std::max_element(
        ch.standings.begin(), ch.standings.end(),
        [](const standing& a, const standing& b) { return a.ratio.value_or(0) < b.ratio.value_or(0); });
    if (slowest->count(verdict::slower) > 0 && &*slowest != shown) {
        sentence words{{kind::plain, "Slowest: "}};
        for (piece& p : against(*slowest, baseline)) words.push_back(std::move(p));
        words.push_back({kind::plain, evidence(ch, *slowest)});
        f.sentences.push_back(std::move(words));
    }
    return f;
}

std::vector<finding> leaks_of(const chapter& ch) {
    std::vector<finding> leaks;
    for (const panel& p : ch.panels) {
        for (const std::string& name : p.strategies) {
            for (const std::string& at : p.at) {
                const comparison* c = p.find(name, at);
                const auto growing = c == nullptr ? std::nullopt : live_extras(*c->of);
                if (!growing || !growing->leak) continue;
                const auto where = describe(c->of->parameters);
                leaks.push_back(
                    {ch.on,
                     verdict::failed,
                     {{{kind::name, name},
                       {kind::plain, c->control ? " (control) leaks: live extras " : " leaks: live extras "},
                       {kind::figure, in_words(*growing)},
                       {kind::plain, where.empty() ? "." : " (" + where + ")."}}}});
            }
        }
    }
    return leaks;
}

}  // namespace

const comparison* panel::find(const std::string& strategy, const std::string& place) const {
    const auto cell = cells.find({strategy, place});
    return cell == cells.end() ? nullptr : cell->second;
}

std::size_t standing::count(verdict v) const {
    const auto entry = verdicts.find(v);
    return entry == verdicts.end() ? 0 : entry->second;
}

verdict standing::overall() const {
    if (count(verdict::failed) == settings) return verdict::failed;
    for (const auto& [v, n] : verdicts) {
        const bool contradicted = (v == verdict::faster && count(verdict::slower) > 0) ||
                                  (v == verdict::slower && count(verdict::faster) > 0);
        if (2 * n > settings - count(verdict::failed) && v != verdict::failed && !contradicted) return v;
    }
    return verdict::inconclusive;
}

std::string standing::tally() const {
    std::vector<std::string> parts;
    for (const auto& [v, n] : verdicts) {
        parts.push_back(settings == 1   ? std::string(to_string(v))
                        : n != settings ? fmt::format("{} in {}", to_string(v), n)
                        : n == 2        ? fmt::format("{} in both", to_string(v))
                                        : fmt::format("{} in all {}", to_string(v), n));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

book::book(const run& r) : of{r}, comparisons{compare(r)} {
    for (const workload& w : r.workloads) {
        std::vector<const comparison*> cells;
        for (const comparison& c : comparisons) {
            if (c.of->workload == w.name) cells.push_back(&c);
        }
        if (cells.empty()) continue;
        chapters.push_back(chapter_of(w, cells, names_in_order(r, w.kind, cells)));
        findings.push_back(finding_of(chapters.back()));
        for (finding& leak : leaks_of(chapters.back())) leaks.push_back(std::move(leak));
    }
    for (const comparison& c : comparisons) {
        if (c.pairs == 0) continue;
        fewest_pairs = ratios == 0 ? c.pairs : std::min(fewest_pairs, c.pairs);
        most_pairs = std::max(most_pairs, c.pairs);
        ++ratios;
        if (c.bounds) coverage = std::min(coverage.value_or(1), c.bounds->coverage);
    }
}

std::string describe(const std::map<std::string, std::string>& parameters) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : parameters) parts.push_back(name + " = " + value);
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string plain(const sentence& s) {
    std::string text;
    for (const piece& p : s) text += p.text;
    return text;
}

bool counts_bytes(std::string_view key) {
    constexpr std::string_view suffix = "_bytes";
    return key == "bytes" || (key.size() > suffix.size() && key.substr(key.size() - suffix.size()) == suffix);
}

std::string label(std::string_view key) {
    std::string text(key);
    if (counts_bytes(key) && key != "bytes") text.resize(text.size() - 6);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

std::string in_words(const trend& t) {
    if (t.shape == growth::flat) return fmt::format("stay at {}", count(t.low));
    if (t.shape == growth::linear) {
        return fmt::format("{} by {} per eval", t.per_eval > 0 ? "grow" : "fall", count(std::abs(t.per_eval)));
    }
    return fmt::format("{} between {} and {}", t.leak ? "grow unevenly" : "vary", count(t.low), count(t.high));
}

const std::string& title_of(const workload& w) { return w.title.empty() ? w.name : w.title; }

std::vector<std::string> method(const book& b) {
    std::vector<std::string> lines;
    if (b.ratios == 0) {
        lines.emplace_back("No cell could be paired with its baseline, so there is no ratio and no verdict.");
    } else {
        const auto pairs = b.fewest_pairs == b.most_pairs ? fmt::format("{}", b.most_pairs)
                                                          : fmt::format("{} to {}", b.fewest_pairs, b.most_pairs);
        lines.push_back(
            fmt::format("Strategies are measured side by side in blocks, and only the two samples of one block are "
                        "compared: {} pairs for each "
                        "of {} comparisons. The ratio is the median over the pairs of the strategy's time to the "
                        "baseline's; below 1 is faster.",
                        pairs, b.ratios));
        lines.push_back(fmt::format(
            "The interval is the exact order-statistic interval of that median, with at least {:.0f} % coverage{}. A "
            "single interval "
            "misses the truth more rarely than once in {:.0f}; over many comparisons a few will.",
            100 * confidence, b.coverage ? fmt::format(" (achieved here: {:.1f} %)", 100 * *b.coverage) : "",
            1 / (1 - confidence)));
    }
    lines.push_back(
        fmt::format("Verdict: faster when the whole interval lies below {:.2f}, slower when above {:.2f}, same when "
                    "between the two (the {:.0f} % "
                    "margin), otherwise inconclusive.",
                    1 - margin, 1 + margin, 100 * margin));
    lines.emplace_back("An average over settings is the geometric mean of their ratios.");
    lines.emplace_back(
        "Growth is judged after the first tenth of the evals: flat, linear with its slope, or other. A linear rise is "
        "a leak; so is "
        "another growth whose lows and highs rise from each third of the evals to the next.");
    return lines;
}

}  // namespace alloclab::report
