// The kernels: the bodies of kernel_bodies.hpp over a grid, and their teams. No sum depends on the grid's size, and no
// kernel uses atomics: the same operands give the same bits.
#include <cuda_runtime_api.h>

#include "cuda_kernels.hpp"
#include "kernel_bodies.hpp"

namespace alloclab::device::kernels {
namespace {

/// A warp that shares an item.
struct warp_team {
    static __device__ int lane() { return static_cast<int>(threadIdx.x % warp_lanes); }
    static __device__ bool is_first() { return lane() == 0; }

    template <class Each>
    __device__ void each(std::int64_t n, Each each_of) const {
        for (std::int64_t i = lane(); i < n; i += warp_lanes) each_of(i);
    }
    /// All lanes have the same result: each step joins the same two values, whichever of the two lanes does it.
    template <int N, class T, class Join>
    static __device__ void join_warp(T (&own)[N], Join join) {
#pragma unroll
        for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int j = 0; j < N; ++j) own[j] = join(own[j], __shfl_xor_sync(0xffffffffU, own[j], distance));
    }
    template <int N, class T, class Join, class Each>
    __device__ void reduce(std::int64_t n, T (&result)[N], Join join, Each each_of) const {
        for (std::int64_t i = lane(); i < n; i += warp_lanes) each_of(i, result);
        join_warp(result, join);
    }
};

/// A block of block_lanes threads that shares an item.
struct block_team {
    template <class Each>
    __device__ void each(std::int64_t n, Each each_of) const {
        for (std::int64_t i = threadIdx.x; i < n; i += block_lanes) each_of(i);
    }
    template <int N, class T, class Join, class Each>
    __device__ void reduce(std::int64_t n, T (&result)[N], Join join, Each each_of) const {
        constexpr int warps = block_lanes / warp_lanes;
        __shared__ T of_warp[warps][N];
        for (std::int64_t i = threadIdx.x; i < n; i += block_lanes) each_of(i, result);
        warp_team::join_warp(result, join);
        __syncthreads();  // nobody reads the last reduction's any more
        if (warp_team::is_first())
            for (int j = 0; j < N; ++j) of_warp[threadIdx.x / warp_lanes][j] = result[j];
        __syncthreads();
        for (int j = 0; j < N; ++j) {
            result[j] = of_warp[0][j];
            for (int w = 1; w < warps; ++w) result[j] = join(result[j], of_warp[w][j]);
        }
    }
};

template <class Op>
__device__ void by_threads(const kernel_args& args) {
    each_item<Op>(args, std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x, std::uint64_t{gridDim.x} * blockDim.x);
}
template <class Op>
__device__ void by_warps(const kernel_args& args) {
    const std::int64_t warps = blockDim.x / warp_lanes;
    each_item<Op>(args, warp_team{}, blockIdx.x * warps + threadIdx.x / warp_lanes, gridDim.x * warps);
}
template <class Op>
__device__ void by_blocks(const kernel_args& args) {
    each_item<Op>(args, block_team{}, std::int64_t{blockIdx.x}, std::int64_t{gridDim.x});
}

}  // namespace
}  // namespace alloclab::device::kernels

namespace kernels = alloclab::device::kernels;

// By these names the emulation finds them.
extern "C" {
__global__ void alloclab_move(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::move>(args);
}
__global__ void alloclab_concat(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::concat>(args);
}
__global__ void alloclab_get_rows(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::get_rows>(args);
}
__global__ void alloclab_add(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::map_repeating<kernels::plus>>(args);
}
__global__ void alloclab_mul(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::map_repeating<kernels::times>>(args);
}
__global__ void alloclab_scale(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::map<kernels::times>>(args);
}
__global__ void alloclab_silu(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::map<kernels::sigmoid_linear>>(args);
}
__global__ void alloclab_gelu(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::map<kernels::gaussian_linear>>(args);
}
__global__ void alloclab_rope(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::rope>(args);
}
__global__ void alloclab_conv1d(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_threads<kernels::conv1d>(args);
}
__global__ void alloclab_matmul(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_warps<kernels::matmul>(args);
}
__global__ void alloclab_rms_norm_warp(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_warps<kernels::rms_norm>(args);
}
__global__ void alloclab_rms_norm_block(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_blocks<kernels::rms_norm>(args);
}
__global__ void alloclab_layer_norm_warp(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_warps<kernels::layer_norm>(args);
}
__global__ void alloclab_layer_norm_block(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_blocks<kernels::layer_norm>(args);
}
__global__ void alloclab_softmax_warp(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_warps<kernels::softmax>(args);
}
__global__ void alloclab_softmax_block(const __grid_constant__ kernels::kernel_args args) {
    kernels::by_blocks<kernels::softmax>(args);
}
}

namespace alloclab::device::kernels {

cudaError_t launch(const step& s, cudaStream_t stream) noexcept {
    static constexpr void (*functions[])(kernel_args) = {alloclab_move,
                                                         alloclab_concat,
                                                         alloclab_get_rows,
                                                         alloclab_add,
                                                         alloclab_mul,
                                                         alloclab_scale,
                                                         alloclab_silu,
                                                         alloclab_gelu,
                                                         alloclab_rope,
                                                         alloclab_conv1d,
                                                         alloclab_matmul,
                                                         alloclab_rms_norm_warp,
                                                         alloclab_rms_norm_block,
                                                         alloclab_layer_norm_warp,
                                                         alloclab_layer_norm_block,
                                                         alloclab_softmax_warp,
                                                         alloclab_softmax_block};
    static_assert(sizeof functions / sizeof *functions == static_cast<std::size_t>(kernel::softmax_block) + 1);
    functions[static_cast<std::size_t>(s.kernel)]<<<s.blocks, s.threads, 0, stream>>>(s.args);
    return cudaPeekAtLastError();
}

}  // namespace alloclab::device::kernels
