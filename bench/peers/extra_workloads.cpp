// Extras of 1152 bytes that nobody clears, ours beside other people's ways to have them.
#include <memory>
#include <string>

#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"
#include "registry.hpp"

namespace alloclab::bench {
namespace {

constexpr std::size_t warm_up = 5;  // evals

/// The number of extras taken before the first refusal; each has its first word written.
template <class S>
std::size_t take_all(S& strategy, std::size_t tensors) noexcept {
    for (std::size_t i = 0; i < tensors; ++i) {
        peers::bare_extra* e = strategy.acquire(lifetime::temporary);
        if (e == nullptr) return i;
        e->words[0] = &strategy;
        keep(e);
    }
    return tensors;
}

template <class S>
std::size_t eval(S& strategy, std::size_t tensors) noexcept {
    strategy.begin_eval();
    const std::size_t taken = take_all(strategy, tensors);
    strategy.end_eval();
    return taken;
}

template <class S>
void observe_evals(std::size_t tensors, observations& seen) {
    const auto strategy = std::make_unique<S>();
    for (std::size_t i = 0; i < warm_up; ++i) eval(*strategy, tensors);
    count_rounds(
        seen, "eval", [&] { eval(*strategy, tensors); }, [&] { return strategy->usage(); });
    const std::size_t bytes = tensors * sizeof(peers::bare_extra);
    memory_watch memory;
    strategy->begin_eval();
    take_all(*strategy, tensors);
    memory.look(bytes, strategy->usage().reserved_bytes);
    strategy->end_eval();
    memory.tell_peaks(seen);
    seen.counters["requested_bytes"] = static_cast<double>(bytes);
}

template <class S>
measurement evals(const parameters& p) {
    const std::size_t tensors = number(p, "tensors");
    measurement m;
    if constexpr (bounded<S>)
        if (tensors > S::capacity) m.refusal = "full at " + std::to_string(S::capacity) + " extras of an eval";
    if (!m.refusal.empty()) return m;
    m.operations = static_cast<double>(tensors);
    m.loop = [tensors](benchmark::State& state) {
        const auto strategy = std::make_unique<S>();
        for (std::size_t i = 0; i < warm_up; ++i) eval(*strategy, tensors);
        for (auto _ : state)
            if (eval(*strategy, tensors) != tensors) return state.SkipWithError("an extra was refused");
    };
    m.observe = [tensors](observations& seen) { observe_evals<S>(tensors, seen); };
    return m;
}

}  // namespace

void add_peer_extra_workloads(catalogue& c) {
    using peers::bare_extra;
    c.add<peers::extra_contenders>(
        {.name = "peers/extras",
         .kind = "peer",
         .title = "Give each of an eval's tensors an extra of 1152 bytes, uncleared, then end the eval",
         .question = "What a record per tensor costs, ours and other people's, and how far that is from no allocator",
         .unit = "ns/extra",
         .baseline = "",
         .axis = "tensors"},
        {{.name = "heap", .values = {"bare"}, .quick = {"bare"}, .full = {"bare", "aged"}},
         {.name = "tensors", .values = {"1061"}, .quick = {"1061"}, .lowest = 1, .highest = 8192}},
        [](auto tag, const parameters& p) { return evals<typename decltype(tag)::type>(p); },
        [](auto tag) {
            using S = typename decltype(tag)::type;
            // per_tensor is malloc, which is there; an extra in its tensor takes nothing from anyone.
            return peers::contends<S> && extra_strategy<S> && !std::same_as<S, per_tensor<bare_extra>>;
        });
}

}  // namespace alloclab::bench
