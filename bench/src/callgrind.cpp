#include "callgrind.hpp"

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
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

/// The sum in callgrind's file format: a line "totals: N" or, in other versions, "summary: N".
std::uint64_t total_in(const fs::path& file) {
    std::ifstream in(file);
    std::uint64_t total = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name;
        if (words >> name && (name == "totals:" || name == "summary:")) words >> total;
    }
    if (total == 0) throw std::runtime_error("callgrind saw no instruction of " + std::string(counted_function));
    return total;
}

}  // namespace

instruction_count count_instructions(job j, double limit_seconds, bool (*interrupted)()) {
    // Numbers of one length, so that the arguments lie alike in memory; what is done once is over by the first.
    constexpr std::size_t few = 16, many = 48;
    instruction_count result;
    double operations = 0;
    const auto counted = [&](std::size_t iterations) {
        const private_folder folder;
        const fs::path out = folder.path() / "callgrind.out";
        j.task = job::counting;
        j.count = iterations;
        std::vector<std::string> words{"valgrind",
                                       "-q",
                                       "--tool=callgrind",
                                       "--vgdb=no",
                                       "--callgrind-out-file=" + out.string(),
                                       "--toggle-collect=" + std::string(counted_function) + "(*",
                                       fs::read_symlink("/proc/self/exe").string()};
        const auto worker = command_of(j);
        words.insert(words.end(), worker.begin() + 1, worker.end());
        const ended run = run_child("valgrind", words, limit_seconds, interrupted);
        if (!run.error.empty()) throw std::runtime_error(run.error);
        const outcome o = from_line(run.output);
        if (!o.error.empty()) throw std::runtime_error(o.error);
        operations = o.operations;
        return static_cast<double>(total_in(out));
    };
    try {
        const double first = counted(few);
        result.per_operation = (counted(many) - first) / (static_cast<double>(many - few) * operations);
    } catch (const std::exception& e) {
        result.error = std::string("instructions not counted: ") + e.what();
    }
    return result;
}

}  // namespace alloclab::bench
