// failing_new: no memory from operator new in this thread while one lives; in the program that links
// failing_new_test.cpp.
#pragma once

namespace alloclab {

class failing_new {
public:
    failing_new() noexcept { ++alive; }
    ~failing_new() { --alive; }
    failing_new(const failing_new&) = delete;
    failing_new& operator=(const failing_new&) = delete;

    static inline thread_local int alive = 0;
};

}  // namespace alloclab
