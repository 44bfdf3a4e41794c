#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "alloclab/tensor/kernels.hpp"

namespace alloclab::device {
namespace {

using tensor::op;
using tensor::type;
constexpr auto main_stream = sim_device::default_stream();

tensor::tensor matrix(op o, std::int64_t columns, std::int64_t rows, tensor::tensor* a = nullptr,
                      tensor::tensor* b = nullptr) {
    tensor::tensor t{};
    t.ne = {columns, rows, 1, 1};
    t.nb = {4, 4, 4, 4};
    for (std::size_t d = 1; d < 4; ++d) t.nb[d] = t.nb[d - 1] * static_cast<std::size_t>(t.ne[d - 1]);
    t.op = o;
    t.type = type::f32;
    t.sources = {a, b, nullptr};
    return t;
}

/// sum = a + b and product = a^T x sum, with data in the vectors of a host and in blocks of a device.
class sim_launch : public ::testing::Test {
protected:
    static constexpr std::int64_t n = 48;
    static constexpr std::size_t bytes = n * n * sizeof(float);

    sim_device device{1 << 20};
    std::vector<float> host_a, host_b, host_sum, host_product;
    tensor::tensor a = matrix(op::none, n, n), b = matrix(op::none, n, n), sum = matrix(op::add, n, n, &a, &b),
                   product = matrix(op::matmul, n, n, &a, &sum);

    void SetUp() override {
        std::mt19937 random{3};
        std::normal_distribution<float> noise;
        host_sum = host_product = host_a = host_b = std::vector<float>(n * n);
        for (float& x : host_a) x = noise(random);
        for (float& x : host_b) x = noise(random);
        for (tensor::tensor* t : {&a, &b, &sum, &product}) ASSERT_NE(t->data = device.allocate(bytes), nullptr);
        ASSERT_TRUE(device.copy_to_device(a.data, host_a.data(), bytes, main_stream));
        ASSERT_TRUE(device.copy_to_device(b.data, host_b.data(), bytes, main_stream));
    }
    std::vector<float> read(const tensor::tensor& t) {
        std::vector<float> values(n * n);
        EXPECT_TRUE(device.copy_to_host(values.data(), t.data, bytes, main_stream));
        return values;
    }
};

TEST_F(sim_launch, computes_the_same_bits_as_the_kernels_on_the_host) {
    ASSERT_TRUE(device.launch(sum, main_stream));
    ASSERT_TRUE(device.launch(product, main_stream));
    const std::vector<float> sum_back = read(sum), product_back = read(product);

    a.data = host_a.data(), b.data = host_b.data(), sum.data = host_sum.data(), product.data = host_product.data();
    tensor::compute(sum);
    tensor::compute(product);
    EXPECT_EQ(std::memcmp(sum_back.data(), host_sum.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(product_back.data(), host_product.data(), bytes), 0);
    EXPECT_NE(host_product, std::vector<float>(n * n)) << "nothing was computed";
}

TEST_F(sim_launch, leaves_the_tensors_as_they_are) {
    const tensor::tensor before[] = {a, b, sum};
    ASSERT_TRUE(device.launch(sum, main_stream));
    EXPECT_EQ(a.data, before[0].data);
    EXPECT_EQ(b.data, before[1].data);
    EXPECT_EQ(sum.data, before[2].data);
    EXPECT_EQ(sum.sources, before[2].sources);
}

TEST_F(sim_launch, takes_the_launch_on_the_host_and_the_roofline_on_the_stream) {
    device.synchronize();
    const nanoseconds start = device.now();
    ASSERT_TRUE(device.launch(product, main_stream));
    EXPECT_EQ(device.now(), start + device.cost().launch);
    ASSERT_TRUE(device.synchronize(main_stream));
    const nanoseconds length = device.cost().kernel_time(tensor::work_of(product));
    // the host looks while the kernel runs
    const nanoseconds waited = std::max(length, device.cost().synchronize);
    EXPECT_GT(length, 0);
    EXPECT_EQ(device.now(), start + device.cost().launch + waited);
}

TEST_F(sim_launch, a_view_launches_nothing) {
    const tensor::tensor view = matrix(op::view, n, 1, &a);
    const nanoseconds start = device.now();
    EXPECT_TRUE(device.launch(view, main_stream));
    EXPECT_EQ(device.now(), start);
    EXPECT_EQ(device.usage().count(call::launch), 0u);
}

TEST_F(sim_launch, refuses_data_that_is_not_in_a_live_block) {
    ASSERT_TRUE(device.launch(sum, main_stream));
    const std::vector<float> before = read(sum);
    const std::vector<float> other(n * n, 1.0f);
    ASSERT_TRUE(device.copy_to_device(a.data, other.data(), bytes, main_stream));
    const nanoseconds clock = device.now();
    std::size_t errors = 0;
    const auto refused = [&] {
        const bool launched = device.launch(sum, main_stream);
        return !launched && device.usage().errors == ++errors && device.now() == clock;
    };
    for (tensor::tensor* t : {&sum, &a, &b}) {
        void* const data = t->data;
        t->data = nullptr;
        EXPECT_TRUE(refused()) << "no data";
        t->data = host_a.data();
        EXPECT_TRUE(refused()) << "data on the host";
        t->data = static_cast<char*>(data) + 4;
        EXPECT_TRUE(refused()) << "reaches past the block";
        t->data = data;
    }
    EXPECT_EQ(read(sum), before) << "a refused launch computed";
    device.deallocate(b.data);
    EXPECT_FALSE(device.launch(sum, main_stream)) << "released";
    EXPECT_FALSE(device.launch(a, main_stream)) << "a leaf";
    EXPECT_FALSE(device.launch(product, static_cast<sim_device::stream>(7))) << "no such stream";
    EXPECT_EQ(device.usage().errors, errors + 3);
}

}  // namespace
}  // namespace alloclab::device
