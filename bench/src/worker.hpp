// worker: one cell measured in a process of its own, so that no cell inherits another's heap. The parent starts this
// program again as `alloclab worker ...` and reads one line of JSON from it.
#pragma once

#include <string>
#include <vector>

#include "catalogue.hpp"

namespace alloclab::bench {

struct job {
    std::string workload, strategy;
    parameters where;
    double min_seconds = 0.01;
    /// What is taken; each in a process of its own, so that none disturbs another.
    enum task {
        timing,
        observing,  ///< counters, series, timelines and maps
        latency,    ///< of `count` single operations
        counting    ///< `count` iterations of the loop and nothing else, for a tool that counts from outside
    } task = timing;
    std::size_t count = 0;
    bool twin = false;                                 ///< the baseline once more, which the worker need not know
    bool counted = false;                              ///< its instructions are wanted too, by whoever plans
    std::string device = std::string(default_device);  ///< of evals, as find_device() takes it
};

struct outcome {
    bool has_time = false;    ///< the cell has a time to take
    bool has_single = false;  ///< and single operations
    bool timed = false;
    double value = 0;        ///< in the workload's unit
    double calibration = 0;  ///< mean of one before and one after the timing, see calibrate()
    double operations = 1;   ///< in one iteration
    observations seen;
    report::latency_curve latency;  ///< of a count of 0 unless taken
    std::map<std::string, double> parts;
    std::string refusal;  ///< the strategy cannot do this
    std::string error;    ///< measuring failed
};

/// Measures in this process.
[[nodiscard]] outcome measure(const job& j);
/// Measures in a new process, which is ended after `limit_seconds`, when `interrupted()` turns true, and with this one;
/// what goes wrong there comes back as `error`.
[[nodiscard]] outcome measure_apart(const job& j, double limit_seconds, bool (*interrupted)());

/// The words that make alloclab carry out `j`, its own name first.
[[nodiscard]] std::vector<std::string> command_of(const job& j);
/// Where the counting task runs the loop, and nothing else: a tool collects between its entry and its end.
inline constexpr const char* counted_function = "alloclab::bench::counted_loop";

[[nodiscard]] std::string to_line(const outcome& o);
/// Throws std::runtime_error for what is no outcome.
[[nodiscard]] outcome from_line(const std::string& line);

}  // namespace alloclab::bench
