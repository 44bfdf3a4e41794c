// slots_object: what an `alloclab_slots*` points to: a head of function pointers and, in the cache line where they end,
// the state of one strategy. A call costs a test for NULL and a jump to code that the strategy is inlined into.
#pragma once

// Marked so, a function of the header is exported from the shared library, in which all else is hidden.
#pragma GCC visibility push(default)
#include <alloclab/alloclab.h>
#pragma GCC visibility pop

#include <cstddef>
#include <cstdlib>
#include <new>

#include "alloclab/concepts.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

/// What is asked for rarely; nullptr where the strategy lacks the capability.
struct slots_traits {
    const char* name;
    std::size_t bytes;
    std::size_t capacity;
    thread_use threads;
    bool (*available)() noexcept;
    alloclab_slots* (*create)() noexcept;
    void (*destroy)(alloclab_slots*) noexcept;
    bool (*owns)(const alloclab_slots*, const void*) noexcept;
    void (*reset)(alloclab_slots*) noexcept;
    struct usage (*usage)(const alloclab_slots*) noexcept;
};

struct slots_head : alloclab_slots {
    const slots_traits* traits;
};

template <slot_strategy S>
class alignas(64) slots_object final : public slots_head {
public:
    slots_object() noexcept : slots_head{{&acquire_slot, &release_slot}, &traits_of} {}

    static const slots_traits traits_of;

private:
    static_assert(S::name.data()[S::name.size()] == '\0', "a name ends where C looks for its end");

    static S& in(alloclab_slots* slots) noexcept { return static_cast<slots_object*>(slots)->strategy_; }
    static const S& in(const alloclab_slots* slots) noexcept {
        return static_cast<const slots_object*>(slots)->strategy_;
    }

    [[gnu::flatten]] static void* acquire_slot(alloclab_slots* slots) noexcept { return in(slots).acquire(); }
    [[gnu::flatten]] static void release_slot(alloclab_slots* slots, void* slot) noexcept { in(slots).release(slot); }

    static alloclab_slots* create() noexcept {
        void* memory = nullptr;
        if (::posix_memalign(&memory, alignof(slots_object), sizeof(slots_object)) != 0) return nullptr;
        return new (memory) slots_object;
    }
    static void destroy(alloclab_slots* slots) noexcept {
        auto* whole = static_cast<slots_object*>(slots);
        whole->~slots_object();
        std::free(whole);
    }
    static constexpr auto owns() noexcept -> decltype(slots_traits::owns) {
        if constexpr (owning<S>)
            return [](const alloclab_slots* slots, const void* pointer) noexcept { return in(slots).owns(pointer); };
        else return nullptr;
    }
    static constexpr auto reset() noexcept -> decltype(slots_traits::reset) {
        if constexpr (resettable<S>) return [](alloclab_slots* slots) noexcept { in(slots).reset(); };
        else return nullptr;
    }
    static constexpr auto usage() noexcept -> decltype(slots_traits::usage) {
        if constexpr (measured<S>) return [](const alloclab_slots* slots) noexcept { return in(slots).usage(); };
        else return nullptr;
    }

    S strategy_;
};

template <slot_strategy S>
constinit const slots_traits slots_object<S>::traits_of{
    .name = S::name.data(),
    .bytes = sizeof(typename S::value_type),
    .capacity = describe<S>().capacity,
    .threads = S::threads,
    .available = &alloclab::available<S>,
    .create = &create,
    .destroy = &destroy,
    .owns = owns(),
    .reset = reset(),
    .usage = usage(),
};

}  // namespace alloclab
