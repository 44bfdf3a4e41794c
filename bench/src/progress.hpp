// progress: how far a run is, on stderr: one line that is written over on a terminal, else one line per phase.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "alloclab/report/results.hpp"

namespace alloclab::bench {

class progress {
public:
    /// A phase begins, and with it `left` measurements are to come at most, those of later phases too.
    void phase(const std::string& name, std::size_t left) {
        total_ = done_ + left;
        if (!terminal_)
            std::fprintf(stderr, "%s: %zu of %zu measurements, %.0f s\n", name.c_str(), done_, total_, seconds());
    }
    /// One begins; the run ends within `limit_seconds` of its begin, or 0 for no limit.
    void next(const report::cell& c, double limit_seconds) {
        if (terminal_) {
            double left = done_ == 0 ? 0 : seconds() / static_cast<double>(done_) * static_cast<double>(total_ - done_);
            if (limit_seconds > 0) left = std::min(left, std::max(0.0, limit_seconds - seconds()));
            std::fprintf(stderr, "\r\033[K%3zu %% %zu/%zu, %d:%02d left  %.60s", done_ * 100 / total_, done_, total_,
                         static_cast<int>(left) / 60, static_cast<int>(left) % 60, to_string(c).c_str());
        }
        ++done_;
    }
    /// Will not be needed after all.
    void skip(std::size_t n) { total_ -= n; }
    void end() const {
        if (terminal_) std::fprintf(stderr, "\r\033[K");
    }
    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    bool terminal_ = ::isatty(STDERR_FILENO) != 0;
    std::size_t total_ = 0;
    std::size_t done_ = 0;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace alloclab::bench
