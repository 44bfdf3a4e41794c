// A program that keeps a device until after main, when the driver is gone already. It shall end in silence with 0.
#include <cstdlib>

#include "alloclab/device/cuda_device.hpp"
#include "alloclab/device/sim_device.hpp"
#include "fake_cuda.hpp"

namespace {

using namespace alloclab::device;

sim_device gpu(std::size_t{1} << 20);
struct installed {
    installed() {
        sim_device* const devices[] = {&gpu};
        fake::install(devices);
    }
} at_first;
cuda_device device;
struct last_user {
    void* block = nullptr;
    event recorded = event::none;
    ~last_user() {
        device.deallocate(block);
        device.destroy(recorded);
    }
} user;

}  // namespace

int main() {
    user.block = device.allocate(4096);
    user.recorded = device.create_event();
    const bool works = user.block != nullptr && device.record(user.recorded, cuda_device::default_stream());
    std::atexit([] { fake::unload(); });
    return works ? EXIT_SUCCESS : EXIT_FAILURE;
}
