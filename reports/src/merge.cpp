#include "alloclab/report/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "text.hpp"

namespace alloclab::report {
namespace {

using named = std::pair<std::string, run>;

[[noreturn]] void differ(const std::string& first, const std::string& second, std::string_view in) {
    throw bad_results(fmt::format("{} and {} differ in {}; expected runs of one build and device", visible(first),
                                  visible(second), visible(in)));
}

void add_once(std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
}

// ---- what must agree

auto description(const strategy& s) {
    return std::tie(s.kind, s.name, s.threads, s.bounded, s.capacity, s.when_full, s.control, s.twin_of);
}
auto description(const workload& w) {
    return std::tie(w.name, w.kind, w.title, w.question, w.unit, w.baseline, w.axis);
}
auto key(const strategy& s) { return std::tie(s.kind, s.name); }
auto key(const workload& w) { return std::tie(w.name); }

/// The union, in an order that keeps each run's own. A shard describes only what it measured.
template <class T>
std::vector<T> joined(const std::vector<named>& inputs, std::vector<T> run::*part, std::string_view what) {
    std::vector<T> all;
    std::vector<const std::string*> from;  // the input that brought each
    const auto find = [&](const T& one) {
        return std::find_if(all.begin(), all.end(), [&](const T& other) { return key(other) == key(one); }) -
               all.begin();
    };
    for (const auto& [name, input] : inputs) {
        auto next = std::ssize(all);
        for (const T& each : input.*part)
            if (const auto at = find(each); at < std::ssize(all)) {
                next = at;
                break;
            }
        for (const T& each : input.*part) {
            const auto at = find(each);
            if (at == std::ssize(all)) {
                all.insert(all.begin() + next, each);
                from.insert(from.begin() + next++, &name);
            } else if (description(all[static_cast<std::size_t>(at)]) == description(each)) {
                next = at + 1;
            } else {
                differ(*from[static_cast<std::size_t>(at)], name, fmt::format("the {} {}", what, each.name));
            }
        }
    }
    return all;
}

void check_builds(const std::vector<named>& inputs) {
    for (const char* of : {"alloclab", "build", "compiler", "device", "device figures"})
        for (const auto& [name, input] : inputs) {
            const std::string first = fact_of(inputs[0].second.environment, of), here = fact_of(input.environment, of);
            if (first != here)
                differ(inputs[0].first, name, fmt::format("\"{}\", which is \"{}\" and \"{}\"", of, first, here));
        }
}

// ---- shards

struct shards {
    std::set<std::size_t> present;  ///< from 1
    std::size_t of = 0;             ///< 0: the whole
};

std::size_t whole_number(std::string_view text) {  // 0 for what is none
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc{} && end == text.data() + text.size() ? n : 0;
}

shards read_shards(const named& input) {
    const std::string_view text = input.second.plan.shard;
    shards s;
    if (text.empty()) return s;
    const auto slash = std::min(text.find('/'), text.size() - 1);
    s.of = whole_number(text.substr(slash + 1));
    for (std::size_t at = 0; at <= slash;) {
        const auto end = std::min(text.find(',', at), slash);
        s.present.insert(whole_number(text.substr(at, end - at)));
        at = end + 1;
    }
    constexpr std::size_t most = 100'000;
    if (s.of == 0 || s.of > most || s.present.empty() || *s.present.begin() == 0 || *s.present.rbegin() > s.of)
        throw bad_results(fmt::format("{}: /design/shard: expected \"2/8\" or \"1,3/8\", found \"{}\"",
                                      visible(input.first), visible(text)));
    return s;
}

/// "" when none is missing.
std::string missing_in_words(const shards& s) {
    std::vector<std::size_t> missing;
    for (std::size_t i = 1; i <= s.of; ++i)
        if (!s.present.contains(i)) missing.push_back(i);
    if (missing.empty()) return "";
    return fmt::format("{} of {} shards missing: {}", missing.size(), s.of, fmt::join(missing, ", "));
}

/// Sets plan.shard, and says in plan.unmet what is missing.
void join_shards(const std::vector<named>& inputs, design& plan) {
    shards all;
    const named* first = nullptr;
    bool whole = false;
    for (const named& input : inputs) {
        const shards here = read_shards(input);
        if (here.of == 0) {
            whole = true;
            continue;
        }
        if (first == nullptr) first = &input;
        if (first->second.seed != input.second.seed || (all.of != 0 && all.of != here.of))
            throw bad_results(
                fmt::format("{} is shard {} with seed {}, {} is shard {} with seed {}; expected shards of one sweep",
                            visible(first->first), visible(first->second.plan.shard), first->second.seed,
                            visible(input.first), visible(input.second.plan.shard), input.second.seed));
        all.of = here.of;
        all.present.insert(here.present.begin(), here.present.end());
    }
    if (whole && first != nullptr)
        throw bad_results(
            fmt::format("{} is shard {}, others are no shards; expected shards of one sweep, or whole runs",
                        visible(first->first), visible(first->second.plan.shard)));
    const std::string missing = missing_in_words(all);
    plan.shard = missing.empty() ? "" : fmt::format("{}/{}", fmt::join(all.present, ","), all.of);
    if (!missing.empty()) plan.unmet.insert(plan.unmet.begin(), missing);
}

/// Without the words that only one shard had, its number and its file. Words are quoted as a shell reads them.
std::string whole_command(const std::string& command) {
    std::string kept;
    bool skip = false;
    for (std::size_t at = 0; at < command.size();) {
        std::size_t end = at;
        for (bool in_quotes = false; end < command.size() && (in_quotes || command[end] != ' '); ++end) {
            if (command[end] == '\'') in_quotes = !in_quotes;
            if (command[end] == '\\' && !in_quotes) ++end;
        }
        const std::string word = command.substr(at, end - at);
        at = end + 1;
        const bool takes_next = word == "--shard" || word == "-o" || word == "--output";
        const bool alone = word == "--resume" || word.starts_with("--shard=") || word.starts_with("--output=");
        if (!skip && !takes_next && !alone) kept += (kept.empty() ? "" : " ") + word;
        skip = takes_next && !skip;
    }
    return kept;
}

// ---- machines

/// The machines of all inputs, and where each of an input's own went.
class machine_list {
public:
    explicit machine_list(const std::vector<named>& inputs) {
        for (const auto& [name, input] : inputs) {
            auto& places = places_.emplace_back();
            if (input.machines.empty()) places.push_back(add({"", input.environment, input.warnings}, name));
            for (const machine& m : input.machines)
                places.push_back(add(m, fmt::format("{}/machines/{}", name, places.size())));
        }
        give_names();
    }

    [[nodiscard]] std::vector<machine>& all() { return machines_; }
    [[nodiscard]] std::size_t place(const named& input, std::size_t at, std::size_t own) const {
        if (own >= places_[at].size())
            throw bad_results(fmt::format("{}: a sample is of machine {}, expected less than {}", visible(input.first),
                                          own, places_[at].size()));
        return places_[at][own];
    }
    [[nodiscard]] const std::string& name(std::size_t place) const { return machines_[place].name; }
    /// Of all machines on which an input was run.
    [[nodiscard]] std::string names(std::size_t input) const {
        std::vector<std::string> all;
        for (const std::size_t place : places_[input]) all.push_back(machines_[place].name);
        return listed(all);
    }

private:
    /// `from` stands in where a machine tells neither what it is nor its name.
    std::size_t add(machine m, const std::string& from) {
        std::string id = fact_of(m.environment, "machine");
        if (id.empty()) id = from;
        const auto known = std::find(ids_.begin(), ids_.end(), id);
        if (known == ids_.end()) {
            if (m.name.empty()) m.name = fact_of(m.environment, "host");
            if (m.name.empty()) m.name = from;
            ids_.push_back(std::move(id));
            machines_.push_back(std::move(m));
            return machines_.size() - 1;
        }
        const auto at = static_cast<std::size_t>(known - ids_.begin());
        machine& here = machines_[at];
        for (const auto& f : m.environment) {
            const auto same = std::find_if(here.environment.begin(), here.environment.end(),
                                           [&](const auto& other) { return other.first == f.first; });
            if (same == here.environment.end()) here.environment.push_back(f);
            else if (("; " + same->second + "; ").find("; " + f.second + "; ") == std::string::npos)
                same->second += "; " + f.second;  // such as the load at the start of each
        }
        for (std::string& warning : m.warnings) {
            // Of a fact that was found a little different each time, such as the load, once will do.
            const std::string about = warning.substr(0, warning.find(": "));
            const bool said = std::any_of(here.warnings.begin(), here.warnings.end(), [&](const std::string& other) {
                return other == warning ||
                       (other.starts_with(about + ": ") && !fact_of(here.environment, about).empty());
            });
            if (!said) here.warnings.push_back(std::move(warning));
        }
        return at;
    }

    void give_names() {
        std::map<std::string, std::size_t> taken;
        for (const machine& m : machines_) ++taken[m.name];
        for (std::size_t i = 0; i < machines_.size(); ++i)
            if (taken[machines_[i].name] > 1) machines_[i].name += " (" + ids_[i] + ")";
    }

    std::vector<machine> machines_;
    std::vector<std::string> ids_;
    std::vector<std::vector<std::size_t>> places_;
};

std::vector<std::pair<std::string, std::string>> in_common(const std::vector<machine>& machines) {
    std::vector<std::pair<std::string, std::string>> common;
    for (const auto& f : machines[0].environment)
        if (std::all_of(machines.begin(), machines.end(), [&](const machine& m) {
                return std::find(m.environment.begin(), m.environment.end(), f) != m.environment.end();
            }))
            common.push_back(f);
    return common;
}

/// Those of all machines once, the others with their machine's name; then what an earlier merge had to say.
std::vector<std::string> join_warnings(const std::vector<machine>& machines, const std::vector<named>& inputs) {
    std::vector<std::string> all;
    const auto everywhere = [&](const std::string& warning) {
        return std::all_of(machines.begin(), machines.end(), [&](const machine& m) {
            return std::find(m.warnings.begin(), m.warnings.end(), warning) != m.warnings.end();
        });
    };
    for (const machine& m : machines)
        for (const std::string& w : m.warnings) add_once(all, everywhere(w) ? w : m.name + ": " + w);
    for (const auto& [name, input] : inputs) {
        if (input.machines.empty()) continue;  // then they are those of its machine
        std::set<std::string> of_machines;
        for (const machine& m : input.machines)
            for (const std::string& w : m.warnings) of_machines.insert({w, m.name + ": " + w});
        for (const std::string& w : input.warnings)
            if (!of_machines.contains(w)) add_once(all, w);
    }
    return all;
}

// ---- cells

using cell_key = std::tuple<std::string, std::map<std::string, std::string>, std::string>;

/// Numbers by their value, before words.
std::pair<double, std::string_view> rank(const std::string& value) { return {number(value).value_or(HUGE_VAL), value}; }

bool parameters_before(const cell& a, const cell& b) {
    return std::lexicographical_compare(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                                        b.parameters.end(), [](const auto& x, const auto& y) {
                                            return std::tuple(std::string_view(x.first), rank(x.second)) <
                                                   std::tuple(std::string_view(y.first), rank(y.second));
                                        });
}

/// A counter that differs between runs: in how many cells, and the first of them in words.
struct disagreement {
    std::size_t cells = 0;
    std::string first;
};

class cell_list {
public:
    cell_list(std::vector<named>& inputs, const machine_list& machines) : machines_{machines} {
        std::map<std::size_t, std::pair<std::size_t, std::size_t>> used;  // blocks and turns so far, by machine
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            auto after = used;
            for (cell& c : inputs[i].second.cells) {
                for (sample& s : c.samples) {
                    s.machine = machines.place(inputs[i], i, s.machine);
                    const auto [blocks, turns] = used[s.machine];
                    s.block += blocks;
                    if (s.turn != 0) s.turn += turns;
                    auto& [next_block, next_turn] = after[s.machine];
                    next_block = std::max(next_block, s.block + 1);
                    next_turn = std::max(next_turn, s.turn);
                }
                add(std::move(c), i, inputs);
            }
            used = std::move(after);
        }
    }

    [[nodiscard]] std::vector<cell> take() { return std::move(cells_); }
    [[nodiscard]] const std::map<std::string, disagreement>& disagreements() const { return disagreements_; }

private:
    void add(cell&& c, std::size_t input, const std::vector<named>& inputs) {
        const auto [at, fresh] = index_.try_emplace({c.workload, c.parameters, c.strategy}, cells_.size());
        if (fresh) {
            cells_.emplace_back();
            seen_.emplace_back();
            blocks_.emplace_back();
            first_.push_back(input);
        }
        cell& to = cells_[at->second];
        check_samples(c, at->second, input, inputs);
        if (fresh) {
            to = std::move(c);
            return;
        }
        join_counters(to, c, first_[at->second], input, inputs);
        const auto ours = static_cast<double>(to.samples.size()), theirs = static_cast<double>(c.samples.size());
        for (const auto& [part, value] : c.parts) {
            const auto known = to.parts.find(part);
            if (known == to.parts.end()) to.parts.emplace(part, value);
            else if (ours + theirs > 0) known->second = (known->second * ours + value * theirs) / (ours + theirs);
        }
        to.samples.insert(to.samples.end(), c.samples.begin(), c.samples.end());
        to.series.merge(std::move(c.series));
        to.timeline.merge(std::move(c.timeline));
        if (!to.latency) to.latency = std::move(c.latency);
        for (const auto text : {&cell::refusal, &cell::error})
            if (to.*text != c.*text && !(c.*text).empty())
                to.*text += ((to.*text).empty() ? "" : "; ") + machines_.names(input) + ": " + c.*text;
    }

    void check_samples(const cell& c, std::size_t at, std::size_t input, const std::vector<named>& inputs) {
        for (const sample& s : c.samples) {
            if (!blocks_[at].emplace(s.machine, s.block).second)
                throw bad_results(fmt::format("{}: two samples of {} in one block", visible(inputs[input].first),
                                              visible(to_string(c))));
            if (!std::isfinite(s.value)) continue;
            const double calibration = std::isfinite(s.calibration) ? s.calibration : 0;
            const auto [known, fresh] = seen_[at].try_emplace({s.machine, s.value, calibration}, input);
            if (!fresh && known->second != input)
                throw bad_results(fmt::format("{} and {} hold the same sample of {}, {}; expected each run once",
                                              visible(inputs[known->second].first), visible(inputs[input].first),
                                              visible(to_string(c)), exact(s.value)));
        }
    }

    void join_counters(cell& to, const cell& c, std::size_t first, std::size_t input,
                       const std::vector<named>& inputs) {
        for (const auto& [name, value] : c.counters) {
            const auto [known, fresh] = to.counters.try_emplace(name, value);
            if (fresh || known->second == value || (std::isnan(known->second) && std::isnan(value))) continue;
            disagreement& d = disagreements_[name];
            if (d.cells++ == 0)
                d.first = fmt::format("{}: {} in {}, {} in {}", visible(to_string(c)), exact(known->second),
                                      visible(inputs[first].first), exact(value), visible(inputs[input].first));
            known->second = std::fmax(known->second, value);  // worse when higher, so no merge hides a leak
        }
    }

    const machine_list& machines_;
    std::vector<cell> cells_;
    std::vector<std::size_t> first_;                                     ///< input that brought each cell
    std::vector<std::set<std::pair<std::size_t, std::size_t>>> blocks_;  ///< and machines, of each cell
    /// Machine, time and calibration, and the input that has them: no two runs agree in these to the last bit.
    std::vector<std::map<std::tuple<std::size_t, double, double>, std::size_t>> seen_;
    std::map<cell_key, std::size_t> index_;
    std::map<std::string, disagreement> disagreements_;
};

void join_plans(const std::vector<named>& inputs, const machine_list& machines, run& r) {
    r.plan = inputs[0].second.plan;
    r.plan.unmet.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& [name, input] = inputs[i];
        const std::string where = !input.plan.shard.empty()   ? "shard " + input.plan.shard
                                  : machines.names(i).empty() ? name
                                                              : machines.names(i);
        const std::string missing = missing_in_words(read_shards(inputs[i]));
        for (const std::string& unmet : input.plan.unmet)
            if (unmet != missing) add_once(r.plan.unmet, inputs.size() == 1 ? unmet : where + ": " + unmet);
        if (input.plan.min_seconds != r.plan.min_seconds)
            add_once(r.warnings, fmt::format("{} and {} took {} s and {} s for a measurement", inputs[0].first, name,
                                             r.plan.min_seconds, input.plan.min_seconds));
    }
    join_shards(inputs, r.plan);
}

}  // namespace

run merge(std::vector<named> inputs) {
    if (inputs.empty()) throw bad_results("nothing to merge; expected one run or more");
    run r;
    r.strategies = joined(inputs, &run::strategies, "strategy");
    r.workloads = joined(inputs, &run::workloads, "workload");
    check_builds(inputs);
    machine_list machines(inputs);
    r.warnings = join_warnings(machines.all(), inputs);
    join_plans(inputs, machines, r);

    r.seed = inputs[0].second.seed;
    std::vector<std::string> commands, revisions;
    bool sharded = false;
    for (auto& [name, input] : inputs) {
        if (!input.started.empty() && (r.started.empty() || input.started < r.started)) r.started = input.started;
        r.seconds += input.seconds;
        r.partial = r.partial || input.partial;
        sharded = sharded || !input.plan.shard.empty();
        if (std::string revision = fact_of(input.environment, "revision"); !revision.empty())
            add_once(revisions, std::move(revision));
        add_once(commands, whole_command(input.command));
        for (memory_map& map : input.maps)
            if (std::none_of(r.maps.begin(), r.maps.end(), [&](const memory_map& m) { return m.name == map.name; }))
                r.maps.push_back(std::move(map));
    }
    r.command = fmt::format("{}", fmt::join(commands, "; "));

    if (revisions.size() > 1) add_once(r.warnings, "built from different revisions: " + listed(revisions));

    cell_list cells(inputs, machines);
    for (const auto& [name, d] : cells.disagreements())
        r.warnings.push_back(fmt::format("{} differs between runs in {} cell{}, the highest is kept: {}", visible(name),
                                         d.cells, d.cells == 1 ? "" : "s", d.first));
    r.cells = cells.take();
    // Each shard holds some groups of each workload, so the order of a whole run is made anew.
    if (sharded) {
        std::map<std::string_view, std::size_t> order;
        for (const workload& w : r.workloads) order.emplace(w.name, order.size());
        std::stable_sort(r.cells.begin(), r.cells.end(), [&](const cell& a, const cell& b) {
            const auto x = order[a.workload], y = order[b.workload];
            return x != y ? x < y : parameters_before(a, b);
        });
    }
    r.machines = std::move(machines.all());
    r.environment = in_common(r.machines);
    return r;
}

}  // namespace alloclab::report
