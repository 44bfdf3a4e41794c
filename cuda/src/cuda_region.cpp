#include <cuda.h>  // types alone: the driver's functions are found at run time

#include <cstdint>
#include <stdexcept>
#include <string>

#include "cuda_state.hpp"

namespace alloclab::device {
namespace {

constexpr unsigned driver_version = 12000;

/// The driver's numbers are the runtime's.
cudaError_t as_runtime(CUresult result) noexcept { return static_cast<cudaError_t>(result); }

}  // namespace

class cuda_region::state {
public:
    state(cuda_device& device, std::size_t bytes) : device_(*device.state_) {
        entry here(device_);
        must(here.may("cuMemAddressReserve"));
        find(here, get_granularity_, "cuMemGetAllocationGranularity");
        find(here, reserve_, "cuMemAddressReserve");
        find(here, free_, "cuMemAddressFree");
        find(here, create_, "cuMemCreate");
        find(here, release_, "cuMemRelease");
        find(here, map_, "cuMemMap");
        find(here, unmap_, "cuMemUnmap");
        find(here, set_access_, "cuMemSetAccess");
        must(attach(here));
        const CUmemAllocationProp memory = properties();
        must(did(here, get_granularity_(&granule, &memory, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "cuMemGetAllocationGranularity"));
        reserved = align_up(at_least_one(bytes), granule);
        if (!is_size(reserved)) throw std::runtime_error("cuda_region: no addresses for so many bytes");
        must(did(here, reserve_(&base, reserved, 0, 0, 0), "cuMemAddressReserve"));
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
        for (int tries = 0; tries < 2 && mapped_bytes != 0 && device_.is_usable(); ++tries) shrink(0);
        if (mapped_bytes != 0 || !device_.is_usable()) return;
        entry here(device_);
        (void)did(here, free_(base, reserved), "cuMemAddressFree");
    }

    bool grow(std::size_t bytes) noexcept {
        if (bytes <= mapped_bytes) return true;
        entry here(device_);
        if (!here.may("cuMemMap") || !attach(here)) return false;
        if (bytes > reserved) {
            device_.tell(cuda_device::state::matter::misuse, "a region of %zu reserved bytes cannot grow to %zu",
                         reserved, bytes);
            return false;
        }
        const std::size_t before = mapped_bytes;
        bool grown = true;
        while (grown && mapped_bytes < bytes) grown = add(here);
        CUmemAccessDesc access{};
        access.location = properties().location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        grown = grown && did(here, set_access_(base + before, mapped_bytes - before, &access, 1), "cuMemSetAccess");
        if (!grown) drop(here, before);
        return grown;
    }

    void shrink(std::size_t bytes) noexcept {
        const std::size_t keep = align_up(bytes, granule);
        if (keep >= mapped_bytes) return;
        entry here(device_);
        if (here.may("cuMemUnmap") && attach(here) && here.did(cudaDeviceSynchronize(), "cudaDeviceSynchronize"))
            drop(here, keep);
    }

    CUdeviceptr base = 0;
    std::size_t reserved = 0;
    std::size_t granule = 0;
    std::size_t mapped_bytes = 0;

private:
    using entry = cuda_device::state::entry;

    void must(bool done) const {
        if (!done) throw std::runtime_error(device_.why());
    }
    static bool did(entry& here, CUresult result, const char* function) noexcept {
        return here.did(as_runtime(result), function);
    }
    /// The driver's own functions want a context in this thread; the runtime attaches it at a thread's first call.
    static bool attach(entry& here) noexcept { return here.did(cudaFree(nullptr), "cudaFree, to attach the context"); }

    template <class Function>
    void find(entry& here, Function& function, const char* name) const {
        void* address = nullptr;
        cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
        must(here.did(cudaGetDriverEntryPointByVersion(name, &address, driver_version, cudaEnableDefault, &result),
                      name));
        if (result != cudaDriverEntryPointSuccess || address == nullptr)
            throw std::runtime_error(std::string("cuda_region: this driver has no ") + name);
        function = reinterpret_cast<Function>(address);
    }

    [[nodiscard]] CUmemAllocationProp properties() const noexcept {
        CUmemAllocationProp memory{};
        memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        memory.location.id = device_.ordinal;
        return memory;
    }

    /// One more granule behind the last; nothing of it stays after a failure.
    bool add(entry& here) noexcept {
        const CUmemAllocationProp memory = properties();
        CUmemGenericAllocationHandle handle = 0;
        CUresult result = create_(&handle, granule, &memory, 0);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && device_.make_room(here))
            result = create_(&handle, granule, &memory, 0);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) return device_.no_memory("cuMemCreate", granule), false;
        if (!did(here, result, "cuMemCreate")) return false;
        const bool mapped = did(here, map_(base + mapped_bytes, granule, 0, handle, 0), "cuMemMap");
        (void)did(here, release_(handle), "cuMemRelease");  // the mapping alone holds it from here on
        if (mapped) mapped_bytes += granule;
        return mapped;
    }
    void drop(entry& here, std::size_t keep) noexcept {
        while (mapped_bytes > keep) {
            mapped_bytes -= granule;
            (void)did(here, unmap_(base + mapped_bytes, granule), "cuMemUnmap");
        }
    }

    cuda_device::state& device_;
    decltype(&cuMemGetAllocationGranularity) get_granularity_ = nullptr;
    decltype(&cuMemAddressReserve) reserve_ = nullptr;
    decltype(&cuMemAddressFree) free_ = nullptr;
    decltype(&cuMemCreate) create_ = nullptr;
    decltype(&cuMemRelease) release_ = nullptr;
    decltype(&cuMemMap) map_ = nullptr;
    decltype(&cuMemUnmap) unmap_ = nullptr;
    decltype(&cuMemSetAccess) set_access_ = nullptr;
};

cuda_region::cuda_region(cuda_device& device, std::size_t reserved_bytes)
    : state_(std::make_unique<state>(device, reserved_bytes)) {}
cuda_region::~cuda_region() = default;

void* cuda_region::data() const noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(state_->base)); }
std::size_t cuda_region::mapped_bytes() const noexcept { return state_->mapped_bytes; }
std::size_t cuda_region::reserved_bytes() const noexcept { return state_->reserved; }
std::size_t cuda_region::granule() const noexcept { return state_->granule; }
bool cuda_region::grow(std::size_t bytes) noexcept { return state_->grow(bytes); }
void cuda_region::shrink(std::size_t bytes) noexcept { state_->shrink(bytes); }

}  // namespace alloclab::device
