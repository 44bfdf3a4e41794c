// child: another program, run to its end by this one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace alloclab::bench {

struct ended {
    std::string output;  ///< what it wrote to its standard output
    std::string error;   ///< "" when it left with 0, else what went wrong, with the last line of its standard error
};

/// Runs `program` (a path, or a name on PATH) with `words`, its own name first. It is ended after `limit_seconds`, when
/// `interrupted()` turns true, and with this process.
[[nodiscard]] ended run_child(const std::string& program, const std::vector<std::string>& words, double limit_seconds,
                              bool (*interrupted)());

/// The file that a name on PATH stands for; empty where there is none to be run.
[[nodiscard]] std::filesystem::path on_path(const std::string& program);

}  // namespace alloclab::bench
