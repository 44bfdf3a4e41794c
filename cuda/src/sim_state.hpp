// What a simulated device and its host remember, and what the files of sim_device share. The public header says what
// all of it is for; sim_memory, sim_streams, sim_work, sim_capture and sim_faults each hold the calls of their name.
#pragma once

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "alloclab/device/address_space.hpp"
#include "alloclab/device/sim_device.hpp"
#include "order.hpp"

namespace alloclab::device {

[[nodiscard]] nanoseconds after(nanoseconds t, nanoseconds duration) noexcept;

class sim_memory;

class sim_host::state {
public:
    /// Destroyed, and not all of its work is known to the host; then the actor may stand for another stream.
    struct closed_stream {
        const void* device;
        actor who;
        nanoseconds ready;
        stream_kind kind;
    };
    struct event_state {
        nanoseconds at = 0;  // complete from then on
        vector_clock behind;
        const void* made_by = nullptr;  // the device; none: dead
        std::uint32_t generation = 1;   // grows when the event dies, so that its handle fits no later one
        std::uint32_t next_idle = 0;
        std::string called;  // as reports have it
    };

    void hold_until(nanoseconds t) noexcept { now = std::max(now, t); }
    void spend(nanoseconds t) noexcept { now = after(now, t); }
    [[nodiscard]] event_state* find(event e) noexcept;
    void bury(event_state& e) noexcept;
    /// Throws std::bad_alloc.
    [[nodiscard]] actor add_stream(std::string_view name);
    void forget_closed_of(const void* device) noexcept;

    nanoseconds now = 0;
    order uses;
    std::vector<event_state> events;  // by the low half of the handle, less one
    std::uint32_t idle_event = 0;     // first of a list by number, 0 ends it
    std::vector<closed_stream> closed;
    std::vector<const sim_memory*> memories;  // of its devices
    std::size_t devices = 0;                  // made so far
};

/// One sparse file, mapped without access at the addresses that are handed out, and writable at others.
class sim_memory {
public:
    explicit sim_memory(std::size_t bytes);
    sim_memory(const sim_memory&) = delete;
    sim_memory& operator=(const sim_memory&) = delete;
    ~sim_memory();
    [[nodiscard]] bool touches(const void* p, std::size_t bytes) const noexcept;
    [[nodiscard]] void* address(std::size_t offset) const noexcept { return device_ + offset; }
    /// Beyond every block for a pointer that is not of the device.
    [[nodiscard]] std::size_t offset(const void* p) const noexcept;
    [[nodiscard]] std::byte* writable(std::size_t offset) const noexcept { return shadow_ + offset; }
    void discard(std::size_t offset, std::size_t bytes) noexcept;

private:
    std::size_t bytes_;
    std::byte* device_ = nullptr;
    std::byte* shadow_ = nullptr;
};

class sim_device::state {
public:
    struct stream_state {
        stream number{};
        actor who = actor::host;
        nanoseconds ready = 0;  // through with all that it was given
        stream_kind kind = stream_kind::blocking;
    };
    /// Freed in a stream's order, and still the pool's.
    struct parked_block {
        stream by{};
        nanoseconds through = 0;
        vector_clock behind;  // the free
    };
    struct injected {
        fault what;
        std::size_t seen = 0;
    };
    using piece = std::function<bool(sim_device&, stream, std::string_view called)>;
    struct named_piece {
        piece does;
        std::string called;
    };
    struct graph {
        std::vector<named_piece> pieces;
        bool alive = true;
    };

    state(sim_host& with, sim_host::state& of_host, std::size_t capacity, const cost_profile& costs);

    /// Counts the call; false when it fails: the driver is gone, it is not for a capture, or a fault says so.
    [[nodiscard]] bool enter(call c, std::size_t bytes = 0) noexcept;
    [[gnu::format(printf, 3, 4)]] bool refuse(call c, const char* format, ...) noexcept;  // misuse
    [[gnu::format(printf, 3, 4)]] void tell(call c, const char* format, ...) noexcept;    // the text, and no more
    void write_line(call c, const char* format, std::va_list arguments) noexcept;
    [[nodiscard]] bool is_due(call c, std::size_t bytes) noexcept;
    void report(std::span<const race> races) noexcept;
    [[nodiscard]] bool is_repeated(const race& r) noexcept;

    [[nodiscard]] stream_state* known(call c, stream s) noexcept;
    [[nodiscard]] sim_host::state::event_state* known(call c, event e) noexcept;
    /// A new piece of work of the stream: legacy streams are put in order, and the clocks move.
    void issue(stream_state& s, nanoseconds host_cost, nanoseconds duration) noexcept;
    void drain(const stream_state& s) noexcept;  // the host waits for it
    void drain() noexcept;
    /// Calls `f` with the actor and the time of each blocking stream but the default one.
    template <class F>
    void each_blocking(const F& f) const noexcept;
    [[nodiscard]] bool use(const stream_state& s, const void* p, std::size_t bytes, access a, std::string_view what,
                           std::string_view called) noexcept;
    void use(const stream_state& s, const tensor::tensor& t, access a, std::string_view what,
             std::string_view called) noexcept;
    [[nodiscard]] byte_range range_of(const void* p, std::size_t bytes) const noexcept;

    [[nodiscard]] std::byte* writable(call c, const void* device, std::size_t bytes) noexcept;
    [[nodiscard]] bool is_host(call c, const void* host, std::size_t bytes) noexcept;
    [[nodiscard]] bool is_beyond(std::size_t bytes, std::size_t held) const noexcept;
    [[nodiscard]] std::size_t take(std::size_t bytes) noexcept;  // from the capacity; too_many: full
    void* full(call c, std::size_t bytes) noexcept;              // tells why
    [[nodiscard]] std::size_t asked(const void* p) const noexcept;
    void count_taken(std::size_t bytes) noexcept;
    void count_given(std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t take_parked(std::size_t bytes, stream_state& on, std::size_t most) noexcept;
    void give_back(std::map<std::size_t, parked_block>::iterator at) noexcept;
    void give_back_through(std::size_t bytes) noexcept;
    void await_parked_if_they_make_room(std::size_t bytes) noexcept;

    /// True when the work belongs to a capture, which has kept it, or refused it for want of heap.
    template <class Piece>
    [[nodiscard]] bool keeps(call c, stream s, bool& kept, std::string_view called, const Piece& p) noexcept;

    sim_host& program;
    sim_host::state& host;  // of that program
    cost_profile cost;
    address_space space;
    sim_memory memory;
    std::size_t number;                 // among the devices of the host
    std::vector<stream_state> streams;  // open ones by number, the default one first
    std::uint32_t streams_made = 0;
    std::map<std::size_t, parked_block> parked;          // by offset; live blocks of `space`
    std::unordered_map<void*, std::size_t> host_blocks;  // page-locked: bytes
    std::vector<injected> faults;
    std::vector<graph> graphs;  // by number, less one
    graph taking;               // while a stream captures
    stream capturing{};
    bool in_capture = false;
    bool replaying = false;
    bool gone = false;
    std::size_t parked_bytes = 0;  // extents
    std::size_t keep = 0;          // of these
    std::size_t limit = too_many;  // that available_bytes does not tell
    int fault_code = 0;
    sim_usage usage;
    std::array<race, 8> reported{};  // the last ones of one work
    std::size_t reports = 0;
    reporter to = nullptr;
    void* to_context = nullptr;
    std::array<char, 384> last_error{};
};

template <class Piece>
bool sim_device::state::keeps(call c, stream s, bool& kept, std::string_view called, const Piece& p) noexcept {
    if (!in_capture || s != capturing || replaying) return false;
    try {
        taking.pieces.push_back({p, std::string(called)});
        kept = true;
    } catch (const std::bad_alloc&) {
        kept = refuse(c, "no heap for what is captured");
    }
    return true;
}

template <class F>
void sim_device::state::each_blocking(const F& f) const noexcept {
    for (const stream_state& s : streams)
        if (s.kind == stream_kind::blocking && s.number != default_stream()) f(s.who, s.ready);
    for (const sim_host::state::closed_stream& s : host.closed)
        if (s.kind == stream_kind::blocking && s.device == this) f(s.who, s.ready);
}

}  // namespace alloclab::device
