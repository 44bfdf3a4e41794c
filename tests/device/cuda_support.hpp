// Two simulated GPUs behind the fake runtime, and the promise of every test with them: nothing stays behind.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "alloclab/device/cuda_device.hpp"
#include "alloclab/device/sim_device.hpp"
#include "fake_cuda.hpp"

namespace alloclab::device {

class cuda_on_the_fake : public ::testing::Test {
protected:
    static constexpr std::size_t mib = std::size_t{1} << 20;
    static constexpr std::size_t capacity = 64 * mib;

    cuda_on_the_fake() { fake::install(both_); }
    ~cuda_on_the_fake() override {
        EXPECT_EQ(fake::live_handles(), 0U);
        for (const sim_device* gpu : both_) {
            EXPECT_EQ(gpu->usage().live, 0U);
            EXPECT_EQ(gpu->usage().live_host_bytes, 0U);
            EXPECT_EQ(gpu->usage().errors, 0U) << gpu->last_error();
            EXPECT_EQ(gpu->usage().races, 0U) << gpu->last_error();
        }
        fake::install({});
    }

    [[nodiscard]] static int current() {
        int ordinal = -1;
        EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
        return ordinal;
    }

    sim_host host_;
    sim_device gpu_{host_, capacity};
    sim_device other_gpu_{host_, capacity};
    std::array<sim_device*, 2> both_{&gpu_, &other_gpu_};
};

}  // namespace alloclab::device
