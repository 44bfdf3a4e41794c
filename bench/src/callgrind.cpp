#include "callgrind.hpp"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "child.hpp"

namespace alloclab::bench {
namespace {

namespace fs = std::filesystem;

/// A folder of this process alone, removed at the end.
class private_folder {
public:
    private_folder() {
        std::string name = (fs::temp_directory_path() / "alloclab.XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw std::system_error(errno, std::generic_category(), "cannot make " + name);
        path_ = name;
    }
    private_folder(const private_folder&) = delete;
    private_folder& operator=(const private_folder&) = delete;
    ~private_folder() {
        std::error_code none;
        fs::remove_all(path_, none);
    }
    [[nodiscard]] const fs::path& path() const noexcept { return path_; }

private:
    fs::path path_;
};

/// What callgrind's file says, names and positions uncompressed.
struct profile {
    double all = 0, own = 0, library_calls = 0;
};

/// Lines "ob=" name the object that the costs below belong to; "cob=" that of a called function, where it is another
/// one; "calls=N ..." how often, with the callee's cost on the line behind, which is not the caller's own.
profile read_profile(const fs::path& file, const std::string& program) {
    // The stubs through which a program calls its libraries belong to no object.
    const auto is_own = [&](std::string_view object) { return object == program || object == "???"; };
    std::ifstream in(file);
    profile seen;
    std::string object, callee;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("ob=")) object = line.substr(3);
        else if (line.starts_with("cob=")) callee = line.substr(4);
        else if (line.starts_with("calls=")) {
            if (is_own(object) && !callee.empty() && !is_own(callee))
                seen.library_calls += std::strtod(line.c_str() + 6, nullptr);
            callee.clear();
            std::getline(in, line);
        } else if (!line.empty() && line.front() >= '0' && line.front() <= '9') {
            const std::size_t blank = line.find(' ');
            if (blank == std::string::npos) continue;
            const double cost = std::strtod(line.c_str() + blank, nullptr);
            seen.all += cost;
            if (is_own(object)) seen.own += cost;
        }
    }
    if (seen.all == 0) throw std::runtime_error("callgrind saw no instruction of " + std::string(counted_function));
    return seen;
}

}  // namespace

instruction_count count_instructions(job j, double limit_seconds, bool (*interrupted)()) {
    // Numbers of one length, so that the arguments lie alike in memory; what is done once is over by the first.
    constexpr std::size_t few = 16, many = 48;
    instruction_count result;
    double operations = 0;
    const auto counted = [&](std::size_t iterations) {
        const std::string program = fs::read_symlink("/proc/self/exe").string();
        const private_folder folder;
        const fs::path out = folder.path() / "callgrind.out";
        j.task = job::counting;
        j.count = iterations;
        std::vector<std::string> words{"valgrind",
                                       "-q",
                                       "--tool=callgrind",
                                       "--vgdb=no",
                                       "--compress-strings=no",
                                       "--compress-pos=no",
                                       "--callgrind-out-file=" + out.string(),
                                       "--toggle-collect=" + std::string(counted_function) + "(*",
                                       program};
        const auto worker = command_of(j);
        words.insert(words.end(), worker.begin() + 1, worker.end());
        const ended run = run_child("valgrind", words, limit_seconds, interrupted);
        if (!run.error.empty()) throw std::runtime_error(run.error);
        const outcome o = from_line(run.output);
        if (!o.error.empty() || !o.refusal.empty()) throw std::runtime_error(o.error + o.refusal);
        operations = o.operations;
        return read_profile(out, program);
    };
    try {
        const profile first = counted(few), second = counted(many);
        const auto between = [&](double profile::*part) {
            return (second.*part - first.*part) / (static_cast<double>(many - few) * operations);
        };
        result.per_operation = between(&profile::all);
        result.own = between(&profile::own);
        result.library_calls = between(&profile::library_calls);
    } catch (const std::exception& e) {
        result.error = std::string("instructions not counted: ") + e.what();
    }
    return result;
}

}  // namespace alloclab::bench
