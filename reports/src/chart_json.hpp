// chart_json: the JSON that charts hand to web/report.js, written piece by piece.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chapters.hpp"
#include "text.hpp"

namespace alloclab::report {

using fields = std::vector<std::pair<const char*, std::string>>;  ///< values are JSON already

[[nodiscard]] inline std::string json(double value) { return std::isfinite(value) ? exact(value) : "null"; }
[[nodiscard]] inline std::string json(std::optional<double> value) { return value ? json(*value) : "null"; }
[[nodiscard]] inline std::string json(const std::vector<std::string>& values) {
    return fmt::format("[{}]", fmt::join(values, ","));
}
[[nodiscard]] inline std::string json(const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const double v : values) texts.push_back(json(v));
    return json(texts);
}
[[nodiscard]] inline std::string json(const std::pair<double, double>& point) {
    return fmt::format("[{},{}]", json(point.first), json(point.second));
}
[[nodiscard]] inline std::string json(const fields& members) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : members) texts.push_back(fmt::format("\"{}\":{}", name, value));
    return fmt::format("{{{}}}", fmt::join(texts, ","));
}
[[nodiscard]] inline std::string json_strings(const std::vector<std::string>& values) {
    std::vector<std::string> texts;
    for (const std::string& v : values) texts.push_back(json_string(v));
    return json(texts);
}

/// What every chart of a workload says of itself.
[[nodiscard]] inline fields common(const char* kind, const workload& on, std::string_view unit) {
    return {{"kind", json_string(kind)},
            {"unit", json_string(unit)},
            {"baseline", json_string(on.baseline)},
            {"of", json_string(on.kind)}};
}

}  // namespace alloclab::report
