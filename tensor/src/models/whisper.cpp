#include "alloclab/tensor/models/whisper.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "alloclab/tensor/ops.hpp"

namespace alloclab::tensor {

namespace {

constexpr float eps = 1e-5F;
constexpr std::int64_t kernel_width = 3;

class weight_maker {
public:
    weight_maker(context& c, std::vector<leaf>& made, std::int64_t width) noexcept : make_(c, made), width_(width) {}

    whisper_linear linear(std::int64_t in, std::int64_t out) { return {make_.matrix({in, out}, in), make_.bias(out)}; }
    // The bias lies along the channels, which are the outer dimension of what a convolution gives.
    whisper_linear conv(std::int64_t in) {
        return {make_.matrix({kernel_width, in, width_}, kernel_width * in), make_.bias({1, width_})};
    }
    whisper_norm norm() { return {make_.gain(width_), make_.bias(width_)}; }
    tensor* positions(std::int64_t n) { return make_.bias({width_, n}); }
    tensor* embedding(std::int64_t vocab) { return make_.matrix({width_, vocab}, width_); }
    whisper_attention attention() {
        return {norm(), linear(width_, width_), linear(width_, width_), linear(width_, width_),
                make_.matrix({width_, width_}, width_)};
    }
    whisper_mlp mlp(std::int64_t ff) { return {norm(), linear(width_, ff), linear(ff, width_)}; }

private:
    leaf_maker make_;
    std::int64_t width_;
};

tensor* apply(context& c, const whisper_norm& n, tensor* x) {
    return add(c, mul(c, layer_norm(c, x, eps), n.gain), n.bias);
}
tensor* apply(context& c, const whisper_linear& l, tensor* x) { return add(c, matmul(c, l.weights, x), l.bias); }
tensor* apply(context& c, const whisper_mlp& m, tensor* x) {
    return add(c, apply(c, m.down, gelu(c, apply(c, m.up, apply(c, m.norm, x)))), x);
}
tensor* convolve(context& c, const whisper_linear& l, tensor* x, std::int32_t stride) {
    return gelu(c, add(c, conv1d(c, l.weights, x, stride, 1), l.bias));
}

tensor* heads_of(context& c, const whisper_shape& s, tensor* x) {
    return reshape(c, x, {s.head_width(), s.heads, x->ne[1]});
}

// Queries and cached keys carry half of the factor 1 / sqrt(head width) each, so that f16 keys stay small.
float half_factor(const whisper_shape& s) { return 1.0F / std::sqrt(std::sqrt(static_cast<float>(s.head_width()))); }

tensor* queries(context& c, const whisper_model& m, const whisper_attention& a, tensor* normed) {
    return heads_of(c, m.shape, scale(c, apply(c, a.q, normed), half_factor(m.shape)));
}

void store_keys_and_values(context& c, graph& g, const whisper_model& m, const whisper_attention& a,
                           kv_cache::slot slot, tensor* x, std::int32_t past) {
    tensor* k = scale(c, matmul(c, a.k, x), half_factor(m.shape));
    store(c, g, slot, k, apply(c, a.v, x), past);
}

}  // namespace

whisper_model new_whisper(context& c, const whisper_shape& s) {
    if (std::min({s.layers, s.width, s.heads, s.mels, s.audio_context, s.text_context, s.vocab}) < 1 ||
        s.width % s.heads != 0)
        throw shape_error("whisper shape " + std::string(s.name) + ": width " + std::to_string(s.width) +
                          " and heads " + std::to_string(s.heads) + " do not fit together or a dimension is below 1");
    whisper_model m{.shape = s,
                    .conv1 = {},
                    .conv2 = {},
                    .audio_positions = nullptr,
                    .text_positions = nullptr,
                    .embedding = nullptr,
                    .audio_norm = {},
                    .text_norm = {},
                    .encoder = {},
                    .decoder = {},
                    .leaves = {}};
    weight_maker make(c, m.leaves, s.width);
    m.conv1 = make.conv(s.mels);
    m.conv2 = make.conv(s.width);
    m.audio_positions = make.positions(s.audio_context);
    for (std::int32_t layer = 0; layer < s.layers; ++layer) {
        const whisper_attention attention = make.attention();
        m.encoder.push_back({attention, make.mlp(s.ff())});
    }
    m.audio_norm = make.norm();
    m.text_positions = make.positions(s.text_context);
    m.embedding = make.embedding(s.vocab);
    for (std::int32_t layer = 0; layer < s.layers; ++layer) {
        const whisper_attention self = make.attention();
        const whisper_attention cross = make.attention();
        m.decoder.push_back({self, cross, make.mlp(s.ff())});
    }
    m.text_norm = make.norm();
    return m;
}

whisper_state new_whisper_state(context& c, const whisper_shape& s) {
    kv_cache self = new_kv_cache(c, s.width, s.text_context, s.layers, false);
    return {std::move(self), new_kv_cache(c, s.width, s.audio_context, s.layers, false)};
}

tensor* whisper_conv(context& c, const whisper_model& m, tensor* mel) {
    return convolve(c, m.conv2, convolve(c, m.conv1, mel, 1), 2);
}

tensor* whisper_encode(context& c, const whisper_model& m, tensor* conv) {
    const whisper_shape& s = m.shape;
    const float factor = half_factor(s) * half_factor(s);
    tensor* x = add(c, cont(c, transpose(c, conv)), m.audio_positions);
    for (const auto& [attention, mlp] : m.encoder) {
        tensor* normed = apply(c, attention.norm, x);
        tensor* q = heads_of(c, s, apply(c, attention.q, normed));
        tensor* k = permute(c, heads_of(c, s, matmul(c, attention.k, normed)), {0, 2, 1, 3});
        tensor* v = cont(c, permute(c, heads_of(c, s, apply(c, attention.v, normed)), {1, 2, 0, 3}));
        x = add(c, apply(c, attention.out, attend(c, q, {k, v}, nullptr, factor)), x);
        x = apply(c, mlp, x);
    }
    return apply(c, m.audio_norm, x);
}

void whisper_cross(context& c, graph& g, const whisper_model& m, const whisper_state& state, tensor* audio) {
    for (std::size_t i = 0; i < m.decoder.size(); ++i)
        store_keys_and_values(c, g, m, m.decoder[i].cross, state.cross.of(i), audio, 0);
}

whisper_encoder_step build_whisper_encoder(context& c, graph& g, const whisper_model& m, const whisper_state& state) {
    tensor* mel = c.new_input(type::f32, {2 * m.shape.audio_context, m.shape.mels});
    tensor* audio = whisper_encode(c, m, whisper_conv(c, m, mel));
    audio->output = true;
    g.expand(audio);
    whisper_cross(c, g, m, state, audio);
    return {mel, audio};
}

decoder_step build_whisper_decoder(context& c, graph& g, const whisper_model& m, const whisper_state& state, batch b) {
    const whisper_shape& s = m.shape;
    decoder_step step = new_decoder_inputs(c, b, s.text_context);
    tensor* x = add(c, get_rows(c, m.embedding, step.tokens), get_rows(c, m.text_positions, step.positions));
    for (std::size_t i = 0; i < m.decoder.size(); ++i) {
        const auto& [self, cross, mlp] = m.decoder[i];
        tensor* normed = apply(c, self.norm, x);
        tensor* q = queries(c, m, self, normed);
        store_keys_and_values(c, g, m, self, state.self.of(i), normed, b.past);
        const auto heard = load(c, state.self.of(i), b.past + b.tokens, s.head_width());
        x = add(c, apply(c, self.out, attend(c, q, heard, step.mask, 1.0F)), x);

        q = queries(c, m, cross, apply(c, cross.norm, x));
        const auto audio = load(c, state.cross.of(i), s.audio_context, s.head_width());
        x = add(c, apply(c, cross.out, attend(c, q, audio, nullptr, 1.0F)), x);
        x = apply(c, mlp, x);
    }
    step.logits = matmul(c, m.embedding, apply(c, m.text_norm, x));
    step.logits->output = true;
    g.expand(step.logits);
    return step;
}

std::vector<context_need> whisper_state_contexts(const whisper_shape& s, bool reduced) {
    malloc_source source;
    context leaves({.growing = growth{}}, any_source(source));
    const whisper_model m = new_whisper(leaves, s);
    const whisper_state state = new_whisper_state(leaves, s);
    const auto stage = [&](const char* name, auto build) { return need_of(name, whisper_max_nodes(s), build); };

    std::vector<context_need> needs;
    if (!reduced)
        for (const char* cache : {"kv_self", "kv_cross", "kv_pad"}) needs.push_back({cache, 2, 0});
    needs.push_back(stage("conv", [&](context& c, graph& g) {
        g.expand(whisper_conv(c, m, c.new_input(type::f32, {2 * s.audio_context, s.mels})));
    }));
    needs.push_back(stage("encode", [&](context& c, graph& g) {
        g.expand(whisper_encode(c, m, c.new_input(type::f32, {s.audio_context, s.width})));
    }));
    needs.push_back(stage("cross", [&](context& c, graph& g) {
        whisper_cross(c, g, m, state, c.new_input(type::f32, {s.width, s.audio_context}));
    }));
    needs.push_back(stage("decode", [&](context& c, graph& g) {
        build_whisper_decoder(c, g, m, state, {1, s.text_context - 1});
    }));
    return needs;
}

context_need whisper_model_context(const whisper_shape& s) {
    return need_of("model", 0, [&](context& c, graph&) { static_cast<void>(new_whisper(c, s)); });
}

}  // namespace alloclab::tensor
