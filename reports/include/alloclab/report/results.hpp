// results: what one run measured, in memory and as run.json. All writers read this and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace alloclab::report {

/// A strategy as it was registered when the run was made.
struct strategy {
    std::string name;
    std::string kind;     ///< "context", "extra" or "source"
    std::string threads;  ///< "single" or "shared"
    bool bounded = false;
    std::size_t capacity = 0;  ///< slots, where bounded
    std::string when_full;
    bool control = false;  ///< kept to show a known fault or an old design, not to be chosen
};

/// What was asked of the strategies, and how to draw it.
struct workload {
    std::string name;      ///< "context/slots"
    std::string kind;      ///< kind of the strategies that it compares
    std::string title;     ///< "Acquire and release one context slot"
    std::string question;  ///< what a reader learns from it
    std::string unit;      ///< of the samples, "ns/op"
    std::string baseline;  ///< the strategy that ratios are formed to
    std::string axis;      ///< parameter on the x axis of its chart, "" for none
};

/// One measured time; samples of one block were taken side by side and may be paired.
struct sample {
    std::size_t block = 0;
    double value = 0;
};

/// workload x strategy x parameters.
struct cell {
    std::string workload;
    std::string strategy;
    std::map<std::string, std::string> parameters;      ///< live, threads, model, bytes ...
    std::vector<sample> samples;                        ///< lower is better
    std::map<std::string, double> counters;             ///< deterministic: faults, source_calls, peak_bytes ...
    std::map<std::string, double> parts;                ///< of a whole, means over blocks, in the workload's unit
    std::map<std::string, std::vector<double>> series;  ///< over evals: "live_extras"
    std::string refusal;                                ///< the strategy cannot do this: "full at 64 of 64 slots"
    std::string error;                                  ///< measuring failed: "ended by signal 11"
};

struct run {
    static constexpr const char* schema = "alloclab-run/1";
    std::string started;  ///< UTC, ISO 8601
    double seconds = 0;
    std::string command;  ///< repeats the run
    std::uint64_t seed = 0;
    bool partial = false;                                          ///< ended before all cells were measured
    std::vector<std::pair<std::string, std::string>> environment;  ///< cpu, kernel, compiler, who serves malloc ...
    std::vector<std::string> warnings;                             ///< what may have spoilt the figures
    std::vector<strategy> strategies;
    std::vector<workload> workloads;
    std::vector<cell> cells;
};

/// A file that is no run: names the file, where in it, and what was expected.
class bad_results : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Throws bad_results for what cannot be read, is no JSON, is truncated, or is not of this schema; unknown fields are
/// ignored.
[[nodiscard]] run read_run(const std::filesystem::path& file);
/// Non-finite numbers become null. Writes beside the target and renames, so a failure leaves what was there; throws
/// std::system_error when the target cannot be written.
void write_run(const run& r, const std::filesystem::path& file);

/// Replaces `file` with `text` in one step (write beside it, rename); throws std::system_error.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace alloclab::report
