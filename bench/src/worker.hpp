// worker: one cell measured in a process of its own, so that no cell inherits another's heap. The parent starts this
// program again as `alloclab worker ...` and reads one line of JSON from it.
#pragma once

#include <string>

#include "catalogue.hpp"

namespace alloclab::bench {

struct job {
    std::string workload, strategy;
    parameters where;
    double min_seconds = 0.01;
    enum task { timing, observing } task = timing;  ///< counters and series are taken in a process of their own
};

struct outcome {
    bool has_time = false;  ///< the cell has a time to take
    bool timed = false;
    double value = 0;  ///< in the workload's unit
    observations seen;
    std::map<std::string, double> parts;
    std::string refusal;  ///< the strategy cannot do this
    std::string error;    ///< measuring failed
};

/// Measures in this process.
[[nodiscard]] outcome measure(const job& j);
/// Measures in a new process, which is ended after `limit_seconds`, when `interrupted()` turns true, and with this one;
/// what goes wrong there comes back as `error`.
[[nodiscard]] outcome measure_apart(const job& j, double limit_seconds, bool (*interrupted)());

[[nodiscard]] std::string to_line(const outcome& o);
/// Throws std::runtime_error for what is no outcome.
[[nodiscard]] outcome from_line(const std::string& line);

}  // namespace alloclab::bench
