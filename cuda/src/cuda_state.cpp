#include "cuda_state.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cuda_presence.hpp"

namespace alloclab::device {
namespace {

constexpr const char* reserve_first =
    "is refused while a stream is captured, which it would spoil: reserve what is needed before the capture begins";

}  // namespace

// --- construction

void cuda_device::state::set_up(const cuda_options& options) {
    const cuda_presence found = find_cuda();
    if (found.devices.empty()) throw no_cuda_device(found.why_none);
    if (options.ordinal < 0 || static_cast<std::size_t>(options.ordinal) >= found.devices.size())
        throw no_cuda_device("no CUDA device " + std::to_string(options.ordinal) + ": there are " +
                             std::to_string(found.devices.size()));
    name = found.devices[static_cast<std::size_t>(options.ordinal)];
    ordinal = options.ordinal;
    entry here(*this);
    const auto must = [&](cudaError_t error, const char* function) {
        if (!here.did(error, function)) throw std::runtime_error(why());
    };
    if (!here) throw std::runtime_error(why());
    must(cudaFree(nullptr), "cudaFree, to make the context");
    std::size_t available = 0;
    must(cudaMemGetInfo(&available, &capacity), "cudaMemGetInfo");
    int has_pools = 0;
    must(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, ordinal), "cudaDeviceGetAttribute");
    if (has_pools != 0) {
        cudaMemPoolProps of_pool{};
        of_pool.allocType = cudaMemAllocationTypePinned;
        of_pool.location = {.type = cudaMemLocationTypeDevice, .id = ordinal};
        must(cudaMemPoolCreate(&pool, &of_pool), "cudaMemPoolCreate");
        std::uint64_t keep = options.keep_parked;
        must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    }
    kernels = std::make_unique<launcher>();
    must(kernels->setup(pool), "setting up cuBLAS");
}

cuda_device::state::~state() {
    if (ordinal < 0) return;
    std::optional<entry> here;
    for (int tries = 0; tries < 2 && is_usable() && !(here && *here); ++tries) here.emplace(*this);
    if (unloading || lost_by_fork()) {
        if (kernels != nullptr) kernels->abandon();
        return;
    }
    const auto attempt = [&](const char* function, auto call) {
        if (broken || !here) (void)call();  // it is refused, but for what the host keeps of it
        else (void)here->did(call(), function);
    };
    for (stream_slot& slot : streams) {
        for (int tries = 0; tries < 2 && slot.captures && captured(slot.handle); ++tries) {
            cudaGraph_t graph = nullptr;
            attempt("cudaStreamEndCapture", [&] { return cudaStreamEndCapture(slot.handle, &graph); });
            if (graph != nullptr) attempt("cudaGraphDestroy", [&] { return cudaGraphDestroy(graph); });
        }
        slot.captures = false;
    }
    open_captures = 0;
    attempt("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
    for (int tries = 0; tries < 2 && is_usable(); ++tries) release_put_off(*here);
    if (unloading && kernels != nullptr) kernels->abandon();
    kernels.reset();
    for (cudaGraphExec_t graph : graphs)
        if (graph != nullptr) attempt("cudaGraphExecDestroy", [&] { return cudaGraphExecDestroy(graph); });
    for (const auto& [e, recorded] : events) attempt("cudaEventDestroy", [at = e] { return cudaEventDestroy(at); });
    for (const stream_slot& slot : streams)
        if (slot.live && slot.ours) attempt("cudaStreamDestroy", [&] { return cudaStreamDestroy(slot.handle); });
    if (pool != nullptr) attempt("cudaMemPoolDestroy", [&] { return cudaMemPoolDestroy(pool); });
}

// --- errors

bool cuda_device::state::is_for_good(cudaError_t error) noexcept {
    switch (error) {
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorContextIsDestroyed:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case cudaErrorMpsClientTerminated:
        case cudaErrorExternalDevice:
#if CUDART_VERSION >= 13000
        case cudaErrorContained:
        case cudaErrorTensorMemoryLeak:
#endif
            return true;
        default:
            return false;
    }
}

bool cuda_device::state::is_usable() const noexcept { return !broken && !unloading && !lost_by_fork(); }

std::string cuda_device::state::why() const {
    return unloading ? "the CUDA runtime is unloading" : std::string(text.data());
}

void cuda_device::state::say(bool is_error) noexcept {
    counts.errors += is_error ? 1U : 0U;
    if (report != nullptr) report(text.data(), report_context);
}

void cuda_device::state::failed(cudaError_t error, const char* function, cudaError_t earlier) noexcept {
    if (error == cudaErrorCudartUnloading) {
        unloading = true;
        return;
    }
    const bool for_good = is_for_good(error);
    if (!for_good && earlier == cudaSuccess) (void)cudaGetLastError();
    if (broken) return say(true);
    broken = for_good;
    std::snprintf(text.data(), text.size(), "cuda_device %d: %s: %s (%d), %s%s%s%s", ordinal, function,
                  cudaGetErrorName(error), static_cast<int>(error), cudaGetErrorString(error),
                  for_good ? "; of this or earlier work: the device is lost to this process" : "",
                  earlier != cudaSuccess ? "; not looked at before that: " : "",
                  earlier != cudaSuccess ? cudaGetErrorName(earlier) : "");
    say(true);
}

void cuda_device::state::tell(matter m, const char* format, ...) noexcept {
    const int head = std::snprintf(text.data(), text.size(), "cuda_device %d: ", ordinal);
    std::va_list values;
    va_start(values, format);
    std::vsnprintf(text.data() + head, text.size() - static_cast<std::size_t>(head), format, values);
    va_end(values);
    say(m == matter::misuse);
}

void cuda_device::state::no_memory(const char* function, std::size_t bytes) noexcept {
    std::size_t reported = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&reported, &total) != cudaSuccess) reported = total = 0;
    tell(
        matter::memory,
        "%s: out of memory: asked for %zu bytes, of %zu the device reports %zu free, got none; %zu bytes are live here",
        function, bytes, total, reported, counts.live_bytes);
}

// --- memory

bool cuda_device::state::make_room(entry& here) noexcept {
    if (any_captures() || !here.did(cudaDeviceSynchronize(), "cudaDeviceSynchronize")) return false;
    release_put_off(here);
    return pool == nullptr || here.did(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
}

bool cuda_device::state::add(void* p, const block& b) noexcept {
    try {
        blocks.insert_or_assign(p, b);
    } catch (const std::bad_alloc&) {
        tell(matter::misuse, "no heap left to note a block");
        return false;
    }
    if (b.from == origin::device || b.from == origin::pool) {
        ++counts.live;
        counts.live_bytes += at_least_one(b.bytes);
        counts.peak_bytes = std::max(counts.peak_bytes, counts.live_bytes);
    } else if (b.from == origin::page_locked) {
        counts.live_host_bytes += at_least_one(b.bytes);
    }
    return true;
}

cuda_device::state::block* cuda_device::state::find(const void* p, bool on_host) noexcept {
    const auto at = blocks.find(const_cast<void*>(p));
    if (at != blocks.end() && !at->second.given_back) {
        const bool of_host = at->second.from == origin::page_locked || at->second.from == origin::pageable;
        if (of_host == on_host) return &at->second;
    }
    tell(matter::misuse, "%p is not the start of a live block of %s memory", p, on_host ? "host" : "device");
    return nullptr;
}

cuda_device::state::block* cuda_device::state::find_to_release(const void* p, bool on_host) noexcept {
    return unloading || lost_by_fork() ? nullptr : find(p, on_host);
}

void cuda_device::state::put_off(block& b) noexcept {
    if (b.given_back) return;
    b.given_back = true;
    ++put_off_blocks;
    if (b.from == origin::page_locked) {
        counts.live_host_bytes -= at_least_one(b.bytes);
    } else if (b.from != origin::pageable) {
        --counts.live;
        counts.live_bytes -= at_least_one(b.bytes);
    }
}

void cuda_device::state::remove(void* p) noexcept {
    const auto at = blocks.find(p);
    put_off(at->second);
    --put_off_blocks;
    blocks.erase(at);
}

void cuda_device::state::release(entry& here, void* p, block& b) noexcept {
    if (b.from == origin::pageable) {
        remove(p);
        return ::operator delete (p, std::align_val_t{alignment});
    }
    const char* const function = b.from == origin::page_locked ? "cudaFreeHost" : "cudaFree";
    // For memory of a pool cudaFree takes it that all work on it is done.
    if (!here.may(function) ||
        (b.from == origin::pool && !here.did(cudaDeviceSynchronize(), "cudaDeviceSynchronize, before cudaFree")))
        return put_off(b);
    (void)here.did(b.from == origin::page_locked ? cudaFreeHost(p) : cudaFree(p), function);
    remove(p);
}

void cuda_device::state::release_put_off(entry& here) noexcept {
    for (auto at = blocks.begin(); put_off_blocks != 0 && at != blocks.end();) {
        const auto here_at = at++;
        if (here_at->second.given_back) release(here, here_at->first, here_at->second);
    }
}

// --- streams and captures

cuda_device::state::stream_slot* cuda_device::state::find(stream s) noexcept {
    const auto number = static_cast<std::size_t>(s);
    if (number < streams.size() && streams[number].live) return &streams[number];
    tell(matter::misuse, "stream %zu is not live", number);
    return nullptr;
}

cudaGraphExec_t cuda_device::state::find(cuda_graph graph) noexcept {
    const auto index = static_cast<std::size_t>(graph) - 1;
    if (index < graphs.size() && graphs[index] != nullptr) return graphs[index];
    tell(matter::misuse, "graph %zu is not live", index + 1);
    return nullptr;
}

bool cuda_device::state::copy(void* to, const void* from, std::size_t bytes, stream s, cudaMemcpyKind kind) noexcept {
    entry here(*this);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return false;
    return bytes == 0 || here.did(cudaMemcpyAsync(to, from, bytes, kind, on), "cudaMemcpyAsync");
}

bool cuda_device::state::captured(cudaStream_t handle) noexcept {
    const cudaError_t earlier = cudaPeekAtLastError();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(handle, &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
    if (earlier == cudaSuccess) (void)cudaGetLastError();
    return true;  // that is how the default stream answers while it would be in the way of a blocking stream's capture
}

bool cuda_device::state::any_captures() noexcept {
    return open_captures != 0 || (adopted != 0 && std::ranges::any_of(streams, [](const stream_slot& slot) {
                                      return slot.live && !slot.ours && slot.handle != nullptr && captured(slot.handle);
                                  }));
}

// --- the bracket

cuda_device::state::entry::entry(state& of) noexcept : of_(of) {
    if (of.unloading) return;
    if (lost_by_fork()) {
        of.tell(matter::misuse, "%s", why_lost_by_fork);
        return;
    }
    if (of.broken) {
        of.say(true);
        return;
    }
    earlier_ = cudaPeekAtLastError();
    if (earlier_ == cudaErrorCudartUnloading || is_for_good(earlier_)) {
        of.failed(earlier_, "a call of another", cudaSuccess);
        return;
    }
    int current = -1;
    if (!did(cudaGetDevice(&current), "cudaGetDevice")) return;
    if (current != of.ordinal) {
        before_ = current;
        if (!did(cudaSetDevice(of.ordinal), "cudaSetDevice")) return;
    }
    open_ = true;
}

cuda_device::state::entry::~entry() {
    if (before_ < 0) return;
    cudaError_t error = cudaSetDevice(before_);
    if (error != cudaSuccess && error != cudaErrorCudartUnloading && !is_for_good(error)) {
        forget();
        error = cudaSetDevice(before_);  // the caller must not be left elsewhere for a failure that passes
    }
    (void)did(error, "cudaSetDevice, back to the caller's");
}

bool cuda_device::state::entry::may(const char* function) noexcept {
    if (!open_) return false;
    if (!of_.any_captures()) return true;
    of_.tell(matter::misuse, "%s %s", function, reserve_first);
    return false;
}

bool cuda_device::state::entry::resolve(stream s, cudaStream_t& handle) noexcept {
    if (!open_) return false;
    const stream_slot* slot = of_.find(s);
    if (slot == nullptr) return false;
    handle = slot->handle;
    if (handle != nullptr || (of_.open_captures == 0 && of_.adopted == 0) || !captured(nullptr)) return true;
    of_.tell(matter::misuse,
             "work on the default stream is refused while a blocking stream is captured, which it would spoil");
    return false;
}

bool cuda_device::state::entry::resolve_uncaptured(stream s, cudaStream_t& handle, const char* function) noexcept {
    if (!resolve(s, handle)) return false;
    if ((of_.open_captures == 0 && of_.adopted == 0) || handle == nullptr || !captured(handle)) return true;
    of_.tell(matter::misuse, "%s %s", function, reserve_first);
    return false;
}

}  // namespace alloclab::device
