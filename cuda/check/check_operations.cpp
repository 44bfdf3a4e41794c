// Every operation of the graph core on the device against the CPU, over shapes and strides that go different ways
// through it.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "alloclab/device/cuda_device.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/extra/bump_arena.hpp"
#include "alloclab/presets.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/ops.hpp"
#include "check.hpp"
#include "compare.hpp"

namespace alloclab::device::check {
namespace {

using tensor::context;
using tensor::type;
using node = tensor::tensor*;

constexpr double tolerance = 1e-4;

/// Leaves with data that depends on their number alone.
class leaves {
public:
    node f32(const tensor::shape& s) {
        return make<float>(type::f32, s, [](float x) { return x; });
    }
    node f16(const tensor::shape& s) { return make<std::uint16_t>(type::f16, s, tensor::to_half); }
    /// From 0 to `below`.
    node i32(const tensor::shape& s, std::int32_t below) {
        return make<std::int32_t>(type::i32, s, [below](float x) {
            return static_cast<std::int32_t>((x + 1) / 2 * static_cast<float>(below));
        });
    }
    [[nodiscard]] const std::vector<node>& all() const noexcept { return all_; }

private:
    template <class T, class F>
    node make(type t, const tensor::shape& s, F convert) {
        node made = memory_.new_tensor(t, s);
        auto* values = static_cast<T*>(made->data);
        for (std::size_t i = 0; i < made->elements(); ++i) values[i] = convert(noise());
        all_.push_back(made);
        return made;
    }
    float noise() {  // from -1 to 1
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<float>(state_ >> 40) / static_cast<float>(1U << 23) - 1;
    }

    malloc_source source_;
    context memory_{{.growing = growth{}, .no_alloc = false}, any_source(source_)};
    std::vector<node> all_;
    std::uint64_t state_ = 1;
};

struct operation {
    const char* what;
    node (*build)(context& c, leaves& l);
};

node half_matmul(context& c, leaves& l, std::int64_t k, std::int64_t n, std::int64_t m) {
    return matmul(c, l.f16({k, n}), l.f32({k, m}));
}
node causal_mask(leaves& l, std::int64_t keys, std::int64_t queries) {
    node mask = l.f32({keys, queries});
    auto* at = static_cast<float*>(mask->data);
    for (std::int64_t q = 0; q < queries; ++q)
        for (std::int64_t k = 0; k < keys; ++k)
            at[q * keys + k] = k > q + keys - queries ? -std::numeric_limits<float>::infinity() : 0;
    return mask;
}
node ids_out_of_range(leaves& l) {
    node ids = l.i32({3}, 5);
    static_cast<std::int32_t*>(ids->data)[1] = 99;
    return ids;
}

const std::vector<operation>& operations() {
    static const std::vector<operation> all{
        {"get_rows f32",
         [](context& c, leaves& l) {
             return get_rows(c, l.f32({65, 9}), l.i32({12}, 9));
         }},
        {"get_rows f16",
         [](context& c, leaves& l) {
             return get_rows(c, l.f16({64, 9}), l.i32({5}, 9));
         }},
        {"get_rows of an id that is out of range",
         [](context& c, leaves& l) {
             return get_rows(c, l.f32({8, 5}), ids_out_of_range(l));
         }},
        {"add",
         [](context& c, leaves& l) {
             return add(c, l.f32({33, 7, 3}), l.f32({33, 7, 3}));
         }},
        {"add of a row",
         [](context& c, leaves& l) {
             return add(c, l.f32({256, 17}), l.f32({256}));
         }},
        {"add of a repeated block",
         [](context& c, leaves& l) {
             return add(c, l.f32({12, 6, 4}), l.f32({4, 3, 2}));
         }},
        {"mul",
         [](context& c, leaves& l) {
             return mul(c, l.f32({1000, 5}), l.f32({1000, 1}));
         }},
        {"mul of a permuted tensor",
         [](context& c, leaves& l) {
             return mul(c, permute(c, l.f32({5, 6, 7}), {1, 2, 0, 3}), l.f32({7}));
         }},
        {"scale", [](context& c, leaves& l) { return scale(c, l.f32({1025}), -0.37F); }},
        {"matmul f32",
         [](context& c, leaves& l) {
             return matmul(c, l.f32({96, 65}), l.f32({96, 33}));
         }},
        {"matmul f32 of one column",
         [](context& c, leaves& l) {
             return matmul(c, l.f32({257, 70}), l.f32({257}));
         }},
        {"matmul f16 of one column", [](context& c, leaves& l) { return half_matmul(c, l, 256, 130, 1); }},
        {"matmul f16 of odd length", [](context& c, leaves& l) { return half_matmul(c, l, 77, 33, 3); }},
        {"matmul f16 of many columns", [](context& c, leaves& l) { return half_matmul(c, l, 128, 96, 40); }},
        {"matmul with grouped heads",
         [](context& c, leaves& l) {
             return matmul(c, l.f32({32, 20, 2}), l.f32({32, 5, 6, 2}));
         }},
        {"matmul of strided heads",
         [](context& c, leaves& l) {
             node keys = view(c, l.f16({64, 24}), {16, 24, 4}, {128, 32, 3072}, 0);
             return matmul(c, keys, permute(c, l.f32({16, 4, 7}), {0, 2, 1, 3}));
         }},
        {"rms_norm",
         [](context& c, leaves& l) {
             return rms_norm(c, l.f32({300, 9}), 1e-5F);
         }},
        {"rms_norm of long rows",
         [](context& c, leaves& l) {
             return rms_norm(c, l.f32({4096, 3}), 1e-6F);
         }},
        {"layer_norm",
         [](context& c, leaves& l) {
             return layer_norm(c, l.f32({384, 5}), 1e-5F);
         }},
        {"layer_norm of short rows",
         [](context& c, leaves& l) {
             return layer_norm(c, l.f32({3, 50}), 1e-5F);
         }},
        {"rope",
         [](context& c, leaves& l) {
             return rope(c, l.f32({64, 4, 9}), l.i32({9}, 500), 64, 1e4F);
         }},
        {"rope of some dimensions",
         [](context& c, leaves& l) {
             return rope(c, l.f32({48, 3, 5}), l.i32({5}, 90), 32, 5e5F);
         }},
        {"softmax",
         [](context& c, leaves& l) {
             return softmax(c, l.f32({129, 7, 2}), nullptr, 3);
         }},
        {"softmax with a mask",
         [](context& c, leaves& l) {
             return softmax(c, l.f32({64, 8, 4}), causal_mask(l, 64, 8), 0.125F);
         }},
        {"softmax of rows that are masked whole",
         [](context& c, leaves& l) {
             return softmax(c, l.f32({4, 8, 2}), causal_mask(l, 4, 8), 1);
         }},
        {"softmax of long rows",
         [](context& c, leaves& l) {
             return softmax(c, l.f32({5000, 2}), nullptr, 8);
         }},
        {"silu",
         [](context& c, leaves& l) {
             return silu(c, scale(c, l.f32({513, 3}), 20));
         }},
        {"gelu",
         [](context& c, leaves& l) {
             return gelu(c, scale(c, l.f32({513, 3}), 20));
         }},
        {"conv1d f16",
         [](context& c, leaves& l) {
             return conv1d(c, l.f16({3, 10, 24}), l.f32({40, 10}), 1, 1);
         }},
        {"conv1d f32 of stride 2",
         [](context& c, leaves& l) {
             return conv1d(c, l.f32({3, 8, 9}), l.f32({41, 8}), 2, 1);
         }},
        {"cont of a transposed tensor",
         [](context& c, leaves& l) {
             return cont(c, transpose(c, l.f32({37, 21, 2})));
         }},
        {"cont of f16",
         [](context& c, leaves& l) {
             return cont(c, permute(c, l.f16({6, 5, 4}), {2, 0, 1, 3}));
         }},
        {"copy into a cache of f16",
         [](context& c, leaves& l) {
             return copy(c, l.f32({64, 4}), view(c, l.f16({64, 10}), {64, 4}, 384));
         }},
        {"copy into a transposed cache",
         [](context& c, leaves& l) {
             node part = view(c, l.f16({32, 16}), {5, 16}, {64, 1024, 1024}, 20);
             return copy(c, transpose(c, l.f32({16, 5})), part);
         }},
        {"copy of f16 to f32",
         [](context& c, leaves& l) {
             return copy(c, l.f16({33, 3}), l.f32({99}));
         }},
        {"copy of i32",
         [](context& c, leaves& l) {
             return copy(c, l.i32({40}, 1000), l.i32({5, 8}, 10));
         }},
        {"concat of rows",
         [](context& c, leaves& l) {
             return concat(c, l.f32({20, 3}), l.f32({20, 9}), 1);
         }},
        {"concat within rows",
         [](context& c, leaves& l) {
             return concat(c, l.f32({7, 5, 2}), l.f32({12, 5, 2}), 0);
         }},
        {"an empty tensor",
         [](context& c, leaves& l) {
             return scale(c, l.f32({8, 0}), 2);
         }},
    };
    return all;
}

using seen = std::array<bool, tensor::op_names.size()>;

std::vector<float> result_of(const operation& o, cuda_device& d, bool on_device, seen& met) {
    leaves l;
    tensor::engine<hybrid<context>, bump_arena<tensor_extra>, cuda_device> engine(d);
    auto eval = engine.begin_eval();
    node result = o.build(eval.context(), l);
    result->output = result->root().output = true;
    if (on_device) engine.upload(l.all());
    tensor::graph& g = *eval.new_graph(16);
    g.expand(result);
    mark_offloaded(g, on_device ? too_many : 0);
    for (const tensor::tensor* t : g.nodes()) met[static_cast<std::size_t>(t->op)] = true;
    eval.run(g);
    return elements_of(*result);
}

}  // namespace

void check_operations(checks& c) {
    seen met{true};  // leaves are no nodes
    cuda_device d;
    for (const operation& o : operations()) {
        try {
            const auto expected = result_of(o, d, false, met);
            const auto got = result_of(o, d, true, met);
            const double far = distance(got, expected);
            c.that(far <= tolerance, o.what, "differs from the CPU by " + std::to_string(far));
            c.that(same_bits(got, result_of(o, d, true, met)), std::string(o.what) + ", the same bits again");
        } catch (const std::exception& e) {
            c.that(false, o.what, e.what());
        }
    }
    for (std::size_t i = 0; i < met.size(); ++i)
        if (!met[i]) c.that(false, "every operation is among these", tensor::op_names[i]);
    c.that(d.usage().live == 0, "nothing is held at the end");
}

}  // namespace alloclab::device::check
