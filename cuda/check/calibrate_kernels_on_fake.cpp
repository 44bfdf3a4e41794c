// Stand-ins for the kernels where the runtime is a fake: they touch what the kernels touch.
#include "calibrate_kernels.hpp"

namespace alloclab::device::check {

cudaError_t launch_nothing(cudaStream_t) { return cudaSuccess; }
cudaError_t launch_spin(cudaStream_t, long long) { return cudaSuccess; }

cudaError_t launch_traffic(cudaStream_t s, float* to, const float* from, std::size_t n) {
    return cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyDeviceToDevice, s);
}

cudaError_t launch_arithmetic(cudaStream_t s, float* out, int blocks) {
    return cudaMemsetAsync(out, 0, static_cast<std::size_t>(blocks) * arithmetic_threads * sizeof(float), s);
}

}  // namespace alloclab::device::check
