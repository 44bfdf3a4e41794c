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
    nanoseconds create_event = 2'400;       // 2.41 us: pytorch#78279
    nanoseconds destroy_event = 2'600;      // 2.65 us: pytorch#78279
    nanoseconds record = 500;               // least 454 to 534 ns: pixeltrack-standalone#218, rmm#448
    nanoseconds wait = 500;                 // guess: as record
    nanoseconds query = 300;                // guess: from 0.26 to 0.32 us per event processed, pytorch#78279
    nanoseconds synchronize = 300;          // guess: as a query, when there is nothing left to wait for
    nanoseconds copy = 2'800;               // guess: as a kernel launch
    nanoseconds launch = 2'800;             // least 2.8 us: pixeltrack-standalone#218

    // what the device does per second
    double copy_bytes = 64e9;       // PCIe 5.0 x16, one direction; H100 SXM data sheet: 128 GB/s both directions
    double memory_bytes = 3.35e12;  // H100 SXM data sheet: 3.35 TB/s
    double flops = 67e12;           // H100 SXM data sheet: 67 TFLOP/s in FP32 without tensor cores

    [[nodiscard]] constexpr nanoseconds allocate_time(std::size_t bytes) const noexcept {
        const std::size_t above = bytes > allocate_flat ? bytes - allocate_flat : 0;
        return allocate + whole(static_cast<double>(above) / (1 << 20) * static_cast<double>(allocate_per_mib));
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

inline constexpr std::array cost_profiles{cost_profile{}};

/// The profile of that name, or nullptr.
[[nodiscard]] constexpr const cost_profile* find_cost_profile(std::string_view name) noexcept {
    for (const cost_profile& p : cost_profiles)
        if (p.name == name) return &p;
    return nullptr;
}

}  // namespace alloclab::device
