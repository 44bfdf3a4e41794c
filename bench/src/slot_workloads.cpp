// Slots alone: taken and given back while others are live, in no order, from a pool that fills up, out of cold caches.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>

#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"
#include "process.hpp"
#include "slots.hpp"

namespace alloclab::bench {
namespace {

constexpr std::size_t large_pool = 1024;
using large_pools = type_list<heap<tensor::context>, static_pool<tensor::context, large_pool>,
                              hybrid<tensor::context, large_pool>, scan_pool<tensor::context, large_pool>>;

template <class S>
[[nodiscard]] void* take(S& strategy) noexcept {
    void* slot = strategy.acquire();
    *static_cast<volatile std::byte*>(slot) = std::byte{1};
    return slot;
}

template <class S>
struct pairs : occupied<S> {
    using occupied<S>::occupied;
    using occupied<S>::strategy;

    [[gnu::always_inline]] void once() noexcept {
        void* slot = take(strategy);
        keep(slot);
        strategy.release(slot);
    }
    /// Both are given back in the order of taking, so that a pool that keeps one at hand searches too.
    void two_pairs() noexcept {
        void* first = take(strategy);
        void* second = take(strategy);
        keep(first);
        keep(second);
        strategy.release(first);
        strategy.release(second);
    }
    /// Where the strategy is watched.
    template <class Round>
    void observe(observations& seen, Round round) const {
        observe_rounds(seen, round, strategy);
    }
};

template <class S>
measurement slot_pairs(const parameters& p) {
    return batches_beside<S, pairs<S>, pairs<watched<S>>>(p);
}

template <class S>
measurement pool_occupancy(const parameters& p) {
    const std::size_t live = number(p, "percent") * large_pool / 100;
    const auto round = [](auto& pool) {
        for (std::size_t i = 0; i < batch / 2; ++i) pool.two_pairs();
    };
    measurement m;
    m.operations = batch;
    m.loop = [=](benchmark::State& state) {
        const auto pool = std::make_unique<pairs<S>>(live);
        for (auto _ : state) round(*pool);
    };
    m.observe = [=](observations& seen) {
        const auto pool = std::make_unique<pairs<watched<S>>>(live);
        pool->observe(seen, [&] { round(*pool); });
    };
    return m;
}

/// Several slots die before as many are taken again, so that the order in which they lie free is mixed more and more.
template <class S>
struct replacement : pairs<S> {
    static constexpr std::size_t at_once = 8;

    explicit replacement(std::size_t live) : pairs<S>(live), order(1024 * at_once) {
        std::mt19937 random(7);
        for (std::size_t i = 0; i < order.size(); ++i) {
            // No slot twice within one group.
            std::uint32_t* group = &order[i / at_once * at_once];
            do order[i] = static_cast<std::uint32_t>(random() % live);
            while (std::find(group, &order[i], order[i]) != &order[i]);
        }
        for (std::size_t i = 0; i < 1000; ++i) replace<at_once>();
    }

    template <std::size_t Count>
    void replace() noexcept {
        const std::uint32_t* group = &order[next];
        next = (next + Count) % order.size();
        for (std::size_t i = 0; i < Count; ++i) this->strategy.release(this->held[group[i]]);
        for (std::size_t i = 0; i < Count; ++i) this->held[group[i]] = take(this->strategy);
    }

    std::vector<std::uint32_t> order;
    std::size_t next = 0;
};

template <class S>
measurement slot_replacement(const parameters& p) {
    constexpr std::size_t at_once = replacement<S>::at_once;
    const std::size_t live = number(p, "live");
    measurement m;
    m.refusal = refusal_at<S>(live);
    if (!m.refusal.empty()) return m;
    m.operations = at_once;
    m.loop = [live](benchmark::State& state) {
        const auto pool = std::make_unique<replacement<S>>(live);
        for (auto _ : state) pool->template replace<at_once>();
    };
    m.single = [live] { return [pool = std::make_shared<replacement<S>>(live)] { pool->template replace<1>(); }; };
    m.observe = [live](observations& seen) {
        const auto pool = std::make_unique<replacement<watched<S>>>(live);
        pool->observe(seen, [&] { pool->template replace<at_once>(); });
    };
    return m;
}

template <class S>
measurement cold_slots(const parameters& p) {
    static constexpr std::size_t live = 8, at_once = 8;
    const bool cold = p.at("cache") == "cold";
    const auto round = [](auto& strategy) {
        std::array<void*, at_once> taken;
        for (void*& slot : taken) slot = take(strategy);
        for (void* slot : taken) strategy.release(slot);
    };
    measurement m;
    m.operations = at_once;
    m.times_itself = true;
    m.iterations = cold ? 24 : 0;  // each takes a thousand times as long as what is timed of it
    m.loop = [=](benchmark::State& state) {
        using clock = std::chrono::steady_clock;
        const auto pool = std::make_unique<pairs<S>>(live);
        for (std::size_t i = 0; i < 10; ++i) round(pool->strategy);
        for (auto _ : state) {
            if (cold) cool_caches();
            const auto start = clock::now();
            round(pool->strategy);
            state.SetIterationTime(std::chrono::duration<double>(clock::now() - start).count());
        }
    };
    m.observe = [round](observations& seen) {
        const auto pool = std::make_unique<pairs<watched<S>>>(live);
        pool->observe(seen, [&] { round(pool->strategy); });
    };
    return m;
}

const std::vector<std::string> all_live_counts{"0", "1", "4", "8", "16", "32", "48", "63", "128", "256", "1024"};

}  // namespace

void add_slot_workloads(catalogue& c) {
    c.add<slot_strategies>({.name = "context/slots",
                            .kind = "context",
                            .title = "Acquire and release one context slot while others are live",
                            .question = "Whether a pool beats malloc, and up to how many live contexts",
                            .unit = "ns/pair",
                            .baseline = "",
                            .axis = "live"},
                           {{.name = "live",
                             .values = {"0", "4", "8", "16", "32", "63", "256"},
                             .quick = {"0", "8", "63", "256"},
                             .lowest = 0,
                             .highest = 1'000'000,
                             .full = all_live_counts}},
                           [](auto tag, const parameters& p) { return slot_pairs<typename decltype(tag)::type>(p); });
    c.add<slot_strategies>(
        {.name = "context/replace",
         .kind = "context",
         .title = "Release 8 random ones of the live context slots, then acquire 8",
         .question = "What the same costs when slots die in no order",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "live"},
        {{.name = "live",
          .values = {"8", "16", "48", "256"},
          .quick = {"8", "48", "256"},
          .lowest = 8,
          .highest = 1'000'000,
          .full = {"8", "16", "48", "64", "256", "1024"}}},
        [](auto tag, const parameters& p) { return slot_replacement<typename decltype(tag)::type>(p); });
    c.add<large_pools>({.name = "context/occupancy",
                        .kind = "context",
                        .title = "Acquire and release one of 1024 slots, by how many of them are live",
                        .question = "What a pool's search for a free slot costs as it fills up",
                        .unit = "ns/pair",
                        .baseline = "",
                        .axis = "percent"},
                       {{.name = "percent",
                         .values = {"1", "25", "50", "75", "99"},
                         .quick = {"1", "50", "99"},
                         .lowest = 1,
                         .highest = 99,
                         .full = {"1", "6", "25", "50", "75", "94", "99"}}},
                       [](auto tag, const parameters& p) { return pool_occupancy<typename decltype(tag)::type>(p); });
    c.add<slot_strategies>(
        {.name = "context/cold",
         .kind = "context",
         .title = "Acquire 8 context slots, write to each and release them, caches warm or cold: after "
                  "4 MiB of other memory were written",
         .question = "What a strategy costs when the work between two calls has emptied the caches; "
                     "an eighth of one reading of the clock is in each pair",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "cache"},
        {{"cache", {"warm", "cold"}, {"warm", "cold"}}},
        [](auto tag, const parameters& p) { return cold_slots<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
