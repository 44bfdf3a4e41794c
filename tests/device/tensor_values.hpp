// tensor_values: the memory of results, and how far two of them are apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "alloclab/tensor/kernels.hpp"
#include "alloclab/tensor/tensor.hpp"
#include "compare.hpp"

namespace alloclab::device {

/// How far an element may be from the CPU's x, relative to 1 + |x|.
inline constexpr double tolerance = 1e-4;

/// All the memory in which a result lies, with what is beside it, as it was when this was made.
class memory_of_result {
public:
    explicit memory_of_result(const tensor::tensor& t) : whole_(t.root()), before_(whole_.bytes()) {
        if (!before_.empty()) std::memcpy(before_.data(), whole_.data, before_.size());
    }
    void restore() const {
        if (!before_.empty()) std::memcpy(whole_.data, before_.data(), before_.size());
    }
    /// As it is now.
    [[nodiscard]] std::vector<float> values() const { return values(whole_.data); }
    /// Of a copy of the memory.
    [[nodiscard]] std::vector<float> values(const void* from) const {
        std::vector<float> all(whole_.elements());
        for (std::size_t i = 0; i < all.size(); ++i) switch (whole_.type) {
                case tensor::type::f32:
                    all[i] = static_cast<const float*>(from)[i];
                    break;
                case tensor::type::f16:
                    all[i] = tensor::to_float(static_cast<const std::uint16_t*>(from)[i]);
                    break;
                case tensor::type::i32:
                    all[i] = static_cast<float>(static_cast<const std::int32_t*>(from)[i]);
                    break;
            }
        return all;
    }

private:
    const tensor::tensor& whole_;  // a leaf or a result: contiguous
    std::vector<std::byte> before_;
};

using check::distance;
using check::same_bits;

}  // namespace alloclab::device
