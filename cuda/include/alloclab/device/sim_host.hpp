// sim_host: the program that drives simulated devices: one virtual clock, what it knows of each stream, and the events,
// which go from device to device. Make one to have several devices; a sim_device that is alone makes its own.
// Threads: single, with all its devices.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "alloclab/device/cost_profile.hpp"

namespace alloclab::device {

class sim_host {
public:
    sim_host();
    sim_host(const sim_host&) = delete;
    sim_host& operator=(const sim_host&) = delete;
    ~sim_host();

    /// The virtual clock, which starts at 0.
    [[nodiscard]] nanoseconds now() const noexcept;
    /// The host is busy with something of its own for so long.
    void spend(nanoseconds t) noexcept;

private:
    friend class sim_device;
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace alloclab::device
