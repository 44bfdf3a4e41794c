#include "alloclab/device/cuda_device.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloclab/bytes.hpp"
#include "cuda_support.hpp"

namespace alloclab::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using cuda = cuda_on_the_fake;
constexpr stream main_stream = cuda_device::default_stream();

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t first) {
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
}

// --- no device

TEST_F(cuda, devices_are_found_by_name_and_ordinal) {
    EXPECT_EQ(find_cuda().devices.size(), 2U);
    EXPECT_EQ(find_cuda().why_none, "");
    const cuda_device device({.ordinal = 1});
    EXPECT_EQ(device.ordinal(), 1);
    EXPECT_EQ(device.device_name(), find_cuda().devices[1]);
    EXPECT_EQ(device.capacity(), capacity);
}

TEST_F(cuda, any_answer_but_success_is_one_line_on_why_there_is_no_device) {
    const std::pair<int, const char*> answers[] = {{cudaErrorInsufficientDriver, "no NVIDIA driver here"},
                                                   {cudaErrorStubLibrary, "LD_LIBRARY_PATH"},
                                                   {cudaErrorNoDevice, "CUDA_VISIBLE_DEVICES"},
                                                   {cudaErrorSystemDriverMismatch, "(803)"},
                                                   {cudaErrorUnknown, "cudaErrorUnknown (999)"}};
    for (const auto& [answer, advice] : answers) {
        fake::answer_first_call_with(answer);
        const cuda_presence found = find_cuda();
        EXPECT_TRUE(found.devices.empty());
        EXPECT_THAT(found.why_none, AllOf(StartsWith("no CUDA device: "), HasSubstr(advice), Not(HasSubstr("\n"))));
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
        try {
            const cuda_device device;
            ADD_FAILURE() << "a device was made of error " << answer;
        } catch (const no_cuda_device& error) {
            EXPECT_EQ(error.what(), found.why_none);
        }
    }
}

TEST_F(cuda, an_ordinal_out_of_range_is_refused_with_the_number_of_devices) {
    for (const int ordinal : {-1, 2}) try {
            const cuda_device device({.ordinal = ordinal});
            ADD_FAILURE();
        } catch (const no_cuda_device& error) {
            EXPECT_THAT(error.what(), HasSubstr("there are 2"));
        }
}

// --- memory

TEST_F(cuda, bytes_come_back_from_the_device_as_they_were) {
    cuda_device device;
    const auto sent = numbers(1000, 7);
    const std::size_t bytes = sent.size() * 4;
    for (const bool in_order : {false, true}) {
        const stream s = device.create_stream();
        void* first = in_order ? device.allocate(bytes, s) : device.allocate(bytes);
        void* second = in_order ? device.allocate(bytes, s) : device.allocate(bytes);
        ASSERT_TRUE(first != nullptr && second != nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % cuda_device::alignment, 0U);
        EXPECT_EQ(device.usage().live, 2U);
        EXPECT_EQ(device.usage().live_bytes, 2 * bytes);
        std::vector<std::uint32_t> got(sent.size());
        EXPECT_TRUE(device.copy_to_device(first, sent.data(), bytes, s));
        EXPECT_TRUE(device.copy_on_device(second, first, bytes, s));
        EXPECT_TRUE(device.fill(second, std::byte{0xAB}, 4, s));
        EXPECT_TRUE(device.copy_to_host(got.data(), second, bytes, s));
        EXPECT_TRUE(device.synchronize(s));
        EXPECT_EQ(got[0], 0xABABABABU);
        EXPECT_TRUE(std::equal(got.begin() + 1, got.end(), sent.begin() + 1));
        if (in_order) device.deallocate(first, s);
        else device.deallocate(first);
        device.deallocate(second);  // either way, whatever it came from
        EXPECT_TRUE(device.destroy(s));
    }
    EXPECT_EQ(device.usage().live, 0U);
    EXPECT_EQ(device.usage().live_bytes, 0U);
    EXPECT_EQ(device.usage().peak_bytes, 2 * bytes);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

TEST_F(cuda, size_0_is_a_block_of_its_own_and_an_impossible_size_is_none) {
    cuda_device device;
    void* a = device.allocate(0);
    void* b = device.allocate(0, main_stream);
    EXPECT_TRUE(a != nullptr && b != nullptr && a != b);
    EXPECT_EQ(device.allocate(too_many), nullptr);
    EXPECT_EQ(device.allocate(too_many, main_stream), nullptr);
    EXPECT_EQ(device.allocate_host(too_many), nullptr);
    device.deallocate(a);
    device.deallocate(b, main_stream);
    device.deallocate(nullptr);
    device.deallocate(nullptr, main_stream);
    device.deallocate_host(nullptr);
}

TEST_F(cuda, memory_reported_free_that_cannot_be_had_is_refused_with_all_figures) {
    gpu_.refuse_beyond(capacity / 2);
    cuda_device device;
    void* had = device.allocate(capacity / 4);
    ASSERT_EQ(device.available_bytes(), capacity - capacity / 4);
    EXPECT_EQ(device.allocate(capacity / 2), nullptr);
    EXPECT_THAT(std::string(device.last_error()),
                AllOf(HasSubstr("asked for " + std::to_string(capacity / 2) + " bytes"),
                      HasSubstr("reports " + std::to_string(capacity - capacity / 4) + " free"), HasSubstr("got none"),
                      HasSubstr(std::to_string(capacity / 4) + " bytes are live here")));
    EXPECT_EQ(device.usage().errors, 0U) << "to be full is no error";
    void* smaller = device.allocate(capacity / 8);
    EXPECT_NE(smaller, nullptr);
    device.deallocate(had);
    device.deallocate(smaller);
}

TEST_F(cuda, handled_out_of_memory_leaves_no_last_error_behind) {
    cuda_device device;
    EXPECT_EQ(device.allocate(2 * capacity), nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_EQ(device.allocate(2 * capacity, main_stream), nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    void* p = device.allocate(mib);
    EXPECT_TRUE(device.fill(p, std::byte{0}, mib, main_stream));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    device.deallocate(p);
}

TEST_F(cuda, what_the_pool_keeps_is_given_up_for_a_request_that_needs_it) {
    cuda_device device;
    for (const char* function : {"cudaMalloc", "cudaMallocFromPoolAsync"}) {
        void* parked = device.allocate(capacity / 2, main_stream);
        device.deallocate(parked, main_stream);
        ASSERT_GE(gpu_.usage().parked_bytes, capacity / 2) << "the pool keeps what was freed";
        const std::size_t asked = device.usage().source_calls;
        fake::fail(function, 1, cudaErrorMemoryAllocation);
        const bool in_order = function != std::string("cudaMalloc");
        void* p = in_order ? device.allocate(mib, main_stream) : device.allocate(mib);
        EXPECT_NE(p, nullptr) << device.last_error();
        EXPECT_EQ(device.usage().source_calls, asked + 2) << "once in vain";
        EXPECT_EQ(gpu_.usage().parked_bytes, 0U);
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
        device.deallocate(p);
    }
    EXPECT_EQ(device.last_error(), "");
}

TEST_F(cuda, the_pool_keeps_what_its_options_and_trims_say) {
    cuda_device device({.keep_parked = 8 * mib});
    const auto park = [&](std::size_t bytes) {
        void* p = device.allocate(bytes, main_stream);
        device.deallocate(p, main_stream);
        EXPECT_TRUE(device.synchronize());
        return gpu_.usage().parked_bytes;
    };
    EXPECT_EQ(park(8 * mib), 8 * mib);
    device.trim();
    EXPECT_EQ(gpu_.usage().parked_bytes, 0U);
    EXPECT_EQ(park(16 * mib), 0U) << "more than it may keep";
}

TEST_F(cuda, an_earlier_error_of_the_caller_is_not_swallowed) {
    cuda_device device;
    ASSERT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    void* p = device.allocate(mib);
    EXPECT_NE(p, nullptr) << "it is no concern of a call that succeeds";
    EXPECT_EQ(device.allocate(2 * capacity), nullptr);
    EXPECT_NE(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_FALSE(device.copy_to_device(&device, &device, 4, main_stream));
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("not looked at before that"));
    EXPECT_NE(cudaGetLastError(), cudaSuccess);
    device.deallocate(p);
}

TEST_F(cuda, an_asynchronous_error_is_kept_and_every_later_call_fails_with_its_text) {
    cuda_device device;
    const event e = device.create_event();
    void* p = device.allocate(mib);
    fake::break_device(cudaErrorIllegalAddress);
    EXPECT_FALSE(device.synchronize());
    const std::string text(device.last_error());
    EXPECT_THAT(text, AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("lost to this process")));
    EXPECT_EQ(device.allocate(mib), nullptr);
    EXPECT_FALSE(device.record(e, main_stream));
    EXPECT_FALSE(device.done(e));
    EXPECT_EQ(device.create_event(), event::none);
    device.deallocate(p);
    EXPECT_EQ(device.last_error(), text);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorIllegalAddress) << "it is for the caller to see as well";
    EXPECT_EQ(device.usage().live, 0U);
    ASSERT_EQ(cudaFree(p), cudaErrorIllegalAddress);  // so that the simulator has it back
}

TEST_F(cuda, page_locked_memory_is_refused_and_pageable_memory_serves) {
    cuda_device device;
    auto* locked = static_cast<std::byte*>(device.allocate_host(mib));
    ASSERT_NE(locked, nullptr);
    EXPECT_TRUE(device.is_page_locked(locked));
    EXPECT_EQ(device.usage().live_host_bytes, mib);
    fake::fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    auto* pageable = static_cast<std::byte*>(device.allocate_host(mib));
    ASSERT_NE(pageable, nullptr);
    EXPECT_FALSE(device.is_page_locked(pageable));
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("pageable memory serves instead"));
    EXPECT_EQ(device.usage().live_host_bytes, mib);
    std::memset(locked, 1, mib);
    std::memset(pageable, 2, mib);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    device.deallocate_host(pageable);
    device.deallocate_host(locked);
    EXPECT_EQ(device.usage().live_host_bytes, 0U);
}

TEST_F(cuda, what_is_no_live_block_is_never_given_to_the_runtime) {
    cuda_device device;
    void* p = device.allocate(mib);
    void* h = device.allocate_host(64);
    device.deallocate(p);
    const std::size_t frees = fake::calls("cudaFree");
    device.deallocate(p);
    device.deallocate(p, main_stream);
    device.deallocate(h);
    device.deallocate(&device);
    device.deallocate_host(p);
    EXPECT_EQ(device.usage().errors, 5U);
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("not the start of a live block of host memory"));
    EXPECT_EQ(fake::calls("cudaFree"), frees);
    EXPECT_EQ(fake::calls("cudaFreeHost"), 0U);
    device.deallocate_host(h);
}

TEST_F(cuda, a_release_that_fails_leaves_right_counts_and_a_usable_device_in_any_thread) {
    cuda_device device;
    void* first = device.allocate(mib);
    void* second = device.allocate(mib, main_stream);
    fake::fail("cudaFree", 1, cudaErrorUnknown);
    fake::fail("cudaFreeAsync", 1, cudaErrorUnknown);
    device.deallocate(first);
    device.deallocate(second, main_stream);
    EXPECT_EQ(device.usage().errors, 2U);
    std::thread([&] {
        EXPECT_EQ(device.usage().live, 0U);
        EXPECT_EQ(device.usage().live_bytes, 0U);
        void* again = device.allocate(mib);
        EXPECT_NE(again, nullptr);
        device.deallocate(again);
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    }).join();
    EXPECT_EQ(gpu_.usage().live, 0U);
}

// --- several devices

TEST_F(cuda, each_release_runs_on_its_own_device_and_the_callers_stays_current) {
    auto first = std::make_unique<cuda_device>();
    auto second = std::make_unique<cuda_device>(cuda_options{.ordinal = 1});
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    void* p = second->allocate(mib);
    EXPECT_EQ(current(), 0);
    EXPECT_EQ(other_gpu_.usage().live, 1U);
    EXPECT_EQ(gpu_.usage().live, 0U);
    try {
        const event on_second = second->create_event();
        const stream of_second = second->create_stream();
        EXPECT_TRUE(second->record(on_second, of_second));
        EXPECT_TRUE(first->wait(main_stream, on_second)) << "events go from one device to another";
        EXPECT_FALSE(first->record(on_second, main_stream));
        EXPECT_EQ(second->allocate(2 * capacity), nullptr);
        EXPECT_EQ(current(), 0) << "after a call that failed";
        throw std::runtime_error("the caller's");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(current(), 0);
    second->deallocate(p);
    EXPECT_EQ(other_gpu_.usage().live, 0U);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    first.reset();
    EXPECT_EQ(current(), 1);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    second.reset();
    EXPECT_EQ(current(), 0);
}

TEST_F(cuda, the_callers_device_comes_back_even_if_the_way_back_fails_at_first) {
    cuda_device device({.ordinal = 1});
    ASSERT_EQ(current(), 0);
    fake::fail("cudaSetDevice", 2, cudaErrorUnknown);
    void* p = device.allocate(mib);
    EXPECT_EQ(current(), 0);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    device.deallocate(p);
}

// --- streams and events

TEST_F(cuda, memory_of_destroyed_streams_is_used_again) {
    cuda_device device;
    std::vector<stream> streams(8);
    for (int round = 0; round < 3; ++round) {
        for (stream& s : streams) {
            s = device.create_stream();
            void* p = device.allocate(4 * mib, s);
            ASSERT_NE(p, nullptr);
            EXPECT_TRUE(device.fill(p, std::byte{1}, 4 * mib, s));
            device.deallocate(p, s);
        }
        for (const stream s : streams) EXPECT_TRUE(device.destroy(s));
        EXPECT_FALSE(device.record(event::none, streams[0]));
        EXPECT_THAT(std::string(device.last_error()), HasSubstr("is not live"));
        void* p = device.allocate(48 * mib, main_stream);
        ASSERT_NE(p, nullptr) << device.last_error();
        EXPECT_TRUE(device.fill(p, std::byte{2}, 48 * mib, main_stream));
        device.deallocate(p, main_stream);
    }
    EXPECT_EQ(device.usage().live_streams, 0U);
    EXPECT_FALSE(device.destroy(main_stream));
}

TEST_F(cuda, events_order_streams_and_tell_when_work_is_done) {
    cuda_device device;
    const stream a = device.create_stream();
    const stream b = device.create_stream();
    const event e = device.create_event();
    EXPECT_TRUE(device.done(e)) << "never recorded";
    void* p = device.allocate(48 * mib);
    EXPECT_TRUE(device.fill(p, std::byte{1}, 48 * mib, a));
    EXPECT_TRUE(device.record(e, a));
    EXPECT_FALSE(device.done(e));
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "not to be ready is no error";
    EXPECT_TRUE(device.wait(b, e));
    EXPECT_TRUE(device.fill(p, std::byte{2}, mib, b)) << "no race, or the simulator would say so";
    EXPECT_TRUE(device.synchronize(e));
    EXPECT_TRUE(device.done(e));
    device.destroy(e);
    EXPECT_FALSE(device.record(e, a)) << "destroyed";
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("none of this device"));
    device.deallocate(p);
    EXPECT_EQ(device.usage().created_events, 1U);
    EXPECT_EQ(device.usage().live_events, 0U);
}

TEST_F(cuda, a_stream_that_cannot_be_had_is_bad_alloc) {
    cuda_device device;
    fake::fail("cudaStreamCreateWithFlags", 1, cudaErrorMemoryAllocation);
    EXPECT_THROW((void)device.create_stream(), std::bad_alloc);
    EXPECT_EQ(device.usage().live_streams, 0U);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(cuda, failures_are_reported_as_they_happen_by_one_line_each) {
    cuda_device device;
    std::vector<std::string> lines;
    device.report_to([](std::string_view line,
                        void* to) noexcept { static_cast<std::vector<std::string>*>(to)->emplace_back(line); },
                     &lines);
    EXPECT_EQ(device.allocate(2 * capacity), nullptr);
    fake::fail("cudaEventCreateWithFlags", 1, cudaErrorUnknown);
    EXPECT_EQ(device.create_event(), event::none);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines[1], AllOf(HasSubstr("cudaEventCreateWithFlags: cudaErrorUnknown (999)"), Not(HasSubstr("\n"))));
    EXPECT_EQ(lines[1], device.last_error());
    device.report_to(nullptr, nullptr);
}

// --- the life of the process

TEST_F(cuda, twenty_times_made_and_destroyed_leaves_the_same_handles_and_bytes) {
    const std::size_t handles = fake::live_handles();
    const std::size_t available = gpu_.available_bytes();
    for (int time = 0; time < 20; ++time) {
        cuda_device device;
        const stream s = device.create_stream();
        ASSERT_TRUE(device.record(device.create_event(), s));
        void* p = device.allocate(mib, s);
        device.deallocate(p, s);
        EXPECT_GT(fake::live_handles(), handles);
        if (time % 2 == 0) {
            EXPECT_TRUE(device.destroy(s));
        }
    }
    EXPECT_EQ(fake::live_handles(), handles);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // at which the simulator gives up what pools have kept
    EXPECT_EQ(gpu_.available_bytes(), available);
}

TEST_F(cuda, once_the_driver_is_unloading_every_call_is_quiet_and_does_nothing) {
    int lines = 0;
    void* p = nullptr;
    void* h = nullptr;
    {
        cuda_device device;
        device.report_to([](std::string_view, void* count) noexcept { ++*static_cast<int*>(count); }, &lines);
        p = device.allocate(mib);
        h = device.allocate_host(mib);
        const event e = device.create_event();
        fake::unload();
        EXPECT_EQ(device.allocate(mib), nullptr);
        EXPECT_FALSE(device.record(e, main_stream));
        device.deallocate(p);
        device.deallocate_host(h);
        device.destroy(e);
        EXPECT_EQ(device.last_error(), "");
        EXPECT_EQ(device.usage().errors, 0U);
    }
    EXPECT_EQ(lines, 0);
    fake::install({});  // what the driver had is gone with it
    gpu_.deallocate(p);
    gpu_.deallocate_host(h);
}

TEST_F(cuda, a_child_is_told_that_cuda_does_not_survive_fork) {
    cuda_device device;
    void* p = device.allocate(mib);
    const pid_t child = ::fork();
    if (child == 0) {
        int failed = 0;
        const auto check = [&](bool holds, int number) { failed = failed == 0 && !holds ? number : failed; };
        const std::size_t calls = fake::calls();
        {
            auto mine = std::unique_ptr<cuda_device>();
            check(device.allocate(mib) == nullptr, 1);
            check(device.last_error().find("does not survive") != std::string_view::npos, 2);
            device.deallocate(p);
            check(find_cuda().devices.empty(), 3);
            check(find_cuda().why_none.find("does not survive") != std::string::npos, 4);
            try {
                mine = std::make_unique<cuda_device>();
                check(false, 5);
            } catch (const no_cuda_device&) {
            }
            sim_device simulated(mib);  // what needs no CUDA goes on
            void* other = simulated.allocate(4096);
            check(other != nullptr, 6);
            simulated.deallocate(other);
        }
        device.~cuda_device();
        check(fake::calls() == calls, 7);
        ::_exit(failed);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(device.fill(p, std::byte{0}, mib, main_stream)) << "the parent is as before";
    device.deallocate(p);
}

}  // namespace
}  // namespace alloclab::device
