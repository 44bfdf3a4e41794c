// pinned: the calling thread stays on one core for a while.
#pragma once

#include <sched.h>

#include <cstddef>

namespace alloclab::bench::peers {

/// On the n-th of the cores that the process may use, round and round. Where the system refuses, nothing happens.
class pinned {
public:
    explicit pinned(std::size_t nth) noexcept {
        if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
        nth %= static_cast<std::size_t>(CPU_COUNT(&before_));
        std::size_t core = 0;
        while (!CPU_ISSET(core, &before_) || nth-- > 0) ++core;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        held_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
    }
    ~pinned() {
        if (held_) ::sched_setaffinity(0, sizeof before_, &before_);
    }
    pinned(const pinned&) = delete;
    pinned& operator=(const pinned&) = delete;

private:
    cpu_set_t before_{};
    bool held_ = false;
};

}  // namespace alloclab::bench::peers
