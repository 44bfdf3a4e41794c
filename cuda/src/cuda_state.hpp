// What a cuda_device holds, and the bracket in which each of its calls stands.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "alloclab/bytes.hpp"
#include "alloclab/device/cuda_device.hpp"
#include "cuda_launch.hpp"

namespace alloclab::device {

class cuda_device::state {
public:
    enum class origin : std::uint8_t { device, pool, page_locked, pageable };
    struct block {
        std::size_t bytes;
        origin from;
        bool given_back = false;  // by its user, but the runtime could not be asked yet: see release_put_off
    };
    struct stream_slot {
        cudaStream_t handle;
        bool ours;
        bool live = true;
        bool captures = false;
    };
    class entry;

    state() = default;
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state();
    /// Throws no_cuda_device or std::runtime_error; the destructor takes back what was made until then.
    void set_up(const cuda_options& options);

    // --- errors
    [[nodiscard]] bool is_usable() const noexcept;
    /// After such an error the context is lost, and whatever is called answers the same.
    [[nodiscard]] static bool is_for_good(cudaError_t error) noexcept;
    /// For an exception.
    [[nodiscard]] std::string why() const;
    /// Counts and reports a failure. One that leaves the context unusable is kept for good; of another nothing stays
    /// behind in the runtime, unless an `earlier` error is waiting there to be seen.
    void failed(cudaError_t error, const char* function, cudaError_t earlier) noexcept;
    enum class matter : std::uint8_t { misuse, memory };  // the want of which counts as no error
    void tell(matter m, const char* format, ...) noexcept __attribute__((format(printf, 3, 4)));
    void no_memory(const char* function, std::size_t bytes) noexcept;

    // --- memory
    template <class Ask>
    void* obtain(entry& here, std::size_t bytes, origin from, const char* function, Ask ask) noexcept;
    /// Waits for the device and gives back whatever is not in use. False while a stream is captured.
    bool make_room(entry& here) noexcept;
    bool add(void* p, const block& b) noexcept;
    /// The live block that starts at `p`; nullptr, after a report, when there is none such.
    block* find(const void* p, bool on_host) noexcept;
    /// The same, quiet and nullptr where there is nothing left to be released.
    block* find_to_release(const void* p, bool on_host) noexcept;
    void put_off(block& b) noexcept;
    void remove(void* p) noexcept;
    /// Asks the runtime once, and has done with the block whatever it answers: an error may be that of earlier work,
    /// and asking again could hit a new block at the same address. Puts it off where asking would spoil a capture.
    void release(entry& here, void* p, block& b) noexcept;
    void release_put_off(entry& here) noexcept;

    // --- streams, events, captures
    bool copy(void* to, const void* from, std::size_t bytes, stream s, cudaMemcpyKind kind) noexcept;
    stream_slot* find(stream s) noexcept;
    cudaGraphExec_t find(cuda_graph graph) noexcept;
    [[nodiscard]] bool any_captures() noexcept;
    [[nodiscard]] static bool captured(cudaStream_t handle) noexcept;

    int ordinal = -1;
    std::string name;
    std::size_t capacity = 0;
    cudaMemPool_t pool = nullptr;  // none where the device has no such pools
    std::unique_ptr<launcher> kernels;
    std::unordered_map<void*, block> blocks;
    std::size_t put_off_blocks = 0;
    std::vector<stream_slot> streams{{.handle = nullptr, .ours = false}};  // by number; never shrinks
    std::size_t adopted = 0;
    std::unordered_map<cudaEvent_t, std::uint64_t> events;  // the capture in which each was recorded last, or 0
    std::vector<cudaGraphExec_t> graphs;                    // by number less 1; never shrinks
    std::uint64_t capture = 0;                              // the serial of the last one
    std::size_t open_captures = 0;

    cuda_usage counts;
    bool unloading = false;
    bool broken = false;  // last_error says by what
    reporter report = nullptr;
    void* report_context = nullptr;
    std::array<char, 512> text{};

private:
    void say(bool is_error) noexcept;
};

/// Puts the device in place of the caller's for as long as it stands. False when there is nothing to be called.
class cuda_device::state::entry {
public:
    explicit entry(state& of) noexcept;
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;
    ~entry();

    explicit operator bool() const noexcept { return open_; }
    /// True for success; anything else is reported.
    bool did(cudaError_t error, const char* function) noexcept {
        if (error == cudaSuccess) return true;
        of_.failed(error, function, earlier_);
        return false;
    }
    /// The failure was handled and shall leave no trace.
    void forget() const noexcept {
        if (earlier_ == cudaSuccess) (void)cudaGetLastError();
    }
    /// False, after a report, when the call would spoil a capture that is going on.
    [[nodiscard]] bool may(const char* function) noexcept;
    /// The stream's handle; false, after a report, when it is not live or work on it would spoil a capture.
    [[nodiscard]] bool resolve(stream s, cudaStream_t& handle) noexcept;
    /// The same for what does not go into a capture either.
    [[nodiscard]] bool resolve_uncaptured(stream s, cudaStream_t& handle, const char* function) noexcept;
    [[nodiscard]] cudaError_t earlier() const noexcept { return earlier_; }

private:
    state& of_;
    cudaError_t earlier_ = cudaSuccess;
    int before_ = -1;  // to be restored, if not negative
    bool open_ = false;
};

template <class Ask>
void* cuda_device::state::obtain(entry& here, std::size_t bytes, origin from, const char* function, Ask ask) noexcept {
    void* p = nullptr;
    cudaError_t error = cudaErrorMemoryAllocation;
    if (is_size(bytes)) {
        ++counts.source_calls;
        error = ask(&p);
        if (error == cudaErrorMemoryAllocation && make_room(here)) {
            here.forget();
            ++counts.source_calls;
            error = ask(&p);
        }
    }
    if (error == cudaErrorMemoryAllocation && !broken) {
        here.forget();
        no_memory(function, bytes);
        return nullptr;
    }
    if (!here.did(error, function)) return nullptr;
    if (add(p, {.bytes = bytes, .from = from})) return p;
    (void)here.did(cudaFree(p), "cudaFree");  // nothing uses it yet
    return nullptr;
}

}  // namespace alloclab::device
