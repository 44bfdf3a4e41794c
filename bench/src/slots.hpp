// slots: what the workloads over context strategies share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "alloclab/concepts.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/context.hpp"
#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"

namespace alloclab::bench {

using slot_strategies = context_strategies<tensor::context>;
constexpr std::size_t batch = 64;  // operations per iteration, so that the loop itself does not count

/// Why a strategy cannot hold so many slots, "" when it can.
template <class S>
[[nodiscard]] std::string refusal_at(std::size_t live) {
    if constexpr (bounded<S>) {
        if (live > S::capacity)
            return "full at " + std::to_string(S::capacity) + " of " + std::to_string(S::capacity) + " slots";
    }
    return {};
}

/// `batch` calls of `once()` in each iteration, timed one by one too, and counted by `observe(seen, round)`. Of is made
/// from `how`, and Watched, the same over what counts.
template <class Of, class Watched, class How>
[[nodiscard]] measurement batches(How how) {
    measurement m;
    m.operations = batch;
    m.loop = [how](benchmark::State& state) {
        const auto all = std::make_unique<Of>(how);
        Of& one = *all;  // the pointer itself lies where keep() says that anything may have changed
        for (auto _ : state)
            for (std::size_t i = 0; i < batch; ++i) one.once();
    };
    m.single = [how] { return [all = std::make_shared<Of>(how)] { all->once(); }; };
    m.observe = [how](observations& seen) {
        const auto all = std::make_unique<Watched>(how);
        all->observe(seen, [&] {
            for (std::size_t i = 0; i < batch; ++i) all->once();
        });
    };
    return m;
}

/// The same beside `live` others, which Of holds; refused where S has no room for them and one more.
template <class S, class Of, class Watched>
[[nodiscard]] measurement batches_beside(const parameters& p) {
    const std::size_t live = number(p, "live");
    if (std::string full = refusal_at<S>(live + 1); !full.empty()) return {.refusal = std::move(full)};
    return batches<Of, Watched>(live);
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

/// `live` contexts over a caller's buffer, as ggml_init makes them.
template <class S>
struct inhabited {
    explicit inhabited(std::size_t live) {
        for (std::size_t i = 0; i < live; ++i) held.push_back(home.make(options));
    }
    /// ggml_init and ggml_free of one more.
    [[gnu::always_inline]] void once() noexcept {
        tensor::context_ptr made = home.try_make(options);
        tensor::context* kept = made.get();
        keep(kept);
    }
    /// Where the slots are watched.
    template <class Round>
    void observe(observations& seen, Round round) const {
        observe_rounds(seen, round, home.slots());
    }

    std::vector<std::byte> buffer = std::vector<std::byte>(1024);
    tensor::context_options options{.bytes = buffer.size(), .buffer = buffer};
    tensor::contexts<S> home;
    std::vector<tensor::context_ptr> held;
};

template <class S>
measurement context_pairs(const parameters& p) {
    return batches_beside<S, inhabited<S>, inhabited<watched<S>>>(p);
}

}  // namespace alloclab::bench
