// leaves: the weights and caches of a model and the seeded noise that stands for their trained values.
// The noise is uniform and made of integers and single multiplications, so that every compiler gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "alloclab/tensor/context.hpp"

namespace alloclab::tensor {

/// A weight or cache, and the mean and half width of its noise.
struct leaf {
    tensor* of;
    float mean;
    float spread;
};

/// Makes leaves in one context and keeps the list of them. Each throws as context::new_tensor.
class leaf_maker {
public:
    leaf_maker(context& c, std::vector<leaf>& made) noexcept : context_(c), made_(made) {}

    /// f16; spread so that a row of `sum_length` products keeps the variance of what it multiplies.
    tensor* matrix(shape s, std::int64_t sum_length);
    /// f32 around 1, as norms have them.
    tensor* gain(std::int64_t width);
    /// f32 around 0.
    tensor* bias(shape s);
    /// f16 around 0, as large as keys and values are.
    tensor* cache(shape s);

private:
    tensor* make(type t, shape s, float mean, float spread);

    context& context_;
    std::vector<leaf>& made_;
};

/// Fills the data of f32 or f16 leaves, which must be host memory; the n-th depends on `seed` and n alone. O(elements).
void fill(std::span<const leaf> leaves, std::uint64_t seed) noexcept;

}  // namespace alloclab::tensor
