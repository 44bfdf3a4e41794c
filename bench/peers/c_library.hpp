// c_library: the C library's own allocation functions as slot strategies, each by a direct call.
// Threads: shared. Full: nullptr.
#pragma once

#include <cstdlib>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

struct malloc_slots {
    using value_type = slot96;
    static constexpr std::string_view name = "malloc";
    static constexpr thread_use threads = thread_use::shared;
    [[nodiscard]] void* acquire() noexcept { return std::malloc(sizeof(slot96)); }
    void release(void* slot) noexcept { std::free(slot); }
};

struct calloc_slots {
    using value_type = slot96;
    static constexpr std::string_view name = "calloc";
    static constexpr thread_use threads = thread_use::shared;
    [[nodiscard]] void* acquire() noexcept { return std::calloc(1, sizeof(slot96)); }
    void release(void* slot) noexcept { std::free(slot); }
};

/// Aligned to a cache line, which is what is asked of it; the others need 16.
struct posix_memalign_slots {
    using value_type = slot96;
    static constexpr std::string_view name = "posix_memalign";
    static constexpr thread_use threads = thread_use::shared;
    [[nodiscard]] void* acquire() noexcept {
        void* slot = nullptr;
        return ::posix_memalign(&slot, 64, sizeof(slot96)) == 0 ? slot : nullptr;
    }
    void release(void* slot) noexcept { std::free(slot); }
};

}  // namespace alloclab::bench::peers
