// tensor: the node of a graph. Two cache lines of plain data, no device-specific member: a backend's private record
// hangs on the opaque `extra` (the reason why llama.cpp#2146 was refused). Names live apart, in the context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "alloclab/bytes.hpp"

namespace alloclab::tensor {

enum class type : std::uint8_t { f32, f16, i32 };

[[nodiscard]] constexpr std::size_t bytes_of(type t) noexcept { return t == type::f16 ? 2 : 4; }
[[nodiscard]] std::string_view name_of(type t) noexcept;

/// What computes a tensor. `none` is a leaf: a weight, a cache or an input.
enum class op : std::uint8_t {
    none,
    view,        ///< part of sources[0]: reshape, slice, permute, transpose
    get_rows,    ///< rows of [0] picked by the i32 tensor [1]
    add,         ///< [0] + [1], [1] repeated where its dimension divides
    mul,         ///< [0] * [1], likewise
    scale,       ///< [0] * real(0)
    matmul,      ///< [0]^T x [1]: f32 or f16 weights [k,n] times f32 [k,m] gives [n,m]
    rms_norm,    ///< rows of [0] over their root mean square, eps = real(0)
    layer_norm,  ///< rows of [0] centred and over their deviation, eps = real(0)
    rope,        ///< rotary position, positions in the i32 tensor [1]; integer(0) dimensions, real(1) base
    softmax,     ///< rows of real(0) * [0] + mask [1], mask optional
    silu,
    gelu,
    conv1d,  ///< kernel [0] over signal [1]; integer(0) stride, integer(1) padding
    cont,    ///< [0] laid out contiguously
    copy,    ///< [0] converted and written into [1]; the result is a view of [1]
    concat,  ///< [0] then [1] along dimension integer(0)
};

inline constexpr std::size_t max_sources = 3;

inline constexpr std::array<std::string_view, 17> op_names{
    "none", "view",    "get_rows", "add",  "mul",    "scale", "matmul", "rms_norm", "layer_norm",
    "rope", "softmax", "silu",     "gelu", "conv1d", "cont",  "copy",   "concat"};
static_assert(op_names.size() == static_cast<std::size_t>(op::concat) + 1);
[[nodiscard]] constexpr std::string_view name_of(op o) noexcept { return op_names[static_cast<std::size_t>(o)]; }

/// Dimensions, innermost first; unused ones are 1. A dimension of 0 makes an empty tensor.
struct shape {
    std::array<std::int64_t, 4> ne{1, 1, 1, 1};

    constexpr shape(std::int64_t a, std::int64_t b = 1, std::int64_t c = 1, std::int64_t d = 1) noexcept
        : ne{a, b, c, d} {}
    constexpr bool operator==(const shape&) const = default;

    /// Elements, or `too_many` for a negative dimension or more than PTRDIFF_MAX of them (llama.cpp#27203).
    [[nodiscard]] constexpr std::size_t count() const noexcept { return times(1); }
    /// Bytes of a contiguous tensor, or `too_many` when it cannot exist.
    [[nodiscard]] constexpr std::size_t bytes(type t) const noexcept { return times(bytes_of(t)); }

private:
    // A zero counts as 1 until the end: the strides and partial products of an empty tensor must not overflow either.
    // No factor is below 1, so a negative dimension, which is one above PTRDIFF_MAX, is too large whatever follows.
    [[nodiscard]] constexpr std::size_t times(std::size_t n) const noexcept {
        bool empty = false;
        for (const std::int64_t d : ne) {
            empty |= d == 0;
            n = product(n, at_least_one(static_cast<std::size_t>(d)));
        }
        return !is_size(n) ? too_many : empty ? 0 : n;
    }
};

/// Strides in bytes of a contiguous tensor; false, and some of them unset, where it is empty or cannot exist.
[[nodiscard]] constexpr bool try_strides(type t, const shape& s, std::array<std::size_t, 4>& nb) noexcept {
    std::int64_t row = 0, matrix = 0, cube = 0, all = 0;
    if (!multiply(static_cast<std::int64_t>(bytes_of(t)), s.ne[0], row) || !multiply(row, s.ne[1], matrix) ||
        !multiply(matrix, s.ne[2], cube) || !multiply(cube, s.ne[3], all)) [[unlikely]]
        return false;
    nb[0] = bytes_of(t);
    nb[1] = static_cast<std::size_t>(row);
    nb[2] = static_cast<std::size_t>(matrix);
    nb[3] = static_cast<std::size_t>(cube);
    return true;
}

/// Shapes that do not fit together, or sizes that cannot exist; the text names the call, the shapes and the rule.
class shape_error : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

struct tensor {
    // line 1: what a kernel reads
    std::array<std::int64_t, 4> ne;  ///< dimensions, innermost first
    std::array<std::size_t, 4> nb;   ///< strides in bytes

    // line 2: what the graph reads
    std::array<tensor*, max_sources> sources;
    void* data;        ///< nullptr until someone gives it memory
    void* extra;       ///< a backend's; nobody else looks inside
    std::size_t mark;  ///< 1 + place in the graph that took it last, see graph.hpp; leaves never carry one
    union {
        std::array<float, 2> reals;
        std::array<std::int32_t, 2> integers;
        std::size_t offset;  ///< of a view, in bytes from sources[0]
    } params;
    enum op op;
    enum type type;
    bool input;    ///< a leaf that the planner gives memory, written before the run
    bool output;   ///< its memory is not reused within the eval
    bool offload;  ///< to be computed on the device and given an extra
    std::array<std::uint8_t, 3> padding;

    [[nodiscard]] float real(std::size_t i) const noexcept { return params.reals[i]; }
    [[nodiscard]] std::int32_t integer(std::size_t i) const noexcept { return params.integers[i]; }
    [[nodiscard]] std::int64_t rows() const noexcept { return ne[1] * ne[2] * ne[3]; }
    [[nodiscard]] std::size_t elements() const noexcept { return shape{ne[0], ne[1], ne[2], ne[3]}.count(); }
    /// Bytes from the first to past the last element, strides considered; 0 for an empty tensor.
    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t last = 0;
        for (std::size_t d = 0; d < 4; ++d) {
            if (ne[d] == 0) return 0;
            last += static_cast<std::size_t>(ne[d] - 1) * nb[d];
        }
        return last + bytes_of(type);
    }
    [[nodiscard]] bool contiguous() const noexcept;
    [[nodiscard]] bool same_shape(const tensor& other) const noexcept { return ne == other.ne; }
    /// True for what only looks at another tensor's memory: a view, or a copy into one.
    [[nodiscard]] bool is_alias() const noexcept { return op == op::view || op == op::copy; }
    /// The tensor whose memory this one looks at; itself unless an alias. O(length of the alias chain).
    [[nodiscard]] const tensor& root() const noexcept;
    [[nodiscard]] tensor& root() noexcept { return const_cast<tensor&>(std::as_const(*this).root()); }
};

}  // namespace alloclab::tensor
