// The fake of the CUDA runtime behaves as the runtime does where its callers depend on it: errors, handles, memory.
#include "fake_cuda.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <thread>

#include "fake_cuda_fixture.hpp"

namespace alloclab::device {
namespace {

// --- errors

TEST_F(fake_cuda, without_a_device_every_call_says_so) {
    fake::install({});
    int n = -1;
    void* p = nullptr;
    EXPECT_EQ(cudaGetDeviceCount(&n), cudaErrorNoDevice);
    EXPECT_EQ(n, -1) << "the runtime leaves it untouched";
    EXPECT_EQ(cudaMalloc(&p, 1), cudaErrorNoDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNoDevice);

    fake::answer_first_call_with(cudaErrorInsufficientDriver);
    EXPECT_EQ(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
    EXPECT_EQ(cudaSetDevice(0), cudaErrorInsufficientDriver);
}

TEST_F(fake_cuda, the_last_error_stays_until_it_is_asked_for) {
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(fake_cuda, each_thread_has_its_last_error_and_its_current_device) {
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
    std::thread([] {
        int current = -1;
        EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
        EXPECT_EQ(current, 0);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    }).join();
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(fake_cuda, work_that_is_not_through_is_no_error) {
    cudaStream_t s = make_stream();
    cudaEvent_t e = make_event();
    void* const p = allocate(capacity / 2);
    EXPECT_EQ(cudaMemsetAsync(p, 0, capacity / 2, s), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(e, s), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(e), cudaErrorNotReady);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(e), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(e), cudaSuccess);
    EXPECT_EQ(cudaFree(p), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(e), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
}

TEST_F(fake_cuda, the_nth_call_of_a_function_fails_and_no_other) {
    fake::fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    void* const before = allocate(512);
    void* p = before;
    EXPECT_EQ(cudaMalloc(&p, 512), cudaErrorMemoryAllocation);
    void* const after = allocate(512);
    EXPECT_EQ(first.usage().live, 2u);
    EXPECT_EQ(fake::calls("cudaMalloc"), 3u);
    EXPECT_EQ(cudaFree(before), cudaSuccess);
    EXPECT_EQ(cudaFree(after), cudaSuccess);
}

TEST_F(fake_cuda, the_nth_call_of_any_fails_and_no_other) {
    const std::size_t before = fake::calls();
    fake::fail_any(2, cudaErrorUnknown);
    int n = 0;
    EXPECT_EQ(cudaGetDeviceCount(&n), cudaSuccess);
    EXPECT_EQ(cudaGetDevice(&n), cudaErrorUnknown);
    EXPECT_EQ(cudaGetDevice(&n), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
    EXPECT_EQ(fake::calls() - before, 3u) << "what tells of errors is not counted";
}

TEST_F(fake_cuda, a_call_that_gives_back_does_so_though_it_fails) {
    cudaStream_t s = make_stream();
    cudaEvent_t e = make_event();
    void* const p = allocate(512);
    fake::fail("cudaFree", 1, cudaErrorLaunchFailure);
    fake::fail("cudaEventDestroy", 1, cudaErrorLaunchFailure);
    fake::fail("cudaStreamDestroy", 1, cudaErrorLaunchFailure);
    EXPECT_EQ(cudaFree(p), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaEventDestroy(e), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaStreamDestroy(s), cudaErrorLaunchFailure);
    EXPECT_EQ(first.usage().live, 0u);
    EXPECT_EQ(first.usage().live_events, 0u);
    EXPECT_EQ(first.usage().live_streams, 0u);
}

TEST_F(fake_cuda, an_asynchronous_error_comes_out_where_a_call_waits_and_stays) {
    cudaStream_t s = make_stream();
    fake::break_device(cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    void* const p = allocate(512);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, 512), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "asking does not clear it";
    EXPECT_EQ(cudaFree(p), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaStreamDestroy(s), cudaErrorIllegalAddress);
    EXPECT_EQ(first.usage().live, 0u) << "what was given back is";
}

TEST_F(fake_cuda, once_unloaded_every_call_says_so_and_does_nothing) {
    void* const p = allocate(512);
    fake::unload();
    int n = 0;
    EXPECT_EQ(cudaGetDeviceCount(&n), cudaErrorCudartUnloading);
    EXPECT_EQ(cudaFree(p), cudaErrorCudartUnloading);
    EXPECT_EQ(first.usage().live, 1u);
}

TEST_F(fake_cuda, a_device_that_unloads_by_itself_unloads_the_runtime) {
    second.unload();
    EXPECT_EQ(cudaSetDevice(0), cudaErrorCudartUnloading);
}

TEST_F(fake_cuda, a_forked_child_has_no_runtime) {
    const pid_t child = ::fork();
    if (child == 0) {
        void* p = nullptr;
        ::_exit(cudaMalloc(&p, 1) == cudaErrorInitializationError ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess) << "the parent goes on";
}

TEST_F(fake_cuda, errors_have_the_names_of_the_runtime) {
    EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

// --- handles

TEST_F(fake_cuda, destroyed_handles_are_refused) {
    cudaStream_t s = make_stream();
    cudaEvent_t e = make_event();
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(e, s), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventDestroy(e), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(e), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventQuery(e), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(first.usage().errors, 0u) << "the simulator never saw them";
}

TEST_F(fake_cuda, a_streams_handle_comes_again_after_it_was_destroyed) {
    cudaStream_t s = make_stream();
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
    EXPECT_EQ(make_stream(), s);
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
}

TEST_F(fake_cuda, each_thread_has_a_default_stream_of_its_own) {
    void* const p = allocate(1024);
    fill(p, 8, 1, cudaStreamPerThread);
    std::thread([&] { fill(p, 8, 2, cudaStreamPerThread); }).join();
    EXPECT_EQ(first.usage().races, 1u);
    fill(p, 8, 3, cudaStreamLegacy);  // waits for both, which are blocking streams
    EXPECT_EQ(first.usage().races, 1u);
    EXPECT_EQ(cudaFree(p), cudaSuccess);
}

// --- several devices

TEST_F(fake_cuda, memory_is_freed_whichever_device_is_current) {
    void* const p = allocate(512);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    void* const q = allocate(512);
    EXPECT_EQ(first.usage().live, 1u);
    EXPECT_EQ(second.usage().live, 1u);
    EXPECT_EQ(cudaFree(p), cudaSuccess);
    EXPECT_EQ(first.usage().live, 0u);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaFree(q), cudaSuccess);
    EXPECT_EQ(second.usage().live, 0u);
}

TEST_F(fake_cuda, an_event_is_recorded_on_its_own_device_and_waited_for_on_any) {
    cudaStream_t here = make_stream();
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    cudaStream_t there = make_stream();
    cudaEvent_t e = make_event();
    EXPECT_EQ(cudaEventRecord(e, here), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(e, there), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(here, e, 0), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(here), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(there), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(e), cudaSuccess);
}

TEST_F(fake_cuda, a_kernel_goes_to_a_stream_of_the_current_device_alone) {
    cudaStream_t s = make_stream();
    void* const p = allocate(512);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    fill(p, 8, 1, s);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
    EXPECT_EQ(cudaFree(p), cudaSuccess);
}

// --- memory

TEST_F(fake_cuda, a_full_device_answers_out_of_memory_also_below_what_it_reported) {
    void* p = &host;
    EXPECT_EQ(cudaMalloc(&p, capacity + 1), cudaErrorMemoryAllocation);
    EXPECT_EQ(p, nullptr);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    first.refuse_beyond(capacity / 2);
    std::size_t available = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
    EXPECT_EQ(available, capacity);
    EXPECT_EQ(total, capacity);
    EXPECT_EQ(cudaMalloc(&p, available), cudaErrorMemoryAllocation);
}

TEST_F(fake_cuda, a_fault_of_the_simulator_comes_with_its_code) {
    first.inject({.at = call::allocate, .code = cudaErrorECCUncorrectable});
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, 512), cudaErrorECCUncorrectable);
}

TEST_F(fake_cuda, what_is_not_the_start_of_a_live_block_is_not_freed) {
    auto* const p = static_cast<std::byte*>(allocate(1024));
    EXPECT_EQ(cudaFree(p + 512), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(&host), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(p), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(p), cudaSuccess);
    EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    EXPECT_EQ(first.usage().errors, 0u);
}

TEST_F(fake_cuda, page_locked_memory_is_a_handle_of_its_own) {
    void* p = nullptr;
    EXPECT_EQ(cudaHostAlloc(&p, 4096, cudaHostAllocDefault), cudaSuccess);
    EXPECT_EQ(fake::live_handles(), 1u);
    EXPECT_EQ(first.usage().live_host_bytes, 4096u);
    EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(p), cudaSuccess);
    EXPECT_EQ(first.usage().live_host_bytes, 0u);
}

TEST_F(fake_cuda, memory_of_the_caller_is_page_locked_until_it_is_given_back_as_such) {
    std::array<std::byte, 4096> own{};
    EXPECT_EQ(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault), cudaSuccess);
    EXPECT_EQ(cudaHostRegister(own.data() + 8, 8, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
    EXPECT_EQ(fake::live_handles(), 1u);
    EXPECT_EQ(cudaFreeHost(own.data()), cudaErrorInvalidValue);
    EXPECT_EQ(cudaHostUnregister(own.data()), cudaSuccess);
    EXPECT_EQ(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered);
}

TEST_F(fake_cuda, copies_go_by_the_addresses_and_refuse_a_direction_that_is_not_theirs) {
    const std::array<float, 4> from{1, 2, 3, 4};
    void* const p = allocate(sizeof from);
    void* const q = allocate(sizeof from);
    EXPECT_EQ(cudaMemcpyAsync(p, from.data(), sizeof from, cudaMemcpyDefault, nullptr), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(q, p, sizeof from, cudaMemcpyDeviceToDevice, nullptr), cudaSuccess);
    EXPECT_EQ(read(q, 4, nullptr), std::vector<float>(from.begin(), from.end()));
    EXPECT_EQ(cudaMemcpyAsync(q, from.data(), sizeof from, cudaMemcpyDeviceToHost, nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpyAsync(q, from.data(), 4096, cudaMemcpyHostToDevice, nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(p), cudaSuccess);
    EXPECT_EQ(cudaFree(q), cudaSuccess);
}

TEST_F(fake_cuda, a_pool_keeps_up_to_its_threshold_and_trims) {
    const cudaMemPoolProps properties{.allocType = cudaMemAllocationTypePinned,
                                      .handleTypes = cudaMemHandleTypeNone,
                                      .location = {.type = cudaMemLocationTypeDevice, .id = 0},
                                      .win32SecurityAttributes = nullptr,
                                      .maxSize = 0,
                                      .usage = 0,
                                      .reserved = {}};
    cudaStream_t s = make_stream();
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
    std::uint64_t keep = ~std::uint64_t{0};
    EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), cudaSuccess);

    void* p = nullptr;
    EXPECT_EQ(cudaMallocFromPoolAsync(&p, 1u << 20, pool, s), cudaSuccess);
    std::uint64_t used = 0, reserved = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
    EXPECT_EQ(used, 1u << 20);
    EXPECT_EQ(cudaFreeAsync(p, s), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), cudaSuccess);
    EXPECT_EQ(reserved, 1u << 20);

    EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), cudaSuccess);
    EXPECT_EQ(reserved, 0u);
    EXPECT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
    EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
}

}  // namespace
}  // namespace alloclab::device
