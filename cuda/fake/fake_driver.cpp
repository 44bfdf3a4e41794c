// The driver's virtual memory, found by cudaGetDriverEntryPointByVersion as from the real runtime. Reserved addresses
// are one block of the simulated device's, so a region must fit into it; what counts is the memory that was created.
#include <cuda.h>

#include <algorithm>

#include "fake_runtime.hpp"

namespace fake = alloclab::device::fake;
using fake::runtime;

namespace {

constexpr std::size_t granule = 2u << 20;

// The driver's and the runtime's error codes agree in what the fake answers; the runtime's last error is not touched.
template <fake::function_name name, unsigned duties = fake::ordinary, class F>
CUresult serve(F f) noexcept {
    return static_cast<CUresult>(fake::attempt<name, duties>(f).error);
}

bool is_whole(std::size_t bytes) noexcept { return bytes != 0 && bytes % granule == 0; }

CUresult get_granularity(std::size_t* bytes, const CUmemAllocationProp* properties, CUmemAllocationGranularity_flags) {
    return serve<"cuMemGetAllocationGranularity">([&](const runtime& r) {
        if (!r.is_device(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
        *bytes = granule;
        return CUDA_SUCCESS;
    });
}

CUresult reserve(CUdeviceptr* p, std::size_t bytes, std::size_t alignment, CUdeviceptr, unsigned long long) {
    return serve<"cuMemAddressReserve">([&](runtime& r) {
        if (!is_whole(bytes) || alignment > granule) return CUDA_ERROR_INVALID_VALUE;
        const std::size_t block_bytes = alloclab::sum(bytes, granule - alloclab::device::sim_device::alignment);
        void* const block = r.current().allocate(block_bytes);
        if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        const std::size_t first = alloclab::align_up(reinterpret_cast<std::uintptr_t>(block), granule);
        r.regions[first] = {
            .device = fake::this_thread().device, .block = block, .block_bytes = block_bytes, .bytes = bytes};
        *p = first;
        return CUDA_SUCCESS;
    });
}

CUresult free_addresses(CUdeviceptr p, std::size_t bytes) {
    return serve<"cuMemAddressFree", fake::gives_back>([&](runtime& r) {
        const auto found = r.regions.find(p);
        if (found == r.regions.end() || found->second.bytes != bytes || !found->second.mapped.empty())
            return CUDA_ERROR_INVALID_VALUE;
        r.device(found->second.device).deallocate(found->second.block);
        r.regions.erase(found);
        return CUDA_SUCCESS;
    });
}

CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long) {
    return serve<"cuMemCreate", fake::unsafe>([&](runtime& r) {
        const int ordinal = properties->location.id;
        if (!r.is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
        if (!is_whole(bytes)) return CUDA_ERROR_INVALID_VALUE;
        if (r.available(ordinal) < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
        *handle = ++r.next_memory;
        r.memory[*handle] = {.device = ordinal, .bytes = bytes};
        return CUDA_SUCCESS;
    });
}

void drop(runtime& r, std::map<std::uint64_t, fake::physical>::iterator m) noexcept {
    if (m->second.released && !m->second.mapped) r.memory.erase(m);
}

// The memory stays as long as it is mapped.
CUresult release(CUmemGenericAllocationHandle handle) {
    return serve<"cuMemRelease", fake::gives_back>([&](runtime& r) {
        const auto found = r.memory.find(handle);
        if (found == r.memory.end() || found->second.released) return CUDA_ERROR_INVALID_VALUE;
        found->second.released = true;
        drop(r, found);
        return CUDA_SUCCESS;
    });
}

// The region that holds all of the bytes, or the end.
auto region_of(runtime& r, std::uintptr_t p, std::size_t bytes) noexcept {
    auto after = r.regions.upper_bound(p);
    if (after == r.regions.begin()) return r.regions.end();
    --after;
    const std::size_t offset = p - after->first;
    return offset <= after->second.bytes && bytes <= after->second.bytes - offset ? after : r.regions.end();
}

CUresult map(CUdeviceptr p, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long) {
    return serve<"cuMemMap", fake::unsafe>([&](runtime& r) {
        const auto memory = r.memory.find(handle);
        const auto region = region_of(r, p, bytes);
        if (memory == r.memory.end() || memory->second.bytes != bytes || memory->second.mapped || offset != 0 ||
            region == r.regions.end() || region->second.device != memory->second.device || p % granule != 0)
            return CUDA_ERROR_INVALID_VALUE;
        auto& mapped = region->second.mapped;
        const auto next = mapped.lower_bound(p);
        const bool meets_next = next != mapped.end() && next->first - p < bytes;
        const bool meets_last = next != mapped.begin() && p - std::prev(next)->first < std::prev(next)->second.bytes;
        if (meets_next || meets_last) return CUDA_ERROR_INVALID_VALUE;
        mapped[p] = {.bytes = bytes, .memory = handle};
        memory->second.mapped = true;
        return CUDA_SUCCESS;
    });
}

// Calls `f` for each mapping of the range; false unless whole mappings without a gap make it up.
template <class F>
bool each_mapping(runtime& r, std::uintptr_t p, std::size_t bytes, F f) {
    const auto region = region_of(r, p, bytes);
    if (region == r.regions.end()) return false;
    auto& mapped = region->second.mapped;
    const auto first = mapped.find(p);
    auto last = first;
    std::uintptr_t next = p;
    for (; last != mapped.end() && last->first == next && next < p + bytes; ++last) next += last->second.bytes;
    if (next != p + bytes) return false;
    for (auto m = first; m != last;) f(mapped, m++);
    return true;
}

CUresult unmap(CUdeviceptr p, std::size_t bytes) {
    return serve<"cuMemUnmap", fake::gives_back>([&](runtime& r) {
        const bool whole = each_mapping(r, p, bytes, [&](auto& mapped, auto m) {
            const auto memory = r.memory.find(m->second.memory);
            memory->second.mapped = false;
            drop(r, memory);
            mapped.erase(m);
        });
        return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult set_access(CUdeviceptr p, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count) {
    return serve<"cuMemSetAccess">([&](runtime& r) {
        if (count != 1) return CUDA_ERROR_NOT_SUPPORTED;
        const bool may = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        const bool whole = each_mapping(r, p, bytes, [&](auto&, auto m) { m->second.accessible = may; });
        return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

template <class Function>
void* found(Function* f) noexcept {
    return reinterpret_cast<void*>(f);
}

// By the driver's own types, so that a wrong signature does not compile.
void* driver_function(std::string_view name) noexcept {
    if (name == "cuMemGetAllocationGranularity") return found<decltype(cuMemGetAllocationGranularity)>(get_granularity);
    if (name == "cuMemAddressReserve") return found<decltype(cuMemAddressReserve)>(reserve);
    if (name == "cuMemAddressFree") return found<decltype(cuMemAddressFree)>(free_addresses);
    if (name == "cuMemCreate") return found<decltype(cuMemCreate)>(create);
    if (name == "cuMemRelease") return found<decltype(cuMemRelease)>(release);
    if (name == "cuMemMap") return found<decltype(cuMemMap)>(map);
    if (name == "cuMemUnmap") return found<decltype(cuMemUnmap)>(unmap);
    if (name == "cuMemSetAccess") return found<decltype(cuMemSetAccess)>(set_access);
    return nullptr;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
    return fake::serve<"cudaGetDriverEntryPointByVersion">([&](runtime&) {
        *function = driver_function(symbol);
        if (status != nullptr)
            *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
        return cudaSuccess;
    });
}
