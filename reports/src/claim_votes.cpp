#include "claim_votes.hpp"

#include <algorithm>

#include "claim_words.hpp"

namespace alloclab::report {

vote vote_of(const pairing& p, aim expected) noexcept {
    if (!p.bounds) return vote::open;
    const auto wholly = [](bool below, bool not_below) {
        return below ? vote::yes : not_below ? vote::no : vote::open;
    };
    const auto [low, high, coverage] = *p.bounds;
    switch (expected) {
        case aim::faster:
            return wholly(high < 1 - margin, low >= 1 - margin);
        case aim::no_faster:
            return wholly(low >= 1 - margin, high < 1 - margin);
        case aim::no_slower:
        case aim::no_more:
            break;
    }
    return wholly(high <= 1 + margin, low > 1 + margin);
}

ruling ruled_by(std::size_t yes, std::size_t no, std::size_t open) noexcept {
    const std::size_t counted = yes + no + open;
    return counted == 0        ? ruling::unmeasured
           : yes > 0 && no > 0 ? ruling::depends
           : 2 * yes > counted ? ruling::holds
           : 2 * no > counted  ? ruling::fails
                               : ruling::undecided;
}

answer judged(const std::vector<setting>& all, aim expected, const std::string& apart, const sentence& hint) {
    answer a;
    settings counted, out;
    for (const setting& s : all) (s.cast == vote::out ? out : counted).push_back(&s);
    a.ruled =
        ruled_by(those(counted, vote::yes).size(), those(counted, vote::no).size(), those(counted, vote::open).size());
    if (!all.empty()) a.on = counted.empty() ? out.front()->on : counted.front()->on;
    if (counted.empty()) {
        if (sentence who = absences(out, out.size() == 1 ? " setting." : " settings."); !who.empty())
            a.evidence.push_back(std::move(who));
        a.evidence.push_back(hint);
        return a;
    }
    const auto group_of = [&](const setting* s) {
        const auto value = s->at.find(apart);
        return value == s->at.end() ? std::string() : value->second;
    };
    std::vector<std::string> groups;
    for (const setting* s : counted) {
        if (std::find(groups.begin(), groups.end(), group_of(s)) == groups.end()) groups.push_back(group_of(s));
    }
    for (const std::string& group : groups) {
        const auto in_group = [&](const settings& from) {
            settings some;
            std::copy_if(from.begin(), from.end(), std::back_inserter(some),
                         [&](const setting* s) { return group_of(s) == group; });
            return some;
        };
        a.evidence.push_back(evidence_of(in_group(counted), in_group(out), expected, apart));
    }
    if (a.ruled == ruling::depends) a.flips = flips_of(counted, expected);
    return a;
}

}  // namespace alloclab::report
