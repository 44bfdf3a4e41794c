#include "environment.hpp"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace alloclab::bench {
namespace {

std::string cpu_model(const system_files& files) {
    const std::string model = files.field("proc/cpuinfo", "model name");
    return model.empty() ? files.field("proc/cpuinfo", "CPU part") : model;
}

/// "32K data, 32K instruction, 1024K unified (level 2) ..." of the first CPU.
std::string caches(const system_files& files) {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/";
    std::string all;
    for (const std::string& index : files.entries(folder)) {
        const std::string level = files.line(folder + index + "/level"), size = files.line(folder + index + "/size");
        const std::string kind = files.line(folder + index + "/type");
        if (level.empty() || size.empty()) continue;
        all += (all.empty() ? "L" : ", L") + level +
               (kind == "Data"          ? "d "
                : kind == "Instruction" ? "i "
                                        : " ") +
               size;
    }
    return all;
}

std::string memory(const system_files& files) {
    std::array<char, 32> text{};
    const double kilobytes = std::strtod(files.field("proc/meminfo", "MemTotal").c_str(), nullptr);
    if (kilobytes == 0) return "";
    std::snprintf(text.data(), text.size(), "%.1f GiB", kilobytes / 1024 / 1024);
    return text.data();
}

/// FNV-1a: an identity that gives away neither the machine's id nor its name.
std::string hash_of(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%012llx", static_cast<unsigned long long>(hash >> 16));
    return digits.data();
}

}  // namespace

environment look_around(const system_files& files) {
    environment e;
    const auto fact = [&e](std::string name, std::string value) {
        e.facts.emplace_back(std::move(name), value.empty() ? "unknown" : std::move(value));
    };
    utsname system{};
    ::uname(&system);
    const std::string cpu = cpu_model(files), cores = std::to_string(std::thread::hardware_concurrency());
    const std::string id = files.line("etc/machine-id");
    fact("host", system.nodename);
    fact("machine", hash_of((id.empty() ? system.nodename : id) + '\n' + cpu + '\n' + cores));
    fact("cpu", cpu);
    fact("cores", cores);
    fact("caches", caches(files));
    fact("memory", memory(files));
    fact("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
    fact("C library", std::string("glibc ") + ::gnu_get_libc_version());
    fact("compiler", ALLOCLAB_COMPILER);
    fact("alloclab", ALLOCLAB_VERSION);
    fact("revision", ALLOCLAB_REVISION);
    for (const check& c : examine(files)) {
        fact(c.name, c.found);
        if (c.judged == state::warn && c.spoils) e.warnings.push_back(c.name + ": " + c.found + "; " + c.why);
    }
    return e;
}

}  // namespace alloclab::bench
