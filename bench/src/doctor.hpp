// doctor: what on this machine would spoil a measurement, one check each. `alloclab doctor` prints the checks; a run
// keeps what they found as facts of its environment, and those that failed as its warnings.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace alloclab::bench {

enum class state {
    ok,
    warn,
    unknown  ///< this system does not tell
};
[[nodiscard]] std::string_view to_string(state s) noexcept;

struct check {
    std::string name;
    std::string found;
    state judged = state::unknown;
    std::string why = {};   ///< what is lost, where it warns
    std::string mend = {};  ///< a command or an advice, likewise
    bool spoils = true;     ///< false: something cannot be measured here, but what can be stands
};

/// The files of /proc and /sys, below "/" or below a tree of fixtures. What cannot be read is empty.
class system_files {
public:
    explicit system_files(std::filesystem::path root = "/") : root_{std::move(root)} {}

    [[nodiscard]] std::string text(const std::filesystem::path& file) const;
    [[nodiscard]] std::string line(const std::filesystem::path& file) const;
    /// What stands behind the colon of the first line that begins with `key`.
    [[nodiscard]] std::string field(const std::filesystem::path& file, std::string_view key) const;
    [[nodiscard]] std::optional<double> number(const std::filesystem::path& file) const;
    /// Of a folder, sorted; empty for none.
    [[nodiscard]] std::vector<std::string> entries(const std::filesystem::path& folder) const;

private:
    std::filesystem::path root_;
};

/// The file that serves `malloc` in this process, and whether it is the C library's.
struct malloc_server {
    std::string file;
    bool is_libc;
};
[[nodiscard]] malloc_server who_serves_malloc();

/// Every check but that of the speed, in a fixed order. Takes some 30 ms, for several looks at what else is running.
[[nodiscard]] std::vector<check> examine(const system_files& files);

/// Times of one fixed piece of work, one after another, in any unit: how far they spread, and whether they fall into
/// two speeds. An otherwise idle virtual machine may run such a loop at either of two, by what its neighbours do.
[[nodiscard]] check judge_speed(std::vector<double> times);
/// What `judge_speed` wants, in ns a step: slices of 10 ms for `seconds`.
[[nodiscard]] std::vector<double> watch_speed(double seconds);

/// The judgements on what no file of a fixture can change.
[[nodiscard]] check judge_malloc(const malloc_server& server);
[[nodiscard]] check judge_build(std::string_view flags, bool asserts);
/// `floor`: median time between two readings of the clock in a row; `step`: the least that it can tell apart; in ns.
[[nodiscard]] check judge_timer(double floor, double step);
[[nodiscard]] check judge_mimalloc(int version);
/// These two never warn, since simulated devices are measured without either. `version` of the toolkit that the build
/// saw, "" for none; `why_off` where it has no CUDA device all the same.
[[nodiscard]] check judge_cuda_toolkit(std::string_view version, std::string_view why_off);
/// Names of those that the runtime offers now, or why there is none.
[[nodiscard]] check judge_cuda_devices(const std::vector<std::string>& names, std::string_view why_none);

}  // namespace alloclab::bench
