// aligned_malloc_source: posix_memalign with at least 64 bytes of alignment, as ggml takes its buffers and contexts.
// Choose it for blocks that must start a cache line or a page; small blocks cost 5 to 7 times a plain malloc on glibc.
// Cost: one posix_memalign. Threads: shared. Full: nullptr.
// Idea: ggml_aligned_malloc (ggml.c, TENSOR_ALIGNMENT).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"

namespace alloclab {

struct aligned_malloc_source {
    static constexpr std::string_view name = "aligned_malloc";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t max_alignment = std::size_t{2} << 20;
    static constexpr std::size_t min_alignment = 64;

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        if (!is_request(bytes, align, max_alignment)) return nullptr;
        void* block = nullptr;
        const std::size_t at = align < min_alignment ? min_alignment : align;
        return ::posix_memalign(&block, at, at_least_one(bytes)) == 0 ? block : nullptr;
    }
    void deallocate(void* p, std::size_t, std::size_t) noexcept { std::free(p); }
};

static_assert(memory_source<aligned_malloc_source>);

}  // namespace alloclab
