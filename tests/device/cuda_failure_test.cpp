// The k-th call to the runtime fails, for every k of a whole session: whatever it was, nothing is lost.
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/ops.hpp"
#include "cuda_support.hpp"

namespace alloclab::device {
namespace {

struct stopped : std::runtime_error {
    using std::runtime_error::runtime_error;
};
void need(bool done) {
    if (!done) throw stopped("a call failed");
}

/// Gives the block back by one of the ways, whatever happens in between.
class held {
public:
    held(cuda_device& device, void* p, bool on_host = false) : device_(device), p_(p), on_host_(on_host) {
        need(p != nullptr);
    }
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    ~held() { on_host_ ? device_.deallocate_host(p_) : device_.deallocate(p_); }
    [[nodiscard]] void* get() const noexcept { return p_; }

private:
    cuda_device& device_;
    void* p_;
    bool on_host_;
};

/// Everything that a device does, once; `stopped`, or what a constructor throws, where something does not work out.
void session() {
    constexpr std::size_t bytes = 4096;
    cuda_device device({.ordinal = 1});
    const stream s = device.create_stream();
    const stream other = device.create_stream(stream_kind::blocking);
    const event e = device.create_event();
    need(e != event::none);
    const held host(device, device.allocate_host(bytes), true);
    const held first(device, device.allocate(bytes));
    const held second(device, device.allocate(bytes, s));
    need(device.copy_to_device(first.get(), host.get(), bytes, s));
    need(device.copy_on_device(second.get(), first.get(), bytes, s));
    need(device.record(e, s));
    need(device.wait(other, e));
    need(device.fill(second.get(), std::byte{1}, bytes, other));
    need(device.synchronize(e));
    need(device.done(e));
    need(device.synchronize(other));
    need(device.begin_capture(s));
    need(device.fill(first.get(), std::byte{2}, bytes, s));
    const cuda_graph graph = device.end_capture(s);
    need(graph != cuda_graph::none);
    need(device.launch(graph, s));
    need(device.copy_to_host(host.get(), first.get(), bytes, s));
    need(device.synchronize());
    device.destroy(graph);
    device.destroy(e);
    {
        malloc_source source;
        tensor::context c({.growing = growth{}, .no_alloc = true}, any_source(source));
        tensor::tensor* const weights = c.new_tensor(tensor::type::f32, {16, 16});
        tensor::tensor* const x = c.new_tensor(tensor::type::f32, {16, 32});
        weights->data = first.get();
        x->data = second.get();
        const held product(device, device.allocate(bytes));
        tensor::tensor* const by_cublas = tensor::matmul(c, weights, x);
        tensor::tensor* const by_kernel = tensor::silu(c, by_cublas);
        by_cublas->data = by_kernel->data = product.get();
        need(device.launch(*by_cublas, s));
        need(device.launch(*by_kernel, s));
    }
    {
        void* pooled = device.allocate(bytes, s);
        need(pooled != nullptr);
        device.deallocate(pooled, s);
    }
    need(device.synchronize(s));
    device.trim();
    need(device.available_bytes() != 0);
    cuda_region region(device, std::size_t{8} << 20);
    need(region.grow(std::size_t{4} << 20));
    region.shrink(0);
    need(region.grow(1));
    need(device.destroy(s));
}

class cuda_failure : public cuda_on_the_fake {
protected:
    /// Returns whether the session came through.
    bool session_with_failure(std::size_t kth, int error) {
        fake::install(both_);
        EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
        fake::fail_any(kth, error);
        bool through = false;
        try {
            session();
            through = true;
        } catch (const stopped&) {
        } catch (const std::bad_alloc&) {  // a stream
        } catch (const std::runtime_error&) {
        }
        fake::fail_any(0, 0);
        return through;
    }
};

TEST_F(cuda_failure, of_the_kth_call_for_every_k_leaves_nothing_behind) {
    for (const int error : {cudaErrorUnknown, cudaErrorMemoryAllocation, cudaErrorNotSupported}) {
        ASSERT_TRUE(session_with_failure(0, 0));
        const std::size_t calls = fake::calls();
        ASSERT_GT(calls, 100U);
        std::size_t stopped_sessions = 0;
        for (std::size_t k = 1; k <= calls; ++k) {
            SCOPED_TRACE("call " + std::to_string(k) + " fails with " + std::to_string(error));
            if (!session_with_failure(k, error)) ++stopped_sessions;
            EXPECT_EQ(fake::live_handles(), 0U);
            EXPECT_EQ(other_gpu_.usage().live, 0U);
            EXPECT_EQ(other_gpu_.usage().live_host_bytes, 0U);
            EXPECT_EQ(other_gpu_.usage().errors, 0U) << other_gpu_.last_error();
            EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
            EXPECT_EQ(current(), 0);
            if (HasFailure()) return;
        }
        EXPECT_GT(stopped_sessions, calls / 4) << "the failures were felt";
    }
}

TEST_F(cuda_failure, for_good_in_the_middle_is_quietly_survived_by_the_destructor) {
    for (const int error : {cudaErrorLaunchFailure, cudaErrorIllegalAddress}) {
        fake::install(both_);
        auto device = std::make_unique<cuda_device>();
        const stream s = device->create_stream();
        ASSERT_TRUE(device->record(device->create_event(), s));
        fake::break_device(error);
        EXPECT_FALSE(device->synchronize(s));
        int lines = 0;
        device->report_to([](std::string_view, void* count) noexcept { ++*static_cast<int*>(count); }, &lines);
        device.reset();
        EXPECT_EQ(lines, 0);
        EXPECT_EQ(fake::live_handles(), 0U);
    }
}

}  // namespace
}  // namespace alloclab::device
