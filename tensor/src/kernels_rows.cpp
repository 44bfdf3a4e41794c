// Kernels that work along rows: element by element, norms, softmax, rope.
#include <cmath>
#include <limits>

#include "kernels.hpp"

namespace alloclab::tensor::kernels {

namespace {

float* out_row(const tensor& t, std::int64_t i1, std::int64_t i2, std::int64_t i3) noexcept {
    return reinterpret_cast<float*>(row_at(t, i1, i2, i3));
}

template <class Function>
void map(const tensor& t, Function f) noexcept {
    const tensor& a = *t.sources[0];
    each_row(t, [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        float* out = out_row(t, i1, i2, i3);
        with_row<float>(row_at(a, i1, i2, i3), a.nb[0], [&](auto in) {
            for (std::int64_t i = 0; i < t.ne[0]; ++i) out[i] = f(in[i]);
        });
    });
}

template <class Function>
void map_repeating(const tensor& t, Function f) noexcept {
    const tensor& a = *t.sources[0];
    const tensor& b = *t.sources[1];
    each_row(t, [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        float* out = out_row(t, i1, i2, i3);
        const std::byte* repeated = row_at(b, i1 % b.ne[1], i2 % b.ne[2], i3 % b.ne[3]);
        with_row<float>(row_at(a, i1, i2, i3), a.nb[0], [&](auto x) {
            if (b.ne[0] == 1) {
                const float y = *reinterpret_cast<const float*>(repeated);
                for (std::int64_t i = 0; i < t.ne[0]; ++i) out[i] = f(x[i], y);
                return;
            }
            with_row<float>(repeated, b.nb[0], [&](auto y) {
                for (std::int64_t start = 0; start < t.ne[0]; start += b.ne[0])
                    for (std::int64_t i = 0; i < b.ne[0]; ++i) out[start + i] = f(x[start + i], y[i]);
            });
        });
    });
}

/// The sum of term(0) ... term(n - 1) in double, by four chains that are joined pairwise.
template <class Term>
double sum_of(std::int64_t n, Term term) noexcept {
    std::array<double, 4> chains{};
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (std::int64_t l = 0; l < 4; ++l) chains[static_cast<std::size_t>(l)] += static_cast<double>(term(i + l));
    for (; i < n; ++i) chains[static_cast<std::size_t>(i % 4)] += static_cast<double>(term(i));
    return (chains[0] + chains[2]) + (chains[1] + chains[3]);
}

}  // namespace

void add(const tensor& t) noexcept {
    map_repeating(t, [](float x, float y) { return x + y; });
}

void mul(const tensor& t) noexcept {
    map_repeating(t, [](float x, float y) { return x * y; });
}

void scale(const tensor& t) noexcept {
    map(t, [factor = t.real(0)](float x) { return factor * x; });
}

void silu(const tensor& t) noexcept {
    map(t, [](float x) { return x / (1.0F + std::exp(-x)); });
}

// x/2 * (1 + tanh u) is x / (1 + exp(-2u)), which costs less and keeps its precision where tanh nears -1.
void gelu(const tensor& t) noexcept {
    constexpr float twice_sqrt_2_over_pi = 1.5957691216057308F;
    map(t, [](float x) { return x / (1.0F + std::exp(-twice_sqrt_2_over_pi * (x + 0.044715F * x * x * x))); });
}

void rms_norm(const tensor& t) noexcept {
    const tensor& a = *t.sources[0];
    const auto n = static_cast<double>(t.ne[0]);
    each_row(t, [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        float* out = out_row(t, i1, i2, i3);
        with_row<float>(row_at(a, i1, i2, i3), a.nb[0], [&](auto in) {
            const double squares = sum_of(t.ne[0], [&](std::int64_t i) {
                const double x = static_cast<double>(in[i]);
                return x * x;
            });
            const auto factor = static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(t.real(0))));
            for (std::int64_t i = 0; i < t.ne[0]; ++i) out[i] = factor * in[i];
        });
    });
}

void layer_norm(const tensor& t) noexcept {
    const tensor& a = *t.sources[0];
    const auto n = static_cast<double>(t.ne[0]);
    each_row(t, [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        float* out = out_row(t, i1, i2, i3);
        with_row<float>(row_at(a, i1, i2, i3), a.nb[0], [&](auto in) {
            const double mean = sum_of(t.ne[0], [&](std::int64_t i) { return in[i]; }) / n;
            const double squares = sum_of(t.ne[0], [&](std::int64_t i) {
                const double centred = static_cast<double>(in[i]) - mean;
                return centred * centred;
            });
            const double factor = 1.0 / std::sqrt(squares / n + static_cast<double>(t.real(0)));
            for (std::int64_t i = 0; i < t.ne[0]; ++i)
                out[i] = static_cast<float>((static_cast<double>(in[i]) - mean) * factor);
        });
    });
}

// A wholly masked row has the maximum -inf; with 0 in its place all exponentials are 0, and 0 is what the row becomes.
// A NaN reaches the sum and so the whole row.
void softmax(const tensor& t) noexcept {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    const tensor& a = *t.sources[0];
    const tensor* mask = t.sources[1];
    const float factor = t.real(0);
    each_row(t, [&](std::int64_t i1, std::int64_t i2, std::int64_t i3) {
        float* out = out_row(t, i1, i2, i3);
        with_row<float>(row_at(a, i1, i2, i3), a.nb[0], [&](auto in) {
            for (std::int64_t i = 0; i < t.ne[0]; ++i) out[i] = factor * in[i];
        });
        if (mask != nullptr)
            with_row<float>(row_at(*mask, i1, 0, 0), mask->nb[0], [&](auto in) {
                for (std::int64_t i = 0; i < t.ne[0]; ++i) out[i] += in[i];
            });
        float greatest = lowest;
        for (std::int64_t i = 0; i < t.ne[0]; ++i) greatest = std::max(greatest, out[i]);
        if (greatest == lowest) greatest = 0;
        const double sum = sum_of(t.ne[0], [&](std::int64_t i) { return out[i] = std::exp(out[i] - greatest); });
        const float share = sum == 0.0 ? 0.0F : static_cast<float>(1.0 / sum);
        for (std::int64_t i = 0; i < t.ne[0]; ++i) out[i] *= share;
    });
}

// Angles depend on token and pair only: they are computed once per token for a block of pairs and used for all heads.
void rope(const tensor& t) noexcept {
    constexpr std::int64_t block = 64;
    const tensor& a = *t.sources[0];
    const tensor& at = *t.sources[1];
    const strided<std::int32_t> position{static_cast<std::byte*>(at.data), at.nb[0]};
    const std::int64_t pairs = t.integer(0) / 2;
    std::array<double, block> frequency;
    std::array<float, block> cosine, sine;
    for (std::int64_t first = 0; first < pairs; first += block) {
        const std::int64_t n = std::min(block, pairs - first);
        for (std::int64_t i = 0; i < n; ++i)
            frequency[static_cast<std::size_t>(i)] =
                std::pow(static_cast<double>(t.real(1)), -static_cast<double>(first + i) / static_cast<double>(pairs));
        for (std::int64_t token = 0; token < t.ne[2]; ++token) {
            for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
                const double angle = position[token] * frequency[i];
                cosine[i] = static_cast<float>(std::cos(angle));
                sine[i] = static_cast<float>(std::sin(angle));
            }
            for (std::int64_t head = 0; head < t.ne[1]; ++head) {
                float* out = out_row(t, head, token, 0);
                with_row<float>(row_at(a, head, token, 0), a.nb[0], [&](auto in) {
                    for (std::int64_t i = 0; i < n; ++i) {
                        const float c = cosine[static_cast<std::size_t>(i)], s = sine[static_cast<std::size_t>(i)];
                        const float x = in[first + i], y = in[first + i + pairs];
                        out[first + i] = x * c - y * s;
                        out[first + i + pairs] = x * s + y * c;
                    }
                });
            }
        }
    }
    each_row(t, [&](std::int64_t head, std::int64_t token, std::int64_t) {
        float* out = out_row(t, head, token, 0);
        with_row<float>(row_at(a, head, token, 0), a.nb[0], [&](auto in) {
            for (std::int64_t i = 2 * pairs; i < t.ne[0]; ++i) out[i] = in[i];
        });
    });
}

}  // namespace alloclab::tensor::kernels
