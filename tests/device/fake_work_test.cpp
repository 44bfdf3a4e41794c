// What the fake of the CUDA runtime does with kernels, captures, graphs, the driver's virtual memory and cuBLAS.
#include <cublas_v2.h>
#include <cuda.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <thread>

#include "fake_cuda_fixture.hpp"

namespace alloclab::device {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class fake_work : public fake_cuda {
protected:
    cudaStream_t s = nullptr;
    cudaStream_t other = nullptr;
    void* p = nullptr;

    void SetUp() override {
        fake_cuda::SetUp();
        s = make_stream();
        other = make_stream();
        p = allocate(1024);
    }
    void TearDown() override {
        EXPECT_EQ(cudaFree(p), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
        fake_cuda::TearDown();
    }
    static cudaGraphExec_t instantiate(cudaGraph_t graph) {
        cudaGraphExec_t executable = nullptr;
        EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
        return executable;
    }
    /// What became of the capture of `s`.
    cudaError_t end_capture() const {
        cudaGraph_t graph = nullptr;
        const cudaError_t e = cudaStreamEndCapture(s, &graph);
        EXPECT_EQ(graph == nullptr, e != cudaSuccess);
        if (graph != nullptr) {
            EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
        }
        return e;
    }
    void begin_capture(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) const {
        EXPECT_EQ(cudaStreamBeginCapture(s, mode), cudaSuccess);
    }
};

// --- kernels

TEST_F(fake_work, a_launched_kernel_does_its_work_in_the_streams_order) {
    fill(p, 4, 1, s);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    fill(p, 2, 7, s);
    EXPECT_THAT(read(p, 4, s), ElementsAre(7, 7, 1, 1));
    EXPECT_EQ(first.usage().races, 0u);
}

TEST_F(fake_work, a_missing_wait_between_two_kernels_is_a_race_with_the_kernels_name) {
    fill(p, 4, 1, s);
    fill(p, 4, 2, other);
    EXPECT_EQ(first.usage().races, 1u);
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_THAT(reports[0], HasSubstr("alloclab_test_fill"));
}

TEST_F(fake_work, an_event_between_two_kernels_is_enough) {
    cudaEvent_t e = make_event();
    fill(p, 4, 1, s);
    EXPECT_EQ(cudaEventRecord(e, s), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other, e, 0), cudaSuccess);
    fill(p, 4, 2, other);
    EXPECT_EQ(first.usage().races, 0u);
    EXPECT_EQ(cudaEventDestroy(e), cudaSuccess);
}

TEST_F(fake_work, a_kernel_takes_the_time_of_its_traffic) {
    constexpr std::size_t bytes = 32u << 20;
    void* const large = allocate(bytes);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
    const nanoseconds before = first.now();
    fill(large, static_cast<int>(bytes / sizeof(float)), 1, s);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
    EXPECT_GE(first.now() - before, first.cost().kernel_time({.flops = 0, .bytes = bytes}));
    EXPECT_EQ(cudaFree(large), cudaSuccess);
}

TEST_F(fake_work, a_kernel_without_an_emulation_is_refused_and_named) {
    launch_unknown(s);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
    EXPECT_EQ(fake::unknown_kernel(), "alloclab_test_unknown");
}

TEST_F(fake_work, a_grid_that_no_device_has_is_refused) {
    launch_fill(0, 32, s, {static_cast<float*>(p), 1}, 1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    launch_fill(1, 1025, s, {static_cast<float*>(p), 1}, 1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    launch_fill(dim3(1, 65536), 1, s, {static_cast<float*>(p), 1}, 1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST_F(fake_work, a_kernel_that_leaves_its_block_breaks_the_device) {
    fill(p, 1000, 1, s);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the launch itself is good";
    EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    fake::install({});  // nothing else is of use now
    sim_device* const one[] = {&first};
    fake::install(one);
    s = make_stream();
    other = make_stream();
    p = allocate(16);
}

// --- captures and graphs

TEST_F(fake_work, what_is_captured_is_done_by_each_launch_of_its_graph) {
    fill(p, 4, 1, s);
    begin_capture();
    fill(p, 2, 5, s);
    EXPECT_EQ(cudaMemsetAsync(static_cast<float*>(p) + 3, 0, sizeof(float), s), cudaSuccess);
    cudaStreamCaptureStatus status{};
    EXPECT_EQ(cudaStreamIsCapturing(s, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
    EXPECT_EQ(cudaStreamIsCapturing(s, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_THAT(read(p, 4, s), ElementsAre(1, 1, 1, 1));

    cudaGraphExec_t executable = instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(executable, s), cudaSuccess);
    EXPECT_THAT(read(p, 4, s), ElementsAre(5, 5, 1, 0));
    fill(p, 4, 2, s);
    EXPECT_EQ(cudaGraphLaunch(executable, s), cudaSuccess);
    EXPECT_THAT(read(p, 4, s), ElementsAre(5, 5, 2, 0));
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(executable, s), cudaErrorInvalidValue);
}

TEST_F(fake_work, a_graph_races_with_other_streams_each_time_it_is_launched) {
    begin_capture();
    fill(p, 4, 1, s);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
    cudaGraphExec_t executable = instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(executable, s), cudaSuccess);
    EXPECT_EQ(first.usage().races, 0u);
    EXPECT_EQ(cudaGraphLaunch(executable, other), cudaSuccess);
    EXPECT_EQ(first.usage().races, 1u);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(fake_work, a_stream_joins_a_capture_by_an_event_of_it) {
    cudaEvent_t fork = make_event();
    cudaEvent_t join = make_event();
    begin_capture();
    EXPECT_EQ(cudaEventRecord(fork, s), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other, fork, 0), cudaSuccess);
    fill(p, 4, 3, other);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
    EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);

    begin_capture();
    EXPECT_EQ(cudaEventRecord(fork, s), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other, fork, 0), cudaSuccess);
    fill(p, 4, 3, other);
    EXPECT_EQ(cudaEventRecord(join, other), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(s, join, 0), cudaSuccess);
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
    cudaGraphExec_t executable = instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(executable, s), cudaSuccess);
    EXPECT_THAT(read(p, 4, s), Each(3));
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
}

TEST_F(fake_work, what_a_capture_forbids_spoils_it) {
    cudaEvent_t e = make_event();
    EXPECT_EQ(cudaEventRecord(e, other), cudaSuccess);
    void* made = nullptr;
    const auto spoils = [&](cudaError_t with, auto does) {
        begin_capture();
        EXPECT_EQ(does(), with);
        EXPECT_EQ(cudaMemsetAsync(p, 0, 4, s), cudaErrorStreamCaptureInvalidated);
        EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
    };
    spoils(cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&made, 512); });
    spoils(cudaErrorStreamCaptureUnsupported, [&] { return cudaFree(p); });
    spoils(cudaErrorStreamCaptureUnsupported, [&] { return cudaEventQuery(e); });
    spoils(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(other); });
    spoils(cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); });
    spoils(cudaErrorStreamCaptureIsolation, [&] { return cudaStreamWaitEvent(s, e, 0); });
    EXPECT_EQ(first.usage().live, 1u) << "nothing was done";
    EXPECT_EQ(cudaEventDestroy(e), cudaSuccess);
}

TEST_F(fake_work, the_mode_of_a_thread_and_of_a_capture_say_what_is_forbidden) {
    void* made = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    begin_capture();
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cudaMalloc(&made, 512), cudaSuccess);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(end_capture(), cudaSuccess);

    begin_capture(cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(cudaFree(made), cudaSuccess);
    EXPECT_EQ(end_capture(), cudaSuccess);

    begin_capture(cudaStreamCaptureModeThreadLocal);
    std::thread([&] { EXPECT_EQ(cudaMalloc(&made, 512), cudaSuccess); }).join();
    EXPECT_EQ(end_capture(), cudaSuccess);
    begin_capture(cudaStreamCaptureModeGlobal);
    std::thread([&] { EXPECT_EQ(cudaFree(made), cudaErrorStreamCaptureUnsupported); }).join();
    EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaFree(made), cudaSuccess);
}

TEST_F(fake_work, a_captured_event_cannot_be_asked_for_until_it_is_recorded_again) {
    cudaEvent_t e = make_event();
    begin_capture(cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(cudaEventRecord(e, s), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(e), cudaErrorCapturedEvent);
    EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaEventSynchronize(e), cudaErrorCapturedEvent);
    EXPECT_EQ(cudaEventRecord(e, s), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(e), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(e), cudaSuccess);
}

TEST_F(fake_work, the_legacy_stream_spoils_the_capture_of_a_blocking_stream_alone) {
    begin_capture();
    EXPECT_EQ(cudaMemsetAsync(p, 0, 4, nullptr), cudaSuccess);
    EXPECT_EQ(end_capture(), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
    s = make_stream(cudaStreamDefault);
    cudaStreamCaptureStatus status{};
    begin_capture();
    EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
    EXPECT_EQ(cudaMemsetAsync(p, 0, 4, s), cudaSuccess) << "asking does not spoil it";
    EXPECT_EQ(cudaMemsetAsync(p, 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
    EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
}

// --- the driver's virtual memory

template <class F>
auto entry(const char* name, F) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status{};
    EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status), cudaSuccess);
    EXPECT_EQ(status, cudaDriverEntryPointSuccess);
    return reinterpret_cast<F>(found);
}
#define ENTRY(function) const auto function = entry(#function, static_cast<decltype(&::function)>(nullptr))

TEST_F(fake_work, reserved_addresses_grow_granule_by_granule_and_hold_what_was_there) {
    ENTRY(cuMemGetAllocationGranularity);
    ENTRY(cuMemAddressReserve);
    ENTRY(cuMemAddressFree);
    ENTRY(cuMemCreate);
    ENTRY(cuMemRelease);
    ENTRY(cuMemMap);
    ENTRY(cuMemUnmap);
    ENTRY(cuMemSetAccess);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    const CUmemAccessDesc access{.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    std::size_t granule = 0;
    ASSERT_EQ(cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);

    std::size_t before = 0, after = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
    CUdeviceptr base = 0;
    ASSERT_EQ(cuMemAddressReserve(&base, 8 * granule, 0, 0, 0), CUDA_SUCCESS);
    const auto grow = [&](std::size_t at) {
        CUmemGenericAllocationHandle memory = 0;
        EXPECT_EQ(cuMemCreate(&memory, granule, &properties, 0), CUDA_SUCCESS);
        EXPECT_EQ(cuMemMap(base + at * granule, granule, 0, memory, 0), CUDA_SUCCESS);
        EXPECT_EQ(cuMemRelease(memory), CUDA_SUCCESS);
    };
    const auto set = [&](std::size_t offset, std::size_t bytes) {
        return cudaMemsetAsync(reinterpret_cast<std::byte*>(base) + offset, 1, bytes, s);
    };
    grow(0);
    EXPECT_EQ(set(0, granule), cudaErrorInvalidValue) << "access has not been given";
    EXPECT_EQ(cuMemSetAccess(base, granule, &access, 1), CUDA_SUCCESS);
    EXPECT_EQ(set(0, granule), cudaSuccess);
    EXPECT_EQ(set(0, granule + 1), cudaErrorInvalidValue);
    grow(1);
    EXPECT_EQ(cuMemSetAccess(base + granule, granule, &access, 1), CUDA_SUCCESS);
    EXPECT_EQ(set(granule - 4, 8), cudaSuccess) << "over the seam";
    EXPECT_EQ(cuMemSetAccess(base, 3 * granule, &access, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
    EXPECT_EQ(before - after, 2 * granule);
    EXPECT_EQ(fake::live_handles(), 2u + 1 + 2) << "streams, a region, memory that is mapped";

    EXPECT_EQ(cuMemAddressFree(base, 8 * granule), CUDA_ERROR_INVALID_VALUE) << "still mapped";
    EXPECT_EQ(cuMemUnmap(base, 2 * granule), CUDA_SUCCESS);
    EXPECT_EQ(set(0, 4), cudaErrorInvalidValue);
    EXPECT_EQ(cuMemAddressFree(base, 8 * granule), CUDA_SUCCESS);
    static_cast<void>(cudaGetLastError());
}

TEST_F(fake_work, memory_for_a_region_ends_with_the_devices) {
    ENTRY(cuMemCreate);
    ENTRY(cuMemRelease);
    CUmemAllocationProp properties{};
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    std::vector<CUmemGenericAllocationHandle> all;
    CUmemGenericAllocationHandle one = 0;
    CUresult last = CUDA_SUCCESS;
    while (all.size() < 100 && (last = cuMemCreate(&one, 8u << 20, &properties, 0)) == CUDA_SUCCESS) all.push_back(one);
    EXPECT_EQ(last, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(all.size(), capacity / (8u << 20) - 1);
    for (const CUmemGenericAllocationHandle handle : all) EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(one), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(fake_work, a_driver_function_that_it_has_not_is_not_found) {
    void* found = &host;
    cudaDriverEntryPointQueryResult status{};
    EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNothing", &found, 12000, cudaEnableDefault, &status), cudaSuccess);
    EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
    EXPECT_EQ(found, nullptr);
}

// --- cuBLAS

class fake_cublas : public fake_work {
protected:
    cublasHandle_t handle = nullptr;
    const float one = 1, zero = 0;

    void SetUp() override {
        fake_work::SetUp();
        ASSERT_EQ(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
        ASSERT_EQ(cublasSetStream_v2(handle, s), CUBLAS_STATUS_SUCCESS);
    }
    void TearDown() override {
        EXPECT_EQ(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
        fake_work::TearDown();
    }
};

// In columns: a is 2 x 3, b 3 x 2.
TEST_F(fake_cublas, a_product_is_right_for_either_layout_of_its_operands) {
    const std::array<float, 12> values{1, 2, 3, 4, 5, 6, 1, 0, 2, 0, 1, 1};
    EXPECT_EQ(cudaMemcpyAsync(p, values.data(), sizeof values, cudaMemcpyHostToDevice, s), cudaSuccess);
    auto* const a = static_cast<float*>(p);
    float* const c = a + 16;
    EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, a, 2, a + 6, 3, &zero, c, 2),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_THAT(read(c, 4, s), ElementsAre(11, 14, 8, 10));
    // The same memory as 3 x 2 and 2 x 3, both transposed.
    EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_T, CUBLAS_OP_T, 2, 2, 3, &one, a, 3, a + 6, 2, &one, c, 2),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_THAT(read(c, 4, s), ElementsAre(11 + 8, 14 + 20, 8 + 3, 10 + 6));
}

TEST_F(fake_cublas, a_batch_is_one_product_after_the_other) {
    std::array<float, 24> values{};
    std::iota(values.begin(), values.end(), 1.0f);
    EXPECT_EQ(cudaMemcpyAsync(p, values.data(), sizeof values, cudaMemcpyHostToDevice, s), cudaSuccess);
    auto* const a = static_cast<float*>(p);
    float* const c = a + 32;
    EXPECT_EQ(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, a, 1, 2, a + 10, 2, 0, &zero,
                                        c, 1, 1, 3),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_THAT(read(c, 3, s), ElementsAre(1 * 11 + 2 * 12, 3 * 11 + 4 * 12, 5 * 11 + 6 * 12));
}

TEST_F(fake_cublas, what_lies_in_the_result_is_not_read_where_it_counts_for_nothing) {
    EXPECT_EQ(cudaMemsetAsync(p, 0xff, 16, s), cudaSuccess);  // NaNs
    auto* const c = static_cast<float*>(p);
    EXPECT_EQ(cudaMemsetAsync(c + 4, 0, 16, s), cudaSuccess);
    EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, c + 4, 1, c + 5, 1, &zero, c, 1),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_THAT(read(c, 1, s), ElementsAre(0));
}

TEST_F(fake_cublas, a_workspace_that_two_streams_share_is_a_race) {
    auto* const a = static_cast<float*>(p);
    void* const workspace = allocate(4096);
    const auto product = [&](cudaStream_t on, std::ptrdiff_t to) {
        EXPECT_EQ(cublasSetStream_v2(handle, on), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(cublasSetWorkspace_v2(handle, workspace, 4096), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, 1, a, 1, &zero, a + to, 1),
                  CUBLAS_STATUS_SUCCESS);
    };
    product(s, 1);
    EXPECT_EQ(first.usage().races, 0u);
    product(other, 2);
    EXPECT_EQ(first.usage().races, 1u);
    EXPECT_EQ(cudaFree(workspace), cudaSuccess);
}

TEST_F(fake_cublas, a_failure_has_the_code_that_was_asked_for_or_that_of_its_cause) {
    cublasHandle_t more = nullptr;
    fake::fail("cublasCreate_v2", 1, CUBLAS_STATUS_ARCH_MISMATCH);
    EXPECT_EQ(cublasCreate_v2(&more), CUBLAS_STATUS_ARCH_MISMATCH);
    fake::fail_any(1, cudaErrorMemoryAllocation);
    EXPECT_EQ(cublasCreate_v2(&more), CUBLAS_STATUS_ALLOC_FAILED);
    EXPECT_EQ(more, nullptr);
    auto* const a = static_cast<float*>(p);
    EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 1, a, 2, &zero, a, 2),
              CUBLAS_STATUS_INVALID_VALUE)
        << "columns that overlap";
    EXPECT_EQ(cublasSgemm_v2(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, 1, a, 1, &zero, a, 1),
              CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_F(fake_cublas, a_captured_product_is_done_by_its_graph_with_the_values_of_its_capture) {
    auto* const a = static_cast<float*>(p);
    fill(p, 4, 3, s);
    begin_capture();
    float alpha = 2;
    EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, a, 1, a + 1, 1, &zero, a + 2, 1),
              CUBLAS_STATUS_SUCCESS);
    alpha = 100;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
    cudaGraphExec_t executable = instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(executable, s), cudaSuccess);
    EXPECT_THAT(read(p, 3, s), ElementsAre(3, 3, 18));
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

}  // namespace
}  // namespace alloclab::device
