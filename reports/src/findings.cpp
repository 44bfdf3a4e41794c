#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "text.hpp"

namespace alloclab::report {
namespace {

using kind = piece::kind;

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

/// "`a`, `b` (control) and `c`"
sentence names(const chapter& ch, const std::vector<std::string>& strategies, const char* before_last) {
    sentence s;
    for (std::size_t i = 0; i < strategies.size(); ++i) {
        if (i > 0) s.push_back({kind::plain, i + 1 < strategies.size() ? ", " : before_last});
        s.push_back({kind::name, strategies[i]});
        if (ch.of(strategies[i]).control) s.push_back({kind::plain, " (control)"});
    }
    return s;
}

sentence joined(std::initializer_list<sentence> parts) {
    sentence all;
    for (const sentence& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}
sentence words(std::string text) { return {{kind::plain, std::move(text)}}; }

/// "`a` takes 57 % less time than `heap`"
sentence against(const standing& s, const std::string& baseline) {
    return {{kind::name, s.strategy},
            {kind::plain, s.control ? " (control) takes " : " takes "},
            {kind::figure, in_words(*s.ratio)},
            {kind::plain, " "},
            {kind::name, baseline}};
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

/// Strategies that may be chosen and have a ratio in every setting, the fastest first.
std::vector<const standing*> able(const chapter& ch) {
    std::vector<const standing*> all;
    for (const standing& s : ch.standings) {
        if (!s.control && !s.leaks() && s.ratio && s.timed() == ch.settings()) all.push_back(&s);
    }
    std::stable_sort(all.begin(), all.end(), [](auto* a, auto* b) { return *a->ratio < *b->ratio; });
    return all;
}

sentence nothing_compared(const chapter& ch) {
    const std::string& baseline = ch.on->baseline;
    if (baseline.empty()) return words("The workload names no baseline to compare with.");
    const bool alone = std::all_of(ch.standings.begin(), ch.standings.end(),
                                   [&](const standing& s) { return s.strategy == baseline; });
    return {{kind::plain, alone ? "Only the baseline was run: " : "Nothing could be compared with the baseline "},
            {kind::name, baseline},
            {kind::plain, "."}};
}

/// Who is fastest, who is level with it, who would be if it had room, who is slowest.
void judge_times(finding& f, const chapter& ch) {
    const std::string& baseline = ch.on->baseline;
    const bool compared = std::any_of(ch.standings.begin(), ch.standings.end(),
                                      [&](const standing& s) { return s.ratio && s.strategy != baseline; });
    const auto everywhere = able(ch);
    if (!compared || everywhere.empty()) {
        f.tone = verdict::inconclusive;
        f.sentences.push_back(compared ? words("No strategy that may be chosen ran in every setting.")
                                       : nothing_compared(ch));
        return;
    }

    const standing& best = *everywhere.front();
    const standing* shown = &best;
    if (best.strategy != baseline && best.count(verdict::faster) > 0) {
        f.tone = verdict::faster;
        f.sentences.push_back(joined({words(best.overall() == verdict::faster ? "Fastest: " : "Fastest on average: "),
                                      against(best, baseline), words(evidence(ch, best))}));
    } else {
        f.tone = verdict::same;
        sentence s{{kind::plain, "Nothing beats the baseline "}, {kind::name, baseline}};
        const auto next =
            std::find_if(everywhere.begin(), everywhere.end(), [&](auto* a) { return a->strategy != baseline; });
        if (next == everywhere.end()) {
            s = joined({s, words(", the only one that ran in every setting.")});
        } else {
            shown = *next;
            s = joined({s, words("; nearest: "), against(*shown, baseline), words(evidence(ch, *shown))});
        }
        f.sentences.push_back(std::move(s));
    }

    std::vector<std::string> level;
    for (const standing* s : everywhere) {
        if (s != shown && s->strategy != baseline && *s->ratio <= *shown->ratio * (1 + margin))
            level.push_back(s->strategy);
    }
    if (level.size() > 4) {
        f.sentences.push_back(words(fmt::format("{} others are within 3 % of it.", level.size())));
    } else if (!level.empty()) {
        f.sentences.push_back(joined({words("Within 3 % of it: "), names(ch, level, " and "), words(".")}));
    }

    for (const standing& s : ch.standings) {
        if (s.control || s.leaks() || !s.ratio || s.timed() == s.settings) continue;
        const auto [its, bests] = side_by_side(ch, s.strategy, best.strategy);
        if (its > 0 && its < bests * (1 - margin)) {
            f.sentences.push_back(
                joined({words(fmt::format("Where it has room ({} of {} settings), ", s.timed(), s.settings)),
                        against(s, baseline), words(".")}));
        }
    }

    const auto slowest = std::max_element(
        ch.standings.begin(), ch.standings.end(),
        [](const standing& a, const standing& b) { return a.ratio.value_or(0) < b.ratio.value_or(0); });
    if (slowest->count(verdict::slower) > 0 && &*slowest != shown)
        f.sentences.push_back(joined({words("Slowest: "), against(*slowest, baseline), words(evidence(ch, *slowest))}));
}

/// Who refuses where. A strategy that this system lacks altogether says nothing about itself and is left out.
void judge_refusals(finding& f, const chapter& ch) {
    std::vector<sentence> all;
    for (const outage& o : ch.refusals) {
        if (o.as != verdict::full && o.everywhere) continue;
        const bool one = o.strategies.size() == 1;
        const bool full = o.as == verdict::full;
        all.push_back(joined({names(ch, o.strategies, " and "),
                              words(!full ? " "
                                    : one ? " is "
                                          : " are "),
                              {{kind::figure, full  ? "full"
                                              : one ? "refuses"
                                                    : "refuse"}},
                              words(o.where.empty() ? "" : ' ' + o.where)}));
    }
    if (all.empty()) return;
    const auto never = std::count_if(ch.standings.begin(), ch.standings.end(), [](const standing& s) {
        return s.count(verdict::full) + s.count(verdict::refused) == 0;
    });
    if (never > 0)
        all.back().push_back({kind::plain, never == 1 ? "; the other one never refuses"
                                                      : fmt::format("; the other {} never refuse", never)});
    for (sentence& s : all) f.limits.push_back(joined({s, words(".")}));
}

/// What growth alone shows; leaks stand in findings of their own.
void judge_growth(finding& f, const chapter& ch) {
    const std::string& key = ch.series.front();
    std::size_t evals = 0;
    for (const panel& p : ch.panels) {
        for (const auto& [where, c] : p.cells) {
            const auto values = c->of->series.find(key);
            if (values != c->of->series.end()) evals = std::max(evals, values->second.size());
        }
    }
    f.tone = verdict::inconclusive;
    const std::string subject = capital(full_label(key));
    for (const auto& [growth, text] :
         {std::pair{steadiness::flat, "stay flat over"}, {steadiness::varies, "vary over"}}) {
        std::vector<std::string> such;
        for (const standing& s : ch.standings) {
            if (s.growth == growth) such.push_back(s.strategy);
        }
        if (such.empty()) continue;
        if (growth == steadiness::flat) f.tone = verdict::same;
        f.sentences.push_back(
            joined({words(fmt::format("{} {} {} evals: ", subject, text, evals)), names(ch, such, ", "), words(".")}));
    }
    if (f.sentences.empty()) f.sentences.push_back(words(subject + " stay flat with no strategy."));
}

/// How much of an eval the strategies decide at all, apart for settings that left a part of the eval out.
void judge_share(finding& f, const chapter& ch) {
    struct group {
        std::vector<std::string> without;
        share s;
        std::map<std::string, std::string> common;  // parameters that all its panels agree in
    };
    std::vector<group> groups;
    for (const panel& p : ch.panels) {
        const auto s = share_of(ch, p);
        if (!s) continue;
        auto without = left_out(ch, p);
        const auto g = std::find_if(groups.begin(), groups.end(), [&](const group& x) { return x.without == without; });
        if (g == groups.end()) {
            groups.push_back({std::move(without), *s, p.parameters});
            continue;
        }
        g->s = {std::min(g->s.least, s->least), std::max(g->s.most, s->most)};
        for (auto at = g->common.begin(); at != g->common.end();) {
            const auto same = p.parameters.find(at->first);
            at = same != p.parameters.end() && same->second == at->second ? std::next(at) : g->common.erase(at);
        }
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const group& a, const group& b) { return a.without.size() < b.without.size(); });
    if (groups.empty()) return;
    sentence all = words(fmt::format("The {} part is ", compared_part(*ch.on)));
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const group& g = groups[i];
        const std::string which =
            g.without.empty() ? " of an eval" : fmt::format(" of one without {}", listed(g.without, "or"));
        const std::string where = groups.size() == 1 ? "" : describe(g.common);
        all = joined({all,
                      words(i == 0 ? "" : "; "),
                      {{kind::figure, in_words(g.s)}},
                      words(which + (where.empty() ? "" : " (" + where + ')'))});
    }
    f.sentences.push_back(joined({all, words(".")}));
}

finding finding_of(const chapter& ch) {
    finding f;
    f.on = ch.on;
    if (ch.only_series()) judge_growth(f, ch);
    else judge_times(f, ch);
    judge_refusals(f, ch);
    judge_share(f, ch);
    return f;
}

std::vector<finding> leaks_of(const chapter& ch) {
    std::vector<finding> leaks;
    if (ch.series.empty()) return leaks;
    const std::string& key = ch.series.front();
    for (const panel& p : ch.panels) {
        for (const std::string& name : p.strategies) {
            for (const std::string& at : p.at) {
                const comparison* c = p.find(name, at);
                if (c == nullptr || !c->of->series.contains(key)) continue;
                const auto growing = trend_of(c->of->series.at(key));
                if (!growing || !growing->leak) continue;
                const auto where = describe(c->of->parameters);
                leaks.push_back({ch.on,
                                 verdict::failed,
                                 {joined({names(ch, {name}, ""),
                                          words(" leaks: " + full_label(key) + ' '),
                                          {{kind::figure, in_words(*growing)}},
                                          words(where.empty() ? "." : " (" + where + ").")})}});
            }
        }
    }
    return leaks;
}

}  // namespace

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

std::string plain(const sentence& s) {
    std::string text;
    for (const piece& p : s) text += p.text;
    return text;
}

sentence told(const chapter& ch, const outage& o) {
    return joined({words(capital(o.reason) + (o.where.empty() ? "" : ' ' + o.where_in_full) + ": "),
                   names(ch, o.strategies, ", "), words(".")});
}

std::string repetition(const chapter& ch) {
    return fmt::format("{} cells repeat another's strategy and parameters; tables show the first of each.",
                       ch.repeated);
}

std::string in_words(const trend& t) {
    if (t.shape == growth::flat) return fmt::format("stay at {}", count(t.low));
    if (t.shape == growth::linear) {
        return fmt::format("{} by {} per eval", t.per_eval > 0 ? "grow" : "fall", count(std::abs(t.per_eval)));
    }
    return fmt::format("{} between {} and {}", t.leak ? "grow unevenly" : "vary", count(t.low), count(t.high));
}

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
    lines.emplace_back(
        "An average over settings is the geometric mean of their ratios; settings that a strategy refused are missing "
        "from its own average.");
    lines.emplace_back(
        "Growth is judged after the first tenth of the evals: flat, linear with its slope, or other. A linear rise is "
        "a leak; so is "
        "another growth whose lows and highs rise from each third of the evals to the next.");
    return lines;
}

}  // namespace alloclab::report
