// launcher: computes tensors on the current device: matmul by cuBLAS, the rest by the kernels of kernels.cu. Results
// are within 1e-4 * (1 + |x|) of the CPU's x, and the same bits every time and on every stream: sums run in a fixed
// order, without atomics, and cuBLAS computes in plain f32 (no TF32) with a workspace of its own for each product.
// Decode is not for cuBLAS: up to 8 columns, where the weights' way through memory is all that counts, are done by a
// kernel that reads f16 as it is. It also does what cuBLAS cannot take (rows that overlap), and what no workspace can
// be had for: when the pool is full or missing, and while the stream is captured. It is slower there, by much for many
// columns, and its bits differ from cuBLAS's.
// Cost: one launch; a matmul by cuBLAS has its workspace allocated and freed in the stream's order, and f16 weights are
// made f32 in it, 64 MiB at a time. Threads: one at a time.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <string_view>

#include "alloclab/tensor/tensor.hpp"
#include "kernel_args.hpp"

namespace alloclab::device {

class launcher {
public:
    launcher() noexcept = default;
    launcher(const launcher&) = delete;
    launcher& operator=(const launcher&) = delete;
    ~launcher();

    /// For the current device. Workspaces come from `pool`, which must outlive this; nullptr where there is none.
    /// After a failure there is nothing to launch with.
    [[nodiscard]] cudaError_t setup(cudaMemPool_t pool) noexcept;
    /// The handle is lost with its process: nothing is to be destroyed.
    void abandon() noexcept { blas_ = nullptr; }

    /// Empty when `t`, whose data and sources' data are device memory, is on its way; else why not, valid until the
    /// next call, and an error of the runtime's is also the thread's last error, which must be none before. Views and
    /// empty tensors launch nothing.
    [[nodiscard]] std::string_view launch(const tensor::tensor& t, cudaStream_t s) noexcept;

private:
    class product;

    [[nodiscard]] bool multiply(const product& p, cudaStream_t s) noexcept;
    [[nodiscard]] bool multiply(const product& p, std::byte* space, cudaStream_t s) noexcept;
    [[nodiscard]] bool run(const kernels::step& s, cudaStream_t stream) noexcept;
    bool say(const char* call, const char* why) noexcept;
    bool succeeds(cudaError_t error, const char* call) noexcept;
    bool succeeds(cublasStatus_t status, const char* call) noexcept;

    cublasHandle_t blas_ = nullptr;
    cudaMemPool_t pool_ = nullptr;
    std::string_view op_;  // of the tensor at hand
    std::array<char, 256> text_{};
};

}  // namespace alloclab::device
