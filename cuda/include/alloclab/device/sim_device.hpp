// sim_device: a CUDA device without a GPU: memory of any size that the host cannot touch, streams, events, copies,
// kernels and captured graphs, all on a virtual clock, and a witness that names every use of memory which no event
// orders. Choose it to test and compare device-side strategies anywhere, repeatably.
// Cost: O(log blocks + streams) a call beside the real work of copies and kernels; an 80 GB device takes address space,
// and host memory only for what is written. Threads: single; all devices of one sim_host together. Full: nullptr.
// Misuse is reported, counted and changes nothing; a race is reported and counted, and the work is done all the same.
//
// Calls do their work at once, in the order in which the host makes them: a legal order, since a wait always names an
// earlier record. That another order would have been legal too is what the vector clocks know: every stream, event and
// the host carry one, and each use of a byte must come after its earlier uses by them, not by luck. Time is apart from
// that: each stream has a moment at which it is through, the host has its own, and calls move them by what cost_profile
// says. Streams share nothing: kernels on two of them overlap wholly. Copies go as from page-locked memory: they do not
// hold the host up. Freed blocks of 2 MiB and more give their host pages back; a new block holds zeros or old bytes.
// Not modelled: threads of the host (they count as one), contention for memory or cores, managed memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/device/cost_profile.hpp"
#include "alloclab/device/handles.hpp"
#include "alloclab/device/sim_host.hpp"
#include "alloclab/tensor/backend.hpp"

namespace alloclab::device {

/// What a device can be called for; counted one by one.
enum class call : std::uint8_t {
    allocate,
    deallocate,
    allocate_async,
    deallocate_async,
    allocate_host,
    deallocate_host,
    create_stream,
    destroy_stream,
    create_event,
    destroy_event,
    record,
    wait,
    done,
    synchronize,
    copy_to_device,
    copy_to_host,
    copy_on_device,
    fill,
    launch,
    capture,
};
inline constexpr std::size_t call_kinds = static_cast<std::size_t>(call::capture) + 1;
[[nodiscard]] std::string_view name_of(call c) noexcept;

struct sim_usage {
    std::size_t live = 0;             ///< blocks handed out and not given back
    std::size_t live_bytes = 0;       ///< bytes asked for by live blocks; size 0 counts as 1
    std::size_t peak_bytes = 0;       ///< highest live_bytes
    std::size_t reserved_bytes = 0;   ///< what live and parked blocks take from the capacity, in whole granules
    std::size_t parked_bytes = 0;     ///< of these: freed in stream order and kept for the next
    std::size_t largest_free = 0;     ///< the largest request that would be served without parked blocks
    std::size_t live_host_bytes = 0;  ///< page-locked
    std::size_t live_streams = 0;     ///< created and not destroyed; the default stream is none
    std::size_t live_events = 0;
    std::size_t peak_events = 0;
    std::size_t errors = 0;                       ///< calls refused as misuse; being full, and a fault, is none
    std::size_t races = 0;                        ///< uses of memory that nothing ordered, use after free among them
    std::size_t faults = 0;                       ///< failures that were asked for and have happened
    std::array<std::size_t, call_kinds> calls{};  ///< calls made by kind, refused ones too

    [[nodiscard]] std::size_t count(call c) const noexcept { return calls[static_cast<std::size_t>(c)]; }
};

/// A failure to come. Calls of that kind count from 1 at its injection; of these, those of `least_bytes` and more.
struct fault {
    call at;
    std::size_t first = 1;        ///< the first one to fail
    std::size_t every = 0;        ///< and every so many-th after it; 0: no other
    std::size_t least_bytes = 0;  ///< calls for fewer bytes pass and are not counted
    int code = 0;                 ///< for whoever has error codes, such as a fake of a runtime; 0: the usual one
};

/// Work that was captured and not done: see sim_device::begin_capture. A value; the device keeps what is behind it.
enum class captured : std::uint32_t { none = 0 };

class sim_device {
public:
    static constexpr std::string_view name = "sim_device";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t alignment = 512;  ///< of every block, and its granule; cudaMalloc promises 256
    static constexpr access reads = access::read, writes = access::write;

    using stream = device::stream;
    using event = device::event;
    using reporter = void (*)(std::string_view message, void* context) noexcept;

    /// The only device of a host of its own. Capacity in bytes, rounded down to whole granules. Throws
    /// std::system_error when the system cannot map it twice.
    explicit sim_device(std::size_t capacity, const cost_profile& cost = {});
    /// One more device of that host, which must outlive it: they share its clock, and events go from one to another.
    sim_device(sim_host& host, std::size_t capacity, const cost_profile& cost = {});
    sim_device(const sim_device&) = delete;
    sim_device& operator=(const sim_device&) = delete;
    ~sim_device();

    /// Device memory, uninitialised; nullptr when no gap is large enough or the size is above PTRDIFF_MAX.
    /// Its addresses fault when the host reads or writes them.
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
    /// Waits for the whole device, as cudaFree does. nullptr does nothing; what is not the start of a live block is
    /// reported.
    void deallocate(void* p) noexcept;
    /// In the order of the stream. The rules of cudaMallocAsync's pool: a parked block serves the stream that freed it
    /// at once, another one when events have brought it behind the free, or the host knows it to be through; failing
    /// these the stream is made to wait for the free. Where only several parked blocks together make room, the host
    /// waits for their frees. They are neither split nor joined while parked. nullptr when all of that is too little.
    [[nodiscard]] void* allocate(std::size_t bytes, stream s) noexcept;
    /// From here on in the stream's order nobody may touch it; a later use is reported by name, whoever makes it.
    void deallocate(void* p, stream s) noexcept;
    /// Parked blocks beyond so many bytes go back to the device when the host next waits for something. Initially 0.
    void keep_parked(std::size_t bytes) noexcept;
    /// Page-locked host memory, on the heap; nullptr when there is none. Costs virtual time by size.
    [[nodiscard]] void* allocate_host(std::size_t bytes) noexcept;
    void deallocate_host(void* p) noexcept;
    /// Bytes not taken by live blocks, less what parked ones hold; a single request may find them in pieces, see
    /// `sim_usage::largest_free`, and `refuse_beyond` is not told.
    [[nodiscard]] std::size_t available_bytes() const noexcept;
    [[nodiscard]] std::size_t capacity() const noexcept;

    [[nodiscard]] static constexpr stream default_stream() noexcept { return stream{0}; }
    /// The name goes into reports; "stream N" without one. Takes no virtual time. Throws std::bad_alloc, also when a
    /// fault was injected.
    [[nodiscard]] stream create_stream(stream_kind kind = stream_kind::non_blocking, std::string_view called = {});
    /// What the stream was given still counts until it is through. False for the default stream.
    bool destroy(stream s) noexcept;

    /// `event::none` when there is no heap left. The name goes into reports; "event N" without one.
    [[nodiscard]] event create_event(std::string_view called = {}) noexcept;
    /// On the device that created it. `event::none` does nothing.
    void destroy(event e) noexcept;
    /// The event is complete when all that `s` was given so far is. Recording again replaces that, but for waits
    /// already made. The event must be this device's.
    bool record(event e, stream s) noexcept;
    /// What `s` is given from now on starts after what `e`, of any device of the host, was last recorded for; after
    /// nothing if it never was.
    bool wait(stream s, event e) noexcept;
    /// True makes the host know of all that was before the record.
    [[nodiscard]] bool done(event e) noexcept;
    /// Holds the host up until the event, the stream, or all streams of this device are through.
    bool synchronize(event e) noexcept;
    bool synchronize(stream s) noexcept;
    bool synchronize() noexcept;

    /// The range on the device must lie within one live block, the other one on the host; 0 bytes always may be copied.
    bool copy_to_device(void* device, const void* host, std::size_t bytes, stream s,
                        std::string_view called = {}) noexcept;
    bool copy_to_host(void* host, const void* device, std::size_t bytes, stream s,
                      std::string_view called = {}) noexcept;
    /// Both ranges each within a live block of this device; they may not overlap.
    bool copy_on_device(void* to, const void* from, std::size_t bytes, stream s, std::string_view called = {}) noexcept;
    bool fill(void* device, std::byte value, std::size_t bytes, stream s, std::string_view called = {}) noexcept;
    /// Computes `t` with the kernels of the CPU: the same bits. The data of `t` and of its sources must lie within live
    /// blocks; a leaf is refused, a view has nothing to launch. It reads its sources and writes itself:
    /// row by row where rows lie apart and are 64 at most, else from the first byte to the last.
    bool launch(const tensor::tensor& t, stream s, std::string_view called = {}) noexcept;

    /// Any other work: it takes `duration` on the stream and touches what `also_touches` then says of it.
    bool work(stream s, nanoseconds duration, std::string_view called = {}) noexcept;
    /// The work given to `s` last also touches these bytes: of the device, or of the host. False after a race.
    bool also_touches(stream s, const void* p, std::size_t bytes, access a, std::string_view called = {}) noexcept;
    /// The host touches these bytes of its own memory now. False after a race.
    bool host_touches(const void* p, std::size_t bytes, access a, std::string_view called = {}) noexcept;
    /// These bytes of the host begin a new life: what was known of them is forgotten.
    void forget_host(const void* p, std::size_t bytes) noexcept;
    /// Where the simulator itself, or an emulated kernel, may touch device memory; nullptr, after a report under
    /// `c`, unless the bytes lie within one live block.
    [[nodiscard]] void* shadow_of(call c, const void* device, std::size_t bytes) noexcept;
    /// True for an address within the device's range, live or not.
    [[nodiscard]] bool owns(const void* p) const noexcept;

    /// What `s` is given from now on is kept and not done, until the capture ends. Meanwhile this device refuses what
    /// CUDA refuses in its global mode, to allocate, free, query and wait, and stream-ordered memory too, which is not
    /// modelled there. The text advises to reserve first, and the capture stays usable. False for the default stream.
    bool begin_capture(stream s) noexcept;
    /// `captured::none` when `s` captures nothing.
    [[nodiscard]] captured end_capture(stream s) noexcept;
    [[nodiscard]] bool captures() const noexcept;
    /// Does what was captured, in order, on `s`; one launch's cost to the host.
    bool launch(captured graph, stream s) noexcept;
    void destroy(captured graph) noexcept;

    /// Of several faults at a call each is asked in turn. They stay until `clear_faults`.
    void inject(const fault& f);
    void clear_faults() noexcept;
    /// Refuses to hold more bytes than that, whatever `available_bytes` says; `too_many`: the capacity alone.
    void refuse_beyond(std::size_t bytes) noexcept;
    /// The process ends and the driver goes first: from now on every call fails quietly, and counts no error.
    void unload() noexcept;
    [[nodiscard]] bool unloaded() const noexcept;
    /// The code of the fault that the last failing call met; 0 where it met none.
    [[nodiscard]] int last_fault() const noexcept;

    /// The host's clock; it starts at 0.
    [[nodiscard]] nanoseconds now() const noexcept;
    [[nodiscard]] const cost_profile& cost() const noexcept;
    [[nodiscard]] sim_usage usage() const noexcept;
    [[nodiscard]] sim_host& host() const noexcept;

    /// Called with one line for every misuse and every race from now on; nullptr for none.
    void report_to(reporter r, void* context) noexcept;
    /// The line of the last misuse, race or fault; empty if there was none. Valid until the next.
    [[nodiscard]] std::string_view last_error() const noexcept;

private:
    class state;
    std::unique_ptr<sim_host> own_host_;  // of a device that is alone
    std::unique_ptr<state> state_;
};

static_assert(tensor::device_backend<sim_device> && tensor::checks_order<sim_device>);

}  // namespace alloclab::device
