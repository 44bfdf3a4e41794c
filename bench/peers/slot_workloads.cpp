// Slots of 96 bytes, ours beside other people's: one at a time, in no order, released by another thread, in several
// threads. Header strategies are inlined into the loop, the C library's functions called directly, other malloc
// families through a pointer.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"
#include "order.hpp"
#include "pinned.hpp"
#include "registry.hpp"
#include "slots.hpp"
#include "together.hpp"
#include "touch.hpp"

namespace alloclab::bench {
namespace {

/// Watches a peer too, which may not know how many slots are live.
template <class S>
struct watched_peer : watched<S> {
    [[nodiscard]] struct usage usage() const noexcept {
        struct usage all = watched<S>::usage();
        all.live = this->traffic().live;
        return all;
    }
};

/// What a peer holds beyond what was asked of it, and how often it asks the system, it does not tell.
template <class S, class Round>
void observe_peer(observations& seen, Round round, const watched_peer<S>& slots) {
    observe_rounds(seen, round, slots);
    if constexpr (!measured<S>)
        for (const char* untold : {"reserved_bytes", "source_calls_per_round"}) seen.counters.erase(untold);
}

/// One acquire and release after another.
template <class S>
struct pairs : occupied<S> {
    using occupied<S>::occupied;
    using occupied<S>::strategy;

    [[gnu::always_inline]] void once() noexcept {
        void* slot = strategy.acquire();
        peers::touch(slot);
        strategy.release(slot);
    }
    template <class Round>
    void observe(observations& seen, Round round) const {
        observe_peer(seen, round, strategy);
    }
};

template <class S>
measurement slot_pairs(const parameters& p) {
    return batches_beside<S, pairs<S>, pairs<watched_peer<S>>>(p);
}

/// `live` slots, each cleared, then released in one of many random orders.
template <class S>
struct crowd {
    static constexpr std::size_t orders = 64;

    explicit crowd(std::size_t live) : held(live) {
        for (std::size_t i = 0; i < orders; ++i)
            for (const std::size_t next : shuffled(live, 7, i)) order.push_back(next);
    }
    void round() noexcept {
        for (void*& slot : held) {
            slot = strategy.acquire();
            peers::clear(slot);
        }
        const std::size_t* released = &order[held.size() * turn];
        turn = (turn + 1) % orders;
        for (std::size_t i = 0; i < held.size(); ++i) strategy.release(held[released[i]]);
    }

    S strategy;
    std::vector<void*> held;
    std::vector<std::size_t> order;
    std::size_t turn = 0;
};

template <class S>
measurement random_releases(const parameters& p) {
    const std::size_t live = number(p, "live");
    measurement m;
    m.refusal = refusal_at<S>(live);
    m.operations = static_cast<double>(live);
    m.loop = [live](benchmark::State& state) {
        const auto all = std::make_unique<crowd<S>>(live);
        for (auto _ : state) all->round();
    };
    m.observe = [live](observations& seen) {
        const auto all = std::make_unique<crowd<watched_peer<S>>>(live);
        observe_peer(
            seen, [&] { all->round(); }, all->strategy);
    };
    return m;
}

/// What one thread hands to another, a batch at a time.
struct alignas(64) lane {
    std::atomic<bool> full{false};
    std::array<void*, 64> slots{};

    /// Spins for a while, then lets others have the core; false when `stop` came first.
    [[nodiscard]] bool await(bool wanted, const std::atomic<bool>& stop) const noexcept {
        constexpr std::size_t patience = 200;
        for (std::size_t i = 0; full.load(std::memory_order_acquire) != wanted; ++i) {
            if (i < patience) {
#if defined(__x86_64__)
                __builtin_ia32_pause();
#endif
                continue;
            }
            if (stop.load(std::memory_order_relaxed)) return false;
            std::this_thread::yield();
        }
        return true;
    }
};

// One thread acquires, another on another CPU releases; two batches are on the way. The time on the wall from the
// first acquire to the last release.
template <class S>
measurement foreign_releases(const parameters& p) {
    static constexpr std::size_t rounds = 1024;  // batches of an iteration
    const std::size_t size = number(p, "batch");
    measurement m;
    m.refusal = refusal_at<S>(2 * size);
    m.operations = static_cast<double>(rounds * size);
    m.times_itself = true;
    m.loop = [size](benchmark::State& state) {
        using clock = std::chrono::steady_clock;
        const auto strategy = std::make_unique<S>();
        std::array<lane, 2> lanes;
        std::atomic<bool> stop{false};
        std::jthread releasing([&] {
            const peers::pinned here(1);
            for (std::size_t n = 0; lanes[n].await(true, stop); n ^= 1) {
                for (std::size_t i = 0; i < size; ++i) strategy->release(lanes[n].slots[i]);
                lanes[n].full.store(false, std::memory_order_release);
            }
        });
        const peers::pinned here(0);
        for (auto _ : state) {
            const auto start = clock::now();
            for (std::size_t round = 0; round < rounds; ++round) {
                lane& next = lanes[round % 2];
                if (!next.await(false, stop)) break;
                for (std::size_t i = 0; i < size; ++i) {
                    void* slot = strategy->acquire();
                    peers::touch(slot);
                    next.slots[i] = slot;
                }
                next.full.store(true, std::memory_order_release);
            }
            for (const lane& each : lanes)
                if (!each.await(false, stop)) break;
            state.SetIterationTime(std::chrono::duration<double>(clock::now() - start).count());
        }
        stop = true;
    };
    m.observe = [size](observations& seen) {
        const auto strategy = std::make_unique<watched_peer<S>>();
        std::vector<void*> slots(size);
        observe_peer(
            seen,
            [&] {
                for (void*& slot : slots) slot = strategy->acquire();
                for (void* slot : slots) strategy->release(slot);
            },
            *strategy);
    };
    return m;
}

// Each thread acquires and releases slots of its own; the strategy is the same.
template <class S>
measurement pairs_in_threads(const parameters& p) {
    static constexpr std::size_t count = 50'000;  // of each thread, per iteration
    const std::size_t threads = number(p, "threads");
    measurement m;
    m.refusal = refusal_at<S>(threads);
    m.operations = count;
    m.times_itself = true;
    m.loop = [threads](benchmark::State& state) {
        const auto all = std::make_unique<pairs<S>>(0);
        time_together(state, threads, [&](std::size_t) {
            for (std::size_t i = 0; i < count; ++i) all->once();
        });
    };
    m.observe = [threads](observations& seen) {
        const auto all = std::make_unique<pairs<watched_peer<S>>>(threads - 1);
        all->observe(seen, [&] { all->once(); });
    };
    return m;
}

}  // namespace

void add_peer_slot_workloads(catalogue& c) {
    using all = peers::slot_contenders;
    const auto fits = [](auto tag) { return peers::contends<typename decltype(tag)::type>; };
    const auto is_shared = [](auto tag) {
        using S = typename decltype(tag)::type;
        return peers::contends<S> && S::threads == thread_use::shared;
    };
    c.add<all>(
        {.name = "peers/slots",
         .kind = "peer",
         .title = "Acquire, touch and release one slot of 96 bytes while others are live",
         .question = "What a slot costs, ours and other people's, and how far that is from no allocator",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "live"},
        {{.name = "live",
          .values = {"0", "8", "32", "63", "128", "1024"},
          .quick = {"0", "63", "128", "1024"},
          .lowest = 0,
          .highest = 1'000'000}},
        [](auto tag, const parameters& p) { return slot_pairs<typename decltype(tag)::type>(p); }, fits);
    c.add<all>(
        {.name = "peers/random",
         .kind = "peer",
         .title = "Acquire and clear so many slots of 96 bytes, then release them in random order",
         .question = "What the same costs when slots die in no order, beside the same loop with no allocator",
         .unit = "ns/slot",
         .baseline = "",
         .axis = "live"},
        {{.name = "live", .values = {"48"}, .quick = {"48"}, .lowest = 1, .highest = 64}},  // those of no_allocator
        [](auto tag, const parameters& p) { return random_releases<typename decltype(tag)::type>(p); }, fits);
    c.add<all>(
        {.name = "peers/foreign",
         .kind = "peer",
         .title = "One thread acquires and touches slots of 96 bytes, another releases them, a batch at a time",
         .question = "What a release by another thread costs, the hand-over of the addresses included",
         .unit = "ns/slot",
         .baseline = "",
         .axis = "batch"},
        {{.name = "batch", .values = {"16"}, .quick = {"16"}, .lowest = 1, .highest = 64}},
        [](auto tag, const parameters& p) { return foreign_releases<typename decltype(tag)::type>(p); }, is_shared);
    c.add<all>(
        {.name = "peers/threads",
         .kind = "peer",
         .title = "Acquire, touch and release slots of 96 bytes in several threads, each its own",
         .question = "Whether threads wait for each other: up to the number of cores the time per pair stays level "
                     "when they do not",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "threads"},
        {{.name = "threads", .values = {"1", "2"}, .quick = {"1", "2"}, .lowest = 1, .highest = 256}},
        [](auto tag, const parameters& p) { return pairs_in_threads<typename decltype(tag)::type>(p); }, is_shared);
}

}  // namespace alloclab::bench
