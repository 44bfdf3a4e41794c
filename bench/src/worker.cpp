#include "worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "process.hpp"

namespace alloclab::bench {
namespace {

/// Keeps the figures and prints nothing.
class capture : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.error_occurred) error = run.error_message;
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
    auto* registered = benchmark::RegisterBenchmark("cell", m.loop);
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
    benchmark::IterationCount iterations = 1;
    for (;;) {
        const double took = std::min(run_once(m, iterations).nanoseconds, run_once(m, iterations).nanoseconds) *
                            static_cast<double>(iterations);
        if (took >= 0.7 * aim) break;
        const double factor = std::clamp(1.1 * aim / std::max(took, 1.0), 1.5, 10.0);
        iterations = static_cast<benchmark::IterationCount>(static_cast<double>(iterations) * factor + 1);
    }
    std::vector<timing> all;
    for (std::size_t i = 0; i < repetitions; ++i) all.push_back(run_once(m, iterations));
    std::sort(all.begin(), all.end(), [](const timing& x, const timing& y) { return x.nanoseconds < y.nanoseconds; });
    timing& median = all[repetitions / 2];
    result.value = median.nanoseconds / m.operations;
    result.parts = std::move(median.parts);
    // A loop that the compiler has emptied would look like a triumph.
    if (result.value < 0.05) throw std::runtime_error("less than 0.05 ns an operation: nothing was measured");
    result.timed = true;
}

class pipe_end {
public:
    explicit pipe_end(int fd = -1) noexcept : fd_(fd) {}
    pipe_end(pipe_end&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    pipe_end& operator=(pipe_end&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~pipe_end() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }
    void close() noexcept { *this = pipe_end(); }

private:
    int fd_;
};

std::pair<pipe_end, pipe_end> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    return {pipe_end(ends[0]), pipe_end(ends[1])};
}

std::vector<std::string> command_of(const job& j) {
    std::vector<std::string> words{"alloclab", "worker",     j.workload,
                                   j.strategy, "--min-time", std::to_string(j.min_seconds)};
    if (j.task == job::observing) words.emplace_back("--observe");
    for (const auto& [name, value] : j.where) words.push_back(name + "=" + value);
    return words;
}

// Everything that the child wrote to both pipes until it closed them; false when the time was up or an interrupt came
// first.
bool read_both(const pipe_end& out, const pipe_end& err, std::string& output, std::string& errors, double limit_seconds,
               bool (*interrupted)()) {
    using clock = std::chrono::steady_clock;
    const auto deadline =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(limit_seconds));
    std::array<pollfd, 2> ends{{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
    const std::array<std::string*, 2> texts{&output, &errors};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        // A signal that comes between the question and the wait is seen after a tenth of a second.
        constexpr int patience = 100;
        if (interrupted() || clock::now() >= deadline) return false;
        if (::poll(ends.data(), ends.size(), patience) < 0 && errno != EINTR) return false;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (ends[i].fd < 0 || ends[i].revents == 0) continue;
            std::array<char, 65536> bytes;
            const auto got = ::read(ends[i].fd, bytes.data(), bytes.size());
            if (got > 0) texts[i]->append(bytes.data(), static_cast<std::size_t>(got));
            else if (got == 0 || errno != EINTR) ends[i].fd = -1;
        }
    }
    return true;
}

std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const auto begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

outcome measure(const job& j) {
    outcome result;
    const family* f = everything().find(j.workload);
    if (f == nullptr) return result.error = "no workload " + j.workload, result;
    for (const family::entry& e : f->entries) {
        if (e.strategy != j.strategy) continue;
        if (!e.available()) return result.refusal = "not available on this system", result;
        if (const auto heap = j.where.find("heap"); heap == j.where.end() || heap->second == "aged") age_heap();
        const measurement m = e.make(j.where);
        result.refusal = m.refusal;
        result.has_time = static_cast<bool>(m.loop);
        if (j.task == job::observing) {
            if (m.observe) m.observe(result.seen);
        } else if (m.loop && m.refusal.empty()) time_loop(j, m, result);
        return result;
    }
    return result.error = "no strategy " + j.strategy + " in " + j.workload, result;
}

outcome measure_apart(const job& j, double limit_seconds, bool (*interrupted)()) {
    const std::vector<std::string> words = command_of(j);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);

    auto [out, out_write] = make_pipe();
    auto [err, err_write] = make_pipe();
    const pid_t child = ::fork();
    outcome result;
    if (child < 0) return result.error = std::string("fork: ") + std::strerror(errno), result;
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out_write.get(), STDOUT_FILENO);
        ::dup2(err_write.get(), STDERR_FILENO);
        ::execv("/proc/self/exe", arguments.data());
        ::_exit(127);
    }
    out_write.close();
    err_write.close();
    std::string output, errors;
    const bool in_time = read_both(out, err, output, errors, limit_seconds, interrupted);
    if (!in_time) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }

    if (!in_time) result.error = "not through after " + std::to_string(static_cast<int>(limit_seconds)) + " s";
    else if (WIFSIGNALED(status)) result.error = std::string("ended by signal: ") + ::strsignal(WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) result.error = "worker failed: " + last_line(errors);
    else {
        try {
            return from_line(output);
        } catch (const std::exception& e) {
            result.error = std::string("worker's answer not understood: ") + e.what();
        }
    }
    return result;
}

std::string to_line(const outcome& o) {
    return nlohmann::json{{"has_time", o.has_time},      {"timed", o.timed},        {"value", o.value},
                          {"counters", o.seen.counters}, {"series", o.seen.series}, {"parts", o.parts},
                          {"refusal", o.refusal},        {"error", o.error}}
               .dump() +
           "\n";
}

outcome from_line(const std::string& line) {
    const auto j = nlohmann::json::parse(line);
    outcome o;
    j.at("has_time").get_to(o.has_time);
    j.at("timed").get_to(o.timed);
    j.at("value").get_to(o.value);
    j.at("counters").get_to(o.seen.counters);
    j.at("series").get_to(o.seen.series);
    j.at("parts").get_to(o.parts);
    j.at("refusal").get_to(o.refusal);
    j.at("error").get_to(o.error);
    return o;
}

}  // namespace alloclab::bench
