#include <cublas_v2.h>

#include <cstddef>
#include <span>

#include "fake_launch.hpp"
#include "fake_runtime.hpp"

namespace device = alloclab::device;
namespace fake = device::fake;
using fake::runtime;

namespace {

cublasStatus_t status_of(cudaError_t e) noexcept {
    switch (e) {
        case cudaSuccess:
            return CUBLAS_STATUS_SUCCESS;
        case cudaErrorMemoryAllocation:
            return CUBLAS_STATUS_ALLOC_FAILED;
        case cudaErrorInvalidValue:
            return CUBLAS_STATUS_INVALID_VALUE;
        default:
            return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

// A failure that was asked for by the function's name has cuBLAS's own code.
template <fake::function_name name, unsigned duties = fake::ordinary, class F>
cublasStatus_t serve(F f) noexcept {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const runtime::verdict v = fake::attempt<name, duties>([&](runtime& r) {
        status = f(r);
        return cudaSuccess;
    });
    if (v.by_name) return static_cast<cublasStatus_t>(v.error);
    if (v.gone) return CUBLAS_STATUS_NOT_INITIALIZED;
    return v.error != cudaSuccess ? status_of(static_cast<cudaError_t>(v.error)) : status;
}

// A batch of matrices in columns, as one operand of a product.
struct operand {
    const void* data;
    bool transposed;
    int rows, columns;  // as it lies in memory
    std::ptrdiff_t leading;
    std::ptrdiff_t stride;

    [[nodiscard]] std::size_t index(int row, int column) const noexcept {
        const std::ptrdiff_t at = transposed ? row * leading + column : column * leading + row;
        return static_cast<std::size_t>(at);
    }
    [[nodiscard]] bool is_valid() const noexcept {
        return rows >= 0 && columns >= 0 && leading >= (rows > 1 ? rows : 1);
    }
    /// One matrix of the batch, where the emulation finds it.
    [[nodiscard]] float* matrix(fake::touches& memory, int which, device::access a) const {
        const std::ptrdiff_t elements = rows == 0 || columns == 0 ? 0 : (columns - 1) * leading + rows;
        const float* const first = static_cast<const float*>(data) + which * stride;
        return static_cast<float*>(memory(first, static_cast<std::size_t>(elements) * sizeof(float), a));
    }
};

operand make(const void* data, cublasOperation_t op, int rows, int columns, int leading, long long stride) noexcept {
    const bool transposed = op != CUBLAS_OP_N;
    return {data, transposed, transposed ? columns : rows, transposed ? rows : columns, leading, stride};
}

// c = alpha a b + beta c. The sums are exact but for one rounding, in no order of a GPU's.
void multiply(const operand& a, const float* av, const operand& b, const float* bv, const operand& c, float* cv,
              int inner, float alpha, float beta) noexcept {
    for (int column = 0; column < c.columns; ++column)
        for (int row = 0; row < c.rows; ++row) {
            double total = 0;
            for (int i = 0; i < inner; ++i) total += double{av[a.index(row, i)]} * double{bv[b.index(i, column)]};
            const std::size_t at = c.index(row, column);
            cv[at] = static_cast<float>(alpha * total + (beta != 0 ? double{beta} * double{cv[at]} : 0.0));
        }
}

cublasStatus_t gemm(runtime& r, cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                    int k, const float* alpha, const float* a, int lda, long long stride_a, const float* b, int ldb,
                    long long stride_b, const float* beta, float* c, int ldc, long long stride_c, int batch) {
    const fake::cublas_entry* const h = r.cublas.find(handle);
    if (h == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (h->scalars != CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
    const operand left = make(a, op_a, m, k, lda, stride_a);
    const operand right = make(b, op_b, k, n, ldb, stride_b);
    const operand out = make(c, CUBLAS_OP_N, m, n, ldc, stride_c);
    if (k < 0 || batch < 0 || !left.is_valid() || !right.is_valid() || !out.is_valid())
        return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
    const auto work = [=, by = *alpha, keep = *beta, space = h->workspace, space_bytes = h->workspace_bytes](
                          device::sim_device& d, device::stream on) {
        fake::touches memory(d);
        for (int i = 0; i < batch; ++i) {
            const float* const av = left.matrix(memory, i, device::access::read);
            const float* const bv = right.matrix(memory, i, device::access::read);
            float* const cv = out.matrix(memory, i, device::access::write);
            if (cv != nullptr && (k == 0 || (av != nullptr && bv != nullptr)))
                multiply(left, av, right, bv, out, cv, k, by, keep);
        }
        static_cast<void>(memory(space, space_bytes, device::access::write));
        return memory.declare(on, "cublas gemm", 2.0 * m * n * k * batch);
    };
    return status_of(r.give(h->stream, work));
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    return serve<"cublasCreate_v2">([&](runtime& r) {
        *handle = r.cublas.add({.device = fake::this_thread().device});
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    return serve<"cublasDestroy_v2", fake::gives_back>(
        [&](runtime& r) { return r.cublas.remove(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED; });
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t s) {
    return serve<"cublasSetStream_v2">([&](runtime& r) {
        fake::cublas_entry* const h = r.cublas.find(handle);
        if (h == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
        h->stream = s;
        h->workspace = nullptr;  // cuBLAS goes back to its own, which it has for each stream
        h->workspace_bytes = 0;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
    return serve<"cublasSetWorkspace_v2">([&](runtime& r) {
        fake::cublas_entry* const h = r.cublas.find(handle);
        if (h == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
        h->workspace = workspace;
        h->workspace_bytes = bytes;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t) {
    return serve<"cublasSetMathMode">([&](runtime& r) {
        return r.cublas.find(handle) != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
    });
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
    return serve<"cublasSgemm_v2">([&](runtime& r) {
        return gemm(r, handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
    });
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const float* alpha, const float* a, int lda, long long stride_a,
                                         const float* b, int ldb, long long stride_b, const float* beta, float* c,
                                         int ldc, long long stride_c, int batch) {
    return serve<"cublasSgemmStridedBatched">([&](runtime& r) {
        return gemm(r, handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c,
                    batch);
    });
}

const char* cublasGetStatusString(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "success";
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return "not initialized";
        case CUBLAS_STATUS_ALLOC_FAILED:
            return "allocation failed";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "invalid value";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "not supported";
        default:
            return "execution failed";
    }
}
