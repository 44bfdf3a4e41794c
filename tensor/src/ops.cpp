#include "alloclab/tensor/ops.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "alloclab/bytes.hpp"

namespace alloclab::tensor {

namespace {

std::string text_of(const shape& s) {
    std::size_t used = 4;
    while (used > 1 && s.ne[used - 1] == 1) --used;
    std::string text = "[";
    for (std::size_t d = 0; d < used; ++d) text += (d == 0 ? "" : ", ") + std::to_string(s.ne[d]);
    return text + "]";
}

shape shape_of(const tensor& t) noexcept { return {t.ne[0], t.ne[1], t.ne[2], t.ne[3]}; }

std::string text_of(const tensor& t) { return std::string(name_of(t.type)) + " " + text_of(shape_of(t)); }

[[noreturn]] void refuse(std::string_view call, const std::string& given, std::string_view rule) {
    throw shape_error(std::string(call) + " of " + given + ": " + std::string(rule));
}

// Texts are made only when they are needed, and apart from the code that runs when all is well.
[[noreturn, gnu::cold, gnu::noinline]] void refuse(std::string_view call, std::string_view rule, const tensor& a) {
    refuse(call, text_of(a), rule);
}
[[noreturn, gnu::cold, gnu::noinline]] void refuse(std::string_view call, std::string_view rule, const tensor& a,
                                                   const tensor& b) {
    refuse(call, text_of(a) + " and " + text_of(b), rule);
}
[[noreturn, gnu::cold, gnu::noinline]] void refuse(std::string_view call, std::string_view rule, const tensor& a,
                                                   const shape& s) {
    refuse(call, text_of(a) + " as " + text_of(s), rule);
}

void require(bool holds, std::string_view call, const tensor& a, std::string_view rule) {
    if (!holds) [[unlikely]]
        refuse(call, rule, a);
}
void require(bool holds, std::string_view call, const tensor& a, const auto& b, std::string_view rule) {
    if (!holds) [[unlikely]]
        refuse(call, rule, a, b);
}

bool has_adjacent_elements(const tensor& t) noexcept { return t.nb[0] == bytes_of(t.type); }
bool is_float(const tensor& t) noexcept { return t.type == type::f32 || t.type == type::f16; }
bool is_vector(const tensor& t) noexcept { return t.ne[1] == 1 && t.ne[2] == 1 && t.ne[3] == 1; }
bool is_matrix(const tensor& t) noexcept { return t.ne[2] == 1 && t.ne[3] == 1; }
/// Whether `whole` is a multiple of `part`; only 0 is one of 0.
bool divides(std::int64_t part, std::int64_t whole) noexcept {
    return part == whole || part == 1 || (part != 0 && whole % part == 0);
}

// What could not be made: for its size, which is then the operation's fault, or for want of room.
[[gnu::cold, gnu::noinline]] tensor* refuse_node(context& c, op o, type t, const shape& s, tensor* a, tensor* b) {
    if (is_size(s.bytes(t))) return c.new_node(o, t, s, a, b);
    const std::string given = b == nullptr ? text_of(*a) : text_of(*a) + " and " + text_of(*b);
    refuse(name_of(o), given, "the result " + text_of(s) + " would have more than PTRDIFF_MAX bytes");
}

tensor* make(context& c, op o, type t, const shape& s, tensor* a, tensor* b = nullptr) {
    tensor* made = c.try_new_node(o, t, s, a, b);
    if (made == nullptr) [[unlikely]]
        made = refuse_node(c, o, t, shape(s), a, b);
    return made;
}

/// A look at the elements of `a` in another order: none of them lies elsewhere, so nothing has to be checked.
tensor* look(context& c, tensor* a, const shape& s, const std::array<std::size_t, 4>& strides) {
    tensor* t = c.new_node(op::view, a->type, s, a);
    t->nb = strides;
    t->data = a->data;
    return t;
}

/// An f32 tensor shaped like `a`, which must be f32.
tensor* make_like(context& c, op o, tensor* a) {
    require(a->type == type::f32, name_of(o), *a, "must be f32");
    return make(c, o, type::f32, shape_of(*a), a);
}

tensor* make_repeating(context& c, op o, tensor* a, tensor* b) {
    require(a->type == type::f32 && b->type == type::f32, name_of(o), *a, *b, "both must be f32");
    for (std::size_t d = 0; d < 4; ++d)
        require(divides(b->ne[d], a->ne[d]), name_of(o), *a, *b,
                "each dimension of the second must divide that of the first");
    return make(c, o, type::f32, shape_of(*a), a, b);
}

tensor* make_with_real(context& c, op o, tensor* a, float value) {
    tensor* t = make_like(c, o, a);
    t->params.reals[0] = value;
    return t;
}

tensor* permuted(context& c, std::string_view call, tensor* a, const std::array<std::uint8_t, 4>& axes) {
    shape s{1};
    std::array<std::size_t, 4> strides{};
    std::array<bool, 4> taken{};
    for (std::size_t d = 0; d < 4; ++d) {
        require(axes[d] < 4 && !taken[axes[d]], call, *a, "the axes must be 0, 1, 2 and 3 in some order");
        taken[axes[d]] = true;
        s.ne[axes[d]] = a->ne[d];
        strides[axes[d]] = a->nb[d];
    }
    return look(c, a, s, strides);
}

std::array<std::size_t, 4> contiguous_strides(type t, const shape& s) noexcept {
    std::array<std::size_t, 4> strides{bytes_of(t)};
    for (std::size_t d = 1; d < 4; ++d)
        strides[d] = product(strides[d - 1], static_cast<std::size_t>(std::max<std::int64_t>(s.ne[d - 1], 0)));
    return strides;
}

}  // namespace

tensor* get_rows(context& c, tensor* table, tensor* ids) {
    require(is_float(*table) && ids->type == type::i32, "get_rows", *table, *ids,
            "the table must be f32 or f16, the ids i32");
    require(is_matrix(*table) && is_vector(*ids), "get_rows", *table, *ids,
            "the table must have at most two dimensions, the ids one");
    return make(c, op::get_rows, type::f32, {table->ne[0], ids->ne[0]}, table, ids);
}

tensor* add(context& c, tensor* a, tensor* b) { return make_repeating(c, op::add, a, b); }
tensor* mul(context& c, tensor* a, tensor* b) { return make_repeating(c, op::mul, a, b); }
tensor* scale(context& c, tensor* a, float factor) { return make_with_real(c, op::scale, a, factor); }

tensor* matmul(context& c, tensor* weights, tensor* x) {
    require(is_float(*weights) && x->type == type::f32, "matmul", *weights, *x,
            "the weights must be f32 or f16, the second f32");
    require(weights->ne[0] == x->ne[0], "matmul", *weights, *x, "both must have the same dimension 0");
    require(divides(weights->ne[2], x->ne[2]) && divides(weights->ne[3], x->ne[3]), "matmul", *weights, *x,
            "dimensions 2 and 3 of the weights must divide those of the second");
    require(has_adjacent_elements(*weights) && has_adjacent_elements(*x), "matmul", *weights, *x,
            "the rows of both must be contiguous");
    return make(c, op::matmul, type::f32, {weights->ne[1], x->ne[1], x->ne[2], x->ne[3]}, weights, x);
}

tensor* rms_norm(context& c, tensor* a, float eps) { return make_with_real(c, op::rms_norm, a, eps); }
tensor* layer_norm(context& c, tensor* a, float eps) { return make_with_real(c, op::layer_norm, a, eps); }

tensor* rope(context& c, tensor* a, tensor* positions, std::int32_t dimensions, float base) {
    require(a->type == type::f32 && positions->type == type::i32, "rope", *a, *positions,
            "the first must be f32, the positions i32");
    require(a->ne[3] == 1 && is_vector(*positions) && positions->ne[0] == a->ne[2], "rope", *a, *positions,
            "the first must be [d, heads, tokens], the positions [tokens]");
    if (dimensions < 0 || dimensions % 2 != 0 || dimensions > a->ne[0])
        refuse("rope", text_of(*a) + " and " + text_of(*positions),
               "the dimensions to rotate must be even and at most dimension 0, not " + std::to_string(dimensions));
    tensor* t = make(c, op::rope, type::f32, shape_of(*a), a, positions);
    t->params.reals[1] = base;
    t->params.integers[0] = dimensions;
    return t;
}

tensor* softmax(context& c, tensor* a, tensor* mask, float factor) {
    tensor* t = nullptr;
    if (mask == nullptr) {
        t = make_like(c, op::softmax, a);
    } else {
        require(a->type == type::f32 && mask->type == type::f32, "softmax", *a, *mask, "both must be f32");
        require(is_matrix(*mask) && mask->ne[0] == a->ne[0] && mask->ne[1] == a->ne[1], "softmax", *a, *mask,
                "the mask must be a matrix with dimensions 0 and 1 of the first");
        t = make(c, op::softmax, type::f32, shape_of(*a), a, mask);
    }
    t->params.reals[0] = factor;
    return t;
}

tensor* silu(context& c, tensor* a) { return make_like(c, op::silu, a); }
tensor* gelu(context& c, tensor* a) { return make_like(c, op::gelu, a); }

tensor* conv1d(context& c, tensor* kernel, tensor* signal, std::int32_t stride, std::int32_t padding) {
    require(is_float(*kernel) && signal->type == type::f32, "conv1d", *kernel, *signal,
            "the kernel must be f32 or f16, the signal f32");
    require(kernel->ne[3] == 1 && is_matrix(*signal) && kernel->ne[1] == signal->ne[1], "conv1d", *kernel, *signal,
            "the kernel must be [width, in, out], the signal [length, in]");
    require(kernel->contiguous(), "conv1d", *kernel, *signal, "the kernel must be contiguous");
    require(stride >= 1 && padding >= 0, "conv1d", *kernel, *signal,
            "the stride must be at least 1 and the padding at least 0");
    const std::size_t padded = sum(static_cast<std::size_t>(signal->ne[0]), 2 * static_cast<std::size_t>(padding));
    const auto width = static_cast<std::size_t>(kernel->ne[0]);
    require(width >= 1 && width <= padded, "conv1d", *kernel, *signal,
            "the kernel must be at least 1 wide and fit into the padded signal");
    const std::size_t length = (padded - width) / static_cast<std::size_t>(stride) + 1;
    tensor* t = make(c, op::conv1d, type::f32, {static_cast<std::int64_t>(length), kernel->ne[2]}, kernel, signal);
    t->params.integers = {stride, padding};
    return t;
}

tensor* reshape(context& c, tensor* a, const shape& s) {
    require(s.count() == a->elements(), "reshape", *a, s, "both must have as many elements");
    require(a->contiguous(), "reshape", *a, s, "must be contiguous");
    return look(c, a, s, contiguous_strides(a->type, s));
}

tensor* view(context& c, tensor* a, const shape& s, const std::array<std::size_t, 3>& strides, std::size_t offset) {
    const std::size_t element = bytes_of(a->type);
    require(std::ranges::all_of(strides, [=](std::size_t n) { return n % element == 0; }) && offset % element == 0,
            "view", *a, s, "strides and offset must be multiples of the element size");
    require(offset <= a->bytes(), "view", *a, s, "the offset must not be past the end");
    return c.new_view(a, s, {element, strides[0], strides[1], strides[2]}, offset);
}

tensor* view(context& c, tensor* a, const shape& s, std::size_t offset) {
    const std::array<std::size_t, 4> strides = contiguous_strides(a->type, s);
    return view(c, a, s, {strides[1], strides[2], strides[3]}, offset);
}

tensor* permute(context& c, tensor* a, std::array<std::uint8_t, 4> axes) { return permuted(c, "permute", a, axes); }
tensor* transpose(context& c, tensor* a) { return permuted(c, "transpose", a, {1, 0, 2, 3}); }

tensor* cont(context& c, tensor* a) { return make(c, op::cont, a->type, shape_of(*a), a); }

tensor* copy(context& c, tensor* a, tensor* b) {
    require(a->type == b->type || (is_float(*a) && is_float(*b)), "copy", *a, *b,
            "the types must be equal or f32 and f16");
    require(a->elements() == b->elements(), "copy", *a, *b, "both must have as many elements");
    tensor* t = look(c, b, shape_of(*b), b->nb);
    t->op = op::copy;
    t->sources = {a, b, nullptr};
    return t;
}

tensor* concat(context& c, tensor* a, tensor* b, std::int32_t dimension) {
    require(dimension >= 0 && dimension < 4, "concat", *a, *b, "the dimension to join along must be 0 to 3");
    require(a->type == b->type, "concat", *a, *b, "both must have the same type");
    const auto along = static_cast<std::size_t>(dimension);
    shape s = shape_of(*a);
    for (std::size_t d = 0; d < 4; ++d)
        require(d == along || a->ne[d] == b->ne[d], "concat", *a, *b,
                "the dimensions other than the one to join along must be equal");
    const std::size_t length = sum(static_cast<std::size_t>(a->ne[along]), static_cast<std::size_t>(b->ne[along]));
    s.ne[along] = is_size(length) ? static_cast<std::int64_t>(length) : std::numeric_limits<std::int64_t>::max();
    tensor* t = make(c, op::concat, a->type, s, a, b);
    t->params.integers[0] = dimension;
    return t;
}

}  // namespace alloclab::tensor
