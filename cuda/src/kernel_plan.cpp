#include "kernel_plan.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "alloclab/bytes.hpp"

namespace alloclab::device::kernels {

using tensor::bytes_of;
using tensor::op;
using tensor::type;

namespace {

constexpr unsigned element_threads = 256;
constexpr unsigned warp_threads = 128;  // four rows: a block that is small ends early
constexpr std::int64_t most_blocks = 1 << 16;

constexpr auto kernel_names = std::to_array<std::string_view>(
    {"alloclab_move", "alloclab_concat", "alloclab_get_rows", "alloclab_add", "alloclab_mul", "alloclab_scale",
     "alloclab_silu", "alloclab_gelu", "alloclab_rope", "alloclab_conv1d", "alloclab_matmul", "alloclab_rms_norm_warp",
     "alloclab_rms_norm_block", "alloclab_layer_norm_warp", "alloclab_layer_norm_block", "alloclab_softmax_warp",
     "alloclab_softmax_block"});
static_assert(kernel_names.size() == static_cast<std::size_t>(kernel::softmax_block) + 1);

bool is_float(const tensor::tensor& t) noexcept { return t.type != type::i32; }
bool is_f32(const tensor::tensor& t) noexcept { return t.type == type::f32; }
bool is_vector(const tensor::tensor& t) noexcept { return t.ne[1] == 1 && t.ne[2] == 1 && t.ne[3] == 1; }
bool is_matrix(const tensor::tensor& t) noexcept { return t.ne[2] == 1 && t.ne[3] == 1; }
bool has_adjacent_elements(const tensor::tensor& t) noexcept { return t.nb[0] == bytes_of(t.type); }
bool divides(std::int64_t part, std::int64_t whole) noexcept { return part >= 1 && whole % part == 0; }

bool has_data(const tensor::tensor& t) noexcept {
    const std::size_t element = bytes_of(t.type);
    return t.elements() == 0 || (t.data != nullptr && reinterpret_cast<std::uintptr_t>(t.data) % element == 0 &&
                                 std::ranges::all_of(t.nb, [=](std::size_t n) { return n % element == 0; }));
}

std::string_view check_repeating(const tensor::tensor& t, const tensor::tensor& a, const tensor::tensor& b) noexcept {
    if (!is_f32(a) || !is_f32(b)) return "both sources must be f32";
    if (!t.same_shape(a)) return "the first source must have the shape of the result";
    for (std::size_t d = 0; d < 4; ++d)
        if (!divides(b.ne[d], t.ne[d])) return "the second source must divide the first";
    return {};
}

std::string_view check_like(const tensor::tensor& t, const tensor::tensor& a) noexcept {
    return is_f32(a) && t.same_shape(a) ? std::string_view{} : "the source must be f32, of the shape of the result";
}

std::string_view check_get_rows(const tensor::tensor& t, const tensor::tensor& table,
                                const tensor::tensor& ids) noexcept {
    if (!is_float(table) || ids.type != type::i32) return "the table must be f32 or f16, the ids i32";
    const bool fits = is_matrix(table) && is_vector(ids) && is_matrix(t) && t.ne[0] == table.ne[0];
    return fits && t.ne[1] == ids.ne[0] ? std::string_view{} : "table, ids and result must fit together";
}

std::string_view check_matmul(const tensor::tensor& t, const tensor::tensor& w, const tensor::tensor& x) noexcept {
    if (!is_float(w) || !is_f32(x)) return "the weights must be f32 or f16, the second source f32";
    if (!has_adjacent_elements(w) || !has_adjacent_elements(x)) return "the rows of both sources must be contiguous";
    const bool fits = w.ne[0] == x.ne[0] && t.ne[0] == w.ne[1] && t.ne[1] == x.ne[1] && t.ne[2] == x.ne[2] &&
                      t.ne[3] == x.ne[3] && divides(w.ne[2], x.ne[2]) && divides(w.ne[3], x.ne[3]);
    return fits ? std::string_view{} : "weights, second source and result must fit together";
}

std::string_view check_rope(const tensor::tensor& t, const tensor::tensor& a, const tensor::tensor& at) noexcept {
    if (!is_f32(a) || at.type != type::i32) return "the first source must be f32, the positions i32";
    if (!t.same_shape(a) || t.ne[3] != 1 || !is_vector(at) || at.ne[0] != t.ne[2])
        return "the first source must be [d, heads, tokens], the positions [tokens]";
    const std::int32_t turned = t.integer(0);
    return turned >= 0 && turned % 2 == 0 && turned <= t.ne[0] ? std::string_view{}
                                                               : "the dimensions must be even and at most a row's";
}

std::string_view check_softmax(const tensor::tensor& t, const tensor::tensor& a, const tensor::tensor* mask) noexcept {
    if (mask != nullptr &&
        (!is_f32(*mask) || !is_matrix(*mask) || mask->ne[0] != t.ne[0] || mask->ne[1] != t.ne[1] || !has_data(*mask)))
        return "the mask must be an f32 matrix with dimensions 0 and 1 of the source, and have data";
    return check_like(t, a);
}

std::string_view check_conv1d(const tensor::tensor& t, const tensor::tensor& kernel,
                              const tensor::tensor& signal) noexcept {
    if (!is_float(kernel) || !is_f32(signal)) return "the kernel must be f32 or f16, the signal f32";
    const std::int64_t stride = t.integer(0), padding = t.integer(1);
    if (!kernel.contiguous() || stride < 1 || padding < 0)
        return "the kernel must be contiguous, the stride at least 1 and the padding at least 0";
    const std::int64_t padded = signal.ne[0] + 2 * padding;
    const bool fits = kernel.ne[3] == 1 && is_matrix(signal) && is_matrix(t) && kernel.ne[1] == signal.ne[1] &&
                      kernel.ne[2] == t.ne[1] && kernel.ne[0] >= 1 && kernel.ne[0] <= padded &&
                      t.ne[0] == (padded - kernel.ne[0]) / stride + 1;
    return fits ? std::string_view{} : "kernel, signal and result must fit together";
}

std::string_view check_copy(const tensor::tensor& t, const tensor::tensor& a) noexcept {
    if (t.type != a.type && !(is_float(t) && is_float(a))) return "the types must be equal, or f32 and f16";
    return t.elements() == a.elements() ? std::string_view{} : "source and result must have as many elements";
}

std::string_view check_concat(const tensor::tensor& t, const tensor::tensor& a, const tensor::tensor& b) noexcept {
    if (a.type != t.type || b.type != t.type) return "the sources must have the type of the result";
    for (std::int32_t d = 0; d < 4; ++d) {
        const auto i = static_cast<std::size_t>(d);
        const bool fits = d == t.integer(0) ? a.ne[i] + b.ne[i] == t.ne[i] : a.ne[i] == t.ne[i] && b.ne[i] == t.ne[i];
        if (!fits) return "the sources must fit together, and make the result";
    }
    return t.integer(0) >= 0 && t.integer(0) < 4 ? std::string_view{} : "the dimension must be 0 to 3";
}

unsigned blocks_for(std::int64_t items, std::int64_t by_block) noexcept {
    return static_cast<unsigned>(std::clamp<std::int64_t>((items - 1) / by_block + 1, 1, most_blocks));
}

kernel kernel_of(op o, bool by_warp) noexcept {
    switch (o) {
        case op::get_rows:
            return kernel::get_rows;
        case op::add:
            return kernel::add;
        case op::mul:
            return kernel::mul;
        case op::scale:
            return kernel::scale;
        case op::matmul:
            return kernel::matmul;
        case op::rms_norm:
            return by_warp ? kernel::rms_norm_warp : kernel::rms_norm_block;
        case op::layer_norm:
            return by_warp ? kernel::layer_norm_warp : kernel::layer_norm_block;
        case op::rope:
            return kernel::rope;
        case op::softmax:
            return by_warp ? kernel::softmax_warp : kernel::softmax_block;
        case op::silu:
            return kernel::silu;
        case op::gelu:
            return kernel::gelu;
        case op::conv1d:
            return kernel::conv1d;
        case op::concat:
            return kernel::concat;
        case op::cont:
        case op::copy:
        case op::none:
        case op::view:
            break;
    }
    return kernel::move;
}

// The unit of which a kernel does one at a time, and how many of them a block does at once.
void size(const tensor::tensor& t, step& s) noexcept {
    const auto elements = static_cast<std::int64_t>(t.elements());
    std::int64_t by_block = s.threads = element_threads;
    s.args.items = elements;
    switch (s.kernel) {
        case kernel::matmul:
            s.args.items = t.ne[0] * ((t.ne[1] - 1) / matmul_columns + 1) * t.ne[2] * t.ne[3];
            by_block = (s.threads = warp_threads) / warp_lanes;
            break;
        case kernel::rms_norm_warp:
        case kernel::layer_norm_warp:
        case kernel::softmax_warp:
            s.args.items = t.rows();
            by_block = (s.threads = warp_threads) / warp_lanes;
            break;
        case kernel::rms_norm_block:
        case kernel::layer_norm_block:
        case kernel::softmax_block:
            s.args.items = t.rows();
            by_block = 1;
            s.threads = block_lanes;
            break;
        case kernel::rope:
            s.args.items = (t.ne[0] - t.integer(0) / 2) * ((t.ne[1] - 1) / rope_heads + 1) * t.ne[2];
            break;
        default:
            break;
    }
    s.blocks = blocks_for(s.args.items, by_block);
}

}  // namespace

std::string_view name_of(kernel k) noexcept { return kernel_names[static_cast<std::size_t>(k)]; }

operand operand_of(const tensor::tensor& t) noexcept {
    operand o{
        .data = static_cast<std::byte*>(t.data), .ne = {}, .nb = {}, .type = t.type, .contiguous = t.contiguous()};
    std::ranges::copy(t.ne, o.ne);
    std::ranges::copy(t.nb, o.nb);
    return o;
}

std::string_view why_not(const tensor::tensor& t) noexcept {
    if (t.op == op::view) return {};
    if (t.op == op::none) return "a leaf has nothing to compute";
    const tensor::tensor* const a = t.sources[0];
    const tensor::tensor* const b = t.sources[1];
    const bool binary = t.op == op::get_rows || t.op == op::add || t.op == op::mul || t.op == op::matmul ||
                        t.op == op::rope || t.op == op::conv1d || t.op == op::concat;
    if (a == nullptr || (binary && b == nullptr)) return "a source is missing";
    if (!has_data(t) || !has_data(*a) || (binary && !has_data(*b)))
        return "the result and its sources must have data, aligned for their elements";
    if (t.op == op::copy) return check_copy(t, *a);
    if (t.elements() != 0 && !t.contiguous()) return "the result must be contiguous";
    if (t.op != op::cont && t.op != op::concat && !is_f32(t)) return "the result must be f32";
    switch (t.op) {
        case op::get_rows:
            return check_get_rows(t, *a, *b);
        case op::add:
        case op::mul:
            return check_repeating(t, *a, *b);
        case op::matmul:
            return check_matmul(t, *a, *b);
        case op::scale:
        case op::rms_norm:
        case op::layer_norm:
        case op::silu:
        case op::gelu:
            return check_like(t, *a);
        case op::rope:
            return check_rope(t, *a, *b);
        case op::softmax:
            return check_softmax(t, *a, b);
        case op::conv1d:
            return check_conv1d(t, *a, *b);
        case op::cont:
            return t.type == a->type && t.same_shape(*a) ? std::string_view{} : "source and result must be alike";
        case op::concat:
            return check_concat(t, *a, *b);
        case op::copy:
        case op::none:
        case op::view:
            break;
    }
    return "no such operation";
}

step plan(const tensor::tensor& t) noexcept {
    step s{};
    s.kernel = kernel_of(t.op, t.ne[0] <= longest_of_warp);
    s.args.out = operand_of(t);
    s.args.a = operand_of(*t.sources[0]);
    if (t.sources[1] != nullptr && t.op != op::copy) s.args.b = operand_of(*t.sources[1]);
    for (std::size_t i = 0; i < 2; ++i) {
        s.args.reals[i] = t.real(i);
        s.args.integers[i] = t.integer(i);
    }
    size(t, s);
    return s;
}

step plan_widening(const operand& weights, void* to) noexcept {
    step s{};
    s.kernel = kernel::move;
    s.args.a = weights;
    s.args.out = weights;
    s.args.out.data = static_cast<std::byte*>(to);
    s.args.out.type = type::f32;
    s.args.out.contiguous = true;
    std::size_t stride = sizeof(float);
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < 4; ++d) {
        s.args.out.nb[d] = stride;
        stride = product(stride, static_cast<std::size_t>(weights.ne[d]));
        elements *= weights.ne[d];
    }
    s.args.items = elements;
    s.threads = element_threads;
    s.blocks = blocks_for(elements, element_threads);
    return s;
}

}  // namespace alloclab::device::kernels
