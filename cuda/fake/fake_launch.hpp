// fake_launch: what stands for a kernel where it is launched through `<<<>>>` without a GPU.
// Threads: a launch runs its emulation under the fake's lock, so it must not call the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device::fake {

/// The memory that one launch touches: the emulation gets at it only by saying so.
class touches {
public:
    explicit touches(sim_device& d) noexcept : device_(d) {}

    /// Where the emulation finds these bytes, of the device or page-locked; nullptr, and the launch is an illegal
    /// access, unless they lie within one live block. Nothing to touch for 0 bytes, and the answer is nullptr too.
    [[nodiscard]] void* operator()(const void* p, std::size_t bytes, access a);

    /// Gives the stream work that has touched all this, and is as long as its traffic takes.
    cudaError_t declare(device::stream s, std::string_view kernel, double flops = 0) const;

private:
    struct touch {
        const void* at;
        std::size_t bytes;
        access how;
    };

    sim_device& device_;
    std::vector<touch> all_;
    bool strayed_ = false;
};

struct emulation {
    std::vector<std::size_t> argument_bytes;  ///< of the kernel's parameters in order; a graph keeps their values
    std::function<void(void** arguments, dim3 grid, dim3 block, touches& memory)> run;
};

/// From now on a launch of the kernel with that name, as the compiler registers it, does this.
void emulate_as(std::string_view kernel, emulation e);

}  // namespace alloclab::device::fake
