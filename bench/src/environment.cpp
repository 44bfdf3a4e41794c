#include "environment.hpp"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>
#include <thread>

#include "alloclab/source/mimalloc.hpp"

namespace alloclab::bench {
namespace {

std::string first_line(const char* file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

std::string cpu_model() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

std::string file_of(const void* function) {
    Dl_info info{};
    return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "unknown";
}

std::string mimalloc_version() {
    const int v = mimalloc_source::version();
    if (v == 0) return "absent";
    return std::to_string(v / 100) + "." + std::to_string(v / 10 % 10) + "." + std::to_string(v % 10);
}

std::string chosen(const std::string& line) {
    const auto open = line.find('['), close = line.find(']');
    return open == std::string::npos || close == std::string::npos ? line : line.substr(open + 1, close - open - 1);
}

}  // namespace

malloc_server who_serves_malloc() {
    // Asked of the running process: what the program was linked with does not say who answers.
    void* (*volatile serving)(std::size_t) = &std::malloc;
    void* block = serving(64);
    const bool in_mimalloc = mimalloc_source::serves(block);
    std::free(block);
    const std::string file = file_of(reinterpret_cast<const void*>(serving));
    return {file, !in_mimalloc && file.find("libc.so") != std::string::npos};
}

environment look_around() {
    environment e;
    const auto fact = [&e](const char* name, std::string value) {
        e.facts.emplace_back(name, value.empty() ? "unknown" : std::move(value));
    };
    utsname system{};
    ::uname(&system);
    const malloc_server malloc_from = who_serves_malloc();
    const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    const std::string huge_pages = chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
    const std::string load = first_line("/proc/loadavg");
    fact("cpu", cpu_model());
    fact("cores", std::to_string(std::thread::hardware_concurrency()));
    fact("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
    fact("governor", governor.empty() ? "not shown by this system" : governor);
    fact("transparent huge pages", huge_pages);
    fact("address randomisation", first_line("/proc/sys/kernel/randomize_va_space"));
    fact("load at start", load);
    fact("compiler", ALLOCLAB_COMPILER);
    fact("build", ALLOCLAB_BUILD_FLAGS);
    fact("C library", std::string("glibc ") + ::gnu_get_libc_version());
    fact("malloc served by", malloc_from.file + (malloc_from.is_libc ? " (the C library)" : " (not the C library)"));
    fact("mimalloc",
         mimalloc_version() + (mimalloc_source::available() ? ", its own heap beside the C library's" : ""));
    fact("alloclab", ALLOCLAB_VERSION);
    for (const char* name : {"GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD"})
        if (const char* value = std::getenv(name)) fact(name, value);

    if (!malloc_from.is_libc)
        e.warnings.push_back("malloc is served by " + malloc_from.file + ", so the baseline is not the C library's");
#ifndef NDEBUG
    e.warnings.emplace_back("built without NDEBUG: figures are not those of an optimised build");
#endif
    if (!governor.empty() && governor != "performance")
        e.warnings.push_back("the CPU governor is \"" + governor + "\": the clock may change between cells");
    if (huge_pages == "always")
        e.warnings.emplace_back("transparent huge pages are always on: page faults are few and large");
    if (std::atof(load.c_str()) > 0.5 * std::thread::hardware_concurrency())
        e.warnings.push_back("the machine was busy when the run started: load " + load.substr(0, load.find(' ')));
    return e;
}

}  // namespace alloclab::bench
