#include "claim_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "claim_words.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

using kind = piece::kind;
using parameters = std::map<std::string, std::string>;

bool timed(const cell& c) { return !c.samples.empty(); }
/// Whether it ran at all and to its end, timed or counted.
bool served(const cell& c) {
    return c.refusal.empty() && c.error.empty() && (timed(c) || !c.counters.empty() || !c.series.empty());
}

bool is_control(const roster::entry& e) { return e.by != nullptr && e.by->control; }

pairing exact_ratio(const cell& first, const cell& second, const std::string& counter) {
    const double a = first.counters.at(counter), b = second.counters.at(counter);
    const double ratio = a == b ? 1 : b == 0 ? std::numeric_limits<double>::infinity() : a / b;
    pairing p;
    if (std::isfinite(a) && std::isfinite(b)) p.pairs = 1, p.ratio = ratio, p.bounds = interval{ratio, ratio, 1};
    else p.reason = "a count is no number";
    return p;
}

/// `counter`: "" for times.
setting compared(const roster::entry& first, const cell& second, const piece& a, const piece& b, parameters at,
                 aim expected, const std::string& counter = "") {
    setting s{.on = first.on, .first = a, .second = b, .at = std::move(at)};
    s.at.emplace("workload", first.on->name);
    const auto lacks = [&](const cell& c) { return counter.empty() ? !timed(c) : !c.counters.contains(counter); };
    for (const auto& [c, who] : {std::pair{first.of, a}, {&second, b}}) {
        if (!lacks(*c)) continue;
        if (!c->refusal.empty() || !c->error.empty()) {
            s.absent = who;
            s.absence = c->refusal.empty() ? "failed in" : "refuses";
        }
        return s;
    }
    s.ratio = counter.empty() ? pair_up(*first.of, second) : exact_ratio(*first.of, second, counter);
    s.cast = vote_of(s.ratio, expected);
    return s;
}

std::optional<double> share_in(const cell& c, const std::string& part) {
    double sum = 0;
    for (const auto& [name, took] : c.parts) sum += took;
    const auto found = c.parts.find(part);
    return found == c.parts.end() || !(sum > 0) ? std::nullopt : std::optional{found->second / sum};
}

/// By how much the first's counter exceeds the second's, for each of `per`.
std::optional<double> per_unit(const contest& c, const cell& first, const cell& second) {
    const auto a = first.counters.find(c.counter), b = second.counters.find(c.counter), n = first.counters.find(c.per);
    if (a == first.counters.end() || b == second.counters.end() || n == first.counters.end()) return std::nullopt;
    const double more = (a->second - b->second) / n->second;
    return std::isfinite(more) ? std::optional{more} : std::nullopt;
}

/// "`a`: 350 less to 181 more reserved bytes than `b` for each of the nodes."
sentence difference(const contest& c, std::pair<double, double> more) {
    const auto text = [](double n) { return figure(std::abs(n)) + (n < 0 ? " less" : " more"); };
    const std::string least = text(more.first), most = text(more.second);
    sentence s{name_of(c.first)};
    add(s, ": ");
    add(s, figure_of(least == most ? least : least + " to " + most));
    add(s, ' ' + full_label(c.counter) + " than ");
    add(s, name_of(c.second));
    add(s, " for each of the " + label(c.per) + '.');
    return s;
}

}  // namespace

roster::roster(const run& r) {
    std::map<std::string_view, const workload*> workloads;
    for (const workload& w : r.workloads) workloads.emplace(w.name, &w);
    std::map<std::pair<std::string_view, std::string_view>, const strategy*> strategies;
    for (const strategy& s : r.strategies)
        strategies.emplace(std::pair{std::string_view{s.kind}, std::string_view{s.name}}, &s);
    for (const cell& c : r.cells) {
        const auto on = workloads.find(c.workload);
        if (on == workloads.end()) continue;
        const auto by = strategies.find({on->second->kind, c.strategy});
        const strategy* s = by == strategies.end() ? nullptr : by->second;
        if ((s != nullptr && !s->twin_of.empty()) || find(c.workload, c.strategy, c.parameters) != nullptr) continue;
        entries_[c.workload].push_back({on->second, s, &c});
    }
}

const std::vector<roster::entry>& roster::of(const std::string& workload) const {
    static const std::vector<entry> none;
    const auto found = entries_.find(workload);
    return found == entries_.end() ? none : found->second;
}

const cell* roster::find(const std::string& workload, const std::string& strategy, const parameters& at) const {
    for (const entry& e : of(workload)) {
        if (e.of->strategy == strategy && e.of->parameters == at) return e.of;
    }
    return nullptr;
}

const workload* roster::first_of(const std::vector<std::string>& workloads) const {
    for (const std::string& w : workloads) {
        if (!of(w).empty()) return of(w).front().on;
    }
    return nullptr;
}

rule contested(contest c) {
    return [c = std::move(c)](const roster& cells) {
        std::vector<setting> all;
        std::optional<std::pair<double, double>> more_per;
        const bool of_values = !c.parameter.empty();
        for (const std::string& w : c.workloads) {
            for (const roster::entry& e : cells.of(w)) {
                parameters at = e.of->parameters;
                const cell* other = nullptr;
                if (of_values) {
                    if (is_control(e)) continue;
                    const auto value = at.find(c.parameter);
                    if (value == at.end() || value->second != c.first) continue;
                    value->second = c.second;
                    other = cells.find(w, e.of->strategy, at);
                    at.erase(value);
                    at.emplace("strategy", e.of->strategy);
                } else if (e.of->strategy == c.first) {
                    other = cells.find(w, c.second, at);
                }
                if (other == nullptr) continue;
                if (const auto more = per_unit(c, *e.of, *other)) {
                    if (!more_per) more_per = std::pair{*more, *more};
                    more_per = std::pair{std::min(more_per->first, *more), std::max(more_per->second, *more)};
                }
                const auto label = [&](const std::string& side) {
                    return of_values ? piece{kind::plain, c.parameter + " = " + side} : name_of(side);
                };
                all.push_back(
                    compared(e, *other, label(c.first), label(c.second), std::move(at), c.expected, c.counter));
            }
        }
        const std::string sides = c.first + ',' + c.second;
        answer a = judged(all, c.expected, c.apart,
                          would_tell(c.workloads, of_values ? " -p " + c.parameter + '=' + sides : " -s " + sides));
        if (more_per) a.evidence.push_back(difference(c, *more_per));
        return a;
    };
}

rule never_refuses(spill s) {
    return [s = std::move(s)](const roster& cells) {
        answer a;
        a.on = cells.first_of(s.workloads);
        std::size_t both = 0, refused = 0, saved = 0;
        for (const std::string& w : s.workloads) {
            for (const roster::entry& e : cells.of(w)) {
                const cell* other = e.of->strategy == s.bounded ? cells.find(w, s.spilling, e.of->parameters) : nullptr;
                if (other == nullptr || !other->error.empty() || !e.of->error.empty()) continue;
                ++both;
                if (e.of->refusal.empty()) continue;
                refused += served(*other) || !other->refusal.empty();
                saved += served(*other);
            }
        }
        const std::string sides = fmt::format(" -s {},{},{}", s.bounded, s.spilling, s.unbounded);
        if (both == 0) {
            a.evidence.push_back(would_tell(s.workloads, sides));
            return a;
        }
        // Neither a majority nor an average: one refusal is a limit.
        a.ruled = refused == 0 ? ruling::undecided : saved == refused ? ruling::holds : ruling::fails;
        sentence& told = a.evidence.emplace_back(sentence{name_of(s.bounded)});
        if (refused == 0) {
            add(told, fmt::format(" refuses none of the {} settings, so there was no limit to remove.", both));
            return a;
        }
        add(told, fmt::format(" refuses {} of {} settings; ", refused, both));
        add(told, name_of(s.spilling));
        add(told, saved == refused ? std::string(" refuses none of them.")
                                   : fmt::format(" refuses {} of them.", refused - saved));
        return a;
    };
}

rule spills_at_no_cost(spill s) {
    return [s = std::move(s)](const roster& cells) {
        std::vector<setting> all;
        for (const std::string& w : s.workloads) {
            for (const roster::entry& e : cells.of(w)) {
                if (e.of->strategy != s.spilling) continue;
                const cell* pool = cells.find(w, s.bounded, e.of->parameters);
                if (pool == nullptr) continue;
                const std::string& against = pool->refusal.empty() ? s.bounded : s.unbounded;
                const cell* other = cells.find(w, against, e.of->parameters);
                if (other == nullptr) continue;
                parameters at = e.of->parameters;
                at.emplace("against", against);
                all.push_back(
                    compared(e, *other, name_of(s.spilling), name_of(against), std::move(at), aim::no_slower));
            }
        }
        return judged(all, aim::no_slower, "against",
                      would_tell(s.workloads, fmt::format(" -s {},{},{}", s.bounded, s.spilling, s.unbounded)));
    };
}

rule gains_nothing(whole_evals w) {
    return [w = std::move(w)](const roster& cells) {
        std::vector<setting> all;
        std::optional<share> at_stake;
        std::set<std::string> not_computed;
        std::size_t too_small = 0;
        for (const roster::entry& e : cells.of(w.workload)) {
            const cell* base = cells.find(w.workload, w.baseline, e.of->parameters);
            if (base == nullptr) continue;
            if (!base->parts.contains(w.computed)) {
                if (timed(*base)) not_computed.insert(describe(base->parameters));
                continue;
            }
            const std::optional<double> part = share_in(*base, w.part);
            if (e.of == base) {
                if (part && !at_stake) at_stake = share{*part, *part};
                if (part) at_stake = share{std::min(at_stake->least, *part), std::max(at_stake->most, *part)};
                continue;
            }
            if (is_control(e)) continue;
            parameters at = e.of->parameters;
            at.emplace("strategy", e.of->strategy);
            setting& s = all.emplace_back(
                compared(e, *base, name_of(e.of->strategy), name_of(w.baseline), std::move(at), aim::no_faster));
            // The share is a mean without an interval: a tenth of the margin leaves it room for any error.
            if (s.cast == vote::open && s.ratio.bounds && part && *part <= margin / 10) s.cast = vote::yes, ++too_small;
        }
        answer a = judged(all, aim::no_faster, "workload", would_tell({w.workload}, ""));
        if (too_small > 0) {
            a.evidence.push_back(
                {{kind::plain, fmt::format("In {} of them the interval alone does not tell, but the {} part is {} or "
                                           "less, so that saving all of it wins no {}.",
                                           too_small, w.part, percent(margin / 10), percent(margin))}});
        }
        if (at_stake) {
            sentence told = {{kind::plain, "With "}, name_of(w.baseline)};
            add(told, " the " + w.part + " part is ");
            add(told, figure_of(in_words(*at_stake)));
            add(told, " of a whole eval.");
            a.evidence.insert(a.evidence.begin(), std::move(told));
        }
        if (!not_computed.empty())
            a.evidence.push_back({{kind::plain, fmt::format("Not counted, since without {}: {}.", w.computed,
                                                            fmt::join(not_computed, "; "))}});
        return a;
    };
}

rule serves_up_to(reach r) {
    return [r = std::move(r)](const roster& cells) {
        answer a;
        a.on = cells.first_of({r.workload});
        std::size_t agree = 0, disagree = 0, measured = 0;
        std::set<std::size_t> missing;
        std::vector<std::string> values;
        for (const auto& [value, claimed] : r.most) {
            values.push_back(value);
            std::map<std::size_t, bool> at;  // number of them -> served
            for (const roster::entry& e : cells.of(r.workload)) {
                const auto& p = e.of->parameters;
                const auto along = p.find(r.along), of = p.find(r.parameter);
                if (e.of->strategy != r.strategy || along == p.end() || of == p.end() || of->second != value) continue;
                std::size_t n = 0;
                const std::string& text = along->second;
                const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
                if (error == std::errc{} && end == text.data() + text.size() &&
                    (served(*e.of) || !e.of->refusal.empty()))
                    at.emplace(n, served(*e.of));
            }
            missing.insert({claimed, claimed + 1});
            if (at.empty()) continue;
            ++measured;
            const auto refused = std::find_if(at.begin(), at.end(), [](const auto& x) { return !x.second; });
            const std::size_t most = refused == at.begin() ? 0 : std::prev(refused)->first;
            sentence& told = a.evidence.emplace_back(sentence{name_of(r.strategy)});
            add(told, fmt::format(" at {} = {} serves ", r.parameter, value));
            add(told, figure_of(fmt::format("{}", most)));
            if (refused == at.end()) add(told, fmt::format(" {}, and no more were asked for.", r.along));
            else add(told, fmt::format(" {} and refuses {}.", r.along, refused->first));
            if (most > claimed || (refused != at.end() && refused->first <= claimed)) ++disagree;
            else if (most == claimed && refused != at.end() && refused->first == claimed + 1) ++agree;
        }
        a.ruled = measured == 0            ? ruling::unmeasured
                  : disagree > 0           ? ruling::fails
                  : agree == r.most.size() ? ruling::holds
                                           : ruling::undecided;
        if (a.ruled == ruling::unmeasured || a.ruled == ruling::undecided)
            a.evidence.push_back(
                would_tell({r.workload}, fmt::format(" -s {} -p {}={} -p {}={}", r.strategy, r.parameter,
                                                     fmt::join(values, ","), r.along, fmt::join(missing, ","))));
        return a;
    };
}

}  // namespace alloclab::report
