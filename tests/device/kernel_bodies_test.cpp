// What the kernels compute, without any of CUDA: their bodies on the host, planned as for a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host_team.hpp"
#include "kernel_plan.hpp"
#include "random_operations.hpp"
#include "tensor_values.hpp"

namespace alloclab::device {
namespace {

using kernels::plan;
using kernels::run_on_host;
using kernels::step;
using kernels::why_not;
using tensor::op;
using tensor::type;

constexpr std::array exact_ops{op::get_rows, op::add, op::mul, op::scale, op::cont, op::copy, op::concat};

class kernel_bodies : public ::testing::TestWithParam<op> {
protected:
    /// What `compute` makes of the memory that the result lies in, and what `run` does.
    template <class Run>
    static void compare(const tensor::tensor& t, Run run, std::vector<float>& expected, std::vector<float>& got) {
        const memory_of_result before(t);
        tensor::compute(t);
        expected = before.values();
        before.restore();
        run(t);
        got = before.values();
    }
};

TEST_P(kernel_bodies, compute_what_the_cpu_does) {
    const bool exact = std::ranges::find(exact_ops, GetParam()) != exact_ops.end();
    random_operations cases(7);
    std::set<kernels::kernel> met;
    std::vector<float> expected, got;
    for (int i = 0; i < 150; ++i) {
        const tensor::tensor& t = *cases.make(GetParam());
        ASSERT_EQ(why_not(t), "");
        const step s = plan(t);
        met.insert(s.kernel);
        compare(
            t, [&](const auto&) { run_on_host(s.kernel, s.args); }, expected, got);
        EXPECT_LE(distance(got, expected), exact ? 0 : tolerance) << "case " << i;
    }
    const bool by_rows = GetParam() == op::softmax || GetParam() == op::rms_norm || GetParam() == op::layer_norm;
    EXPECT_EQ(met.size(), by_rows ? 2U : 1U) << "of a warp and of a block";
}

// Threads whose numbers do not fit into 32 bits count in 64.
TEST_P(kernel_bodies, compute_the_same_bits_over_any_grid) {
    random_operations cases(8);
    std::vector<float> expected, got;
    for (int i = 0; i < 40; ++i) {
        const tensor::tensor& t = *cases.make(GetParam());
        const step s = plan(t);
        const memory_of_result before(t);
        run_on_host(s.kernel, s.args);
        const std::vector<float> at_once = before.values();
        before.restore();
        for (const std::int64_t first : {2, 0, 1}) run_on_host(s.kernel, s.args, first, 3);
        EXPECT_TRUE(same_bits(before.values(), at_once)) << "case " << i;
        before.restore();
        for (std::int64_t item = 0; item < s.args.items; ++item)
            run_on_host(s.kernel, s.args, item, std::int64_t{1} << 33);
        EXPECT_TRUE(same_bits(before.values(), at_once)) << "case " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(each_op, kernel_bodies, ::testing::ValuesIn(computing_ops),
                         [](const auto& of) { return std::string(name_of(of.param)); });

struct noted {
    static inline std::vector<std::uint64_t> items;
    template <class Index>
    static void item(const kernels::kernel_args&, Index i) {
        items.push_back(i);
    }
};

TEST(kernel_grid, goes_on_past_what_32_bits_count) {
    kernels::kernel_args args{};
    args.items = (std::int64_t{1} << 33) + 1;
    noted::items.clear();
    kernels::each_item<noted>(args, 5, std::uint64_t{1} << 31);
    EXPECT_EQ(noted::items, (std::vector<std::uint64_t>{5, 5 + (1ULL << 31), 5 + (1ULL << 32), 5 + 3 * (1ULL << 31)}));
    args.items = (std::int64_t{1} << 31) - 1;
    noted::items.clear();
    kernels::each_item<noted>(args, 7, std::uint64_t{1} << 30);
    EXPECT_EQ(noted::items, (std::vector<std::uint64_t>{7, 7 + (1ULL << 30)}));
}

TEST(kernel_grid, has_blocks_for_all_items_up_to_what_fills_any_gpu) {
    alignas(float) std::byte anywhere[4]{};
    tensor::tensor a{};
    a.data = anywhere;
    a.type = type::f32;
    tensor::tensor t = a;
    t.op = op::scale;
    t.sources = {&a, nullptr, nullptr};
    for (const auto& [n, blocks] : std::map<std::int64_t, unsigned>{
             {1, 1}, {256, 1}, {257, 2}, {std::int64_t{1} << 24, 1U << 16}, {std::int64_t{1} << 40, 1U << 16}}) {
        t.ne = a.ne = {n, 1, 1, 1};
        ASSERT_TRUE(tensor::try_strides(type::f32, {n}, t.nb));
        a.nb = t.nb;
        ASSERT_EQ(why_not(t), "");
        EXPECT_EQ(plan(t).blocks, blocks) << n;
        EXPECT_EQ(plan(t).args.items, n);
    }
}

TEST(kernel_values, an_id_that_is_no_row_gives_nan) {
    random_operations cases(1);
    tensor::context& c = cases.memory();
    tensor::tensor* const ids = cases.leaf(type::i32, {4});
    const std::int32_t picked[] = {1, -1, 2, 1'000'000};
    std::memcpy(ids->data, picked, sizeof picked);
    tensor::tensor* const table = cases.leaf(type::f32, {2, 2});
    const tensor::tensor& t = *cases.placed(get_rows(c, table, ids));
    run_on_host(plan(t).kernel, plan(t).args);
    const auto* const got = static_cast<const float*>(t.data);
    EXPECT_EQ(got[0], static_cast<const float*>(table->data)[2]);
    for (int i = 2; i < 8; ++i) EXPECT_TRUE(std::isnan(got[i])) << i;
}

TEST(kernel_values, a_row_of_softmax_that_is_masked_whole_becomes_zeros_and_one_with_a_nan_only_nans) {
    for (const std::int64_t n : {5, 40, 3000}) {
        random_operations cases(2);
        tensor::tensor* const a = cases.leaf(type::f32, {n, 3});
        auto* const in = static_cast<float*>(a->data);
        std::fill_n(in, n, -HUGE_VALF);
        in[n + n / 2] = NAN;
        const tensor::tensor& t = *cases.placed(softmax(cases.memory(), a, nullptr, 0.5F));
        run_on_host(plan(t).kernel, plan(t).args);
        const auto* const out = static_cast<const float*>(t.data);
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            EXPECT_EQ(out[i], 0.0F);
            EXPECT_TRUE(std::isnan(out[n + i]));
            sum += static_cast<double>(out[2 * n + i]);
        }
        EXPECT_NEAR(sum, 1, 1e-5);
    }
}

TEST(kernel_values, a_layer_norm_far_from_zero_keeps_its_precision) {
    random_operations cases(3);
    tensor::tensor* const a = cases.leaf(type::f32, {1500, 2});
    for (std::size_t i = 0; i < a->elements(); ++i) static_cast<float*>(a->data)[i] += 30'000.0F;
    const tensor::tensor& t = *cases.placed(layer_norm(cases.memory(), a, 1e-5F));
    tensor::compute(t);
    const std::vector<float> expected = memory_of_result(t).values();
    run_on_host(plan(t).kernel, plan(t).args);
    EXPECT_LE(distance(memory_of_result(t).values(), expected), tolerance);
}

TEST(kernel_values, silu_and_gelu_are_the_cpus_far_from_zero_too) {
    random_operations cases(5);
    tensor::tensor* const a = cases.leaf(type::f32, {401});
    for (int i = 0; i <= 400; ++i) static_cast<float*>(a->data)[i] = static_cast<float>(i - 200);
    for (const tensor::tensor* t : {cases.placed(silu(cases.memory(), a)), cases.placed(gelu(cases.memory(), a))}) {
        tensor::compute(*t);
        const std::vector<float> expected = memory_of_result(*t).values();
        run_on_host(plan(*t).kernel, plan(*t).args);
        EXPECT_LE(distance(memory_of_result(*t).values(), expected), tolerance) << name_of(t->op);
    }
}

// --- what the kernels do not check

TEST(kernel_rules, what_the_kernels_rely_on_is_checked_before) {
    const auto refused = [](op o, auto spoil, std::string_view rule) {
        for (std::uint32_t seed = 0; seed < 5; ++seed) {
            random_operations cases(seed);
            tensor::tensor t = *cases.make(o);
            ASSERT_EQ(why_not(t), "");
            tensor::tensor a = *t.sources[0];
            tensor::tensor b = t.sources[1] == nullptr ? *cases.leaf(type::f32, {t.ne[0], t.ne[1]}) : *t.sources[1];
            t.sources = {&a, &b, nullptr};
            spoil(t, a, b);
            EXPECT_NE(why_not(t).find(rule), std::string_view::npos) << name_of(o) << ": " << why_not(t);
        }
    };
    using tensor_ref = tensor::tensor&;
    for (const op o : computing_ops) {
        refused(
            o, [](tensor_ref t, tensor_ref, tensor_ref) { t.sources[0] = nullptr; }, "missing");
        refused(
            o, [](tensor_ref t, tensor_ref, tensor_ref) { t.data = nullptr; }, "must have data");
        refused(
            o, [](tensor_ref, tensor_ref a, tensor_ref) { a.data = nullptr; }, "must have data");
        refused(
            o, [](tensor_ref, tensor_ref a, tensor_ref) { a.data = static_cast<std::byte*>(a.data) + 1; }, "aligned");
        refused(
            o, [](tensor_ref, tensor_ref a, tensor_ref) { a.nb[2] += 1; }, "aligned");
        refused(
            o, [](tensor_ref, tensor_ref a, tensor_ref) { a.ne[0] += 1; }, "must");
    }
    for (const op o : {op::get_rows, op::add, op::mul, op::matmul, op::rope, op::conv1d, op::concat}) {
        refused(
            o, [](tensor_ref t, tensor_ref, tensor_ref) { t.sources[1] = nullptr; }, "missing");
        refused(
            o, [](tensor_ref, tensor_ref, tensor_ref b) { b.data = nullptr; }, "must have data");
        refused(
            o, [](tensor_ref, tensor_ref, tensor_ref b) { b.ne[0] = 0; }, "must");
    }
    for (const op o : computing_ops)
        if (o != op::copy && o != op::cont && o != op::concat)
            refused(
                o, [](tensor_ref t, tensor_ref, tensor_ref) { t.type = type::i32; }, "f32");
    refused(
        op::scale, [](tensor_ref t, tensor_ref, tensor_ref) { t.nb[0] += 4, t.ne[0] = 2; }, "contiguous");
    refused(
        op::softmax, [](tensor_ref, tensor_ref, tensor_ref b) { b.data = nullptr; }, "mask");
    refused(
        op::matmul, [](tensor_ref, tensor_ref a, tensor_ref) { a.nb[0] += 4; }, "contiguous");
    refused(
        op::matmul,
        [](tensor_ref, tensor_ref a, tensor_ref) {
            a.type = type::i32, a.data = &a, a.nb = {4, 4, 4, 4};
        },
        "f32 or f16");
    refused(
        op::rope, [](tensor_ref t, tensor_ref, tensor_ref) { t.params.integers[0] = 1; }, "even");
    refused(
        op::rope, [](tensor_ref, tensor_ref, tensor_ref b) { b.type = type::f32; }, "i32");
    refused(
        op::conv1d, [](tensor_ref t, tensor_ref, tensor_ref) { t.params.integers[0] = 0; }, "stride");
    refused(
        op::conv1d, [](tensor_ref t, tensor_ref, tensor_ref) { t.params.integers[1] += 9; }, "fit");
    refused(
        op::concat, [](tensor_ref t, tensor_ref, tensor_ref) { t.params.integers[0] = 4; }, "must");
    refused(
        op::copy,
        [](tensor_ref t, tensor_ref a, tensor_ref) {
            t.type = type::i32, a.type = type::f32, t.data = a.data = &a, t.nb = a.nb = {4, 4, 4, 4};
        },
        "types");
    tensor::tensor leaf{};
    EXPECT_NE(why_not(leaf), "");
    leaf.op = op::view;
    EXPECT_EQ(why_not(leaf), "");
}

TEST(kernel_rules, every_tensor_that_the_operations_make_is_accepted_empty_ones_too) {
    random_operations cases(4);
    tensor::context& c = cases.memory();
    tensor::tensor* const none = cases.leaf(type::f32, {8, 0, 3});
    for (const tensor::tensor* t :
         {scale(c, none, 2), softmax(c, none, nullptr, 1), rms_norm(c, none, 1),
          add(c, none, cases.leaf(type::f32, {8})), cont(c, none), concat(c, none, none, 1),
          copy(c, none, cases.leaf(type::f16, {0})), matmul(c, none, cases.leaf(type::f32, {8, 5, 3})), silu(c, none),
          get_rows(c, cases.leaf(type::f32, {4, 2}), cases.leaf(type::i32, {0}))})
        EXPECT_EQ(why_not(*t), "") << name_of(t->op);
    // No products to sum: zeros.
    const tensor::tensor& zeros =
        *cases.placed(matmul(c, cases.leaf(type::f32, {0, 3}), cases.leaf(type::f32, {0, 2})));
    std::fill_n(static_cast<float*>(zeros.data), 6, 1.0F);
    ASSERT_EQ(why_not(zeros), "");
    run_on_host(plan(zeros).kernel, plan(zeros).args);
    EXPECT_EQ(memory_of_result(zeros).values(), std::vector<float>(6));
}

}  // namespace
}  // namespace alloclab::device
