// catalogue: all that can be measured. A family is one workload over a list of strategies and axes of parameters; a
// cell is one strategy and one value per axis. Families are added by one function per source file, from the registry's
// lists.
#pragma once

#include <benchmark/benchmark.h>

#include <charconv>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/registry.hpp"
#include "alloclab/report/results.hpp"

namespace alloclab::bench {

/// What evals offload to, in the words that find_device() takes, unless another is asked for.
inline constexpr std::string_view default_device = "sim:default";

/// Of a cell, by axis; where it is made also "device", in such words.
using parameters = std::map<std::string, std::string>;

[[nodiscard]] inline std::size_t number(const parameters& p, const std::string& name) {
    const std::string& text = p.at(name);
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        throw std::invalid_argument(name + "=" + text + " is no whole number");
    return value;
}

/// What a cell shows beside its time: counts, not times. Bytes, calls and objects are the same in every process; page
/// faults depend on the state of the heap too.
struct observations {
    std::map<std::string, double> counters;
    std::map<std::string, std::vector<double>> series;    ///< over evals
    std::map<std::string, std::vector<double>> timeline;  ///< over the steps of one round
    std::vector<report::memory_map> maps;                 ///< the same from every strategy; one of them is enough
};

/// A cell made ready in this process.
struct measurement {
    /// Timed by Google Benchmark; each iteration does `operations` of them. Empty where only `observe` tells something.
    /// What counts, and what the number of iterations is found by, is the time on the wall: the processor time of one
    /// thread would miss what a strategy hands to another, or waits for (google/benchmark#170).
    std::function<void(benchmark::State&)> loop = {};
    double operations = 1;
    bool times_itself = false;   ///< the loop calls SetIterationTime
    std::size_t iterations = 0;  ///< of each run; 0: as many as fill its time, for loops that are timed as a whole
    /// One operation for timing one at a time, with its surroundings ready; empty where single ones tell nothing.
    std::function<std::function<void()>()> single = {};
    /// Run once, in a process in which nothing is timed.
    std::function<void(observations&)> observe = {};
    /// Where the loop leaves what the parts of an operation took, in nanoseconds each; may be null.
    std::shared_ptr<std::map<std::string, double>> parts = {};
    /// Why the strategy cannot do this, "" when it can: "full at 64 of 64".
    std::string refusal = {};
};

struct axis {
    std::string name;
    std::vector<std::string> values;  ///< measured unless others are asked for
    std::vector<std::string> quick;   ///< those that --quick takes
    std::size_t lowest = 0;           ///< a number from lowest to highest may be asked for;
    std::size_t highest = 0;          ///< where highest is 0, only one of those listed, or any model's name for "model"
    std::vector<std::string> full = {};  ///< those that --full takes, all of `values` among them; empty: just these

    [[nodiscard]] const std::vector<std::string>& all() const noexcept { return full.empty() ? values : full; }
};

/// Why a strategy cannot be used on this system, "" when it can; one that says what it lacks is taken at its word.
template <named S>
[[nodiscard]] std::string absence() {
    if (available<S>()) return "";
    std::string why = "not available on this system";
    if constexpr (requires { S::absence(); }) why.append(": ").append(S::absence());
    return why;
}

struct family {
    struct entry {
        std::string strategy;
        std::function<measurement(const parameters&)> make;
        std::string (*absence)();
        description traits;
    };
    report::workload about;
    std::vector<axis> axes;
    std::vector<entry> entries;

    /// Left out of a run that does not name it: other people's allocators are no choice of ours.
    [[nodiscard]] bool only_when_asked() const noexcept { return about.kind == "peer"; }
};

class catalogue {
public:
    /// One entry for each strategy in `List` for which `applies(type_tag<S>)`, known when compiled, since no other need
    /// fit `make(type_tag<S>, parameters)`, which sets a cell up. Ratios are formed to the first strategy of the list.
    template <class List, class Make, class Applies>
    void add(report::workload about, std::vector<axis> axes, Make make, Applies) {
        family made{std::move(about), std::move(axes), {}};
        List::for_each([&](auto tag) {
            using S = typename decltype(tag)::type;
            if constexpr (Applies{}(type_tag<S>{})) {
                if (made.about.baseline.empty()) made.about.baseline = std::string(std::string_view(S::name));
                made.entries.push_back({std::string(std::string_view(S::name)),
                                        [make, tag](const parameters& p) { return make(tag, p); }, &bench::absence<S>,
                                        describe<S>()});
            }
        });
        families_.push_back(std::move(made));
    }
    template <class List, class Make>
    void add(report::workload about, std::vector<axis> axes, Make make) {
        add<List>(std::move(about), std::move(axes), std::move(make), [](auto) { return true; });
    }

    [[nodiscard]] const std::vector<family>& families() const noexcept { return families_; }
    [[nodiscard]] const family* find(std::string_view workload) const noexcept {
        for (const family& f : families_)
            if (f.about.name == workload) return &f;
        return nullptr;
    }

private:
    std::vector<family> families_;
};

void add_source_workloads(catalogue& c);
void add_slot_workloads(catalogue& c);
void add_context_workloads(catalogue& c);
void add_extra_workloads(catalogue& c);
void add_eval_workloads(catalogue& c);
void add_device_workloads(catalogue& c);
void add_peer_slot_workloads(catalogue& c);
void add_peer_extra_workloads(catalogue& c);
void add_peer_graph_workloads(catalogue& c);

/// All of them.
[[nodiscard]] const catalogue& everything();
/// Every strategy of the registry, and those of the families of kind "peer" as that kind.
[[nodiscard]] std::vector<report::strategy> registered_strategies();

}  // namespace alloclab::bench
