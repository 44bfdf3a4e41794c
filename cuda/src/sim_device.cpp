// sim_device as an object: its making, what its calls have in common, faults to come, and what it reports.
#include "alloclab/device/sim_device.hpp"

#include <cstdarg>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "sim_state.hpp"

namespace alloclab::device {
namespace {

constexpr std::array<std::string_view, call_kinds> call_names{
    "allocate",        "deallocate",     "allocate_async", "deallocate_async", "allocate_host",
    "deallocate_host", "create_stream",  "destroy_stream", "create_event",     "destroy_event",
    "record",          "wait",           "done",           "synchronize",      "copy_to_device",
    "copy_to_host",    "copy_on_device", "fill",           "launch",           "capture"};
static_assert(!call_names.back().empty());

/// What CUDA refuses while something is captured in its global mode; stream-ordered memory is merely not modelled.
constexpr bool spoils_a_capture(call c) noexcept {
    switch (c) {
        case call::allocate:
        case call::deallocate:
        case call::allocate_host:
        case call::deallocate_host:
        case call::done:
        case call::synchronize:
            return true;
        default:
            return false;
    }
}

}  // namespace

std::string_view name_of(call c) noexcept {
    const auto n = static_cast<std::size_t>(c);
    return n < call_kinds ? call_names[n] : "unknown call";
}

nanoseconds after(nanoseconds t, nanoseconds duration) noexcept {
    nanoseconds sum = 0;
    return __builtin_add_overflow(t, duration, &sum) ? std::numeric_limits<nanoseconds>::max() : sum;
}

// --- the host

sim_host::sim_host() : state_(std::make_unique<state>()) {}
sim_host::~sim_host() = default;
nanoseconds sim_host::now() const noexcept { return state_->now; }
void sim_host::spend(nanoseconds t) noexcept { state_->spend(t); }

// --- making

sim_device::state::state(sim_host& with, sim_host::state& of_host, std::size_t capacity, const cost_profile& costs)
    : program(with),
      host(of_host),
      cost(costs),
      space(capacity, alignment),
      memory(space.capacity()),
      number(of_host.devices) {
    std::string label = "stream \"default\"";
    if (number != 0) label += " of device " + std::to_string(number);
    host.memories.reserve(host.memories.size() + 1);
    streams.push_back({.who = host.add_stream(label)});
    streams_made = 1;
    host.memories.push_back(&memory);
    ++host.devices;
}

sim_device::sim_device(std::size_t capacity, const cost_profile& cost)
    : own_host_(std::make_unique<sim_host>()),
      state_(std::make_unique<state>(*own_host_, *own_host_->state_, capacity, cost)) {}

sim_device::sim_device(sim_host& host, std::size_t capacity, const cost_profile& cost)
    : state_(std::make_unique<state>(host, *host.state_, capacity, cost)) {}

sim_device::~sim_device() {
    for (const auto& [p, bytes] : state_->host_blocks) ::operator delete (p, std::align_val_t{4096});
    for (const state::stream_state& s : state_->streams) state_->host.uses.retire(s.who);
    state_->host.forget_closed_of(state_.get());
    for (auto& e : state_->host.events)
        if (e.made_by == state_.get()) state_->host.bury(e);
    std::erase(state_->host.memories, &state_->memory);
    state_->host.uses.forget(state_->range_of(state_->memory.address(0), state_->space.capacity()));
}

// --- every call

bool sim_device::state::enter(call c, std::size_t bytes) noexcept {
    fault_code = 0;
    if (replaying) return true;
    ++usage.calls[static_cast<std::size_t>(c)];
    if (gone) {
        tell(c, "the driver is unloading");
        return false;
    }
    if (in_capture && spoils_a_capture(c))
        return refuse(c, "not while a stream captures; reserve before the capture begins");
    if (in_capture && (c == call::allocate_async || c == call::deallocate_async))
        return refuse(c, "not modelled while a stream captures; reserve before the capture begins");
    return faults.empty() || !is_due(c, bytes);
}

bool sim_device::state::is_due(call c, std::size_t bytes) noexcept {
    const injected* due = nullptr;
    for (injected& f : faults) {
        if (f.what.at != c || bytes < f.what.least_bytes) continue;
        const std::size_t call_number = ++f.seen;
        if (due != nullptr || call_number < f.what.first) continue;
        const std::size_t since = call_number - f.what.first;
        if (since == 0 || (f.what.every != 0 && since % f.what.every == 0)) due = &f;
    }
    if (due == nullptr) return false;
    ++usage.faults;
    fault_code = due->what.code;
    tell(c, "fails as it was told to, at call %zu since", due->seen);
    return true;
}

void sim_device::state::write_line(call c, const char* format, std::va_list arguments) noexcept {
    const std::string_view what = name_of(c);
    const int head =
        std::snprintf(last_error.data(), last_error.size(), "%.*s: ", static_cast<int>(what.size()), what.data());
    std::vsnprintf(last_error.data() + head, last_error.size() - static_cast<std::size_t>(head), format, arguments);
}

void sim_device::state::tell(call c, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_line(c, format, arguments);
    va_end(arguments);
}

bool sim_device::state::refuse(call c, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_line(c, format, arguments);
    va_end(arguments);
    if (gone) return false;  // quietly
    ++usage.errors;
    if (to != nullptr) to(last_error.data(), to_context);
    return false;
}

// --- failures to come

void sim_device::inject(const fault& f) {
    if (f.first == 0) throw std::invalid_argument("sim_device: calls count from 1, so the first to fail is not call 0");
    state_->faults.push_back({f});
}
void sim_device::clear_faults() noexcept { state_->faults.clear(); }
void sim_device::refuse_beyond(std::size_t bytes) noexcept { state_->limit = bytes; }
void sim_device::unload() noexcept { state_->gone = true; }
bool sim_device::unloaded() const noexcept { return state_->gone; }
int sim_device::last_fault() const noexcept { return state_->fault_code; }

// --- what happened

nanoseconds sim_device::now() const noexcept { return state_->host.now; }
sim_host& sim_device::host() const noexcept { return state_->program; }
const cost_profile& sim_device::cost() const noexcept { return state_->cost; }

sim_usage sim_device::usage() const noexcept {
    sim_usage u = state_->usage;
    u.reserved_bytes = state_->space.reserved();
    u.largest_free = state_->space.largest_gap();
    u.parked_bytes = state_->parked_bytes;
    return u;
}

void sim_device::report_to(reporter r, void* context) noexcept {
    state_->to = r;
    state_->to_context = context;
}

std::string_view sim_device::last_error() const noexcept { return state_->last_error.data(); }

}  // namespace alloclab::device
