// cuda_devices: what find_cuda finds, as a program of its own: a name a line, or a line that begins with "no CUDA
// device". Choose it over find_cuda where the runtime must not come into the asking process: linked, it takes part in
// its start and its thread-local memory. Exit: 0 in either case.
#include <cstdio>

#include "alloclab/device/cuda_device.hpp"

int main() {
    const auto found = alloclab::device::find_cuda();
    for (const std::string& name : found.devices) std::printf("%s\n", name.c_str());
    if (found.devices.empty()) std::printf("%s\n", found.why_none.c_str());
    return 0;
}
