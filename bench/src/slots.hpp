// slots: what the workloads over context strategies share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "alloclab/concepts.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/context.hpp"

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

}  // namespace alloclab::bench
