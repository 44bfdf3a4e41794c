#include "fake_cuda.hpp"

#include <pthread.h>

#include <algorithm>

#include "fake_kernels.hpp"
#include "fake_runtime.hpp"

namespace alloclab::device::fake {

// Never destroyed: programs call the runtime while they exit.
runtime& the_runtime() noexcept {
    static runtime& only = [&]() -> runtime& {
        auto* const made = new runtime;
        ::pthread_atfork([] { the_runtime().lock.lock(); }, [] { the_runtime().lock.unlock(); },
                         [] {
                             the_runtime().forked = true;
                             the_runtime().lock.unlock();
                         });
        return *made;
    }();
    return only;
}

thread_state& this_thread() noexcept {
    static thread_local thread_state state;
    const std::uint64_t now = the_runtime().generation;
    if (state.generation != now) {
        state = thread_state{};
        state.generation = now;
    }
    return state;
}

entry_point& entry_point_of(std::string_view function) {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    const auto found = r.entry_points.find(function);
    return found != r.entry_points.end() ? found->second : r.entry_points[std::string(function)];
}

runtime::verdict runtime::enter(entry_point& e, unsigned duties) noexcept {
    ++e.calls;
    ++calls;
    verdict v{};
    if (e.fails_in != 0 && --e.fails_in == 0) v = {.error = e.error, .by_name = true};
    if (any_fails_in != 0 && --any_fails_in == 0 && v.error == cudaSuccess) v.error = any_error;
    const bool driver_gone =
        unloaded || std::any_of(devices.begin(), devices.end(), [](const sim_device* d) { return d->unloaded(); });
    if (driver_gone) return {.error = cudaErrorCudartUnloading, .gone = true};
    if (devices.empty()) return {.error = absent, .gone = true};
    if (forked) return {.error = cudaErrorInitializationError, .gone = true};
    if (broken == cudaSuccess && (duties & waits) != 0) broken = pending;
    if (broken != cudaSuccess) return {.error = broken};
    if (v.error == cudaSuccess && (duties & unsafe) != 0) {
        v.error = forbid();
        v.gone = v.error != cudaSuccess;
    }
    return v;
}

void install(std::span<sim_device* const> devices) {
    emulate_kernels();
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    ++r.generation;
    r.devices.assign(devices.begin(), devices.end());
    r.calls = r.any_fails_in = 0;
    for (auto& [name, e] : r.entry_points) e.calls = e.fails_in = 0;
    r.absent = cudaErrorNoDevice;
    r.unloaded = false;
    r.pending = r.broken = cudaSuccess;
    r.unknown_kernel.clear();
    r.streams.clear();
    r.events.clear();
    r.pools.clear();
    r.graphs.clear();
    r.executables.clear();
    r.cublas.clear();
    r.blocks.clear();
    r.regions.clear();
    r.memory.clear();
    r.captures.clear();
}

void answer_first_call_with(int error) {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    r.devices.clear();
    r.absent = error;
}

std::size_t calls(std::string_view function) {
    const entry_point& e = entry_point_of(function);
    const std::lock_guard hold(the_runtime().lock);
    return e.calls;
}

std::size_t calls() {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    return r.calls;
}

void fail(std::string_view function, std::size_t nth, int error) {
    entry_point& e = entry_point_of(function);
    const std::lock_guard hold(the_runtime().lock);
    e.fails_in = nth;
    e.error = error;
}

void fail_any(std::size_t nth, int error) {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    r.any_fails_in = nth;
    r.any_error = error;
}

void unload() {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    r.unloaded = true;
}

void break_device(int error) {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    r.pending = error;
}

std::size_t live_handles() {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    const auto on_host =
        std::count_if(r.blocks.begin(), r.blocks.end(), [](const auto& b) { return b.second.on_host; });
    return r.streams.size() + r.events.size() + r.pools.size() + r.graphs.size() + r.executables.size() +
           r.cublas.size() + r.regions.size() + r.memory.size() + static_cast<std::size_t>(on_host);
}

std::string unknown_kernel() {
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    return r.unknown_kernel;
}

// --- streams and captures

std::optional<stream_at> runtime::find(cudaStream_t s) {
    thread_state& t = this_thread();
    if (s == nullptr || s == cudaStreamLegacy)
        return stream_at{.on = &current(), .at = sim_device::default_stream(), .device = t.device};
    if (s == cudaStreamPerThread) {
        t.own_streams.resize(devices.size());
        device::stream& own = t.own_streams[static_cast<std::size_t>(t.device)];
        if (own == device::stream{}) own = current().create_stream(stream_kind::blocking, "per-thread default stream");
        return stream_at{.on = &current(), .at = own, .device = t.device};
    }
    stream_entry* const entry = streams.find(s);
    if (entry == nullptr) return std::nullopt;
    return stream_at{.on = &device(entry->device), .at = entry->at, .device = entry->device, .entry = entry};
}

cudaError_t runtime::forbid() noexcept {
    const thread_state& t = this_thread();
    if (t.mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    cudaError_t answer = cudaSuccess;
    for (const auto& c : captures) {
        const bool own = c->thread == std::this_thread::get_id();
        const bool forbids = own ? c->mode != cudaStreamCaptureModeRelaxed
                                 : t.mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
        if (forbids) answer = c->spoil();
    }
    return answer;
}

bool runtime::is_implicated(const stream_at& s) const noexcept {
    return s.entry == nullptr && s.at == sim_device::default_stream() &&
           std::any_of(captures.begin(), captures.end(),
                       [&](const auto& c) { return c->blocking && c->device == s.device; });
}

cudaError_t runtime::implicit(const stream_at& s) noexcept {
    if (!is_implicated(s)) return cudaSuccess;
    for (const auto& c : captures)
        if (c->blocking && c->device == s.device) c->spoil();
    return cudaErrorStreamCaptureImplicit;
}

cudaError_t runtime::spoil_captures_of(int ordinal) noexcept {
    cudaError_t answer = cudaSuccess;
    for (const auto& c : captures)
        if (c->device == ordinal) answer = c->spoil();
    return answer;
}

cudaError_t runtime::give(cudaStream_t s, node work) {
    const std::optional<stream_at> at = find(s);
    if (!at) return cudaErrorInvalidResourceHandle;
    if (capture* const c = at->captured()) {
        if (c->invalid) return cudaErrorStreamCaptureInvalidated;
        c->nodes.push_back(std::move(work));
        return cudaSuccess;
    }
    if (const cudaError_t e = implicit(*at); e != cudaSuccess) return e;
    return work(*at->on, at->at);
}

void runtime::end(capture& c) noexcept {
    c.ended = true;
    streams.each([&](stream_entry& s) {
        if (s.captured_by.get() == &c) s.captured_by = nullptr, s.began = false;
    });
    std::erase_if(captures, [&](const auto& other) { return other.get() == &c; });
}

// --- memory

sim_device* runtime::device_of(const void* p) const noexcept {
    const auto found = std::find_if(devices.begin(), devices.end(), [&](sim_device* d) { return d->owns(p); });
    return found != devices.end() ? *found : nullptr;
}

std::map<std::uintptr_t, block>::iterator runtime::block_of(const void* p) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    auto after = blocks.upper_bound(at);
    if (after == blocks.begin()) return blocks.end();
    --after;
    return at - after->first < at_least_one(after->second.bytes) ? after : blocks.end();
}

bool runtime::is_mapped(const void* p, std::size_t bytes) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    auto after = regions.upper_bound(at);
    if (after == regions.begin()) return true;
    const auto& [first, around] = *std::prev(after);
    if (at - first >= around.bytes) return true;
    std::uintptr_t next = at;  // the first byte that is not known to be there
    auto m = around.mapped.upper_bound(at);
    if (m != around.mapped.begin()) --m;
    for (; m != around.mapped.end() && m->first <= next && m->second.accessible; ++m)
        next = std::max(next, m->first + m->second.bytes);
    return next - at >= bytes;
}

std::size_t runtime::available(int ordinal) noexcept {
    std::size_t bytes = device(ordinal).available_bytes();
    for (const auto& [at, r] : regions)
        if (r.device == ordinal) bytes += r.block_bytes;
    for (const auto& [handle, m] : memory)
        if (m.device == ordinal) bytes -= std::min(bytes, m.bytes);
    return bytes;
}

}  // namespace alloclab::device::fake
