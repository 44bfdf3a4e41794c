// c_interface: a strategy of ours through the C interface: a function of a library, called through the pointer that its
// handle holds.
// Threads and full: as the strategy.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/alloclab.h"
#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

class c_magazine_pool_slots {
public:
    using value_type = slot96;
    static constexpr std::string_view name = "c_magazine_pool";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t capacity = 64;

    c_magazine_pool_slots() noexcept {
        alloclab_slots_create("magazine_pool", sizeof(slot96), alignof(slot96), nullptr, &slots_);
    }
    ~c_magazine_pool_slots() { alloclab_slots_destroy(slots_); }
    c_magazine_pool_slots(const c_magazine_pool_slots&) = delete;
    c_magazine_pool_slots& operator=(const c_magazine_pool_slots&) = delete;

    [[nodiscard]] void* acquire() noexcept { return alloclab_slots_acquire(slots_); }
    void release(void* slot) noexcept { alloclab_slots_release(slots_, slot); }

    [[nodiscard]] struct usage usage() const noexcept {
        alloclab_usage seen{};
        alloclab_slots_usage(slots_, &seen);
        return {.live = seen.live, .reserved_bytes = seen.reserved_bytes, .source_calls = seen.source_calls};
    }

private:
    alloclab_slots* slots_ = nullptr;
};

}  // namespace alloclab::bench::peers
