// Two simulated devices behind the fake of the CUDA runtime, and a kernel that fills floats.
#pragma once

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "fake_cuda.hpp"
#include "fake_cuda_kernels.hpp"
#include "fake_launch.hpp"

namespace alloclab::device {

class fake_cuda : public ::testing::Test {
protected:
    static constexpr std::size_t capacity = 64u << 20;

    void SetUp() override {
        sim_device* const both[] = {&first, &second};
        fake::install(both);
        first.report_to(note, this);
        second.report_to(note, this);
        fake::emulate_as("alloclab_test_fill",
                         {.argument_bytes = {sizeof(fill_arguments), sizeof(float)},
                          .run = [](void** arguments, dim3, dim3, fake::touches& memory) {
                              const auto& to = *static_cast<const fill_arguments*>(arguments[0]);
                              const std::size_t bytes = static_cast<std::size_t>(to.n) * sizeof(float);
                              auto* const at = static_cast<float*>(memory(to.to, bytes, access::write));
                              if (at == nullptr) return;
                              for (int i = 0; i < to.n; ++i) at[i] = *static_cast<const float*>(arguments[1]);
                          }});
    }
    void TearDown() override {
        EXPECT_EQ(fake::live_handles(), 0u) << "the test leaves something behind";
        fake::install({});
    }

    static cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
        cudaStream_t s = nullptr;
        EXPECT_EQ(cudaStreamCreateWithFlags(&s, flags), cudaSuccess);
        return s;
    }
    static cudaEvent_t make_event() {
        cudaEvent_t e = nullptr;
        EXPECT_EQ(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), cudaSuccess);
        return e;
    }
    static void* allocate(std::size_t bytes) {
        void* p = nullptr;
        EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
        return p;
    }
    /// The floats, once all that the stream was given is done.
    static std::vector<float> read(const void* p, std::size_t n, cudaStream_t s) {
        std::vector<float> to(n);
        EXPECT_EQ(cudaMemcpyAsync(to.data(), p, n * sizeof(float), cudaMemcpyDeviceToHost, s), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
        return to;
    }
    static void fill(void* p, int n, float value, cudaStream_t s) {
        launch_fill(1, 32, s, {static_cast<float*>(p), n}, value);
    }

    sim_host host;
    sim_device first{host, capacity};
    sim_device second{host, capacity};
    std::vector<std::string> reports;

private:
    static void note(std::string_view line, void* self) noexcept {
        static_cast<fake_cuda*>(self)->reports.emplace_back(line);
    }
};

}  // namespace alloclab::device
