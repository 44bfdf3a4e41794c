#include "fake_launch.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "fake_runtime.hpp"

namespace fake = alloclab::device::fake;
using fake::runtime;

namespace alloclab::device::fake {

void* touches::operator()(const void* p, std::size_t bytes, access a) {
    if (bytes == 0) return nullptr;
    runtime& r = the_runtime();
    void* at = nullptr;
    if (device_.owns(p)) {
        at = r.is_mapped(p, bytes) ? device_.shadow_of(call::launch, p, bytes) : nullptr;
    } else if (const auto block = r.block_of(p); block != r.blocks.end() && block->second.on_host) {
        const std::size_t offset = reinterpret_cast<std::uintptr_t>(p) - block->first;
        if (bytes <= block->second.bytes - offset) at = const_cast<void*>(p);
    }
    if (at == nullptr) strayed_ = true;
    else all_.push_back({.at = p, .bytes = bytes, .how = a});
    return at;
}

cudaError_t touches::declare(device::stream s, std::string_view kernel, double flops) const {
    double bytes = 0;
    for (const touch& t : all_) bytes += static_cast<double>(t.bytes);
    if (!device_.work(s, device_.cost().kernel_time({.flops = flops, .bytes = bytes}), kernel))
        return runtime::refusal(device_, cudaErrorLaunchFailure);
    for (const touch& t : all_) device_.also_touches(s, t.at, t.bytes, t.how, kernel);
    if (strayed_) the_runtime().pending = cudaErrorIllegalAddress;
    return cudaSuccess;
}

namespace {

// Filled before main, and by any thread: apart from the runtime's state, under the runtime's lock.
struct kernels {
    std::map<const void*, std::string> by_stub;
    std::map<std::string, emulation, std::less<>> emulations;
};

kernels& all_kernels() {
    static kernels& only = *new kernels;
    return only;
}

bool is_configuration(dim3 grid, dim3 block) noexcept {
    constexpr unsigned most = 0xffff;
    return grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= 0x7fffffff && grid.y <= most && grid.z <= most &&
           block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 &&
           std::uint64_t{block.x} * block.y * block.z <= 1024;
}

// The values of a launch's arguments, kept for as often as it is done.
class arguments {
public:
    arguments(void** from, const std::vector<std::size_t>& sizes) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto* const first = static_cast<const std::byte*>(from[i]);
            auto& words = values_.emplace_back((sizes[i] + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
            std::copy_n(first, sizes[i], reinterpret_cast<std::byte*>(words.data()));
        }
        for (auto& words : values_) pointers_.push_back(words.data());
    }
    arguments(const arguments&) = delete;
    arguments& operator=(const arguments&) = delete;

    [[nodiscard]] void** data() noexcept { return pointers_.data(); }

private:
    std::vector<std::vector<std::max_align_t>> values_;
    std::vector<void*> pointers_;
};

}  // namespace

void emulate_as(std::string_view kernel, emulation e) {
    const std::lock_guard hold(the_runtime().lock);
    all_kernels().emulations.insert_or_assign(std::string(kernel), std::move(e));
}

}  // namespace alloclab::device::fake

// --- what an object of nvcc's calls

// As the toolkit's crt/host_runtime.h declares them, which nvcc alone can read.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void** __cudaRegisterFatBinary(void*) {
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    const std::lock_guard hold(fake::the_runtime().lock);
    fake::all_kernels().by_stub[stub] = name;
}

// Variables of the device have no address here: an emulation has its own.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
    fake::this_thread().configurations.push_back(
        {.grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
    auto& pushed = fake::this_thread().configurations;
    if (pushed.empty()) return cudaErrorMissingConfiguration;
    *grid = pushed.back().grid;
    *block = pushed.back().block;
    *shared_bytes = pushed.back().shared_bytes;
    *static_cast<cudaStream_t*>(stream) = pushed.back().stream;
    pushed.pop_back();
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(void** kernel, const void* stub) {
    *kernel = const_cast<void*>(stub);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** given, std::size_t, cudaStream_t s) {
    return fake::serve<"cudaLaunchKernel">([&](runtime& r) {
        const auto& known = fake::all_kernels();
        const auto name = known.by_stub.find(kernel);
        if (name == known.by_stub.end()) return cudaErrorInvalidDeviceFunction;
        const std::optional<fake::stream_at> at = r.find(s);
        if (!at || at->device != fake::this_thread().device) return cudaErrorInvalidResourceHandle;
        if (!fake::is_configuration(grid, block)) return cudaErrorInvalidConfiguration;
        const auto found = known.emulations.find(name->second);
        if (found == known.emulations.end()) {
            r.unknown_kernel = name->second;
            return cudaErrorInvalidDeviceFunction;
        }
        auto values = std::make_shared<fake::arguments>(given, found->second.argument_bytes);
        return r.give(s, [=, called = name->second, e = &found->second](alloclab::device::sim_device& d,
                                                                        alloclab::device::stream on) {
            fake::touches memory(d);
            e->run(values->data(), grid, block, memory);
            return memory.declare(on, called);
        });
    });
}
