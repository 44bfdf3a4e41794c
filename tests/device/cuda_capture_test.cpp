#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "alloclab/device/stream_pool.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/ops.hpp"
#include "cuda_support.hpp"

namespace alloclab::device {
namespace {

using ::testing::HasSubstr;

constexpr stream main_stream = cuda_device::default_stream();

class cuda_capture : public cuda_on_the_fake {
protected:
    /// Expects the last call to have been refused with the advice.
    void expect_advice(const char* function) {
        EXPECT_THAT(std::string(device.last_error()), HasSubstr(function));
        EXPECT_THAT(std::string(device.last_error()), HasSubstr("reserve what is needed before the capture begins"));
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    }
    std::byte first_byte_of(const void* p) {
        std::byte got{};
        EXPECT_TRUE(device.copy_to_host(&got, p, 1, s));
        EXPECT_TRUE(device.synchronize(s));
        return got;
    }

    cuda_device device;
    stream s = device.create_stream();
};

TEST_F(cuda_capture, refuses_what_would_spoil_it_with_advice_and_stays_usable) {
    const event e = device.create_event();
    ASSERT_TRUE(device.record(e, s));
    void* p = device.allocate(mib);
    ASSERT_TRUE(device.begin_capture(s));
    EXPECT_TRUE(device.captures());
    EXPECT_TRUE(device.fill(p, std::byte{1}, mib, s));

    EXPECT_EQ(device.allocate(mib), nullptr);
    expect_advice("cudaMalloc is refused");
    EXPECT_EQ(device.allocate(mib, s), nullptr);
    expect_advice("cudaMallocFromPoolAsync");
    EXPECT_EQ(device.allocate_host(mib), nullptr);
    expect_advice("cudaHostAlloc");
    EXPECT_FALSE(device.done(e));
    expect_advice("cudaEventQuery");
    EXPECT_FALSE(device.synchronize(e));
    expect_advice("cudaEventSynchronize");
    EXPECT_FALSE(device.synchronize(s));
    expect_advice("cudaStreamSynchronize");
    EXPECT_FALSE(device.synchronize());
    expect_advice("cudaDeviceSynchronize");
    device.trim();
    expect_advice("cudaMemPoolTrimTo");
    EXPECT_FALSE(device.destroy(s));
    expect_advice("cudaStreamDestroy");
    EXPECT_THROW(cuda_region(device, mib), std::runtime_error);
    expect_advice("cuMemAddressReserve");
    EXPECT_FALSE(device.wait(s, e)) << "recorded before the capture";
    EXPECT_FALSE(device.begin_capture(s)) << "it is captured already";
    EXPECT_EQ(device.end_capture(device.create_stream()), cuda_graph::none) << "that one is not captured";

    EXPECT_TRUE(device.fill(p, std::byte{2}, 1, s));
    const cuda_graph graph = device.end_capture(s);
    ASSERT_NE(graph, cuda_graph::none) << device.last_error();
    EXPECT_FALSE(device.captures());
    EXPECT_TRUE(device.fill(p, std::byte{0}, mib, s));
    EXPECT_EQ(first_byte_of(p), std::byte{0}) << "nothing of it was done before its launch";
    EXPECT_TRUE(device.launch(graph, s));
    EXPECT_EQ(first_byte_of(p), std::byte{2});
    device.destroy(graph);
    EXPECT_FALSE(device.launch(graph, s)) << "destroyed";
    device.deallocate(p);
    device.destroy(e);
}

TEST_F(cuda_capture, takes_an_eval_whose_memory_was_reserved_before) {
    stream_pool<cuda_device> pool(device);
    constexpr std::size_t bytes = 1024 * sizeof(float);
    void* reserved = pool.allocate(bytes, s);
    ASSERT_TRUE(pool.deallocate(reserved, s));
    malloc_source source;
    tensor::context c({.growing = growth{}, .no_alloc = true}, any_source(source));
    tensor::tensor* const x = c.new_tensor(tensor::type::f32, {1024});
    tensor::tensor* const y = tensor::add(c, x, x);
    x->data = device.allocate(bytes);
    std::vector<float> values(1024);

    ASSERT_TRUE(device.begin_capture(s));
    y->data = pool.allocate(bytes, s);
    EXPECT_EQ(y->data, reserved);
    EXPECT_TRUE(device.launch(*y, s)) << device.last_error();
    EXPECT_EQ(pool.allocate(mib, s), nullptr) << "that needs the runtime";
    expect_advice("cudaMalloc");
    const cuda_graph graph = device.end_capture(s);
    ASSERT_NE(graph, cuda_graph::none) << device.last_error();

    for (const float value : {1.5F, -4.0F}) {
        std::fill(values.begin(), values.end(), value);
        EXPECT_TRUE(device.copy_to_device(x->data, values.data(), bytes, s));
        EXPECT_TRUE(device.launch(graph, s));
        EXPECT_TRUE(device.copy_to_host(values.data(), y->data, bytes, s));
        EXPECT_TRUE(device.synchronize(s));
        EXPECT_EQ(values, std::vector<float>(1024, 2 * value));
    }
    device.deallocate(x->data);
}

TEST_F(cuda_capture, puts_releases_off_until_it_ends) {
    void* blocks[] = {device.allocate(mib), device.allocate(mib, s)};
    void* h = device.allocate_host(mib);
    ASSERT_TRUE(device.synchronize(s));
    ASSERT_TRUE(device.begin_capture(s));
    device.deallocate(blocks[0]);
    expect_advice("cudaFree");
    device.deallocate(blocks[1], s);
    expect_advice("cudaFreeAsync");
    device.deallocate_host(h);
    expect_advice("cudaFreeHost");
    EXPECT_EQ(device.usage().live, 0U) << "their users have given them back";
    EXPECT_EQ(gpu_.usage().live, 2U);
    const cuda_graph graph = device.end_capture(s);
    EXPECT_NE(graph, cuda_graph::none);
    EXPECT_EQ(device.usage().live, 0U);
    EXPECT_EQ(device.usage().live_bytes, 0U);
    EXPECT_EQ(device.usage().live_host_bytes, 0U);
    EXPECT_EQ(gpu_.usage().live, 0U);
    EXPECT_EQ(gpu_.usage().live_host_bytes, 0U);
}

TEST_F(cuda_capture, takes_in_a_stream_that_waits_for_an_event_of_its_own) {
    const stream other = device.create_stream();
    const event fork = device.create_event();
    const event join = device.create_event();
    void* p = device.allocate(2 * mib);
    auto* const second = static_cast<std::byte*>(p) + mib;
    ASSERT_TRUE(device.begin_capture(s));
    EXPECT_TRUE(device.record(fork, s));
    EXPECT_TRUE(device.wait(other, fork));
    EXPECT_TRUE(device.fill(second, std::byte{4}, mib, other));
    EXPECT_EQ(device.allocate(mib, other), nullptr) << "that one is captured as well";
    EXPECT_TRUE(device.record(join, other));
    EXPECT_TRUE(device.fill(p, std::byte{3}, mib, s));
    EXPECT_TRUE(device.wait(s, join));
    const cuda_graph graph = device.end_capture(s);
    ASSERT_NE(graph, cuda_graph::none) << device.last_error();
    EXPECT_TRUE(device.launch(graph, s));
    EXPECT_EQ(first_byte_of(p), std::byte{3});
    EXPECT_EQ(first_byte_of(second), std::byte{4});
    device.deallocate(p);
}

TEST_F(cuda_capture, is_not_spoilt_by_the_default_stream) {
    EXPECT_FALSE(device.begin_capture(main_stream));
    const stream blocking = device.create_stream(stream_kind::blocking);
    void* p = device.allocate(mib);
    ASSERT_TRUE(device.begin_capture(blocking));
    EXPECT_FALSE(device.fill(p, std::byte{1}, mib, main_stream));
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_EQ(device.allocate(mib, main_stream), nullptr);
    EXPECT_TRUE(device.fill(p, std::byte{1}, mib, blocking));
    EXPECT_NE(device.end_capture(blocking), cuda_graph::none) << device.last_error();
    device.deallocate(p);
}

TEST_F(cuda_capture, begun_by_another_on_an_adopted_stream_is_respected) {
    cudaStream_t theirs = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking), cudaSuccess);
    const stream adopted = device.adopt(theirs);
    EXPECT_EQ(device.native(adopted), theirs);
    void* p = device.allocate(mib, adopted);
    ASSERT_NE(p, nullptr);
    ASSERT_TRUE(device.synchronize(adopted));
    ASSERT_EQ(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_TRUE(device.captures());
    EXPECT_EQ(device.allocate(mib), nullptr);
    expect_advice("cudaMalloc");
    EXPECT_EQ(device.allocate(mib, adopted), nullptr);
    expect_advice("cudaMallocFromPoolAsync");
    EXPECT_TRUE(device.fill(p, std::byte{1}, mib, adopted));
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(theirs, &graph), cudaSuccess) << "it stays usable";
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    void* q = device.allocate(mib);
    EXPECT_NE(q, nullptr);
    device.deallocate(q);
    device.deallocate(p);
    EXPECT_TRUE(device.destroy(adopted));
    EXPECT_EQ(cudaStreamDestroy(theirs), cudaSuccess) << "its owner's to destroy";
}

TEST_F(cuda_capture, left_open_ends_with_the_device) {
    ASSERT_TRUE(device.begin_capture(s));
    void* p = device.native(s);
    EXPECT_NE(p, nullptr);
}  // the fixture finds no handle left

}  // namespace
}  // namespace alloclab::device
