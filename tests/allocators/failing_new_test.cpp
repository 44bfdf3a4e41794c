// The operators that failing_new.hpp speaks of.
#include "failing_new.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* p = alloclab::failing_new::alive == 0 ? std::malloc(bytes != 0 ? bytes : 1) : nullptr;
    if (p == nullptr) throw std::bad_alloc();
    return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace alloclab {
namespace {

TEST(failing_new, refuses_while_one_lives) {
    std::unique_ptr<int> made;
    {
        const failing_new no_memory;
        EXPECT_THROW(made = std::make_unique<int>(1), std::bad_alloc);
    }
    made = std::make_unique<int>(1);
    EXPECT_EQ(*made, 1);
}

}  // namespace
}  // namespace alloclab
