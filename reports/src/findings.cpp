#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "text.hpp"

namespace alloclab::report {
namespace {

using kind = piece::kind;

/// Registered strategies of the workload's kind, each with its A/A twin right behind, then whatever else has cells.
std::vector<std::string> names_in_order(const run& r, const std::string& of,
                                        const std::vector<const comparison*>& cells) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const strategy& s : r.strategies) {
        if (s.kind != of || !s.twin_of.empty()) continue;
        add(s.name);
        for (const strategy& twin : r.strategies)
            if (twin.twin_of == s.name) add(twin.name);
    }
    for (const comparison* c : cells) add(c->of->strategy);
    return names;
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

/// "`a` takes 57 % less time than `heap`"
sentence takes(const standing& s, const std::string& rival) {
    return {{kind::name, s.strategy},
            {kind::plain, " takes "},
            {kind::figure, in_words(*s.ratio)},
            {kind::plain, " "},
            {kind::name, rival}};
}

/// The settings in which a strategy has the verdict; a long list as its number.
std::string settings_of(const chapter& ch, const standing& s, verdict v) {
    constexpr std::size_t longest = 120;
    setting_list at;
    for (const panel& p : ch.panels) {
        for (const std::string& place : p.at) {
            const comparison* c = p.find(s.strategy, place);
            if (c != nullptr && c->decided == v) at.emplace_back(&p, place);
        }
    }
    const std::string where = locate(ch, at, s.strategy).text;
    return where.size() <= longest ? where : fmt::format("in {} of {} settings", at.size(), s.settings);
}

/// What a strategy's time is against the baseline's, by a mean only where the settings do not contradict each other.
sentence judged(const chapter& ch, const standing& s) {
    const std::string& baseline = ch.on->baseline;
    if (s.mixed()) {
        return {{kind::name, s.strategy},
                {kind::plain, " is "},
                {kind::figure, "faster"},
                {kind::plain, " than "},
                {kind::name, baseline},
                {kind::plain, ' ' + settings_of(ch, s, verdict::faster) + " and "},
                {kind::figure, "slower"},
                {kind::plain, fmt::format(" {} (ratios {} to {}).", settings_of(ch, s, verdict::slower),
                                          figure(s.least), figure(s.most))}};
    }
    if (s.settings > 1)
        return joined({takes(s, baseline), words(fmt::format(" over {} settings ({}).", s.settings, s.tally()))});
    const panel& p = ch.panels.front();
    const comparison* c = p.find(s.strategy, p.at.front());
    if (c == nullptr || !c->bounds) return joined({takes(s, baseline), words(".")});
    return joined({takes(s, baseline), words(fmt::format(" (ratio {}, interval {} to {}).", figure(*c->ratio),
                                                         figure(c->bounds->low), figure(c->bounds->high)))});
}

/// Strategies that may be chosen and have a ratio in every setting, the fastest first.
std::vector<const standing*> able(const chapter& ch) {
    std::vector<const standing*> all;
    for (const standing& s : ch.standings) {
        if (s.candidate() && !s.leaks() && s.ratio && s.timed() == ch.settings()) all.push_back(&s);
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

/// Why a chapter with ratios has no interval; "" where it has one.
std::string no_verdict(const chapter& ch) {
    const comparison* most = nullptr;
    for (const panel& p : ch.panels) {
        for (const auto& [key, c] : p.cells) {
            if (c->bounds) return "";
            if (c->decided == verdict::inconclusive && (most == nullptr || c->pairs > most->pairs)) most = c;
        }
    }
    return most == nullptr ? "" : most->reason;
}

/// The others that were able everywhere, against the fastest: the next that is told apart from it, and those that are
/// not.
void judge_followers(finding& f, const chapter& ch, const std::string& first,
                     const std::vector<const standing*>& everywhere) {
    std::vector<std::string> level, either, behind, ahead;
    std::optional<standing> next;
    for (const standing* s : everywhere) {
        if (s->strategy == first || s->strategy == ch.on->baseline) continue;
        standing duel = against(ch, s->strategy, first);
        if (duel.settings == 0) continue;
        if (!duel.mixed() && duel.overall() == verdict::slower) {
            if (!next && duel.ratio) next = std::move(duel);
            continue;
        }
        (duel.mixed()                      ? either
         : duel.count(verdict::slower) > 0 ? behind
         : duel.count(verdict::faster) > 0 ? ahead
                                           : level)
            .push_back(s->strategy);
    }
    const auto told = [&](const char* lead, const std::vector<std::string>& who) {
        if (who.size() > 4) f.sentences.push_back(words(fmt::format("{}{} others.", lead, who.size())));
        else if (!who.empty()) f.sentences.push_back(joined({words(lead), names(ch, who, " and "), words(".")}));
    };
    const std::size_t before = f.sentences.size();
    told("Not told apart from it: ", level);
    told("Slower than it in few settings, level in the others: ", behind);
    told("Faster than it in few settings, level in the others: ", ahead);
    told("Faster than it in some settings, slower in others: ", either);
    if (next) {
        f.sentences.push_back(joined({words(f.sentences.size() == before ? "Runner-up: " : "Then: "),
                                      takes(*next, first), words(fmt::format(" ({}).", next->tally()))}));
    }
}

/// Who would be the fastest if it had room everywhere.
void judge_bounded(finding& f, const chapter& ch, const std::string& first) {
    for (const standing& s : ch.standings) {
        if (!s.candidate() || s.leaks() || !s.ratio || s.timed() == s.settings) continue;
        if (against(ch, s.strategy, first).overall() != verdict::faster) continue;
        f.sentences.push_back(
            joined({words(fmt::format("Where it has room ({} of {} settings), ", s.timed(), s.settings)),
                    takes(s, ch.on->baseline), words(".")}));
    }
}

/// Those that are kept to show a fault, in one sentence and never among those to choose from.
void judge_controls(finding& f, const chapter& ch) {
    sentence all;
    for (const standing& s : ch.standings) {
        if (!s.control || !s.ratio) continue;
        const std::string how = s.mixed()
                                    ? fmt::format(" is faster {} and slower {}", settings_of(ch, s, verdict::faster),
                                                  settings_of(ch, s, verdict::slower))
                                    : fmt::format(" takes {} times as long ({})", figure(*s.ratio), s.tally());
        all = joined({all,
                      words(all.empty() ? "Controls, against the baseline: " : "; "),
                      {{kind::name, s.strategy}},
                      words(how)});
    }
    if (!all.empty()) f.sentences.push_back(joined({all, words(".")}));
}

/// Who is fastest, who is level with it, who would be if it had room, who is slowest; controls by themselves.
void judge_times(finding& f, const chapter& ch) {
    const std::string& baseline = ch.on->baseline;
    const bool compared = std::any_of(ch.standings.begin(), ch.standings.end(),
                                      [&](const standing& s) { return s.ratio && s.strategy != baseline && !s.twin; });
    const auto everywhere = able(ch);
    f.tone = verdict::inconclusive;
    if (!compared) return f.sentences.push_back(nothing_compared(ch));
    if (const std::string why = no_verdict(ch); !why.empty())
        return f.sentences.push_back({{kind::plain, "No verdict: "}, {kind::figure, why}, {kind::plain, "."}});
    if (everywhere.empty()) {
        f.sentences.push_back(words("No strategy that may be chosen ran in every setting."));
    } else {
        const standing& best = *everywhere.front();
        const bool beaten = best.strategy != baseline && best.count(verdict::faster) > 0;
        f.tone = beaten ? verdict::faster : verdict::same;
        const auto next =
            std::find_if(everywhere.begin(), everywhere.end(), [&](auto* a) { return a->strategy != baseline; });
        if (beaten) {
            const char* lead = best.mixed()                        ? "Fastest by the mean, not everywhere: "
                               : best.overall() != verdict::faster ? "Fastest by the mean: "
                                                                   : "Fastest: ";
            f.sentences.push_back(joined({words(lead), judged(ch, best)}));
            judge_followers(f, ch, best.strategy, everywhere);
        } else {
            const sentence lead{{kind::plain, "Nothing beats the baseline "}, {kind::name, baseline}};
            f.sentences.push_back(next == everywhere.end()
                                      ? joined({lead, words(", the only one that ran in every setting.")})
                                      : joined({lead, words("; nearest: "), judged(ch, **next)}));
        }
        judge_bounded(f, ch, best.strategy);
    }

    const standing* slowest = nullptr;
    for (const standing& s : ch.standings) {
        if (s.candidate() && s.ratio && (slowest == nullptr || *s.ratio > *slowest->ratio)) slowest = &s;
    }
    if (slowest != nullptr && slowest->count(verdict::slower) > 0)
        f.sentences.push_back(joined({words("Slowest: "), judged(ch, *slowest)}));
    judge_controls(f, ch);
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
        return !s.twin && s.count(verdict::full) + s.count(verdict::refused) == 0;
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
            if (s.growth == growth && !s.twin) such.push_back(s.strategy);
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
                if (c == nullptr || ch.of(name).twin || !c->of->series.contains(key)) continue;
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
        std::set<std::string> twins;
        for (const strategy& s : r.strategies) {
            if (s.kind == w.kind && !s.twin_of.empty()) twins.insert(s.name);
        }
        chapters.push_back(chapter_of(w, cells, names_in_order(r, w.kind, cells), twins));
        findings.push_back(finding_of(chapters.back()));
        for (finding& leak : leaks_of(chapters.back())) leaks.push_back(std::move(leak));
        for (const comparison* c : cells) tally(*c, twins.contains(c->of->strategy));
    }
}

void book::tally(const comparison& c, bool twin) {
    if (twin) {
        null.rows += c.bounds.has_value();
        null.same += c.bounds && c.decided == verdict::same;
        null.different += c.decided == verdict::faster || c.decided == verdict::slower;
        return;
    }
    uneven += c.uneven;
    if (c.pairs == 0) return;
    fewest_pairs = ratios == 0 ? c.pairs : std::min(fewest_pairs, c.pairs);
    most_pairs = std::max(most_pairs, c.pairs);
    ++ratios;
    if (c.bounds) coverage = std::min(coverage.value_or(1), c.bounds->coverage);
}

std::string plain(const sentence& s) {
    std::string text;
    for (const piece& p : s) text += p.text;
    return text;
}

sentence joined(std::initializer_list<sentence> parts) {
    sentence all;
    for (const sentence& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

sentence words(std::string text) { return {{kind::plain, std::move(text)}}; }

sentence told(const chapter& ch, const outage& o) {
    return joined({words(capital(o.reason) + (o.where.empty() ? "" : ' ' + o.where_in_full) + ": "),
                   names(ch, o.strategies, ", "), words(".")});
}

std::string repetition(const chapter& ch) {
    return fmt::format("{} cells repeat another's strategy and parameters; tables show the first of each.",
                       ch.repeated);
}

}  // namespace alloclab::report
