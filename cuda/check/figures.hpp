// figures: how long calls took, and the lines of JSON that calibrate and gpu_bench print about it. One object a line,
// flat, so that a shell can read them too. Times are nanoseconds of the host's steady clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace alloclab::device::check {

[[nodiscard]] inline double now_ns() noexcept {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F>
[[nodiscard]] double time_of(F f) {
    const double start = now_ns();
    f();
    return now_ns() - start;
}

/// Samples in order, by rank.
class figures {
public:
    /// At least one sample.
    explicit figures(std::vector<double> samples) : sorted_(std::move(samples)) {
        std::sort(sorted_.begin(), sorted_.end());
    }
    [[nodiscard]] std::size_t count() const noexcept { return sorted_.size(); }
    [[nodiscard]] double least() const noexcept { return sorted_.front(); }
    [[nodiscard]] double median() const noexcept { return sorted_[sorted_.size() / 2]; }
    [[nodiscard]] double p99() const noexcept { return sorted_[sorted_.size() * 99 / 100]; }
    [[nodiscard]] double most() const noexcept { return sorted_.back(); }

private:
    std::vector<double> sorted_;
};

/// One line of JSON, printed when it ends.
class line {
public:
    line() = default;
    line(const line&) = delete;
    line& operator=(const line&) = delete;
    ~line() {
        std::printf("{%s}\n", text_.c_str());
        std::fflush(stdout);
    }

    line& with(std::string_view key, std::string_view value) {
        std::string quoted = "\"";
        for (const char c : value)
            if (c == '"' || c == '\\') (quoted += '\\') += c;
            else quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        return put(key, quoted + '"');
    }
    line& with(std::string_view key, const char* value) { return with(key, std::string_view(value)); }
    line& with(std::string_view key, std::size_t value) { return put(key, std::to_string(value)); }
    line& with(std::string_view key, int value) { return put(key, std::to_string(value)); }
    /// Without a fraction: nanoseconds, and units per second.
    line& with(std::string_view key, double value) {
        return put(key, std::to_string(static_cast<std::int64_t>(value)));
    }
    line& with(std::string_view key, bool value) { return put(key, value ? "true" : "false"); }

private:
    line& put(std::string_view key, const std::string& value) {
        if (!text_.empty()) text_ += ',';
        ((text_ += '"') += key) += "\":";
        text_ += value;
        return *this;
    }
    std::string text_;
};

}  // namespace alloclab::device::check
