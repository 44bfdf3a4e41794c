// no_allocator: the control: the same loop round 64 static slots of a thread, or over one static buffer, and no
// allocator at all. What it takes is what the loop, the touching and the memory take.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"
#include "keep.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

/// As many callers as like may hold a slot, and nothing tells whether they do.
class no_allocator_slots {
    static constexpr std::size_t count = 64;

public:
    using value_type = slot96;
    static constexpr std::string_view name = "no_allocator";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::string_view when_full = "never";
    static constexpr bool control = true;

    [[nodiscard]] void* acquire() noexcept { return &slots_[next_++ % count]; }
    /// Whoever gives a slot back has its address in a register.
    void release(void* slot) noexcept { keep(slot); }
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = 0, .reserved_bytes = sizeof slots_, .source_calls = 0};
    }

private:
    static inline constinit thread_local std::size_t next_ = 0;
    static inline constinit thread_local slot96 slots_[count] = {};
};

}  // namespace alloclab::bench::peers
