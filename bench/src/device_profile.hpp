// device_profile: the simulated device that a run's evals use, by the words of --device: "sim:NAME" for a profile that
// alloclab::device has, "sim:FILE" for the lines that the calibration of a real one wrote (cuda/gpu_check.sh).
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloclab/device/cost_profile.hpp"

namespace alloclab::bench {

struct device_profile {
    std::string name;       ///< of the profile, or of the device that was calibrated
    std::string file = {};  ///< with the figures; "" for a profile that is built in
    device::cost_profile cost = {};
    std::vector<std::string> defaults = {};  ///< figures that the file lacks, which are those of the default profile

    /// What a reader of results must know of it, by name: which device, all its figures, and which of them are not its
    /// own. Runs on different devices differ in these.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const;
};

/// Words or a file that are no device. The text names the file and the line, and what was expected.
class bad_device : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// The device of these words. Throws bad_device.
[[nodiscard]] device_profile find_device(const std::string& words);
/// Those that are built in.
[[nodiscard]] std::vector<device_profile> built_in_devices();

}  // namespace alloclab::bench
