#include "alloclab/tensor/models/llama.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "alloclab/tensor/ops.hpp"

namespace alloclab::tensor {

llama_model new_llama(context& c, const llama_shape& s) {
    if (std::min({s.layers, s.width, s.heads, s.kv_heads, s.ff, s.vocab, s.context}) < 1 || s.width % s.heads != 0 ||
        s.heads % s.kv_heads != 0 || s.head_width() % 2 != 0)
        throw shape_error("llama shape " + std::string(s.name) + ": width " + std::to_string(s.width) + ", heads " +
                          std::to_string(s.heads) + ", kv heads " + std::to_string(s.kv_heads) +
                          " do not fit together or a dimension is below 1");
    llama_model m{.shape = s, .embedding = nullptr, .norm = nullptr, .output = nullptr, .layers = {}, .leaves = {}};
    leaf_maker make(c, m.leaves);
    const auto matrix = [&](std::int64_t in, std::int64_t out) { return make.matrix({in, out}, in); };
    m.embedding = make.matrix({s.width, s.vocab}, 1);
    m.layers.reserve(static_cast<std::size_t>(s.layers));
    for (std::int32_t layer = 0; layer < s.layers; ++layer)
        m.layers.push_back({.attention_norm = make.gain(s.width),
                            .wq = matrix(s.width, s.width),
                            .wk = matrix(s.width, s.kv_width()),
                            .wv = matrix(s.width, s.kv_width()),
                            .wo = matrix(s.width, s.width),
                            .ff_norm = make.gain(s.width),
                            .w1 = matrix(s.width, s.ff),
                            .w2 = matrix(s.ff, s.width),
                            .w3 = matrix(s.width, s.ff)});
    m.norm = make.gain(s.width);
    m.output = matrix(s.width, s.vocab);
    return m;
}

kv_cache new_llama_cache(context& c, const llama_shape& s) {
    return new_kv_cache(c, s.kv_width(), s.context, s.layers, true);
}

decoder_step build_llama(context& c, graph& g, const llama_model& m, const kv_cache& cache, batch b) {
    const llama_shape& s = m.shape;
    const std::int32_t width = s.head_width();
    const float factor = 1.0F / std::sqrt(static_cast<float>(width));
    decoder_step step = new_decoder_inputs(c, b, s.context);

    const auto norm = [&](tensor* x, tensor* gain) { return mul(c, rms_norm(c, x, s.eps), gain); };
    const auto rotated_heads = [&](tensor* weights, tensor* x, std::int32_t heads) {
        return rope(c, reshape(c, matmul(c, weights, x), {width, heads, b.tokens}), step.positions, width, s.rope_base);
    };

    tensor* x = get_rows(c, m.embedding, step.tokens);
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
        const llama_layer& layer = m.layers[i];
        tensor* normed = norm(x, layer.attention_norm);
        tensor* q = rotated_heads(layer.wq, normed, s.heads);
        tensor* k = rotated_heads(layer.wk, normed, s.kv_heads);
        tensor* v = matmul(c, layer.wv, normed);
        store(c, g, cache.of(i), k, v, b.past);
        tensor* attended = attend(c, q, load(c, cache.of(i), b.past + b.tokens, width), step.mask, factor);
        x = add(c, matmul(c, layer.wo, attended), x);

        normed = norm(x, layer.ff_norm);
        tensor* gate = silu(c, matmul(c, layer.w1, normed));
        x = add(c, matmul(c, layer.w2, mul(c, gate, matmul(c, layer.w3, normed))), x);
    }
    step.logits = matmul(c, m.output, norm(x, m.norm));
    step.logits->output = true;
    g.expand(step.logits);
    return step;
}

}  // namespace alloclab::tensor
