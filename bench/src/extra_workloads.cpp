// Extras: an eval's worth of them, and whether they come back.
#include <sys/resource.h>

#include <memory>

#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "alloclab/layer/counting.hpp"
#include "catalogue.hpp"
#include "keep.hpp"

namespace alloclab::bench {
namespace {

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

double minor_faults() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_minflt);
}

template <class S>
measurement evals(std::size_t tensors) {
    std::string refusal;
    {
        const auto once = std::make_unique<extras<S>>(tensors);
        const std::size_t fit = once->eval(tensors);
        if (fit < tensors) refusal = "refused extra " + std::to_string(fit + 1) + " of an eval";
    }
    return {.loop =
                [tensors](benchmark::State& state) {
                    const auto all = std::make_unique<extras<S>>(tensors);
                    for (auto _ : state) benchmark::DoNotOptimize(all->eval(tensors));
                },
            .operations = static_cast<double>(tensors),
            .observe =
                [tensors](observations& seen) {
                    const auto all = std::make_unique<extras<S>>(tensors);
                    all->eval(tensors);
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
                },
            .refusal = refusal};
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
using list = extra_strategies<E>;

}  // namespace

void add_extra_workloads(catalogue& c) {
    c.add<list<device::tensor_extra>>(
        {.name = "extra/eval",
         .kind = "extra",
         .title = "Give each of an eval's tensors an extra of 1152 bytes, then end the eval",
         .question = "What the bookkeeping of a GPU backend costs per tensor, by the number of tensors",
         .unit = "ns/extra",
         .baseline = "",
         .axis = "tensors"},
        {{"tensors", {"16", "64", "256", "1061", "4096", "8192"}, {"64", "1061", "8192"}, 1, 1'000'000}},
        [](auto tag, const parameters& p) { return evals<typename decltype(tag)::type>(number(p, "tensors")); });
    c.add<list<device::legacy_tensor_extra>>(
        {.name = "extra/eval_256",
         .kind = "extra",
         .title = "Give each of an eval's tensors an extra of 256 bytes, the size of mid-2023, then end the eval",
         .question = "How much of it is clearing memory",
         .unit = "ns/extra",
         .baseline = "",
         .axis = "tensors"},
        {{"tensors", {"64", "1061"}, {"1061"}, 1, 1'000'000}},
        [](auto tag, const parameters& p) { return evals<typename decltype(tag)::type>(number(p, "tensors")); });
    c.add<list<device::compact_tensor_extra>>(
        {.name = "extra/eval_72",
         .kind = "extra",
         .title = "Give each of an eval's tensors an extra of 72 bytes, for one device, then end the eval",
         .question = "What is left when an extra has only the fields in use",
         .unit = "ns/extra",
         .baseline = "",
         .axis = "tensors"},
        {{"tensors", {"64", "1061"}, {"1061"}, 1, 1'000'000}},
        [](auto tag, const parameters& p) { return evals<typename decltype(tag)::type>(number(p, "tensors")); });
    c.add<list<device::tensor_extra>>(
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
