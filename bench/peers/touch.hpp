// touch: how every loop here uses what it was given, the same for everyone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "keep.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

/// Writes the first and the last word.
inline void touch(void* slot) noexcept {
    constexpr std::uint64_t word = 1;
    auto* bytes = static_cast<std::byte*>(slot);
    std::memcpy(bytes, &word, sizeof word);
    std::memcpy(bytes + sizeof(slot96) - sizeof word, &word, sizeof word);
    keep(slot);
}

/// Clears it with vector stores. A compiler that knows the value makes `rep stos` of them, which takes several times as
/// long as the whole strategy, so the value is hidden from it.
inline void clear(void* slot) noexcept {
    using vector [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = std::uint64_t;
    vector zero{};
#if defined(__x86_64__)
    asm("" : "+x"(zero));
#elif defined(__aarch64__)
    asm("" : "+w"(zero));
#endif
    auto* at = static_cast<vector*>(slot);
    for (std::size_t i = 0; i < sizeof(slot96) / sizeof zero; ++i) at[i] = zero;
    keep(slot);
}

}  // namespace alloclab::bench::peers
