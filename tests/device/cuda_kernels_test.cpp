// What a cuda_device computes, on the fake of the runtime: its launches, cuBLAS's part of them, and their workspaces.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cuda_support.hpp"
#include "random_operations.hpp"
#include "tensor_values.hpp"

namespace alloclab::device {
namespace {

using tensor::op;
using tensor::type;

constexpr const char* gemm = "cublasSgemmStridedBatched";

/// A tensor and its sources on a device, with the memory that each of them looks into.
class placed_tensor {
public:
    placed_tensor(cuda_device& d, const tensor::tensor& t, stream s = cuda_device::default_stream())
        : device_(d), stream_(s), host_(t) {
        place(nodes_[0], t);
        for (std::size_t i = 0; i < tensor::max_sources; ++i) {
            if (t.sources[i] == nullptr) continue;
            place(nodes_[1 + i], *t.sources[i]);
            nodes_[0].sources[i] = &nodes_[1 + i];
        }
    }
    placed_tensor(const placed_tensor&) = delete;
    placed_tensor& operator=(const placed_tensor&) = delete;
    ~placed_tensor() {
        for (const auto& [root, data] : memory_) device_.deallocate(data, stream_);
    }

    tensor::tensor& operator*() noexcept { return nodes_[0]; }
    bool launch() { return device_.launch(nodes_[0], stream_); }
    std::vector<float> values() {
        const memory_of_result layout(host_);
        std::vector<std::byte> bytes(host_.root().bytes());
        EXPECT_TRUE(device_.copy_to_host(bytes.data(), memory_[&host_.root()], bytes.size(), stream_));
        EXPECT_TRUE(device_.synchronize(stream_));
        return layout.values(bytes.data());
    }

private:
    void place(tensor::tensor& to, const tensor::tensor& from) {
        to = from;
        const tensor::tensor& root = from.root();
        if (root.elements() == 0) return;
        void*& data = memory_[&root];
        if (data == nullptr) {
            data = device_.allocate(root.bytes(), stream_);
            EXPECT_TRUE(device_.copy_to_device(data, root.data, root.bytes(), stream_));
        }
        to.data = static_cast<std::byte*>(data) +
                  (static_cast<const std::byte*>(from.data) - static_cast<const std::byte*>(root.data));
    }

    cuda_device& device_;
    stream stream_;
    const tensor::tensor& host_;
    std::array<tensor::tensor, 1 + tensor::max_sources> nodes_{};
    std::map<const tensor::tensor*, void*> memory_;
};

std::vector<float> by_cpu(const tensor::tensor& t) {
    const memory_of_result before(t);
    tensor::compute(t);
    std::vector<float> values = before.values();
    before.restore();
    return values;
}

using cuda_kernels = cuda_on_the_fake;

/// A matmul of `columns` columns, with its result in memory.
const tensor::tensor& product(random_operations& cases, type t, std::int64_t columns, std::int64_t k = 33,
                              std::int64_t n = 20) {
    tensor::tensor* const w = cases.leaf(t, {k, n});
    return *cases.placed(matmul(cases.memory(), w, cases.leaf(type::f32, {k, columns})));
}

class cuda_operations : public cuda_on_the_fake, public ::testing::WithParamInterface<op> {};

TEST_P(cuda_operations, are_the_cpus_within_the_tolerance_and_the_same_bits_on_every_stream) {
    cuda_device device;
    const stream streams[] = {cuda_device::default_stream(), device.create_stream()};
    random_operations cases(11);
    for (int i = 0; i < 60; ++i) {
        const tensor::tensor& t = *cases.make(GetParam());
        std::vector<float> got[2];
        for (int s = 0; s < 2; ++s) {
            placed_tensor on_device(device, t, streams[s]);
            ASSERT_TRUE(on_device.launch()) << device.last_error();
            got[s] = on_device.values();
        }
        EXPECT_LE(distance(got[0], by_cpu(t)), tolerance) << "case " << i;
        EXPECT_TRUE(same_bits(got[0], got[1])) << "case " << i;
    }
    EXPECT_EQ(fake::unknown_kernel(), "");
}

INSTANTIATE_TEST_SUITE_P(each_op, cuda_operations, ::testing::ValuesIn(computing_ops),
                         [](const auto& of) { return std::string(name_of(of.param)); });

// --- views and empty tensors

TEST_F(cuda_kernels, a_view_and_an_empty_tensor_launch_nothing) {
    cuda_device device;
    random_operations cases(1);
    tensor::tensor* const empty = cases.placed(scale(cases.memory(), cases.leaf(type::f32, {0, 3}), 2));
    tensor::tensor* const seen = transpose(cases.memory(), cases.leaf(type::f32, {2, 3}));
    const std::size_t before = fake::calls("cudaLaunchKernel");
    EXPECT_TRUE(device.launch(*empty, cuda_device::default_stream()));
    EXPECT_TRUE(device.launch(*seen, cuda_device::default_stream()));
    EXPECT_EQ(fake::calls("cudaLaunchKernel"), before);
}

TEST_F(cuda_kernels, what_does_not_fit_is_refused_with_the_operation_and_the_rule) {
    cuda_device device;
    random_operations cases(1);
    placed_tensor on_device(device, *cases.make(op::silu));
    (*on_device).ne[0] += 1;
    EXPECT_FALSE(on_device.launch());
    EXPECT_NE(device.last_error().find("silu: the "), std::string_view::npos) << device.last_error();
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(cuda_kernels, a_launch_that_fails_names_kernel_and_error) {
    cuda_device device;
    random_operations cases(1);
    placed_tensor on_device(device, *cases.make(op::silu));
    fake::fail("cudaLaunchKernel", 1, cudaErrorInvalidValue);
    EXPECT_FALSE(on_device.launch());
    EXPECT_NE(device.last_error().find("alloclab_silu: cudaErrorInvalidValue"), std::string_view::npos)
        << device.last_error();
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_TRUE(on_device.launch());
}

// --- cuBLAS and what goes without

TEST_F(cuda_kernels, a_matmul_of_few_columns_reads_the_weights_as_they_are_and_one_of_many_is_cublass) {
    cuda_device device;
    random_operations cases(2);
    for (const type t : {type::f32, type::f16})
        for (const std::int64_t columns : {1, 8, 9, 40}) {
            const tensor::tensor& m = product(cases, t, columns);
            placed_tensor on_device(device, m);
            const std::size_t gemms = fake::calls(gemm), kernels = fake::calls("cudaLaunchKernel");
            ASSERT_TRUE(on_device.launch());
            EXPECT_EQ(fake::calls(gemm) - gemms, columns > 8 ? 1U : 0U) << columns;
            EXPECT_EQ(fake::calls("cudaLaunchKernel") - kernels, columns > 8 && t == type::f32 ? 0U : 1U) << columns;
            EXPECT_LE(distance(on_device.values(), by_cpu(m)), tolerance);
        }
}

TEST_F(cuda_kernels, heads_that_share_weights_are_one_call_for_each_of_these) {
    cuda_device device;
    random_operations cases(3);
    const std::map<std::int64_t, std::size_t> calls_by_heads{{3, 1}, {12, 3}};  // a batch of heads, or of their x
    for (const auto& [heads, calls] : calls_by_heads) {
        tensor::tensor* const w = cases.leaf(type::f16, {16, 10, 3});
        const tensor::tensor& m = *cases.placed(matmul(cases.memory(), w, cases.leaf(type::f32, {16, 9, heads})));
        placed_tensor on_device(device, m);
        const std::size_t before = fake::calls(gemm);
        ASSERT_TRUE(on_device.launch());
        EXPECT_EQ(fake::calls(gemm) - before, calls);
        EXPECT_LE(distance(on_device.values(), by_cpu(m)), tolerance);
    }
}

TEST_F(cuda_kernels, rows_that_overlap_go_without_cublas) {
    cuda_device device;
    random_operations cases(4);
    tensor::tensor* const all = cases.leaf(type::f32, {200});
    tensor::tensor* const x = view(cases.memory(), all, {20, 12}, {8, 96, 96}, 0);
    const tensor::tensor& m = *cases.placed(matmul(cases.memory(), cases.leaf(type::f32, {20, 5}), x));
    placed_tensor on_device(device, m);
    ASSERT_TRUE(on_device.launch());
    EXPECT_EQ(fake::calls(gemm), 0U);
    EXPECT_LE(distance(on_device.values(), by_cpu(m)), tolerance);
}

TEST_F(cuda_kernels, weights_that_are_larger_than_the_workspace_are_widened_a_part_at_a_time) {
    sim_device large(host_, 512 * mib);
    sim_device* const only[] = {&large};
    fake::install(only);
    {
        cuda_device device;
        random_operations cases(5);
        const tensor::tensor& m = product(cases, type::f16, 9, 40, 450'000);  // 68.7 MiB as f32
        placed_tensor on_device(device, m);
        ASSERT_TRUE(on_device.launch()) << device.last_error();
        EXPECT_EQ(fake::calls(gemm), 2U);
        EXPECT_LE(distance(on_device.values(), by_cpu(m)), tolerance);
    }
    EXPECT_EQ(large.usage().live, 0U);
    fake::install(both_);
}

TEST_F(cuda_kernels, where_no_workspace_is_to_be_had_a_matmul_goes_without_and_leaves_no_error) {
    cuda_device device;
    random_operations cases(6);
    const tensor::tensor& m = product(cases, type::f16, 30);
    placed_tensor on_device(device, m);
    fake::fail("cudaMallocFromPoolAsync", 1, cudaErrorMemoryAllocation);
    ASSERT_TRUE(on_device.launch());
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_EQ(fake::calls(gemm), 0U);
    EXPECT_LE(distance(on_device.values(), by_cpu(m)), tolerance);
    EXPECT_EQ(device.usage().errors, 0U);
}

TEST_F(cuda_kernels, a_matmul_can_be_captured) {
    cuda_device device;
    random_operations cases(7);
    const stream s = device.create_stream();
    const tensor::tensor& m = product(cases, type::f16, 30);
    placed_tensor on_device(device, m, s);
    ASSERT_TRUE(device.begin_capture(s));
    ASSERT_TRUE(on_device.launch()) << device.last_error();
    const cuda_graph graph = device.end_capture(s);
    ASSERT_NE(graph, cuda_graph::none);
    ASSERT_TRUE(device.launch(graph, s));
    EXPECT_LE(distance(on_device.values(), by_cpu(m)), tolerance);
}

TEST_F(cuda_kernels, products_on_two_streams_share_no_workspace) {
    cuda_device device;
    random_operations cases(8);
    const tensor::tensor& m = product(cases, type::f32, 30);
    const stream first = device.create_stream(), second = device.create_stream();
    placed_tensor one(device, m, first), other(device, m, second);
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(one.launch());
        ASSERT_TRUE(other.launch());
    }
    EXPECT_EQ(gpu_.usage().races, 0U) << gpu_.last_error();
    EXPECT_EQ(fake::calls(gemm), 40U);
}

// Whatever fails, the launch says so or has done its work, and gives its workspace back.
TEST_F(cuda_kernels, a_matmul_gives_its_workspace_back_whichever_call_fails) {
    random_operations cases(9);
    const tensor::tensor& m = product(cases, type::f16, 30);
    const std::vector<float> expected = by_cpu(m);
    bool reached_the_end = false;
    for (std::size_t nth = 1; nth < 30 && !reached_the_end; ++nth) {
        cuda_device device;
        placed_tensor on_device(device, m);
        const std::size_t live = gpu_.usage().live;
        const std::size_t before = fake::calls();
        fake::fail_any(nth, cudaErrorInvalidValue);
        const bool done = on_device.launch();
        reached_the_end = fake::calls() - before < nth;
        fake::fail_any(0, 0);
        EXPECT_EQ(done, reached_the_end) << nth;
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << nth;
        EXPECT_EQ(gpu_.usage().live, live) << nth;
        ASSERT_TRUE(on_device.launch()) << device.last_error();
        EXPECT_LE(distance(on_device.values(), expected), tolerance);
    }
    EXPECT_TRUE(reached_the_end);
}

}  // namespace
}  // namespace alloclab::device
