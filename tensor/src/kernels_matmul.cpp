// Products of rows: matmul, and conv1d, which multiplies the kernel's rows by patches of the signal. Both go panel by
// panel: a few rows of each side, made f32 and adjacent where they are not, a part of the depth at a time.
#include "half.hpp"
#include "kernels.hpp"

namespace alloclab::tensor::kernels {

namespace {

constexpr std::int64_t lanes = 8;          // chains of a dot product: lane l adds elements l, l + 8, l + 16, ...
constexpr std::int64_t panel_rows = 16;    // per side; each row made f32 serves so many of the other side
constexpr std::int64_t panel_depth = 128;  // two panels and the sums of their products fit into 24 KiB

using chain = float __attribute__((vector_size(16)));
struct sums {
    chain low, high;
};

chain load(const float* four) noexcept {
    chain loaded;
    std::memcpy(&loaded, four, sizeof loaded);
    return loaded;
}

/// Rows of one side, `depth` elements from `start` on, 0 behind them up to a multiple of the lanes.
struct panel {
    std::array<const float*, panel_rows> row;
    float made[panel_rows][panel_depth];

    /// Room for row `r`, the padding behind it already 0.
    float* place(std::int64_t r, std::int64_t depth) noexcept {
        float* to = made[r];
        for (std::int64_t i = depth; i % lanes != 0; ++i) to[i] = 0;
        row[static_cast<std::size_t>(r)] = to;
        return to;
    }
    void take(std::int64_t r, const std::byte* from, type from_type, std::int64_t start, std::int64_t depth) noexcept {
        if (from_type == type::f16) {
            widen(reinterpret_cast<const std::uint16_t*>(from) + start, depth, place(r, depth));
            return;
        }
        const auto* floats = reinterpret_cast<const float*>(from) + start;
        if (depth % lanes == 0) row[static_cast<std::size_t>(r)] = floats;
        else std::copy_n(floats, depth, place(r, depth));
    }
};

/// Adds the products of R rows by C rows. The order within each sum is the same for all R and C.
template <std::size_t R, std::size_t C>
void multiply_tile(const float* const* a, const float* const* b, std::int64_t depth, sums* total) noexcept {
    sums s[R][C];
    for (std::size_t r = 0; r < R; ++r)
        for (std::size_t c = 0; c < C; ++c) s[r][c] = total[r * panel_rows + c];
    for (std::int64_t i = 0; i < depth; i += lanes) {
        for (std::size_t half = 0; half < 2; ++half) {
            chain x[R], y[C];
            for (std::size_t r = 0; r < R; ++r) x[r] = load(a[r] + i + 4 * half);
            for (std::size_t c = 0; c < C; ++c) y[c] = load(b[c] + i + 4 * half);
            for (std::size_t r = 0; r < R; ++r)
                for (std::size_t c = 0; c < C; ++c) (half == 0 ? s[r][c].low : s[r][c].high) += x[r] * y[c];
        }
    }
    for (std::size_t r = 0; r < R; ++r)
        for (std::size_t c = 0; c < C; ++c) total[r * panel_rows + c] = s[r][c];
}

constexpr decltype(&multiply_tile<1, 1>) tiles[2][2] = {{multiply_tile<1, 1>, multiply_tile<1, 2>},
                                                        {multiply_tile<2, 1>, multiply_tile<2, 2>}};

float joined(const sums& s) noexcept {
    const chain four = s.low + s.high;
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/// take_a(panel, r, row, start, depth) provides a row of the left side, take_b one of the right; store(i, j, value)
/// receives the product of row i of the left and row j of the right, over `k` elements.
template <class TakeA, class TakeB, class Store>
void multiply(std::int64_t n, std::int64_t m, std::int64_t k, TakeA take_a, TakeB take_b, Store store) noexcept {
    panel a, b;
    std::array<sums, panel_rows * panel_rows> total;
    const auto at = [](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(r * panel_rows + c); };
    for (std::int64_t i0 = 0; i0 < n; i0 += panel_rows) {
        const std::int64_t rows = std::min(panel_rows, n - i0);
        for (std::int64_t j0 = 0; j0 < m; j0 += panel_rows) {
            const std::int64_t columns = std::min(panel_rows, m - j0);
            for (std::int64_t r = 0; r < rows; ++r) std::fill_n(&total[at(r, 0)], columns, sums{});
            for (std::int64_t start = 0; start < k; start += panel_depth) {
                const std::int64_t depth = std::min(panel_depth, k - start);
                for (std::int64_t r = 0; r < rows; ++r) take_a(a, r, i0 + r, start, depth);
                for (std::int64_t c = 0; c < columns; ++c) take_b(b, c, j0 + c, start, depth);
                for (std::int64_t r = 0; r < rows; r += 2)
                    for (std::int64_t c = 0; c < columns; c += 2)
                        tiles[r + 1 < rows][c + 1 < columns](&a.row[static_cast<std::size_t>(r)],
                                                             &b.row[static_cast<std::size_t>(c)], depth,
                                                             &total[at(r, c)]);
            }
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < columns; ++c) store(i0 + r, j0 + c, joined(total[at(r, c)]));
        }
    }
}

}  // namespace

void matmul(const tensor& t) noexcept {
    const tensor& w = *t.sources[0];
    const tensor& x = *t.sources[1];
    const std::int64_t share2 = x.ne[2] / w.ne[2], share3 = x.ne[3] / w.ne[3];
    for (std::int64_t i3 = 0; i3 < t.ne[3]; ++i3)
        for (std::int64_t i2 = 0; i2 < t.ne[2]; ++i2)
            multiply(
                t.ne[0], t.ne[1], w.ne[0],
                [&](panel& p, std::int64_t r, std::int64_t row, std::int64_t start, std::int64_t depth) {
                    p.take(r, row_at(w, row, i2 / share2, i3 / share3), w.type, start, depth);
                },
                [&](panel& p, std::int64_t r, std::int64_t row, std::int64_t start, std::int64_t depth) {
                    p.take(r, row_at(x, row, i2, i3), x.type, start, depth);
                },
                [&](std::int64_t i, std::int64_t j, float value) {
                    reinterpret_cast<float*>(row_at(t, j, i2, i3))[i] = value;
                });
}

// Row o of the kernel, [width, in] adjacent, times the patch of the signal under position j of the kernel's window.
void conv1d(const tensor& t) noexcept {
    const tensor& kernel = *t.sources[0];
    const tensor& signal = *t.sources[1];
    const std::int64_t width = kernel.ne[0], stride = t.integer(0), padding = t.integer(1);
    multiply(
        t.ne[1], t.ne[0], width * kernel.ne[1],
        [&](panel& p, std::int64_t r, std::int64_t o, std::int64_t start, std::int64_t depth) {
            p.take(r, row_at(kernel, 0, o, 0), kernel.type, start, depth);
        },
        [&](panel& p, std::int64_t r, std::int64_t j, std::int64_t start, std::int64_t depth) {
            const std::int64_t from = j * stride - padding;
            std::int64_t tap = start % width, channel = start / width;
            float* to = p.place(r, depth);
            for (std::int64_t i = 0; i < depth; ++i) {
                const std::int64_t at = from + tap;
                const strided<float> samples{row_at(signal, channel, 0, 0), signal.nb[0]};
                to[i] = at >= 0 && at < signal.ne[0] ? samples[at] : 0.0F;
                if (++tap == width) tap = 0, ++channel;
            }
        },
        [&](std::int64_t o, std::int64_t j, float value) { reinterpret_cast<float*>(row_at(t, o, 0, 0))[j] = value; });
}

}  // namespace alloclab::tensor::kernels
