#include "device_profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace alloclab::bench {
namespace {

using device::cost_profile;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr double mib = 1 << 20;

// ---- the figures, and the operation of a calibration that each comes from

/// The median at the fewest bytes.
struct call_figure {
    const char* name;
    device::nanoseconds cost_profile::*field;
    const char* op;
};
constexpr std::array call_figures{
    call_figure{"allocate", &cost_profile::allocate, "cudaMalloc"},
    call_figure{"deallocate", &cost_profile::deallocate, "cudaFree_idle"},
    call_figure{"allocate_parked", &cost_profile::allocate_parked, "cudaMallocAsync_parked"},
    call_figure{"deallocate_async", &cost_profile::deallocate_async, "cudaFreeAsync"},
    call_figure{"allocate_host", &cost_profile::allocate_host, "cudaHostAlloc"},
    call_figure{"create_event", &cost_profile::create_event, "cudaEventCreate"},
    call_figure{"destroy_event", &cost_profile::destroy_event, "cudaEventDestroy"},
    call_figure{"record", &cost_profile::record, "cudaEventRecord"},
    call_figure{"wait", &cost_profile::wait, "cudaStreamWaitEvent"},
    call_figure{"query", &cost_profile::query, "cudaEventQuery"},
    call_figure{"synchronize", &cost_profile::synchronize, "cudaStreamSynchronize_idle"},
    call_figure{"copy", &cost_profile::copy, "copy_call"},
    call_figure{"launch", &cost_profile::launch, "kernel_launch"},
};
/// What a MiB more costs: from the fewest bytes to the most.
constexpr std::array growth_figures{
    call_figure{"allocate_per_mib", &cost_profile::allocate_per_mib, "cudaMalloc"},
    call_figure{"allocate_host_per_mib", &cost_profile::allocate_host_per_mib, "cudaHostAlloc"},
};
/// "per_second" at the most bytes.
struct flow_figure {
    const char* name;
    double cost_profile::*field;
    const char* op;
};
constexpr std::array flow_figures{
    flow_figure{"copy_bytes", &cost_profile::copy_bytes, "copy_to_device"},
    flow_figure{"memory_bytes", &cost_profile::memory_bytes, "memory"},
    flow_figure{"flops", &cost_profile::flops, "flops"},
};

bool is_used(const std::string& op) {
    const auto of = [&](const auto& figure) { return op == figure.op; };
    return std::any_of(call_figures.begin(), call_figures.end(), of) ||
           std::any_of(flow_figures.begin(), flow_figures.end(), of);
}

// ---- reading a calibration

struct measured {
    double median = 0;  ///< ns
    std::optional<double> per_second;
};
/// By operation and bytes.
using measurements = std::map<std::string, std::map<double, measured>>;

class calibration_file {
public:
    explicit calibration_file(std::string file) : file_(std::move(file)) {}

    device_profile read() {
        // A pipe could be read once only, and each process of a run reads it.
        if (!fs::is_regular_file(file_)) throw bad_device(file_ + ": expected a regular file");
        std::ifstream in(file_);
        if (!in) throw bad_device(file_ + ": cannot be read");
        device_profile read{.name = "", .file = file_};
        measurements taken;
        bool done = false;
        for (std::string text; std::getline(in, text);) {
            ++line_;
            if (text.empty()) continue;
            const json object = json::parse(text, nullptr, false);
            if (!object.is_object()) fail("a JSON object");
            if (done) fail("nothing behind {\"done\":true}");
            if (read.name.empty()) read_device(object, read);
            else if (object.value("done", json()) == json(true)) done = true;
            else read_operation(object, taken);
        }
        ++line_;
        if (read.name.empty()) fail("{\"device\":NAME,\"total\":BYTES,...} before the end of the file");
        if (!done) fail("{\"done\":true} before the end of the file; the calibration did not come to its end");
        use(taken, read);
        return read;
    }

private:
    [[noreturn]] void fail(const std::string& expected) const {
        throw bad_device(file_ + ":" + std::to_string(line_) + ": expected " + expected);
    }

    void read_device(const json& object, device_profile& to) const {
        if (const auto skip = object.find("skip"); skip != object.end())
            fail("a calibrated device; this one was skipped: " + (skip->is_string() ? skip->get<std::string>() : ""));
        const auto device = object.find("device");
        if (device == object.end() || !device->is_string() || device->get_ref<const std::string&>().empty())
            fail("{\"device\":NAME,\"total\":BYTES,...} in the first line");
        to.name = device->get<std::string>();
        to.cost.capacity =
            static_cast<std::size_t>(number(object, "total", "the bytes of the device's memory", 1 << 20));
    }

    void read_operation(const json& object, measurements& to) const {
        const auto op = object.find("op");
        if (op == object.end() || !op->is_string()) fail("\"op\", the name of an operation");
        if (!is_used(op->get_ref<const std::string&>())) return;
        measured one{.median = number(object, "p50_ns", "nanoseconds", 0), .per_second = {}};
        if (object.contains("per_second")) one.per_second = number(object, "per_second", "units in a second", 1);
        to[op->get<std::string>()][number(object, "bytes", "bytes", 0)] = one;
    }

    [[nodiscard]] double number(const json& object, const char* key, const char* what, double least) const {
        constexpr double most = 1e17;
        const auto found = object.find(key);
        const double value = found != object.end() && found->is_number() ? found->get<double>() : -1;
        if (!(value >= least && value <= most))
            fail("\"" + std::string(key) + "\", " + what + ", a number of " + json(least).dump() + " or more");
        return value;
    }

    static void use(const measurements& taken, device_profile& to) {
        const auto lacks = [&](const char* name) { to.defaults.emplace_back(name); };
        to.cost.name = "calibration";
        for (const call_figure& f : call_figures) {
            const auto at = taken.find(f.op);
            if (at == taken.end()) lacks(f.name);
            else to.cost.*f.field = std::llround(at->second.begin()->second.median);
        }
        for (const call_figure& f : growth_figures) {
            const auto at = taken.find(f.op);
            if (at == taken.end() || at->second.size() < 2) {
                lacks(f.name);
                continue;
            }
            const auto& [few, least] = *at->second.begin();
            const auto& [many, most] = *at->second.rbegin();
            to.cost.*f.field = std::llround(std::max(0.0, most.median - least.median) / ((many - few) / mib));
        }
        for (const flow_figure& f : flow_figures) {
            const auto at = taken.find(f.op);
            if (at == taken.end() || !at->second.rbegin()->second.per_second) lacks(f.name);
            else to.cost.*f.field = *at->second.rbegin()->second.per_second;
        }
        // What a block costs that is larger than the smallest one calibrated is told by allocate_per_mib alone.
        const auto blocks = taken.find("cudaMalloc");
        if (blocks != taken.end() && blocks->second.size() >= 2)
            to.cost.allocate_flat = static_cast<std::size_t>(blocks->second.begin()->first);
    }

    std::string file_;
    std::size_t line_ = 0;
};

template <class Value>
std::string text_of(const char* format, Value value) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return text.data();
}

template <class List>
std::string listed(const List& names) {
    std::string all;
    for (const auto& name : names) all.append(all.empty() ? "" : ", ").append(name);
    return all;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> device_profile::facts() const {
    std::string figures = text_of("capacity %.17g bytes", static_cast<double>(cost.capacity));
    const auto add = [&](const char* figure, const std::string& value) {
        figures.append(", ").append(figure).append(" ").append(value);
    };
    for (const auto& all : {std::span<const call_figure>(call_figures), std::span<const call_figure>(growth_figures)})
        for (const call_figure& f : all) add(f.name, std::to_string(cost.*f.field) + " ns");
    add("allocate_flat", std::to_string(cost.allocate_flat) + " bytes");
    for (const flow_figure& f : flow_figures) add(f.name, text_of("%.6g/s", cost.*f.field));
    std::vector<std::pair<std::string, std::string>> all{
        {"device", "simulated: " + name + (file.empty() ? ", a profile of published figures" : ", as calibrated")},
        {"device figures", figures}};
    if (!defaults.empty()) all.emplace_back("device figures of the default profile", listed(defaults));
    return all;
}

std::vector<device_profile> built_in_devices() {
    std::vector<device_profile> all;
    for (const cost_profile& p : device::cost_profiles) all.push_back({.name = std::string(p.name), .cost = p});
    return all;
}

device_profile find_device(const std::string& words) {
    constexpr std::string_view simulated = "sim:";
    if (words == "cuda" || words.starts_with("cuda:"))
        throw bad_device("--device " + words +
                         ": this command measures simulated devices, sim:NAME or sim:FILE; cuda/gpu_check.sh measures "
                         "a GPU, and sim:FILE takes the calibration that it writes");
    const std::string name = words.starts_with(simulated) ? words.substr(simulated.size()) : "";
    std::vector<std::string> known;
    for (device_profile& each : built_in_devices()) {
        if (each.name == name) return std::move(each);
        known.push_back(each.name);
    }
    std::error_code none;
    if (!name.empty() && (name.find_first_of("/.") != std::string::npos || fs::exists(name, none)))
        return calibration_file(name).read();
    throw bad_device("--device \"" + words + "\": expected sim:NAME, with one of " + listed(known) +
                     ", or sim:FILE with a calibration that cuda/gpu_check.sh wrote");
}

}  // namespace alloclab::bench
