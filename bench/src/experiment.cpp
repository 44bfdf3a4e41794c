#include "experiment.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <set>

#include "alloclab/tensor/models/registry.hpp"

namespace alloclab::bench {
namespace {

using clock = std::chrono::steady_clock;
constexpr double longest_seconds = 60;  // of one measurement

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

bool chosen(const std::vector<std::string>& wanted, const std::string& name) {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& pattern) {
               return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
           });
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
        if (std::find(a.values.begin(), a.values.end(), value) == a.values.end())
            throw wrong("one of " + listed(a.values));
        return;
    }
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc{} || end != value.data() + value.size() || n < a.lowest || n > a.highest)
        throw wrong("a whole number from " + std::to_string(a.lowest) + " to " + std::to_string(a.highest));
}

std::vector<parameters> combinations(const family& f, const plan& p) {
    std::vector<parameters> all{{}};
    for (const axis& a : f.axes) {
        const auto asked = p.values.find(a.name);
        const auto& values = asked != p.values.end() ? asked->second : p.quick ? a.quick : a.values;
        std::vector<parameters> longer;
        for (const parameters& shorter : all)
            for (const std::string& value : values) {
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
    must_exist("workload", p.workloads, workloads);
    must_exist("strategy", p.strategies, strategies);
    for (const auto& [name, values] : p.values) {
        if (!axes.contains(name)) throw unknown_name("no parameter \"" + name + "\"; there are " + listed(axes));
        if (values.empty()) throw unknown_name("no value for " + name);
        if (std::set(values.begin(), values.end()).size() != values.size())
            throw unknown_name("a value of " + name + " stands twice in " + listed(values));
    }
    std::set<std::string> used;
    bool any = false;
    for (const family& f : everything().families()) {
        if (!chosen(p.workloads, f.about.name)) continue;
        any = true;
        for (const axis& a : f.axes)
            if (const auto asked = p.values.find(a.name); asked != p.values.end()) {
                used.insert(a.name);
                for (const std::string& value : asked->second) check_value(a, value);
            }
    }
    for (const auto& [name, values] : p.values)
        if (any && !used.contains(name)) throw unknown_name("no chosen workload has the parameter " + name);
}

class progress {
public:
    explicit progress(std::size_t total) : total_(total) {}

    void phase(const std::string& name) {
        if (!terminal_)
            std::fprintf(stderr, "%s: %zu of %zu measurements, %.0f s\n", name.c_str(), done_, total_, seconds());
    }
    void next(const job& j) {
        if (terminal_) {
            std::string where = j.workload + " " + j.strategy;
            for (const auto& [name, value] : j.where) where += " " + name + "=" + value;
            const double left =
                done_ == 0 ? 0 : seconds() / static_cast<double>(done_) * static_cast<double>(total_ - done_);
            std::fprintf(stderr, "\r\033[K%3zu %% %zu/%zu, %d:%02d left  %.60s", done_ * 100 / total_, done_, total_,
                         static_cast<int>(left) / 60, static_cast<int>(left) % 60, where.c_str());
        }
        ++done_;
    }
    void skip(std::size_t n) { total_ -= n; }
    void end() {
        if (terminal_) std::fprintf(stderr, "\r\033[K");
    }
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(clock::now() - start_).count(); }

private:
    bool terminal_ = ::isatty(STDERR_FILENO) != 0;
    std::size_t total_;
    std::size_t done_ = 0;
    clock::time_point start_ = clock::now();
};

}  // namespace

std::vector<std::vector<job>> select(const plan& p) {
    check_names(p);
    std::vector<std::vector<job>> groups;
    for (const family& f : everything().families()) {
        if (!chosen(p.workloads, f.about.name)) continue;
        for (const parameters& where : combinations(f, p)) {
            std::vector<job> group;
            for (const auto& e : f.entries)
                if (chosen(p.strategies, e.strategy)) group.push_back({f.about.name, e.strategy, where, p.min_seconds});
            // Ratios need the baseline beside whatever was picked.
            const auto& base = f.about.baseline;
            if (!group.empty() &&
                std::none_of(group.begin(), group.end(), [&](const job& j) { return j.strategy == base; }))
                group.insert(group.begin(), {f.about.name, base, where, p.min_seconds});
            if (!group.empty()) groups.push_back(std::move(group));
        }
    }
    return groups;
}

void carry_out(const plan& p, std::vector<std::vector<job>> groups, report::run& r, bool (*interrupted)()) {
    std::map<std::string, bool> used;
    std::vector<std::vector<std::size_t>> cell_of(groups.size());
    std::size_t cells = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
        for (const job& j : groups[g]) {
            used[j.workload] = true;
            cell_of[g].push_back(cells++);
            report::cell& cell = r.cells.emplace_back();
            cell.workload = j.workload;
            cell.strategy = j.strategy;
            cell.parameters = j.where;
        }
    for (const family& f : everything().families())
        if (used[f.about.name]) r.workloads.push_back(f.about);

    std::mt19937_64 random(p.seed);
    const auto shuffled = [&random](std::size_t n) {
        std::vector<std::size_t> order(n);
        for (std::size_t i = 0; i < n; ++i) order[i] = i;
        for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
        return order;
    };
    progress shown(cells * (p.blocks + 1));
    std::vector<bool> settled(cells, false);  // refused, failed, or without a time to take
    const auto each_cell = [&](auto&& visit) {
        for (const std::size_t g : shuffled(groups.size()))
            for (const std::size_t i : shuffled(groups[g].size())) {
                const std::size_t at = cell_of[g][i];
                if (settled[at] || r.partial) continue;
                shown.next(groups[g][i]);
                job j = groups[g][i];
                const outcome o = visit(j, r.cells[at]);
                r.partial = interrupted();
                if (r.partial) continue;
                r.cells[at].refusal = o.refusal;
                r.cells[at].error = o.error;
                settled[at] = !o.refusal.empty() || !o.error.empty() || !o.has_time;
                if (settled[at]) shown.skip(p.blocks);
            }
    };

    shown.phase("counts");
    each_cell([interrupted](job& j, report::cell& cell) {
        j.task = job::observing;
        outcome o = measure_apart(j, longest_seconds, interrupted);
        cell.counters = std::move(o.seen.counters);
        cell.series = std::move(o.seen.series);
        return o;
    });
    for (std::size_t block = 0; block < p.blocks && !r.partial; ++block) {
        shown.phase("block " + std::to_string(block + 1) + " of " + std::to_string(p.blocks));
        each_cell([block, interrupted](job& j, report::cell& cell) {
            outcome o = measure_apart(j, longest_seconds, interrupted);
            if (!o.timed) return o;
            cell.samples.push_back({block, o.value});
            for (const auto& [part, value] : o.parts) cell.parts[part] += value;
            return o;
        });
    }
    shown.end();
    for (report::cell& cell : r.cells)
        for (auto& [part, value] : cell.parts) value /= static_cast<double>(cell.samples.size());
    r.seconds = shown.seconds();
}

}  // namespace alloclab::bench
