// What the operations make of their sources, and what each of them refuses.
#include "alloclab/tensor/ops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "alloclab/source/malloc.hpp"

namespace alloclab::tensor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ops : public ::testing::Test {
protected:
    tensor* f32(shape s) { return c.new_tensor(type::f32, s); }
    tensor* f16(shape s) { return c.new_tensor(type::f16, s); }
    tensor* i32(shape s) { return c.new_tensor(type::i32, s); }

    template <class Call>
    std::string refusal(Call call) {
        const std::size_t used = c.used_bytes();
        try {
            call();
        } catch (const shape_error& refused) {
            EXPECT_EQ(c.used_bytes(), used) << "a refused operation leaves nothing behind";
            return refused.what();
        }
        return "not refused";
    }

    malloc_source source;
    context c{{.growing = growth{}}, any_source(source)};
};

// --- what they make

TEST_F(ops, a_result_knows_its_operation_its_sources_and_its_shape) {
    tensor* w = f16({64, 32, 2});
    tensor* x = f32({64, 5, 6, 3});
    tensor* t = matmul(c, w, x);
    EXPECT_EQ(t->op, op::matmul);
    EXPECT_EQ(t->type, type::f32);
    EXPECT_THAT(t->ne, ElementsAre(32, 5, 6, 3));
    EXPECT_THAT(t->sources, ElementsAre(w, x, nullptr));
    EXPECT_TRUE(t->contiguous());
    EXPECT_EQ(t->data, nullptr);
}

TEST_F(ops, results_take_the_shape_that_their_operation_gives) {
    tensor* a = f32({12, 6, 4});
    const auto shape_of = [](const tensor* t) { return std::vector<std::int64_t>(t->ne.begin(), t->ne.end()); };
    EXPECT_THAT(shape_of(get_rows(c, f16({16, 100}), i32({7}))), ElementsAre(16, 7, 1, 1));
    EXPECT_THAT(shape_of(add(c, a, f32({4, 1, 2}))), ElementsAre(12, 6, 4, 1));
    EXPECT_THAT(shape_of(mul(c, a, f32({1}))), ElementsAre(12, 6, 4, 1));
    EXPECT_THAT(shape_of(rope(c, a, i32({4}), 12, 1e4F)), ElementsAre(12, 6, 4, 1));
    EXPECT_THAT(shape_of(softmax(c, a, f32({12, 6}), 1)), ElementsAre(12, 6, 4, 1));
    EXPECT_THAT(shape_of(conv1d(c, f16({3, 80, 384}), f32({3000, 80}), 1, 1)), ElementsAre(3000, 384, 1, 1));
    EXPECT_THAT(shape_of(conv1d(c, f16({3, 384, 384}), f32({3000, 384}), 2, 1)), ElementsAre(1500, 384, 1, 1));
    EXPECT_THAT(shape_of(concat(c, a, f32({12, 1, 4}), 1)), ElementsAre(12, 7, 4, 1));
    EXPECT_THAT(shape_of(concat(c, a, a, 3)), ElementsAre(12, 6, 4, 2));
    EXPECT_THAT(shape_of(cont(c, transpose(c, a))), ElementsAre(6, 12, 4, 1));
}

TEST_F(ops, parameters_are_kept) {
    tensor* a = f32({8, 2, 3});
    const tensor* turned = rope(c, a, i32({3}), 6, 5e5F);
    EXPECT_EQ(turned->integer(0), 6);
    EXPECT_EQ(turned->real(1), 5e5F);
    EXPECT_EQ(scale(c, a, 0.25F)->real(0), 0.25F);
    EXPECT_EQ(rms_norm(c, a, 1e-6F)->real(0), 1e-6F);
    EXPECT_EQ(layer_norm(c, a, 1e-5F)->real(0), 1e-5F);
    EXPECT_EQ(softmax(c, a, nullptr, 0.5F)->real(0), 0.5F);
    const tensor* slid = conv1d(c, f32({3, 2, 5}), f32({10, 2}), 2, 1);
    EXPECT_EQ(slid->integer(0), 2);
    EXPECT_EQ(slid->integer(1), 1);
    EXPECT_EQ(concat(c, a, a, 2)->integer(0), 2);
}

TEST_F(ops, permute_moves_each_dimension_to_the_place_it_is_given) {
    tensor* a = f16({5, 6, 7, 8});
    const tensor* t = permute(c, a, {2, 0, 3, 1});
    EXPECT_THAT(t->ne, ElementsAre(6, 8, 5, 7));
    EXPECT_THAT(t->nb, ElementsAre(a->nb[1], a->nb[3], a->nb[0], a->nb[2]));
    EXPECT_EQ(t->op, op::view);
    EXPECT_EQ(t->sources[0], a);
    EXPECT_EQ(t->type, type::f16);
    EXPECT_THAT(transpose(c, a)->nb, ElementsAre(a->nb[1], a->nb[0], a->nb[2], a->nb[3]));
}

TEST_F(ops, a_view_starts_at_its_offset_from_what_it_looks_at) {
    tensor* cache = f16({64, 10});
    tensor* rows = view(c, cache, {64, 4}, 2 * cache->nb[1]);
    EXPECT_EQ(rows->params.offset, 256u);
    EXPECT_THAT(rows->nb, ElementsAre(2, 128, 512, 512));
    tensor* heads = view(c, rows, {16, 4, 2}, {128, 32, 512}, 64);
    EXPECT_EQ(heads->sources[0], rows);
    EXPECT_EQ(heads->params.offset, 64u);
    EXPECT_EQ(&heads->root(), cache);
    EXPECT_THAT(reshape(c, rows, {16, 16})->nb, ElementsAre(2, 32, 512, 512));
}

TEST_F(ops, copy_is_a_look_at_its_destination) {
    tensor* a = f32({64, 4});
    tensor* cache = f16({64, 10});
    tensor* part = permute(c, view(c, cache, {4, 64}, 0), {1, 0, 2, 3});
    const tensor* t = copy(c, a, part);
    EXPECT_EQ(t->op, op::copy);
    EXPECT_THAT(t->sources, ElementsAre(a, part, nullptr));
    EXPECT_EQ(t->ne, part->ne);
    EXPECT_EQ(t->nb, part->nb);
    EXPECT_EQ(t->type, type::f16);
    EXPECT_EQ(&t->root(), cache);
    EXPECT_TRUE(t->is_alias());
}

TEST_F(ops, views_and_copies_of_data_that_is_there_have_data) {
    context with_data({.growing = growth{}, .no_alloc = false}, any_source(source));
    tensor* a = with_data.new_tensor(type::f32, {8, 4});
    EXPECT_EQ(view(with_data, a, {8}, 32)->data, static_cast<std::byte*>(a->data) + 32);
    EXPECT_EQ(transpose(with_data, a)->data, a->data);
    EXPECT_EQ(copy(with_data, scale(with_data, a, 2), a)->data, a->data);
}

// --- what they refuse: the text names the operation, both sources and the rule

TEST_F(ops, a_refusal_names_operation_types_shapes_and_rule) {
    tensor* w = f16({64, 32});
    tensor* x = f32({63, 5, 2});
    EXPECT_EQ(refusal([&] { matmul(c, w, x); }),
              "matmul of f16 [64, 32] and f32 [63, 5, 2]: both must have the same dimension 0");
}

struct refused_call {
    std::string_view name;
    std::string_view rule;
    tensor* (*call)(context&);
};

std::ostream& operator<<(std::ostream& out, const refused_call& r) { return out << r.name << ": " << r.rule; }

class refusals : public ops, public ::testing::WithParamInterface<refused_call> {};

tensor* f(context& c, shape s) { return c.new_tensor(type::f32, s); }
tensor* h(context& c, shape s) { return c.new_tensor(type::f16, s); }
tensor* n(context& c, shape s) { return c.new_tensor(type::i32, s); }

TEST_P(refusals, name_the_operation_and_the_rule) {
    const auto& [name, rule, call] = GetParam();
    try {
        call(c);
        FAIL() << "not refused";
    } catch (const shape_error& refused) {
        EXPECT_THAT(refused.what(), AllOf(HasSubstr(std::string(name) + " of "), HasSubstr(std::string(rule))));
    }
}

constexpr std::int64_t huge = std::int64_t{1} << 40;

INSTANTIATE_TEST_SUITE_P(
    of_each_operation, refusals,
    ::testing::ValuesIn(std::vector<refused_call>{
        {"get_rows", "the ids i32",
         [](context& c) {
             return get_rows(c, f(c, {4, 4}), f(c, {2}));
         }},
        {"get_rows", "f32 or f16",
         [](context& c) {
             return get_rows(c, n(c, {4, 4}), n(c, {2}));
         }},
        {"get_rows", "two dimensions",
         [](context& c) {
             return get_rows(c, f(c, {4, 4, 2}), n(c, {2}));
         }},
        {"get_rows", "the ids one",
         [](context& c) {
             return get_rows(c, f(c, {4, 4}), n(c, {2, 2}));
         }},
        {"add", "both must be f32", [](context& c) { return add(c, f(c, {4}), h(c, {4})); }},
        {"add", "must divide",
         [](context& c) {
             return add(c, f(c, {4, 6}), f(c, {4, 4}));
         }},
        {"add", "must divide",
         [](context& c) {
             return add(c, f(c, {4}), f(c, {4, 2}));
         }},
        {"add", "must divide", [](context& c) { return add(c, f(c, {4}), f(c, {0})); }},
        {"mul", "both must be f32", [](context& c) { return mul(c, h(c, {4}), f(c, {4})); }},
        {"mul", "must divide", [](context& c) { return mul(c, f(c, {4}), f(c, {3})); }},
        {"scale", "must be f32", [](context& c) { return scale(c, h(c, {4}), 2); }},
        {"matmul", "the weights must be f32 or f16", [](context& c) { return matmul(c, n(c, {4}), f(c, {4})); }},
        {"matmul", "the second f32", [](context& c) { return matmul(c, h(c, {4}), h(c, {4})); }},
        {"matmul", "same dimension 0",
         [](context& c) {
             return matmul(c, f(c, {4, 2}), f(c, {2, 4}));
         }},
        {"matmul", "must divide",
         [](context& c) {
             return matmul(c, f(c, {4, 2, 3}), f(c, {4, 2, 4}));
         }},
        {"matmul", "must divide",
         [](context& c) {
             return matmul(c, f(c, {4, 2, 1, 2}), f(c, {4, 2}));
         }},
        {"matmul", "must divide",
         [](context& c) {
             return matmul(c, f(c, {4, 2, 0}), f(c, {4, 2}));
         }},
        {"matmul", "rows of both",
         [](context& c) {
             return matmul(c, transpose(c, f(c, {2, 4})), f(c, {4, 3}));
         }},
        {"matmul", "rows of both",
         [](context& c) {
             return matmul(c, f(c, {4, 3}), transpose(c, f(c, {2, 4})));
         }},
        {"matmul", "PTRDIFF_MAX",
         [](context& c) {
             return matmul(c, h(c, {1, huge}), f(c, {1, huge}));
         }},
        {"rms_norm", "must be f32", [](context& c) { return rms_norm(c, h(c, {4}), 0); }},
        {"layer_norm", "must be f32", [](context& c) { return layer_norm(c, n(c, {4}), 0); }},
        {"rope", "the positions i32",
         [](context& c) {
             return rope(c, f(c, {4, 1, 2}), f(c, {2}), 4, 10);
         }},
        {"rope", "the first must be f32",
         [](context& c) {
             return rope(c, h(c, {4, 1, 2}), n(c, {2}), 4, 10);
         }},
        {"rope", "[tokens]",
         [](context& c) {
             return rope(c, f(c, {4, 1, 2}), n(c, {3}), 4, 10);
         }},
        {"rope", "[tokens]", [](context& c) { return rope(c, f(c, {4, 1, 2, 2}), n(c, {2}), 4, 10); }},
        {"rope", "even", [](context& c) { return rope(c, f(c, {4, 1, 2}), n(c, {2}), 3, 10); }},
        {"rope", "at most dimension 0, not 6", [](context& c) { return rope(c, f(c, {4, 1, 2}), n(c, {2}), 6, 10); }},
        {"rope", "not -2", [](context& c) { return rope(c, f(c, {4, 1, 2}), n(c, {2}), -2, 10); }},
        {"softmax", "must be f32", [](context& c) { return softmax(c, h(c, {4}), nullptr, 1); }},
        {"softmax", "both must be f32", [](context& c) { return softmax(c, f(c, {4}), h(c, {4}), 1); }},
        {"softmax", "the mask", [](context& c) { return softmax(c, f(c, {4, 2}), f(c, {4}), 1); }},
        {"softmax", "the mask", [](context& c) { return softmax(c, f(c, {4, 2, 3}), f(c, {4, 2, 3}), 1); }},
        {"silu", "must be f32", [](context& c) { return silu(c, h(c, {4})); }},
        {"gelu", "must be f32", [](context& c) { return gelu(c, h(c, {4})); }},
        {"conv1d", "the signal f32", [](context& c) { return conv1d(c, f(c, {3, 2}), h(c, {9, 2}), 1, 1); }},
        {"conv1d", "the kernel must be f32", [](context& c) { return conv1d(c, n(c, {3, 2}), f(c, {9, 2}), 1, 1); }},
        {"conv1d", "[length, in]", [](context& c) { return conv1d(c, f(c, {3, 2}), f(c, {9, 3}), 1, 1); }},
        {"conv1d", "[length, in]", [](context& c) { return conv1d(c, f(c, {3, 2}), f(c, {9, 2, 2}), 1, 1); }},
        {"conv1d", "contiguous", [](context& c) { return conv1d(c, transpose(c, f(c, {2, 3})), f(c, {9, 2}), 1, 1); }},
        {"conv1d", "stride", [](context& c) { return conv1d(c, f(c, {3, 2}), f(c, {9, 2}), 0, 1); }},
        {"conv1d", "padding", [](context& c) { return conv1d(c, f(c, {3, 2}), f(c, {9, 2}), 1, -1); }},
        {"conv1d", "fit into", [](context& c) { return conv1d(c, f(c, {5, 2}), f(c, {2, 2}), 1, 1); }},
        {"conv1d", "at least 1 wide", [](context& c) { return conv1d(c, f(c, {0, 2}), f(c, {2, 2}), 1, 1); }},
        {"reshape", "as many", [](context& c) { return reshape(c, f(c, {4, 2}), {4, 3}); }},
        {"reshape", "as many", [](context& c) { return reshape(c, f(c, {4, 2}), {-4, -2}); }},
        {"reshape", "contiguous", [](context& c) { return reshape(c, transpose(c, f(c, {4, 2})), {8}); }},
        {"view", "past the end", [](context& c) { return view(c, f(c, {4}), {4}, 4); }},
        {"view", "past the end", [](context& c) { return view(c, f(c, {4}), {0}, 20); }},
        {"view", "past the end", [](context& c) { return view(c, f(c, {4}), {2, 2}, {16, 16, 16}, 0); }},
        {"view", "past the end", [](context& c) { return view(c, f(c, {4}), {-1}, 0); }},
        {"view", "multiples of the element size", [](context& c) { return view(c, f(c, {4}), {1}, 2); }},
        {"view", "multiples of the element size", [](context& c) { return view(c, h(c, {4}), {1, 2}, {3, 6, 6}, 0); }},
        {"permute", "in some order", [](context& c) { return permute(c, f(c, {4}), {0, 1, 2, 4}); }},
        {"permute", "in some order", [](context& c) { return permute(c, f(c, {4}), {0, 1, 1, 3}); }},
        {"copy", "types", [](context& c) { return copy(c, n(c, {4}), f(c, {4})); }},
        {"copy", "types", [](context& c) { return copy(c, h(c, {4}), n(c, {4})); }},
        {"copy", "as many", [](context& c) { return copy(c, f(c, {4}), h(c, {5})); }},
        {"concat", "0 to 3", [](context& c) { return concat(c, f(c, {4}), f(c, {4}), 4); }},
        {"concat", "0 to 3", [](context& c) { return concat(c, f(c, {4}), f(c, {4}), -1); }},
        {"concat", "same type", [](context& c) { return concat(c, f(c, {4}), h(c, {4}), 0); }},
        {"concat", "equal", [](context& c) { return concat(c, f(c, {4, 2}), f(c, {4, 3}), 0); }},
        {"concat", "PTRDIFF_MAX",
         [](context& c) { return concat(c, f(c, {huge, 1 << 20}), f(c, {huge, 1 << 20}), 1); }},
    }));

TEST_F(ops, a_full_context_refuses_with_its_own_error) {
    context full({.bytes = context::required_bytes(2, 0)}, any_source(source));
    tensor* a = full.new_tensor(type::f32, {4});
    add(full, a, a);
    EXPECT_THROW(add(full, a, a), context_exhausted);
    EXPECT_THROW(transpose(full, a), context_exhausted);
}

}  // namespace
}  // namespace alloclab::tensor
