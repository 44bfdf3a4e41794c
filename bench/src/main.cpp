// The alloclab command: its subcommands, and what they share.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "alloclab/report/results.hpp"
#include "command.hpp"

namespace alloclab::bench {

int complain(int code, std::string text) {
    constexpr std::size_t longest = 2000;
    if (text.size() > longest) text = text.substr(0, longest) + " ...";
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    std::cerr << "alloclab: " << text << '\n';
    return code;
}

void check_writable(const std::filesystem::path& file) {
    if (report::open_descriptor(file)) return;
    if (file.empty()) throw std::runtime_error("no name for the output; expected a file");
    if (std::filesystem::is_directory(file)) throw std::runtime_error(file.string() + " is a folder; expected a file");
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) return;  // /dev/stdout
    std::filesystem::path beside = file;
    beside += "." + std::to_string(::getpid()) + ".probe";
    std::FILE* probe = std::fopen(beside.c_str(), "wx");
    if (probe == nullptr) throw std::runtime_error("cannot write " + file.string() + ": " + std::strerror(errno));
    std::fclose(probe);
    std::filesystem::remove(beside);
}

namespace {

// A closed descriptor below 3 would be taken by the next file or pipe and then be mistaken for what it stands for.
void open_standard_streams() {
    for (int opened = ::open("/dev/null", O_RDWR); opened >= 0; opened = ::open("/dev/null", O_RDWR))
        if (opened > STDERR_FILENO) {
            ::close(opened);
            return;
        }
}

int parsed(int argc, char** argv) {
    CLI::App app{"Measures the memory strategies of tensor-graph runtimes, side by side"};
    app.name("alloclab");
    app.require_subcommand(1);
    app.set_version_flag("--version", ALLOCLAB_VERSION ", " ALLOCLAB_COMPILER ", " ALLOCLAB_BUILD_FLAGS);
    const std::array commands{add_list(app),  add_run(app, argc, argv), add_report(app), add_compare(app),
                              add_merge(app), add_doctor(app),          add_worker(app)};
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        return complain(usage_error, std::string(e.what()) + "; see alloclab --help");
    }
    for (const command& c : commands)
        if (*c.parser) return c.run();
    return usage_error;
}

}  // namespace
}  // namespace alloclab::bench

int main(int argc, char** argv) {
    alloclab::bench::open_standard_streams();
    try {
        const int code = alloclab::bench::parsed(argc, argv);
        if (std::cout.flush() && std::fflush(stdout) == 0) return code;
        return alloclab::bench::complain(code == alloclab::bench::ok ? int{alloclab::bench::failed} : code,
                                         "standard output could not be written");
    } catch (const std::exception& e) {
        return alloclab::bench::complain(alloclab::bench::failed, e.what());
    }
}
