// pages_source: whole pages fresh from the operating system, given back at once.
// Choose it as the bottom of an arena that must not share a heap, or to see what a fresh mapping costs.
// Cost: one mmap or munmap, and a page fault for each page at first touch. Threads: shared. Full: nullptr.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"

namespace alloclab {

struct pages_source {
    static constexpr std::string_view name = "pages";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t max_alignment = page_bytes;

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        if (!is_request(bytes, align, max_alignment) || !is_size(mapped(bytes))) return nullptr;
        void* pages = ::mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return pages == MAP_FAILED ? nullptr : pages;
    }
    void deallocate(void* p, std::size_t bytes, std::size_t) noexcept {
        if (p != nullptr) ::munmap(p, mapped(bytes));
    }

private:
    static constexpr std::size_t mapped(std::size_t bytes) noexcept {
        return align_up(at_least_one(bytes), page_bytes);
    }
};

static_assert(memory_source<pages_source>);

}  // namespace alloclab
