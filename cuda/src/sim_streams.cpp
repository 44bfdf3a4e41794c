// Streams, events and waiting on the simulated device.
#include <algorithm>
#include <new>
#include <utility>

#include "sim_state.hpp"

namespace alloclab::device {

sim_host::state::event_state* sim_host::state::find(event e) noexcept {
    const auto handle = static_cast<std::uint64_t>(e);
    const std::size_t number = handle & 0xFFFF'FFFF;
    event_state* const found = number != 0 && number <= events.size() ? &events[number - 1] : nullptr;
    return found != nullptr && found->made_by != nullptr && found->generation == handle >> 32 ? found : nullptr;
}

void sim_host::state::bury(event_state& e) noexcept {
    ++e.generation;
    e.made_by = nullptr;
    e.next_idle = idle_event;
    idle_event = static_cast<std::uint32_t>(&e - events.data()) + 1;
}

actor sim_host::state::add_stream(std::string_view name) {
    const actor who = uses.add_stream(name);
    std::erase_if(closed, [&](const closed_stream& s) { return s.who == who; });  // the host has heard all of it
    return who;
}

void sim_host::state::forget_closed_of(const void* device) noexcept {
    std::erase_if(closed, [&](const closed_stream& s) { return s.device == device; });
}

sim_device::state::stream_state* sim_device::state::known(call c, stream s) noexcept {
    const auto by_number = [](const stream_state& a, stream b) { return a.number < b; };
    const auto found = std::lower_bound(streams.begin(), streams.end(), s, by_number);
    const auto n = static_cast<std::uint32_t>(s);
    if (found == streams.end() || found->number != s) {
        refuse(c, "stream %u %s", n, n < streams_made ? "is destroyed" : "was never created");
        return nullptr;
    }
    if (in_capture && !replaying && s == default_stream()) {
        const auto capturer = std::lower_bound(streams.begin(), streams.end(), capturing, by_number);
        if (capturer->kind == stream_kind::blocking) {
            refuse(c, "work of the default stream would order the capture of a blocking stream");
            return nullptr;
        }
    }
    return &*found;
}

sim_host::state::event_state* sim_device::state::known(call c, event e) noexcept {
    sim_host::state::event_state* const found = host.find(e);
    if (found == nullptr)
        refuse(c, "event %#llx %s", static_cast<unsigned long long>(e), e == event::none ? "is none" : "is not live");
    return found;
}

// The legacy default stream starts after all that blocking streams were given, and they after what it was given.
void sim_device::state::issue(stream_state& s, nanoseconds host_cost, nanoseconds duration) noexcept {
    if (!replaying) host.spend(host_cost);
    const auto starts_behind = [&](actor other, nanoseconds ready) {
        host.uses.join(s.who, other);
        s.ready = std::max(s.ready, ready);
    };
    if (s.number == default_stream()) each_blocking(starts_behind);
    else if (s.kind == stream_kind::blocking) starts_behind(streams.front().who, streams.front().ready);
    host.uses.begin_work(s.who);
    s.ready = after(std::max(s.ready, host.now), duration);
}

void sim_device::state::drain(const stream_state& s) noexcept {
    host.hold_until(s.ready);
    host.uses.join(actor::host, s.who);
}

void sim_device::state::drain() noexcept {
    for (const stream_state& s : streams) drain(s);
    for (const sim_host::state::closed_stream& s : host.closed) {
        if (s.device != this) continue;
        host.hold_until(s.ready);
        host.uses.join(actor::host, s.who);
    }
    host.forget_closed_of(this);
}

// --- streams

sim_device::stream sim_device::create_stream(stream_kind kind, std::string_view called) {
    state& d = *state_;
    if (!d.enter(call::create_stream)) throw std::bad_alloc();
    const auto number = static_cast<stream>(d.streams_made);
    std::string label =
        called.empty() ? "stream " + std::to_string(d.streams_made) : "stream \"" + std::string(called) + '"';
    if (d.number != 0) label += " of device " + std::to_string(d.number);
    if (d.streams.size() == d.streams.capacity()) d.streams.reserve(2 * d.streams.size());
    d.streams.push_back({.number = number, .who = d.host.add_stream(label), .ready = 0, .kind = kind});
    ++d.streams_made;
    ++d.usage.live_streams;
    return number;
}

bool sim_device::destroy(stream s) noexcept {
    state& d = *state_;
    if (!d.enter(call::destroy_stream)) return false;
    state::stream_state* const on = d.known(call::destroy_stream, s);
    if (on == nullptr) return false;
    if (s == default_stream()) return d.refuse(call::destroy_stream, "the default stream stays");
    if (d.in_capture && s == d.capturing) return d.refuse(call::destroy_stream, "the stream captures");
    try {
        d.host.closed.push_back({.device = &d, .who = on->who, .ready = on->ready, .kind = on->kind});
    } catch (const std::bad_alloc&) {
        d.drain(*on);  // then nothing of it is left to remember
    }
    d.host.uses.retire(on->who);
    d.streams.erase(d.streams.begin() + (on - d.streams.data()));
    --d.usage.live_streams;
    return true;
}

// --- events

sim_device::event sim_device::create_event(std::string_view called) noexcept try {
    state& d = *state_;
    if (!d.enter(call::create_event)) return event::none;
    if (d.host.idle_event == 0) {
        d.host.events.emplace_back();
        d.host.idle_event = static_cast<std::uint32_t>(d.host.events.size());
    }
    const std::uint32_t n = d.host.idle_event;
    auto& e = d.host.events[n - 1];
    e.called = called.empty() ? "event " + std::to_string(n) : "event \"" + std::string(called) + '"';
    d.host.idle_event = e.next_idle;
    e.at = 0;
    e.behind = {};
    e.made_by = &d;
    d.usage.peak_events = std::max(d.usage.peak_events, ++d.usage.live_events);
    d.host.spend(d.cost.create_event);
    return static_cast<event>(std::uint64_t{e.generation} << 32 | n);
} catch (const std::bad_alloc&) {
    return event::none;
}

void sim_device::destroy(event e) noexcept {
    state& d = *state_;
    if (e == event::none || !d.enter(call::destroy_event)) return;
    auto* const found = d.known(call::destroy_event, e);
    if (found == nullptr) return;
    if (found->made_by != &d) {
        d.refuse(call::destroy_event, "%s is another device's", found->called.c_str());
        return;
    }
    d.host.bury(*found);
    --d.usage.live_events;
    d.host.spend(d.cost.destroy_event);
}

bool sim_device::record(event e, stream s) noexcept {
    state& d = *state_;
    if (!d.enter(call::record)) return false;
    state::stream_state* const on = d.known(call::record, s);
    auto* const found = on != nullptr ? d.known(call::record, e) : nullptr;
    if (found == nullptr) return false;
    if (found->made_by != &d) return d.refuse(call::record, "%s is another device's", found->called.c_str());
    bool kept = false;
    if (d.keeps(call::record, s, kept, {},
                [e](sim_device& on_device, stream to, std::string_view) { return on_device.record(e, to); }))
        return kept;
    d.issue(*on, d.cost.record, 0);
    if (!d.host.uses.record(on->who, found->behind, found->called))
        return d.refuse(call::record, "no heap for what the event stands behind");
    found->at = on->ready;
    return true;
}

bool sim_device::wait(stream s, event e) noexcept {
    state& d = *state_;
    if (!d.enter(call::wait)) return false;
    state::stream_state* const on = d.known(call::wait, s);
    const auto* const found = on != nullptr ? d.known(call::wait, e) : nullptr;
    if (found == nullptr) return false;
    bool kept = false;
    if (d.keeps(call::wait, s, kept, {},
                [e](sim_device& on_device, stream by, std::string_view) { return on_device.wait(by, e); }))
        return kept;
    d.issue(*on, d.cost.wait, 0);
    d.host.uses.wait(on->who, found->behind);
    on->ready = std::max(on->ready, found->at);
    return true;
}

bool sim_device::done(event e) noexcept {
    state& d = *state_;
    if (!d.enter(call::done)) return false;
    const auto* const found = d.known(call::done, e);
    if (found == nullptr) return false;
    d.host.spend(d.cost.query);
    if (d.host.now < found->at) return false;
    d.host.uses.wait(actor::host, found->behind);
    return true;
}

// --- waiting

bool sim_device::synchronize(event e) noexcept {
    state& d = *state_;
    if (!d.enter(call::synchronize)) return false;
    const auto* const found = d.known(call::synchronize, e);
    if (found == nullptr) return false;
    d.host.spend(d.cost.synchronize);
    d.host.hold_until(found->at);
    d.host.uses.wait(actor::host, found->behind);
    d.give_back_through(d.keep);
    return true;
}

bool sim_device::synchronize(stream s) noexcept {
    state& d = *state_;
    if (!d.enter(call::synchronize)) return false;
    const state::stream_state* const on = d.known(call::synchronize, s);
    if (on == nullptr) return false;
    d.host.spend(d.cost.synchronize);
    if (s == default_stream())
        d.each_blocking([&](actor who, nanoseconds ready) {  // it would start behind them
            d.host.hold_until(ready);
            d.host.uses.join(actor::host, who);
        });
    d.drain(*on);
    d.give_back_through(d.keep);
    return true;
}

bool sim_device::synchronize() noexcept {
    state& d = *state_;
    if (!d.enter(call::synchronize)) return false;
    d.host.spend(d.cost.synchronize);
    d.drain();
    d.give_back_through(d.keep);
    return true;
}

}  // namespace alloclab::device
