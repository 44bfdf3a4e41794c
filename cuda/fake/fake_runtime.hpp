// fake_runtime: what the parts of the fake share: the process's one state, its lock, the tables of handles, and
// `serve`, through which every call goes. For cuda/fake/ alone. Threads: `serve` locks; what it hands out is used
// within it. Full: cudaErrorMemoryAllocation.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "alloclab/bytes.hpp"
#include "alloclab/device/sim_device.hpp"

namespace alloclab::device::fake {

/// What a function is to the fake. A bit each.
enum duty : unsigned {
    ordinary = 0,
    waits = 1,       ///< an asynchronous error comes out here
    gives_back = 2,  ///< does its work even where it answers an earlier error, as the runtime does
    unsafe = 4,      ///< what a capture forbids, by its mode
};

struct entry_point {
    std::string name;
    std::size_t calls = 0;
    std::size_t fails_in = 0;  ///< at the n-th call from now; 0: never
    int error = 0;
};

/// Handles of one kind, by value: never a valid address, checked at each use, and given again once destroyed, as the
/// runtime's are. What a handle stands for stays where it is.
template <class Handle, class T>
class table {
public:
    [[nodiscard]] Handle add(T value) {
        if (free_.empty()) {
            slots_.emplace_back();
            free_.reserve(slots_.size());
            free_.push_back(slots_.size() - 1);
        }
        const std::size_t index = free_.back();
        slots_[index].emplace(std::move(value));
        free_.pop_back();
        return reinterpret_cast<Handle>(outside | (index + 1));
    }
    [[nodiscard]] T* find(Handle h) noexcept {
        const auto index = (reinterpret_cast<std::uintptr_t>(h) ^ outside) - 1;
        return index < slots_.size() && slots_[index].has_value() ? &*slots_[index] : nullptr;
    }
    bool remove(Handle h) noexcept {
        if (find(h) == nullptr) return false;
        const auto index = (reinterpret_cast<std::uintptr_t>(h) ^ outside) - 1;
        slots_[index].reset();
        free_.push_back(index);
        return true;
    }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - free_.size(); }
    template <class F>
    void each(F f) {
        for (auto& slot : slots_)
            if (slot.has_value()) f(*slot);
    }
    void clear() noexcept {
        slots_.clear();
        free_.clear();
    }

private:
    static constexpr std::uintptr_t outside = std::uintptr_t{0xCD} << 56;  // no address of a program has these bits

    std::deque<std::optional<T>> slots_;
    std::vector<std::size_t> free_;
};

/// Work that a graph does each time it is launched.
using node = std::function<cudaError_t(sim_device&, device::stream)>;

struct capture {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread = {};
    int device = 0;
    bool blocking = false;  ///< its stream is, so that the legacy stream is forbidden
    bool invalid = false;
    bool ended = false;
    std::vector<node> nodes = {};

    /// No graph will come of it.
    cudaError_t spoil(cudaError_t why = cudaErrorStreamCaptureUnsupported) noexcept {
        invalid = true;
        return why;
    }
};

struct stream_entry {
    int device = 0;
    device::stream at = {};
    unsigned flags = 0;
    std::shared_ptr<capture> captured_by = nullptr;
    bool began = false;  ///< the capture began here; other streams joined it by an event
};

struct event_entry {
    int device = 0;
    device::event at = device::event::none;
    unsigned flags = 0;
    std::shared_ptr<capture> captured_by = nullptr;  ///< its last record is a part of that
    bool recorded = false;
};

struct pool_entry {
    int device = 0;
    std::uint64_t threshold = 0;
    std::uint64_t used = 0;
    std::uint64_t used_high = 0;
    std::uint64_t reserved_high = 0;
    int reuse[3] = {1, 1, 1};
};

struct cublas_entry {
    int device = 0;
    cudaStream_t stream = nullptr;
    cublasPointerMode_t scalars = CUBLAS_POINTER_MODE_HOST;
    void* workspace = nullptr;
    std::size_t workspace_bytes = 0;
};

/// Memory of a device or, page-locked, of the host.
struct block {
    int device = 0;
    std::size_t bytes = 0;
    bool on_host = false;
    bool registered = false;  ///< the caller's, page-locked for a time
    cudaMemPool_t pool = nullptr;
};

/// Memory of the driver's virtual kind, before and behind its mapping.
struct physical {
    int device = 0;
    std::size_t bytes = 0;
    bool released = false;
    bool mapped = false;
};

struct mapping {
    std::size_t bytes = 0;
    std::uint64_t memory = 0;
    bool accessible = false;
};

/// Reserved addresses: a block of the device's, for which nothing counts until memory is mapped behind it.
struct region {
    int device = 0;
    void* block = nullptr;
    std::size_t block_bytes = 0;
    std::size_t bytes = 0;
    std::map<std::uintptr_t, mapping> mapped = {};
};

struct launch_configuration {
    dim3 grid, block;
    std::size_t shared_bytes = 0;
    cudaStream_t stream = nullptr;
};

/// What the runtime keeps for each thread; that of an earlier install() counts as none.
struct thread_state {
    std::uint64_t generation = 0;
    int device = 0;
    cudaError_t last_error = cudaSuccess;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::vector<device::stream> own_streams = {};  ///< its default streams by device; 0: not made yet
    std::vector<launch_configuration> configurations = {};
};

/// A stream as a call names it. `entry` is nullptr for default streams, which nothing captures.
struct stream_at {
    sim_device* on = nullptr;
    device::stream at = {};
    int device = 0;
    stream_entry* entry = nullptr;

    [[nodiscard]] capture* captured() const noexcept { return entry != nullptr ? entry->captured_by.get() : nullptr; }
};

/// The calling thread's, as of the last install().
[[nodiscard]] thread_state& this_thread() noexcept;

class runtime {
public:
    std::mutex lock;
    std::atomic<std::uint64_t> generation = 0;
    std::vector<sim_device*> devices;
    std::map<std::string, entry_point, std::less<>> entry_points;
    std::size_t calls = 0;
    std::size_t any_fails_in = 0;
    int any_error = 0;
    int absent = cudaErrorNoDevice;
    bool unloaded = false;
    bool forked = false;
    int pending = cudaSuccess;  // an asynchronous error before, and `broken` after it has come out
    int broken = cudaSuccess;
    std::string unknown_kernel;

    table<cudaStream_t, stream_entry> streams;
    table<cudaEvent_t, event_entry> events;
    table<cudaMemPool_t, pool_entry> pools;
    table<cudaGraph_t, std::shared_ptr<std::vector<node>>> graphs;
    table<cudaGraphExec_t, std::shared_ptr<std::vector<node>>> executables;
    std::map<std::uintptr_t, block> blocks;
    std::map<std::uintptr_t, region> regions;
    std::map<std::uint64_t, physical> memory;
    std::uint64_t next_memory = 0;
    std::vector<std::shared_ptr<capture>> captures;
    table<cublasHandle_t, cublas_entry> cublas;

    [[nodiscard]] sim_device& current() noexcept { return *devices[static_cast<std::size_t>(this_thread().device)]; }
    [[nodiscard]] sim_device& device(int ordinal) noexcept { return *devices[static_cast<std::size_t>(ordinal)]; }
    [[nodiscard]] bool is_device(int ordinal) const noexcept {
        return ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size();
    }

    /// The error with which a call is refused before it does anything; `by_name`: asked for by `fail` itself.
    struct verdict {
        int error = cudaSuccess;
        bool by_name = false;
        bool gone = false;  ///< there is nothing to work on
    };
    [[nodiscard]] verdict enter(entry_point& e, unsigned duties) noexcept;

    /// nullopt for a handle that is none. Makes the thread's own default stream when it is first asked for.
    [[nodiscard]] std::optional<stream_at> find(cudaStream_t s);
    /// The error of the simulator's last refusal.
    [[nodiscard]] static cudaError_t refusal(const sim_device& d, cudaError_t usual = cudaErrorInvalidValue) noexcept {
        return d.last_fault() != 0 ? static_cast<cudaError_t>(d.last_fault()) : usual;
    }
    [[nodiscard]] static cudaError_t answer(bool done, const sim_device& d) noexcept {
        return done ? cudaSuccess : refusal(d);
    }

    /// Does the work on the stream, or keeps it for the graph that the stream captures.
    [[nodiscard]] cudaError_t give(cudaStream_t s, node work);
    /// True where the stream is the legacy one and a capture forbids it.
    [[nodiscard]] bool is_implicated(const stream_at& s) const noexcept;
    /// Spoils that capture.
    [[nodiscard]] cudaError_t implicit(const stream_at& s) noexcept;
    /// What a call that waits for the whole device answers.
    [[nodiscard]] cudaError_t spoil_captures_of(int ordinal) noexcept;
    void end(capture& c) noexcept;

    /// The device of which this is memory, live or not, or nullptr.
    [[nodiscard]] sim_device* device_of(const void* p) const noexcept;
    /// False where the bytes reach into reserved addresses without memory behind them.
    [[nodiscard]] bool is_mapped(const void* p, std::size_t bytes) const noexcept;
    /// The block in which the address lies, or the end.
    [[nodiscard]] std::map<std::uintptr_t, block>::iterator block_of(const void* p) noexcept;
    [[nodiscard]] std::size_t available(int ordinal) noexcept;
    [[nodiscard]] std::size_t live_handles() noexcept;

private:
    [[nodiscard]] cudaError_t forbid() noexcept;
};

[[nodiscard]] runtime& the_runtime() noexcept;
[[nodiscard]] entry_point& entry_point_of(std::string_view function);

/// A function's name as a template's argument, so that each has its entry point at hand.
template <std::size_t N>
struct function_name {
    char text[N];
    consteval function_name(const char (&name)[N]) {  // NOLINT(google-explicit-constructor): a literal is one
        for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
    }
};

/// Counts a call of the function, lets it fail where that is due, and does `f(runtime)` under the lock.
template <function_name name, unsigned duties, class F>
runtime::verdict attempt(F f) noexcept {
    static entry_point& here = entry_point_of(static_cast<const char*>(name.text));
    runtime& r = the_runtime();
    const std::lock_guard hold(r.lock);
    runtime::verdict v = r.enter(here, duties);
    if (v.error == cudaSuccess || ((duties & gives_back) != 0 && !v.gone)) {
        int answer = cudaErrorMemoryAllocation;
        try {
            answer = f(r);
        } catch (const std::bad_alloc&) {  // that is the answer already
        }
        if (v.error == cudaSuccess) v.error = answer;
    }
    return v;
}

/// A function of the runtime: the thread's last error has its answer afterwards, unless that is cudaErrorNotReady,
/// which is no error (NVIDIA's programming guide, error checking).
template <function_name name, unsigned duties = ordinary, class F>
cudaError_t serve(F f) noexcept {
    const auto answer = static_cast<cudaError_t>(attempt<name, duties>(f).error);
    if (answer != cudaSuccess && answer != cudaErrorNotReady) this_thread().last_error = answer;
    return answer;
}

}  // namespace alloclab::device::fake
