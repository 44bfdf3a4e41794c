// cost_profile: what each call to a device costs, in nanoseconds of virtual time. Published figures differ by orders of
// magnitude, so a result names the profile it was made under; "default" stands for one H100 SXM behind PCIe until a
// calibration of a real device replaces it. Every figure has its source beside it; "guess" where none was found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "alloclab/tensor/kernels.hpp"

namespace alloclab::device {

using nanoseconds = std::int64_t;

struct cost_profile {
    std::string_view name = "default";

    // what the calling thread spends in a call
    nanoseconds allocate = 14'000;          // cudaMalloc, median of 3 calls 13.9 us: bpftime#506
    nanoseconds allocate_per_mib = 30'000;  // 1 GiB in about 31 ms, GH200: vortex#7831
    std::size_t allocate_flat = 2u << 20;   // bytes below which size does not matter: guess, the driver's granule
    nanoseconds deallocate = 25'000;        // cudaFree, least of 3 calls 22.4 us: bpftime#506; and the device drains
    nanoseconds allocate_parked = 1'680;   // cudaMallocAsync served by its pool, 1.68 us: CUDA.jl#746; else as allocate
    nanoseconds deallocate_async = 1'190;  // cudaFreeAsync, 1.19 us: CUDA.jl#746
    nanoseconds allocate_host = 5'200;     // cudaHostAlloc, least 5.2 us: rmm#448
    nanoseconds allocate_host_per_mib = 380'000;  // 32 MB in 11.6 ms: dask-cuda#106
    nanoseconds create_event = 2'400;             // 2.41 us: pytorch#78279
    nanoseconds destroy_event = 2'600;            // 2.65 us: pytorch#78279
    nanoseconds record = 500;                     // least 454 to 534 ns: pixeltrack-standalone#218, rmm#448
    nanoseconds wait = 500;                       // guess: as record
    nanoseconds query = 300;                      // guess: from 0.26 to 0.32 us per event processed, pytorch#78279
    nanoseconds synchronize = 300;                // guess: as a query, when there is nothing left to wait for
    nanoseconds copy = 2'800;                     // guess: as a kernel launch
    nanoseconds launch = 2'800;                   // least 2.8 us: pixeltrack-standalone#218

    // what the device does per second
    double copy_bytes = 64e9;       // PCIe 5.0 x16, one direction; H100 SXM data sheet: 128 GB/s both directions
    double memory_bytes = 3.35e12;  // H100 SXM data sheet: 3.35 TB/s
    double flops = 67e12;           // H100 SXM data sheet: 67 TFLOP/s in FP32 without tensor cores

    std::size_t capacity = 80'000'000'000;  ///< bytes of memory; H100 SXM data sheet: 80 GB

    [[nodiscard]] constexpr nanoseconds allocate_time(std::size_t bytes) const noexcept {
        const std::size_t above = bytes > allocate_flat ? bytes - allocate_flat : 0;
        return allocate + whole(static_cast<double>(above) / (1 << 20) * static_cast<double>(allocate_per_mib));
    }
    [[nodiscard]] constexpr nanoseconds allocate_host_time(std::size_t bytes) const noexcept {
        return allocate_host +
               whole(static_cast<double>(bytes) / (1 << 20) * static_cast<double>(allocate_host_per_mib));
    }
    /// What so many bytes take to be read or written in the device's own memory.
    [[nodiscard]] constexpr nanoseconds memory_time(std::size_t bytes) const noexcept {
        return whole(static_cast<double>(bytes) / memory_bytes * 1e9);
    }
    [[nodiscard]] constexpr nanoseconds copy_time(std::size_t bytes) const noexcept {
        return whole(static_cast<double>(bytes) / copy_bytes * 1e9);
    }
    /// By the roofline: a kernel takes as long as the slower of its arithmetic and its memory traffic.
    [[nodiscard]] constexpr nanoseconds kernel_time(const tensor::work& w) const noexcept {
        const double arithmetic = w.flops / flops;
        const double traffic = w.bytes / memory_bytes;
        return whole((arithmetic > traffic ? arithmetic : traffic) * 1e9);
    }

private:
    // Rounded to the nearest; a century at most, so that one absurd tensor cannot overflow the clock.
    static constexpr nanoseconds whole(double ns) noexcept {
        constexpr double century = 3.2e18;
        return static_cast<nanoseconds>(ns < century ? ns + 0.5 : century);
    }
};

/// The calls cost as in the default: none was published for these devices one by one.
namespace profiles {

constexpr cost_profile h200() noexcept {
    cost_profile p;
    p.name = "h200";
    p.capacity = 141'000'000'000;  // H200 SXM data sheet: 141 GB
    p.memory_bytes = 4.8e12;       // H200 SXM data sheet: 4.8 TB/s; FP32 and PCIe are the H100's
    return p;
}
constexpr cost_profile t4() noexcept {
    cost_profile p;
    p.name = "t4";
    p.capacity = 16'000'000'000;  // Tesla T4 data sheet: 16 GB
    p.copy_bytes = 15.75e9;       // PCIe 3.0 x16, one direction; Tesla T4 data sheet: 32 GB/s both directions
    p.memory_bytes = 320e9;       // Tesla T4 data sheet: more than 320 GB/s
    p.flops = 8.1e12;             // Tesla T4 data sheet: 8.1 TFLOP/s in FP32
    return p;
}

}  // namespace profiles

inline constexpr std::array cost_profiles{cost_profile{}, profiles::h200(), profiles::t4()};

/// The profile of that name, or nullptr.
[[nodiscard]] constexpr const cost_profile* find_cost_profile(std::string_view name) noexcept {
    for (const cost_profile& p : cost_profiles)
        if (p.name == name) return &p;
    return nullptr;
}

}  // namespace alloclab::device
