// Sizes and alignments: the only place that adds, multiplies or rounds them. Arithmetic saturates at `too_many`, so an
// overflow anywhere in a formula is still seen by one `is_size` at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace alloclab {

inline constexpr std::size_t too_many = std::numeric_limits<std::size_t>::max();

/// True when one object may have that many bytes (at most PTRDIFF_MAX).
[[nodiscard]] constexpr bool is_size(std::size_t bytes) noexcept {
    return bytes <= static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
}

[[nodiscard]] constexpr bool is_alignment(std::size_t align) noexcept {
    return align != 0 && (align & (align - 1)) == 0;
}

/// True for a request that a source with this maximum alignment may serve.
[[nodiscard]] constexpr bool is_request(std::size_t bytes, std::size_t align, std::size_t max_alignment) noexcept {
    return is_size(bytes) && is_alignment(align) && align <= max_alignment;
}

[[nodiscard]] constexpr std::size_t sum(std::size_t a, std::size_t b) noexcept {
    std::size_t result = 0;
    return __builtin_add_overflow(a, b, &result) ? too_many : result;
}

[[nodiscard]] constexpr std::size_t product(std::size_t a, std::size_t b) noexcept {
    std::size_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? too_many : result;
}

/// Whether `b` too is at least 1 and the product a size, which is then in `result`; `a` must be at least 1. For chains
/// that are nearly always good: one that is not is looked at again by `product` and `is_size`.
[[nodiscard]] constexpr bool multiply(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept {
    return b >= 1 && !__builtin_mul_overflow(a, b, &result);
}

/// Bytes from `address` to the next multiple of `align`, a power of two.
[[nodiscard]] constexpr std::size_t padding(std::uintptr_t address, std::size_t align) noexcept {
    return (~address + 1) & (align - 1);
}

/// The lowest multiple of `align`, a power of two, that is not below `n`.
[[nodiscard]] constexpr std::size_t align_up(std::size_t n, std::size_t align) noexcept {
    return sum(n, padding(n, align));
}

/// A request of 0 bytes is served and counted as 1, so that every pointer is distinct and non-null.
[[nodiscard]] constexpr std::size_t at_least_one(std::size_t bytes) noexcept { return bytes + (bytes == 0); }

}  // namespace alloclab
