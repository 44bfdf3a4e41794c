#include <algorithm>
#include <array>
#include <set>

#include "alloclab/report/writers.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

constexpr std::array fixed{"workload", "strategy", "block", "value", "unit", "refusal", "error"};

std::string quoted(const std::string& field) {
    if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) out.append(c == '"' ? 2 : 1, c);
    return out += '"';
}

std::string heading(const std::string& parameter) {
    return std::find(fixed.begin(), fixed.end(), parameter) == fixed.end() ? parameter : "parameter." + parameter;
}

}  // namespace

std::string to_csv(const run& r) {
    std::set<std::string> parameters;
    for (const cell& c : r.cells) {
        for (const auto& [name, value] : c.parameters) parameters.insert(name);
    }

    std::string out = "workload,strategy,";
    for (const std::string& name : parameters) out += quoted(heading(name)) + ',';
    out += "block,value,unit,refusal,error\r\n";

    for (const cell& c : r.cells) {
        const auto on = std::find_if(r.workloads.begin(), r.workloads.end(),
                                     [&](const workload& w) { return w.name == c.workload; });
        std::string lead = quoted(c.workload) + ',' + quoted(c.strategy) + ',';
        for (const std::string& name : parameters) {
            const auto value = c.parameters.find(name);
            lead += (value == c.parameters.end() ? "" : quoted(value->second)) + ',';
        }
        const std::string tail = ',' + (on == r.workloads.end() ? "" : quoted(on->unit)) + ',' + quoted(c.refusal) +
                                 ',' + quoted(c.error) + "\r\n";
        for (const sample& s : c.samples) out += lead + std::to_string(s.block) + ',' + exact(s.value) + tail;
        if (c.samples.empty()) out += lead + ',' + tail;
    }
    return out;
}

}  // namespace alloclab::report
