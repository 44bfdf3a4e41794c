// Extras: an eval's worth of them, and whether they come back.
#include <memory>

#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "catalogue.hpp"
#include "keep.hpp"
#include "process.hpp"

namespace alloclab::bench {
namespace {

constexpr std::size_t warm_up = 5;  // evals: the ring has then been round once at 1061 tensors

/// An extra strategy and, for one that lives inside tensors, the tensors' room.
template <class S>
struct extras {
    using extra = typename S::extra_type;

    explicit extras(std::size_t tensors) {
        if constexpr (embedded_extra_strategy<S>) in_tensors.resize(tensors);
    }

    /// Takes `tensors` temporaries and writes to each as a backend does; the number taken before the first refusal.
    std::size_t take(std::size_t tensors) {
        for (std::size_t i = 0; i < tensors; ++i) {
            extra* e = acquire(i);
            if (e == nullptr) return i;
            e->data[0] = this;
            keep(e);
        }
        return tensors;
    }
    std::size_t eval(std::size_t tensors) {
        const offload_scope scope(strategy);
        return take(tensors);
    }

    S strategy;
    struct room {
        alignas(extra) std::byte bytes[sizeof(extra)];
    };
    std::vector<room> in_tensors;

private:
    extra* acquire([[maybe_unused]] std::size_t i) noexcept {
        if constexpr (embedded_extra_strategy<S>) return strategy.acquire(lifetime::temporary, &in_tensors[i]);
        else return strategy.acquire(lifetime::temporary);
    }
};

template <class S>
measurement evals(std::size_t tensors) {
    measurement m;
    const std::size_t fit = std::make_unique<extras<S>>(tensors)->eval(tensors);
    if (fit < tensors) {
        m.refusal = "full at " + std::to_string(fit) + " extras of an eval";
        return m;
    }
    m.operations = static_cast<double>(tensors);
    m.loop = [tensors](benchmark::State& state) {
        const auto all = std::make_unique<extras<S>>(tensors);
        for (std::size_t i = 0; i < warm_up; ++i) all->eval(tensors);
        for (auto _ : state) benchmark::DoNotOptimize(all->eval(tensors));
    };
    m.observe = [tensors](observations& seen) {
        const auto all = std::make_unique<extras<S>>(tensors);
        for (std::size_t i = 0; i < warm_up; ++i) all->eval(tensors);
        const std::size_t calls = all->strategy.usage().source_calls;
        const double faults = minor_faults();
        constexpr std::size_t repeats = 20;
        for (std::size_t i = 0; i < repeats; ++i) all->eval(tensors);
        seen.counters["faults_per_eval"] = (minor_faults() - faults) / repeats;
        seen.counters["source_calls_per_eval"] =
            static_cast<double>(all->strategy.usage().source_calls - calls) / repeats;
        const offload_scope scope(all->strategy);
        all->take(tensors);
        seen.counters["reserved_bytes"] = static_cast<double>(all->strategy.usage().reserved_bytes);
    };
    return m;
}

template <class S>
measurement growth_over_evals() {
    static constexpr std::size_t tensors = 200, count = 1000;
    return {
        .observe =
            [](observations& seen) {
                const auto all = std::make_unique<extras<S>>(tensors);
                auto& live = seen.series["live_extras"];
                auto& bytes = seen.series["reserved_bytes"];
                for (std::size_t i = 0; i < count; ++i) {
                    all->eval(tensors);
                    live.push_back(static_cast<double>(all->strategy.usage().live));
                    bytes.push_back(static_cast<double>(all->strategy.usage().reserved_bytes));
                }
            },
    };
}

template <class E>
void add_evals(catalogue& c, std::string name, const std::string& size, std::string question, std::vector<axis> axes) {
    c.add<extra_strategies<E>>({.name = std::move(name),
                                .kind = "extra",
                                .title = "Give each of an eval's tensors an extra of " + size + ", then end the eval",
                                .question = std::move(question),
                                .unit = "ns/extra",
                                .baseline = "",
                                .axis = "tensors"},
                               std::move(axes), [](auto tag, const parameters& p) {
                                   return evals<typename decltype(tag)::type>(number(p, "tensors"));
                               });
}

}  // namespace

void add_extra_workloads(catalogue& c) {
    constexpr std::size_t most = 1'000'000;
    const axis few{"tensors", {"64", "1061"}, {"1061"}, 1, most};
    add_evals<device::tensor_extra>(
        c, "extra/eval", "1152 bytes",
        "What the bookkeeping of a GPU backend costs per tensor, by the number of tensors",
        {{"heap", {"aged", "bare"}, {"aged"}},
         {"tensors", {"16", "64", "256", "1061", "4096", "8192"}, {"64", "1061", "8192"}, 1, most}});
    add_evals<device::legacy_tensor_extra>(c, "extra/eval_256", "256 bytes, the size of mid-2023",
                                           "How much of it is clearing memory", {few});
    add_evals<device::compact_tensor_extra>(c, "extra/eval_72", "72 bytes, for one device",
                                            "What is left when an extra has only the fields in use", {few});
    c.add<extra_strategies<device::tensor_extra>>(
        {.name = "extra/growth",
         .kind = "extra",
         .title = "Live extras over 1000 evals of 200 offloaded tensors",
         .question = "Which strategies give back what an eval took (llama.cpp#2145)",
         .unit = "extras",
         .baseline = "",
         .axis = ""},
        {}, [](auto tag, const parameters&) { return growth_over_evals<typename decltype(tag)::type>(); });
}

}  // namespace alloclab::bench
