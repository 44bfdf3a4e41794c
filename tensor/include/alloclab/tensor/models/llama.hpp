// llama: graphs of llama 2 and 3 as llama.cpp built them in 2023: one step over a KV cache, decode and prefill alike.
// Full shapes are for contexts without data; the small twins keep proportions and head grouping, and compute.
// Threads: a model may be read by graphs in several threads, a cache by one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "alloclab/tensor/models/decoder.hpp"

namespace alloclab::tensor {

struct llama_shape {
    std::string_view name;
    std::int32_t layers, width, heads, kv_heads, ff, vocab;
    std::int32_t context;  ///< positions in the cache
    float rope_base;
    float eps;

    [[nodiscard]] constexpr std::int32_t head_width() const noexcept { return width / heads; }
    [[nodiscard]] constexpr std::int32_t kv_width() const noexcept { return head_width() * kv_heads; }
};

/// An eighth of the layers, a quarter of the heads, a sixteenth of each head and a 64th of the rest.
[[nodiscard]] constexpr llama_shape scaled(const llama_shape& s, std::string_view name) noexcept {
    return {name, s.layers / 8, s.width / 64, s.heads / 4, s.kv_heads / 4, s.ff / 64, 256, 64, s.rope_base, s.eps};
}

/// As published in the models' configurations.
inline constexpr std::array<llama_shape, 4> llama_shapes{{
    {"llama-2-7b", 32, 4096, 32, 32, 11008, 32000, 4096, 10000.0F, 1e-5F},
    {"llama-2-13b", 40, 5120, 40, 40, 13824, 32000, 4096, 10000.0F, 1e-5F},
    {"llama-2-70b", 80, 8192, 64, 8, 28672, 32000, 4096, 10000.0F, 1e-5F},
    {"llama-3-8b", 32, 4096, 32, 8, 14336, 128256, 8192, 500000.0F, 1e-5F},
}};
inline constexpr std::array<llama_shape, 4> llama_small_shapes{{
    scaled(llama_shapes[0], "llama-2-7b-small"),
    scaled(llama_shapes[1], "llama-2-13b-small"),
    scaled(llama_shapes[2], "llama-2-70b-small"),
    scaled(llama_shapes[3], "llama-3-8b-small"),
}};

struct llama_layer {
    tensor *attention_norm, *wq, *wk, *wv, *wo;
    tensor *ff_norm, *w1, *w2, *w3;
};
inline constexpr std::size_t llama_layer_tensors = sizeof(llama_layer) / sizeof(tensor*);

struct llama_model {
    llama_shape shape;
    tensor *embedding, *norm, *output;
    std::vector<llama_layer> layers;
    std::vector<leaf> leaves;  ///< all of the above
};

/// Makes the weights in `c`, with data when `c` gives its leaves data. Throws shape_error for a shape that cannot be:
/// a dimension below 1, heads that do not divide the width or are no multiple of kv_heads, an odd head width.
[[nodiscard]] llama_model new_llama(context& c, const llama_shape& s);
[[nodiscard]] kv_cache new_llama_cache(context& c, const llama_shape& s);

/// Builds one step into `g`. Throws shape_error when the batch does not fit the cache, graph_full, context_exhausted.
decoder_step build_llama(context& c, graph& g, const llama_model& m, const kv_cache& cache, batch b);

/// Nodes that a graph needs room for, at least.
[[nodiscard]] constexpr std::size_t llama_max_nodes(const llama_shape& s) noexcept {
    return 40 * (static_cast<std::size_t>(s.layers) + 1);
}

}  // namespace alloclab::tensor
