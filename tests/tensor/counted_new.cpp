#include "counted_new.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t calls = 0;
thread_local std::size_t allowed = ~std::size_t{0};

void count_call() {
    ++calls;
    if (allowed != ~std::size_t{0} && allowed-- == 0) {
        allowed = 0;
        throw std::bad_alloc();
    }
}
}  // namespace

namespace alloclab::tensor::test {
std::size_t calls_of_new() noexcept { return calls; }
void fail_new_after(std::size_t more) noexcept { allowed = more; }
}  // namespace alloclab::tensor::test

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    count_call();
    if (void* p = std::malloc(bytes != 0 ? bytes : 1)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t align) {
    count_call();
    const auto a = static_cast<std::size_t>(align);
    if (void* p = std::aligned_alloc(a, (bytes / a + 1) * a)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
