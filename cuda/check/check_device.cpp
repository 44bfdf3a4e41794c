// The calls of cuda_device one by one: memory, streams and events, capture, the current device, growth in place.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "alloclab/device/cuda_device.hpp"
#include "check.hpp"

namespace alloclab::device::check {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool runtime_is_clean() { return cudaPeekAtLastError() == cudaSuccess; }

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>((i * 2654435761U + seed * 40503U) >> 7);
    return all;
}

std::vector<std::byte> fetch(cuda_device& d, const void* from, std::size_t bytes, stream s) {
    std::vector<std::byte> all(bytes);
    if (!d.copy_to_host(all.data(), from, bytes, s) || !d.synchronize(s)) all.clear();
    return all;
}

bool holds_only(const std::vector<std::byte>& all, std::byte value) {
    for (const std::byte b : all)
        if (b != value) return false;
    return !all.empty();
}

bool holds_nothing(const cuda_device& d) {
    const cuda_usage u = d.usage();
    return u.live == 0 && u.live_bytes == 0 && u.live_host_bytes == 0 && u.live_streams == 0 && u.live_events == 0;
}

void full_and_usable_again(checks& c, cuda_device& d) {
    void* none = d.allocate(d.capacity() * 2);
    c.that(none == nullptr, "twice the capacity is refused");
    c.that(!d.last_error().empty(), "a refusal says why");
    c.that(d.allocate(~std::size_t{0}) == nullptr, "a size above PTRDIFF_MAX is refused");
    c.that(runtime_is_clean(), "a refusal leaves no error behind in the runtime");

    std::vector<void*> all;
    while (all.size() < 64) {
        void* p = d.allocate(d.capacity() / 8);
        if (p == nullptr) break;
        all.push_back(p);
    }
    c.that(!all.empty() && all.size() <= 8, "eighths of the capacity run out", std::to_string(all.size()) + " fit");
    c.that(runtime_is_clean(), "running out leaves no error behind in the runtime");
    for (void* p : all) d.deallocate(p);
    void* again = d.allocate(d.capacity() / 8);
    c.that(again != nullptr, "what was given back can be had again", d.last_error());
    d.deallocate(again);
}

void stream_ordered(checks& c, cuda_device& d) {
    const stream s = d.create_stream();
    c.that(d.allocate(d.capacity() * 2, s) == nullptr && runtime_is_clean(),
           "twice the capacity is refused in stream order, and no error stays");
    bool right = true;
    for (unsigned i = 0; i < 100; ++i) {
        const auto value = static_cast<std::byte>(i);
        void* p = d.allocate(mib, s);
        right = right && p != nullptr && d.fill(p, value, mib, s) && holds_only(fetch(d, p, mib, s), value);
        d.deallocate(p, s);
    }
    c.that(right, "100 blocks taken and given back in stream order hold what is written to them", d.last_error());
    void* p = d.allocate(mib);
    c.that(p != nullptr && d.fill(p, std::byte{7}, mib, s), "a stream works on memory of the other kind");
    d.deallocate(p, s);
    c.that(d.synchronize(s), "memory of the other kind goes back in stream order", d.last_error());
    d.trim();
    c.that(d.destroy(s), "the stream can be destroyed");
}

void host_memory(checks& c, cuda_device& d) {
    void* host = d.allocate_host(mib);
    void* device = d.allocate(mib);
    if (c.that(host != nullptr && device != nullptr, "host memory can be had")) {
        if (!d.is_page_locked(host)) c.skip("host memory is page-locked", d.last_error());
        const auto expected = pattern(mib, 3);
        std::memcpy(host, expected.data(), mib);
        const stream s = cuda_device::default_stream();
        d.copy_to_device(device, host, mib, s);
        d.synchronize(s);
        std::memset(host, 0, mib);
        d.copy_to_host(host, device, mib, s);
        d.synchronize(s);
        c.that(std::memcmp(host, expected.data(), mib) == 0, "host memory goes to the device and back", d.last_error());
    }
    d.deallocate_host(host);
    d.deallocate(device);
}

}  // namespace

void check_memory(checks& c) {
    cuda_device d;
    void* a = d.allocate(0);
    void* b = d.allocate(0);
    c.that(a != nullptr && b != nullptr && a != b, "size 0 gives distinct blocks");
    c.that(reinterpret_cast<std::uintptr_t>(b) % cuda_device::alignment == 0, "blocks are aligned");
    d.deallocate(a);
    d.deallocate(b);
    d.deallocate(nullptr);

    const auto expected = pattern(mib + 3, 1);
    void* p = d.allocate(expected.size());
    void* q = d.allocate(expected.size());
    const stream s = cuda_device::default_stream();
    const bool done =
        d.copy_to_device(p, expected.data(), expected.size(), s) && d.copy_on_device(q, p, expected.size(), s);
    c.that(done && fetch(d, q, expected.size(), s) == expected, "bytes go to the device, over it and back",
           d.last_error());
    d.deallocate(p);
    d.deallocate(q);

    full_and_usable_again(c, d);
    stream_ordered(c, d);
    host_memory(c, d);
    c.that(holds_nothing(d), "nothing is held at the end");
    c.that(runtime_is_clean(), "no error is left at the end");
}

void check_order(checks& c) {
    cuda_device d;
    const stream first = d.create_stream();
    const stream second = d.create_stream();
    const event e = d.create_event();
    c.that(e != event::none && d.done(e), "an event that was never recorded is done", d.last_error());

    constexpr std::size_t bytes = 16 * mib;
    void* from = d.allocate(bytes);
    void* to = d.allocate(bytes);
    bool right = from != nullptr && to != nullptr;
    for (unsigned i = 1; i <= 50 && right; ++i) {
        const auto value = static_cast<std::byte>(i);
        right = d.fill(from, value, bytes, first) && d.record(e, first) && d.wait(second, e) &&
                d.copy_on_device(to, from, bytes, second) && d.record(e, second) && d.wait(first, e);
        if (i % 10 == 0) right = right && holds_only(fetch(d, to, bytes, second), value);
    }
    c.that(right, "a stream sees what another one wrote before the event that it waited for", d.last_error());
    c.that(d.synchronize(e) && d.done(e), "an event is done once it was waited for");
    c.that(d.synchronize(), "the device can be waited for");

    const stream gone = d.create_stream();
    d.fill(to, std::byte{9}, bytes, gone);
    d.record(e, gone);
    c.that(d.destroy(gone) && d.synchronize(e) && holds_only(fetch(d, to, bytes, first), std::byte{9}),
           "what a stream was given before it was destroyed is done", d.last_error());
    c.that(!d.fill(to, std::byte{1}, bytes, gone) && runtime_is_clean(), "a destroyed stream is refused");
    c.that(!d.destroy(cuda_device::default_stream()), "the default stream cannot be destroyed");
    d.deallocate(from);
    d.deallocate(to);
    d.destroy(e);
    d.destroy(first);
    d.destroy(second);
    c.that(holds_nothing(d), "nothing is held at the end");
}

void check_capture(checks& c) {
    cuda_device d;
    const stream s = d.create_stream();
    const event e = d.create_event();
    void* p = d.allocate(mib);
    d.fill(p, std::byte{1}, mib, s);
    d.synchronize(s);

    if (!c.that(d.begin_capture(s) && d.captures(), "a stream can be captured", d.last_error())) return;
    c.that(d.allocate(mib) == nullptr, "memory is refused while a stream captures");
    c.that(d.last_error().find("reserve") != std::string_view::npos, "the refusal advises to reserve first",
           d.last_error());
    c.that(!d.synchronize(s), "waiting is refused while a stream captures");
    c.that(!d.done(e), "an event is not asked while a stream captures");
    const bool given = d.fill(p, std::byte{2}, mib, s);
    const cuda_graph g = d.end_capture(s);
    c.that(given && g != cuda_graph::none && !d.captures(), "the capture was not spoilt by what was refused",
           d.last_error());
    c.that(holds_only(fetch(d, p, mib, s), std::byte{1}), "captured work is not done");
    bool right = true;
    for (int i = 0; i < 3; ++i) {
        d.fill(p, std::byte{3}, mib, s);
        right = right && d.launch(g, s) && holds_only(fetch(d, p, mib, s), std::byte{2});
    }
    c.that(right, "captured work is done as often as it is launched", d.last_error());
    c.that(runtime_is_clean(), "no error is left at the end");
    d.destroy(g);
    d.deallocate(p);
    d.destroy(e);
    d.destroy(s);
    c.that(holds_nothing(d), "nothing is held at the end");
}

void check_current_device(checks& c) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
        c.skip("the caller's current device is left alone", "there is one device only");
        return;
    }
    (void)cudaSetDevice(1);
    const auto still = [] {
        int current = -1;
        return cudaGetDevice(&current) == cudaSuccess && current == 1;
    };
    bool right = true;
    {
        cuda_device d;
        right = still();
        const stream s = d.create_stream();
        const event e = d.create_event();
        void* p = d.allocate(mib);
        void* q = d.allocate(mib, s);
        right = right && still() && p != nullptr && q != nullptr;
        (void)d.allocate(d.capacity() * 2);
        right = right && still();
        d.fill(p, std::byte{1}, mib, s);
        d.record(e, s);
        right = right && d.wait(s, e) && d.synchronize(e) && still();
        d.deallocate(p);
        d.deallocate(q, s);
        d.destroy(e);
        d.destroy(s);
        right = right && still();
        c.that(holds_nothing(d), "what one device gave goes back to it while another one is current");
    }
    c.that(right && still(), "the caller's current device is left alone");
    (void)cudaSetDevice(0);
}

void check_growth_in_place(checks& c) {
    cuda_device d;
    cuda_region r(d, 64 * mib);
    void* const start = r.data();
    const stream s = cuda_device::default_stream();
    c.that(r.mapped_bytes() == 0 && r.reserved_bytes() >= 64 * mib, "addresses are reserved without memory");
    c.that(r.grow(1) && r.mapped_bytes() == r.granule(), "one byte maps one granule", d.last_error());
    const std::size_t before = r.mapped_bytes();
    d.fill(start, std::byte{5}, before, s);
    c.that(r.grow(before + 1) && r.data() == start && r.mapped_bytes() > before, "it grows where it is",
           d.last_error());
    c.that(holds_only(fetch(d, start, before, s), std::byte{5}), "what was there stays while it grows");
    c.that(d.fill(start, std::byte{6}, r.mapped_bytes(), s) &&
               holds_only(fetch(d, start, r.mapped_bytes(), s), std::byte{6}),
           "old and new memory are one", d.last_error());
    const std::size_t most = r.mapped_bytes();
    c.that(!r.grow(r.reserved_bytes() + 1) && r.mapped_bytes() == most, "beyond its addresses it does not grow");
    r.shrink(1);
    c.that(r.mapped_bytes() == r.granule(), "it shrinks to whole granules");
    c.that(runtime_is_clean(), "no error is left at the end");
}

}  // namespace alloclab::device::check
