// Where in a chapter something holds, in words; and who was not measured where for which reason.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "chapters.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

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

}  // namespace

whereabouts locate(const chapter& ch, const setting_list& at, const std::string& strategy) {
    whereabouts found_at;
    std::vector<stretch> stretches;
    std::size_t own_settings = 0, own_panels = 0;
    for (const panel& p : ch.panels) {
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
    found_at.everywhere = at.size() == own_settings;
    if (found_at.everywhere) {
        found_at.text = found_at.in_full = own_settings > 1 ? "in every setting" : "";
        return found_at;
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
                if (lead.empty()) text += ch.on->axis + " = ";
                text += s.values + (s.lead == "from" ? " on" : "");
                if (!qualifier.empty()) text += fmt::format(" ({})", qualifier);
            }
            lead = s.lead;
            texts.push_back(std::move(text));
        }
        return listed(texts);
    };
    found_at.text = told(false);
    found_at.in_full = told(true);
    return found_at;
}

// One outage for all strategies that were not measured in the same settings for the same reasons.
std::vector<outage> outages_of(const chapter& ch, const std::vector<std::string>& strategies,
                               const std::function<std::string(const comparison&)>& reason) {
    struct group {
        verdict as;
        std::string pattern;
        setting_list at;
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
        whereabouts where = locate(ch, g.at, o.strategies.front());
        o.where = std::move(where.text);
        o.where_in_full = std::move(where.in_full);
        o.everywhere = where.everywhere;
    }
    return result;
}

}  // namespace alloclab::report
