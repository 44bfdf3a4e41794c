// What the kernels compute, written once: nvcc makes them kernels, and the host's compiler the emulation of these, with
// the same sums in the same order. A body does one item. One that sums is given its team, who share the item:
// `lanes()` of them, `each` and `reduce`, see kernels.cu and host_team.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernel_args.hpp"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define ALLOCLAB_BODY __device__ inline
#else
#include "alloclab/tensor/kernels.hpp"
#define ALLOCLAB_BODY inline
#endif

namespace alloclab::device::kernels {

// --- elements

ALLOCLAB_BODY float widened(std::uint16_t half) {
#ifdef __CUDACC__
    return __half2float(__ushort_as_half(half));
#else
    return tensor::to_float(half);
#endif
}

ALLOCLAB_BODY std::uint16_t narrowed(float value) {
#ifdef __CUDACC__
    return __half_as_ushort(__float2half_rn(value));
#else
    return tensor::to_half(value);
#endif
}

ALLOCLAB_BODY float no_number() {
#ifdef __CUDACC__
    return __int_as_float(0x7fc00000);
#else
    return NAN;
#endif
}

template <class T>
ALLOCLAB_BODY T& at(const operand& o, std::size_t offset) {
    return *reinterpret_cast<T*>(o.data + offset);
}
/// Not the stride, which says nothing where there is one element.
ALLOCLAB_BODY std::size_t element_bytes(const operand& o) { return o.type == tensor::type::f16 ? 2 : 4; }
ALLOCLAB_BODY float load(const operand& o, std::size_t offset) {
    return o.type == tensor::type::f16 ? widened(at<std::uint16_t>(o, offset)) : at<float>(o, offset);
}

/// Copies one element, and converts it where the types differ.
ALLOCLAB_BODY void move_element(const operand& from, std::size_t source, const operand& to, std::size_t target) {
    if (from.type == to.type) {
        if (from.type == tensor::type::f16) at<std::uint16_t>(to, target) = at<std::uint16_t>(from, source);
        else at<std::uint32_t>(to, target) = at<std::uint32_t>(from, source);
    } else if (to.type == tensor::type::f16) {
        at<std::uint16_t>(to, target) = narrowed(at<float>(from, source));
    } else {
        at<float>(to, target) = widened(at<std::uint16_t>(from, source));
    }
}

/// Index is 32 bits wide where that does: 64-bit divisions take most of the time of a kernel that has them.
template <class Index>
struct place {
    Index at[4];
};

template <class Index>
ALLOCLAB_BODY place<Index> place_of(Index i, const std::int64_t (&ne)[4]) {
    const Index n0 = static_cast<Index>(ne[0]), n1 = static_cast<Index>(ne[1]), n2 = static_cast<Index>(ne[2]);
    const Index row = i / n0, matrix = row / n1, cube = matrix / n2;
    return {{i - row * n0, row - matrix * n1, matrix - cube * n2, cube}};
}

template <class Index>
ALLOCLAB_BODY std::size_t offset_of(const operand& o, const place<Index>& p) {
    return p.at[0] * o.nb[0] + p.at[1] * o.nb[1] + p.at[2] * o.nb[2] + p.at[3] * o.nb[3];
}

/// Of element i in order.
template <class Index>
ALLOCLAB_BODY std::size_t offset_of(const operand& o, Index i) {
    return o.contiguous ? i * element_bytes(o) : offset_of(o, place_of(i, o.ne));
}

/// Does items first, first + stride, ...: each as `Op::item(args, index)`.
template <class Op>
ALLOCLAB_BODY void each_item(const kernel_args& args, std::uint64_t first, std::uint64_t stride) {
    const auto items = static_cast<std::uint64_t>(args.items);
    if (items < std::uint64_t{1} << 31 && stride < std::uint64_t{1} << 31) {
        for (auto i = static_cast<std::uint32_t>(first); i < items; i += static_cast<std::uint32_t>(stride))
            Op::item(args, i);
    } else {
        for (std::uint64_t i = first; i < items; i += stride) Op::item(args, i);
    }
}

// --- one element, or a few, by one thread

struct move {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        move_element(args.a, offset_of(args.a, i), args.out, offset_of(args.out, i));
    }
};

/// integers[0] is the dimension.
struct concat {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        place<Index> p = place_of(i, args.out.ne);
        bool second = false;
        for (int d = 0; d < 4; ++d) {  // not by a variable index, which would put the place into memory
            const Index length = static_cast<Index>(args.a.ne[d]);
            if (d != args.integers[0] || p.at[d] < length) continue;
            second = true;
            p.at[d] -= length;
        }
        const operand& from = second ? args.b : args.a;
        move_element(from, offset_of(from, p), args.out, i * element_bytes(args.out));
    }
};

struct get_rows {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        const Index row = i / static_cast<Index>(args.out.ne[0]);
        const Index column = i - row * static_cast<Index>(args.out.ne[0]);
        const std::int32_t id = at<std::int32_t>(args.b, row * args.b.nb[0]);
        const bool is_row = id >= 0 && id < args.a.ne[1];
        at<float>(args.out, i * sizeof(float)) =
            is_row ? load(args.a, static_cast<std::size_t>(id) * args.a.nb[1] + column * args.a.nb[0]) : no_number();
    }
};

/// `b` repeated: the index along a dimension starts again where `b` ends.
template <class Function>
struct map_repeating {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        place<Index> p = place_of(i, args.out.ne);
        const std::size_t source = args.a.contiguous ? i * sizeof(float) : offset_of(args.a, p);
        for (int d = 0; d < 4; ++d)
            if (args.b.ne[d] != args.out.ne[d]) p.at[d] %= static_cast<Index>(args.b.ne[d]);
        at<float>(args.out, i * sizeof(float)) =
            Function::of(at<float>(args.a, source), at<float>(args.b, offset_of(args.b, p)));
    }
};

template <class Function>
struct map {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        at<float>(args.out, i * sizeof(float)) = Function::of(at<float>(args.a, offset_of(args.a, i)), args.reals[0]);
    }
};

struct plus {
    static ALLOCLAB_BODY float of(float x, float y) { return x + y; }
};
struct times {
    static ALLOCLAB_BODY float of(float x, float y) { return x * y; }
};
struct sigmoid_linear {
    static ALLOCLAB_BODY float of(float x, float) { return x / (1.0F + expf(-x)); }
};
/// x/2 * (1 + tanh u) is x / (1 + exp(-2u)).
struct gaussian_linear {
    static ALLOCLAB_BODY float of(float x, float) {
        constexpr float twice_sqrt_2_over_pi = 1.5957691216057308F;
        return x / (1.0F + expf(-twice_sqrt_2_over_pi * (x + 0.044715F * x * x * x)));
    }
};

/// A pair of a few heads, or an element behind the pairs of these. integers[0] dimensions turn, reals[1] is the base.
/// The angle of a late position needs double until whole turns are taken off.
struct rope {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        const std::int64_t pairs = args.integers[0] / 2;
        const auto width = static_cast<Index>(args.out.ne[0] - pairs);
        const auto groups = static_cast<Index>((args.out.ne[1] + rope_heads - 1) / rope_heads);
        const Index rest = i / width, token = rest / groups;
        const auto column = static_cast<std::int64_t>(i - rest * width);
        const std::int64_t first = static_cast<std::int64_t>(rest - token * groups) * rope_heads;
        const std::int64_t last = first + rope_heads < args.out.ne[1] ? first + rope_heads : args.out.ne[1];
        if (column < pairs) {
            constexpr double turn = 6.283185307179586;
            const double frequency =
                ::pow(static_cast<double>(args.reals[1]), -static_cast<double>(column) / static_cast<double>(pairs));
            const double turns = at<std::int32_t>(args.b, token * args.b.nb[0]) * frequency / turn;
            const auto angle = static_cast<float>((turns - ::rint(turns)) * turn);
            const float c = cosf(angle), s = sinf(angle);
            for (std::int64_t head = first; head < last; ++head) {
                const float x = source(args, column, head, token), y = source(args, column + pairs, head, token);
                target(args, column, head, token) = x * c - y * s;
                target(args, column + pairs, head, token) = x * s + y * c;
            }
        } else {
            for (std::int64_t head = first; head < last; ++head)
                target(args, column + pairs, head, token) = source(args, column + pairs, head, token);
        }
    }

private:
    template <class Index>
    static ALLOCLAB_BODY float source(const kernel_args& args, std::int64_t i, std::int64_t head, Index token) {
        return at<float>(args.a, static_cast<std::size_t>(i) * args.a.nb[0] +
                                     static_cast<std::size_t>(head) * args.a.nb[1] + token * args.a.nb[2]);
    }
    template <class Index>
    static ALLOCLAB_BODY float& target(const kernel_args& args, std::int64_t i, std::int64_t head, Index token) {
        return at<float>(args.out, static_cast<std::size_t>(i) * sizeof(float) +
                                       static_cast<std::size_t>(head) * args.out.nb[1] + token * args.out.nb[2]);
    }
};

/// integers[0] is the stride, integers[1] the padding. Neighbouring threads read neighbouring samples and one tap.
struct conv1d {
    template <class Index>
    static ALLOCLAB_BODY void item(const kernel_args& args, Index i) {
        const Index o = i / static_cast<Index>(args.out.ne[0]);
        const Index j = i - o * static_cast<Index>(args.out.ne[0]);
        const std::int64_t from = static_cast<std::int64_t>(j) * args.integers[0] - args.integers[1];
        const std::int64_t width = args.a.ne[0], length = args.b.ne[0];
        const std::int64_t first = from < 0 ? -from : 0;
        const std::int64_t last = from + width > length ? length - from : width;
        float sum = 0;
        for (std::int64_t channel = 0; channel < args.a.ne[1]; ++channel) {
            const std::size_t taps = o * args.a.nb[2] + static_cast<std::size_t>(channel) * args.a.nb[1];
            const std::size_t samples = static_cast<std::size_t>(channel) * args.b.nb[1];
            for (std::int64_t tap = first; tap < last; ++tap)
                sum += load(args.a, taps + static_cast<std::size_t>(tap) * args.a.nb[0]) *
                       at<float>(args.b, samples + static_cast<std::size_t>(from + tap) * args.b.nb[0]);
        }
        at<float>(args.out, i * sizeof(float)) = sum;
    }
};

// --- one item by a team

struct summed {
    template <class T>
    ALLOCLAB_BODY T operator()(T x, T y) const {
        return x + y;
    }
};
/// Never a NaN, as long as it does not start with one.
struct greater {
    ALLOCLAB_BODY float operator()(float x, float y) const { return x < y ? y : x; }
};

/// A row whose elements lie `step` bytes apart.
struct row_of {
    std::byte* first;
    std::size_t step;
    ALLOCLAB_BODY float& operator[](std::int64_t i) const {
        return *reinterpret_cast<float*>(first + static_cast<std::size_t>(i) * step);
    }
};
ALLOCLAB_BODY row_of row_at(const operand& o, std::int64_t row) {
    const auto i = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(o.ne[0]);
    return {o.data + offset_of(o, i), o.nb[0]};
}

template <class Team, class Term>
ALLOCLAB_BODY double sum_of(const Team& team, std::int64_t n, Term term) {
    double total[1] = {0};
    team.reduce(n, total, summed{}, [&](std::int64_t i, double* own) { *own += term(i); });
    return total[0];
}

struct rms_norm {
    template <class Team>
    static ALLOCLAB_BODY void item(const kernel_args& args, const Team& team, std::int64_t row) {
        const row_of in = row_at(args.a, row), out = row_at(args.out, row);
        const std::int64_t n = args.out.ne[0];
        const double squares = sum_of(team, n, [&](std::int64_t i) {
            const double x = in[i];
            return x * x;
        });
        const auto factor =
            static_cast<float>(1.0 / ::sqrt(squares / static_cast<double>(n) + static_cast<double>(args.reals[0])));
        team.each(n, [&](std::int64_t i) { out[i] = factor * in[i]; });
    }
};

struct layer_norm {
    template <class Team>
    static ALLOCLAB_BODY void item(const kernel_args& args, const Team& team, std::int64_t row) {
        const row_of in = row_at(args.a, row), out = row_at(args.out, row);
        const std::int64_t n = args.out.ne[0];
        const double mean =
            sum_of(team, n, [&](std::int64_t i) { return static_cast<double>(in[i]); }) / static_cast<double>(n);
        const double squares = sum_of(team, n, [&](std::int64_t i) {
            const double centred = static_cast<double>(in[i]) - mean;
            return centred * centred;
        });
        const double factor = 1.0 / ::sqrt(squares / static_cast<double>(n) + static_cast<double>(args.reals[0]));
        team.each(n,
                  [&](std::int64_t i) { out[i] = static_cast<float>((static_cast<double>(in[i]) - mean) * factor); });
    }
};

/// With 0 for the maximum of a wholly masked row all its exponentials are 0, and so is the row.
struct softmax {
    template <class Team>
    static ALLOCLAB_BODY void item(const kernel_args& args, const Team& team, std::int64_t row) {
        constexpr float lowest = -HUGE_VALF;
        const row_of in = row_at(args.a, row), out = row_at(args.out, row);
        const std::int64_t n = args.out.ne[0];
        const bool masked = args.b.data != nullptr;
        const row_of mask{args.b.data + (masked ? static_cast<std::size_t>(row % args.out.ne[1]) * args.b.nb[1] : 0),
                          args.b.nb[0]};
        const float factor = args.reals[0];
        const auto value = [&](std::int64_t i) { return factor * in[i] + (masked ? mask[i] : 0.0F); };

        float greatest[1] = {lowest};
        team.reduce(n, greatest, greater{}, [&](std::int64_t i, float* own) { *own = greater{}(*own, value(i)); });
        const float base = greatest[0] == lowest ? 0.0F : greatest[0];
        const double sum = sum_of(team, n, [&](std::int64_t i) {
            const float e = expf(value(i) - base);
            out[i] = e;
            return static_cast<double>(e);
        });
        const float share = sum == 0.0 ? 0.0F : static_cast<float>(1.0 / sum);
        team.each(n, [&](std::int64_t i) { out[i] *= share; });  // what this lane wrote
    }
};

/// One row of the weights times a few columns. Lanes read 8 elements at a time, 16 bytes each where rows lie so.
struct matmul {
    template <class Team>
    static ALLOCLAB_BODY void item(const kernel_args& args, const Team& team, std::int64_t item) {
        const operand& w = args.a;
        const operand& x = args.b;
        const std::int64_t n = args.out.ne[0], m = args.out.ne[1], k = w.ne[0];
        // The rows of a group of columns come one after the other, so that these columns stay in the cache.
        const std::int64_t groups = (m + matmul_columns - 1) / matmul_columns;
        const std::int64_t row = item % n, group = item / n % groups, matrix = item / n / groups;
        const std::int64_t i2 = matrix % args.out.ne[2], i3 = matrix / args.out.ne[2];
        const std::int64_t first = group * matmul_columns;
        const int columns = static_cast<int>(m - first < matmul_columns ? m - first : matmul_columns);
        const std::byte* const weights = w.data + static_cast<std::size_t>(row) * w.nb[1] +
                                         static_cast<std::size_t>(i2 / (x.ne[2] / w.ne[2])) * w.nb[2] +
                                         static_cast<std::size_t>(i3 / (x.ne[3] / w.ne[3])) * w.nb[3];
        const std::byte* const column = x.data + static_cast<std::size_t>(first) * x.nb[1] +
                                        static_cast<std::size_t>(i2) * x.nb[2] + static_cast<std::size_t>(i3) * x.nb[3];
        float products[matmul_columns] = {};
        if (w.type == tensor::type::f16) multiply<std::uint16_t>(team, weights, column, x.nb[1], columns, k, products);
        else multiply<float>(team, weights, column, x.nb[1], columns, k, products);
        const std::int64_t to = (matrix * m + first) * n + row;
        // Over all of them, so that it unrolls and the products stay in registers.
        for (int c = 0; c < matmul_columns; ++c)
            if (c < columns && team.is_first())
                at<float>(args.out, static_cast<std::size_t>(to + c * n) * sizeof(float)) = products[c];
    }

private:
    static constexpr std::int64_t wide = 8;

    template <class T>
    struct alignas(16) quad {  // 16 bytes, read at once
        T at[16 / sizeof(T)];
    };

    static ALLOCLAB_BODY bool is_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }
    static ALLOCLAB_BODY float as_float(float x) { return x; }
    static ALLOCLAB_BODY float as_float(std::uint16_t x) { return widened(x); }

    template <class T>
    static ALLOCLAB_BODY void read(const std::byte* row, std::int64_t start, std::int64_t n, float (&to)[wide]) {
        const T* const from = reinterpret_cast<const T*>(row) + start;
        if (n == wide && is_aligned(from)) {
            constexpr int each = 16 / sizeof(T);
            for (int part = 0; part < wide / each; ++part) {
                const quad<T> q = reinterpret_cast<const quad<T>*>(from)[part];
                for (int i = 0; i < each; ++i) to[part * each + i] = as_float(q.at[i]);
            }
        } else {
            for (int i = 0; i < wide; ++i) to[i] = i < n ? as_float(from[i]) : 0.0F;
        }
    }

    template <class W, class Team>
    static ALLOCLAB_BODY void multiply(const Team& team, const std::byte* weights, const std::byte* column,
                                       std::size_t column_bytes, int columns, std::int64_t k,
                                       float (&products)[matmul_columns]) {
        team.reduce((k + wide - 1) / wide, products, summed{}, [&](std::int64_t chunk, float* own) {
            const std::int64_t start = chunk * wide, n = k - start < wide ? k - start : wide;
            float left[wide], right[wide];
            read<W>(weights, start, n, left);
            for (int c = 0; c < matmul_columns; ++c) {
                if (c >= columns) continue;
                read<float>(column + static_cast<std::size_t>(c) * column_bytes, start, n, right);
                for (int i = 0; i < wide; ++i) own[c] += left[i] * right[i];
            }
        });
    }
};

/// Does items first, first + stride, ... with one team.
template <class Op, class Team>
ALLOCLAB_BODY void each_item(const kernel_args& args, const Team& team, std::int64_t first, std::int64_t stride) {
    for (std::int64_t i = first; i < args.items; i += stride) Op::item(args, team, i);
}

}  // namespace alloclab::device::kernels
