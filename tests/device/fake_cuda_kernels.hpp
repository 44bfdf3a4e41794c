// Kernels of the tests of the fake, launched through `<<<>>>` by what nvcc makes of fake_cuda_kernels.cu.
#pragma once

#include <cuda_runtime_api.h>

namespace alloclab::device {

struct fill_arguments {
    float* to;
    int n;
};

/// Kernel "alloclab_test_fill".
void launch_fill(dim3 grid, dim3 block, cudaStream_t s, fill_arguments to, float value);
/// Kernel "alloclab_test_unknown".
void launch_unknown(cudaStream_t s);

}  // namespace alloclab::device
