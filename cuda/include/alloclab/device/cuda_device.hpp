// cuda_device: a real GPU through the CUDA runtime and cuBLAS, behind the same members as sim_device. Choose it where
// there is one; link alloclab::cuda. Needs a CUDA toolkit to build and a driver to run: `find_cuda` says in one line
// why there is no device, whatever the reason, and nothing here links or loads the driver's library by itself. Cost:
// that of the runtime's calls, and a change of the current device where the caller's is another. Threads: one at a time
// for an object; the caller's current device is as before after every call, failed ones too. Full: nullptr, with the
// runtime's last error cleared, so that the next launch does not stumble over it (cub#47); an earlier asynchronous
// error is never cleared: it is kept, and every call from then on fails with its text. At exit: once the runtime is
// unloading, every call is quiet and does nothing (cccl#7063). After fork the child's objects refuse every call with a
// text that says so: CUDA does not survive fork.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/concepts.hpp"
#include "alloclab/device/handles.hpp"
#include "alloclab/tensor/backend.hpp"

namespace alloclab::device {

/// The devices that the runtime offers this process.
struct cuda_presence {
    std::vector<std::string> devices;  ///< their names, by ordinal
    std::string why_none = {};         ///< one line, where there are none
};
/// Asks the runtime. Any answer but success means none. Never throws but for want of heap.
[[nodiscard]] cuda_presence find_cuda();

class no_cuda_device : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct cuda_options {
    int ordinal = 0;
    /// Bytes that the device's own pool keeps of what was freed in stream order; the runtime's default pool keeps
    /// none (its release threshold is 0), and is not touched.
    std::size_t keep_parked = ~std::size_t{0};
};

struct cuda_usage {
    std::size_t live = 0;        ///< device blocks handed out and not given back, by either way
    std::size_t live_bytes = 0;  ///< bytes asked for by live blocks
    std::size_t peak_bytes = 0;
    std::size_t live_host_bytes = 0;  ///< page-locked
    std::size_t live_streams = 0;     ///< created here and not destroyed
    std::size_t live_events = 0;
    std::size_t created_events = 0;  ///< since construction
    std::size_t source_calls = 0;    ///< allocations asked of the runtime
    std::size_t errors = 0;          ///< calls that failed, but for want of memory
};

/// Work that was captured and not done. A value; the device keeps what is behind it.
enum class cuda_graph : std::uint64_t { none = 0 };

class cuda_device {
public:
    static constexpr std::string_view name = "cuda_device";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t alignment = 256;  ///< what cudaMalloc promises

    using stream = device::stream;
    using event = device::event;
    using reporter = void (*)(std::string_view message, void* context) noexcept;

    /// Throws no_cuda_device, with find_cuda's line or that of an ordinal out of range, and std::runtime_error when
    /// the device cannot be set up (its context, pool or cuBLAS handle); nothing is left behind then.
    explicit cuda_device(const cuda_options& options = {});
    cuda_device(const cuda_device&) = delete;
    cuda_device& operator=(const cuda_device&) = delete;
    /// Waits for the device and destroys what it made: streams, events, pool, graphs. Blocks that are still live stay.
    ~cuda_device();

    /// cudaMalloc. nullptr when the device is full, also where `available_bytes` promised more; `last_error` has what
    /// was asked, what is reported free and how far it got. Refused while a stream of this device captures.
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
    /// cudaFree: waits for the whole device. nullptr does nothing.
    void deallocate(void* p) noexcept;
    /// cudaMallocFromPoolAsync, cudaFreeAsync. Where memory is short, both ways to allocate wait for the device, trim
    /// the pool and ask once more. A release while its stream is captured is put off until the capture ends.
    [[nodiscard]] void* allocate(std::size_t bytes, stream s) noexcept;
    void deallocate(void* p, stream s) noexcept;
    /// Gives what the pool keeps back to the device, but for so many bytes.
    void trim(std::size_t keep = 0) noexcept;
    /// Page-locked host memory; where it is refused, pageable memory (WSL#41176), which `last_error` tells and
    /// `is_page_locked` knows; nullptr when there is none of either.
    [[nodiscard]] void* allocate_host(std::size_t bytes) noexcept;
    void deallocate_host(void* p) noexcept;
    [[nodiscard]] bool is_page_locked(const void* p) const noexcept;
    [[nodiscard]] std::size_t available_bytes() const noexcept;
    [[nodiscard]] std::size_t capacity() const noexcept;

    [[nodiscard]] static constexpr stream default_stream() noexcept { return stream{0}; }
    /// Throws std::bad_alloc.
    [[nodiscard]] stream create_stream(stream_kind kind = stream_kind::non_blocking);
    /// False for the default stream, and while it is captured. An adopted one is merely forgotten.
    bool destroy(stream s) noexcept;
    /// Somebody else's cudaStream_t of this device, to be destroyed by them; captures that they begin are respected.
    /// Throws std::bad_alloc.
    [[nodiscard]] stream adopt(void* cuda_stream);
    /// The cudaStream_t; nullptr is the default stream's.
    [[nodiscard]] void* native(stream s) const noexcept;

    /// Without timing. `event::none` when the runtime has none.
    [[nodiscard]] event create_event() noexcept;
    void destroy(event e) noexcept;
    bool record(event e, stream s) noexcept;
    /// `e` may be of another device.
    bool wait(stream s, event e) noexcept;
    [[nodiscard]] bool done(event e) noexcept;
    bool synchronize(event e) noexcept;
    bool synchronize(stream s) noexcept;
    bool synchronize() noexcept;

    bool copy_to_device(void* device, const void* host, std::size_t bytes, stream s) noexcept;
    bool copy_to_host(void* host, const void* device, std::size_t bytes, stream s) noexcept;
    bool copy_on_device(void* to, const void* from, std::size_t bytes, stream s) noexcept;
    bool fill(void* device, std::byte value, std::size_t bytes, stream s) noexcept;
    /// Computes `t`: matmul by cuBLAS, the rest by kernels of this library. A view has nothing to launch.
    bool launch(const tensor::tensor& t, stream s) noexcept;

    /// As sim_device's. What would spoil the capture is refused, with the advice to reserve first; it stays usable.
    bool begin_capture(stream s) noexcept;
    [[nodiscard]] cuda_graph end_capture(stream s) noexcept;
    [[nodiscard]] bool captures() const noexcept;
    bool launch(cuda_graph graph, stream s) noexcept;
    void destroy(cuda_graph graph) noexcept;

    /// The host's steady clock.
    [[nodiscard]] std::int64_t now() const noexcept;
    [[nodiscard]] int ordinal() const noexcept;
    [[nodiscard]] std::string_view device_name() const noexcept;
    [[nodiscard]] cuda_usage usage() const noexcept;

    /// Called with one line for every failure from now on; nullptr for none.
    void report_to(reporter r, void* context) noexcept;
    /// The line of the last failure: the call, the runtime's name for the error, and what to do about it.
    [[nodiscard]] std::string_view last_error() const noexcept;

private:
    friend class cuda_region;
    class state;
    std::unique_ptr<state> state_;
};

static_assert(tensor::device_backend<cuda_device>);

/// Device memory that grows in place: addresses are reserved once, and memory is mapped behind them granule by granule
/// (the driver's cuMemAddressReserve, cuMemCreate, cuMemMap, found at run time).
class cuda_region {
public:
    /// Throws std::runtime_error where the driver or the device has no such memory, or the addresses cannot be had.
    cuda_region(cuda_device& device, std::size_t reserved_bytes);
    cuda_region(const cuda_region&) = delete;
    cuda_region& operator=(const cuda_region&) = delete;
    ~cuda_region();

    [[nodiscard]] void* data() const noexcept;
    [[nodiscard]] std::size_t mapped_bytes() const noexcept;
    [[nodiscard]] std::size_t reserved_bytes() const noexcept;
    [[nodiscard]] std::size_t granule() const noexcept;
    /// At least so many bytes are mapped afterwards; false, and none more than before, when memory or addresses end.
    bool grow(std::size_t bytes) noexcept;
    /// Waits for the device, then gives back all behind the first so many bytes, in whole granules.
    void shrink(std::size_t bytes) noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace alloclab::device
