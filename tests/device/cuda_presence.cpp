// A program on the real runtime that asks for devices, and makes one if it was linked with more than the probe.
#include <cstdio>
#include <stdexcept>

#include "alloclab/device/cuda_device.hpp"

int main() {
    const auto found = alloclab::device::find_cuda();
    if (!found.devices.empty()) {
        std::printf("found: %s\n", found.devices.front().c_str());
        return 0;
    }
    std::printf("%s\n", found.why_none.c_str());
#ifndef ALLOCLAB_PROBE_ALONE
    try {
        const alloclab::device::cuda_device device;
        return 1;
    } catch (const alloclab::device::no_cuda_device& error) {
        return error.what() == found.why_none ? 0 : 2;
    }
#endif
    return 0;
}
