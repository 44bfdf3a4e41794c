// command: what the subcommands of alloclab share. Each has a file of its own, command_NAME.cpp, which adds its options
// to the command line and returns what is to be done once they are read.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>

namespace alloclab::bench {

/// The same in every subcommand.
enum exit_code : int {
    ok = 0,
    gate_failed = 1,
    usage_error = 2,  ///< or input that cannot be read
    failed = 3,       ///< measuring failed, was interrupted, or nothing matched
    not_comparable = 4,
    inconclusive = 5  ///< where the user asked that this fails
};

/// A subcommand: where its options were parsed into and what carries it out.
struct command {
    CLI::App* parser;
    std::function<int()> run;
};

command add_list(CLI::App& app);
command add_run(CLI::App& app, int argc, char** argv);
command add_worker(CLI::App& app);
command add_report(CLI::App& app);
command add_compare(CLI::App& app);
command add_merge(CLI::App& app);
command add_doctor(CLI::App& app);

/// Prints one line on stderr whatever the text holds, since it may repeat what a user or a file said; returns `code`.
int complain(int code, std::string text);

/// Tried before anything is measured, since what the system says of permissions is not always what it then does: throws
/// std::runtime_error when the file could not be written. Makes its folder.
void check_writable(const std::filesystem::path& file);

}  // namespace alloclab::bench
