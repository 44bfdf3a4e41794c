// tensor_extra: what a GPU backend remembers of one tensor, where its data lies on each device and the events that tell
// when each stream of each device is through with it. An object in an extra strategy's storage, all clear at birth.
// Cost: 8 bytes per device and per event, and clearing them; choose the compact form for the devices in use.
// Threads: single. Owns nothing: whoever creates the events destroys them.
// Idea: ggml's ggml_tensor_extra_gpu; its default grew from 256 to 1152 bytes in September 2023 (llama.cpp d54a4027a).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace alloclab::device {

/// A backend's event by value, 8 bytes so that a CUDA handle fits as well. `none` is what creation answers on failure.
enum class event : std::uint64_t { none = 0 };

template <std::size_t Devices, std::size_t Streams>
struct basic_tensor_extra {
    static constexpr std::size_t devices = Devices;
    static constexpr std::size_t streams = Streams;

    std::array<void*, Devices> data{};                         ///< by device; nullptr: not on that device
    std::array<std::array<event, Streams>, Devices> events{};  ///< by device and stream
};

using tensor_extra = basic_tensor_extra<16, 8>;         ///< ggml since 2023-09
using legacy_tensor_extra = basic_tensor_extra<16, 1>;  ///< ggml in mid-2023, when llama.cpp#2145 was reported
using compact_tensor_extra = basic_tensor_extra<1, 8>;  ///< one device with all its streams

static_assert(sizeof(tensor_extra) == 1152 && sizeof(legacy_tensor_extra) == 256 && sizeof(compact_tensor_extra) == 72);

}  // namespace alloclab::device
