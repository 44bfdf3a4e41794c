// scan_pool: N slots with a used flag each, scanned from the first on acquire and again, by address, on release.
// A control, kept to measure ggml's pool as it was until November 2024; choose static_pool instead.
// Cost: O(N) under a spin lock, both ways. Threads: shared. Full: nullptr, nothing changes.
// Idea: ggml_init and ggml_free before whisper.cpp#2525. With lock_over::buffer the lock is held while the caller
// allocates and frees the metadata buffer, as ggml did; lock_over::slots gives the lock back first.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/fork_safe.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

enum class lock_over { slots, buffer };

template <class T, std::size_t N = 64, lock_over Held = lock_over::slots>
class scan_pool {
public:
    using value_type = T;
    static constexpr std::string_view name = Held == lock_over::buffer ? "scan_pool_lock_over_buffer" : "scan_pool";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t capacity = N;
    static constexpr bool control = true;

    /// The first unused slot; nullptr when all N are live.
    [[nodiscard]] void* acquire() noexcept {
        const std::lock_guard hold(lock_);
        return first_unused();
    }
    /// Pointers that are no live slot do nothing.
    void release(void* slot) noexcept {
        const std::lock_guard hold(lock_);
        forget(slot);
    }

    /// acquire, then `make(slot)` under the same lock; the slot goes back when that returns false.
    template <class Make>
    [[nodiscard]] void* acquire_then(Make make) noexcept requires(Held == lock_over::buffer) {
        const std::lock_guard hold(lock_);
        void* slot = first_unused();
        if (slot == nullptr || make(slot)) return slot;
        forget(slot);
        return nullptr;
    }
    /// `drop(slot)` and release under one lock.
    template <class Drop>
    void release_after(void* slot, Drop drop) noexcept requires(Held == lock_over::buffer) {
        const std::lock_guard hold(lock_);
        drop(slot);
        forget(slot);
    }

    [[nodiscard]] bool owns(const void* pointer) const noexcept {
        for (const entry& e : entries_)
            if (e.bytes == pointer) return true;
        return false;
    }
    /// Forgets every live slot.
    void reset() noexcept {
        const std::lock_guard hold(lock_);
        for (entry& e : entries_) e.used = false;
    }
    [[nodiscard]] struct usage usage() const noexcept {
        const std::lock_guard hold(lock_);
        std::size_t live = 0;
        for (const entry& e : entries_) live += e.used ? 1U : 0U;
        return {.live = live, .reserved_bytes = sizeof entries_, .source_calls = 0};
    }

private:
    struct entry {
        bool used = false;
        alignas(T) std::byte bytes[sizeof(T)];
    };
    class spin_lock {
    public:
        void lock() noexcept {
            while (!try_lock()) ::sched_yield();
        }
        bool try_lock() noexcept { return !busy_.test_and_set(std::memory_order_acquire); }
        void unlock() noexcept { busy_.clear(std::memory_order_release); }

    private:
        std::atomic_flag busy_;
    };

    [[nodiscard]] void* first_unused() noexcept {
        for (entry& e : entries_)
            if (!e.used) {
                e.used = true;
                return e.bytes;
            }
        return nullptr;
    }
    void forget(void* slot) noexcept {
        for (entry& e : entries_)
            if (e.bytes == slot) {
                e.used = false;
                return;
            }
    }

    mutable fork_safe<spin_lock> lock_;
    std::array<entry, N> entries_;
};

}  // namespace alloclab
