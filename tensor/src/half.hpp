// half: IEEE binary16 to and from float by integer arithmetic without branches: the same bits on every machine, with no
// hardware support for halves and no table, four at a time where it matters.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace alloclab::tensor {

/// `Word` is std::uint32_t and `Real` float, or both are vectors of these.
template <class Real, class Word>
[[nodiscard]] inline Real widened(Word half) noexcept {
    constexpr std::uint32_t exponents = 0x7c00U << 13;
    constexpr std::uint32_t rebias = (127U - 15U) << 23;
    constexpr Word zero{};
    const Word magnitude = (half & 0x7fffU) << 13;
    const Word exponent = magnitude & exponents;
    // A subnormal is m * 2^-24: with the exponent of 2^-14 put in it reads 2^-14 + m * 2^-24.
    const Word implicit = exponent == 0U ? zero + (1U << 23) : zero;
    const Word offset = exponent == 0U ? zero + std::bit_cast<std::uint32_t>(0x1p-14F) : zero;
    const Word beyond = exponent == exponents ? zero + rebias : zero;
    const Real value = std::bit_cast<Real>(magnitude + rebias + implicit + beyond) - std::bit_cast<Real>(offset);
    return std::bit_cast<Real>(std::bit_cast<Word>(value) | (half & 0x8000U) << 16);
}

/// Exact; a NaN keeps its payload and turns quiet.
[[nodiscard]] inline float widen(std::uint16_t half) noexcept { return widened<float, std::uint32_t>(half); }

/// `n` halves into floats.
inline void widen(const std::uint16_t* halves, std::int64_t n, float* floats) noexcept {
    using four_halves = std::uint16_t __attribute__((vector_size(8)));
    using four_words = std::uint32_t __attribute__((vector_size(16)));
    using four_floats = float __attribute__((vector_size(16)));
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        four_halves in;
        std::memcpy(&in, halves + i, sizeof in);
        const four_floats out = widened<four_floats>(__builtin_convertvector(in, four_words));
        std::memcpy(floats + i, &out, sizeof out);
    }
    for (; i < n; ++i) floats[i] = widen(halves[i]);
}

/// To nearest, ties to even; from 65520 on infinity. A NaN stays one, quiet, with the leading bits of its payload.
[[nodiscard]] inline std::uint16_t narrow(float value) noexcept {
    constexpr std::uint32_t rebias = (127U - 15U) << 23;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t normal = (magnitude - rebias + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
    // 0.5 has the spacing of half's subnormals, 2^-24: the addition rounds to it.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
    result = magnitude >= 0x477ff000U ? 0x7c00U : result;
    result = magnitude > 0x7f800000U ? 0x7e00U | (magnitude >> 13 & 0x3ffU) : result;
    return static_cast<std::uint16_t>(result | (bits >> 16 & 0x8000U));
}

}  // namespace alloclab::tensor
