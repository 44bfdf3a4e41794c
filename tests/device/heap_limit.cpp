#include "heap_limit.hpp"

#include <cstdlib>
#include <new>

namespace alloclab::device {
int heap_left = -1;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    using alloclab::device::heap_left;
    if (heap_left == 0) return nullptr;
    if (heap_left > 0) --heap_left;
    return std::malloc(bytes != 0 ? bytes : 1);
}
void* operator new(std::size_t bytes) {
    void* p = ::operator new(bytes, std::nothrow);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
