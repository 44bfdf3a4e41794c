#include "doctor.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "alloclab/report/verdicts.hpp"
#include "alloclab/source/mimalloc.hpp"
#include "calibration.hpp"
#include "child.hpp"

namespace alloclab::bench {
namespace fs = std::filesystem;
namespace {

constexpr const char* cpus = "sys/devices/system/cpu";

std::string rounded(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
}

std::string percent(double share) { return rounded(100 * share) + " %"; }

/// The word in brackets of "always [madvise] never".
std::string chosen(const std::string& line) {
    const auto open = line.find('['), close = line.find(']');
    return open == std::string::npos || close == std::string::npos ? line : line.substr(open + 1, close - open - 1);
}

/// How many CPUs "0-3,8" names; 0 for what is no such list.
std::size_t count_of(const std::string& list) {
    std::size_t n = 0;
    std::istringstream ranges(list);
    for (std::string range; std::getline(ranges, range, ',');) {
        std::size_t first = 0, last = 0;
        const int read = std::sscanf(range.c_str(), "%zu-%zu", &first, &last);
        if (read < 1) return 0;
        n += read == 2 && last >= first ? last - first + 1 : 1;
    }
    return n;
}

check unknown(std::string name) { return {std::move(name), "not shown by this system", state::unknown}; }

/// `bad` decides; why and mend are kept only where they apply.
check judged(std::string name, std::string found, bool bad, std::string why, std::string mend) {
    if (!bad) return {std::move(name), std::move(found), state::ok};
    return {std::move(name), std::move(found), state::warn, std::move(why), std::move(mend)};
}

check governor(const system_files& files) {
    std::set<std::string> all;
    for (const std::string& cpu : files.entries(cpus)) {
        std::string one = files.line(fs::path(cpus) / cpu / "cpufreq/scaling_governor");
        if (!one.empty()) all.insert(std::move(one));
    }
    if (all.empty()) return unknown("governor");
    std::string found;
    for (const std::string& one : all) found += (found.empty() ? "" : ", ") + one;
    return judged("governor", found, found != "performance", "the clock may change between two measurements",
                  "sudo cpupower frequency-set -g performance");
}

check turbo(const system_files& files) {
    const std::string intel = "sys/devices/system/cpu/intel_pstate/no_turbo",
                      any = "sys/devices/system/cpu/cpufreq/boost";
    const auto off = files.number(intel), on = files.number(any);
    if (!off && !on) return unknown("turbo");
    const bool boosts = off ? *off == 0 : *on != 0;
    return judged("turbo", boosts ? "on" : "off", boosts,
                  "the clock depends on the temperature and on how many cores are busy",
                  off ? "echo 1 | sudo tee /" + intel : "echo 0 | sudo tee /" + any);
}

check sibling_threads(const system_files& files) {
    auto active = files.number("sys/devices/system/cpu/smt/active");
    if (!active) {
        const std::string siblings = files.line("sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
        if (siblings.empty()) return unknown("SMT");
        active = count_of(siblings) > 1;
    }
    return judged("SMT", *active != 0 ? "on" : "off", *active != 0,
                  "two threads share a core and its caches, so a busy neighbour halves the speed",
                  "echo off | sudo tee /sys/devices/system/cpu/smt/control");
}

// Every block measures in fresh processes, so random addresses average over layouts; a fixed one is measured as if it
// were a property of the strategy.
check random_addresses(const system_files& files) {
    const auto level = files.number("proc/sys/kernel/randomize_va_space");
    const std::string personality = files.line("proc/self/personality");
    if (!level) return unknown("address randomisation");
    constexpr unsigned long no_randomisation = 0x0040000;
    const bool off = (std::strtoul(personality.c_str(), nullptr, 16) & no_randomisation) != 0;
    return judged("address randomisation", off ? "off for this process" : rounded(*level), off || *level == 0,
                  "every process gets the same layout, and a lucky one passes for a property of the strategy",
                  off ? "run without setarch -R" : "sudo sysctl kernel.randomize_va_space=2");
}

check huge_pages(const system_files& files) {
    const std::string file = "sys/kernel/mm/transparent_hugepage/enabled", found = chosen(files.line(file));
    if (found.empty()) return unknown("transparent huge pages");
    return judged("transparent huge pages", found, found == "always",
                  "page faults are few and large, and come and go with how an arena happens to be aligned",
                  "echo madvise | sudo tee /" + file);
}

check load(const system_files& files, std::size_t cores) {
    const std::string found = files.line("proc/loadavg");
    if (found.empty()) return unknown("load at start");
    return judged("load at start", found.substr(0, found.find(' ')) + " on " + std::to_string(cores) + " cores",
                  std::strtod(found.c_str(), nullptr) > 0.5 * static_cast<double>(cores),
                  "the machine was busy during the last minute",
                  "end what is running, as `top` shows it, and wait a minute");
}

// Whatever wakes up for a moment is runnable now and then: only who is so at every look competes.
check others_running(const system_files& files) {
    constexpr int looks = 5;
    int others = -1;
    for (int look = 0; look < looks; ++look) {
        int running = 0;
        if (std::sscanf(files.line("proc/loadavg").c_str(), "%*f %*f %*f %d/", &running) != 1)
            return unknown("other programs running");
        others = look == 0 ? running - 1 : std::min(others, running - 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return judged("other programs running", others > 0 ? std::to_string(others) : "none", others > 0,
                  "they take the cores, the caches and the memory's bandwidth in turns", "end them; `top` shows them");
}

check swap(const system_files& files) {
    const auto kilobytes = [&](const char* key) {
        return std::strtod(files.field("proc/meminfo", key).c_str(), nullptr);
    };
    const double memory = kilobytes("MemTotal");
    if (memory == 0) return unknown("swap in use");
    const double used = kilobytes("SwapTotal") - kilobytes("SwapFree");
    return judged("swap in use", used > 0 ? rounded(used / 1024) + " MiB" : "none", used > 0.01 * memory,
                  "a page that comes back from disk costs more than all that is measured here",
                  "sudo swapoff -a && sudo swapon -a, with memory to spare");
}

check memory_pressure(const system_files& files) {
    const std::string found = files.line("proc/pressure/memory");
    double minute = 0;
    if (std::sscanf(found.c_str(), "some avg10=%*f avg60=%lf", &minute) != 1) return unknown("memory pressure");
    return judged("memory pressure", percent(minute / 100) + " of the last minute", minute >= 1,
                  "programs wait for memory to be reclaimed", "end what holds the memory, or take a larger machine");
}

/// CPUs' worth of time that the cgroup of this process, and each above it, leaves.
std::optional<double> quota(const system_files& files) {
    std::optional<double> least;
    const auto limit = [&](double of, double period) {
        if (of > 0 && period > 0) least = std::min(least.value_or(of / period), of / period);
    };
    std::istringstream groups(files.text("proc/self/cgroup"));
    for (std::string group; std::getline(groups, group);) {
        const auto first = group.find(':'), second = group.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = ',' + group.substr(first + 1, second - first - 1) + ',';
        const bool unified = controllers == ",,";
        if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
        for (fs::path below = fs::path(group.substr(second + 1)).relative_path();; below = below.parent_path()) {
            if (unified) {
                for (const char* mount : {"sys/fs/cgroup", "sys/fs/cgroup/unified"}) {
                    double of = 0, period = 0;  // "max 100000": no limit
                    if (std::sscanf(files.line(mount / below / "cpu.max").c_str(), "%lf %lf", &of, &period) == 2)
                        limit(of, period);
                }
            } else {
                for (const char* mount : {"sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"})
                    limit(files.number(mount / below / "cpu.cfs_quota_us").value_or(-1),
                          files.number(mount / below / "cpu.cfs_period_us").value_or(0));
            }
            if (below.empty()) break;
        }
    }
    return least;
}

check cpu_quota(const system_files& files) {
    if (files.text("proc/self/cgroup").empty()) return unknown("CPU quota");
    const auto limit = quota(files);
    return judged("CPU quota", limit ? rounded(*limit) + " CPUs" : "none", limit.has_value(),
                  "once it is used up, the process stands still for the rest of the period, tens of milliseconds",
                  "lift it: docker run without --cpus, no cpu limit in the pod, systemd CPUQuota= empty");
}

check cpu_set(const system_files& files) {
    const std::size_t allowed = count_of(files.field("proc/self/status", "Cpus_allowed_list"));
    const std::size_t online = count_of(files.line("sys/devices/system/cpu/online"));
    if (allowed == 0 || online == 0) return unknown("CPU set");
    return judged(
        "CPU set", std::to_string(allowed) + " of " + std::to_string(online) + " CPUs", allowed < online,
        "more threads than " + std::to_string(allowed) + " take turns, and the other CPUs' work is not seen here",
        "run without taskset, --cpuset-cpus or a cpuset, or measure no more threads than that");
}

check virtual_machine(const system_files& files) {
    const std::string info = files.text("proc/cpuinfo");
    if (info.empty()) return unknown("virtual machine");
    std::istringstream words(files.field("proc/cpuinfo", "flags"));
    std::string maker = files.line("sys/hypervisor/type");
    for (std::string word; maker.empty() && words >> word;)
        if (word == "hypervisor") maker = "yes";
    return judged("virtual machine", maker.empty() ? "no" : maker, !maker.empty(),
                  "other guests of the same host change the clock and take the caches, unseen from here",
                  "measure on a machine of its own; here, trust ratios within a block and counted figures");
}

check stolen_time(const system_files& files) {
    std::istringstream columns(files.line("proc/stat"));
    std::string cpu;
    columns >> cpu;
    // user nice system idle iowait irq softirq steal; guest time, behind them, is counted in user already
    constexpr std::size_t steal = 7;
    double total = 0, taken = 0, ticks = 0;
    std::size_t column = 0;
    for (; column <= steal && columns >> ticks; ++column) {
        total += ticks;
        taken = ticks;
    }
    if (cpu != "cpu" || column != steal + 1 || total == 0) return unknown("stolen time");
    return judged("stolen time", percent(taken / total) + " since boot", taken / total > 0.01,
                  "the host runs others while this machine believes to be running",
                  "take a machine with dedicated cores, or measure when the host is idle");
}

check clock_source(const system_files& files) {
    const fs::path folder = "sys/devices/system/clocksource/clocksource0";
    const std::string found = files.line(folder / "current_clocksource");
    if (found.empty()) return unknown("clock source");
    const bool fast = found == "tsc" || found == "kvm-clock" || found == "arch_sys_counter" || found == "stp" ||
                      found.starts_with("hyperv") || found.starts_with("riscv");
    return judged("clock source", found, !fast, "a reading of the clock is a call of the kernel, a microsecond or more",
                  "echo tsc | sudo tee /" + (folder / "current_clocksource").string() +
                      ", if available_clocksource beside it has tsc");
}

check timer() {
    using clock = std::chrono::steady_clock;
    std::vector<double> between(1001);
    double step = 0;
    for (double& ns : between) {
        const auto start = clock::now();
        ns = std::chrono::duration<double, std::nano>(clock::now() - start).count();
        if (ns > 0) step = step == 0 ? ns : std::min(step, ns);
    }
    return judge_timer(*report::median(between), step);
}

check variables() {
    std::string found;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (text.starts_with("LD_PRELOAD=") || text.starts_with("GLIBC_TUNABLES=") || text.starts_with("MALLOC_"))
            found += (found.empty() ? "" : " ") + std::string(text);
    }
    return judged("allocator variables", found.empty() ? "none" : found, !found.empty(),
                  "the C library's malloc is not what it is by default, and the baseline neither", "unset them");
}

check valgrind() {
    if (const fs::path file = on_path("valgrind"); !file.empty()) return {"valgrind", file.string(), state::ok};
    check c = judged("valgrind", "absent", true, "instructions cannot be counted", "sudo apt-get install valgrind");
    c.spoils = false;
    return c;
}

check performance_events(const system_files& files) {
    const auto level = files.number("proc/sys/kernel/perf_event_paranoid");
    if (!level) return unknown("perf_event_paranoid");
    check c = judged("perf_event_paranoid", rounded(*level), *level > 2, "perf cannot show where the time goes",
                     "sudo sysctl kernel.perf_event_paranoid=2");
    c.spoils = false;
    return c;
}

std::string file_of(const void* function) {
    Dl_info info{};
    return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "unknown";
}

}  // namespace

std::string_view to_string(state s) noexcept {
    constexpr std::array<std::string_view, 3> words{"ok", "warn", "unknown"};
    return words[static_cast<std::size_t>(s)];
}

std::string system_files::text(const fs::path& file) const {
    std::ifstream in(root_ / file.relative_path());
    std::ostringstream all;
    if (in) all << in.rdbuf();
    return std::move(all).str();
}

std::string system_files::line(const fs::path& file) const {
    const std::string all = text(file);
    return all.substr(0, all.find('\n'));
}

std::string system_files::field(const fs::path& file, std::string_view key) const {
    std::istringstream lines(text(file));
    for (std::string line; std::getline(lines, line);)
        if (const auto colon = line.find(':'); line.starts_with(key) && colon != std::string::npos)
            return line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size()));
    return "";
}

std::optional<double> system_files::number(const fs::path& file) const {
    const std::string found = line(file);
    double value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    return error == std::errc{} ? std::optional(value) : std::nullopt;
}

std::vector<std::string> system_files::entries(const fs::path& folder) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(root_ / folder.relative_path(), none))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

malloc_server who_serves_malloc() {
    // Asked of the running process: what the program was linked with does not say who answers.
    void* (*volatile serving)(std::size_t) = &std::malloc;
    void* block = serving(64);
    const bool in_mimalloc = mimalloc_source::serves(block);
    std::free(block);
    const std::string file = file_of(reinterpret_cast<const void*>(serving));
    return {file, !in_mimalloc && file.find("libc.so") != std::string::npos};
}

check judge_malloc(const malloc_server& server) {
    return judged("malloc served by", server.file + (server.is_libc ? " (the C library)" : " (not the C library)"),
                  !server.is_libc, "the baseline is not the C library's malloc",
                  "run without LD_PRELOAD; link nothing that replaces malloc");
}

check judge_build(std::string_view flags, bool asserts) {
    const bool optimised = flags.find("-O2") != std::string_view::npos || flags.find("-O3") != std::string_view::npos;
    return judged("build", std::string(flags), asserts || !optimised,
                  asserts ? "built without NDEBUG: figures are not those of an optimised build"
                          : "built without -O2 or -O3: figures are not those of an optimised build",
                  "cmake -DCMAKE_BUILD_TYPE=Release");
}

check judge_mimalloc(int v) {
    if (v != 0)
        return {"mimalloc",
                std::to_string(v / 100) + "." + std::to_string(v / 10 % 10) + "." + std::to_string(v % 10) +
                    ", its own heap beside the C library's",
                state::ok};
    check c = judged("mimalloc", "absent", true, "strategies over mimalloc cannot be measured",
                     "sudo apt-get install libmimalloc2.0");
    c.spoils = false;
    return c;
}

check judge_cuda_toolkit(std::string_view version, std::string_view why_off) {
    std::string found(version.empty() ? "none seen by this build" : version);
    if (!why_off.empty()) found.append("; CUDA is off: ").append(why_off);
    return {"CUDA toolkit", found, state::ok};
}

check judge_cuda_devices(const std::vector<std::string>& names, std::string_view why_none) {
    std::string found;
    for (const std::string& name : names) found += (found.empty() ? "" : ", ") + name;
    return {"CUDA devices", names.empty() ? "none: " + std::string(why_none) : found, state::ok};
}

check judge_timer(double floor, double step) {
    constexpr double slow = 100;  // ns; a reading without a call of the kernel takes 20 to 50
    return judged("timer floor", rounded(floor) + " ns, in steps of " + rounded(step) + " ns",
                  !(floor <= slow && step <= slow), "the tails of operations shorter than this are those of the clock",
                  "see clock source; under valgrind or an emulator it cannot be mended");
}

check judge_speed(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const std::size_t n = times.size();
    if (n < 10) return unknown("speed");
    const double middle = *report::median(times);
    const double spread = (times[n - 1 - n / 10] - times[n / 10]) / middle;

    // The split into two that leaves the least variance within them.
    double all = 0, below = 0;
    for (const double t : times) all += t;
    double best = -1, low = 0, high = 0, slow_share = 0;
    const double mean = all / static_cast<double>(n);
    for (std::size_t k = 1; k < n; ++k) {
        below += times[k - 1];
        const double left = static_cast<double>(k), right = static_cast<double>(n - k);
        const double a = below / left, b = (all - below) / right;
        const double between = left * (a - mean) * (a - mean) + right * (b - mean) * (b - mean);
        if (between > best) {
            best = between;
            low = a;
            high = b;
            slow_share = right / static_cast<double>(n);
        }
    }
    double variance = 0;
    for (const double t : times) variance += (t - mean) * (t - mean);
    // One hump split in the middle explains 64 % if it is normal, 75 % if it is uniform.
    const bool two =
        high > report::uneven_speed * low && best > 0.85 * variance && std::min(slow_share, 1 - slow_share) >= 0.05;
    const std::string found = two ? "two speeds: " + percent(slow_share) + " of the time " + rounded(high / low) +
                                        " times as slow as the rest"
                                  : percent(spread) + " spread, one speed";
    return judged("speed", found, two || spread > report::uneven_speed - 1,
                  "a measurement depends on when it was taken; pairs that were taken at two speeds are left out",
                  "as for turbo, SMT, other programs and virtual machine; more blocks (alloclab run --full) help");
}

std::vector<double> watch_speed(double seconds) {
    using clock = std::chrono::steady_clock;
    constexpr auto slice = std::chrono::milliseconds(10);
    std::vector<double> slices;
    for (const auto end = clock::now() + std::chrono::duration<double>(seconds); clock::now() < end;) {
        std::vector<double> times;
        for (const auto until = clock::now() + slice; clock::now() < until;) times.push_back(calibrate());
        if (const auto middle = report::median(std::move(times))) slices.push_back(*middle);
    }
    return slices;
}

std::vector<check> examine(const system_files& files) {
    const std::size_t online = count_of(files.line("sys/devices/system/cpu/online"));
    const std::size_t cores = online != 0 ? online : std::thread::hardware_concurrency();
#ifdef NDEBUG
    constexpr bool asserts = false;
#else
    constexpr bool asserts = true;
#endif
    return {judge_malloc(who_serves_malloc()),
            variables(),
            judge_build(ALLOCLAB_BUILD_FLAGS, asserts),
            governor(files),
            turbo(files),
            sibling_threads(files),
            random_addresses(files),
            huge_pages(files),
            load(files, cores),
            others_running(files),
            swap(files),
            memory_pressure(files),
            cpu_quota(files),
            cpu_set(files),
            virtual_machine(files),
            stolen_time(files),
            clock_source(files),
            timer(),
            judge_mimalloc(mimalloc_source::version()),
            valgrind(),
            performance_events(files)};
}

}  // namespace alloclab::bench
