// decoder: what text decoders have in common: the batch and its inputs, the KV cache, and attention over it.
// Keys lie in rows by position, values transposed, so that both matrix products read contiguous rows (llama.cpp, 2023).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/graph.hpp"
#include "alloclab/tensor/models/leaves.hpp"

namespace alloclab::tensor {

/// `tokens` new tokens behind `past` that the cache already holds. One token is a decode, more are a prefill.
struct batch {
    std::int32_t tokens = 1;
    std::int32_t past = 0;
};

/// A leaf that the planner gives memory, and the host values (`leaf->bytes()` of them) that belong there.
struct input_value {
    tensor* leaf;
    const void* value;
};

/// One built step: inputs to be written before it runs, and what comes out.
struct decoder_step {
    tensor* tokens;     ///< i32 [tokens]
    tensor* positions;  ///< i32 [tokens]
    tensor* mask;       ///< f32 [past + tokens, tokens]: 0 or -infinity
    tensor* logits;     ///< f32 [vocab, tokens], an output
};

/// Host values of a step's inputs: the tokens, their positions and a causal mask.
struct decoder_values {
    /// `ids` has b.tokens entries.
    decoder_values(batch b, std::span<const std::int32_t> ids);
    [[nodiscard]] std::array<input_value, 3> of(const decoder_step& s) const noexcept {
        return {{{s.tokens, tokens.data()}, {s.positions, positions.data()}, {s.mask, mask.data()}}};
    }

    std::vector<std::int32_t> tokens, positions;
    std::vector<float> mask;
};

/// Makes the three inputs. Throws shape_error unless 1 <= tokens, 0 <= past and past + tokens <= `capacity`.
decoder_step new_decoder_inputs(context& c, batch b, std::int64_t capacity);

/// Keys and values of all layers, f16: one pair of tensors per layer (llama.cpp) or one pair for all (whisper.cpp).
struct kv_cache {
    std::vector<tensor*> k;    ///< [width, capacity, layers in it]
    std::vector<tensor*> v;    ///< [capacity, width, layers in it]
    std::vector<leaf> leaves;  ///< the same tensors

    struct slot {
        tensor *k, *v;
        std::size_t layer;  ///< within them
    };
    [[nodiscard]] slot of(std::size_t layer) const noexcept {
        return k.size() == 1 ? slot{k[0], v[0], layer} : slot{k[layer], v[layer], 0};
    }
};
kv_cache new_kv_cache(context& c, std::int64_t width, std::int64_t capacity, std::int64_t layers, bool pair_per_layer);

/// Copies `k` (width x n elements by position) and `v` [width, n] behind `past` positions. The copies enter `g` at once
/// and so run before whatever is expanded later and reads the cache.
void store(context& c, graph& g, kv_cache::slot s, tensor* k, tensor* v, std::int32_t past);

/// The first `positions` keys as [head_width, positions, heads] and values as [positions, head_width, heads].
struct keys_and_values {
    tensor *k, *v;
};
keys_and_values load(context& c, kv_cache::slot s, std::int64_t positions, std::int64_t head_width);

/// softmax(factor * kq + mask) v of `q` [head_width, heads, n], as [head_width * heads, n].
tensor* attend(context& c, tensor* q, keys_and_values kv, tensor* mask, float factor);

}  // namespace alloclab::tensor
