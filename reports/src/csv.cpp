#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "alloclab/report/writers.hpp"
#include "tables.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

constexpr std::array fixed{"workload", "strategy",    "measure", "block",   "machine", "turn",
                           "value",    "calibration", "unit",    "refusal", "error"};

std::string quoted(const std::string& field) {
    if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) out.append(c == '"' ? 2 : 1, c);
    return out += '"';
}

std::string heading(const std::string& parameter) {
    return std::find(fixed.begin(), fixed.end(), parameter) == fixed.end() ? parameter : "parameter." + parameter;
}

/// The rows of one cell: they agree in what stands before the measure and behind the unit.
class rows {
public:
    rows(std::string& out, std::string lead, std::string tail)
        : out_{out}, lead_{std::move(lead)}, tail_{std::move(tail)} {}

    void add(const std::string& measure, const std::string& taken, double value, double calibration,
             const std::string& unit) {
        out_ += lead_ + quoted(measure) + ',' + taken + ',' + exact(value) + ',' +
                (calibration > 0 ? exact(calibration) : "") + ',' + quoted(unit) + tail_;
        empty_ = false;
    }
    /// Figures without a block, each under its name behind `group`.
    template <class Figures, class Unit>
    void add_all(const std::string& group, const Figures& figures, Unit unit) {
        for (const auto& [name, value] : figures) add(group + std::string(name), ",,", value, 0, unit(name));
    }
    [[nodiscard]] bool empty() const noexcept { return empty_; }

private:
    std::string& out_;
    std::string lead_, tail_;
    bool empty_ = true;
};

void add_latency(rows& to, const latency_curve& l) {
    std::vector<std::pair<std::string, double>> figures{{"floor", l.floor}};
    for (const auto& [label, share] : quantiles) {
        if (const auto within = quantile(l, share)) figures.emplace_back(label, *within);
    }
    to.add_all("latency.", figures, [](const std::string&) { return "ns"; });
    to.add("latency.count", ",,", static_cast<double>(l.count), 0, "");
}

}  // namespace

std::string to_csv(const run& r) {
    std::set<std::string> parameters;
    for (const cell& c : r.cells) {
        for (const auto& [name, value] : c.parameters) parameters.insert(name);
    }

    std::string out = "workload,strategy,";
    for (const std::string& name : parameters) out += quoted(heading(name)) + ',';
    out += "measure,block,machine,turn,value,calibration,unit,refusal,error\r\n";

    for (const cell& c : r.cells) {
        const auto on = std::find_if(r.workloads.begin(), r.workloads.end(),
                                     [&](const workload& w) { return w.name == c.workload; });
        const std::string unit = on == r.workloads.end() ? "" : on->unit;
        std::string lead = quoted(c.workload) + ',' + quoted(c.strategy) + ',';
        for (const std::string& name : parameters) {
            const auto value = c.parameters.find(name);
            lead += (value == c.parameters.end() ? "" : quoted(value->second)) + ',';
        }
        rows to(out, std::move(lead), ',' + quoted(c.refusal) + ',' + quoted(c.error) + "\r\n");
        for (const sample& s : c.samples) {
            const std::string machine = s.machine < r.machines.size() ? quoted(r.machines[s.machine].name) : "";
            to.add("time", std::to_string(s.block) + ',' + machine + ',' + (s.turn > 0 ? std::to_string(s.turn) : ""),
                   s.value, s.calibration, unit);
        }
        to.add_all("counter.", c.counters, [](const std::string& name) { return counts_bytes(name) ? "B" : ""; });
        to.add_all("part.", c.parts, [&](const std::string&) -> const std::string& { return unit; });
        if (c.latency) add_latency(to, *c.latency);
        if (to.empty()) to.add("", ",,", NAN, 0, unit);
    }
    return out;
}

}  // namespace alloclab::report
