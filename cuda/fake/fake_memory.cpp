#include "fake_runtime.hpp"

namespace fake = alloclab::device::fake;
using alloclab::device::sim_device;
using alloclab::device::stream;
using fake::runtime;
using fake::serve;

namespace {

std::uintptr_t address(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

// The simulator has one store of parked blocks for a device: it may keep what all pools of the device may.
void keep_parked(runtime& r, int ordinal) noexcept {
    std::size_t keep = 0;
    r.pools.each([&](const fake::pool_entry& p) {
        if (p.device == ordinal) keep = alloclab::sum(keep, static_cast<std::size_t>(p.threshold));
    });
    r.device(ordinal).keep_parked(keep);
}

std::uint64_t reserved(runtime& r, const fake::pool_entry& p) noexcept {
    return p.used + r.device(p.device).usage().parked_bytes;
}

// Forgets the block, if it begins there; the caller then gives it back.
bool forget(runtime& r, const void* p, fake::block& was) noexcept {
    const auto found = r.blocks.find(address(p));
    if (found == r.blocks.end()) return false;
    was = found->second;
    if (fake::pool_entry* const pool = was.pool != nullptr ? r.pools.find(was.pool) : nullptr) pool->used -= was.bytes;
    r.blocks.erase(found);
    return true;
}

}  // namespace

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
    return serve<"cudaMalloc", fake::unsafe>([&](runtime& r) {
        *p = nullptr;
        if (bytes == 0) return cudaSuccess;
        void* const made = r.current().allocate(bytes);
        if (made == nullptr) return runtime::refusal(r.current(), cudaErrorMemoryAllocation);
        r.blocks[address(made)] = {.device = fake::this_thread().device, .bytes = bytes};
        *p = made;
        return cudaSuccess;
    });
}

// Whichever device is current.
cudaError_t cudaFree(void* p) {
    return serve<"cudaFree", fake::gives_back | fake::waits | fake::unsafe>([&](runtime& r) {
        if (p == nullptr) return cudaSuccess;
        fake::block was;
        const auto found = r.blocks.find(address(p));
        if (found == r.blocks.end() || found->second.on_host || !forget(r, p, was)) return cudaErrorInvalidValue;
        r.device(was.device).deallocate(p);
        return cudaSuccess;
    });
}

cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
    return serve<"cudaHostAlloc", fake::unsafe>([&](runtime& r) {
        *p = nullptr;
        if (bytes == 0) return cudaSuccess;
        void* const made = r.current().allocate_host(bytes);
        if (made == nullptr) return runtime::refusal(r.current(), cudaErrorMemoryAllocation);
        r.blocks[address(made)] = {.device = fake::this_thread().device, .bytes = bytes, .on_host = true};
        *p = made;
        return cudaSuccess;
    });
}

cudaError_t cudaFreeHost(void* p) {
    return serve<"cudaFreeHost", fake::gives_back | fake::waits | fake::unsafe>([&](runtime& r) {
        if (p == nullptr) return cudaSuccess;
        fake::block was;
        const auto found = r.blocks.find(address(p));
        if (found == r.blocks.end() || !found->second.on_host || found->second.registered || !forget(r, p, was))
            return cudaErrorInvalidValue;
        r.device(was.device).deallocate_host(p);
        return cudaSuccess;
    });
}

// Takes no virtual time: there is no figure for it.
cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned) {
    return serve<"cudaHostRegister", fake::unsafe>([&](runtime& r) {
        if (p == nullptr || bytes == 0) return cudaErrorInvalidValue;
        if (r.block_of(p) != r.blocks.end()) return cudaErrorHostMemoryAlreadyRegistered;
        r.blocks[address(p)] = {
            .device = fake::this_thread().device, .bytes = bytes, .on_host = true, .registered = true};
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void* p) {
    return serve<"cudaHostUnregister", fake::gives_back | fake::waits | fake::unsafe>([&](runtime& r) {
        const auto found = r.blocks.find(address(p));
        if (found == r.blocks.end() || !found->second.registered) return cudaErrorHostMemoryNotRegistered;
        r.blocks.erase(found);
        return cudaSuccess;
    });
}

// --- pools

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    return serve<"cudaMemPoolCreate">([&](runtime& r) {
        const int ordinal = properties->location.id;
        if (properties->allocType != cudaMemAllocationTypePinned ||
            properties->location.type != cudaMemLocationTypeDevice)
            return cudaErrorInvalidValue;
        if (!r.is_device(ordinal)) return cudaErrorInvalidDevice;
        *pool = r.pools.add({.device = ordinal});
        return cudaSuccess;
    });
}

// What is live of it stays usable.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return serve<"cudaMemPoolDestroy", fake::gives_back>([&](runtime& r) {
        const fake::pool_entry* const p = r.pools.find(pool);
        if (p == nullptr) return cudaErrorInvalidValue;
        const int ordinal = p->device;
        for (auto& [at, block] : r.blocks)
            if (block.pool == pool) block.pool = nullptr;
        r.pools.remove(pool);
        keep_parked(r, ordinal);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return serve<"cudaMemPoolSetAttribute">([&](runtime& r) {
        fake::pool_entry* const p = r.pools.find(pool);
        if (p == nullptr) return cudaErrorInvalidValue;
        if (attribute != cudaMemPoolAttrReleaseThreshold) return cudaErrorNotSupported;
        p->threshold = *static_cast<const std::uint64_t*>(value);
        keep_parked(r, p->device);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return serve<"cudaMemPoolGetAttribute">([&](runtime& r) {
        const fake::pool_entry* const p = r.pools.find(pool);
        if (p == nullptr) return cudaErrorInvalidValue;
        auto& answer = *static_cast<std::uint64_t*>(value);
        switch (attribute) {
            case cudaMemPoolAttrReleaseThreshold:
                answer = p->threshold;
                return cudaSuccess;
            case cudaMemPoolAttrUsedMemCurrent:
                answer = p->used;
                return cudaSuccess;
            case cudaMemPoolAttrReservedMemCurrent:
                answer = reserved(r, *p);
                return cudaSuccess;
            default:
                return cudaErrorNotSupported;
        }
    });
}

// Parked blocks leave when the host next waits, so it waits for an event that has nothing before it.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
    return serve<"cudaMemPoolTrimTo">([&](runtime& r) {
        const fake::pool_entry* const p = r.pools.find(pool);
        if (p == nullptr) return cudaErrorInvalidValue;
        sim_device& d = r.device(p->device);
        const alloclab::device::event nothing = d.create_event("trim");
        if (nothing == alloclab::device::event::none) return cudaErrorMemoryAllocation;
        d.keep_parked(keep > p->used ? keep - static_cast<std::size_t>(p->used) : 0);
        d.synchronize(nothing);
        d.destroy(nothing);
        keep_parked(r, p->device);
        return cudaSuccess;
    });
}

cudaError_t cudaMallocFromPoolAsync(void** p, std::size_t bytes, cudaMemPool_t pool, cudaStream_t s) {
    return serve<"cudaMallocFromPoolAsync">([&](runtime& r) {
        *p = nullptr;
        fake::pool_entry* const from = r.pools.find(pool);
        const std::optional<fake::stream_at> at = r.find(s);
        if (from == nullptr) return cudaErrorInvalidValue;
        if (!at) return cudaErrorInvalidResourceHandle;
        if (fake::capture* const c = at->captured()) return c->spoil(cudaErrorNotSupported);
        if (const cudaError_t e = r.implicit(*at); e != cudaSuccess) return e;
        if (from->device != at->device) return cudaErrorNotSupported;
        if (bytes == 0) return cudaSuccess;
        void* const made = at->on->allocate(bytes, at->at);
        if (made == nullptr) return runtime::refusal(*at->on, cudaErrorMemoryAllocation);
        r.blocks[address(made)] = {.device = at->device, .bytes = bytes, .pool = pool};
        from->used += bytes;
        *p = made;
        return cudaSuccess;
    });
}

// Also for memory of cudaMalloc, as the runtime allows.
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
    return serve<"cudaFreeAsync", fake::gives_back>([&](runtime& r) {
        if (p == nullptr) return cudaSuccess;
        const std::optional<fake::stream_at> at = r.find(s);
        if (!at) return cudaErrorInvalidResourceHandle;
        if (fake::capture* const c = at->captured()) return c->spoil(cudaErrorInvalidValue);
        if (const cudaError_t e = r.implicit(*at); e != cudaSuccess) return e;
        const auto found = r.blocks.find(address(p));
        fake::block was;
        if (found == r.blocks.end() || found->second.on_host || found->second.device != at->device ||
            !forget(r, p, was))
            return cudaErrorInvalidValue;
        at->on->deallocate(p, at->at);
        return cudaSuccess;
    });
}

// --- copies

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
    return serve<"cudaMemcpyAsync">([&](runtime& r) {
        const bool to_device = r.device_of(to) != nullptr;
        const bool from_device = r.device_of(from) != nullptr;
        // With unified addressing the runtime takes the addresses' word; a direction that they contradict is an error.
        const cudaMemcpyKind is = to_device     ? from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
                                  : from_device ? cudaMemcpyDeviceToHost
                                                : cudaMemcpyHostToHost;
        if (kind != cudaMemcpyDefault && kind != is && bytes != 0) return cudaErrorInvalidValue;
        return r.give(s, [=](sim_device& d, stream on) {
            const runtime& now = fake::the_runtime();
            if (!now.is_mapped(to, bytes) || !now.is_mapped(from, bytes)) return cudaErrorInvalidValue;
            switch (is) {
                case cudaMemcpyHostToDevice:
                    return runtime::answer(d.copy_to_device(to, from, bytes, on), d);
                case cudaMemcpyDeviceToHost:
                    return runtime::answer(d.copy_to_host(to, from, bytes, on), d);
                case cudaMemcpyDeviceToDevice:
                    return runtime::answer(d.copy_on_device(to, from, bytes, on), d);
                default:
                    return cudaErrorNotSupported;
            }
        });
    });
}

cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
    return serve<"cudaMemsetAsync">([&](runtime& r) {
        return r.give(s, [=](sim_device& d, stream on) {
            if (!fake::the_runtime().is_mapped(p, bytes)) return cudaErrorInvalidValue;
            return runtime::answer(d.fill(p, static_cast<std::byte>(value), bytes, on), d);
        });
    });
}
