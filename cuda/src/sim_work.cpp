// Work of the simulated device: copies, fills, kernels, and which bytes each of them uses.
#include <array>
#include <charconv>
#include <cstring>

#include "sim_state.hpp"

namespace alloclab::device {

/// True when the same two works were told of before for the same block: one wait is missing, however many rows and
/// operands it would have put in order.
bool sim_device::state::is_repeated(const race& r) noexcept {
    const auto same = [](const memory_use& a, const memory_use& b) { return a.who == b.who && a.at == b.at; };
    if (reports != 0 && !same(reported[0].later, r.later)) reports = 0;
    for (std::size_t i = 0; i < reports; ++i)
        if (same(reported[i].earlier, r.earlier) && reported[i].where.block == r.where.block) return true;
    if (reports < reported.size()) reported[reports++] = r;
    return false;
}

void sim_device::state::report(std::span<const race> races) noexcept {
    for (const race& r : races) {
        if (is_repeated(r)) continue;
        ++usage.races;
        const std::string_view text = host.uses.describe(r, {last_error.data(), last_error.size() - 1});
        last_error[text.size()] = '\0';
        if (to != nullptr) to(text, to_context);
    }
}

bool sim_device::state::use(const stream_state& s, const void* p, std::size_t bytes, access a, std::string_view what,
                            std::string_view called) noexcept {
    if (bytes == 0) return true;
    const std::span<const race> races = host.uses.use(s.who, range_of(p, bytes), a, what, called);
    report(races);
    return races.empty();
}

// Rows that lie apart are used one by one, so that another stream may use what lies between them; but where they are
// many, the whole range is.
void sim_device::state::use(const stream_state& s, const tensor::tensor& t, access a, std::string_view what,
                            std::string_view called) noexcept {
    constexpr std::int64_t few = 64;
    const std::size_t row = static_cast<std::size_t>(t.ne[0]) * tensor::bytes_of(t.type);
    const std::size_t bytes = t.bytes();
    const bool apart = bytes != row * static_cast<std::size_t>(t.rows());
    if (bytes == 0 || !apart || t.nb[0] != tensor::bytes_of(t.type) || t.rows() > few) {
        (void)use(s, t.data, bytes, a, what, called);
        return;
    }
    for (std::int64_t i3 = 0; i3 < t.ne[3]; ++i3)
        for (std::int64_t i2 = 0; i2 < t.ne[2]; ++i2)
            for (std::int64_t i1 = 0; i1 < t.ne[1]; ++i1) {
                const std::size_t at = static_cast<std::size_t>(i1) * t.nb[1] + static_cast<std::size_t>(i2) * t.nb[2] +
                                       static_cast<std::size_t>(i3) * t.nb[3];
                (void)use(s, static_cast<const std::byte*>(t.data) + at, row, a, what, called);
            }
}

bool sim_device::copy_to_device(void* device, const void* host, std::size_t bytes, stream s,
                                std::string_view called) noexcept {
    state& d = *state_;
    if (!d.enter(call::copy_to_device, bytes)) return false;
    state::stream_state* const on = d.known(call::copy_to_device, s);
    if (on == nullptr) return false;
    std::byte* to = nullptr;
    if (bytes != 0) {
        to = d.writable(call::copy_to_device, device, bytes);
        if (to == nullptr || !d.is_host(call::copy_to_device, host, bytes)) return false;
    }
    bool kept = false;
    if (d.keeps(call::copy_to_device, s, kept, called, [=](sim_device& on_device, stream by, std::string_view named) {
            return on_device.copy_to_device(device, host, bytes, by, named);
        }))
        return kept;
    d.issue(*on, d.cost.copy, d.cost.copy_time(bytes));
    if (bytes == 0) return true;
    (void)d.use(*on, host, bytes, access::read, "copy_to_device", called);
    (void)d.use(*on, device, bytes, access::write, "copy_to_device", called);
    std::memcpy(to, host, bytes);
    return true;
}

bool sim_device::copy_to_host(void* host, const void* device, std::size_t bytes, stream s,
                              std::string_view called) noexcept {
    state& d = *state_;
    if (!d.enter(call::copy_to_host, bytes)) return false;
    state::stream_state* const on = d.known(call::copy_to_host, s);
    if (on == nullptr) return false;
    const std::byte* from = nullptr;
    if (bytes != 0) {
        from = d.writable(call::copy_to_host, device, bytes);
        if (from == nullptr || !d.is_host(call::copy_to_host, host, bytes)) return false;
    }
    bool kept = false;
    if (d.keeps(call::copy_to_host, s, kept, called, [=](sim_device& on_device, stream by, std::string_view named) {
            return on_device.copy_to_host(host, device, bytes, by, named);
        }))
        return kept;
    d.issue(*on, d.cost.copy, d.cost.copy_time(bytes));
    if (bytes == 0) return true;
    (void)d.use(*on, device, bytes, access::read, "copy_to_host", called);
    (void)d.use(*on, host, bytes, access::write, "copy_to_host", called);
    std::memcpy(host, from, bytes);
    return true;
}

bool sim_device::copy_on_device(void* to, const void* from, std::size_t bytes, stream s,
                                std::string_view called) noexcept {
    state& d = *state_;
    if (!d.enter(call::copy_on_device, bytes)) return false;
    state::stream_state* const on = d.known(call::copy_on_device, s);
    if (on == nullptr) return false;
    std::byte* target = nullptr;
    const std::byte* source = nullptr;
    if (bytes != 0) {
        target = d.writable(call::copy_on_device, to, bytes);
        source = target != nullptr ? d.writable(call::copy_on_device, from, bytes) : nullptr;
        if (source == nullptr) return false;
        if (target < source + bytes && source < target + bytes)
            return d.refuse(call::copy_on_device, "%p and %p overlap over %zu bytes", to, from, bytes);
    }
    bool kept = false;
    if (d.keeps(call::copy_on_device, s, kept, called, [=](sim_device& on_device, stream by, std::string_view named) {
            return on_device.copy_on_device(to, from, bytes, by, named);
        }))
        return kept;
    d.issue(*on, d.cost.copy, d.cost.memory_time(2 * bytes));
    if (bytes == 0) return true;
    (void)d.use(*on, from, bytes, access::read, "copy_on_device", called);
    (void)d.use(*on, to, bytes, access::write, "copy_on_device", called);
    std::memcpy(target, source, bytes);
    return true;
}

bool sim_device::fill(void* device, std::byte value, std::size_t bytes, stream s, std::string_view called) noexcept {
    state& d = *state_;
    if (!d.enter(call::fill, bytes)) return false;
    state::stream_state* const on = d.known(call::fill, s);
    if (on == nullptr) return false;
    std::byte* const to = bytes != 0 ? d.writable(call::fill, device, bytes) : nullptr;
    if (bytes != 0 && to == nullptr) return false;
    bool kept = false;
    if (d.keeps(call::fill, s, kept, called, [=](sim_device& on_device, stream by, std::string_view named) {
            return on_device.fill(device, value, bytes, by, named);
        }))
        return kept;
    d.issue(*on, d.cost.launch, d.cost.memory_time(bytes));
    if (bytes == 0) return true;
    (void)d.use(*on, device, bytes, access::write, "fill", called);
    std::memset(to, static_cast<int>(value), bytes);
    return true;
}

bool sim_device::launch(const tensor::tensor& t, stream s, std::string_view called) noexcept {
    if (t.op == tensor::op::view) return true;
    state& d = *state_;
    if (!d.enter(call::launch, t.bytes())) return false;
    if (t.op == tensor::op::none) return d.refuse(call::launch, "a leaf has nothing to compute");
    state::stream_state* const on = d.known(call::launch, s);
    if (on == nullptr) return false;

    // the kernels follow `data`, so they are given copies that point to where the host may write
    std::array<tensor::tensor, 1 + tensor::max_sources> operands;
    const auto place = [&](tensor::tensor& operand, const tensor::tensor& original) {
        operand = original;
        if (operand.bytes() == 0) return true;  // nobody will touch it
        operand.data = d.writable(call::launch, original.data, operand.bytes());
        return operand.data != nullptr;
    };
    if (!place(operands[0], t)) return false;
    for (std::size_t i = 0; i < tensor::max_sources; ++i) {
        if (t.sources[i] == nullptr) continue;
        if (!place(operands[1 + i], *t.sources[i])) return false;
        operands[0].sources[i] = &operands[1 + i];
    }

    bool kept = false;
    if (d.in_capture && s == d.capturing) {
        std::array<tensor::tensor, 1 + tensor::max_sources> as_given{t};
        for (std::size_t i = 0; i < tensor::max_sources; ++i)
            if (t.sources[i] != nullptr) as_given[1 + i] = *t.sources[i];
        if (d.keeps(call::launch, s, kept, called,
                    [all = as_given](sim_device& on_device, stream by, std::string_view named) mutable {
                        for (std::size_t i = 0; i < tensor::max_sources; ++i)
                            if (all[0].sources[i] != nullptr) all[0].sources[i] = &all[1 + i];
                        return on_device.launch(all[0], by, named);
                    }))
            return kept;
    }

    std::array<char, 2 + 2 * sizeof(void*)> address{'0', 'x'};
    if (called.empty()) {
        const auto number = reinterpret_cast<std::uintptr_t>(t.data);
        const char* const end = std::to_chars(address.data() + 2, address.data() + address.size(), number, 16).ptr;
        called = {address.data(), static_cast<std::size_t>(end - address.data())};
    }
    d.issue(*on, d.cost.launch, d.cost.kernel_time(tensor::work_of(t)));
    const std::string_view what = tensor::name_of(t.op);
    for (std::size_t i = 0; i < tensor::max_sources; ++i)
        if (t.sources[i] != nullptr && !(t.op == tensor::op::copy && i == 1))  // which is where a copy writes
            d.use(*on, *t.sources[i], access::read, what, called);
    d.use(*on, t, access::write, what, called);
    tensor::compute(operands[0]);
    return true;
}

bool sim_device::work(stream s, nanoseconds duration, std::string_view called) noexcept {
    state& d = *state_;
    if (!d.enter(call::launch)) return false;
    state::stream_state* const on = d.known(call::launch, s);
    if (on == nullptr) return false;
    bool kept = false;
    if (d.keeps(call::launch, s, kept, called, [=](sim_device& on_device, stream by, std::string_view named) {
            return on_device.work(by, duration, named);
        }))
        return kept;
    d.issue(*on, d.cost.launch, duration);
    return true;
}

bool sim_device::also_touches(stream s, const void* p, std::size_t bytes, access a, std::string_view called) noexcept {
    state& d = *state_;
    if (d.gone) return true;
    const state::stream_state* const on = d.known(call::launch, s);
    if (on == nullptr) return false;
    bool kept = false;
    if (d.keeps(call::launch, s, kept, called, [=](sim_device& on_device, stream by, std::string_view named) {
            (void)on_device.also_touches(by, p, bytes, a, named);
            return true;  // a race ends no replay
        }))
        return kept;
    return d.use(*on, p, bytes, a, "work", called);
}

bool sim_device::host_touches(const void* p, std::size_t bytes, access a, std::string_view called) noexcept {
    state& d = *state_;
    if (bytes == 0) return true;
    d.host.uses.begin_work(actor::host);
    const std::span<const race> races = d.host.uses.use(actor::host, d.range_of(p, bytes), a, "host", called);
    d.report(races);
    return races.empty();
}

void sim_device::forget_host(const void* p, std::size_t bytes) noexcept {
    if (bytes != 0) state_->host.uses.forget(state_->range_of(p, bytes));
}

}  // namespace alloclab::device
