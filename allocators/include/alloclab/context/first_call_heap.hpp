// first_call_heap: malloc behind a process-wide mutex that is only there to do the first call's set-up.
// A control, kept to measure ggml as it is since November 2024: ggml_init takes the mutex on every call, ggml_free
// none. Cost: a mutex and a malloc. Threads: shared; acquires of all objects of this type wait for each other. Full:
// nullptr. Idea: ggml_init's is_first_call section (ggml.c, ggml_critical_section_start).
#pragma once

#include <cstddef>
#include <mutex>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/context/heap.hpp"
#include "alloclab/fork_safe.hpp"

namespace alloclab {

template <class T>
class first_call_heap {
public:
    using value_type = T;
    static constexpr std::string_view name = "first_call_heap";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr bool control = true;

    /// Makes the mutex: a child of fork would wait for ever for one that another thread was just making.
    first_call_heap() noexcept { process_wide(); }

    /// Storage for one T; nullptr when malloc has none.
    [[nodiscard]] void* acquire() noexcept {
        {
            const std::lock_guard locked(process_wide());
            static bool first_call = true;
            if (first_call) first_call = false;
        }
        return heap_.acquire();
    }
    void release(void* slot) noexcept { heap_.release(slot); }

private:
    static fork_safe<std::mutex>& process_wide() noexcept {
        static auto* mutex = new fork_safe<std::mutex>;  // never destroyed: late static destructors may still acquire
        return *mutex;
    }

    [[no_unique_address]] heap<T> heap_;
};

}  // namespace alloclab
