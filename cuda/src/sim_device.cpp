#include "alloclab/device/sim_device.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>

#include "alloclab/bytes.hpp"

namespace alloclab::device {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t worth_discarding = 2u << 20;

nanoseconds after(nanoseconds t, nanoseconds duration) noexcept {
    nanoseconds sum = 0;
    return __builtin_add_overflow(t, duration, &sum) ? std::numeric_limits<nanoseconds>::max() : sum;
}

}  // namespace

std::string_view name_of(call c) noexcept {
    switch (c) {
        case call::allocate:
            return "allocate";
        case call::deallocate:
            return "deallocate";
        case call::create_stream:
            return "create_stream";
        case call::destroy_stream:
            return "destroy_stream";
        case call::create_event:
            return "create_event";
        case call::destroy_event:
            return "destroy_event";
        case call::record:
            return "record";
        case call::wait:
            return "wait";
        case call::done:
            return "done";
        case call::synchronize:
            return "synchronize";
        case call::copy_to_device:
            return "copy_to_device";
        case call::copy_to_host:
            return "copy_to_host";
        case call::launch:
            return "launch";
    }
    return "unknown call";
}

// --- memory

sim_device::memory::memory(std::size_t bytes) : bytes_(std::max(align_up(bytes, page), page)) {
    const auto fail = [](const char* what) { throw std::system_error(errno, std::generic_category(), what); };
    const int file = is_size(bytes_) ? ::memfd_create("alloclab sim_device", MFD_CLOEXEC) : (errno = ENOMEM, -1);
    if (file < 0) fail("sim_device: no file for device memory");
    const bool sized = ::ftruncate(file, static_cast<off_t>(bytes_)) == 0;
    const auto map = [&](int access) {
        return sized ? ::mmap(nullptr, bytes_, access, MAP_SHARED | MAP_NORESERVE, file, 0) : MAP_FAILED;
    };
    void* const device = map(PROT_NONE);
    void* const shadow = device != MAP_FAILED ? map(PROT_READ | PROT_WRITE) : MAP_FAILED;
    const int error = errno;
    ::close(file);
    if (shadow == MAP_FAILED) {
        if (device != MAP_FAILED) ::munmap(device, bytes_);
        errno = error;
        fail("sim_device: cannot map device memory");
    }
    device_ = static_cast<std::byte*>(device);
    shadow_ = static_cast<std::byte*>(shadow);
}

sim_device::memory::~memory() {
    ::munmap(device_, bytes_);
    ::munmap(shadow_, bytes_);
}

std::size_t sim_device::memory::offset(const void* p) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto first = reinterpret_cast<std::uintptr_t>(device_);
    return address >= first && address - first < bytes_ ? address - first : too_many;
}

bool sim_device::memory::touches(const void* p, std::size_t bytes) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto first = reinterpret_cast<std::uintptr_t>(device_);
    return address < first + bytes_ && sum(address, bytes) > first;
}

void sim_device::memory::discard(std::size_t offset, std::size_t bytes) noexcept {
    if (bytes < worth_discarding) return;
    const std::size_t first = align_up(offset, page);
    const std::size_t end = offset + bytes - (offset + bytes) % page;
    ::madvise(shadow_ + first, end - first, MADV_REMOVE);  // if it fails the pages merely stay
}

sim_device::sim_device(std::size_t capacity, const cost_profile& cost)
    : cost_(cost), space_(capacity, alignment), memory_(space_.capacity()) {}

void* sim_device::allocate(std::size_t bytes) noexcept {
    enter(call::allocate);
    const std::size_t offset = space_.allocate(bytes);
    if (offset == too_many) return nullptr;
    ++usage_.live;
    usage_.live_bytes += at_least_one(bytes);
    usage_.peak_bytes = std::max(usage_.peak_bytes, usage_.live_bytes);
    host_ = after(host_, cost_.allocate_time(bytes));
    return memory_.address(offset);
}

void sim_device::deallocate(void* p) noexcept {
    if (p == nullptr) return;
    enter(call::deallocate);
    const std::size_t offset = memory_.offset(p);
    const address_space::block released = space_.release(offset);
    if (released.bytes == 0) {
        const address_space::block around = space_.find(offset);
        if (around.bytes != 0)
            refuse(call::deallocate, "%p lies %zu bytes into a live block", p, offset - around.offset);
        else if (offset < space_.capacity()) refuse(call::deallocate, "%p is not live; released twice?", p);
        else refuse(call::deallocate, "%p is not memory of this device", p);
        return;
    }
    --usage_.live;
    usage_.live_bytes -= released.bytes;
    memory_.discard(released.offset, released.bytes);
    host_ = after(host_, cost_.deallocate);
    for (const stream_state& s : streams_) hold_until(s.ready);
}

void* sim_device::writable(call c, const void* device, std::size_t bytes) noexcept {
    const std::size_t offset = memory_.offset(device);
    const address_space::block block = space_.find(offset);
    if (block.bytes == 0) {
        refuse(c, offset < space_.capacity() ? "%p is not live" : "%p is not memory of this device", device);
        return nullptr;
    }
    const std::size_t into = offset - block.offset;
    if (into > block.bytes || bytes > block.bytes - into) {
        refuse(c, "%p and %zu bytes reach past the end of a block of %zu", device, bytes, block.bytes);
        return nullptr;
    }
    return memory_.writable(offset);
}

bool sim_device::is_host(call c, const void* host, std::size_t bytes) noexcept {
    if (host == nullptr) return refuse(c, "the host's side is null");
    if (memory_.touches(host, bytes)) return refuse(c, "%p is on the device, not on the host", host);
    return true;
}

// --- streams and events

sim_device::stream sim_device::create_stream() {
    enter(call::create_stream);
    streams_.emplace_back();
    return static_cast<stream>(streams_.size() - 1);
}

bool sim_device::destroy(stream s) noexcept {
    enter(call::destroy_stream);
    stream_state* const on = known(call::destroy_stream, s);
    if (on == nullptr) return false;
    if (s == default_stream()) return refuse(call::destroy_stream, "the default stream stays");
    on->open = false;
    return true;
}

sim_device::event sim_device::create_event() noexcept try {
    enter(call::create_event);
    if (idle_event_ == 0) {
        events_.emplace_back();
        idle_event_ = static_cast<std::uint32_t>(events_.size());
    }
    const std::uint32_t number = idle_event_;
    event_state& e = events_[number - 1];
    idle_event_ = e.next_idle;
    e.at = 0;
    usage_.peak_events = std::max(usage_.peak_events, ++usage_.live_events);
    host_ = after(host_, cost_.create_event);
    return static_cast<event>(std::uint64_t{e.generation} << 32 | number);
} catch (const std::bad_alloc&) {
    return event::none;
}

void sim_device::destroy(event e) noexcept {
    if (e == event::none) return;
    enter(call::destroy_event);
    event_state* const state = known(call::destroy_event, e);
    if (state == nullptr) return;
    ++state->generation;
    state->next_idle = idle_event_;
    idle_event_ = static_cast<std::uint32_t>(state - events_.data()) + 1;
    --usage_.live_events;
    host_ = after(host_, cost_.destroy_event);
}

sim_device::stream_state* sim_device::known(call c, stream s) noexcept {
    const auto number = static_cast<std::size_t>(s);
    if (number < streams_.size() && streams_[number].open) return &streams_[number];
    refuse(c, "stream %zu %s", number, number < streams_.size() ? "is destroyed" : "was never created");
    return nullptr;
}

sim_device::event_state* sim_device::known(call c, event e) noexcept {
    const auto handle = static_cast<std::uint64_t>(e);
    const std::size_t number = handle & 0xFFFF'FFFF;
    event_state* const state = number != 0 && number <= events_.size() ? &events_[number - 1] : nullptr;
    if (state != nullptr && state->generation == handle >> 32) return state;
    refuse(c, "event %#llx %s", static_cast<unsigned long long>(handle), e == event::none ? "is none" : "is not live");
    return nullptr;
}

bool sim_device::record(event e, stream s) noexcept {
    enter(call::record);
    stream_state* const on = known(call::record, s);
    event_state* const state = on != nullptr ? known(call::record, e) : nullptr;
    if (state == nullptr) return false;
    issue(*on, cost_.record, 0);
    state->at = on->ready;
    return true;
}

bool sim_device::wait(stream s, event e) noexcept {
    enter(call::wait);
    stream_state* const on = known(call::wait, s);
    const event_state* const state = on != nullptr ? known(call::wait, e) : nullptr;
    if (state == nullptr) return false;
    issue(*on, cost_.wait, 0);
    on->ready = std::max(on->ready, state->at);
    return true;
}

bool sim_device::done(event e) noexcept {
    enter(call::done);
    const event_state* const state = known(call::done, e);
    if (state == nullptr) return false;
    host_ = after(host_, cost_.query);
    return host_ >= state->at;
}

bool sim_device::synchronize(event e) noexcept {
    enter(call::synchronize);
    const event_state* const state = known(call::synchronize, e);
    if (state == nullptr) return false;
    host_ = after(host_, cost_.synchronize);
    hold_until(state->at);
    return true;
}

bool sim_device::synchronize(stream s) noexcept {
    enter(call::synchronize);
    const stream_state* const on = known(call::synchronize, s);
    if (on == nullptr) return false;
    host_ = after(host_, cost_.synchronize);
    hold_until(on->ready);
    return true;
}

void sim_device::synchronize() noexcept {
    enter(call::synchronize);
    host_ = after(host_, cost_.synchronize);
    for (const stream_state& s : streams_) hold_until(s.ready);
}

void sim_device::issue(stream_state& s, nanoseconds host_cost, nanoseconds duration) noexcept {
    host_ = after(host_, host_cost);
    s.ready = after(std::max(s.ready, host_), duration);
}

void sim_device::hold_until(nanoseconds t) noexcept { host_ = std::max(host_, t); }

// --- work

bool sim_device::copy_to_device(void* device, const void* host, std::size_t bytes, stream s) noexcept {
    enter(call::copy_to_device);
    stream_state* const on = known(call::copy_to_device, s);
    if (on == nullptr) return false;
    if (bytes != 0) {
        void* const to = writable(call::copy_to_device, device, bytes);
        if (to == nullptr || !is_host(call::copy_to_device, host, bytes)) return false;
        std::memcpy(to, host, bytes);
    }
    issue(*on, cost_.copy, cost_.copy_time(bytes));
    return true;
}

bool sim_device::copy_to_host(void* host, const void* device, std::size_t bytes, stream s) noexcept {
    enter(call::copy_to_host);
    stream_state* const on = known(call::copy_to_host, s);
    if (on == nullptr) return false;
    if (bytes != 0) {
        const void* const from = writable(call::copy_to_host, device, bytes);
        if (from == nullptr || !is_host(call::copy_to_host, host, bytes)) return false;
        std::memcpy(host, from, bytes);
    }
    issue(*on, cost_.copy, cost_.copy_time(bytes));
    return true;
}

bool sim_device::launch(const tensor::tensor& t, stream s) noexcept {
    if (t.op == tensor::op::view) return true;
    enter(call::launch);
    if (t.op == tensor::op::none) return refuse(call::launch, "a leaf has nothing to compute");
    stream_state* const on = known(call::launch, s);
    if (on == nullptr) return false;

    // the kernels follow `data`, so they are given copies that point to where the host may write
    std::array<tensor::tensor, 1 + tensor::max_sources> operands;
    const auto place = [&](tensor::tensor& operand, const tensor::tensor& original) {
        operand = original;
        if (operand.bytes() == 0) return true;  // nobody will touch it
        operand.data = writable(call::launch, original.data, operand.bytes());
        return operand.data != nullptr;
    };
    if (!place(operands[0], t)) return false;
    for (std::size_t i = 0; i < tensor::max_sources; ++i) {
        if (t.sources[i] == nullptr) continue;
        if (!place(operands[1 + i], *t.sources[i])) return false;
        operands[0].sources[i] = &operands[1 + i];
    }
    tensor::compute(operands[0]);
    issue(*on, cost_.launch, cost_.kernel_time(tensor::work_of(t)));
    return true;
}

// --- what happened

sim_usage sim_device::usage() const noexcept {
    sim_usage u = usage_;
    u.reserved_bytes = space_.reserved();
    u.largest_free = space_.largest_gap();
    return u;
}

void sim_device::report_to(reporter r, void* context) noexcept {
    reporter_ = r;
    reporter_context_ = context;
}

bool sim_device::refuse(call c, const char* format, ...) noexcept {
    ++usage_.errors;
    const std::string_view what = name_of(c);
    const int head =
        std::snprintf(last_error_.data(), last_error_.size(), "%.*s: ", static_cast<int>(what.size()), what.data());
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(last_error_.data() + head, last_error_.size() - static_cast<std::size_t>(head), format, arguments);
    va_end(arguments);
    if (reporter_ != nullptr) reporter_(last_error_.data(), reporter_context_);
    return false;
}

}  // namespace alloclab::device
