// malloc_source: the C library's malloc and free, or whatever the process has put in their place.
// Choose it unless something else is measured to be better: 16-byte alignment is all that contexts need (slaren in
// whisper.cpp#2525: aligned malloc is overkill).
// Cost: one malloc. Threads: shared. Full: nullptr.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"

namespace alloclab {

struct malloc_source {
    static constexpr std::string_view name = "malloc";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t max_alignment = alignof(std::max_align_t);

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        return is_request(bytes, align, max_alignment) ? std::malloc(at_least_one(bytes)) : nullptr;
    }
    void deallocate(void* p, std::size_t, std::size_t) noexcept { std::free(p); }
};

static_assert(memory_source<malloc_source>);

}  // namespace alloclab
