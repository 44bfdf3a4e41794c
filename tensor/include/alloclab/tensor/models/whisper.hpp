// whisper: graphs of whisper as whisper.cpp builds them in four stages (conv, encode, cross, decode), and the contexts
// that one whisper state keeps. Full shapes are for contexts without data; the small twins compute.
// Threads: a model may be read by graphs in several threads, a state by one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "alloclab/tensor/models/decoder.hpp"
#include "alloclab/tensor/models/needs.hpp"

namespace alloclab::tensor {

struct whisper_shape {
    std::string_view name;
    std::int32_t layers, width, heads;  ///< of the encoder and of the decoder alike
    std::int32_t mels, audio_context, text_context, vocab;

    [[nodiscard]] constexpr std::int32_t head_width() const noexcept { return width / heads; }
    [[nodiscard]] constexpr std::int32_t ff() const noexcept { return 4 * width; }
};

/// A quarter of the layers but two at least, as many heads of an eighth of the width, an eighth of the mels.
[[nodiscard]] constexpr whisper_shape scaled(const whisper_shape& s, std::string_view name) noexcept {
    return {name, s.layers < 8 ? 2 : s.layers / 4, s.width / 8, s.heads, s.mels / 8, 32, 64, 256};
}

/// As published in the models' configurations.
inline constexpr std::array<whisper_shape, 5> whisper_shapes{{
    {"whisper-tiny", 4, 384, 6, 80, 1500, 448, 51865},
    {"whisper-base", 6, 512, 8, 80, 1500, 448, 51865},
    {"whisper-small", 12, 768, 12, 80, 1500, 448, 51865},
    {"whisper-medium", 24, 1024, 16, 80, 1500, 448, 51865},
    {"whisper-large-v3", 32, 1280, 20, 128, 1500, 448, 51866},
}};
inline constexpr std::array<whisper_shape, 5> whisper_small_shapes{{
    scaled(whisper_shapes[0], "whisper-tiny-small"),
    scaled(whisper_shapes[1], "whisper-base-small"),
    scaled(whisper_shapes[2], "whisper-small-small"),
    scaled(whisper_shapes[3], "whisper-medium-small"),
    scaled(whisper_shapes[4], "whisper-large-v3-small"),
}};

struct whisper_norm {
    tensor *gain, *bias;
};
struct whisper_linear {
    tensor *weights, *bias;
};
struct whisper_attention {
    whisper_norm norm;
    whisper_linear q, v, out;
    tensor* k;  // has no bias in whisper
};
struct whisper_mlp {
    whisper_norm norm;
    whisper_linear up, down;
};
struct whisper_encoder_layer {
    whisper_attention attention;
    whisper_mlp mlp;
};
struct whisper_decoder_layer {
    whisper_attention self, cross;
    whisper_mlp mlp;
};

struct whisper_model {
    whisper_shape shape;
    whisper_linear conv1, conv2;
    tensor *audio_positions, *text_positions, *embedding;
    whisper_norm audio_norm, text_norm;
    std::vector<whisper_encoder_layer> encoder;
    std::vector<whisper_decoder_layer> decoder;
    std::vector<leaf> leaves;  ///< all of the above
};

/// Keys and values that live from window to window (cross) and from token to token (self).
struct whisper_state {
    kv_cache self, cross;
};

/// Makes the weights in `c`, with data when `c` gives its leaves data. Throws shape_error for a shape that cannot be.
[[nodiscard]] whisper_model new_whisper(context& c, const whisper_shape& s);
[[nodiscard]] whisper_state new_whisper_state(context& c, const whisper_shape& s);

/// The stages, each from the tensor that the one before it gives. Throw context_exhausted and graph_full.
/// `mel` f32 [2 * audio_context, mels]: f32 [audio_context, width].
tensor* whisper_conv(context& c, const whisper_model& m, tensor* mel);
/// f32 [width, audio_context].
tensor* whisper_encode(context& c, const whisper_model& m, tensor* conv);
/// Writes keys and values of all decoder layers into state.cross; the copies enter `g`.
void whisper_cross(context& c, graph& g, const whisper_model& m, const whisper_state& state, tensor* audio);

struct whisper_encoder_step {
    tensor* mel;    ///< f32 [2 * audio_context, mels], an input
    tensor* audio;  ///< f32 [width, audio_context], an output
};
/// Conv, encode and cross in one graph.
whisper_encoder_step build_whisper_encoder(context& c, graph& g, const whisper_model& m, const whisper_state& state);

/// One step of the decoder over both caches. Throws shape_error when the batch does not fit the cache.
decoder_step build_whisper_decoder(context& c, graph& g, const whisper_model& m, const whisper_state& state, batch b);

/// Nodes that a graph needs room for, at least.
[[nodiscard]] constexpr std::size_t whisper_max_nodes(const whisper_shape& s) noexcept {
    return 64 * (static_cast<std::size_t>(s.layers) + 1);
}

/// The contexts that one state keeps. Until whisper.cpp#2525 (2024) seven: one for each KV cache (self, cross, and the
/// padding of flash attention) and one for each stage's scheduler; since then (`reduced`) the four schedulers' only,
/// the caches' being freed once their tensors have memory. With one more for the model, 64 slots hold 9 or 15 states.
[[nodiscard]] std::vector<context_need> whisper_state_contexts(const whisper_shape& s, bool reduced);
/// The one context of the weights.
[[nodiscard]] context_need whisper_model_context(const whisper_shape& s);

}  // namespace alloclab::tensor
