#include "chapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "text.hpp"

namespace alloclab::report {
namespace {

using places = std::vector<std::pair<const panel*, std::string>>;

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

steadiness steadiness_of(const cell& c, const std::string& key) {
    const auto series = c.series.find(key);
    const auto growing = series == c.series.end() ? std::nullopt : trend_of(series->second);
    return !growing                         ? steadiness::unknown
           : growing->leak                  ? steadiness::leaks
           : growing->shape == growth::flat ? steadiness::flat
                                            : steadiness::varies;
}

std::vector<standing> standings_of(const std::vector<const comparison*>& cells,
                                   const std::vector<std::string>& strategies, const std::string& series) {
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
            s.growth = std::max(s.growth, steadiness_of(*c->of, series));
        }
        if (ratios > 0) s.ratio = std::exp(logs / ratios);
        if (s.settings > 0) result.push_back(std::move(s));
    }
    return result;
}

/// Cuts a text into its whole numbers and what stands between them, which comes first.
std::vector<std::string> cut_at_numbers(const std::string& text) {
    std::vector<std::string> pieces{""};
    for (const char c : text) {
        const bool digit = c >= '0' && c <= '9';
        if (digit != (pieces.size() % 2 == 0)) pieces.emplace_back();
        pieces.back() += c;
    }
    return pieces;
}

/// The text with its numbers taken out, by which reasons are recognised as the same.
std::string pattern_of(const std::string& text) {
    const auto pieces = cut_at_numbers(text);
    std::string pattern;
    for (std::size_t i = 0; i < pieces.size(); i += 2) pattern += pieces[i] + '\0';
    return pattern;
}

/// Texts of one pattern as one: "65 of 65, 71 or 113".
std::string merged(const std::vector<std::string>& texts) {
    std::string out;
    const auto first = cut_at_numbers(texts.front());
    for (std::size_t i = 0; i < first.size(); ++i) {
        std::vector<std::string> values;
        for (const std::string& text : texts) {
            std::string value = cut_at_numbers(text)[i];
            if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
        }
        std::sort(values.begin(), values.end(), before_on_axis);
        out += values.size() > 4 ? values.front() + " to " + values.back() : listed(values, "or");
    }
    return out;
}

/// The values on the axis that one panel holds out of those where the strategy has a cell.
struct stretch {
    std::string lead;                  ///< "at" or "from"
    std::string values;                ///< "10, 16" or "64"
    std::string all;                   ///< every value, where `values` says but the first
    std::vector<const panel*> panels;  ///< that agree in it
};

stretch stretch_of(const panel& p, const std::vector<std::string>& at, const std::string& strategy) {
    std::vector<std::string> present;
    std::copy_if(p.at.begin(), p.at.end(), std::back_inserter(present),
                 [&](const std::string& a) { return p.find(strategy, a) != nullptr; });
    const std::string all = fmt::format("{}", fmt::join(at, ", "));
    const bool to_the_end = at.size() > 2 && number(at.front()) && std::equal(at.rbegin(), at.rend(), present.rbegin());
    return to_the_end ? stretch{"from", at.front(), all, {&p}} : stretch{"at", all, "", {&p}};
}

/// Says where an outage is, for one strategy out of those that share it.
void locate(outage& o, const std::vector<panel>& panels, const places& at, const std::string& axis) {
    const std::string& strategy = o.strategies.front();
    std::vector<stretch> stretches;
    std::size_t own_settings = 0, own_panels = 0;
    for (const panel& p : panels) {
        std::vector<std::string> here;
        std::size_t own = 0;
        for (const std::string& place : p.at) {
            own += p.find(strategy, place) != nullptr;
            if (std::find(at.begin(), at.end(), std::pair{&p, place}) != at.end()) here.push_back(place);
        }
        own_settings += own;
        own_panels += own > 0;
        if (here.empty()) continue;
        stretch found = stretch_of(p, here, strategy);
        const auto same = std::find_if(stretches.begin(), stretches.end(), [&](const stretch& s) {
            return std::tie(s.lead, s.values, s.all) == std::tie(found.lead, found.values, found.all);
        });
        if (same == stretches.end()) stretches.push_back(std::move(found));
        else same->panels.push_back(&p);
    }
    o.everywhere = at.size() == own_settings;
    if (o.everywhere) {
        o.where = o.where_in_full = own_settings > 1 ? "in every setting" : "";
        return;
    }
    const auto told = [&](bool in_full) {
        std::vector<std::string> texts;
        std::string lead;
        for (const stretch& s : stretches) {
            std::vector<std::string> others;
            if (s.panels.size() < own_panels) {
                for (const panel* p : s.panels) others.push_back(describe(p->parameters));
            }
            if (in_full && !s.all.empty()) others.push_back("measured: " + s.all);
            const std::string qualifier = fmt::format("{}", fmt::join(others, "; "));
            std::string text = s.lead == lead ? "" : s.lead + ' ';
            if (s.values.empty()) {
                text += qualifier;
            } else {
                if (lead.empty()) text += axis + " = ";
                text += s.values + (s.lead == "from" ? " on" : "");
                if (!qualifier.empty()) text += fmt::format(" ({})", qualifier);
            }
            lead = s.lead;
            texts.push_back(std::move(text));
        }
        return listed(texts);
    };
    o.where = told(false);
    o.where_in_full = told(true);
}

/// One outage for all strategies that were not measured in the same settings for the same reasons.
template <class Reason>
std::vector<outage> outages_of(const chapter& ch, const std::vector<std::string>& strategies, Reason reason) {
    struct group {
        verdict as;
        std::string pattern;
        places at;
        std::vector<std::string> reasons, strategies;
    };
    std::vector<group> groups;
    for (const std::string& name : strategies) {
        std::vector<group> own;  // by pattern
        for (const panel& p : ch.panels) {
            for (const std::string& at : p.at) {
                const comparison* c = p.find(name, at);
                const std::string why = c == nullptr ? "" : reason(*c);
                if (why.empty()) continue;
                auto g = std::find_if(own.begin(), own.end(), [&](auto& x) { return x.pattern == pattern_of(why); });
                if (g == own.end()) g = own.insert(g, group{c->decided, pattern_of(why), {}, {}, {name}});
                g->at.emplace_back(&p, at);
                g->reasons.push_back(why);
            }
        }
        for (group& g : own) {
            const auto same = std::find_if(groups.begin(), groups.end(), [&](const group& x) {
                return std::tie(x.as, x.at, x.reasons) == std::tie(g.as, g.at, g.reasons);
            });
            if (same == groups.end()) groups.push_back(std::move(g));
            else same->strategies.push_back(name);
        }
    }
    std::vector<outage> result;
    for (group& g : groups) {
        outage& o = result.emplace_back();
        o.as = g.as;
        o.reason = merged(g.reasons);
        o.strategies = std::move(g.strategies);
        locate(o, ch.panels, g.at, ch.on->axis);
    }
    return result;
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

std::size_t standing::timed() const {
    std::size_t without = 0;
    for (const verdict v : {verdict::full, verdict::refused, verdict::untimed, verdict::failed}) without += count(v);
    return settings - without;
}

verdict standing::overall() const {
    if (timed() == 0) {
        return std::max_element(verdicts.begin(), verdicts.end(), [](auto& a, auto& b) { return a.second < b.second; })
            ->first;
    }
    for (const auto& [v, n] : verdicts) {
        if (v >= verdict::full) break;
        const bool contradicted = (v == verdict::faster && count(verdict::slower) > 0) ||
                                  (v == verdict::slower && count(verdict::faster) > 0);
        if (2 * n > timed() && !contradicted) return v;
    }
    return verdict::inconclusive;
}

std::string standing::tally() const {
    if (verdicts.size() == 1) {
        const bool bare = settings == 1 || count(verdict::baseline) > 0;
        return fmt::format("{}{}", bare ? "" : settings == 2 ? "both " : "all ", to_string(verdicts.begin()->first));
    }
    std::vector<std::string> parts;
    for (const auto& [v, n] : verdicts) parts.push_back(fmt::format("{} {}", n, to_string(v)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

const standing& chapter::of(const std::string& strategy) const {
    return *std::find_if(standings.begin(), standings.end(), [&](const standing& s) { return s.strategy == strategy; });
}

std::size_t chapter::settings() const {
    std::size_t most = 0;
    for (const standing& s : standings) most = std::max(most, s.settings);
    return most;
}

bool chapter::only_series() const {
    return !series.empty() &&
           std::all_of(standings.begin(), standings.end(), [](const standing& s) { return s.timed() == 0; });
}

chapter chapter_of(const workload& on, const std::vector<const comparison*>& cells,
                   const std::vector<std::string>& strategies) {
    chapter ch;
    ch.on = &on;
    ch.panels = panels_of(on, cells, strategies);
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
    ch.standings = standings_of(cells, strategies, ch.series.empty() ? "" : ch.series.front());
    ch.refusals = outages_of(ch, strategies, [](const comparison& c) { return c.of->refusal; });
    ch.failures = outages_of(ch, strategies, [](const comparison& c) {
        return !c.of->error.empty() || c.decided != verdict::failed ? c.of->error : c.reason;
    });
    std::size_t shown = 0;
    for (const panel& p : ch.panels) shown += p.cells.size();
    ch.repeated = cells.size() - shown;
    return ch;
}

std::string compared_part(const workload& w) {
    return w.kind == "context" ? w.kind : w.kind == "extra" ? "extras" : "";
}

std::optional<share> share_of(const chapter& ch, const panel& p) {
    share s;
    for (const auto& [key, c] : p.cells) {
        const auto& parts = c->of->parts;
        const auto compared = parts.find(compared_part(*ch.on));
        double sum = 0;
        for (const auto& [name, value] : parts) sum += value;
        if (compared == parts.end() || !(sum > 0)) continue;
        s.least = std::min(s.least, compared->second / sum);
        s.most = std::max(s.most, compared->second / sum);
    }
    return s.most > 0 ? std::optional{s} : std::nullopt;
}

std::vector<std::string> left_out(const chapter& ch, const panel& p) {
    std::vector<std::string> names;
    std::copy_if(ch.parts.begin(), ch.parts.end(), std::back_inserter(names), [&](const std::string& part) {
        return std::none_of(p.cells.begin(), p.cells.end(),
                            [&](const auto& c) { return c.second->of->parts.count(part) != 0; });
    });
    return names;
}

std::string in_words(const share& s) {
    const std::string least = percent(s.least), most = percent(s.most);
    return least == most ? least : least + " to " + most;
}

std::string describe(const std::map<std::string, std::string>& parameters) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : parameters) parts.push_back(name + " = " + value);
    return fmt::format("{}", fmt::join(parts, ", "));
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

std::string full_label(std::string_view key) {
    return label(key) + (counts_bytes(key) && key != "bytes" ? " bytes" : "");
}

const std::string& title_of(const workload& w) { return w.title.empty() ? w.name : w.title; }

std::string short_name(const workload& w) {
    const std::string lead = w.kind + '/';
    return w.name.size() > lead.size() && w.name.compare(0, lead.size(), lead) == 0 ? w.name.substr(lead.size())
                                                                                    : w.name;
}

}  // namespace alloclab::report
