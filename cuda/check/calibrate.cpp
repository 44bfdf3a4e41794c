// calibrate: measures every figure of cost_profile on the first GPU, and those beside it that one would want to compare
// (growing in place, page-locking what is there, freeing while the device is busy). JSON lines on standard output:
//
//   {"device":...,"total":BYTES,"driver":N,"runtime":N}             first
//   {"op":NAME,"bytes":N,"n":N,"min_ns":N,"p50_ns":N,"p99_ns":N}    and "per_second" where something flows
//   {"op":GROUP,"skipped":WHY}                                      what this machine cannot do
//   {"done":true}                                                   last: without it something is missing
//
// calibrate [SECONDS]: past so many (75) each figure is made of few samples. Exit: 0 done, 1 a call failed where none
// should, 2 usage, 77 and {"skip":WHY} where there is no device. Sizes go up to a 32nd of the memory that is free.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate_kernels.hpp"
#include "figures.hpp"
#include "program.hpp"

namespace alloclab::device::check {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = kib * kib;

void must(cudaError_t e, std::string_view call) {
    if (e == cudaSuccess) return;
    (void)cudaGetLastError();
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorName(e) + ", " + cudaGetErrorString(e));
}

struct free_device {
    void operator()(void* p) const noexcept { (void)cudaFree(p); }
};
struct free_host {
    void operator()(void* p) const noexcept { (void)cudaFreeHost(p); }
};
struct destroy_stream {
    void operator()(cudaStream_t s) const noexcept { (void)cudaStreamDestroy(s); }
};
struct destroy_pool {
    void operator()(cudaMemPool_t p) const noexcept { (void)cudaMemPoolDestroy(p); }
};
using device_block = std::unique_ptr<void, free_device>;
using host_block = std::unique_ptr<void, free_host>;
using own_stream = std::unique_ptr<CUstream_st, destroy_stream>;
using own_pool = std::unique_ptr<CUmemPoolHandle_st, destroy_pool>;

device_block new_device_block(std::size_t bytes) {
    void* p = nullptr;
    must(cudaMalloc(&p, bytes), "cudaMalloc");
    return device_block(p);
}
host_block new_host_block(std::size_t bytes) {
    void* p = nullptr;
    must(cudaHostAlloc(&p, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    return host_block(p);
}
own_stream new_stream() {
    cudaStream_t s = nullptr;
    must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return own_stream(s);
}
own_pool new_pool(std::uint64_t keep) {
    cudaMemPoolProps of{};
    of.allocType = cudaMemAllocationTypePinned;
    of.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t p = nullptr;
    must(cudaMemPoolCreate(&p, &of), "cudaMemPoolCreate");
    own_pool made(p);
    must(cudaMemPoolSetAttribute(p, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    return made;
}

class calibration {
public:
    calibration(double seconds, std::size_t free_bytes, int processors)
        : deadline_(now_ns() + seconds * 1e9), free_(free_bytes), processors_(processors) {}

    void run() {
        group("events and streams", [&] { events(); });
        group("launch", [&] { launches(); });
        group("device memory", [&] { device_memory(); });
        group("device memory in stream order", [&] { pooled_memory(); });
        group("host memory", [&] { host_memory(); });
        group("registered host memory", [&] { registered_memory(); });
        group("copies", [&] { copies(); });
        group("arithmetic and traffic", [&] { throughput(); });
        group("device memory while the device is busy", [&] { busy(); });
        group("memory mapped by hand", [&] { mapped_memory(); });
    }

private:
    template <class F>
    void group(std::string_view name, F f) {
        try {
            f();
        } catch (const std::exception& e) {
            if (cudaPeekAtLastError() != cudaSuccess) throw;  // nothing works from here on
            line().with("op", name).with("skipped", e.what());
        }
    }

    // f(i) answers nanoseconds. Queues have an end: they are emptied often enough never to hold a call up.
    template <class F>
    figures samples(std::size_t n, F f) {
        const double most = now_ns() + 3e9;
        std::vector<double> all;
        all.reserve(n);
        for (std::size_t i = 0; i < n; ++i) {
            const double now = now_ns();
            if (i >= 3 && (now > most || now > deadline_)) break;
            if (i % 100 == 0) must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
            all.push_back(f(i));
        }
        return figures(std::move(all));
    }
    static void tell(std::string_view op, std::size_t bytes, const figures& f, double units = 0) {
        line l;
        l.with("op", op).with("bytes", bytes).with("n", f.count());
        l.with("min_ns", f.least()).with("p50_ns", f.median()).with("p99_ns", f.p99());
        if (units > 0) l.with("per_second", units / f.median() * 1e9);
    }
    [[nodiscard]] std::vector<std::size_t> sizes(std::initializer_list<std::size_t> wanted) const {
        std::vector<std::size_t> kept;
        for (const std::size_t s : wanted)
            if (s <= free_ / 32) kept.push_back(s);
        return kept;
    }

    void events();
    void launches();
    void device_memory();
    void pooled_memory();
    void host_memory();
    void registered_memory();
    void copies();
    void throughput();
    void busy();
    void mapped_memory();

    double deadline_;
    std::size_t free_;
    int processors_;
    own_stream stream_ = new_stream();
};

void calibration::events() {
    std::vector<cudaEvent_t> all(1000);
    const own_stream other = new_stream();
    const auto each = [&](std::string_view op, auto call) {
        tell(op, 0, samples(all.size(), [&](std::size_t i) { return time_of([&] { must(call(all[i]), op); }); }));
    };
    each("cudaEventCreate", [](cudaEvent_t& e) { return cudaEventCreateWithFlags(&e, cudaEventDisableTiming); });
    // Past the deadline fewer of them have been made.
    std::erase(all, nullptr);
    each("cudaEventRecord", [&](cudaEvent_t e) { return cudaEventRecord(e, stream_.get()); });
    each("cudaStreamWaitEvent", [&](cudaEvent_t e) { return cudaStreamWaitEvent(other.get(), e, 0); });
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    each("cudaEventQuery", [](cudaEvent_t e) { return cudaEventQuery(e); });
    each("cudaStreamSynchronize_idle", [&](cudaEvent_t) { return cudaStreamSynchronize(stream_.get()); });
    each("cudaEventDestroy", [](cudaEvent_t& e) { return cudaEventDestroy(std::exchange(e, nullptr)); });
    for (cudaEvent_t e : all)
        if (e != nullptr) (void)cudaEventDestroy(e);
}

void calibration::launches() {
    const auto one = [&](std::size_t) { return time_of([&] { must(launch_nothing(stream_.get()), "a launch"); }); };
    must(launch_nothing(stream_.get()), "a launch");  // loads the kernel
    tell("kernel_launch", 0, samples(1000, one));
}

void calibration::device_memory() {
    for (const std::size_t bytes : sizes({512, 64 * kib, mib, 2 * mib, 16 * mib, 256 * mib, 1024 * mib})) {
        std::vector<device_block> all(std::min<std::size_t>(100, free_ / 2 / std::max(bytes, 2 * mib)));
        tell("cudaMalloc", bytes,
             samples(all.size(), [&](std::size_t i) { return time_of([&] { all[i] = new_device_block(bytes); }); }));
        std::erase(all, nullptr);
        tell("cudaFree_idle", bytes,
             samples(all.size(), [&](std::size_t i) { return time_of([&] { all[i].reset(); }); }));
    }
}

void calibration::pooled_memory() {
    const own_pool keeping = new_pool(~std::uint64_t{0});
    const own_pool giving = new_pool(0);
    void* p = nullptr;
    const auto take = [&](const own_pool& from, std::size_t bytes) {
        return time_of([&] { must(cudaMallocFromPoolAsync(&p, bytes, from.get(), stream_.get()), "cudaMallocAsync"); });
    };
    const auto give = [&] { return time_of([&] { must(cudaFreeAsync(p, stream_.get()), "cudaFreeAsync"); }); };
    for (const std::size_t bytes : sizes({512, 64 * kib, mib, 2 * mib, 16 * mib, 256 * mib, 1024 * mib})) {
        (void)take(keeping, bytes);
        (void)give();
        std::vector<double> frees;
        tell("cudaMallocAsync_parked", bytes, samples(200, [&](std::size_t) {
                 const double taken = take(keeping, bytes);
                 frees.push_back(give());
                 return taken;
             }));
        tell("cudaFreeAsync", bytes, figures(std::move(frees)));
        tell("cudaMallocAsync_new", bytes, samples(50, [&](std::size_t) {
                 const double taken = take(giving, bytes);
                 (void)give();
                 must(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");  // the pool gives it back
                 return taken;
             }));
        must(cudaMemPoolTrimTo(keeping.get(), 0), "cudaMemPoolTrimTo");
    }
}

void calibration::host_memory() {
    for (const std::size_t bytes : sizes({4 * kib, mib, 64 * mib, 256 * mib})) {
        std::vector<double> frees;
        tell("cudaHostAlloc", bytes, samples(bytes > 16 * mib ? 10 : 50, [&](std::size_t) {
                 host_block block;
                 const double taken = time_of([&] { block = new_host_block(bytes); });
                 frees.push_back(time_of([&] { block.reset(); }));
                 return taken;
             }));
        tell("cudaFreeHost", bytes, figures(std::move(frees)));
    }
}

void calibration::registered_memory() {
    for (const std::size_t bytes : sizes({mib, 64 * mib, 256 * mib})) {
        const std::vector<std::byte> touched(bytes, std::byte{1});
        auto* p = const_cast<std::byte*>(touched.data());
        std::vector<double> back;
        tell("cudaHostRegister", bytes, samples(10, [&](std::size_t) {
                 const double taken =
                     time_of([&] { must(cudaHostRegister(p, bytes, cudaHostRegisterDefault), "cudaHostRegister"); });
                 back.push_back(time_of([&] { must(cudaHostUnregister(p), "cudaHostUnregister"); }));
                 return taken;
             }));
        tell("cudaHostUnregister", bytes, figures(std::move(back)));
    }
}

void calibration::copies() {
    const std::vector<std::size_t> all = sizes({4 * kib, 64 * kib, mib, 16 * mib, 256 * mib});
    if (all.empty()) return;
    const host_block host = new_host_block(all.back());
    const device_block device = new_device_block(all.back());
    const device_block other = new_device_block(all.back());
    const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
        must(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()), "cudaMemcpyAsync");
    };
    tell("copy_call", all.front(), samples(1000, [&](std::size_t) {
             return time_of([&] { copy(device.get(), host.get(), all.front(), cudaMemcpyHostToDevice); });
         }));
    const auto flows = [&](std::string_view op, void* to, const void* from, cudaMemcpyKind kind) {
        for (const std::size_t bytes : all) {
            const auto one = [&](std::size_t) {
                return time_of([&] {
                    copy(to, from, bytes, kind);
                    must(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
                });
            };
            tell(op, bytes, samples(bytes > mib ? 20 : 100, one), static_cast<double>(bytes));
        }
    };
    flows("copy_to_device", device.get(), host.get(), cudaMemcpyHostToDevice);
    flows("copy_to_host", host.get(), device.get(), cudaMemcpyDeviceToHost);
    flows("copy_on_device", other.get(), device.get(), cudaMemcpyDeviceToDevice);
}

void calibration::throughput() {
    constexpr int in_a_row = 20;  // so that the launches and the wait hide behind the work
    const auto flows = [&](std::string_view op, std::size_t bytes, double units, auto launch) {
        const auto many = [&](std::size_t) {
            const double all = time_of([&] {
                for (int i = 0; i < in_a_row; ++i) must(launch(), op);
                must(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
            });
            return all / in_a_row;
        };
        (void)many(0);
        tell(op, bytes, samples(20, many), units);
    };
    for (const std::size_t bytes : sizes({16 * mib, 256 * mib, 1024 * mib})) {
        const device_block from = new_device_block(bytes);
        const device_block to = new_device_block(bytes);
        must(cudaMemsetAsync(from.get(), 0, bytes, stream_.get()), "cudaMemsetAsync");
        flows("memory", bytes, 2.0 * static_cast<double>(bytes), [&] {
            return launch_traffic(stream_.get(), static_cast<float*>(to.get()), static_cast<const float*>(from.get()),
                                  bytes / sizeof(float));
        });
    }
    const int blocks = 32 * processors_;
    const device_block sums = new_device_block(static_cast<std::size_t>(blocks) * arithmetic_threads * sizeof(float));
    flows("flops", 0, arithmetic_flops(blocks),
          [&] { return launch_arithmetic(stream_.get(), static_cast<float*>(sums.get()), blocks); });
}

void calibration::busy() {
    constexpr long long some_ten_ms = 20'000'000;
    void* p = nullptr;
    must(launch_spin(stream_.get(), 0), "a launch");
    std::vector<double> frees;
    tell("cudaMalloc_busy", mib, samples(5, [&](std::size_t) {
             must(launch_spin(stream_.get(), some_ten_ms), "a launch");
             const double taken = time_of([&] { must(cudaMalloc(&p, mib), "cudaMalloc"); });
             must(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
             must(launch_spin(stream_.get(), some_ten_ms), "a launch");
             frees.push_back(time_of([&] { must(cudaFree(p), "cudaFree"); }));
             must(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
             return taken;
         }));
    tell("cudaFree_busy", mib, figures(std::move(frees)));
}

// The driver's calls, found at run time: a program that links its library does not start where there is none.
template <class F>
F* driver_call(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    must(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
    if (found == nullptr) throw std::runtime_error(std::string(name) + ": the driver does not have it");
    return reinterpret_cast<F*>(found);
}
void must(CUresult r, std::string_view call) {
    if (r != CUDA_SUCCESS) throw std::runtime_error(std::string(call) + ": error " + std::to_string(r));
}

void calibration::mapped_memory() {
    auto* granularity = driver_call<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
    auto* reserve = driver_call<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
    auto* give_addresses_back = driver_call<decltype(cuMemAddressFree)>("cuMemAddressFree");
    auto* create = driver_call<decltype(cuMemCreate)>("cuMemCreate");
    auto* release = driver_call<decltype(cuMemRelease)>("cuMemRelease");
    auto* map = driver_call<decltype(cuMemMap)>("cuMemMap");
    auto* unmap = driver_call<decltype(cuMemUnmap)>("cuMemUnmap");
    auto* set_access = driver_call<decltype(cuMemSetAccess)>("cuMemSetAccess");

    CUmemAllocationProp of{};
    of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc both{};
    both.location = of.location;
    both.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    std::size_t granule = 0;
    must(granularity(&granule, &of, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "cuMemGetAllocationGranularity");

    std::vector<CUmemGenericAllocationHandle> all(std::clamp<std::size_t>(free_ / 4 / granule, 1, 64));
    CUdeviceptr base = 0;
    tell("cuMemAddressReserve", granule * all.size(), samples(1, [&](std::size_t) {
             return time_of([&] { must(reserve(&base, granule * all.size(), 0, 0, 0), "cuMemAddressReserve"); });
         }));
    // All of them each time: what was made must be undone, whatever the time.
    const auto each = [&](std::string_view op, auto call) {
        std::vector<double> taken;
        for (std::size_t i = 0; i < all.size(); ++i)
            taken.push_back(time_of([&] { must(call(all[i], base + granule * i), op); }));
        tell(op, granule, figures(std::move(taken)));
    };
    using handle = CUmemGenericAllocationHandle;
    each("cuMemCreate", [&](handle& h, CUdeviceptr) { return create(&h, granule, &of, 0); });
    each("cuMemMap", [&](handle h, CUdeviceptr at) { return map(at, granule, 0, h, 0); });
    each("cuMemSetAccess", [&](handle, CUdeviceptr at) { return set_access(at, granule, &both, 1); });
    each("cuMemUnmap", [&](handle, CUdeviceptr at) { return unmap(at, granule); });
    each("cuMemRelease", [&](handle h, CUdeviceptr) { return release(h); });
    must(give_addresses_back(base, granule * all.size()), "cuMemAddressFree");
}

int skip(std::string_view why) {
    line().with("skip", why);
    return 77;
}

int calibrate(double seconds) {
    int devices = 0;
    if (const cudaError_t e = cudaGetDeviceCount(&devices); e != cudaSuccess) return skip(cudaGetErrorString(e));
    if (devices == 0) return skip("no device");
    if (const cudaError_t e = cudaFree(nullptr); e != cudaSuccess) return skip(cudaGetErrorString(e));

    cudaDeviceProp about{};
    must(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
    int driver = 0;
    int runtime = 0;
    must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    std::size_t free = 0;
    std::size_t total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    line()
        .with("device", about.name)
        .with("total", total)
        .with("driver", driver)
        .with("runtime", runtime)
        .with("capability", std::to_string(about.major) + '.' + std::to_string(about.minor));
    calibration(seconds, free, std::max(about.multiProcessorCount, 1)).run();
    line().with("done", true);
    return 0;
}

}  // namespace

int program(int argc, char** argv) {
    double seconds = 75;
    if (argc == 2) seconds = std::strtod(argv[1], nullptr);
    if (argc > 2 || !(seconds > 0)) {
        line().with("error", "usage: calibrate [SECONDS]");
        return 2;
    }
    try {
        return calibrate(seconds);
    } catch (const std::exception& e) {
        line().with("error", e.what());
        return 1;
    }
}

}  // namespace alloclab::device::check
