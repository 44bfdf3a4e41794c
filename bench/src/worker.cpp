#include "worker.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibration.hpp"
#include "child.hpp"
#include "latency.hpp"
#include "process.hpp"

namespace alloclab::report {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(placement, tensor, first, last, offset, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(memory_map, name, steps, bytes, lower_bound, placements)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(latency_curve, floor, count, ecdf)

}  // namespace alloclab::report

namespace alloclab::bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(observations, counters, series, timeline, maps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(outcome, has_time, has_single, timed, value, calibration, operations, seen, latency,
                                   parts, refusal, error)

// A function of its own, which no call leaves by a jump, so that a tool sees where it begins and ends.
void counted_loop(const measurement& m, benchmark::State& state);
[[gnu::noinline]] void counted_loop(const measurement& m, benchmark::State& state) {
    m.loop(state);
    asm volatile("");
}

namespace {

// Google Benchmark 1.8 renamed both fields.
template <class Run>
bool went_wrong(const Run& run) {
    if constexpr (requires { run.error_occurred; }) return run.error_occurred;
    else return run.skipped != decltype(run.skipped){};
}
template <class Run>
const std::string& message_of(const Run& run) {
    if constexpr (requires { run.error_message; }) return run.error_message;
    else return run.skip_message;
}

/// Keeps the figures and prints nothing.
class capture : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (went_wrong(run)) error = message_of(run);
            else if (run.iterations > 0)
                nanoseconds = run.real_accumulated_time * 1e9 / static_cast<double>(run.iterations);
        }
    }
    double nanoseconds = -1;
    std::string error;
};

/// One run of so many iterations.
struct timing {
    double nanoseconds = 0;  ///< per iteration
    std::map<std::string, double> parts;
};

timing run_once(const measurement& m, benchmark::IterationCount iterations) {
    auto* registered = benchmark::RegisterBenchmark("cell", [&m](benchmark::State& state) { counted_loop(m, state); });
    registered->Iterations(iterations);
    if (m.times_itself) registered->UseManualTime();
    else registered->UseRealTime();
    capture figures;
    benchmark::RunSpecifiedBenchmarks(&figures);
    benchmark::ClearRegisteredBenchmarks();
    if (!figures.error.empty()) throw std::runtime_error(figures.error);
    if (figures.nanoseconds < 0) throw std::runtime_error("Google Benchmark gave no figure");
    return {figures.nanoseconds, m.parts != nullptr ? *m.parts : std::map<std::string, double>{}};
}

// Google Benchmark fixes the number of iterations by its first run, which one preemption can spoil; and so can it spoil
// a single long run. So the number is found here, by the better of two runs each, and the median of five counts.
void time_loop(const job& j, const measurement& m, outcome& result) {
    constexpr std::size_t repetitions = 5;
    const double aim = j.min_seconds * 1e9 / repetitions;
    auto iterations = static_cast<benchmark::IterationCount>(std::max<std::size_t>(m.iterations, 1));
    while (m.iterations == 0) {
        const double took = std::min(run_once(m, iterations).nanoseconds, run_once(m, iterations).nanoseconds) *
                            static_cast<double>(iterations);
        if (took >= 0.7 * aim) break;
        const double factor = std::clamp(1.1 * aim / std::max(took, 1.0), 1.5, 10.0);
        iterations = static_cast<benchmark::IterationCount>(static_cast<double>(iterations) * factor + 1);
    }
    std::vector<timing> all;
    const double before = calibrate();
    for (std::size_t i = 0; i < repetitions; ++i) all.push_back(run_once(m, iterations));
    result.calibration = (before + calibrate()) / 2;
    std::sort(all.begin(), all.end(), [](const timing& x, const timing& y) { return x.nanoseconds < y.nanoseconds; });
    timing& median = all[repetitions / 2];
    result.value = median.nanoseconds / m.operations;
    result.parts = std::move(median.parts);
    // A loop that the compiler has emptied would look like a triumph.
    if (result.value < 0.05) throw std::runtime_error("less than 0.05 ns an operation: nothing was measured");
    result.timed = true;
}

}  // namespace

outcome measure(const job& j) {
    outcome result;
    const family* f = everything().find(j.workload);
    if (f == nullptr) return result.error = "no workload " + j.workload, result;
    for (const family::entry& e : f->entries) {
        if (e.strategy != j.strategy) continue;
        result.refusal = e.absence();
        if (!result.refusal.empty()) return result;
        const auto heap = j.where.find("heap");
        prepare_heap(heap == j.where.end() ? "aged" : heap->second);
        parameters where = j.where;
        where.emplace("device", j.device);
        const measurement m = e.make(where);
        result.refusal = m.refusal;
        result.has_time = static_cast<bool>(m.loop);
        result.has_single = static_cast<bool>(m.single);
        result.operations = m.operations;
        if (j.task == job::observing) {
            if (m.observe) m.observe(result.seen);
        } else if (!m.refusal.empty()) {
            return result;
        } else if (j.task == job::latency) {
            if (m.single) result.latency = time_one_by_one(m.single(), j.count);
        } else if (!m.loop) {
            return result;
        } else if (j.task == job::counting) {
            run_once(m, static_cast<benchmark::IterationCount>(j.count));
        } else {
            time_loop(j, m, result);
        }
        return result;
    }
    return result.error = "no strategy " + j.strategy + " in " + j.workload, result;
}

std::vector<std::string> command_of(const job& j) {
    std::vector<std::string> words{"alloclab", "worker", j.workload, j.strategy};
    const std::string count = std::to_string(j.count);
    switch (j.task) {
        case job::timing:
            words.insert(words.end(), {"--min-time", std::to_string(j.min_seconds)});
            break;
        case job::observing:
            words.emplace_back("--observe");
            break;
        case job::latency:
            words.insert(words.end(), {"--latency", count});
            break;
        case job::counting:
            words.insert(words.end(), {"--iterations", count});
            break;
    }
    if (j.device != default_device) words.insert(words.end(), {"--device", j.device});
    for (const auto& [name, value] : j.where) words.push_back(name + "=" + value);
    return words;
}

outcome measure_apart(const job& j, double limit_seconds, bool (*interrupted)()) {
    const ended worker = run_child("/proc/self/exe", command_of(j), limit_seconds, interrupted);
    outcome result;
    result.error = worker.error;
    if (!result.error.empty()) return result;
    try {
        return from_line(worker.output);
    } catch (const std::exception& e) {
        return result.error = std::string("worker's answer not understood: ") + e.what(), result;
    }
}

std::string to_line(const outcome& o) {
    return nlohmann::json(o).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

outcome from_line(const std::string& line) { return nlohmann::json::parse(line).get<outcome>(); }

}  // namespace alloclab::bench
