#include "alloclab/tensor/models/decoder.hpp"

#include <limits>
#include <numeric>
#include <string>

#include "alloclab/tensor/ops.hpp"

namespace alloclab::tensor {

decoder_values::decoder_values(batch b, std::span<const std::int32_t> ids)
    : tokens(ids.begin(), ids.end()), positions(ids.size()) {
    std::iota(positions.begin(), positions.end(), b.past);
    const auto seen = static_cast<std::size_t>(b.past) + ids.size();
    mask.resize(seen * ids.size(), 0.0F);
    for (std::size_t row = 0; row < ids.size(); ++row)
        for (std::size_t column = static_cast<std::size_t>(b.past) + row + 1; column < seen; ++column)
            mask[row * seen + column] = -std::numeric_limits<float>::infinity();
}

decoder_step new_decoder_inputs(context& c, batch b, std::int64_t capacity) {
    if (b.tokens < 1 || b.past < 0 || std::int64_t{b.past} + b.tokens > capacity)
        throw shape_error("a batch of " + std::to_string(b.tokens) + " tokens behind " + std::to_string(b.past) +
                          " does not fit a cache of " + std::to_string(capacity) + " positions");
    tensor* tokens = c.new_input(type::i32, b.tokens);
    tensor* positions = c.new_input(type::i32, b.tokens);
    return {tokens, positions, c.new_input(type::f32, {b.past + b.tokens, b.tokens}), nullptr};
}

kv_cache new_kv_cache(context& c, std::int64_t width, std::int64_t capacity, std::int64_t layers, bool pair_per_layer) {
    kv_cache made;
    leaf_maker make(c, made.leaves);
    const std::int64_t pairs = pair_per_layer ? layers : 1;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
        made.k.push_back(make.cache({width, capacity, layers / pairs}));
        made.v.push_back(make.cache({capacity, width, layers / pairs}));
    }
    return made;
}

void store(context& c, graph& g, kv_cache::slot s, tensor* k, tensor* v, std::int32_t past) {
    const std::int64_t width = s.k->ne[0];
    const std::int64_t tokens = v->ne[1];
    const auto from = static_cast<std::size_t>(past);
    tensor* k_rows = view(c, s.k, {width, tokens}, s.layer * s.k->nb[2] + from * s.k->nb[1]);
    tensor* v_columns =
        view(c, s.v, {tokens, width}, {s.v->nb[1], s.v->nb[2], s.v->nb[3]}, s.layer * s.v->nb[2] + from * s.v->nb[0]);
    g.expand(copy(c, k, k_rows));
    g.expand(copy(c, transpose(c, v), v_columns));
}

keys_and_values load(context& c, kv_cache::slot s, std::int64_t positions, std::int64_t head_width) {
    const std::int64_t heads = s.k->ne[0] / head_width;
    const auto rows = static_cast<std::size_t>(head_width);
    return {
        view(c, s.k, {head_width, positions, heads}, {s.k->nb[1], rows * s.k->nb[0], s.k->nb[2]}, s.layer * s.k->nb[2]),
        view(c, s.v, {positions, head_width, heads}, {s.v->nb[1], rows * s.v->nb[1], s.v->nb[2]},
             s.layer * s.v->nb[2])};
}

tensor* attend(context& c, tensor* q, keys_and_values kv, tensor* mask, float factor) {
    tensor* kq = matmul(c, kv.k, permute(c, q, {0, 2, 1, 3}));
    tensor* kqv = matmul(c, kv.v, softmax(c, kq, mask, factor));
    tensor* by_token = cont(c, permute(c, kqv, {0, 2, 1, 3}));
    return reshape(c, by_token, {q->ne[0] * q->ne[1], q->ne[2]});
}

}  // namespace alloclab::tensor
