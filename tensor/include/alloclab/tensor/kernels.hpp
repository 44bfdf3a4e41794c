// kernels: what the operations compute, on the CPU. Every sum runs in one fixed order that depends on shapes alone, so
// the same inputs give the same bits wherever the tensors lie.
#pragma once

#include <cstdint>

#include "alloclab/tensor/tensor.hpp"

namespace alloclab::tensor {

/// Computes `t` from its sources; all of them must have host memory in `data`. Views compute nothing. Not for leaves.
/// Threads: several may compute different tensors. O(work of the operation); no allocation on the heap.
void compute(const tensor& t) noexcept;

/// Floating-point operations that computing `t` takes, roughly (2 per multiply-add), and the bytes it reads and writes.
struct work {
    double flops = 0;
    double bytes = 0;
};
[[nodiscard]] work work_of(const tensor& t) noexcept;

[[nodiscard]] float to_float(std::uint16_t half) noexcept;
/// Rounds to nearest even; overflow gives infinity.
[[nodiscard]] std::uint16_t to_half(float value) noexcept;

}  // namespace alloclab::tensor
