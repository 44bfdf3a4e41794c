#include "bar_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "blocks.hpp"
#include "claim_words.hpp"

namespace alloclab::report {
namespace {

/// ", live = 8", "" for none.
std::string at(const settings_of_cell& parameters) {
    const std::string setting = describe(parameters);
    return setting.empty() ? "" : ", " + setting;
}

/// "" for a cell that has times.
std::string why_untimed(const cell* c) {
    return c == nullptr          ? "not run"
           : !c->samples.empty() ? ""
           : !c->refusal.empty() ? c->refusal
           : !c->error.empty()   ? c->error
                                 : "no samples";
}

/// The strategy's cells at that value of the axis, whatever their other parameters are; at any for the axis "".
std::vector<const cell*> cells_at(const roster& cells, const std::string& workload, const std::string& strategy,
                                  const std::string& axis, const std::string& value) {
    std::vector<const cell*> found;
    for (const roster::entry& e : cells.of(workload)) {
        const auto there = e.of->parameters.find(axis);
        if (e.of->strategy == strategy && (axis.empty() || (there != e.of->parameters.end() && there->second == value)))
            found.push_back(e.of);
    }
    return found;
}

part paired(std::string where, const cell& ours, const cell* theirs, double factor, const std::string& they) {
    part p{.where = std::move(where), .ours = &ours, .theirs = theirs};
    if (p.why = why_untimed(&ours); p.why.empty() && !why_untimed(theirs).empty())
        p.why = they + ": " + why_untimed(theirs);
    if (!p.why.empty()) return p;
    pairing pair = pair_up(ours, *theirs);
    if (pair.ratio) p.value = factor * *pair.ratio;
    if (pair.bounds) p.bounds = interval{factor * pair.bounds->low, factor * pair.bounds->high, pair.bounds->coverage};
    else p.why = std::move(pair.reason);
    return p;
}

std::string with_commas(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ",")); }

std::vector<part> quotients(const roster& cells, const quotient& q, const std::string& strategy) {
    std::vector<part> parts;
    for (const std::string& value : q.axis.empty() ? std::vector<std::string>{""} : q.values) {
        const auto ours = cells_at(cells, q.workload, strategy, q.axis, value);
        for (const std::string& rival : q.rivals) {
            const std::string sides = q.rival_value.empty() ? strategy + " / " + rival : strategy;
            if (ours.empty())
                parts.push_back({.where = sides + (q.axis.empty() ? "" : at({{q.axis, value}})), .why = "not run"});
            for (const cell* c : ours) {
                settings_of_cell there = c->parameters, shown = there;
                if (!q.rival_value.empty()) there[q.axis] = q.rival_value, shown[q.axis] += " to " + q.rival_value;
                parts.push_back(paired(sides + at(shown), *c, cells.find(q.workload, rival, there), q.factor, rival));
            }
        }
    }
    return parts;
}

}  // namespace

measure ratio_of(quotient q) {
    return [q = std::move(q)](const roster& cells) {
        measured_parts m{.parts = quotients(cells, q, q.ours), .on = cells.first_of({q.workload})};
        std::vector<std::string> asked{q.ours};
        for (const std::string& other : q.beside) {
            asked.push_back(other);
            for (part& p : quotients(cells, q, other)) m.beside.push_back(std::move(p));
        }
        for (const std::string& rival : q.rivals)
            if (rival != q.ours) asked.push_back(rival);
        std::string where;
        if (!q.axis.empty()) {
            std::vector<std::string> values = q.values;
            if (!q.rival_value.empty()) values.push_back(q.rival_value);
            where = " -p " + q.axis + '=' + with_commas(values);
        }
        m.would_tell = would_tell({q.workload}, " -s " + with_commas(asked) + where);
        return m;
    };
}

measure worst_to_best(spread s) {
    return [s = std::move(s)](const roster& cells) {
        struct timed {
            double median;
            const cell* of;
        };
        measured_parts m{.on = cells.first_of({s.workload})};
        std::map<settings_of_cell, std::vector<timed>> lines;  // cells that differ in the axis alone
        for (const std::string& value : s.values) {
            const auto here = cells_at(cells, s.workload, s.ours, s.axis, value);
            if (here.empty()) m.parts.push_back({.where = s.ours + at({{s.axis, value}}), .why = "not run"});
            for (const cell* c : here) {
                settings_of_cell others = c->parameters;
                others.erase(s.axis);
                if (const auto middle = median_of(*c)) lines[others].push_back({*middle, c});
                else m.parts.push_back({.where = s.ours + at(c->parameters), .why = why_untimed(c)});
            }
        }
        for (const auto& [others, line] : lines) {
            if (line.size() < 2) continue;
            const auto [best, worst] = std::minmax_element(
                line.begin(), line.end(), [](const timed& a, const timed& b) { return a.median < b.median; });
            settings_of_cell shown = worst->of->parameters;
            shown[s.axis] += " to " + best->of->parameters.at(s.axis);
            m.parts.push_back(paired(s.ours + at(shown), *worst->of, best->of, 1, s.ours));
        }
        if (m.parts.empty()) m.parts.push_back({.where = s.ours, .why = "one setting alone"});
        m.would_tell = would_tell({s.workload}, fmt::format(" -s {} -p {}={}", s.ours, s.axis, with_commas(s.values)));
        return m;
    };
}

measure most_of(most m) {
    return [m = std::move(m)](const roster& cells) {
        measured_parts all{.on = cells.first_of(m.workloads)};
        for (const std::string& w : m.workloads) {
            const part* greatest = nullptr;
            std::vector<part> counted;
            for (const roster::entry& e : cells.of(w)) {
                const std::string& name = e.of->strategy;
                if ((e.by != nullptr && e.by->control) || (!m.ours.empty() && name != m.ours)) continue;
                if (std::find(m.except.begin(), m.except.end(), name) != m.except.end()) continue;
                const auto& has = e.of->parameters;
                if (!std::includes(has.begin(), has.end(), m.where.begin(), m.where.end())) continue;
                const auto n = e.of->counters.find(m.counter);
                if (n == e.of->counters.end() || !std::isfinite(n->second)) continue;
                counted.push_back({.where = name + at(has),
                                   .value = n->second,
                                   .bounds = interval{n->second, n->second, 1},
                                   .ours = e.of});
            }
            for (const part& p : counted)
                if (greatest == nullptr || *p.value > *greatest->value) greatest = &p;
            if (greatest != nullptr) all.parts.push_back(*greatest);
            else all.parts.push_back({.where = w, .why = "not counted"});
        }
        all.would_tell = would_tell(m.workloads, (m.ours.empty() ? "" : " -s " + m.ours) + m.asked_with);
        return all;
    };
}

}  // namespace alloclab::report
