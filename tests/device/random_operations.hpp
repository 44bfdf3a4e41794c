// random_operations: tensors of every operation, over sources of random shapes and strides, with data in host memory.
// The same seed gives the same tensors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/kernels.hpp"
#include "alloclab/tensor/ops.hpp"

namespace alloclab::device {

/// Those that compute something.
inline constexpr std::array computing_ops{
    tensor::op::get_rows, tensor::op::add,        tensor::op::mul,  tensor::op::scale,   tensor::op::matmul,
    tensor::op::rms_norm, tensor::op::layer_norm, tensor::op::rope, tensor::op::softmax, tensor::op::silu,
    tensor::op::gelu,     tensor::op::conv1d,     tensor::op::cont, tensor::op::copy,    tensor::op::concat};

class random_operations {
public:
    using node = tensor::tensor*;

    explicit random_operations(std::uint32_t seed) : random_(seed) {}

    /// From `first` to `last`.
    std::int64_t number(std::int64_t first, std::int64_t last) {
        return first + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(last - first + 1));
    }
    bool one_of(int n) { return number(1, n) == 1; }

    /// Elements of any value; i32 from -2 to 9. As a view with gaps, in any order of dimensions, or as it is.
    node source(tensor::type t, const tensor::shape& s, bool rows_are_adjacent = false) {
        if (one_of(3)) return leaf(t, s);
        std::array<std::uint8_t, 4> axes{0, 1, 2, 3};
        std::shuffle(axes.begin() + (rows_are_adjacent ? 1 : 0), axes.end(), random_);
        tensor::shape inner{1}, outer{1};
        for (std::size_t d = 0; d < 4; ++d) {
            inner.ne[d] = s.ne[axes[d]];
            outer.ne[d] = inner.ne[d] + number(0, 2);
        }
        node all = leaf(t, outer);
        std::size_t offset = 0;
        for (std::size_t d = 0; d < 4; ++d)
            offset += static_cast<std::size_t>(number(0, outer.ne[d] - inner.ne[d])) * all->nb[d];
        node part = view(memory_, all, inner, {all->nb[1], all->nb[2], all->nb[3]}, offset);
        return permute(memory_, part, axes);
    }
    node leaf(tensor::type t, const tensor::shape& s) {
        node made = memory_.new_tensor(t, s);
        std::normal_distribution<float> noise;
        for (std::size_t i = 0; i < made->elements(); ++i) switch (t) {
                case tensor::type::f32:
                    static_cast<float*>(made->data)[i] = noise(random_);
                    break;
                case tensor::type::f16:
                    static_cast<std::uint16_t*>(made->data)[i] = tensor::to_half(noise(random_));
                    break;
                case tensor::type::i32:
                    static_cast<std::int32_t*>(made->data)[i] = static_cast<std::int32_t>(number(-2, 9));
                    break;
            }
        return made;
    }

    /// A tensor of that operation, with its own memory unless it is a view.
    node make(tensor::op o) { return placed(build(o)); }
    /// The same, with memory.
    node placed(node t) {
        if (!t->is_alias()) t->data = leaf(t->type, {t->ne[0], t->ne[1], t->ne[2], t->ne[3]})->data;
        return t;
    }

    /// A mask that leaves nothing of some rows.
    node mask(std::int64_t columns, std::int64_t rows) {
        node made = leaf(tensor::type::f32, {columns, rows});
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t i = 0; i < columns; ++i)
                if (r % 3 == 0 || one_of(3)) static_cast<float*>(made->data)[r * columns + i] = -HUGE_VALF;
        return made;
    }

    tensor::context& memory() noexcept { return memory_; }

private:
    using type = tensor::type;

    node build(tensor::op o);
    type float_type() { return one_of(2) ? type::f32 : type::f16; }
    tensor::shape small() { return {number(1, 9), number(1, 9), number(1, 4), number(1, 3)}; }
    /// Shorter than a warp, of a warp, or of a block.
    std::int64_t row() { return one_of(2) ? number(1, 40) : one_of(2) ? number(41, 1024) : number(1025, 2100); }
    tensor::shape rows() { return {row(), number(1, 5), number(1, 3), number(1, 2)}; }
    tensor::shape part_of(const tensor::shape& s) {
        tensor::shape part = s;
        for (auto& n : part.ne) {
            if (one_of(3)) n = 1;
            while (n % 2 == 0 && one_of(3)) n /= 2;
        }
        return part;
    }

    malloc_source source_;
    tensor::context memory_{{.growing = growth{}, .no_alloc = false}, any_source(source_)};
    std::mt19937 random_;
};

inline random_operations::node random_operations::build(tensor::op o) {
    using tensor::op;
    tensor::context& c = memory_;
    const auto f32 = [&](const tensor::shape& s) { return source(type::f32, s); };
    switch (o) {
        case op::get_rows: {
            const std::int64_t rows = number(1, 9);
            return get_rows(c, source(float_type(), {number(1, 300), rows}), source(type::i32, {number(1, 9)}));
        }
        case op::add:
        case op::mul: {
            const tensor::shape s = small();
            node a = f32(s);
            node b = f32(part_of(s));
            return o == op::add ? add(c, a, b) : mul(c, a, b);
        }
        case op::scale:
            return scale(c, f32(small()), -0.37F);
        case op::matmul: {
            const std::int64_t k = one_of(3) ? number(1, 12) : number(13, 700), p = number(1, 3), q = number(1, 2);
            node w = source(float_type(), {k, number(1, 40), p, q}, true);
            const std::int64_t m = one_of(2) ? number(1, 8) : number(9, 30);
            return matmul(c, w, source(type::f32, {k, m, p * number(1, 3), q * number(1, 2)}, true));
        }
        case op::rms_norm:
            return rms_norm(c, f32(rows()), 1e-5F);
        case op::layer_norm:
            return layer_norm(c, f32(rows()), 1e-5F);
        case op::rope: {
            const std::int64_t d = number(1, 70), tokens = number(1, 9);
            node at = source(type::i32, {tokens});
            for (std::size_t i = 0; i < at->root().elements(); ++i)
                static_cast<std::int32_t*>(at->root().data)[i] = static_cast<std::int32_t>(number(0, 200'000));
            node a = f32({d, number(1, 10), tokens});
            return rope(c, a, at, static_cast<std::int32_t>(2 * number(0, d / 2)), one_of(2) ? 1e4F : 5e5F);
        }
        case op::softmax: {
            const tensor::shape s = rows();
            node m = one_of(3) ? nullptr : one_of(2) ? mask(s.ne[0], s.ne[1]) : f32({s.ne[0], s.ne[1]});
            return softmax(c, f32(s), m, 1.7F);
        }
        case op::silu:
            return silu(c, f32(small()));
        case op::gelu:
            return gelu(c, f32(small()));
        case op::conv1d: {
            const std::int64_t width = number(1, 5), in = number(1, 20);
            node kernel = leaf(float_type(), {width, in, number(1, 9)});
            const auto padding = static_cast<std::int32_t>(number(0, 4));
            node signal = f32({number(width, 50), in});
            return conv1d(c, kernel, signal, static_cast<std::int32_t>(number(1, 3)), padding);
        }
        case op::cont:
            return cont(c, source(one_of(3) ? type::i32 : float_type(), small()));
        case op::copy: {
            const type from = one_of(4) ? type::i32 : float_type();
            const tensor::shape s = small();
            // As many elements in another shape.
            const tensor::shape other{s.ne[0] * s.ne[1], s.ne[2], 1, s.ne[3]};
            node a = source(from, s);
            return copy(c, a, source(from == type::i32 ? from : float_type(), one_of(2) ? s : other));
        }
        case op::concat: {
            const auto along = static_cast<std::int32_t>(number(0, 3));
            const type t = one_of(3) ? type::i32 : float_type();
            tensor::shape s = small();
            node a = source(t, s);
            s.ne[static_cast<std::size_t>(along)] = number(1, 7);
            return concat(c, a, source(t, s), along);
        }
        case op::none:
        case op::view:
            break;
    }
    return nullptr;
}

}  // namespace alloclab::device
