// Contexts: slots alone, whole contexts, several threads, and the loads of whisper.cpp and llama.cpp.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <thread>

#include "alloclab/layer/counting.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "alloclab/tensor/models/whisper.hpp"
#include "catalogue.hpp"
#include "keep.hpp"

namespace alloclab::bench {
namespace {

using strategies = context_strategies<tensor::context>;
constexpr std::size_t large_pool = 1024;
using large_pools = type_list<heap<tensor::context>, static_pool<tensor::context, large_pool>,
                              hybrid<tensor::context, large_pool>, scan_pool<tensor::context, large_pool>>;
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

// Two slots are taken and given back in the order of taking, so that a pool that keeps one at hand searches too.
template <class S>
measurement pool_occupancy(const parameters& p) {
    const std::size_t live = number(p, "percent") * large_pool / 100;
    return {.loop =
                [live](benchmark::State& state) {
                    const auto pool = std::make_unique<occupied<S>>(live);
                    for (auto _ : state)
                        for (std::size_t i = 0; i < batch / 2; ++i) {
                            void* first = pool->strategy.acquire();
                            void* second = pool->strategy.acquire();
                            *static_cast<volatile std::byte*>(first) = std::byte{1};
                            *static_cast<volatile std::byte*>(second) = std::byte{1};
                            keep(first);
                            keep(second);
                            pool->strategy.release(first);
                            pool->strategy.release(second);
                        }
                },
            .operations = batch};
}

// Several slots die before as many are taken again, so that the order in which they lie free is mixed more and more.
template <class S>
measurement slot_replacement(const parameters& p) {
    static constexpr std::size_t at_once = 8;
    const std::size_t live = number(p, "live");
    measurement m;
    m.refusal = refusal_at<S>(live);
    m.operations = at_once;
    m.loop = [live](benchmark::State& state) {
        const auto pool = std::make_unique<occupied<S>>(live);
        std::vector<std::uint32_t> order(4096 * at_once);
        std::mt19937 random(7);
        for (std::size_t i = 0; i < order.size(); ++i) {
            // No slot twice within one group.
            std::uint32_t* group = &order[i / at_once * at_once];
            do order[i] = static_cast<std::uint32_t>(random() % live);
            while (std::find(group, &order[i], order[i]) != &order[i]);
        }
        std::size_t next = 0;
        const auto replace = [&] {
            const std::uint32_t* group = &order[next];
            next = (next + at_once) % order.size();
            for (std::size_t i = 0; i < at_once; ++i) pool->strategy.release(pool->held[group[i]]);
            for (std::size_t i = 0; i < at_once; ++i) {
                void*& slot = pool->held[group[i]];
                slot = pool->strategy.acquire();
                *static_cast<volatile std::byte*>(slot) = std::byte{1};
            }
        };
        for (std::size_t i = 0; i < 1000; ++i) replace();
        for (auto _ : state) replace();
    };
    return m;
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

// Each thread makes and drops contexts of its own with an owned buffer. All begin together behind a spin; the time is
// that of the thread that took longest, from its own first pair to its own last, so waking up is not in it.
template <class S>
measurement context_threads(const parameters& p) {
    static constexpr std::size_t pairs = 5000;  // of each thread, per iteration
    const std::size_t threads = number(p, "threads");
    measurement m;
    m.refusal = refusal_at<S>(threads);
    m.operations = pairs;
    m.times_itself = true;
    m.loop = [threads](benchmark::State& state) {
        using clock = std::chrono::steady_clock;
        const auto home = std::make_unique<tensor::contexts<S>>();
        std::vector<clock::duration> took(threads);
        std::atomic<std::size_t> ready{0}, refused{0};
        std::barrier gate(static_cast<std::ptrdiff_t>(threads + 1));
        bool stop = false;  // written before the gate opens
        const auto work = [&](std::size_t thread) {
            for (;;) {
                gate.arrive_and_wait();
                if (stop) return;
                ++ready;
                while (ready.load() < threads) std::this_thread::yield();
                const auto start = clock::now();
                for (std::size_t i = 0; i < pairs; ++i) {
                    const tensor::context_ptr made = home->try_make({.bytes = 16384});
                    tensor::context* kept = made.get();
                    keep(kept);
                    if (kept == nullptr) ++refused;
                }
                took[thread] = clock::now() - start;
                gate.arrive_and_wait();
            }
        };
        std::vector<std::jthread> workers;
        for (std::size_t t = 0; t < threads; ++t) workers.emplace_back(work, t);
        for (auto _ : state) {
            ready = 0;
            gate.arrive_and_wait();
            gate.arrive_and_wait();
            state.SetIterationTime(std::chrono::duration<double>(*std::max_element(took.begin(), took.end())).count());
        }
        stop = true;
        gate.arrive_and_wait();
        if (refused != 0) state.SkipWithError("a context was refused");
    };
    return m;
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
    const std::size_t fit = contexts->run();
    n["contexts"] = static_cast<double>(fit);
    const traffic of_slots = contexts->home.slots().traffic();
    const traffic of_buffers = contexts->home.buffers().traffic();
    n["peak_bytes"] = static_cast<double>(of_slots.peak_bytes + of_buffers.peak_bytes);
    std::size_t reserved = of_slots.peak_bytes;
    if constexpr (measured<S>) reserved = contexts->home.slots().usage().reserved_bytes;
    n["reserved_bytes"] = static_cast<double>(reserved + of_buffers.peak_bytes);
    const auto spilled = [&n, fit](std::size_t in_back) {
        n["contexts_in_front"] = static_cast<double>(fit - in_back);
        n["contexts_in_back"] = static_cast<double>(in_back);
    };
    S& slots = contexts->home.slots().base();
    if constexpr (requires { slots.in_back(); }) spilled(slots.in_back());
    else if constexpr (requires { slots.base().in_back(); }) spilled(slots.base().in_back());
}

template <class S>
measurement load_of(const std::vector<std::size_t>& sizes) {
    measurement m;
    const std::size_t fit = std::make_unique<load<S>>(sizes)->run();
    if (fit < sizes.size())
        m.refusal = refusal_at<S>(sizes.size()) + ", refused context " + std::to_string(fit + 1) + " of " +
                    std::to_string(sizes.size());
    m.operations = static_cast<double>(sizes.size());
    m.loop = [sizes](benchmark::State& state) {
        const auto contexts = std::make_unique<load<S>>(sizes);
        contexts->run();
        contexts->made.clear();
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
                       .title = "Release 8 random ones of the live context slots, then acquire 8",
                       .question = "What the same costs when slots die in no order",
                       .unit = "ns/pair",
                       .baseline = "",
                       .axis = "live"},
                      {{"live", {"8", "16", "48", "64", "256", "1024"}, {"8", "48", "256"}, 8, 1'000'000}},
                      [](auto tag, const parameters& p) { return slot_replacement<typename decltype(tag)::type>(p); });
    c.add<large_pools>({.name = "context/occupancy",
                        .kind = "context",
                        .title = "Acquire and release one of 1024 slots, by how many of them are live",
                        .question = "What a pool's search for a free slot costs as it fills up",
                        .unit = "ns/pair",
                        .baseline = "",
                        .axis = "percent"},
                       {{"percent", {"1", "6", "25", "50", "75", "94", "99"}, {"1", "50", "99"}, 1, 99}},
                       [](auto tag, const parameters& p) { return pool_occupancy<typename decltype(tag)::type>(p); });
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
         .title = "Make all contexts of so many whisper-base states and of their model, then drop them",
         .question = "How many states fit (7 contexts each, 4 after whisper.cpp#2525), and what making them costs",
         .unit = "ns/context",
         .baseline = "",
         .axis = "states"},
        {{"contexts", {"7", "4"}, {"7", "4"}},
         {"states", {"1", "4", "9", "10", "15", "16"}, {"1", "9", "10", "16"}, 1, 1000}},
        [](auto tag, const parameters& p) { return whisper_states<typename decltype(tag)::type>(p); });
    c.add<strategies>(
        {.name = "context/multi_gpu_load",
         .kind = "context",
         .title = "Make all contexts that loading llama-2-70b with 4 adapters and 2 control vectors onto GPUs takes",
         .question = "Whether a loader that makes one context per buffer type runs into the pool's limit",
         .unit = "ns/context",
         .baseline = "",
         .axis = "devices"},
        {{"devices", {"1", "2", "4", "8"}, {"1", "8"}, 0, 16}},
        [](auto tag, const parameters& p) { return multi_gpu<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
