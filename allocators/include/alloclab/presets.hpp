// presets: combinations that have a name of their own. "hybrid" is the first that one thinks of.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/context/fallback.hpp"
#include "alloclab/context/heap.hpp"
#include "alloclab/context/magazine_pool.hpp"
#include "alloclab/context/owner_pool.hpp"
#include "alloclab/context/static_pool.hpp"
#include "alloclab/layer/locked.hpp"

namespace alloclab {

/// A static pool of N that spills to malloc: no limit, and the pool's speed while it has room (whisper.cpp#2525).
template <class T, std::size_t N = 64>
struct hybrid : fallback<static_pool<T, N>, heap<T>> {
    static constexpr std::string_view name = "hybrid";
};

/// The bounded and the unbounded pool for several threads.
template <class T, std::size_t N = 64>
struct locked_static_pool : compose<static_pool<T, N>, locked> {
    static constexpr std::string_view name = "locked_static_pool";
};
template <class T, std::size_t N = 64>
struct locked_hybrid : compose<hybrid<T, N>, locked> {
    static constexpr std::string_view name = "locked_hybrid";
};

/// The hybrid for several threads at the speed of a thread's own: no lock while its magazine serves.
template <class T, std::size_t N = 64>
struct magazine_hybrid : fallback<magazine_pool<T, N>, magazine_heap<T>> {
    static constexpr std::string_view name = "magazine_hybrid";
};
/// The same where slots are mostly released by other threads than the ones that acquired them.
template <class T, std::size_t N = 64>
struct owner_hybrid : fallback<owner_pool<T, N>, magazine_heap<T>> {
    static constexpr std::string_view name = "owner_hybrid";
};

}  // namespace alloclab
