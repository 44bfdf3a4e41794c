// Whole contexts: one at a time, several threads, and the loads of whisper.cpp and llama.cpp.
#include <atomic>
#include <memory>
#include <numeric>
#include <span>
#include <thread>

#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "alloclab/tensor/models/whisper.hpp"
#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"
#include "slots.hpp"
#include "together.hpp"

namespace alloclab::bench {
namespace {

/// A context with a buffer of its own that is used again and again: reset, or freed and made anew.
template <class S, class Buffers = malloc_source>
struct renewed {
    explicit renewed(bool by_reset) : reset(by_reset) {}
    void once() {
        if (reset) context->reset();
        else {
            context.reset();
            context = home.make(options);
        }
        tensor::tensor* used = context->new_tensor(tensor::type::f32, {64});
        keep(used);
    }
    /// Where slots and buffers are counted.
    template <class Round>
    void observe(observations& seen, Round round) {
        observe_rounds(seen, round, home.slots(), home.buffers());
    }

    bool reset;
    tensor::context_options options{.bytes = 16384};
    tensor::contexts<S, Buffers> home;
    tensor::context_ptr context = home.make(options);
};

template <class S>
measurement context_renewals(const parameters& p) {
    return batches<renewed<S>, renewed<watched<S>, counted_buffers>>(p.at("context") == "reset");
}

// Every thread has its context before any drops it, so that the peak is that of all, however the system schedules.
template <class S>
void observe_threads(std::size_t threads, std::size_t bytes, observations& seen) {
    const auto home = std::make_unique<tensor::contexts<compose<S, counting>, counted_buffers>>();
    std::barrier gate(static_cast<std::ptrdiff_t>(threads + 1));
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
        workers.emplace_back([&] {
            const tensor::context_ptr made = home->try_make({.bytes = bytes});
            gate.arrive_and_wait();
            gate.arrive_and_wait();
        });
    const auto& slots = home->slots();
    const auto held = [&] {
        if constexpr (measured<S>) return slots.usage() + usage_of(home->buffers().traffic());
        else return usage_of(slots.traffic()) + usage_of(home->buffers().traffic());
    };
    gate.arrive_and_wait();
    auto& n = seen.counters;
    n["peak_bytes"] = static_cast<double>(slots.traffic().live_bytes + home->buffers().traffic().live_bytes);
    n["reserved_bytes"] = static_cast<double>(held().reserved_bytes);
    gate.arrive_and_wait();
    workers.clear();
    n["leaked"] = static_cast<double>(held().live);
}

// Each thread makes and drops contexts of its own with an owned buffer.
template <class S>
measurement context_threads(const parameters& p) {
    static constexpr std::size_t pairs = 5000;  // of each thread, per iteration
    static constexpr std::size_t bytes = 16384;
    const std::size_t threads = number(p, "threads");
    measurement m;
    m.refusal = refusal_at<S>(threads);
    m.operations = pairs;
    m.times_itself = true;
    m.loop = [threads](benchmark::State& state) {
        const auto home = std::make_unique<tensor::contexts<S>>();
        std::atomic<std::size_t> refused{0};
        time_together(state, threads, [&](std::size_t) {
            for (std::size_t i = 0; i < pairs; ++i) {
                const tensor::context_ptr made = home->try_make({.bytes = bytes});
                tensor::context* kept = made.get();
                keep(kept);
                if (kept == nullptr) ++refused;
            }
        });
        if (refused != 0) state.SkipWithError("a context was refused");
    };
    if (m.refusal.empty()) m.observe = [threads](observations& seen) { observe_threads<S>(threads, bytes, seen); };
    return m;
}

// All contexts that a load makes, made and dropped again; the buffers are owned and of the sizes that are needed.
template <class Slots, class Buffers = malloc_source>
struct load {
    explicit load(const std::vector<std::size_t>& sizes) : bytes(sizes) { made.reserve(bytes.size()); }

    /// Makes them in order up to the first refusal; the number made. `look` is called after each.
    template <class Look>
    std::size_t make(Look look) {
        for (const std::size_t size : bytes) {
            tensor::context_ptr next = home.try_make({.bytes = size});
            if (next == nullptr) break;
            made.push_back(std::move(next));
            look();
        }
        return made.size();
    }
    template <class Look>
    void drop(Look look) {
        for (tensor::context_ptr& each : made) {
            each.reset();
            look();
        }
        made.clear();
    }
    std::size_t make() {
        return make([] {});
    }
    void drop() {
        drop([] {});
    }

    std::vector<std::size_t> bytes;
    tensor::contexts<Slots, Buffers> home;
    std::vector<tensor::context_ptr> made;
};

template <class S>
void observe_load(const std::vector<std::size_t>& sizes, observations& seen) {
    const auto contexts = std::make_unique<load<watched<S>, counted_buffers>>(sizes);
    const auto& slots = contexts->home.slots();
    const auto& buffers = contexts->home.buffers();
    memory_watch memory;
    const auto look = [&] {
        memory.look(slots.traffic().live_bytes + buffers.traffic().live_bytes,
                    slots.usage().reserved_bytes + buffers.traffic().live_bytes);
    };
    look();
    auto& n = seen.counters;
    const std::size_t fit = contexts->make(look);
    n["contexts"] = static_cast<double>(fit);
    if constexpr (
        requires(S & s) { s.in_back(); } || requires(S & s) { s.base().in_back(); }) {
        n["contexts_in_front"] = static_cast<double>(fit - in_back(slots));
        n["contexts_in_back"] = static_cast<double>(in_back(slots));
    }
    contexts->drop(look);
    memory.tell_peaks(seen);
    memory.tell_timeline(seen);
    n["requested_bytes"] = static_cast<double>(sizes.size() * sizeof(tensor::context) +
                                               std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    count_rounds(
        seen, "round",
        [&] {
            contexts->make();
            contexts->drop();
        },
        [&] { return slots.usage() + usage_of(buffers.traffic()); });
}

template <class S>
measurement load_of(const std::vector<std::size_t>& sizes) {
    measurement m;
    const std::size_t fit = std::make_unique<load<S>>(sizes)->make();
    if (fit < sizes.size())
        m.refusal = refusal_at<S>(sizes.size()) + ", refused context " + std::to_string(fit + 1) + " of " +
                    std::to_string(sizes.size());
    m.operations = static_cast<double>(sizes.size());
    m.loop = [sizes](benchmark::State& state) {
        const auto contexts = std::make_unique<load<S>>(sizes);
        contexts->make();
        contexts->drop();
        for (auto _ : state) {
            benchmark::DoNotOptimize(contexts->make());
            contexts->drop();
        }
    };
    m.observe = [sizes](observations& seen) { observe_load<S>(sizes, seen); };
    return m;
}

template <class S>
measurement whisper_states(const parameters& p) {
    const auto& shape = *std::get<const tensor::whisper_shape*>(tensor::find_model("whisper-base")->shape);
    std::vector<std::size_t> sizes{tensor::whisper_model_context(shape).bytes()};
    const auto per_state = tensor::whisper_state_contexts(shape, number(p, "contexts") == 4);
    for (std::size_t state = 0; state < number(p, "states"); ++state)
        for (const auto& need : per_state) sizes.push_back(need.bytes());
    return load_of<S>(sizes);
}

template <class S>
measurement multi_gpu(const parameters& p) {
    std::vector<std::size_t> sizes;
    for (const auto& need :
         tensor::multi_gpu_load(*std::get<const tensor::llama_shape*>(tensor::find_model("llama-2-70b")->shape),
                                {.devices = static_cast<std::int32_t>(number(p, "devices")),
                                .loras = 4,
                                .control_vectors = 2,
                                .host_layers = 8}))
        sizes.push_back(need.bytes());
    return load_of<S>(sizes);
}

}  // namespace

void add_context_workloads(catalogue& c) {
    c.add<slot_strategies>(
        {.name = "context/init_free",
         .kind = "context",
         .title = "Make and drop a context over a caller's buffer while others are live",
         .question = "What the slot matters beside the rest of a context's set-up",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "live"},
        {{.name = "live",
          .values = {"0", "16", "63", "256"},
          .quick = {"0", "63"},
          .lowest = 0,
          .highest = 100'000,
          .full = {"0", "4", "8", "16", "32", "63", "256"}},
         {.name = "heap", .values = {"aged"}, .quick = {"aged"}, .full = {"aged", "bare", "littered"}}},
        [](auto tag, const parameters& p) { return context_pairs<typename decltype(tag)::type>(p); });
    c.add<slot_strategies>(
        {.name = "context/renew",
         .kind = "context",
         .title = "Use a context of 16 KiB again for one tensor: reset it, or free it and make another",
         .question = "What a reset saves against free and init, seen alone (whisper.cpp#2525)",
         .unit = "ns/use",
         .baseline = "",
         .axis = "context"},
        {{"context", {"reset", "fresh"}, {"reset", "fresh"}}},
        [](auto tag, const parameters& p) { return context_renewals<typename decltype(tag)::type>(p); });
    c.add<slot_strategies>(
        {.name = "context/threads",
         .kind = "context",
         .title = "Make and drop contexts with 16 KiB of their own in several threads",
         .question = "Whether threads wait for each other: up to the number of cores the time per pair stays level "
                     "when they do not",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "threads"},
        {{"threads", {"1", "2", "4"}, {"1", "2"}, 1, 256}},
        [](auto tag, const parameters& p) { return context_threads<typename decltype(tag)::type>(p); },
        [](auto tag) { return decltype(tag)::type::threads == thread_use::shared; });
    c.add<slot_strategies>(
        {.name = "context/whisper_states",
         .kind = "context",
         .title = "Make all contexts of so many whisper-base states and of their model, then drop them",
         .question = "How many states fit (7 contexts each, 4 after whisper.cpp#2525), and what making them costs",
         .unit = "ns/context",
         .baseline = "",
         .axis = "states"},
        {{"contexts", {"7", "4"}, {"7", "4"}},
         {.name = "states",
          .values = {"1", "4", "9", "10", "15", "16"},
          .quick = {"9", "10", "15", "16"},
          .lowest = 1,
          .highest = 1000,
          .full = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"}}},
        [](auto tag, const parameters& p) { return whisper_states<typename decltype(tag)::type>(p); });
    c.add<slot_strategies>(
        {.name = "context/multi_gpu_load",
         .kind = "context",
         .title = "Make all contexts that loading llama-2-70b with 4 adapters and 2 control vectors onto GPUs takes",
         .question = "Whether a loader that makes one context per buffer type runs into the pool's limit",
         .unit = "ns/context",
         .baseline = "",
         .axis = "devices"},
        {{.name = "devices",
          .values = {"1", "4", "8"},
          .quick = {"1", "8"},
          .lowest = 0,
          .highest = 16,
          .full = {"1", "2", "4", "8"}}},
        [](auto tag, const parameters& p) { return multi_gpu<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
