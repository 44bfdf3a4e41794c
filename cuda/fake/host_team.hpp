// host_team: kernels on the host. One thread stands for all lanes of a team, one after the other, and joins what they
// have in the order in which the GPU's shuffles do: the same sums, but for how the compilers contract them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_bodies.hpp"

namespace alloclab::device::kernels {

template <int lane_count>
class host_team {
public:
    [[nodiscard]] static bool is_first() noexcept { return true; }

    template <class Each>
    void each(std::int64_t n, Each each_of) const {
        for (std::int64_t i = 0; i < n; ++i) each_of(i);
    }

    /// `result` is what each lane begins with, and becomes all that the lanes have, joined.
    template <int N, class T, class Join, class Each>
    void reduce(std::int64_t n, T (&result)[N], Join join, Each each_of) const {
        T own[lane_count][N];
        for (int lane = 0; lane < lane_count; ++lane) {
            std::copy_n(result, N, own[lane]);
            for (std::int64_t i = lane; i < n; i += lane_count) each_of(i, own[lane]);
        }
        for (int warp = 0; warp < lane_count; warp += warp_lanes)
            for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
                for (int lane = warp; lane < warp + distance; ++lane)
                    for (int j = 0; j < N; ++j) own[lane][j] = join(own[lane][j], own[lane + distance][j]);
        std::copy_n(own[0], N, result);
        for (int warp = warp_lanes; warp < lane_count; warp += warp_lanes)
            for (int j = 0; j < N; ++j) result[j] = join(result[j], own[warp][j]);
    }
};

/// What one thread, or one team, of a grid of `stride` does, the operands being host memory: items `first`, `first +
/// stride`, ... All of them by default.
inline void run_on_host(kernel k, const kernel_args& args, std::int64_t first = 0, std::int64_t stride = 1) {
    const auto from = static_cast<std::uint64_t>(first), by = static_cast<std::uint64_t>(stride);
    constexpr host_team<warp_lanes> warp;
    constexpr host_team<block_lanes> block;
    switch (k) {
        case kernel::move:
            return each_item<move>(args, from, by);
        case kernel::concat:
            return each_item<concat>(args, from, by);
        case kernel::get_rows:
            return each_item<get_rows>(args, from, by);
        case kernel::add:
            return each_item<map_repeating<plus>>(args, from, by);
        case kernel::mul:
            return each_item<map_repeating<times>>(args, from, by);
        case kernel::scale:
            return each_item<map<times>>(args, from, by);
        case kernel::silu:
            return each_item<map<sigmoid_linear>>(args, from, by);
        case kernel::gelu:
            return each_item<map<gaussian_linear>>(args, from, by);
        case kernel::rope:
            return each_item<rope>(args, from, by);
        case kernel::conv1d:
            return each_item<conv1d>(args, from, by);
        case kernel::matmul:
            return each_item<matmul>(args, warp, first, stride);
        case kernel::rms_norm_warp:
            return each_item<rms_norm>(args, warp, first, stride);
        case kernel::rms_norm_block:
            return each_item<rms_norm>(args, block, first, stride);
        case kernel::layer_norm_warp:
            return each_item<layer_norm>(args, warp, first, stride);
        case kernel::layer_norm_block:
            return each_item<layer_norm>(args, block, first, stride);
        case kernel::softmax_warp:
            return each_item<softmax>(args, warp, first, stride);
        case kernel::softmax_block:
            return each_item<softmax>(args, block, first, stride);
    }
}

}  // namespace alloclab::device::kernels
