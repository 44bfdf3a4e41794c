// fork_safe: a lock that no child of fork finds held, and so neither what it guards half changed: the thread that forks
// takes every such lock first and gives all back afterwards, on both sides (jemalloc#2402, gperftools#499).
// Choose it for each lock of a strategy: the child can then allocate, whatever other threads did at the fork.
// Cost: the lock's; making and destroying one takes a process-wide mutex. Threads: shared. A fork waits until each lock
// is free, so it must not come from inside one. One on a thread's stack must not be left there by a fork from another
// thread: the child's next fork would look for it where that stack was.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <mutex>

namespace alloclab {

namespace detail {

/// One of the locks to be held over a fork; all of the process in a list.
class held_over_fork {
public:
    held_over_fork(const held_over_fork&) = delete;
    held_over_fork& operator=(const held_over_fork&) = delete;

protected:
    held_over_fork() = default;
    ~held_over_fork() = default;

    // Called while the lock is whole: a fork may come between a part's construction and the next one's.
    void enlist() noexcept {
        [[maybe_unused]] static const int registered = ::pthread_atfork(&hold_all, &let_go_all, &begin_child);
        const std::lock_guard hold(list_mutex_);
        next_ = first_;
        if (next_ != nullptr) next_->previous_ = this;
        first_ = this;
    }
    void delist() noexcept {
        const std::lock_guard hold(list_mutex_);
        (previous_ != nullptr ? previous_->next_ : first_) = next_;
        if (next_ != nullptr) next_->previous_ = previous_;
    }

private:
    virtual bool try_hold() noexcept = 0;
    virtual void let_go() noexcept = 0;
    virtual void in_child() noexcept = 0;

    // Holds all or waits with none: who has one of them may be waiting for another, or for the list.
    static void hold_all() noexcept {
        for (;;) {
            list_mutex_.lock();
            held_over_fork* refused = first_;
            while (refused != nullptr && refused->try_hold()) refused = refused->next_;
            if (refused == nullptr) return;
            let_go_until(refused);
            ::sched_yield();
        }
    }
    static void let_go_all() noexcept { let_go_until(nullptr); }
    static void begin_child() noexcept {
        for (held_over_fork* each = first_; each != nullptr; each = each->next_) each->in_child();
        let_go_all();
    }
    static void let_go_until(const held_over_fork* end) noexcept {
        for (held_over_fork* each = first_; each != end; each = each->next_) each->let_go();
        list_mutex_.unlock();
    }

    static inline constinit std::mutex list_mutex_;
    static inline constinit held_over_fork* first_ = nullptr;
    held_over_fork* next_ = nullptr;
    held_over_fork* previous_ = nullptr;
};

}  // namespace detail

/// Locked and unlocked as a `Lock` is. What it guards can be told of a new child, under the lock, by a function that is
/// called before any lock is given back: only the thread that forked is left.
template <class Lock>
class fork_safe final : detail::held_over_fork {
public:
    fork_safe() noexcept { enlist(); }
    fork_safe(void (*tell)(void*) noexcept, void* guarded) noexcept : tell_(tell), guarded_(guarded) { enlist(); }
    ~fork_safe() { delist(); }

    void lock() noexcept { lock_.lock(); }
    [[nodiscard]] bool try_lock() noexcept { return lock_.try_lock(); }
    void unlock() noexcept { lock_.unlock(); }

private:
    bool try_hold() noexcept override { return lock_.try_lock(); }
    void let_go() noexcept override { lock_.unlock(); }
    void in_child() noexcept override {
        if (tell_ != nullptr) tell_(guarded_);
    }

    Lock lock_;
    void (*tell_)(void*) noexcept = nullptr;
    void* guarded_ = nullptr;
};

}  // namespace alloclab
