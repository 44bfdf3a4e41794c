#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace alloclab::bench {
namespace {

class pipe_end {
public:
    explicit pipe_end(int fd = -1) noexcept : fd_(fd) {}
    pipe_end(pipe_end&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    pipe_end& operator=(pipe_end&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~pipe_end() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }
    void close() noexcept { *this = pipe_end(); }

private:
    int fd_;
};

std::pair<pipe_end, pipe_end> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    return {pipe_end(ends[0]), pipe_end(ends[1])};
}

// Everything that the child wrote to both pipes until it closed them; false when the time was up or an interrupt came
// first.
bool read_both(const pipe_end& out, const pipe_end& err, std::string& output, std::string& errors, double limit_seconds,
               bool (*interrupted)()) {
    using clock = std::chrono::steady_clock;
    const auto deadline =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(limit_seconds));
    std::array<pollfd, 2> ends{{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
    const std::array<std::string*, 2> texts{&output, &errors};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        // A signal that comes between the question and the wait is seen after a tenth of a second.
        constexpr int patience = 100;
        if (interrupted() || clock::now() >= deadline) return false;
        if (::poll(ends.data(), ends.size(), patience) < 0 && errno != EINTR) return false;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (ends[i].fd < 0 || ends[i].revents == 0) continue;
            std::array<char, 65536> bytes;
            const auto got = ::read(ends[i].fd, bytes.data(), bytes.size());
            if (got > 0) texts[i]->append(bytes.data(), static_cast<std::size_t>(got));
            else if (got == 0 || errno != EINTR) ends[i].fd = -1;
        }
    }
    return true;
}

std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const auto begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// That of this process, with room for libraries that keep thread-local state in the static block and are opened late:
/// jemalloc needs more than glibc sets aside (glibc manual, Dynamic Linking Tunables). What the user says there stays.
std::vector<std::string> environment_of_child() {
    const std::string variable = "GLIBC_TUNABLES=", tunable = "glibc.rtld.optional_static_tls";
    std::vector<std::string> all;
    std::string tunables = variable;
    for (char** each = environ; *each != nullptr; ++each) {
        if (std::string text = *each; text.starts_with(variable)) tunables = std::move(text);
        else all.push_back(std::move(text));
    }
    if (tunables.find(tunable) == std::string::npos) tunables += (tunables == variable ? "" : ":") + tunable + "=65536";
    all.push_back(std::move(tunables));
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

ended run_child(const std::string& program, const std::vector<std::string>& words, double limit_seconds,
                bool (*interrupted)()) {
    std::vector<std::string> copied = words, environment = environment_of_child();
    const std::vector<char*> arguments = pointers_to(copied), variables = pointers_to(environment);

    auto [out, out_write] = make_pipe();
    auto [err, err_write] = make_pipe();
    const pid_t child = ::fork();
    ended result;
    if (child < 0) return result.error = std::string("fork: ") + std::strerror(errno), result;
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out_write.get(), STDOUT_FILENO);
        ::dup2(err_write.get(), STDERR_FILENO);
        ::execvpe(program.c_str(), arguments.data(), variables.data());
        ::_exit(127);
    }
    out_write.close();
    err_write.close();
    std::string errors;
    const bool in_time = read_both(out, err, result.output, errors, limit_seconds, interrupted);
    if (!in_time) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }

    if (!in_time) result.error = "not through after " + std::to_string(static_cast<int>(limit_seconds)) + " s";
    else if (WIFSIGNALED(status)) result.error = std::string("ended by signal: ") + ::strsignal(WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        result.error = "ended with code " + std::to_string(WEXITSTATUS(status)) + ": " + last_line(errors);
    return result;
}

std::filesystem::path on_path(const std::string& program) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (std::filesystem::path file = std::filesystem::path(folder) / program; ::access(file.c_str(), X_OK) == 0)
            return file;
    return {};
}

}  // namespace alloclab::bench
