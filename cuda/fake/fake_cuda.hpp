// fake_cuda: the CUDA runtime and the part of cuBLAS that cuda_device calls, on simulated devices. Linked instead of
// cudart, so that the very same objects run, and are checked, where there is no GPU. Tests alone use it.
// Threads: any number; a lock of its own makes one after the other of them, but the devices' own members are for when
// no other thread calls. What it has not: managed and mapped memory, copies between devices or from host to host,
// graphs that allocate, wait values, priorities, peers, programs built with a per-thread default stream (`_ptsz`).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "alloclab/device/sim_device.hpp"

namespace alloclab::device::fake {

/// What the process finds as its devices from now on, by ordinal; none: cudaGetDeviceCount answers
/// cudaErrorNoDevice, and every other call too. Current devices, last errors and handles of before are forgotten. The
/// devices are of one sim_host and outlive what uses them.
void install(std::span<sim_device* const> devices);

/// What every call answers instead, from the first one on, such as cudaErrorInsufficientDriver (35): a machine with a
/// toolkit alone.
void answer_first_call_with(int error);

/// The calls that were made since install(), by name; and the one whose n-th call fails (from 1, counted from now on;
/// 0: none). Any function of the runtime, of cuBLAS ("cublasCreate_v2", with a status of cuBLAS's) and of the driver
/// ("cuMemMap") may fail, but those that only tell of errors, which are not counted either; the simulator's own faults
/// come in addition. A call that destroys or frees does so all the same: its error is an earlier one's, as the
/// runtime's would be.
[[nodiscard]] std::size_t calls(std::string_view function);
[[nodiscard]] std::size_t calls();
void fail(std::string_view function, std::size_t nth, int error);
/// The n-th call of any of them from now on fails.
void fail_any(std::size_t nth, int error);
/// Every call from now on answers cudaErrorCudartUnloading.
void unload();
/// An asynchronous error: the next call that waits, and every one after it, answers with it, as the runtime does.
void break_device(int error);

/// Handles that are alive: streams, events, pools, graphs, cuBLAS handles, reserved regions, page-locked blocks.
[[nodiscard]] std::size_t live_handles();

/// A kernel that was launched through `<<<>>>` and has no emulation by its name: the launch answers
/// cudaErrorInvalidDeviceFunction, and this has the name.
[[nodiscard]] std::string unknown_kernel();

}  // namespace alloclab::device::fake
