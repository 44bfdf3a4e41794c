// ggml_package: one package's ggml as a ggml_library. Compiled once for each package, which differ in the prefix of all
// names and in the three calls that ggml changed from 2023 to 2026. The graph is the one of
// tensor/src/models/llama.cpp, call for call; only that the older softmax takes no factor, which makes one node more in
// each layer.
#include <ggml.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "alloclab/tensor/models/llama.hpp"
#include "ggml.hpp"

#define JOINED(a, b) a##b
#define EXPANDED(a, b) JOINED(a, b)
#define GGML(name) EXPANDED(ALLOCLAB_GGML_PREFIX, name)
#define GGML_CONSTANT(name) EXPANDED(ALLOCLAB_GGML_CONSTANTS, name)
#define TEXT(a) #a
#define NAME_OF(a) TEXT(a)

namespace alloclab::bench {

namespace {

using context = GGML(context);
using tensor = GGML(tensor);
using graph = GGML(cgraph);

constexpr alloclab::tensor::llama_shape shape = alloclab::tensor::llama_shapes[0];
constexpr std::int64_t width = shape.width, head_width = shape.head_width(), heads = shape.heads;
constexpr std::int64_t past = shape.context / 2, positions = past + 1;
static_assert(shape.heads == shape.kv_heads);

struct layer {
    tensor *attention_norm, *wq, *wk, *wv, *wo;
    tensor *ff_norm, *w1, *w2, *w3;
    tensor *k, *v;
};

struct model {
    context* owner;
    tensor *embedding, *norm, *output;
    std::vector<layer> layers;
};

#ifdef GGML_MAX_CONTEXTS  // 2023

std::size_t count(const graph* g) { return static_cast<std::size_t>(g->n_nodes); }

tensor* rope(context* c, tensor* x, tensor* at) {
    return ggml_rope_custom(c, x, at, static_cast<int>(head_width), 2, 0, 0, shape.rope_base, 1, 0, 1, 0, 0);
}

// One token sees all of the cache, so nothing is to be masked.
tensor* softmax_input(context* c) { return ggml_new_tensor_1d(c, GGML_TYPE_F32, 1); }
tensor* softmax(context* c, tensor* x, tensor* factor) { return ggml_soft_max(c, ggml_scale(c, x, factor)); }

#else

std::size_t count(graph* g) { return static_cast<std::size_t>(GGML(graph_n_nodes)(g)); }

tensor* rope(context* c, tensor* x, tensor* at) {
    return GGML(rope_ext)(c, x, at, nullptr, static_cast<int>(head_width), 2, 0, shape.rope_base, 1, 0, 1, 0, 0);
}

tensor* softmax_input(context* c) { return GGML(new_tensor_2d)(c, GGML_CONSTANT(TYPE_F32), positions, 1); }
tensor* softmax(context* c, tensor* x, tensor* mask) {
    return GGML(soft_max_ext)(c, x, mask, 1 / std::sqrt(static_cast<float>(head_width)), 0);
}

#endif

context* new_context(void* buffer, std::size_t bytes) {
    return GGML(init)({.mem_size = bytes, .mem_buffer = buffer, .no_alloc = true});
}

void* init(void* buffer, std::size_t bytes) noexcept { return new_context(buffer, bytes); }

void free(void* of) noexcept { GGML(free)(static_cast<context*>(of)); }

std::size_t metadata_bytes(std::size_t tensors, std::size_t graph_nodes) noexcept {
    return tensors * GGML(tensor_overhead)() + GGML(graph_overhead_custom)(graph_nodes, false);
}

void* leaves(std::size_t layers) noexcept {
    constexpr std::size_t per_layer = sizeof(layer) / sizeof(tensor*);
    context* c = new_context(nullptr, (3 + layers * per_layer) * GGML(tensor_overhead)());
    if (c == nullptr) return nullptr;
    const auto matrix = [c](std::int64_t in, std::int64_t out) {
        return GGML(new_tensor_2d)(c, GGML_CONSTANT(TYPE_F16), in, out);
    };
    const auto gain = [c] { return GGML(new_tensor_1d)(c, GGML_CONSTANT(TYPE_F32), width); };

    auto made = std::make_unique<model>();
    made->owner = c;
    made->embedding = matrix(width, shape.vocab);
    made->layers.reserve(layers);
    for (std::size_t i = 0; i < layers; ++i)
        made->layers.push_back({.attention_norm = gain(),
                                .wq = matrix(width, width),
                                .wk = matrix(width, width),
                                .wv = matrix(width, width),
                                .wo = matrix(width, width),
                                .ff_norm = gain(),
                                .w1 = matrix(width, shape.ff),
                                .w2 = matrix(shape.ff, width),
                                .w3 = matrix(width, shape.ff),
                                .k = matrix(width, shape.context),
                                .v = matrix(shape.context, width)});
    made->norm = gain();
    made->output = matrix(width, shape.vocab);
    return made.release();
}

void drop_leaves(void* leaves) noexcept {
    const std::unique_ptr<model> dropped(static_cast<model*>(leaves));
    if (dropped) GGML(free)(dropped->owner);
}

std::size_t build(void* leaves, void* into, std::size_t graph_nodes) noexcept {
    const model& m = *static_cast<const model*>(leaves);
    auto* c = static_cast<context*>(into);
    graph* g = GGML(new_graph_custom)(c, graph_nodes, false);
    tensor* token = GGML(new_tensor_1d)(c, GGML_CONSTANT(TYPE_I32), 1);
    tensor* position = GGML(new_tensor_1d)(c, GGML_CONSTANT(TYPE_I32), 1);
    tensor* for_softmax = softmax_input(c);

    const auto matmul = [c](tensor* weights, tensor* x) { return GGML(mul_mat)(c, weights, x); };
    const auto norm = [c](tensor* x, tensor* gain) { return GGML(mul)(c, GGML(rms_norm)(c, x, shape.eps), gain); };
    const auto rotated_heads = [&](tensor* weights, tensor* x) {
        return rope(c, GGML(reshape_3d)(c, matmul(weights, x), head_width, heads, 1), position);
    };
    const auto store = [&](const layer& l, tensor* k, tensor* v) {
        tensor* k_row = GGML(view_2d)(c, l.k, width, 1, l.k->nb[1], past * l.k->nb[1]);
        tensor* v_column = GGML(view_2d)(c, l.v, 1, width, l.v->nb[1], past * l.v->nb[0]);
        GGML(build_forward_expand)(g, GGML(cpy)(c, k, k_row));
        GGML(build_forward_expand)(g, GGML(cpy)(c, GGML(transpose)(c, v), v_column));
    };
    const auto attend = [&](const layer& l, tensor* q) {
        tensor* k = GGML(view_3d)(c, l.k, head_width, positions, heads, l.k->nb[1], head_width * l.k->nb[0], 0);
        tensor* v = GGML(view_3d)(c, l.v, positions, head_width, heads, l.v->nb[1], head_width * l.v->nb[1], 0);
        tensor* kq = matmul(k, GGML(permute)(c, q, 0, 2, 1, 3));
        tensor* kqv = matmul(v, softmax(c, kq, for_softmax));
        return GGML(reshape_2d)(c, GGML(cont)(c, GGML(permute)(c, kqv, 0, 2, 1, 3)), width, 1);
    };

    tensor* x = GGML(get_rows)(c, m.embedding, token);
    for (const layer& l : m.layers) {
        tensor* normed = norm(x, l.attention_norm);
        tensor* q = rotated_heads(l.wq, normed);
        tensor* k = rotated_heads(l.wk, normed);
        store(l, k, matmul(l.wv, normed));
        x = GGML(add)(c, matmul(l.wo, attend(l, q)), x);

        normed = norm(x, l.ff_norm);
        tensor* gate = GGML(silu)(c, matmul(l.w1, normed));
        x = GGML(add)(c, matmul(l.w2, GGML(mul)(c, gate, matmul(l.w3, normed))), x);
    }
    GGML(build_forward_expand)(g, matmul(m.output, norm(x, m.norm)));
    return count(g);
}

}  // namespace

extern const ggml_library ALLOCLAB_GGML_NAME;
constinit const ggml_library ALLOCLAB_GGML_NAME{.name = NAME_OF(ALLOCLAB_GGML_NAME),
                                                .version = ALLOCLAB_GGML_VERSION,
                                                .init = init,
                                                .free = free,
                                                .metadata_bytes = metadata_bytes,
                                                .leaves = leaves,
                                                .drop_leaves = drop_leaves,
                                                .build = build};

}  // namespace alloclab::bench
