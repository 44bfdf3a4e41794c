// What a kernel is given, by value: where its operands lie and how far apart their elements are. For nvcc and for the
// host's compiler alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloclab/tensor/tensor.hpp"

namespace alloclab::device::kernels {

enum class kernel : std::uint8_t {
    move,  ///< elements in order, converted on the way: cont, copy, and f16 weights made f32
    concat,
    get_rows,
    add,
    mul,
    scale,
    silu,
    gelu,
    rope,
    conv1d,
    matmul,
    rms_norm_warp,
    rms_norm_block,
    layer_norm_warp,
    layer_norm_block,
    softmax_warp,
    softmax_block,
};

inline constexpr int warp_lanes = 32;
inline constexpr int block_lanes = 256;                ///< of a block that shares one row
inline constexpr std::int64_t longest_of_warp = 1024;  ///< elements of a row; longer ones are a block's
inline constexpr int matmul_columns = 8;               ///< that one warp computes, for one row of the weights
inline constexpr int rope_heads = 4;                   ///< that one thread turns by one angle

struct operand {
    std::byte* data;
    std::int64_t ne[4];
    std::size_t nb[4];
    tensor::type type;
    bool contiguous;
};

struct kernel_args {
    operand out;         ///< written
    operand a, b;        ///< read; no data and no elements where there is none
    std::int64_t items;  ///< elements, rows or whatever the kernel does one of at a time
    float reals[2];
    std::int32_t integers[2];
};

/// One launch. The threads of a grid go on until all items are done, so any grid does.
struct step {
    enum kernel kernel;
    unsigned blocks;
    unsigned threads;  ///< of a block
    kernel_args args;
};

}  // namespace alloclab::device::kernels
