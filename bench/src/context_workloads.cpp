// Contexts: slots alone, whole contexts, several threads, and the loads of whisper.cpp and llama.cpp.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <thread>

#include "alloclab/layer/counting.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/whisper.hpp"
#include "catalogue.hpp"
#include "keep.hpp"

namespace alloclab::bench {
namespace {

using strategies = context_strategies<tensor::context>;
constexpr std::size_t batch = 64;  // operations per iteration, so that the loop itself does not count

template <class S>
std::string refusal_at(std::size_t live) {
    if constexpr (bounded<S>) {
        if (live > S::capacity)
            return "full at " + std::to_string(S::capacity) + " of " + std::to_string(S::capacity) + " slots";
    }
    return {};
}

/// A strategy with `live` of its slots taken.
template <class S>
struct occupied {
    explicit occupied(std::size_t live) : held(live) {
        for (void*& slot : held) slot = strategy.acquire();
    }
    ~occupied() {
        for (void* slot : held) strategy.release(slot);
    }
    occupied(const occupied&) = delete;
    occupied& operator=(const occupied&) = delete;

    S strategy;
    std::vector<void*> held;
};

template <class S>
measurement slot_pairs(const parameters& p) {
    const std::size_t live = number(p, "live");
    return {.loop =
                [live](benchmark::State& state) {
                    const auto pool = std::make_unique<occupied<S>>(live);
                    for (auto _ : state)
                        for (std::size_t i = 0; i < batch; ++i) {
                            void* slot = pool->strategy.acquire();
                            *static_cast<volatile std::byte*>(slot) = std::byte{1};
                            keep(slot);
                            pool->strategy.release(slot);
                        }
                },
            .operations = batch,
            .refusal = refusal_at<S>(live + 1)};
}

template <class S>
measurement slot_replacement(const parameters& p) {
    const std::size_t live = number(p, "live");
    return {.loop =
                [live](benchmark::State& state) {
                    const auto pool = std::make_unique<occupied<S>>(live);
                    std::vector<std::uint32_t> order(4096);
                    std::mt19937 random(7);
                    for (std::uint32_t& at : order) at = static_cast<std::uint32_t>(random() % live);
                    std::size_t next = 0;
                    for (auto _ : state)
                        for (std::size_t i = 0; i < batch; ++i) {
                            void*& slot = pool->held[order[next++ % order.size()]];
                            pool->strategy.release(slot);
                            slot = pool->strategy.acquire();
                            *static_cast<volatile std::byte*>(slot) = std::byte{1};
                        }
                },
            .operations = batch,
            .refusal = refusal_at<S>(live)};
}

// As ggml_init and ggml_free with a caller's buffer.
template <class S>
measurement context_pairs(const parameters& p) {
    const std::size_t live = number(p, "live");
    return {.loop =
                [live](benchmark::State& state) {
                    const auto home = std::make_unique<tensor::contexts<S>>();
                    std::vector<std::byte> buffer(1024);
                    const tensor::context_options options{.bytes = buffer.size(), .buffer = buffer};
                    std::vector<tensor::context_ptr> held;
                    for (std::size_t i = 0; i < live; ++i) held.push_back(home->make(options));
                    for (auto _ : state)
                        for (std::size_t i = 0; i < batch; ++i) {
                            const tensor::context_ptr made = home->try_make(options);
                            tensor::context* kept = made.get();
                            keep(kept);
                        }
                },
            .operations = batch,
            .refusal = refusal_at<S>(live + 1)};
}

// Each thread makes and drops contexts of its own with an owned buffer; times are taken inside the threads, from the
// first start to the last end, so that no thread is measured while it waits for the others to begin.
template <class S>
measurement context_threads(const parameters& p) {
    static constexpr std::size_t pairs = 2000;  // of each thread, per iteration
    const std::size_t threads = number(p, "threads");
    return {
        .loop =
            [threads](benchmark::State& state) {
                using clock = std::chrono::steady_clock;
                const auto home = std::make_unique<tensor::contexts<S>>();
                std::vector<clock::time_point> starts(threads), ends(threads);
                std::barrier gate(static_cast<std::ptrdiff_t>(threads + 1));
                bool stop = false;  // written before the gate opens
                std::vector<std::jthread> workers;
                for (std::size_t t = 0; t < threads; ++t)
                    workers.emplace_back([&, t] {
                        for (;;) {
                            gate.arrive_and_wait();
                            if (stop) return;
                            starts[t] = clock::now();
                            for (std::size_t i = 0; i < pairs; ++i) {
                                const tensor::context_ptr made = home->try_make({.bytes = 16384});
                                tensor::context* kept = made.get();
                                keep(kept);
                            }
                            ends[t] = clock::now();
                            gate.arrive_and_wait();
                        }
                    });
                for (auto _ : state) {
                    gate.arrive_and_wait();
                    gate.arrive_and_wait();
                    const auto first = *std::min_element(starts.begin(), starts.end());
                    const auto last = *std::max_element(ends.begin(), ends.end());
                    state.SetIterationTime(std::chrono::duration<double>(last - first).count());
                }
                stop = true;
                gate.arrive_and_wait();
            },
        .operations = pairs,
        .times_itself = true,
    };
}

// All contexts that a load makes, made and dropped again; the buffers are owned and of the sizes that are needed.
template <class Slots, class Buffers = malloc_source>
struct load {
    explicit load(const std::vector<std::size_t>& sizes) : bytes(sizes) { made.reserve(bytes.size()); }

    /// Contexts that could be made, in order, up to the first refusal.
    std::size_t run() {
        for (const std::size_t size : bytes) {
            tensor::context_ptr next = home.try_make({.bytes = size});
            if (next == nullptr) break;
            made.push_back(std::move(next));
        }
        return made.size();
    }

    std::vector<std::size_t> bytes;
    tensor::contexts<Slots, Buffers> home;
    std::vector<tensor::context_ptr> made;
};

template <class S>
void observe_load(const std::vector<std::size_t>& sizes, observations& seen) {
    using buffers = compose<malloc_source, counting>;
    const auto contexts = std::make_unique<load<compose<S, counting>, buffers>>(sizes);
    auto& n = seen.counters;
    n["contexts"] = static_cast<double>(contexts->run());
    const traffic of_slots = contexts->home.slots().traffic();
    const traffic of_buffers = contexts->home.buffers().traffic();
    n["peak_bytes"] = static_cast<double>(of_slots.peak_bytes + of_buffers.peak_bytes);
    std::size_t reserved = of_slots.peak_bytes;
    if constexpr (measured<S>) reserved = contexts->home.slots().usage().reserved_bytes;
    n["reserved_bytes"] = static_cast<double>(reserved + of_buffers.peak_bytes);
    if constexpr (requires(S & s) { s.in_back(); })
        n["contexts_in_back"] = static_cast<double>(contexts->home.slots().base().in_back());
}

template <class S>
measurement load_of(const std::vector<std::size_t>& sizes) {
    measurement m;
    const std::size_t fit = std::make_unique<load<S>>(sizes)->run();
    if (fit < sizes.size())
        m.refusal = "refused context " + std::to_string(fit + 1) + " of " + std::to_string(sizes.size());
    m.operations = static_cast<double>(sizes.size());
    m.loop = [sizes](benchmark::State& state) {
        const auto contexts = std::make_unique<load<S>>(sizes);
        for (auto _ : state) {
            benchmark::DoNotOptimize(contexts->run());
            contexts->made.clear();
        }
    };
    m.observe = [sizes](observations& seen) { observe_load<S>(sizes, seen); };
    return m;
}

template <class S>
measurement whisper_states(const parameters& p) {
    const auto& shape = tensor::whisper_shapes[1];
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
         tensor::multi_gpu_load(tensor::llama_shapes[2], {.devices = static_cast<std::int32_t>(number(p, "devices")),
                                                         .loras = 4,
                                                         .control_vectors = 2,
                                                         .host_layers = 8}))
        sizes.push_back(need.bytes());
    return load_of<S>(sizes);
}

const std::vector<std::string> live_counts{"0", "1", "4", "8", "16", "32", "48", "63", "128", "256", "1024"};
const std::vector<std::string> few_live_counts{"0", "8", "63", "256"};

}  // namespace

void add_context_workloads(catalogue& c) {
    c.add<strategies>({.name = "context/slots",
                       .kind = "context",
                       .title = "Acquire and release one context slot while others are live",
                       .question = "Whether a pool beats malloc, and up to how many live contexts",
                       .unit = "ns/pair",
                       .baseline = "",
                       .axis = "live"},
                      {{"live", live_counts, few_live_counts, 0, 1'000'000}},
                      [](auto tag, const parameters& p) { return slot_pairs<typename decltype(tag)::type>(p); });
    c.add<strategies>({.name = "context/replace",
                       .kind = "context",
                       .title = "Replace a random one of the live context slots",
                       .question = "What the same costs when slots die in no order",
                       .unit = "ns/pair",
                       .baseline = "",
                       .axis = "live"},
                      {{"live", {"1", "4", "16", "48", "64", "256", "1024"}, {"4", "48", "256"}, 1, 1'000'000}},
                      [](auto tag, const parameters& p) { return slot_replacement<typename decltype(tag)::type>(p); });
    c.add<strategies>({.name = "context/init_free",
                       .kind = "context",
                       .title = "Make and drop a context over a caller's buffer while others are live",
                       .question = "What the slot matters beside the rest of a context's set-up",
                       .unit = "ns/pair",
                       .baseline = "",
                       .axis = "live"},
                      {{"live", {"0", "4", "8", "16", "32", "63", "256"}, {"0", "63"}, 0, 100'000}},
                      [](auto tag, const parameters& p) { return context_pairs<typename decltype(tag)::type>(p); });
    c.add<strategies>(
        {.name = "context/threads",
         .kind = "context",
         .title = "Make and drop contexts with 16 KiB of their own in several threads",
         .question = "Whether threads wait for each other: time per pair and thread stays level when they do not",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "threads"},
        {{"threads", {"1", "2"}, {"1", "2"}, 1, 256}},
        [](auto tag, const parameters& p) { return context_threads<typename decltype(tag)::type>(p); },
        [](auto tag) { return decltype(tag)::type::threads == thread_use::shared; });
    c.add<strategies>(
        {.name = "context/whisper_states",
         .kind = "context",
         .title = "Make all contexts of parallel whisper states and of their model, and drop them",
         .question = "How many states fit (7 contexts each, 4 after whisper.cpp#2525), and what making them costs",
         .unit = "ns/context",
         .baseline = "",
         .axis = "states"},
        {{"contexts", {"7", "4"}, {"7", "4"}},
         {"states", {"1", "4", "9", "10", "15", "16"}, {"1", "9", "10", "16"}, 1, 1000}},
        [](auto tag, const parameters& p) { return whisper_states<typename decltype(tag)::type>(p); });
    c.add<strategies>({.name = "context/multi_gpu_load",
                       .kind = "context",
                       .title = "Make all contexts that loading llama-2-70b with 4 adapters onto several GPUs takes",
                       .question = "Whether a loader that makes one context per buffer type runs into the pool's limit",
                       .unit = "ns/context",
                       .baseline = "",
                       .axis = "devices"},
                      {{"devices", {"1", "2", "4", "8"}, {"1", "8"}, 0, 16}},
                      [](auto tag, const parameters& p) { return multi_gpu<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
