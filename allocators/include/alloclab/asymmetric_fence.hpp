// asymmetric_fence: a Dekker handshake that is free for the side that runs often. Both sides store, then load what the
// other stored; `light_fence` keeps only the compiler from turning its side round, `heavy_fence` makes every other
// thread of the process order its memory accesses at some moment during the call. So at least one side sees the other.
// Cost: light none; heavy a system call, 0.3 us and an interrupt of each running thread. Threads: shared.
// Idea: membarrier(2), as in liburcu and folly's AsymmetricThreadFence, with mprotect where the kernel has none.
#pragma once

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace alloclab {

/// Between the store and the load of the side that runs often.
inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

namespace detail {

[[nodiscard]] inline bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Taking away the right to write makes the kernel flush the page's translation on each processor that runs this
// process, and its interrupt is a barrier there. The page must be present, hence the write.
[[nodiscard]] inline void* fence_page() noexcept {
    static void* const page = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? nullptr : page;
}
inline void shoot_down_fence() noexcept {
    static std::mutex one_at_a_time;
    const std::lock_guard hold(one_at_a_time);
    const auto protect = [](int rights) {
        while (::mprotect(fence_page(), 1, rights) != 0) ::sched_yield();  // ENOMEM passes
    };
    protect(PROT_READ | PROT_WRITE);
    static_cast<std::atomic<char>*>(fence_page())->store(1, std::memory_order_relaxed);
    protect(PROT_READ);
}

}  // namespace detail

/// Whether `heavy_fence` may be called. Always the same answer: false when not even one page is left for it, and
/// without membarrier on processors that need no interrupt for a flush.
[[nodiscard]] inline bool heavy_fence_available() noexcept {
    static const bool available = [] {
#if !defined(__x86_64__)
        if (!detail::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return false;
#endif
        return detail::fence_page() != nullptr;
    }();
    return available;
}

/// Of the side that runs rarely. The first call of a process registers it with the kernel.
inline void heavy_fence() noexcept {
    if (detail::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
    if (detail::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
        detail::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    detail::shoot_down_fence();
}

}  // namespace alloclab
