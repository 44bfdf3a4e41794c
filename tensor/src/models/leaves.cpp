#include "alloclab/tensor/models/leaves.hpp"

#include <cmath>

#include "alloclab/tensor/kernels.hpp"

namespace alloclab::tensor {

namespace {

// splitmix64 (Steele, Lea, Flood 2014): the same numbers everywhere, which std's distributions do not promise.
class splitmix {
public:
    explicit splitmix(std::uint64_t seed) noexcept : state_(seed) {}
    /// In [-1, 1), a multiple of 2^-23.
    float next() noexcept {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
        return static_cast<float>(static_cast<std::int32_t>(z >> 40) - (1 << 23)) * 0x1p-23F;
    }

private:
    std::uint64_t state_;
};

}  // namespace

tensor* leaf_maker::make(type t, shape s, float mean, float spread) {
    tensor* made = context_.new_tensor(t, s);
    made_.push_back({made, mean, spread});
    return made;
}

// Uniform noise of half width w has variance w^2 / 3.
tensor* leaf_maker::matrix(shape s, std::int64_t sum_length) {
    return make(type::f16, s, 0.0F, std::sqrt(3.0F / static_cast<float>(sum_length)));
}
tensor* leaf_maker::gain(std::int64_t width) { return make(type::f32, width, 1.0F, 0.125F); }
tensor* leaf_maker::bias(shape s) { return make(type::f32, s, 0.0F, 0.125F); }
tensor* leaf_maker::cache(shape s) { return make(type::f16, s, 0.0F, 1.0F); }

void fill(std::span<const leaf> leaves, std::uint64_t seed) noexcept {
    for (std::size_t n = 0; n < leaves.size(); ++n) {
        const leaf& l = leaves[n];
        splitmix noise(seed ^ (n << 32));
        const std::size_t elements = l.of->elements();
        // The product is rounded before the sum, so that a fused multiply-add cannot change the bits.
        const auto value = [&] {
            const volatile float scaled = noise.next() * l.spread;
            return l.mean + scaled;
        };
        if (l.of->type == type::f16) {
            auto* out = static_cast<std::uint16_t*>(l.of->data);
            for (std::size_t i = 0; i < elements; ++i) out[i] = to_half(value());
        } else {
            auto* out = static_cast<float*>(l.of->data);
            for (std::size_t i = 0; i < elements; ++i) out[i] = value();
        }
    }
}

}  // namespace alloclab::tensor
