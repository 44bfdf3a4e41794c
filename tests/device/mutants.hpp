// Devices with one fault each, in what orders streams: what stands on them must be caught by the simulator.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device::test {

/// Streams do not wait for events.
class deaf_device : public sim_device {
public:
    using sim_device::sim_device;
    bool wait(stream, event) noexcept { return true; }
};

/// The host does not wait for events.
class hasty_device : public sim_device {
public:
    using sim_device::sim_device;
    using sim_device::synchronize;
    bool done(event) noexcept { return true; }
    bool synchronize(event) noexcept { return true; }
};

/// Every line that a device reports.
class reports {
public:
    explicit reports(sim_device& device) {
        device.report_to(
            [](std::string_view line, void* all) noexcept { static_cast<reports*>(all)->lines.emplace_back(line); },
            this);
    }
    reports(const reports&) = delete;
    reports& operator=(const reports&) = delete;

    [[nodiscard]] std::size_t naming(std::string_view text) const {
        std::size_t n = 0;
        for (const std::string& line : lines) n += line.find(text) != std::string::npos ? 1U : 0U;
        return n;
    }

    std::vector<std::string> lines;
};

}  // namespace alloclab::device::test
