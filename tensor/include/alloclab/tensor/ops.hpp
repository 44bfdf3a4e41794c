// ops: one function per operation. Each makes one tensor in `c` and computes nothing; kernels.hpp computes.
// Shapes are written innermost first, as in ggml. Every function throws shape_error when shapes or types do not fit and
// context_exhausted when `c` is full; O(1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloclab/tensor/context.hpp"

namespace alloclab::tensor {

/// Rows of `table` [k, n] (f32 or f16) picked by `ids` [m] (i32): f32 [k, m]. An id outside [0, n) picks NaN.
tensor* get_rows(context& c, tensor* table, tensor* ids);
/// a + b and a * b, f32, `b` repeated along dimensions where it divides those of `a`; shape of `a`.
tensor* add(context& c, tensor* a, tensor* b);
tensor* mul(context& c, tensor* a, tensor* b);
tensor* scale(context& c, tensor* a, float factor);
/// `weights` [k, n, p, q] f32 or f16, `x` [k, m, r, s] f32: f32 [n, m, r, s], where r and s are multiples of p and q
/// (grouped-query attention). Rows of both must be contiguous.
tensor* matmul(context& c, tensor* weights, tensor* x);
tensor* rms_norm(context& c, tensor* a, float eps);
tensor* layer_norm(context& c, tensor* a, float eps);
/// Rotates the first `dimensions` (even) of each row of `a` [d, heads, tokens] by `positions` [tokens] (i32); pairs are
/// (i, i + dimensions/2), angle position * base^(-2i/dimensions).
tensor* rope(context& c, tensor* a, tensor* positions, std::int32_t dimensions, float base);
/// softmax over each row of factor * a + mask; `mask` is nullptr or f32 [ne0, ne1] repeated over the rest. A row that
/// is -inf throughout gives zeros.
tensor* softmax(context& c, tensor* a, tensor* mask, float factor);
tensor* silu(context& c, tensor* a);
/// gelu by its tanh form, as whisper and GPT-2 use it.
tensor* gelu(context& c, tensor* a);
/// `kernel` [width, in, out], contiguous, f32 or f16, over `signal` [length, in] f32: f32
/// [(length + 2*padding - width)/stride + 1, out].
tensor* conv1d(context& c, tensor* kernel, tensor* signal, std::int32_t stride, std::int32_t padding);

/// The same bytes under another shape with as many elements; `a` must be contiguous.
tensor* reshape(context& c, tensor* a, const shape& s);
/// Part of `a`: `s` elements, `strides` bytes apart along dimensions 1 to 3 and adjacent along dimension 0. Strides and
/// offset are multiples of the element size.
tensor* view(context& c, tensor* a, const shape& s, const std::array<std::size_t, 3>& strides, std::size_t offset);
/// The leading `s` elements of `a` from `offset` bytes on, laid out contiguously.
tensor* view(context& c, tensor* a, const shape& s, std::size_t offset);
/// Dimension i of `a` becomes dimension axes[i] of the result.
tensor* permute(context& c, tensor* a, std::array<std::uint8_t, 4> axes);
/// Dimensions 0 and 1 exchanged.
tensor* transpose(context& c, tensor* a);
/// `a` laid out contiguously.
tensor* cont(context& c, tensor* a);
/// `a` converted to `b`'s type and written into `b` (as many elements), in element order; the result looks at `b`.
tensor* copy(context& c, tensor* a, tensor* b);
/// a then b along `dimension` (0 to 3); the other dimensions are equal.
tensor* concat(context& c, tensor* a, tensor* b, std::int32_t dimension);

}  // namespace alloclab::tensor
