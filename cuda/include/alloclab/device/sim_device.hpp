// sim_device: a CUDA device without a GPU: memory of any size that the host cannot touch, streams, events, copies and
// kernels, all on a clock of its own. Choose it to test and compare device-side strategies anywhere, repeatably.
// Cost: O(log blocks) a call beside the real work of copies and kernels; an 80 GB device takes address space, and host
// memory only for what is written. Threads: single. Full: nullptr. Misuse is reported, counted and changes nothing.
//
// Calls do their work at once, in the order in which the host makes them. No dependency between streams can contradict
// that order, since a wait always names an earlier record. Only the clock knows of overlap: each stream has a time at
// which it is through, the host has its own, and every call moves them by what `cost_profile` says. Streams share
// nothing: kernels on two of them overlap wholly. Copies go as from page-locked memory: they do not hold the host up.
// Freed blocks of 2 MiB and more give their host pages back; a new block holds zeros or what an earlier one left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "alloclab/concepts.hpp"
#include "alloclab/device/address_space.hpp"
#include "alloclab/device/cost_profile.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/tensor/backend.hpp"

namespace alloclab::device {

/// What a device can be called for; counted one by one.
enum class call : std::uint8_t {
    allocate,
    deallocate,
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
    launch,
};
inline constexpr std::size_t call_kinds = static_cast<std::size_t>(call::launch) + 1;
[[nodiscard]] std::string_view name_of(call c) noexcept;

struct sim_usage {
    std::size_t live = 0;            ///< blocks handed out and not given back
    std::size_t live_bytes = 0;      ///< bytes asked for by live blocks; size 0 counts as 1
    std::size_t peak_bytes = 0;      ///< highest live_bytes
    std::size_t reserved_bytes = 0;  ///< what live blocks take from the capacity, in whole granules
    std::size_t largest_free = 0;    ///< the largest request that would be served
    std::size_t live_events = 0;
    std::size_t peak_events = 0;
    std::size_t errors = 0;                       ///< calls refused as misuse; being full is none
    std::array<std::size_t, call_kinds> calls{};  ///< calls made by kind, refused ones too

    [[nodiscard]] std::size_t count(call c) const noexcept { return calls[static_cast<std::size_t>(c)]; }
};

class sim_device {
public:
    static constexpr std::string_view name = "sim_device";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t alignment = 512;  ///< of every block, and its granule; cudaMalloc promises 256

    /// A number that is never used twice; 0 is the default stream. All streams are non-blocking ones.
    enum class stream : std::uint32_t {};
    using event = device::event;
    using reporter = void (*)(std::string_view message, void* context) noexcept;

    /// Capacity in bytes, rounded down to whole granules. Throws std::system_error when the system cannot map it twice.
    explicit sim_device(std::size_t capacity, const cost_profile& cost = {});
    sim_device(const sim_device&) = delete;
    sim_device& operator=(const sim_device&) = delete;

    /// Device memory, uninitialised; nullptr when no gap is large enough or the size is above PTRDIFF_MAX.
    /// Its addresses fault when the host reads or writes them.
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
    /// Waits for the whole device, as cudaFree does. nullptr does nothing; what is not the start of a live block is
    /// reported.
    void deallocate(void* p) noexcept;
    /// Bytes not taken by live blocks; a single request may find them in pieces, see `sim_usage::largest_free`.
    [[nodiscard]] std::size_t available_bytes() const noexcept { return space_.capacity() - space_.reserved(); }
    [[nodiscard]] std::size_t capacity() const noexcept { return space_.capacity(); }

    [[nodiscard]] static constexpr stream default_stream() noexcept { return stream{0}; }
    /// Takes no virtual time. Throws std::bad_alloc.
    [[nodiscard]] stream create_stream();
    /// What the stream was given still counts until it is through. False for the default stream.
    bool destroy(stream s) noexcept;

    /// `event::none` when there is no heap left.
    [[nodiscard]] event create_event() noexcept;
    /// `event::none` does nothing.
    void destroy(event e) noexcept;
    /// The event is complete when all that `s` was given so far is. Recording again replaces that, but for waits
    /// already made.
    bool record(event e, stream s) noexcept;
    /// What `s` is given from now on starts after what `e` was last recorded for; after nothing if it never was.
    bool wait(stream s, event e) noexcept;
    [[nodiscard]] bool done(event e) noexcept;
    /// Holds the host up until the event, the stream, or all streams are through.
    bool synchronize(event e) noexcept;
    bool synchronize(stream s) noexcept;
    void synchronize() noexcept;

    /// The range on the device must lie within one live block, the other one on the host; 0 bytes always may be copied.
    bool copy_to_device(void* device, const void* host, std::size_t bytes, stream s) noexcept;
    bool copy_to_host(void* host, const void* device, std::size_t bytes, stream s) noexcept;
    /// Computes `t` with the kernels of the CPU: the same bits. The data of `t` and of its sources must lie within live
    /// blocks; a leaf is refused, a view has nothing to launch.
    bool launch(const tensor::tensor& t, stream s) noexcept;

    /// The host's clock; it starts at 0.
    [[nodiscard]] nanoseconds now() const noexcept { return host_; }
    [[nodiscard]] const cost_profile& cost() const noexcept { return cost_; }
    [[nodiscard]] sim_usage usage() const noexcept;

    /// Called with one line for every misuse from now on; nullptr for none.
    void report_to(reporter r, void* context) noexcept;
    /// The line of the last misuse; empty if there was none. Valid until the next.
    [[nodiscard]] std::string_view last_error() const noexcept { return last_error_.data(); }

private:
    // One sparse file, mapped without access at the addresses that are handed out, and writable at others.
    class memory {
    public:
        explicit memory(std::size_t bytes);
        memory(const memory&) = delete;
        memory& operator=(const memory&) = delete;
        ~memory();
        [[nodiscard]] bool touches(const void* p, std::size_t bytes) const noexcept;
        [[nodiscard]] void* address(std::size_t offset) const noexcept { return device_ + offset; }
        /// Beyond every block for a pointer that is not of the device.
        [[nodiscard]] std::size_t offset(const void* p) const noexcept;
        [[nodiscard]] void* writable(std::size_t offset) const noexcept { return shadow_ + offset; }
        void discard(std::size_t offset, std::size_t bytes) noexcept;

    private:
        std::size_t bytes_;
        std::byte* device_ = nullptr;
        std::byte* shadow_ = nullptr;
    };
    struct stream_state {
        nanoseconds ready = 0;  // through with all that it was given
        bool open = true;
    };
    struct event_state {
        nanoseconds at = 0;            // complete from then on
        std::uint32_t generation = 1;  // grows when the event dies, so that its handle fits no later one
        std::uint32_t next_idle = 0;
    };

    void enter(call c) noexcept { ++usage_.calls[static_cast<std::size_t>(c)]; }
    [[gnu::format(printf, 3, 4)]] bool refuse(call c, const char* format, ...) noexcept;
    [[nodiscard]] stream_state* known(call c, stream s) noexcept;
    [[nodiscard]] event_state* known(call c, event e) noexcept;
    /// Where the simulator may touch those bytes; nullptr, after a report, unless they lie within one live block.
    [[nodiscard]] void* writable(call c, const void* device, std::size_t bytes) noexcept;
    [[nodiscard]] bool is_host(call c, const void* host, std::size_t bytes) noexcept;
    void issue(stream_state& s, nanoseconds host_cost, nanoseconds duration) noexcept;
    void hold_until(nanoseconds t) noexcept;

    cost_profile cost_;
    address_space space_;
    memory memory_;
    nanoseconds host_ = 0;
    std::vector<stream_state> streams_{1};  // by number
    std::vector<event_state> events_;       // by the low half of the handle, less one
    std::uint32_t idle_event_ = 0;          // first of a list by number, 0 ends it
    sim_usage usage_;
    reporter reporter_ = nullptr;
    void* reporter_context_ = nullptr;
    std::array<char, 192> last_error_{};
};

static_assert(tensor::device_backend<sim_device>);

}  // namespace alloclab::device
