// order: random orders that are the same on every machine and with every standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace alloclab::bench {

/// The numbers from 0 to n - 1 in an order that follows from the seed and `draw`, a number for each order of a run.
[[nodiscard]] inline std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t seed, std::uint64_t draw) {
    std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                        static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32)};
    std::mt19937_64 random(words);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    return order;
}

}  // namespace alloclab::bench
