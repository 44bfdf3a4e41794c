#include "alloclab/report/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "text.hpp"

namespace alloclab::report {
namespace {

using cell_key = std::tuple<std::string_view, std::string_view, std::map<std::string, std::string>>;
cell_key key_of(const cell& c) { return {c.workload, c.strategy, c.parameters}; }

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// A run with its cells by key, its workloads and the twins by name.
class indexed {
public:
    explicit indexed(const run& r) : of{r} {
        for (const workload& w : r.workloads) workloads_.emplace(w.name, &w);
        for (const strategy& s : r.strategies)
            if (!s.twin_of.empty()) twins_.emplace(s.kind, s.name);
        for (const cell& c : r.cells) cells_.emplace(key_of(c), &c);
    }

    const run& of;
    [[nodiscard]] const cell* find(const cell_key& key) const {
        const auto at = cells_.find(key);
        return at == cells_.end() ? nullptr : at->second;
    }
    [[nodiscard]] const workload& on(const cell& c) const {
        static const workload none{};
        const auto at = workloads_.find(c.workload);
        return at == workloads_.end() ? none : *at->second;
    }
    [[nodiscard]] bool is_twin(const cell& c) const { return twins_.contains({on(c).kind, c.strategy}); }
    /// That ratios of this cell are formed to: nullptr for the baseline itself and where it was not measured.
    [[nodiscard]] const cell* baseline_of(const cell& c) const {
        const std::string& name = on(c).baseline;
        return name.empty() || name == c.strategy ? nullptr : find({c.workload, name, c.parameters});
    }

private:
    std::map<std::string_view, const workload*> workloads_;
    std::set<std::pair<std::string_view, std::string_view>> twins_;
    std::map<cell_key, const cell*> cells_;
};

/// Of every sample: one that got lost may have been the slow one.
bool has_time(const cell& c) {
    return !c.samples.empty() && std::all_of(c.samples.begin(), c.samples.end(),
                                             [](const sample& s) { return std::isfinite(s.value) && s.value > 0; });
}
bool is_calibrated(const cell& c) {
    return !c.samples.empty() &&
           std::all_of(c.samples.begin(), c.samples.end(), [](const sample& s) { return s.calibration > 0; });
}

/// A time in a unit that both files share.
struct timing {
    std::optional<double> value;
    std::optional<interval> bounds;
    std::string reason;  ///< why without bounds
};

/// One median takes half of what a change may be wrong by. The six values that verdicts need have 96.9 %: enough for a
/// gate, which looks at one end of each interval alone.
constexpr double each_side = 1 - (1 - confidence) / 2;

timing ratio_to(const cell& baseline, const cell& c) {
    pairing p = pair_up(c, baseline, each_side);
    if (!p.bounds) p = pair_up(c, baseline);
    return {p.ratio, p.bounds, p.reason};
}

/// The median over blocks of the times as they are, or in units of the loop that was timed beside them.
timing alone(const cell& c, bool calibrated, std::string_view blocks_are) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> blocks;
    for (const sample& s : c.samples) {
        const double value = calibrated ? s.value / s.calibration : s.value;
        if (std::isfinite(value) && value > 0) blocks[{s.machine, s.block}].push_back(value);
    }
    std::vector<double> medians;
    for (const auto& [block, values] : blocks) medians.push_back(*median(values));
    timing t{median(medians), median_interval(medians, each_side), ""};
    if (!t.bounds) t.bounds = median_interval(medians);
    if (!t.bounds)
        t.reason = fmt::format("{} {}{}, 6 needed", medians.size(), blocks_are, medians.size() == 1 ? "" : "s");
    return t;
}

/// Which machine figures come from, "" where that is not known; two of those are not the same.
std::string identity(const std::vector<std::pair<std::string, std::string>>& environment) {
    const auto fact = [&](std::string_view name) {
        std::string value = fact_of(environment, name);
        return value == "unknown" ? "" : value;
    };
    if (std::string machine = fact("machine"); !machine.empty()) return machine;
    const std::string cpu = fact("cpu"), cores = fact("cores"), system = fact("system");
    return cpu.empty() || cores.empty() || system.empty() ? "" : fmt::format("{}, {} cores, {}", cpu, cores, system);
}
std::set<std::string> machines_of(const run& r) {
    std::set<std::string> all;
    for (const machine& m : r.machines) all.insert(identity(m.environment));
    if (r.machines.empty()) all.insert(identity(r.environment));
    return all;
}

std::set<std::string> machines_of(const run& r, const cell& c) {
    std::set<std::string> all;
    for (const sample& s : c.samples)
        all.insert(identity(s.machine < r.machines.size() ? r.machines[s.machine].environment : r.environment));
    return all;
}

bool is_debug(const run& r) { return fact_of(r.environment, "build").starts_with("Debug"); }

/// Why no time of one file says anything about one of the other; "" where it does.
std::string why_times_differ(const run& base, const run& next) {
    if (is_debug(base) != is_debug(next))
        return fmt::format("BASE is a {} build and NEW is not", is_debug(base) ? "Debug" : "Release");
    const std::set<std::string> before = machines_of(base), after = machines_of(next);
    for (const auto& [name, machines] : {std::pair{"BASE", &before}, {"NEW", &after}})
        if (machines->contains("")) return fmt::format("{} does not say which machine it was measured on", name);
    if (before != after) {
        const auto named = [](const std::set<std::string>& all) {
            return visible(listed(std::vector<std::string>(all.begin(), all.end())));
        };
        return fmt::format("measured on different machines: BASE on {}, NEW on {}", named(before), named(after));
    }
    // A cell of a sweep may have been measured on any of them; one without a time is lost, not moved.
    const indexed there(next);
    const auto moved = std::count_if(base.cells.begin(), base.cells.end(), [&](const cell& c) {
        const cell* other = there.find(key_of(c));
        return other != nullptr && !c.samples.empty() && !other->samples.empty() &&
               machines_of(base, c) != machines_of(next, *other);
    });
    return moved == 0 ? ""
                      : fmt::format("{} cell{} measured on another machine than in BASE", moved,
                                    moved == 1 ? " was" : "s were");
}

class judging {
public:
    judging(const result_file& base, const result_file& next, bool lenient)
        : base_{base.results}, next_{next.results}, from_{base.from}, lenient_{lenient} {}

    [[nodiscard]] const indexed& base() const { return base_; }
    [[nodiscard]] const indexed& next() const { return next_; }

    /// nullopt where neither file has such a figure, nor the base an error in its place.
    [[nodiscard]] std::optional<change> judge_cell(const cell& c, const gate& g) const {
        const bool timed = g.metric == "time";
        const cell* next = next_.find(key_of(c));
        const auto has = [&](const cell& of) { return timed ? !of.samples.empty() : of.counters.contains(g.metric); };
        if (!has(c) && c.error.empty() && (next == nullptr || !has(*next))) return std::nullopt;
        change made{&c, next, g, "", std::nullopt, std::nullopt};
        if (timed) judge_time(made);
        else judge_counter(made);
        if (base_.is_twin(c)) made.state = gate_state::noise;
        return made;
    }

private:
    /// Says what of the figure is not there, and whether there was anything.
    bool lacks(change& c, bool in_base, bool in_next, std::string_view what) const {
        const auto lost = [&](std::string why) {
            c.reason = std::move(why);
            return true;
        };
        if (!c.base->error.empty()) {
            if (lenient_) c.state = gate_state::ungated;
            return lost("failed in BASE: " + visible(c.base->error));
        }
        if (!in_base) return lost(fmt::format("{} is no number in BASE", what));
        if (c.next == nullptr) {
            if (lenient_) c.state = gate_state::ungated;
            return lost("missing in NEW");
        }
        if (!c.next->error.empty()) return lost("failed in NEW: " + visible(c.next->error));
        if (!c.next->refusal.empty() && c.base->refusal.empty())
            return lost("refused in NEW: " + visible(c.next->refusal));
        return !in_next && lost(fmt::format("{} is missing or no number in NEW", what));
    }

    void judge_counter(change& c) const {
        const auto value_in = [&](const cell* of) -> std::optional<double> {
            if (of == nullptr) return std::nullopt;
            const auto at = of->counters.find(c.by.metric);
            return at == of->counters.end() || !std::isfinite(at->second) ? std::nullopt : std::optional{at->second};
        };
        c.before = value_in(c.base);
        c.after = value_in(c.next);
        if (lacks(c, c.before.has_value(), c.after.has_value(), visible(c.by.metric))) return;
        const double rise = *c.after - *c.before, size = std::abs(*c.before);
        if (size > 0) c.share = rise / size;
        // What is exactly at the limit passes, whichever way the product was rounded.
        const double allowed = c.by.relative ? c.by.limit * size * (1 + 1e-12) : c.by.limit;
        c.state = rise > allowed ? gate_state::failed : gate_state::passed;
    }

    void judge_time(change& c) const {
        if (lacks(c, has_time(*c.base), c.next != nullptr && has_time(*c.next), "the time")) return;
        const std::string &unit = base_.on(*c.base).unit, &new_unit = next_.on(*c.next).unit;
        const std::string &ratio_to_was = base_.on(*c.base).baseline, &ratio_to_is = next_.on(*c.next).baseline;
        if (unit != new_unit || ratio_to_was != ratio_to_is) {
            const bool by_unit = unit != new_unit;
            c.reason =
                fmt::format("not the same figure: {} \"{}\" in BASE, \"{}\" in NEW", by_unit ? "unit" : "baseline",
                            visible(by_unit ? unit : ratio_to_was), visible(by_unit ? new_unit : ratio_to_is));
            return;
        }

        timing before, after;
        const cell *baseline = base_.baseline_of(*c.base), *new_baseline = next_.baseline_of(*c.next);
        const bool paired = baseline != nullptr && has_time(*baseline);
        if (paired && new_baseline != nullptr && has_time(*new_baseline)) {
            c.relative_to = ratio_to_is;
            before = ratio_to(*baseline, *c.base);
            after = ratio_to(*new_baseline, *c.next);
        } else if (from_ == origin::google_benchmark) {
            before = alone(*c.base, false, "repetition");
            after = alone(*c.next, false, "repetition");
        } else if (is_calibrated(*c.base) && is_calibrated(*c.next)) {
            c.relative_to = "calibration";
            before = alone(*c.base, true, "block");
            after = alone(*c.next, true, "block");
        } else if (c.base->strategy == ratio_to_is) {
            c.state = gate_state::inconclusive;
            c.reason = "the baseline itself, and no calibration beside its times to hold it against";
            return;
        } else {
            c.reason = fmt::format("{} has no time in {}, to which ratios are formed",
                                   ratio_to_is.empty() ? "a baseline" : visible(ratio_to_is), paired ? "NEW" : "BASE");
            return;
        }

        c.before = before.value;
        c.after = after.value;
        c.state = gate_state::inconclusive;
        if (before.value && after.value) c.share = *after.value / *before.value - 1;
        if (!before.bounds || !after.bounds) {
            c.reason = !before.bounds ? "BASE: " + before.reason : "NEW: " + after.reason;
            return;
        }
        c.bounds = interval{after.bounds->low / before.bounds->high - 1, after.bounds->high / before.bounds->low - 1,
                            before.bounds->coverage + after.bounds->coverage - 1};
        const double limit = c.by.limit + 1e-12;  // as for counters
        if (c.bounds->low > limit) c.state = gate_state::failed;
        else if (c.bounds->high <= limit) c.state = gate_state::passed;
        else c.reason = fmt::format("the interval holds the limit of {}", percent(c.by.limit));
    }

    indexed base_, next_;
    origin from_;
    bool lenient_;
};

/// `timed`: what may have spoilt times matters.
std::vector<std::string> notes_on(const run& base, const run& next, bool timed) {
    std::vector<std::string> notes;
    for (const char* name : {"build", "compiler", "alloclab", "revision", "C library", "malloc served by", "mimalloc",
                             "allocator variables", "library build", "Google Benchmark"}) {
        const std::string before = fact_of(base.environment, name), after = fact_of(next.environment, name);
        if (before != after)
            notes.push_back(fmt::format("{}: \"{}\" in BASE, \"{}\" in NEW", name, visible(before), visible(after)));
    }
    for (const auto& [name, r] : {std::pair{"BASE", &base}, {"NEW", &next}})
        if (r->partial)
            notes.push_back(fmt::format("{} is a partial run: it ended before all cells were measured", name));
    if (!timed) return notes;
    const auto warns = [](const run& r, const std::string& warning) {
        return std::find(r.warnings.begin(), r.warnings.end(), warning) != r.warnings.end();
    };
    for (const std::string& warning : base.warnings)
        notes.push_back(fmt::format("{}: {}", warns(next, warning) ? "BASE and NEW" : "BASE", visible(warning)));
    for (const std::string& warning : next.warnings)
        if (!warns(base, warning)) notes.push_back("NEW: " + visible(warning));
    return notes;
}

}  // namespace

gate parse_gate(std::string_view text) {
    const auto fail = [&](std::string_view expected) {
        throw bad_gate(fmt::format("\"{}\" is no gate: expected {}", visible(text), expected));
    };
    const auto sign = text.rfind('>');
    if (sign == std::string_view::npos) fail("METRIC>NUMBER or METRIC>NUMBER%, such as time>3% or peak_bytes>0");
    gate g;
    g.metric = trimmed(text.substr(0, sign));
    if (g.metric.empty()) fail("the name of a metric before the >");
    std::string_view number = trimmed(text.substr(sign + 1));
    g.relative = number.ends_with('%');
    if (g.relative) number = trimmed(number.substr(0, number.size() - 1));
    const char* end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, g.limit);
    if (error != std::errc{} || stop != end || !std::isfinite(g.limit) || g.limit < 0)
        fail("a number from 0 after the >, with or without a %");
    if (g.relative) g.limit /= 100;
    if (g.metric == "time" && !g.relative) fail("a percentage, such as time>3%: times are compared as ratios");
    return g;
}

std::string to_string(const gate& g) {
    return fmt::format("{}>{}{}", visible(g.metric), fmt::format("{:.12g}", g.limit * (g.relative ? 100 : 1)),
                       g.relative ? "%" : "");
}

std::string_view to_string(gate_state s) noexcept {
    constexpr std::array<std::string_view, 5> words{"failed", "inconclusive", "ungated", "passed", "noise"};
    return words[static_cast<std::size_t>(s)];
}

std::vector<std::string> metrics_of(const run& r) {
    std::set<std::string> counters;
    bool timed = false;
    for (const cell& c : r.cells) {
        timed = timed || !c.samples.empty();
        for (const auto& [name, value] : c.counters) counters.insert(name);
    }
    std::vector<std::string> all;
    if (timed) all.emplace_back("time");
    all.insert(all.end(), counters.begin(), counters.end());
    return all;
}

gate_report judge(const result_file& base, const result_file& next, const std::vector<gate>& gates, bool lenient) {
    if (base.from != next.from) {
        const auto name = [](origin o) { return o == origin::alloclab ? "alloclab" : "Google Benchmark"; };
        throw not_comparable(fmt::format("BASE was written by {}, NEW by {}: they do not measure the same",
                                         name(base.from), name(next.from)));
    }
    for (const char* fact : {"device", "device figures"}) {
        // A run that does not say it was made before there was a choice.
        const std::string before = fact_of(base.results.environment, fact),
                          after = fact_of(next.results.environment, fact);
        if (!before.empty() && !after.empty() && before != after)
            throw not_comparable(fmt::format("measured on different devices: {} is \"{}\" in BASE, \"{}\" in NEW", fact,
                                             visible(before), visible(after)));
    }
    const judging both(base, next, lenient);
    gate_report r;
    r.asked = !gates.empty();
    r.lenient = lenient;
    r.gates = gates;
    if (!r.asked)
        for (const std::string& metric : metrics_of(base.results))
            r.gates.push_back(metric == "time" ? gate{metric, margin, true} : gate{metric, 0, false});

    const std::string differ = why_times_differ(base.results, next.results);
    for (const gate& g : r.gates) {
        // A Debug build takes other instructions, but asks for the same bytes.
        const bool spoilt =
            g.metric == "time" || (g.metric == "instructions" && is_debug(base.results) != is_debug(next.results));
        std::vector<change> made;
        for (const cell& c : base.results.cells)
            if (auto judged = both.judge_cell(c, g)) made.push_back(std::move(*judged));
        const auto counts = [](const change& c) {
            return c.state != gate_state::noise && c.state != gate_state::ungated;
        };
        if (std::none_of(made.begin(), made.end(), counts)) r.unmatched.push_back(g);
        else if (spoilt && !differ.empty()) r.refused.emplace_back(g, differ);
        if (spoilt && !differ.empty()) continue;
        std::move(made.begin(), made.end(), std::back_inserter(r.changes));
    }
    std::stable_sort(r.changes.begin(), r.changes.end(),
                     [](const change& a, const change& b) { return a.state < b.state; });
    for (const cell& c : next.results.cells)
        if (both.base().find(key_of(c)) == nullptr && !both.next().is_twin(c)) r.only_in_next.push_back(&c);
    const bool timed =
        std::any_of(r.changes.begin(), r.changes.end(), [](const change& c) { return c.by.metric == "time"; });
    r.notes = notes_on(base.results, next.results, timed);
    return r;
}

outcome overall(const gate_report& r) noexcept {
    const auto any = [&](gate_state s) {
        return std::any_of(r.changes.begin(), r.changes.end(), [s](const change& c) { return c.state == s; });
    };
    const bool compared = any(gate_state::failed) || any(gate_state::inconclusive) || any(gate_state::passed);
    if (!r.asked)
        return compared ? outcome::passed : !r.refused.empty() ? outcome::not_comparable : outcome::nothing_matched;
    if (any(gate_state::failed) || (!r.lenient && !r.only_in_next.empty())) return outcome::failed;
    if (!r.refused.empty()) return outcome::not_comparable;
    if (!r.unmatched.empty() || !compared) return outcome::nothing_matched;
    return any(gate_state::inconclusive) ? outcome::inconclusive : outcome::passed;
}

}  // namespace alloclab::report
