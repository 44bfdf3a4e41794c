// compare: results of the device against those of the CPU. Both compute in float, but sum in another order: an element
// may differ by a tolerance relative to 1 + its magnitude.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "alloclab/tensor/kernels.hpp"
#include "alloclab/tensor/tensor.hpp"

namespace alloclab::device::check {

/// The elements of `t`, whose data is host memory, in their order.
[[nodiscard]] inline std::vector<float> elements_of(const tensor::tensor& t) {
    std::vector<float> all;
    all.reserve(t.elements());
    const auto& ne = t.ne;
    for (std::int64_t row = 0; row < t.rows(); ++row) {
        const auto* at = static_cast<const std::byte*>(t.data);
        const std::int64_t place[] = {row % ne[1], row / ne[1] % ne[2], row / ne[1] / ne[2]};
        for (std::size_t d = 0; d < 3; ++d) at += static_cast<std::size_t>(place[d]) * t.nb[d + 1];
        for (std::int64_t i = 0; i < ne[0]; ++i, at += t.nb[0]) {
            std::uint16_t half = 0;
            std::int32_t whole = 0;
            float real = 0;
            switch (t.type) {
                case tensor::type::f16:
                    std::memcpy(&half, at, sizeof half);
                    real = tensor::to_float(half);
                    break;
                case tensor::type::i32:
                    std::memcpy(&whole, at, sizeof whole);
                    real = static_cast<float>(whole);
                    break;
                case tensor::type::f32:
                    std::memcpy(&real, at, sizeof real);
                    break;
            }
            all.push_back(real);
        }
    }
    return all;
}

/// The largest |a - b| / (1 + |b|); infinity where one is a number and the other is not, or they differ in length.
[[nodiscard]] inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double most = a.size() == b.size() ? 0 : HUGE_VAL;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (a[i] == b[i]) continue;  // infinities too
        const double d = std::abs(double{a[i]} - double{b[i]}) / (1 + std::abs(double{b[i]}));
        most = std::isnan(d) ? HUGE_VAL : std::max(most, d);
    }
    return most;
}

/// Where bits must be equal, numbers that are none among them.
[[nodiscard]] inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace alloclab::device::check
