// results: what one run measured, in memory and as run.json. All writers read this and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace alloclab::report {

/// A strategy as it was registered when the run was made.
struct strategy {
    std::string name;
    std::string kind;     ///< "context", "extra", "source" or "peer"
    std::string threads;  ///< "single" or "shared"
    bool bounded = false;
    std::size_t capacity = 0;  ///< slots, where bounded
    std::string when_full;
    bool control = false;  ///< kept to show a known fault or an old design, not to be chosen
    std::string twin_of =
        {};  ///< A/A: this is that strategy measured once more, so any difference is noise; "" for none
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

/// One measured time; samples of one block on one machine were taken side by side and may be paired.
struct sample {
    std::size_t block = 0;
    double value = 0;
    double calibration = 0;   ///< ns of a fixed loop run beside it: the machine's speed at that moment; 0: not taken
    std::size_t machine = 0;  ///< into run::machines, 0 where there are none
    std::size_t turn = 0;     ///< place in the order of all measurements, from 1; 0: not recorded
};

/// Times of single operations, each between two readings of the clock. The clock's own cost is in each of them.
struct latency_curve {
    double floor = 0;         ///< median of such a time with nothing in it, ns
    std::uint64_t count = 0;  ///< operations that were timed
    std::vector<std::pair<double, double>>
        ecdf;  ///< ns and the share of operations within it; both rise, to a share of 1
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
    std::map<std::string, std::vector<double>>
        timeline;  ///< over the steps of one round: "live_bytes", "reserved_bytes"
    std::optional<latency_curve> latency = {};
    std::string refusal;  ///< the strategy cannot do this: "full at 64 of 64 slots"
    std::string error;    ///< measuring failed: "ended by signal 11"
};
/// "context/slots hybrid live=63": which cell of a run it is.
[[nodiscard]] std::string to_string(const cell& c);

/// Where one tensor's memory lies while it lives: a rectangle of the offset x time map.
struct placement {
    std::string tensor;
    std::size_t first = 0;  ///< step at which it is made
    std::size_t last = 0;   ///< step of its last use, inclusive
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

/// The activation plan of one eval.
struct memory_map {
    std::string name;  ///< "llama-2-7b decode"
    std::size_t steps = 0;
    std::size_t bytes = 0;        ///< height of the plan
    std::size_t lower_bound = 0;  ///< the most bytes live at one step
    std::vector<placement> placements;
};

/// One of several machines whose runs were merged.
struct machine {
    std::string name;
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<std::string> warnings;
};

/// How the samples were to be taken, and what of it could not be kept.
struct design {
    double min_seconds = 0;        ///< that each timing takes, roughly
    std::size_t least_blocks = 0;  ///< then cells whose interval is narrow enough are left
    std::size_t most_blocks = 0;
    double precision = 0;            ///< narrow enough: half the width of a ratio's interval, 0.03 for 3 %
    double max_seconds = 0;          ///< no block begins after that; 0: no limit
    std::string shard;               ///< "2/8" of a sweep, "" for the whole
    std::vector<std::string> unmet;  ///< criteria that the end of the run left open, in words
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
    std::vector<machine> machines;  ///< of a merged run; `environment` then holds what all have in common
    design plan;                    ///< "design" in JSON
    std::vector<strategy> strategies;
    std::vector<workload> workloads;
    std::vector<cell> cells;
    std::vector<memory_map> maps;
};

/// The value of that name in an environment, "" where it has none.
[[nodiscard]] std::string fact_of(const std::vector<std::pair<std::string, std::string>>& environment,
                                  std::string_view name);

/// A file that is no run: names the file, where in it, and what was expected.
class bad_results : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Throws bad_results for what cannot be read, is no JSON, is truncated, is not of this schema, or contradicts itself
/// (a cell twice, a strategy or machine that is not described, a time below 0); unknown fields are ignored.
[[nodiscard]] run read_run(const std::filesystem::path& file);
/// Non-finite numbers become null. Writes beside the target and renames, so a failure leaves what was there; throws
/// std::system_error when the target cannot be written.
void write_run(const run& r, const std::filesystem::path& file);

/// The descriptor that a name like /dev/stdout, /dev/fd/3 or /proc/self/fd/3 stands for: it is written to as it is
/// open, at its own place, and never replaced, even where it leads to a file.
[[nodiscard]] std::optional<int> open_descriptor(const std::filesystem::path& file);

/// Replaces `file` with `text` in one step (write beside it, rename); throws std::system_error.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace alloclab::report
