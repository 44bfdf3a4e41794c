// What a gate_report looks like on a terminal, in a pull request and to a program.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "alloclab/report/gates.hpp"
#include "chapters.hpp"
#include "drawn.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

std::string signed_percent(double share) { return (share < 0 ? "−" : "+") + percent(std::abs(share)); }

/// What changed of what a state says: a failure is only a rise where no gate was asked for.
bool fell(const change& c) { return c.bounds ? c.bounds->high < 0 : c.before && c.after && *c.after < *c.before; }
bool rose(const change& c) { return c.bounds ? c.bounds->low > 0 : c.before && c.after && *c.after > *c.before; }
std::string state_of(const gate_report& r, const change& c) {
    if (c.state == gate_state::failed) return r.asked ? "failed" : c.reason.empty() ? "worse" : "lost";
    if (c.state == gate_state::passed) return fell(c) ? "better" : rose(c) ? "within" : "same";
    return std::string(to_string(c.state));
}

std::string change_of(const change& c) {
    if (!c.before || !c.after) return "–";
    if (c.by.metric == "time" || *c.before == *c.after) return c.share ? signed_percent(*c.share) : "0";
    const double rise = *c.after - *c.before;
    const std::string by = (rise < 0 ? "−" : "+") + count(std::abs(rise));
    return c.share ? fmt::format("{} ({})", by, signed_percent(*c.share)) : by;
}

std::string value_of(const change& c, const std::optional<double>& value) {
    return !value ? "–" : c.by.metric == "time" ? figure(*value) : count(*value);
}

std::string metric_of(const change& c) {
    return c.relative_to.empty() ? c.by.metric : fmt::format("{} / {}", c.by.metric, c.relative_to);
}

std::string setting_of(const cell& c) { return describe(c.parameters); }

/// The changes that a reader looks for, as many of each kind as stay readable.
table changes_table(const gate_report& r, std::size_t most_failed, std::size_t most_others) {
    using kind = column::kind;
    table t{r.asked ? "Gated figures that changed" : "Figures that changed",
            {{"", kind::text},
             {"strategy", kind::name},
             {"workload", kind::name},
             {"setting", kind::text},
             {"metric", kind::text},
             {"base"},
             {"new"},
             {"change"},
             {"interval"},
             {"why", kind::text}},
            {}};
    std::vector<std::size_t> shown(static_cast<std::size_t>(gate_state::noise) + 1);
    for (const change& c : r.changes) {
        const bool worth = c.state == gate_state::passed ? fell(c) || rose(c) : c.state != gate_state::noise;
        const std::size_t most = c.state == gate_state::failed ? most_failed : most_others;
        if (!worth || shown[static_cast<std::size_t>(c.state)]++ >= most) continue;
        std::optional<verdict> tone;
        if (c.state == gate_state::failed) tone = verdict::failed;
        else if (c.state != gate_state::passed) tone = verdict::inconclusive;
        else if (fell(c)) tone = verdict::faster;
        const std::string why =
            c.state == gate_state::failed && c.reason.empty() && r.asked ? to_string(c.by) : c.reason;
        t.rows.push_back(
            {{state_of(r, c), "", tone},
             {c.base->strategy},
             {c.base->workload},
             {setting_of(*c.base)},
             {metric_of(c)},
             {value_of(c, c.before)},
             {value_of(c, c.after)},
             {change_of(c)},
             {c.bounds ? fmt::format("{} to {}", signed_percent(c.bounds->low), signed_percent(c.bounds->high)) : ""},
             {why}});
    }
    std::size_t left_out = 0;
    for (std::size_t state = 0; state < shown.size(); ++state) {
        const std::size_t most = state == static_cast<std::size_t>(gate_state::failed) ? most_failed : most_others;
        left_out += shown[state] - std::min(shown[state], most);
    }
    if (left_out > 0) t.caption += fmt::format(" ({} more are in the JSON)", left_out);
    return t;
}

std::size_t number_of(const gate_report& r, gate_state s) {
    return static_cast<std::size_t>(
        std::count_if(r.changes.begin(), r.changes.end(), [s](const change& c) { return c.state == s; }));
}

/// Distinct, in the order in which they come, and not more than a line takes.
template <class Range, class Name>
std::string some_of(const Range& range, Name name) {
    constexpr std::size_t most = 6;
    std::vector<std::string> names;
    for (const auto& item : range) {
        std::string next = name(item);
        if (!next.empty() && std::find(names.begin(), names.end(), next) == names.end())
            names.push_back(std::move(next));
    }
    const std::size_t more = names.size() - std::min(names.size(), most);
    names.resize(names.size() - more);
    if (more > 0) names.push_back(fmt::format("{} more", more));
    return listed(names);
}

std::string plural(std::size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

/// What stands beside the table, a line each.
std::vector<std::string> remarks(const gate_report& r) {
    std::vector<std::string> lines;
    for (const auto& [g, why] : r.refused)
        lines.push_back(fmt::format("{} not comparable: {}", r.asked ? to_string(g) : visible(g.metric), why));
    for (const gate& g : r.unmatched)
        if (r.asked) lines.push_back(fmt::format("{}: no cell of BASE has this figure", to_string(g)));
    if (!r.only_in_next.empty()) {
        lines.push_back(fmt::format(
            "{}: {} of {}",
            r.asked && !r.lenient ? "failed, as BASE has nothing to hold them against" : "only in NEW and so not gated",
            plural(r.only_in_next.size(), "cell"),
            some_of(r.only_in_next, [](const cell* c) { return visible(c->strategy); })));
    }
    const change* widest = nullptr;
    for (const change& c : r.changes)
        if (c.state == gate_state::noise && c.share &&
            (widest == nullptr || std::abs(*c.share) > std::abs(*widest->share)))
            widest = &c;
    if (widest != nullptr) {
        const std::string setting = setting_of(*widest->base);
        lines.push_back(fmt::format("noise seen in {} of A/A rows: up to {} ({} in {}{}{})",
                                    plural(number_of(r, gate_state::noise), "figure"), signed_percent(*widest->share),
                                    visible(widest->by.metric), visible(widest->base->workload),
                                    setting.empty() ? "" : " at ", visible(setting)));
    }
    lines.insert(lines.end(), r.notes.begin(), r.notes.end());
    return lines;
}

nlohmann::json number(const std::optional<double>& value) {
    return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json in_json(const cell& c) {
    return {{"workload", c.workload}, {"strategy", c.strategy}, {"parameters", c.parameters}};
}

}  // namespace

std::string summary(const gate_report& r) {
    const std::size_t failed = number_of(r, gate_state::failed), open = number_of(r, gate_state::inconclusive),
                      passed = number_of(r, gate_state::passed), ungated = number_of(r, gate_state::ungated);
    const std::string let_pass = ungated > 0 ? fmt::format(", {} missing and let pass", ungated) : "";
    std::string rest = plural(passed, "figure") + " passed";
    if (open > 0) rest += fmt::format(", {} inconclusive", open);
    rest += let_pass;
    const auto why_not = [&] {
        return some_of(r.refused, [](const auto& refused) { return to_string(refused.first) + ' ' + refused.second; });
    };
    if (!r.asked) {
        const auto better =
            static_cast<std::size_t>(std::count_if(r.changes.begin(), r.changes.end(), [](const change& c) {
                return c.state == gate_state::passed && fell(c);
            }));
        return overall(r) == outcome::passed
                   ? fmt::format("no gate asked for: {} compared, {} worse, {} better, {} inconclusive",
                                 plural(failed + open + passed, "figure"), failed, better, open)
               : overall(r) == outcome::not_comparable ? "not comparable: " + why_not()
                                                       : "the two have no figure in common";
    }
    switch (overall(r)) {
        case outcome::failed: {
            std::vector<const change*> all;
            for (const change& c : r.changes)
                if (c.state == gate_state::failed) all.push_back(&c);
            const std::string gates = some_of(all, [](const change* c) { return to_string(c->by); });
            const std::string who = some_of(all, [](const change* c) { return visible(c->base->strategy); });
            if (failed == 0)
                return fmt::format("FAILED by {} of {}, which BASE does not have; {}",
                                   plural(r.only_in_next.size(), "cell"),
                                   some_of(r.only_in_next, [](const cell* c) { return visible(c->strategy); }), rest);
            return fmt::format("FAILED {} by {}: {} too high or lost; {}", gates, who, plural(failed, "figure"), rest);
        }
        case outcome::not_comparable:
            return fmt::format("not comparable: {}; {}", why_not(), rest);
        case outcome::nothing_matched:
            return fmt::format(
                "nothing to gate: no cell of BASE has a figure for {}; {}",
                some_of(r.unmatched.empty() ? r.gates : r.unmatched, [](const gate& g) { return visible(g.metric); }),
                rest);
        case outcome::inconclusive:
            return fmt::format("inconclusive: {} of {} not certain enough for their gates", open,
                               plural(open + passed, "figure"));
        case outcome::passed:
            break;
    }
    return fmt::format("passed: {} within their gates{}", plural(passed, "figure"), let_pass);
}

std::string to_terminal(const gate_report& r, bool colour) {
    const table t = changes_table(r, 200, 20);
    std::string out = t.rows.empty() ? "" : terminal_table(t, colour);
    for (const std::string& line : remarks(r)) out += "  " + line + '\n';
    return out + summary(r) + '\n';
}

std::string to_markdown(const gate_report& r) {
    constexpr std::size_t longest = 60'000;  // GitHub takes 65 536 characters in a comment
    const outcome all = overall(r);
    std::string head = fmt::format("## alloclab: {}\n\n{}\n\n",
                                   !r.asked                 ? "comparison"
                                   : all == outcome::passed ? ":white_check_mark: gates passed"
                                   : all == outcome::failed ? ":x: gates failed"
                                                            : ":warning: gates not decided",
                                   markdown_text(summary(r)));
    std::string tail;
    for (const std::string& line : remarks(r)) tail += fmt::format("- {}\n", markdown_text(line));
    if (!tail.empty()) tail = markdown_folded("What else to know", tail + '\n');
    // Names may be of any length: rows are left out until what is left fits.
    for (std::size_t most = 200; most > 0; most /= 2) {
        const table t = changes_table(r, most, std::min<std::size_t>(most, 20));
        std::string out = head + (t.rows.empty() ? "" : markdown_table(t)) + tail;
        if (out.size() <= longest) return out;
    }
    return head;
}

std::string to_json(const gate_report& r) {
    using nlohmann::json;
    const auto gates = [](const std::vector<gate>& all) {
        json array = json::array();
        for (const gate& g : all) array.push_back(to_string(g));
        return array;
    };
    constexpr std::array<const char*, 5> outcomes{"failed", "not comparable", "nothing matched", "inconclusive",
                                                  "passed"};
    json document{{"schema", "alloclab-compare/1"},
                  {"outcome", outcomes[static_cast<std::size_t>(overall(r))]},
                  {"summary", summary(r)},
                  {"gates", r.asked ? gates(r.gates) : json::array()},
                  {"unmatched", r.asked ? gates(r.unmatched) : json::array()},
                  {"not_comparable", json::array()},
                  {"notes", r.notes},
                  {"changes", json::array()},
                  {"only_in_new", json::array()}};
    for (const auto& [g, why] : r.refused)
        document["not_comparable"].push_back({{"gate", to_string(g)}, {"reason", why}});
    for (const change& c : r.changes) {
        json one = in_json(*c.base);
        one.update({{"metric", c.by.metric},
                    {"relative_to", c.relative_to},
                    {"gate", r.asked ? json(to_string(c.by)) : json(nullptr)},
                    {"base", number(c.before)},
                    {"new", number(c.after)},
                    {"share", number(c.share)},
                    {"state", state_of(r, c)},
                    {"reason", c.reason}});
        if (c.bounds)
            one["interval"] = {{"low", c.bounds->low}, {"high", c.bounds->high}, {"coverage", c.bounds->coverage}};
        document["changes"].push_back(std::move(one));
    }
    for (const cell* c : r.only_in_next) document["only_in_new"].push_back(in_json(*c));
    return document.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace alloclab::report
