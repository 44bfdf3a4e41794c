#include "cuda_launch.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "alloclab/bytes.hpp"
#include "cuda_kernels.hpp"
#include "kernel_plan.hpp"

namespace alloclab::device {

using kernels::operand;
using tensor::type;

namespace {

constexpr std::size_t blas_bytes = std::size_t{4} << 20;      // what cuBLAS takes by default on most devices
constexpr std::size_t widened_bytes = std::size_t{64} << 20;  // at most, unless one row is longer

}  // namespace

/// A matmul for cuBLAS, a block of the weights at a time: rows of a few matrices, f32 and in one stride, which f16
/// weights have once they are widened.
class launcher::product {
public:
    struct block {
        operand weights;
        std::int64_t row, matrix, cube;  // where it begins
    };

    explicit product(const tensor::tensor& t) noexcept
        : weights_(kernels::operand_of(*t.sources[0])),
          x_(kernels::operand_of(*t.sources[1])),
          out_(kernels::operand_of(t)) {
        const auto matrix = static_cast<std::size_t>(std::max<std::int64_t>(k() * n(), 1)) * sizeof(float);
        const auto row = static_cast<std::size_t>(std::max<std::int64_t>(k(), 1)) * sizeof(float);
        if (!widens()) return;
        rows_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(widened_bytes / row), 1, n());
        matrices_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(widened_bytes / matrix), 1, weights_.ne[2]);
    }

    [[nodiscard]] bool is_for_cublas() const noexcept {
        constexpr std::int64_t most = std::numeric_limits<int>::max();
        return m() > kernels::matmul_columns && k() >= 1 && k() <= most && n() <= most && m() <= most &&
               out_.ne[2] <= most && leading(x_) >= k() && leading(x_) <= most &&
               (widens() || (leading(weights_) >= k() && leading(weights_) <= most));
    }
    [[nodiscard]] std::size_t workspace() const noexcept {
        return blas_bytes + (widens() ? static_cast<std::size_t>(k() * rows_ * matrices_) * sizeof(float) : 0);
    }
    [[nodiscard]] bool widens() const noexcept { return weights_.type == type::f16; }

    template <class Use>
    bool each_block(Use use) const {
        for (std::int64_t cube = 0; cube < weights_.ne[3]; ++cube)
            for (std::int64_t matrix = 0; matrix < weights_.ne[2]; matrix += matrices_)
                for (std::int64_t row = 0; row < n(); row += rows_) {
                    block b{weights_, row, matrix, cube};
                    b.weights.data +=
                        at(row) * weights_.nb[1] + at(matrix) * weights_.nb[2] + at(cube) * weights_.nb[3];
                    b.weights.ne[1] = std::min(rows_, n() - row);
                    b.weights.ne[2] = std::min(matrices_, weights_.ne[2] - matrix);
                    b.weights.ne[3] = 1;
                    b.weights.contiguous = false;
                    if (!use(b)) return false;
                }
        return true;
    }

    /// The products that the block is part of, in calls of cuBLAS. It knows columns: a row here is one of its columns.
    template <class Multiply>
    bool each_call(const block& b, Multiply multiply) const {
        const std::int64_t share2 = x_.ne[2] / weights_.ne[2], share3 = x_.ne[3] / weights_.ne[3];
        // As many x as weights go in one batch; else the x of each weights.
        const std::int64_t calls = share2 == 1 ? 1 : b.weights.ne[2];
        const std::int64_t batch = share2 == 1 ? b.weights.ne[2] : share2;
        for (std::int64_t cube = b.cube * share3; cube < (b.cube + 1) * share3; ++cube)
            for (std::int64_t call = 0; call < calls; ++call) {
                const std::int64_t matrix = (b.matrix + call) * share2;
                const std::byte* const w = b.weights.data + at(call) * b.weights.nb[2];
                const std::byte* const x = x_.data + at(matrix) * x_.nb[2] + at(cube) * x_.nb[3];
                std::byte* const out =
                    out_.data + at(b.row) * sizeof(float) + at(matrix) * out_.nb[2] + at(cube) * out_.nb[3];
                const auto done = multiply(
                    static_cast<int>(b.weights.ne[1]), static_cast<int>(m()), static_cast<int>(k()), floats(w),
                    leading(b.weights), share2 == 1 ? stride(b.weights) : 0, floats(x), leading(x_), stride(x_),
                    reinterpret_cast<float*>(out), static_cast<int>(n()), stride(out_), static_cast<int>(batch));
                if (!done) return false;
            }
        return true;
    }

private:
    [[nodiscard]] static std::size_t at(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
    [[nodiscard]] static const float* floats(const std::byte* p) noexcept { return reinterpret_cast<const float*>(p); }
    [[nodiscard]] std::int64_t k() const noexcept { return weights_.ne[0]; }
    [[nodiscard]] std::int64_t n() const noexcept { return out_.ne[0]; }
    [[nodiscard]] std::int64_t m() const noexcept { return out_.ne[1]; }
    /// Elements from row to row; of a single row, those of a matrix that has more.
    [[nodiscard]] static std::int64_t leading(const operand& o) noexcept {
        return o.ne[1] == 1 ? o.ne[0] : static_cast<std::int64_t>(o.nb[1] / tensor::bytes_of(o.type));
    }
    [[nodiscard]] static std::int64_t stride(const operand& o) noexcept {
        return static_cast<std::int64_t>(o.nb[2] / sizeof(float));
    }

    operand weights_, x_, out_;
    std::int64_t rows_ = std::numeric_limits<std::int64_t>::max() / 2;  // of a block; all
    std::int64_t matrices_ = std::numeric_limits<std::int64_t>::max() / 2;
};

launcher::~launcher() {
    if (blas_ != nullptr) (void)cublasDestroy(blas_);
}

cudaError_t launcher::setup(cudaMemPool_t pool) noexcept {
    pool_ = pool;
    op_ = "setup";
    if (succeeds(cublasCreate(&blas_), "cublasCreate") &&
        succeeds(cublasSetMathMode(blas_, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode"))
        return cudaSuccess;
    const cudaError_t error = cudaPeekAtLastError();
    return error != cudaSuccess ? error : cudaErrorUnknown;
}

std::string_view launcher::launch(const tensor::tensor& t, cudaStream_t s) noexcept {
    op_ = tensor::name_of(t.op);
    text_[0] = '\0';
    const std::string_view why = kernels::why_not(t);
    if (!why.empty()) {
        std::snprintf(text_.data(), text_.size(), "%.*s: %.*s", static_cast<int>(op_.size()), op_.data(),
                      static_cast<int>(why.size()), why.data());
        return text_.data();
    }
    if (t.op == tensor::op::view || t.elements() == 0) return {};
    bool done = false;
    if (t.op == tensor::op::matmul && pool_ != nullptr) {
        const product p(t);
        if (p.is_for_cublas()) done = multiply(p, s);
    }
    if (!done && text_[0] == '\0') (void)run(kernels::plan(t), s);
    return text_.data();
}

// False without a text: there is no workspace to be had.
bool launcher::multiply(const product& p, cudaStream_t s) noexcept {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (!succeeds(cudaStreamIsCapturing(s, &capture), "cudaStreamIsCapturing")) return false;
    if (capture != cudaStreamCaptureStatusNone) return false;
    void* space = nullptr;
    const cudaError_t error = cudaMallocFromPoolAsync(&space, p.workspace(), pool_, s);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return false;
    }
    if (!succeeds(error, "cudaMallocFromPoolAsync")) return false;
    const bool done = multiply(p, static_cast<std::byte*>(space), s);
    const cudaError_t freed = cudaFreeAsync(space, s);
    return done && succeeds(freed, "cudaFreeAsync");
}

bool launcher::multiply(const product& p, std::byte* space, cudaStream_t s) noexcept {
    // The stream first: setting it makes cuBLAS forget the workspace.
    if (!succeeds(cublasSetStream(blas_, s), "cublasSetStream") ||
        !succeeds(cublasSetWorkspace(blas_, space, blas_bytes), "cublasSetWorkspace"))
        return false;
    const float one = 1, none = 0;
    return p.each_block([&](product::block& b) {
        if (p.widens()) {
            const kernels::step widening = kernels::plan_widening(b.weights, space + blas_bytes);
            if (!run(widening, s)) return false;
            b.weights = widening.args.out;
        }
        const bool done =
            p.each_call(b, [&](int n, int m, int k, const float* w, std::int64_t w_leading, std::int64_t w_stride,
                               const float* x, std::int64_t x_leading, std::int64_t x_stride, float* out,
                               int out_leading, std::int64_t out_stride, int batch) {
                return succeeds(
                    cublasSgemmStridedBatched(blas_, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, w,
                                              static_cast<int>(w_leading), w_stride, x, static_cast<int>(x_leading),
                                              x_stride, &none, out, out_leading, out_stride, batch),
                    "cublasSgemmStridedBatched");
            });
        return done;
    });
}

bool launcher::run(const kernels::step& s, cudaStream_t stream) noexcept {
    return succeeds(kernels::launch(s, stream), kernels::name_of(s.kernel).data());
}

bool launcher::say(const char* call, const char* why) noexcept {
    std::snprintf(text_.data(), text_.size(), "%.*s: %s: %s", static_cast<int>(op_.size()), op_.data(), call, why);
    return false;
}

bool launcher::succeeds(cudaError_t error, const char* call) noexcept {
    return error == cudaSuccess || say(call, cudaGetErrorName(error));
}

bool launcher::succeeds(cublasStatus_t status, const char* call) noexcept {
    return status == CUBLAS_STATUS_SUCCESS || say(call, cublasGetStatusString(status));
}

}  // namespace alloclab::device
