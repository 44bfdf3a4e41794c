// allocate that may throw makes no source.
// expect: memory_source
#include "alloclab/context/heap.hpp"

using namespace alloclab;
struct throwing_source {
    static constexpr std::string_view name = "throwing";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t max_alignment = 16;
#ifndef MENDED
    void* allocate(std::size_t, std::size_t) { return nullptr; }
#else
    void* allocate(std::size_t, std::size_t) noexcept { return nullptr; }
#endif
    void deallocate(void*, std::size_t, std::size_t) noexcept {}
};
heap<int, throwing_source> strategy;
