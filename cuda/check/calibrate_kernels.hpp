// calibrate_kernels: work of a known size for the device that is being calibrated. Each gives it to the stream and
// returns; the kernels themselves need nvcc, and a fake of the runtime has stand-ins for them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace alloclab::device::check {

/// Nothing at all, for the cost of a launch.
cudaError_t launch_nothing(cudaStream_t s);
/// Keeps the stream busy for so many cycles of the device's clock.
cudaError_t launch_spin(cudaStream_t s, long long cycles);
/// Reads `n` floats and writes as many, each once.
cudaError_t launch_traffic(cudaStream_t s, float* to, const float* from, std::size_t n);
/// Fused multiply-adds in registers, one float written per thread.
cudaError_t launch_arithmetic(cudaStream_t s, float* out, int blocks);

inline constexpr int arithmetic_threads = 256;  ///< of a block
inline constexpr int arithmetic_rounds = 1024;  ///< of a thread
inline constexpr int arithmetic_chains = 8;     ///< multiply-adds of a round, none of which waits for another
[[nodiscard]] constexpr double arithmetic_flops(int blocks) noexcept {
    return 2.0 * blocks * arithmetic_threads * arithmetic_rounds * arithmetic_chains;
}

}  // namespace alloclab::device::check
