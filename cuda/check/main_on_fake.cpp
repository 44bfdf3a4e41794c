// Two simulated devices stand in for GPUs: what the program does to them is judged as well, however it judges itself.
#include <array>
#include <cstddef>
#include <cstdio>

#include "alloclab/device/sim_device.hpp"
#include "alloclab/device/sim_host.hpp"
#include "fake_cuda.hpp"
#include "program.hpp"

namespace {

using namespace alloclab::device;

void print(std::string_view message, void*) noexcept {
    std::fprintf(stderr, "simulator: %.*s\n", static_cast<int>(message.size()), message.data());
}

bool clean(const sim_device& d) {
    const sim_usage u = d.usage();
    if (u.races + u.errors + u.live + u.live_events + u.live_streams + u.live_host_bytes == 0) return true;
    std::fprintf(stderr,
                 "simulator: %zu races, %zu errors, %zu blocks, %zu events, %zu streams and %zu host bytes left\n",
                 u.races, u.errors, u.live, u.live_events, u.live_streams, u.live_host_bytes);
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::size_t capacity = std::size_t{1} << 30;
    sim_host host;
    sim_device first(host, capacity);
    sim_device second(host, capacity);
    const std::array devices{&first, &second};
    for (sim_device* d : devices) d->report_to(print, nullptr);
    fake::install(devices);

    const int status = check::program(argc, argv);
    const std::size_t handles = fake::live_handles();
    if (handles != 0) std::fprintf(stderr, "fake: %zu handles left\n", handles);
    return clean(first) && clean(second) && handles == 0 ? status : 1;
}
