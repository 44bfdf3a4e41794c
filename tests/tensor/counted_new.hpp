// operator new of the tests in this folder: counted, and refused on demand. By thread.
#pragma once

#include <cstddef>

namespace alloclab::tensor::test {

/// Calls so far.
[[nodiscard]] std::size_t calls_of_new() noexcept;
/// After so many more calls, the others throw std::bad_alloc; too_many: none.
void fail_new_after(std::size_t calls) noexcept;

}  // namespace alloclab::tensor::test
