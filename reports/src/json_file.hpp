// json_file: reading a JSON file so that every error names the file, the place in it and what was expected there.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// Throws bad_results: "run.json: /cells/3: missing".
[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view place, std::string_view what);

/// What stands there, in few words: a short string in quotes, a number, else the type.
[[nodiscard]] std::string found(const nlohmann::json& value);

/// The whole text; throws bad_results.
[[nodiscard]] std::string slurp(const std::filesystem::path& file);

/// Throws bad_results with line and column.
[[nodiscard]] nlohmann::json parse(const std::filesystem::path& file, const std::string& text);

/// The document that read_run reads from a file; throws bad_results, as read_run does.
[[nodiscard]] run run_from(const std::filesystem::path& file, const nlohmann::json& document);

}  // namespace alloclab::report
