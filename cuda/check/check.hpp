// check: the few lines that gpu_check needs of a test framework, since a machine with a GPU may have none. A check has
// a name that says what holds and becomes one line of output; a group goes on after one that failed, and the groups
// after an exception.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace alloclab::device::check {

class checks {
public:
    template <class F>
    void group(std::string_view name, F f) {
        group_ = name;
        try {
            f();
        } catch (const std::exception& e) {
            that(false, "no exception leaves the group", e.what());
        }
    }

    /// Answers `holds`, for what makes sense only then.
    bool that(bool holds, std::string_view what, std::string_view detail = {}) {
        ++(holds ? passed_ : failed_);
        say(holds ? "ok     " : "FAILED ", what, holds ? std::string_view() : detail);
        return holds;
    }
    void skip(std::string_view what, std::string_view why) {
        ++skipped_;
        say("skipped", what, why);
    }

    /// The last line, and the exit status.
    [[nodiscard]] int finish() const {
        std::printf("%zu passed, %zu failed, %zu skipped\n", passed_, failed_, skipped_);
        return failed_ == 0 ? 0 : 1;
    }

private:
    void say(std::string_view verdict, std::string_view what, std::string_view detail) const {
        std::string text(verdict);
        for (const std::string_view part : {std::string_view(" "), group_, std::string_view(": "), what}) text += part;
        if (!detail.empty()) (text += "; ") += detail;
        std::puts(text.c_str());
        std::fflush(stdout);
    }

    std::string_view group_;
    std::size_t passed_ = 0;
    std::size_t failed_ = 0;
    std::size_t skipped_ = 0;
};

void check_memory(checks& c);
void check_order(checks& c);
void check_capture(checks& c);
void check_current_device(checks& c);
void check_growth_in_place(checks& c);
void check_operations(checks& c);
void check_models(checks& c);
void check_events(checks& c);

}  // namespace alloclab::device::check
