#include "alloclab/device/cuda_device.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "cuda_state.hpp"

namespace alloclab::device {
namespace {

[[nodiscard]] event event_of(cudaEvent_t e) noexcept { return event{reinterpret_cast<std::uintptr_t>(e)}; }
[[nodiscard]] cudaEvent_t handle_of(event e) noexcept {
    return reinterpret_cast<cudaEvent_t>(static_cast<std::uintptr_t>(e));
}

}  // namespace

cuda_device::cuda_device(const cuda_options& options) : state_(std::make_unique<state>()) { state_->set_up(options); }
cuda_device::~cuda_device() = default;

// --- memory

void* cuda_device::allocate(std::size_t bytes) noexcept {
    state::entry here(*state_);
    if (!here.may("cudaMalloc")) return nullptr;
    return state_->obtain(here, bytes, state::origin::device, "cudaMalloc",
                          [&](void** p) { return cudaMalloc(p, at_least_one(bytes)); });
}

void cuda_device::deallocate(void* p) noexcept {
    if (p == nullptr) return;
    state::entry here(*state_);
    state::block* b = state_->find_to_release(p, false);
    if (b != nullptr) state_->release(here, p, *b);
}

void* cuda_device::allocate(std::size_t bytes, stream s) noexcept {
    if (state_->pool == nullptr) return allocate(bytes);
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve_uncaptured(s, on, "cudaMallocFromPoolAsync")) return nullptr;
    return state_->obtain(here, bytes, state::origin::pool, "cudaMallocFromPoolAsync",
                          [&](void** p) { return cudaMallocFromPoolAsync(p, at_least_one(bytes), state_->pool, on); });
}

void cuda_device::deallocate(void* p, stream s) noexcept {
    if (state_->pool == nullptr) return deallocate(p);  // which waits for every stream
    if (p == nullptr) return;
    state::entry here(*state_);
    state::block* b = state_->find_to_release(p, false);
    if (b == nullptr) return;
    cudaStream_t on = nullptr;
    if (!here.resolve_uncaptured(s, on, "cudaFreeAsync")) return state_->put_off(*b);
    (void)here.did(cudaFreeAsync(p, on), "cudaFreeAsync");  // once, as in release
    state_->remove(p);
}

void cuda_device::trim(std::size_t keep) noexcept {
    state::entry here(*state_);
    if (!here.may("cudaMemPoolTrimTo")) return;
    state_->release_put_off(here);
    if (state_->pool != nullptr) (void)here.did(cudaMemPoolTrimTo(state_->pool, keep), "cudaMemPoolTrimTo");
}

void* cuda_device::allocate_host(std::size_t bytes) noexcept {
    state::entry here(*state_);
    if (!here.may("cudaHostAlloc")) return nullptr;
    if (!is_size(bytes)) return state_->tell(state::matter::memory, "no host memory of %zu bytes", bytes), nullptr;
    void* p = nullptr;
    const cudaError_t error = cudaHostAlloc(&p, at_least_one(bytes), cudaHostAllocPortable);
    const bool locked = error == cudaSuccess;
    if (!locked) {
        if (state::is_for_good(error)) return (void)here.did(error, "cudaHostAlloc"), nullptr;
        here.forget();
        p = ::operator new (at_least_one(bytes), std::align_val_t{alignment}, std::nothrow);
        state_->tell(state::matter::memory, "cudaHostAlloc: %s: page-locked memory of %zu bytes is refused, %s",
                     cudaGetErrorName(error), bytes,
                     p != nullptr ? "pageable memory serves instead" : "and there is no other");
        if (p == nullptr) return nullptr;
    }
    const state::origin from = locked ? state::origin::page_locked : state::origin::pageable;
    if (state_->add(p, {.bytes = bytes, .from = from})) return p;
    if (locked) (void)here.did(cudaFreeHost(p), "cudaFreeHost");
    else ::operator delete (p, std::align_val_t{alignment});
    return nullptr;
}

void cuda_device::deallocate_host(void* p) noexcept {
    if (p == nullptr) return;
    state::entry here(*state_);
    state::block* b = state_->find_to_release(p, true);
    if (b != nullptr) state_->release(here, p, *b);
}

bool cuda_device::is_page_locked(const void* p) const noexcept {
    const auto at = state_->blocks.find(const_cast<void*>(p));
    return at != state_->blocks.end() && !at->second.given_back && at->second.from == state::origin::page_locked;
}

std::size_t cuda_device::available_bytes() const noexcept {
    state::entry here(*state_);
    std::size_t available = 0;
    std::size_t total = 0;
    return here && here.did(cudaMemGetInfo(&available, &total), "cudaMemGetInfo") ? available : 0;
}

std::size_t cuda_device::capacity() const noexcept { return state_->capacity; }

// --- streams and events

stream cuda_device::create_stream(stream_kind kind) {
    state_->streams.push_back({.handle = nullptr, .ours = true, .live = false});
    state::stream_slot& slot = state_->streams.back();
    state::entry here(*state_);
    const unsigned flags = kind == stream_kind::non_blocking ? cudaStreamNonBlocking : cudaStreamDefault;
    slot.live = here && here.did(cudaStreamCreateWithFlags(&slot.handle, flags), "cudaStreamCreateWithFlags");
    if (!slot.live) {
        state_->streams.pop_back();
        throw std::bad_alloc();
    }
    ++state_->counts.live_streams;
    return stream{static_cast<std::uint32_t>(state_->streams.size() - 1)};
}

stream cuda_device::adopt(void* cuda_stream) {
    state_->streams.push_back({.handle = static_cast<cudaStream_t>(cuda_stream), .ours = false});
    ++state_->adopted;
    return stream{static_cast<std::uint32_t>(state_->streams.size() - 1)};
}

void* cuda_device::native(stream s) const noexcept {
    const state::stream_slot* slot = state_->find(s);
    return slot != nullptr ? slot->handle : nullptr;
}

bool cuda_device::destroy(stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t handle = nullptr;
    if (!here.resolve_uncaptured(s, handle, "cudaStreamDestroy")) return false;
    if (s == default_stream())
        return state_->tell(state::matter::misuse, "the default stream cannot be destroyed"), false;
    state::stream_slot& slot = *state_->find(s);
    slot.live = false;
    --(slot.ours ? state_->counts.live_streams : state_->adopted);
    return !slot.ours || here.did(cudaStreamDestroy(handle), "cudaStreamDestroy");
}

event cuda_device::create_event() noexcept {
    state::entry here(*state_);
    cudaEvent_t e = nullptr;
    if (!here || !here.did(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags"))
        return event::none;
    try {
        state_->events.emplace(e, 0);
    } catch (const std::bad_alloc&) {
        (void)here.did(cudaEventDestroy(e), "cudaEventDestroy");
        state_->tell(state::matter::misuse, "no heap left to note an event");
        return event::none;
    }
    ++state_->counts.live_events;
    ++state_->counts.created_events;
    return event_of(e);
}

void cuda_device::destroy(event e) noexcept {
    if (e == event::none) return;
    state::entry here(*state_);
    if (!here) return;
    const auto at = state_->events.find(handle_of(e));
    if (at == state_->events.end())
        return state_->tell(state::matter::misuse, "an event to be destroyed is none of this device");
    state_->events.erase(at);
    --state_->counts.live_events;
    (void)here.did(cudaEventDestroy(handle_of(e)), "cudaEventDestroy");
}

bool cuda_device::record(event e, stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return false;
    const auto at = state_->events.find(handle_of(e));
    if (at == state_->events.end())
        return state_->tell(state::matter::misuse, "an event to be recorded is none of this device"), false;
    const bool is_captured = state_->open_captures != 0 && on != nullptr && state::captured(on);
    if (!here.did(cudaEventRecord(at->first, on), "cudaEventRecord")) return false;
    at->second = is_captured ? state_->capture : 0;
    return true;
}

bool cuda_device::wait(stream s, event e) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return false;
    if (state_->open_captures != 0 && on != nullptr && state::captured(on)) {
        const auto at = state_->events.find(handle_of(e));
        if (at == state_->events.end() || at->second != state_->capture)
            return state_->tell(state::matter::misuse,
                                "a captured stream cannot wait for an event that was recorded outside the capture"),
                   false;
    }
    return here.did(cudaStreamWaitEvent(on, handle_of(e), 0), "cudaStreamWaitEvent");
}

bool cuda_device::done(event e) noexcept {
    state::entry here(*state_);
    if (!here.may("cudaEventQuery")) return false;
    const cudaError_t error = cudaEventQuery(handle_of(e));
    if (error == cudaErrorNotReady) return here.forget(), false;
    return here.did(error, "cudaEventQuery");
}

bool cuda_device::synchronize(event e) noexcept {
    state::entry here(*state_);
    return here.may("cudaEventSynchronize") && here.did(cudaEventSynchronize(handle_of(e)), "cudaEventSynchronize");
}

bool cuda_device::synchronize(stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    return here.may("cudaStreamSynchronize") && here.resolve(s, on) &&
           here.did(cudaStreamSynchronize(on), "cudaStreamSynchronize");
}

bool cuda_device::synchronize() noexcept {
    state::entry here(*state_);
    return here.may("cudaDeviceSynchronize") && here.did(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// --- work

bool cuda_device::copy_to_device(void* device, const void* host, std::size_t bytes, stream s) noexcept {
    return state_->copy(device, host, bytes, s, cudaMemcpyHostToDevice);
}
bool cuda_device::copy_to_host(void* host, const void* device, std::size_t bytes, stream s) noexcept {
    return state_->copy(host, device, bytes, s, cudaMemcpyDeviceToHost);
}
bool cuda_device::copy_on_device(void* to, const void* from, std::size_t bytes, stream s) noexcept {
    return state_->copy(to, from, bytes, s, cudaMemcpyDeviceToDevice);
}

bool cuda_device::fill(void* device, std::byte value, std::size_t bytes, stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return false;
    return bytes == 0 || here.did(cudaMemsetAsync(device, static_cast<int>(value), bytes, on), "cudaMemsetAsync");
}

bool cuda_device::launch(const tensor::tensor& t, stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return false;
    // A launch learns of its failure by the last error, and must not find another's there.
    if (here.earlier() != cudaSuccess)
        return state_->tell(state::matter::misuse,
                            "no launch before the error that waits in this thread is looked at: %s",
                            cudaGetErrorName(here.earlier())),
               false;
    const std::string_view why = state_->kernels->launch(t, on);
    if (why.empty()) return true;
    const cudaError_t error = cudaPeekAtLastError();
    if (error == cudaErrorCudartUnloading || state::is_for_good(error)) return here.did(error, "a launch");
    here.forget();
    return state_->tell(state::matter::misuse, "%.*s", static_cast<int>(why.size()), why.data()), false;
}

// --- captures

bool cuda_device::begin_capture(stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve_uncaptured(s, on, "cudaStreamBeginCapture")) return false;
    if (on == nullptr) return state_->tell(state::matter::misuse, "the default stream cannot be captured"), false;
    try {
        state_->graphs.reserve(state_->graphs.size() + state_->open_captures + 1);
    } catch (const std::bad_alloc&) {
        return state_->tell(state::matter::misuse, "no heap left to note a graph"), false;
    }
    // What other threads do with other streams is none of its business, and may not spoil it.
    if (!here.did(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture")) return false;
    state_->find(s)->captures = true;
    if (state_->open_captures++ == 0) ++state_->capture;
    return true;
}

cuda_graph cuda_device::end_capture(stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return cuda_graph::none;
    state::stream_slot& slot = *state_->find(s);
    if (!slot.captures)
        return state_->tell(state::matter::misuse, "stream %u is not captured", static_cast<unsigned>(s)),
               cuda_graph::none;
    cudaGraph_t graph = nullptr;
    const bool ended = here.did(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
    if (!ended && state_->is_usable() && state::captured(on)) return cuda_graph::none;  // it still goes on
    slot.captures = false;
    cudaGraphExec_t executable = nullptr;
    if (graph != nullptr) {
        if (ended && !here.did(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate"))
            executable = nullptr;
        (void)here.did(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }
    if (--state_->open_captures == 0) state_->release_put_off(here);
    if (executable == nullptr) return cuda_graph::none;
    state_->graphs.push_back(executable);  // there is room since the capture began
    return cuda_graph{state_->graphs.size()};
}

bool cuda_device::captures() const noexcept { return state_->any_captures(); }

bool cuda_device::launch(cuda_graph graph, stream s) noexcept {
    state::entry here(*state_);
    cudaStream_t on = nullptr;
    if (!here.resolve(s, on)) return false;
    cudaGraphExec_t executable = state_->find(graph);
    return executable != nullptr && here.did(cudaGraphLaunch(executable, on), "cudaGraphLaunch");
}

void cuda_device::destroy(cuda_graph graph) noexcept {
    if (graph == cuda_graph::none) return;
    state::entry here(*state_);
    if (!here) return;
    cudaGraphExec_t executable = state_->find(graph);
    if (executable == nullptr) return;
    state_->graphs[static_cast<std::size_t>(graph) - 1] = nullptr;
    (void)here.did(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
}

// --- what it knows

std::int64_t cuda_device::now() const noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int cuda_device::ordinal() const noexcept { return state_->ordinal; }
std::string_view cuda_device::device_name() const noexcept { return state_->name; }
cuda_usage cuda_device::usage() const noexcept { return state_->counts; }

void cuda_device::report_to(reporter r, void* context) noexcept {
    state_->report = r;
    state_->report_context = context;
}
std::string_view cuda_device::last_error() const noexcept { return state_->text.data(); }

}  // namespace alloclab::device
