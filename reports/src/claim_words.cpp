#include "claim_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text.hpp"

namespace alloclab::report {
namespace {

using kind = piece::kind;

struct aim_words {
    const char *yes, *no;
};
aim_words words_of(aim a) noexcept {
    switch (a) {
        case aim::faster:
            return {"faster", "not faster"};
        case aim::no_slower:
            return {"no slower", "slower"};
        case aim::no_faster:
            return {"no faster", "faster"};
        case aim::no_more:
            break;
    }
    return {"no more reserved bytes", "more reserved bytes"};
}

/// Attributes in which the settings are not all alike.
std::set<std::string> varying(const settings& all) {
    std::map<std::string, std::set<std::string>> values;
    std::map<std::string, std::size_t> present;
    for (const setting* s : all) {
        for (const auto& [name, value] : s->at) values[name].insert(value), ++present[name];
    }
    std::set<std::string> names;
    for (const auto& [name, those_of] : values) {
        if (those_of.size() > 1 || present[name] < all.size()) names.insert(name);
    }
    return names;
}

void add_attribute(sentence& to, const std::string& name, const std::string& value) {
    if (name == "workload") return add(to, value);
    if (name == "against") add(to, "against ");
    if (name == "against" || name == "strategy") return add(to, name_of(value));
    add(to, name + " = " + value);
}

/// "context/slots, live = 8", "" where nothing varies.
sentence place(const setting& s, const std::set<std::string>& names) {
    sentence text;
    const auto put = [&](const std::string& name, const std::string& value) {
        if (!names.contains(name)) return;
        if (!text.empty()) add(text, ", ");
        add_attribute(text, name, value);
    };
    if (const auto on = s.at.find("workload"); on != s.at.end()) put(on->first, on->second);
    for (const auto& [name, value] : s.at) {
        if (name != "workload") put(name, value);
    }
    return text;
}

bool exactly(const setting& s) { return s.ratio.bounds && s.ratio.bounds->low == s.ratio.bounds->high; }

/// "0.43 (interval 0.41 to 0.45; live = 8)"
sentence shown(const setting& s, const std::set<std::string>& names) {
    sentence text{figure_of(figure(s.ratio.ratio.value_or(0)))};
    const auto& bounds = s.ratio.bounds;
    sentence detail;
    if (!bounds) add(detail, "no interval");
    else if (!exactly(s)) add(detail, fmt::format("interval {} to {}", figure(bounds->low), figure(bounds->high)));
    sentence where = place(s, names);
    if (detail.empty() && where.empty()) return text;
    add(text, " (");
    add(text, detail);
    if (!detail.empty() && !where.empty()) add(text, "; ");
    add(text, where);
    add(text, ")");
    return text;
}

/// What most of the open ones lack.
std::string most_common_reason(const settings& open) {
    std::map<std::string, std::size_t> reasons;
    for (const setting* s : open) ++reasons[s->ratio.reason];
    return std::max_element(reasons.begin(), reasons.end(), [](auto& a, auto& b) { return a.second < b.second; })
        ->first;
}

/// "faster in 5 of 9 settings, not faster in 3, undecided in 1 (the interval crosses the margin)"
std::string tally(const settings& counted, aim expected) {
    const aim_words w = words_of(expected);
    std::vector<std::string> parts;
    for (const auto& [v, text] :
         {std::pair{vote::yes, std::string(w.yes)}, {vote::no, w.no}, {vote::open, "undecided"}}) {
        const settings such = those(counted, v);
        if (such.empty()) continue;
        std::string part = text;
        if (counted.size() == 2 && such.size() == 2) part += " in both settings";
        else if (counted.size() > 1 && such.size() == counted.size())
            part += fmt::format(" in all {} settings", such.size());
        else if (such.size() < counted.size() && parts.empty())
            part += fmt::format(" in {} of {} settings", such.size(), counted.size());
        else if (such.size() < counted.size()) part += fmt::format(" in {}", such.size());
        const std::string why = v == vote::open ? most_common_reason(such) : "";
        if (!why.empty()) part += " (" + why + ')';
        parts.push_back(std::move(part));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// "; ratio from 0.2 (...) to 1.9 (...)"
sentence range(const settings& counted) {
    settings known;
    std::copy_if(counted.begin(), counted.end(), std::back_inserter(known),
                 [](const setting* s) { return s->ratio.ratio.has_value(); });
    if (known.empty()) return {};
    const auto names = varying(counted);
    const auto [least, most] = std::minmax_element(known.begin(), known.end(), [](const setting* a, const setting* b) {
        return *a->ratio.ratio < *b->ratio.ratio;
    });
    sentence text;
    const auto alike = [](const setting* s) { return exactly(*s) ? figure(*s->ratio.ratio) : std::string(); };
    if (const std::string same = alike(*least); !same.empty() && same == alike(*most)) {
        add(text, "; ratio ");
        add(text, figure_of(same));
        return text;
    }
    add(text, known.size() == 1 ? "; ratio " : "; ratio from ");
    add(text, shown(**least, names));
    if (known.size() > 1) {
        add(text, " to ");
        add(text, shown(**most, names));
    }
    return text;
}

template <class Of>
bool uniform(const settings& all, Of of) {
    return std::all_of(all.begin(), all.end(), [&](const setting* s) { return of(*s) == of(*all.front()); });
}
const std::string& name_of_first(const setting& s) { return s.first.text; }
const std::string& name_of_second(const setting& s) { return s.second.text; }

/// An attribute whose values tell the votes for from those against.
struct split {
    std::string attribute;
    bool numbers = false;  ///< all of its values are
    bool by_size = false;  ///< the votes change once along them
    bool yes_above = false;
    std::size_t pieces = 0;  ///< of the axis, the fewer the better
};

std::optional<split> split_by(const std::string& attribute, const settings& decided) {
    std::map<std::string, std::set<vote>> votes;
    std::vector<double> yes, no;
    for (const setting* s : decided) {
        const auto value = s->at.find(attribute);
        if (value == s->at.end()) return std::nullopt;
        votes[value->second].insert(s->cast);
        if (const auto n = number(value->second)) (s->cast == vote::yes ? yes : no).push_back(*n);
    }
    if (std::any_of(votes.begin(), votes.end(), [](const auto& v) { return v.second.size() > 1; })) return std::nullopt;
    if (yes.size() + no.size() == decided.size()) {
        const auto [low_yes, high_yes] = std::minmax_element(yes.begin(), yes.end());
        const auto [low_no, high_no] = std::minmax_element(no.begin(), no.end());
        if (*high_no < *low_yes || *high_yes < *low_no) return split{attribute, true, true, *high_no < *low_yes, 2};
    }
    return split{attribute, yes.size() + no.size() == decided.size(), false, false, votes.size()};
}

/// Over several workloads a number means something else in each, and only names are compared.
std::optional<split> best_split(const settings& decided) {
    const auto names = varying(decided);
    const bool one_workload = !names.contains("workload");
    std::vector<std::string> order{one_workload ? decided.front()->on->axis : ""};
    order.insert(order.end(), names.begin(), names.end());
    std::optional<split> best;
    for (const std::string& name : order) {
        const auto s = split_by(name, decided);
        if (s && s->numbers && !one_workload) continue;
        if (s && (!best || s->pieces < best->pieces)) best = s;
    }
    return best;
}

/// "faster from live = 16 on: ratio 0.80 (...); not faster up to live = 8: ratio 1.90 (...)"
sentence told_by_size(const split& s, const settings& counted, const aim_words& w) {
    const auto size = [&](const setting* x) { return *number(x->at.at(s.attribute)); };
    const auto less = [&](const setting* a, const setting* b) { return size(a) < size(b); };
    const settings yes = those(counted, vote::yes), no = those(counted, vote::no);
    const settings &below = s.yes_above ? no : yes, &above = s.yes_above ? yes : no;
    const setting* last = *std::max_element(below.begin(), below.end(), less);
    const setting* first = *std::min_element(above.begin(), above.end(), less);
    auto names = varying(counted);
    names.erase(s.attribute);
    sentence up_to, from;
    add(up_to,
        fmt::format("{} up to {} = {}: ratio ", s.yes_above ? w.no : w.yes, s.attribute, last->at.at(s.attribute)));
    add(up_to, shown(*last, names));
    add(from,
        fmt::format("{} from {} = {} on: ratio ", s.yes_above ? w.yes : w.no, s.attribute, first->at.at(s.attribute)));
    add(from, shown(*first, names));
    sentence text = s.yes_above ? from : up_to;
    add(text, "; ");
    add(text, s.yes_above ? up_to : from);
    std::set<double> between;
    for (const setting* x : those(counted, vote::open)) {
        const auto at = x->at.find(s.attribute);
        const auto n = at == x->at.end() ? std::nullopt : number(at->second);
        if (n && *n > size(last) && *n < size(first)) between.insert(*n);
    }
    if (!between.empty()) add(text, fmt::format("; undecided at {} = {}", s.attribute, fmt::join(between, ", ")));
    return text;
}

/// "no slower at context = reset, slower at context = fresh"
sentence told_by_value(const split& s, const settings& decided, const aim_words& w) {
    sentence text;
    for (const vote v : {vote::yes, vote::no}) {
        std::vector<std::string> values;
        for (const setting* x : those(decided, v)) {
            const std::string& value = x->at.at(s.attribute);
            if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
        }
        add(text, std::string(text.empty() ? "" : ", ") + (v == vote::yes ? w.yes : w.no));
        const bool named = s.attribute == "strategy" || s.attribute == "against";
        add(text, s.attribute == "workload"   ? " in "
                  : s.attribute == "strategy" ? " with "
                  : s.attribute == "against"  ? " against "
                                              : " at " + s.attribute + " = ");
        if (named) add_names(text, values);
        else add(text, fmt::format("{}", fmt::join(values, ", ")));
    }
    return text;
}

/// "faster in 12 settings, not faster in 2: live = 8, heap = aged; live = 16, heap = bare"
sentence told_by_places(const settings& decided, const aim_words& w) {
    constexpr std::size_t most = 4;
    const settings yes = those(decided, vote::yes), no = those(decided, vote::no);
    const bool few_no = no.size() <= yes.size();
    const settings &few = few_no ? no : yes, &many = few_no ? yes : no;
    const auto names = varying(decided);
    sentence text;
    add(text, fmt::format("{} in {} settings, {} in {}: ratio ", few_no ? w.yes : w.no, many.size(),
                          few_no ? w.no : w.yes, few.size()));
    for (std::size_t i = 0; i < few.size() && i < most; ++i) {
        if (i > 0) add(text, "; ");
        add(text, shown(*few[i], names));
    }
    if (few.size() > most) add(text, fmt::format(" and {} more", few.size() - most));
    return text;
}

/// Where the votes for end and those against begin: by one attribute if one tells them apart, else by workload, else by
/// a list of the fewer.
sentence where(const settings& counted, const aim_words& w) {
    settings decided = those(counted, vote::yes);
    const settings against = those(counted, vote::no);
    if (decided.empty() || against.empty()) {
        sentence text;
        add(text, decided.empty() && against.empty() ? "undecided" : decided.empty() ? w.no : w.yes);
        return text;
    }
    decided.insert(decided.end(), against.begin(), against.end());
    if (const auto s = best_split(decided))
        return s->by_size ? told_by_size(*s, counted, w) : told_by_value(*s, decided, w);
    if (uniform(counted, [](const setting& s) { return s.on; })) return told_by_places(decided, w);
    sentence text;
    std::vector<const workload*> seen;
    for (const setting* s : counted) {
        if (std::find(seen.begin(), seen.end(), s->on) != seen.end()) continue;
        seen.push_back(s->on);
        settings here;
        std::copy_if(counted.begin(), counted.end(), std::back_inserter(here),
                     [&](const setting* x) { return x->on == s->on; });
        add(text, (text.empty() ? "in " : "; in ") + s->on->name + ' ');
        add(text, where(here, w));
    }
    return text;
}

}  // namespace

void add(sentence& to, const sentence& more) { to.insert(to.end(), more.begin(), more.end()); }
void add(sentence& to, std::string text) {
    if (text.empty()) return;
    if (!to.empty() && to.back().as == kind::plain) to.back().text += text;
    else to.push_back({kind::plain, std::move(text)});
}

void add(sentence& to, const piece& more) { to.push_back(more); }
piece figure_of(std::string text) { return {kind::figure, std::move(text)}; }
piece name_of(const std::string& strategy) { return {kind::name, strategy}; }

void add_names(sentence& to, const std::vector<std::string>& strategies) {
    for (std::size_t i = 0; i < strategies.size(); ++i) {
        if (i > 0) add(to, ", ");
        to.push_back(name_of(strategies[i]));
    }
}

sentence would_tell(const std::vector<std::string>& workloads, const std::string& rest) {
    return {{kind::name, fmt::format("alloclab run -w {}{}", fmt::join(workloads, ","), rest)},
            {kind::plain, " would tell."}};
}

settings those(const settings& all, vote v) {
    settings some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some), [v](const setting* s) { return s->cast == v; });
    return some;
}

sentence absences(const settings& out, const char* after) {
    std::map<std::pair<std::string, std::string>, std::pair<piece, std::size_t>> by;
    for (const setting* s : out) {
        if (!s->absent) continue;
        auto& [who, n] = by[{s->absent->text, s->absence}];
        who = *s->absent;
        ++n;
    }
    sentence text;
    for (const auto& [key, entry] : by) {
        add(text, text.empty() ? "" : ", ");
        add(text, entry.first);
        add(text, fmt::format(" {} {}{}", key.second, entry.second, after));
    }
    return text;
}

sentence evidence_of(const settings& counted, const settings& out, aim expected, const std::string& apart) {
    const setting& one = *counted.front();
    sentence text;
    if (uniform(counted, name_of_first)) add(text, one.first);
    else add(text, "Other strategies");
    if (uniform(counted, name_of_second)) {
        add(text, " against ");
        add(text, one.second);
    }
    if (uniform(counted, [](const setting& s) { return s.on; })) add(text, " in " + one.on->name);
    if (apart != "workload" && apart != "against" && one.at.contains(apart)) {
        add(text, ", ");
        add_attribute(text, apart, one.at.at(apart));
    }
    add(text, ": " + tally(counted, expected));
    add(text, range(counted));
    if (const sentence who = absences(out, " more"); !who.empty()) {
        add(text, "; ");
        add(text, who);
    }
    add(text, ".");
    return text;
}

sentence flips_of(const settings& counted, aim expected) {
    sentence text;
    if (uniform(counted, name_of_first)) {
        text.push_back(counted.front()->first);
        add(text, ": ");
    }
    add(text, where(counted, words_of(expected)));
    add(text, ".");
    return text;
}

}  // namespace alloclab::report
