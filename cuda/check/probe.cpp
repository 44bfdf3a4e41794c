// probe: a line for each GPU, its architecture and its name; else one line that says why there is none, and exit 77.
// gpu_check.sh asks it before it builds anything.
#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
    int devices = 0;
    cudaError_t answer = cudaGetDeviceCount(&devices);
    if (answer == cudaSuccess && devices == 0) answer = cudaErrorNoDevice;
    for (int i = 0; answer == cudaSuccess && i < devices; ++i) {
        cudaDeviceProp about{};
        answer = cudaGetDeviceProperties(&about, i);
        if (answer == cudaSuccess) std::printf("%d%d %s\n", about.major, about.minor, about.name);
    }
    if (answer == cudaSuccess) return 0;
    std::printf("no CUDA device: %s\n", cudaGetErrorString(answer));
    return 77;
}
