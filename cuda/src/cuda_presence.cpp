// find_cuda alone, so that a program can ask for devices without cuBLAS and kernels on board.
#include "cuda_presence.hpp"

#include <pthread.h>

#include <atomic>

#include "alloclab/device/cuda_device.hpp"

namespace alloclab::device {
namespace {

std::atomic<bool> in_use{false};
std::atomic<bool> lost{false};

// After the first success; a driver that is absent is as absent in the child.
void guard_against_fork() noexcept {
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { lost = in_use.load(); });
    in_use = registered == 0;
}

std::string advice(cudaError_t error) {
    switch (error) {
        case cudaErrorInsufficientDriver:
            return "; there is no NVIDIA driver here, or one too old for CUDA " +
                   std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
        case cudaErrorNoDevice:
            return "; the driver sees none, or CUDA_VISIBLE_DEVICES hides them";
        case cudaErrorStubLibrary:
            return "; the toolkit's stub stands in for the driver: take its folder off LD_LIBRARY_PATH";
        default:
            return {};
    }
}

}  // namespace

bool lost_by_fork() noexcept { return lost; }

std::string line_of(const char* function, cudaError_t error) {
    return std::string(function) + ": " + cudaGetErrorName(error) + " (" + std::to_string(static_cast<int>(error)) +
           "), " + cudaGetErrorString(error);
}

cuda_presence find_cuda() {
    if (lost_by_fork()) return {.devices = {}, .why_none = std::string("no CUDA device: ") + why_lost_by_fork};
    const cudaError_t earlier = cudaPeekAtLastError();
    const auto none = [&](const char* function, cudaError_t error) {
        if (earlier == cudaSuccess) (void)cudaGetLastError();
        return cuda_presence{.devices = {}, .why_none = "no CUDA device: " + line_of(function, error) + advice(error)};
    };
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
        return none("cudaGetDeviceCount", error);
    if (count == 0) return {.devices = {}, .why_none = "no CUDA device: the driver sees none"};
    guard_against_fork();
    cuda_presence found;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        cudaDeviceProp properties{};
        if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal); error != cudaSuccess)
            return none("cudaGetDeviceProperties", error);
        found.devices.emplace_back(properties.name);
    }
    return found;
}

}  // namespace alloclab::device
