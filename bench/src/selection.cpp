#include "selection.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

#include "alloclab/tensor/models/registry.hpp"
#include "order.hpp"

namespace alloclab::bench {
namespace {

const std::vector<preset> presets{
    {.name = "peers",
     .parts = {{.workload = "peers/*"},
               // How much of an eval that computes the figures of the others are.
               {.workload = "eval/extras", .strategies = {"bump_arena"}, .values = {{"model", {"llama-2-7b-small"}}}}},
     .counted = {.workload = "peers/slots", .values = {{"live", {"0"}}}}},
};

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

bool chosen(const std::vector<std::string>& wanted, const std::string& name) {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& pattern) {
               return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
           });
}

const preset::part* part_of(const plan& p, const std::string& workload) {
    if (p.of == nullptr) return nullptr;
    for (const preset::part& part : p.of->parts)
        if (chosen({part.workload}, workload)) return &part;
    return nullptr;
}

bool takes_part(const plan& p, const family& f) {
    if (!chosen(p.workloads, f.about.name)) return false;
    return p.of != nullptr ? part_of(p, f.about.name) != nullptr : !p.workloads.empty() || !f.only_when_asked();
}

bool takes_part(const plan& p, const family& f, const std::string& strategy) {
    const preset::part* part = part_of(p, f.about.name);
    return chosen(p.strategies, strategy) && (part == nullptr || chosen(part->strategies, strategy));
}

template <class Names>
std::string listed(const Names& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

void must_exist(const char* what, const std::vector<std::string>& wanted, const std::set<std::string>& known) {
    for (const std::string& name : wanted) {
        const auto matches = [&](const std::string& each) { return ::fnmatch(name.c_str(), each.c_str(), 0) == 0; };
        if (std::any_of(known.begin(), known.end(), matches)) continue;
        if (!is_pattern(name))
            throw unknown_name(std::string("no ") + what + " \"" + name + "\"; there are " + listed(known));
        std::fprintf(stderr, "warning: no %s matches \"%s\"\n", what, name.c_str());
    }
}

void check_value(const axis& a, const std::string& value) {
    const auto wrong = [&](const std::string& expected) {
        return unknown_name(a.name + " \"" + value + "\": expected " + expected);
    };
    if (a.name == "model") {
        std::vector<std::string_view> names;
        for (const auto& model : tensor::models()) names.push_back(model.name);
        if (tensor::find_model(value) == nullptr) throw wrong("one of " + listed(names));
        return;
    }
    if (a.highest == 0) {
        if (std::find(a.all().begin(), a.all().end(), value) == a.all().end()) throw wrong("one of " + listed(a.all()));
        return;
    }
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc{} || end != value.data() + value.size() || n < a.lowest || n > a.highest)
        throw wrong("a whole number from " + std::to_string(a.lowest) + " to " + std::to_string(a.highest));
}

bool is_counted(const plan& p, const job& j) {
    if (p.of == nullptr || p.without_counted) return false;
    const auto& [workload, strategies, values] = p.of->counted;
    return chosen({workload}, j.workload) && chosen(strategies, j.strategy) &&
           std::all_of(values.begin(), values.end(),
                       [&](const auto& axis) { return chosen(axis.second, j.where.at(axis.first)); });
}

std::vector<parameters> combinations(const family& f, const plan& p) {
    std::vector<parameters> all{{}};
    const preset::part* part = part_of(p, f.about.name);
    for (const axis& a : f.axes) {
        const std::vector<std::string>* values = &(p.quick ? a.quick : p.full ? a.all() : a.values);
        if (part != nullptr && part->values.contains(a.name)) values = &part->values.at(a.name);
        if (const auto asked = p.values.find(a.name); asked != p.values.end()) values = &asked->second;
        std::vector<parameters> longer;
        for (const parameters& shorter : all)
            for (const std::string& value : *values) {
                longer.push_back(shorter);
                longer.back()[a.name] = value;
            }
        all = std::move(longer);
    }
    return all;
}

void check_names(const plan& p) {
    std::set<std::string> workloads, strategies, axes;
    for (const family& f : everything().families()) {
        workloads.insert(f.about.name);
        for (const auto& e : f.entries) strategies.insert(e.strategy);
        for (const axis& a : f.axes) axes.insert(a.name);
    }
    for (const report::strategy& s : registered_strategies()) strategies.insert(s.name);  // some are in no workload
    must_exist("workload", p.workloads, workloads);
    must_exist("strategy", p.strategies, strategies);
    for (const auto& [name, values] : p.values) {
        if (!axes.contains(name)) throw unknown_name("no parameter \"" + name + "\"; there are " + listed(axes));
        if (values.empty()) throw unknown_name("no value for " + name);
        if (std::set(values.begin(), values.end()).size() != values.size())
            throw unknown_name("a value of " + name + " stands twice in " + listed(values));
    }
    std::set<std::string> used, of_chosen;
    bool any = false;
    for (const family& f : everything().families()) {
        if (!takes_part(p, f)) continue;
        any = true;
        for (const auto& e : f.entries) of_chosen.insert(e.strategy);
        for (const axis& a : f.axes)
            if (const auto asked = p.values.find(a.name); asked != p.values.end()) {
                used.insert(a.name);
                for (const std::string& value : asked->second) check_value(a, value);
            }
    }
    for (const auto& [name, values] : p.values)
        if (any && !used.contains(name)) throw unknown_name("no chosen workload has the parameter " + name);
    for (const std::string& name : p.baselines)
        if (any && !of_chosen.contains(name))
            throw unknown_name("no chosen workload has the strategy \"" + name + "\" for a baseline; there are " +
                               listed(of_chosen));
}

/// Groups along one axis stay together, since how a cost grows is read from the blocks of one machine. The longest such
/// rows are dealt out first, each to the shard with the fewest cells.
std::vector<group> share_of(const plan& p, const std::vector<group>& all) {
    std::map<std::pair<std::string, parameters>, std::vector<std::size_t>> rows;
    for (const std::size_t g : shuffled(all.size(), p.seed, 0)) {
        const job& one = all[g].front();
        parameters others = one.where;
        others.erase(everything().find(one.workload)->about.axis);
        rows[{one.workload, others}].push_back(g);
    }
    if (p.shards > rows.size())
        throw unknown_name("--shard " + p.design.shard + ": this selection splits into at most " +
                           std::to_string(rows.size()) + ", as the cells along an axis stay together");
    std::vector<std::vector<std::size_t>> longest_first;
    for (auto& [where, groups] : rows) longest_first.push_back(std::move(groups));
    const auto cells = [&all](const std::vector<std::size_t>& row) {
        std::size_t n = 0;
        for (const std::size_t g : row) n += all[g].size();
        return n;
    };
    std::stable_sort(longest_first.begin(), longest_first.end(),
                     [&](const auto& a, const auto& b) { return cells(a) > cells(b); });
    std::vector<std::size_t> dealt(p.shards, 0), mine;
    for (const auto& row : longest_first) {
        const auto to = std::min_element(dealt.begin(), dealt.end()) - dealt.begin();
        dealt[static_cast<std::size_t>(to)] += cells(row);
        if (static_cast<std::size_t>(to) + 1 == p.shard) mine.insert(mine.end(), row.begin(), row.end());
    }
    std::sort(mine.begin(), mine.end());
    std::vector<group> share;
    for (const std::size_t g : mine) share.push_back(all[g]);
    return share;
}

}  // namespace

const preset& find_preset(const std::string& name) {
    std::vector<std::string> names;
    for (const preset& each : presets) {
        if (each.name == name) return each;
        names.push_back(each.name);
    }
    throw unknown_name("no preset \"" + name + "\"; there " + (names.size() == 1 ? "is " : "are ") + listed(names));
}

std::string baseline_of(const plan& p, const family& f) {
    const std::string* found = nullptr;
    for (const std::string& name : p.baselines) {
        if (std::none_of(f.entries.begin(), f.entries.end(), [&](const auto& e) { return e.strategy == name; }))
            continue;
        if (found != nullptr && *found != name)
            throw unknown_name("--baseline: " + f.about.name + " has both " + *found + " and " + name +
                               "; expected one of them");
        found = &name;
    }
    return found != nullptr ? *found : f.about.baseline;
}

std::vector<group> select(const plan& p) {
    check_names(p);
    std::vector<group> groups;
    for (const family& f : everything().families()) {
        if (!takes_part(p, f)) continue;
        if (std::none_of(f.entries.begin(), f.entries.end(),
                         [&](const auto& e) { return takes_part(p, f, e.strategy); }))
            continue;
        const std::string base = baseline_of(p, f);
        for (const parameters& where : combinations(f, p)) {
            job one{.workload = f.about.name,
                    .strategy = base,
                    .where = where,
                    .min_seconds = p.design.min_seconds,
                    .device = p.device};
            // Ratios need the baseline beside whatever was picked.
            group side_by_side{one};
            one.twin = true;
            if (p.twin) side_by_side.push_back(one);
            one.twin = false;
            for (const auto& e : f.entries)
                if (e.strategy != base && takes_part(p, f, e.strategy)) {
                    one.strategy = e.strategy;
                    side_by_side.push_back(one);
                }
            for (job& each : side_by_side) each.counted = is_counted(p, each);
            groups.push_back(std::move(side_by_side));
        }
    }
    return p.shards == 1 || groups.empty() ? groups : share_of(p, groups);
}

report::run prepared(const plan& p, const std::vector<group>& groups) {
    report::run r;
    r.seed = p.seed;
    r.plan = p.design;
    r.strategies = registered_strategies();
    std::set<std::string> used;
    for (const group& g : groups)
        for (const job& j : g) {
            used.insert(j.workload);
            report::cell& cell = r.cells.emplace_back();
            cell.workload = j.workload;
            cell.strategy = j.twin ? twin_name(j.strategy) : j.strategy;
            cell.parameters = j.where;
        }
    const auto has_peers = [&used](const family& f) { return f.about.kind == "peer" && used.contains(f.about.name); };
    const auto& families = everything().families();
    if (std::none_of(families.begin(), families.end(), has_peers))
        std::erase_if(r.strategies, [](const report::strategy& s) { return s.kind == "peer"; });
    std::set<std::pair<std::string, std::string>> twins;
    for (const family& f : everything().families()) {
        if (!used.contains(f.about.name)) continue;
        r.workloads.push_back(f.about);
        const std::string& base = r.workloads.back().baseline = baseline_of(p, f);
        if (!p.twin || !twins.emplace(f.about.kind, base).second) continue;
        const auto original = std::find_if(r.strategies.begin(), r.strategies.end(), [&](const report::strategy& s) {
            return s.kind == f.about.kind && s.name == base;
        });
        report::strategy twin;
        if (original != r.strategies.end()) twin = *original;
        twin.name = twin_name(base);
        twin.kind = f.about.kind;
        twin.twin_of = base;
        twin.control = true;
        r.strategies.push_back(std::move(twin));
    }
    return r;
}

}  // namespace alloclab::bench
