// How plain C++ launches the kernels that nvcc has made.
#pragma once

#include <cuda_runtime_api.h>

#include "kernel_args.hpp"

namespace alloclab::device::kernels {

/// On the current device. The answer is the thread's last error, which it leaves as it is: there must be none before.
[[nodiscard]] cudaError_t launch(const step& s, cudaStream_t stream) noexcept;

}  // namespace alloclab::device::kernels
