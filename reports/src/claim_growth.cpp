// Rules on a series that is read after every eval: who leaks what.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "claim_rules.hpp"
#include "claim_words.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

bool is(const lifetimes& l, const cell& c, const std::string& lifetime) {
    const auto p = c.parameters.find(l.parameter);
    return (p == c.parameters.end() ? l.temporary : p->second) == lifetime;
}

/// nullopt where the series is missing or too short.
std::optional<trend> trend_in(const lifetimes& l, const cell& c) {
    const auto series = c.series.find(l.series);
    return series == c.series.end() || !c.error.empty() ? std::nullopt : trend_of(series->second);
}
double left_behind(const lifetimes& l, const cell& c) {
    const auto n = c.counters.find(l.left);
    return n == c.counters.end() ? 0 : n->second;
}

/// "`leaky`: live extras grow by 200 per eval (lifetime = temporary)."
sentence development(const lifetimes& l, const cell& c) {
    const auto t = trend_in(l, c);
    sentence text{name_of(c.strategy)};
    add(text, ": " + full_label(l.series) + ' ');
    if (!t) add(text, "have too few values for a trend");
    else add(text, figure_of(in_words(*t)));
    if (t && t->slope && t->shape != growth::flat && t->slope->low < t->slope->high)
        add(text, fmt::format(" (interval {} to {})", figure(t->slope->low), figure(t->slope->high)));
    if (left_behind(l, c) > 0) add(text, fmt::format(", and {} outlive the model", count(left_behind(l, c))));
    const std::string at = describe(c.parameters);
    add(text, at.empty() ? "." : " (" + at + ").");
    return text;
}

sentence tells(const lifetimes& l, const std::string& strategies) {
    return would_tell({l.workload}, fmt::format("{} -p {}={},{}", strategies.empty() ? "" : " -s " + strategies,
                                                l.parameter, l.temporary, l.persistent));
}

}  // namespace

rule ends_leak(lifetimes l, std::string strategy, std::string control) {
    return [l = std::move(l), strategy = std::move(strategy), control = std::move(control)](const roster& cells) {
        answer a;
        a.on = cells.first_of({l.workload});
        std::size_t flat = 0, leaks = 0, open = 0;
        bool shown_fault = false;
        for (const roster::entry& e : cells.of(l.workload)) {
            const bool of_control = e.of->strategy == control;
            if ((!of_control && e.of->strategy != strategy) || !is(l, *e.of, l.temporary)) continue;
            const auto t = trend_in(l, *e.of);
            a.evidence.push_back(development(l, *e.of));
            if (of_control) shown_fault = shown_fault || (t && t->leak);
            else ++(!t || (t->shape == growth::other && !t->leak && t->per_eval > 0) ? open : t->leak ? leaks : flat);
        }
        a.ruled = ruled_by(flat, leaks, open);
        if (a.ruled == ruling::holds && !shown_fault) {
            a.ruled = ruling::undecided;
            sentence& text = a.evidence.emplace_back(sentence{name_of(control)});
            add(text, " shows no leak here that could be ended.");
        }
        if (a.ruled == ruling::unmeasured) a.evidence.push_back(tells(l, strategy + ',' + control));
        if (a.ruled == ruling::depends) {
            a.flips = {name_of(strategy)};
            add(a.flips, fmt::format(" leaks in {} of {} settings.", leaks, flat + leaks + open));
        }
        return a;
    };
}

rule leaks_temporaries_alone(lifetimes l) {
    return [l = std::move(l)](const roster& cells) {
        struct of_strategy {
            bool temporary_leaks = false, persistent_leaks = false, persistent_known = false, temporary_known = false;
        };
        std::map<std::string, of_strategy> all;
        answer a;
        a.on = cells.first_of({l.workload});
        for (const roster::entry& e : cells.of(l.workload)) {
            const auto t = trend_in(l, *e.of);
            if (!t) continue;
            of_strategy& s = all[e.of->strategy];
            const bool leaks = t->leak || left_behind(l, *e.of) > 0;
            if (is(l, *e.of, l.persistent)) s.persistent_known = true, s.persistent_leaks = s.persistent_leaks || leaks;
            else if (is(l, *e.of, l.temporary))
                s.temporary_known = true, s.temporary_leaks = s.temporary_leaks || leaks;
        }
        std::vector<std::string> alone, both;
        std::size_t clean = 0;
        for (const auto& [name, s] : all) {
            if (s.persistent_leaks) both.push_back(name);
            else if (s.temporary_leaks && s.persistent_known) alone.push_back(name);
            else clean += s.temporary_known && s.persistent_known;
        }
        for (const roster::entry& e : cells.of(l.workload)) {
            const auto& s = all.find(e.of->strategy);
            if (s != all.end() && (s->second.temporary_leaks || s->second.persistent_leaks))
                a.evidence.push_back(development(l, *e.of));
        }
        if (clean > 0)
            a.evidence.push_back(
                {{piece::kind::plain,
                  fmt::format("{} {} neither.", clean, clean == 1 ? "strategy leaks" : "strategies leak")}});
        a.ruled = ruled_by(alone.size(), both.size(), 0);
        if (a.ruled == ruling::unmeasured && clean > 0) a.ruled = ruling::undecided;
        if (a.ruled == ruling::unmeasured) a.evidence.push_back(tells(l, ""));
        if (a.ruled == ruling::depends) {
            add_names(a.flips, alone);
            add(a.flips, fmt::format(": {} ones alone; what is {} leaks too with ", l.temporary, l.persistent));
            add_names(a.flips, both);
            add(a.flips, ".");
        }
        return a;
    };
}

}  // namespace alloclab::report
