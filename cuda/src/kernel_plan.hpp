// kernel_plan: which kernel computes a tensor, over how many threads, and what it is given. Plain C++ without CUDA.
#pragma once

#include <string_view>

#include "alloclab/tensor/tensor.hpp"
#include "kernel_args.hpp"

namespace alloclab::device::kernels {

/// Empty where a kernel can compute `t`: its sources are there, with data that is aligned for their elements, and
/// shapes, types and strides are those that ops.hpp makes; else the rule that it breaks. The kernels check nothing.
[[nodiscard]] std::string_view why_not(const tensor::tensor& t) noexcept;

/// For what `why_not` has nothing against, is not a view and not empty.
[[nodiscard]] step plan(const tensor::tensor& t) noexcept;

/// Rows of f16 weights, or part of them, into contiguous f32 at `to`.
[[nodiscard]] step plan_widening(const operand& weights, void* to) noexcept;

[[nodiscard]] operand operand_of(const tensor::tensor& t) noexcept;
[[nodiscard]] std::string_view name_of(kernel k) noexcept;

}  // namespace alloclab::device::kernels
