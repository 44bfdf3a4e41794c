#include "chapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "text.hpp"

namespace alloclab::report {
namespace {

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
                                   const std::vector<std::string>& strategies, const std::set<std::string>& twins,
                                   const std::string& series) {
    std::vector<standing> result;
    for (const std::string& name : strategies) {
        standing s;
        s.strategy = name;
        s.twin = twins.contains(name);
        for (const comparison* c : cells) {
            if (c->of->strategy != name) continue;
            s.control = c->control && !s.twin;
            s.add(c->decided, c->ratio);
            s.growth = std::max(s.growth, steadiness_of(*c->of, series));
        }
        if (s.settings > 0) result.push_back(std::move(s));
    }
    return result;
}

}  // namespace

bool before_on_axis(const std::string& a, const std::string& b) {
    const auto x = number(a), y = number(b);
    return x && y ? std::tie(*x, a) < std::tie(*y, b) : x || y ? x.has_value() : a < b;
}

const comparison* panel::find(const std::string& strategy, const std::string& place) const {
    const auto cell = cells.find({strategy, place});
    return cell == cells.end() ? nullptr : cell->second;
}

void standing::add(verdict v, std::optional<double> ratio_there) {
    ++settings;
    ++verdicts[v];
    if (!ratio_there) return;
    least = ratios_ == 0 ? *ratio_there : std::min(least, *ratio_there);
    most = ratios_ == 0 ? *ratio_there : std::max(most, *ratio_there);
    logs_ += std::log(*ratio_there), ++ratios_;
    ratio = std::exp(logs_ / static_cast<double>(ratios_));
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
        if (2 * n > timed() && !(mixed() && (v == verdict::faster || v == verdict::slower))) return v;
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
                   const std::vector<std::string>& strategies, const std::set<std::string>& twins) {
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
    ch.parts = ordered(std::move(parts), {"context", "build", "plan", "extras", "submit", "compute"});
    ch.series = ordered(std::move(series), {"live_extras"});
    ch.standings = standings_of(cells, strategies, twins, ch.series.empty() ? "" : ch.series.front());
    ch.refusals = outages_of(ch, strategies, [](const comparison& c) { return c.of->refusal; });
    ch.failures = outages_of(ch, strategies, [](const comparison& c) {
        return !c.of->error.empty() || c.decided != verdict::failed ? c.of->error : c.reason;
    });
    std::size_t shown = 0;
    for (const panel& p : ch.panels) shown += p.cells.size();
    ch.repeated = cells.size() - shown;
    return ch;
}

standing against(const chapter& ch, const std::string& strategy, const std::string& rival) {
    standing s;
    s.strategy = strategy;
    s.control = ch.of(strategy).control;
    for (const panel& p : ch.panels) {
        for (const std::string& at : p.at) {
            const comparison *c = p.find(strategy, at), *other = p.find(rival, at);
            if (c == nullptr || other == nullptr || !c->median || !other->median) continue;
            const pairing pair = pair_up(*c->of, *other->of);
            s.add(pair.decided, pair.ratio);
        }
    }
    return s;
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
    for (const std::string& lead : {w.kind + '/', w.kind + "s/"}) {
        if (w.name.size() > lead.size() && w.name.starts_with(lead)) return w.name.substr(lead.size());
    }
    return w.name;
}

}  // namespace alloclab::report
