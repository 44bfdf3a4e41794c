// offload_errors: what the engine throws where the device side cannot go on.
#pragma once

#include <cstddef>
#include <cstdio>
#include <new>
#include <stdexcept>

namespace alloclab::tensor {

/// An extra, or memory on the device, could not be had. The text says what and how much.
class offload_exhausted : public std::bad_alloc {
public:
    offload_exhausted(const char* what_for, std::size_t needed, std::size_t available) noexcept {
        std::snprintf(text_, sizeof text_, "offload exhausted: no %s (needed %zu, available %zu)", what_for, needed,
                      available);
    }
    [[nodiscard]] const char* what() const noexcept override { return text_; }

private:
    char text_[128];
};

/// The device refused a call that it should have taken. The text says which, and why as the device tells it.
class device_refused : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace alloclab::tensor
