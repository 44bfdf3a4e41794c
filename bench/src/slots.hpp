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
        for (auto _ : state)
            for (std::size_t i = 0; i < batch; ++i) all->once();
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

}  // namespace alloclab::bench
