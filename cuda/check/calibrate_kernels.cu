#include <algorithm>

#include "calibrate_kernels.hpp"

namespace alloclab::device::check {
namespace {

__global__ void nothing() {}

__global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

__global__ void traffic(float4* to, const float4* from, std::size_t n) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) to[i] = from[i];
}

__global__ void arithmetic(float* out) {
    float sums[arithmetic_chains];
    const float x = 1.0F + static_cast<float>(threadIdx.x) * 1e-7F;
    for (int c = 0; c < arithmetic_chains; ++c) sums[c] = static_cast<float>(c);
    for (int i = 0; i < arithmetic_rounds; ++i)
#pragma unroll
        for (int c = 0; c < arithmetic_chains; ++c) sums[c] = fmaf(sums[c], x, 1e-3F);
    float all = 0;
    for (int c = 0; c < arithmetic_chains; ++c) all += sums[c];
    out[std::size_t{blockIdx.x} * blockDim.x + threadIdx.x] = all;  // so that none of it can be left out
}

}  // namespace

cudaError_t launch_nothing(cudaStream_t s) {
    nothing<<<1, 1, 0, s>>>();
    return cudaGetLastError();
}

cudaError_t launch_spin(cudaStream_t s, long long cycles) {
    spin<<<1, 1, 0, s>>>(cycles);
    return cudaGetLastError();
}

cudaError_t launch_traffic(cudaStream_t s, float* to, const float* from, std::size_t n) {
    const std::size_t quads = n / 4;
    const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(quads / 256, 1, 1 << 16));
    traffic<<<blocks, 256, 0, s>>>(reinterpret_cast<float4*>(to), reinterpret_cast<const float4*>(from), quads);
    return cudaGetLastError();
}

cudaError_t launch_arithmetic(cudaStream_t s, float* out, int blocks) {
    arithmetic<<<blocks, arithmetic_threads, 0, s>>>(out);
    return cudaGetLastError();
}

}  // namespace alloclab::device::check
