// gpu_check: whether cuda_device and the engine over it do on this GPU what they promise. Needs no framework. One line
// a check: ok, FAILED or skipped, its group and what holds; the last line counts them.
// Exit: 0 all passed, 1 one failed, 2 usage, 77 and one line that says why where there is no device.
#include <cstdio>

#include "alloclab/device/cuda_device.hpp"
#include "check.hpp"
#include "program.hpp"

namespace alloclab::device::check {

int program(int argc, char** argv) {
    if (argc != 1) {
        std::fprintf(stderr, "usage: %s\n", argv[0]);
        return 2;
    }
    const cuda_presence there = find_cuda();
    if (there.devices.empty()) {
        std::printf("skipped: %s\n", there.why_none.c_str());
        return 77;
    }
    std::printf("device: %s\n", there.devices.front().c_str());
    checks c;
    c.group("memory", [&] { check_memory(c); });
    c.group("order", [&] { check_order(c); });
    c.group("capture", [&] { check_capture(c); });
    c.group("current device", [&] { check_current_device(c); });
    c.group("growth in place", [&] { check_growth_in_place(c); });
    c.group("operations", [&] { check_operations(c); });
    c.group("models", [&] { check_models(c); });
    c.group("events", [&] { check_events(c); });
    return c.finish();
}

}  // namespace alloclab::device::check
