// Memory of the simulated device: its mapping, blocks taken and given back at once or in a stream's order, and
// page-locked memory of the host.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "alloclab/bytes.hpp"
#include "sim_state.hpp"

namespace alloclab::device {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t worth_discarding = 2u << 20;

}  // namespace

sim_memory::sim_memory(std::size_t bytes) : bytes_(std::max(align_up(bytes, page), page)) {
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

sim_memory::~sim_memory() {
    ::munmap(device_, bytes_);
    ::munmap(shadow_, bytes_);
}

std::size_t sim_memory::offset(const void* p) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto first = reinterpret_cast<std::uintptr_t>(device_);
    return address >= first && address - first < bytes_ ? address - first : too_many;
}

bool sim_memory::touches(const void* p, std::size_t bytes) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto first = reinterpret_cast<std::uintptr_t>(device_);
    return address < first + bytes_ && sum(address, bytes) > first;
}

void sim_memory::discard(std::size_t offset, std::size_t bytes) noexcept {
    if (bytes < worth_discarding) return;
    const std::size_t first = align_up(offset, page);
    const std::size_t end = offset + bytes - (offset + bytes) % page;
    ::madvise(shadow_ + first, end - first, MADV_REMOVE);  // if it fails the pages merely stay
}

// --- at once

void sim_device::state::count_taken(std::size_t bytes) noexcept {
    ++usage.live;
    usage.live_bytes += at_least_one(bytes);
    usage.peak_bytes = std::max(usage.peak_bytes, usage.live_bytes);
}

void sim_device::state::count_given(std::size_t bytes) noexcept {
    --usage.live;
    usage.live_bytes -= bytes;
}

bool sim_device::state::is_beyond(std::size_t bytes, std::size_t held) const noexcept {
    const std::size_t need = align_up(at_least_one(bytes), alignment);
    return limit != too_many && (need > limit || held > limit - need);
}

std::size_t sim_device::state::take(std::size_t bytes) noexcept {
    return is_beyond(bytes, space.reserved()) ? too_many : space.allocate(bytes);
}

void* sim_device::state::full(call c, std::size_t bytes) noexcept {
    const bool refused = bytes <= space.largest_gap() && is_beyond(bytes, space.reserved());
    if (refused) ++usage.faults;
    tell(c, "asked for %zu bytes; %zu are reported free, %zu in one piece%s", bytes,
         space.capacity() - space.reserved(), space.largest_gap(), refused ? ", but the driver gives no more" : "");
    return nullptr;
}

/// The bytes of the live block that starts there, 0 if none does.
std::size_t sim_device::state::asked(const void* p) const noexcept {
    const std::size_t offset = memory.offset(p);
    const address_space::block block = space.find(offset);
    return block.bytes != 0 && block.offset == offset ? block.bytes : 0;
}

void* sim_device::allocate(std::size_t bytes) noexcept {
    state& d = *state_;
    if (!d.enter(call::allocate, bytes)) return nullptr;
    std::size_t offset = d.take(bytes);
    if (offset == too_many && is_size(bytes) && !d.parked.empty()) {
        d.give_back_through(0);
        offset = d.take(bytes);
    }
    if (offset == too_many) return d.full(call::allocate, bytes);
    d.count_taken(bytes);
    d.host.spend(d.cost.allocate_time(bytes));
    return d.memory.address(offset);
}

void sim_device::deallocate(void* p) noexcept {
    state& d = *state_;
    if (p == nullptr || !d.enter(call::deallocate, d.asked(p))) return;
    const std::size_t offset = d.memory.offset(p);
    const std::size_t extent = d.space.extent(offset);
    if (d.parked.contains(offset)) {
        d.refuse(call::deallocate, "%p is not live; released twice?", p);
        return;
    }
    const address_space::block released = d.space.release(offset);
    if (released.bytes == 0) {
        const address_space::block around = d.space.find(offset);
        if (around.bytes != 0)
            d.refuse(call::deallocate, "%p lies %zu bytes into a live block", p, offset - around.offset);
        else if (offset < d.space.capacity()) d.refuse(call::deallocate, "%p is not live; released twice?", p);
        else d.refuse(call::deallocate, "%p is not memory of this device", p);
        return;
    }
    d.count_given(released.bytes);
    d.memory.discard(released.offset, released.bytes);
    d.host.spend(d.cost.deallocate);
    d.drain();
    d.host.uses.forget(d.range_of(p, extent));  // a larger block may have been here in a stream's order
    d.give_back_through(d.keep);
}

// --- in a stream's order

// The smallest parked block that fits, of at most so many bytes: the stream's own first, then one behind whose free the
// stream is already, then one that the host knows to be through, then one that the stream has to wait for.
std::size_t sim_device::state::take_parked(std::size_t bytes, stream_state& on, std::size_t most) noexcept {
    const std::size_t need = align_up(at_least_one(bytes), alignment);
    auto best = parked.end();
    int best_rank = 4;
    std::size_t best_extent = 0;
    for (auto at = parked.begin(); at != parked.end(); ++at) {
        const std::size_t extent = space.extent(at->first);
        if (extent < need || extent > most) continue;
        const parked_block& b = at->second;
        const int rank = b.by == on.number                       ? 0
                         : host.uses.has_heard(on.who, b.behind) ? 1
                         : b.through <= host.now                 ? 2
                                                                 : 3;
        if (rank > best_rank || (rank == best_rank && extent >= best_extent)) continue;
        best = at, best_rank = rank, best_extent = extent;
    }
    if (best == parked.end()) return too_many;
    host.uses.wait(on.who, best->second.behind);
    if (best_rank == 3) on.ready = std::max(on.ready, best->second.through);
    const std::size_t offset = best->first;
    parked_bytes -= best_extent;
    parked.erase(best);
    space.rename(offset, bytes);
    return offset;
}

void sim_device::state::give_back(std::map<std::size_t, parked_block>::iterator at) noexcept {
    const std::size_t offset = at->first;
    const std::size_t extent = space.extent(offset);
    host.uses.forget(range_of(memory.address(offset), extent));
    space.release(offset);
    memory.discard(offset, extent);
    parked_bytes -= extent;
    parked.erase(at);
}

void sim_device::state::give_back_through(std::size_t bytes) noexcept {
    for (auto at = parked.begin(); at != parked.end() && parked_bytes > bytes;) {
        const auto here = at++;
        if (here->second.through <= host.now) give_back(here);
    }
}

// For want of memory: the host waits for every free there is, and all of it becomes one again. A stream's wait would
// not do, since what is left over of it is anybody's.
void sim_device::state::await_parked_if_they_make_room(std::size_t bytes) noexcept {
    if (parked.empty() || is_beyond(bytes, space.reserved() - parked_bytes)) return;
    if (space.largest_gap_without([&](std::size_t offset) { return parked.contains(offset); }) < bytes) return;
    for (const auto& [offset, block] : parked) {
        host.hold_until(block.through);
        host.uses.wait(actor::host, block.behind);
    }
    give_back_through(0);
}

void* sim_device::allocate(std::size_t bytes, stream s) noexcept {
    state& d = *state_;
    if (!d.enter(call::allocate_async, bytes)) return nullptr;
    state::stream_state* const on = d.known(call::allocate_async, s);
    if (on == nullptr) return nullptr;
    if (!is_size(bytes)) return d.full(call::allocate_async, bytes);
    d.issue(*on, 0, 0);
    std::size_t offset = d.take_parked(bytes, *on, 2 * align_up(at_least_one(bytes), alignment));
    bool served = offset != too_many;
    if (!served) offset = d.take(bytes);
    if (offset == too_many) {
        d.give_back_through(0);
        offset = d.take(bytes);
    }
    if (offset == too_many) {
        offset = d.take_parked(bytes, *on, too_many);
        served = offset != too_many;
    }
    if (offset == too_many) {
        d.await_parked_if_they_make_room(bytes);
        offset = d.take(bytes);
    }
    if (offset == too_many) return d.full(call::allocate_async, bytes);
    void* const p = d.memory.address(offset);
    d.count_taken(bytes);
    d.host.spend(served ? d.cost.allocate_parked : d.cost.allocate_time(bytes));
    d.report(d.host.uses.reborn(on->who, d.range_of(p, d.space.extent(offset)), "allocate_async"));
    return p;
}

void sim_device::deallocate(void* p, stream s) noexcept {
    state& d = *state_;
    if (p == nullptr || !d.enter(call::deallocate_async, d.asked(p))) return;
    state::stream_state* const on = d.known(call::deallocate_async, s);
    if (on == nullptr) return;
    const std::size_t offset = d.memory.offset(p);
    const address_space::block block = d.space.find(offset);
    if (block.bytes == 0 || block.offset != offset || d.parked.contains(offset)) {
        if (offset >= d.space.capacity()) d.refuse(call::deallocate_async, "%p is not memory of this device", p);
        else if (block.bytes != 0 && block.offset != offset)
            d.refuse(call::deallocate_async, "%p lies %zu bytes into a live block", p, offset - block.offset);
        else d.refuse(call::deallocate_async, "%p is not live; released twice?", p);
        return;
    }
    d.issue(*on, d.cost.deallocate_async, 0);
    const std::size_t extent = d.space.extent(offset);
    d.report(d.host.uses.free(on->who, d.range_of(p, extent), "deallocate_async"));
    d.count_given(block.bytes);
    d.parked_bytes += extent;
    try {
        state::parked_block& kept = d.parked[offset];
        kept.by = s;
        kept.through = on->ready;
        if (d.host.uses.record(on->who, kept.behind)) return;
    } catch (const std::bad_alloc&) {
    }
    // Without heap to remember the free by, the host waits for it.
    d.parked.erase(offset);
    d.parked_bytes -= extent;
    d.drain(*on);
    d.host.uses.forget(d.range_of(p, extent));
    d.space.release(offset);
}

void sim_device::keep_parked(std::size_t bytes) noexcept { state_->keep = bytes; }

// --- of the host

void* sim_device::allocate_host(std::size_t bytes) noexcept {
    state& d = *state_;
    if (!d.enter(call::allocate_host, bytes)) return nullptr;
    void* const p =
        is_size(bytes) ? ::operator new (at_least_one(bytes), std::align_val_t{page}, std::nothrow) : nullptr;
    try {
        if (p != nullptr) d.host_blocks.emplace(p, at_least_one(bytes));
    } catch (const std::bad_alloc&) {
        ::operator delete (p, std::align_val_t{page});
        return nullptr;
    }
    if (p == nullptr) {
        d.tell(call::allocate_host, "asked for %zu bytes, which the heap has not", bytes);
        return nullptr;
    }
    d.usage.live_host_bytes += at_least_one(bytes);
    d.host.spend(d.cost.allocate_host_time(bytes));
    return p;
}

void sim_device::deallocate_host(void* p) noexcept {
    state& d = *state_;
    if (p == nullptr || !d.enter(call::deallocate_host)) return;
    const auto at = d.host_blocks.find(p);
    if (at == d.host_blocks.end()) {
        d.refuse(call::deallocate_host, "%p is not page-locked memory of this device", p);
        return;
    }
    d.drain();
    d.host.uses.forget(d.range_of(p, at->second));
    d.usage.live_host_bytes -= at->second;
    ::operator delete (p, std::align_val_t{page});
    d.host_blocks.erase(at);
}

// --- where things lie

std::byte* sim_device::state::writable(call c, const void* device, std::size_t bytes) noexcept {
    const std::size_t offset = memory.offset(device);
    const address_space::block block = space.find(offset);
    if (block.bytes == 0) {
        refuse(c, offset < space.capacity() ? "%p is not live" : "%p is not memory of this device", device);
        return nullptr;
    }
    const std::size_t into = offset - block.offset;
    if (into > block.bytes || bytes > block.bytes - into) {
        refuse(c, "%p and %zu bytes reach past the end of a block of %zu", device, bytes, block.bytes);
        return nullptr;
    }
    return memory.writable(offset);
}

void* sim_device::shadow_of(call c, const void* device, std::size_t bytes) noexcept {
    return state_->writable(c, device, bytes);
}

bool sim_device::state::is_host(call c, const void* p, std::size_t bytes) noexcept {
    if (p == nullptr) return refuse(c, "the host's side is null");
    for (const sim_memory* m : host.memories)
        if (m->touches(p, bytes))
            return refuse(c, "%p is on %s device, not on the host", p, m == &memory ? "the" : "a");
    return true;
}

byte_range sim_device::state::range_of(const void* p, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    const std::size_t offset = memory.offset(p);
    const address_space::block block = space.find(offset);
    return {begin, bytes, block.bytes != 0 ? begin - (offset - block.offset) : 0};
}

bool sim_device::owns(const void* p) const noexcept { return state_->memory.offset(p) != too_many; }
std::size_t sim_device::available_bytes() const noexcept { return capacity() - state_->space.reserved(); }
std::size_t sim_device::capacity() const noexcept { return state_->space.capacity(); }

}  // namespace alloclab::device
