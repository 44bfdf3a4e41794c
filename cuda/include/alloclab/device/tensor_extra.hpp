// tensor_extra: what a GPU backend remembers of one tensor, where its data lies on each device and the events that tell
// when each stream of each device is through with it. An object in an extra strategy's storage, all clear at birth.
// Two forms: one is cleared as ggml clears it; of the lazy one only the fields in use are ever written, which costs
// less than any choice of strategy saves. Choose lazy, and the compact sizes where one device is all there is. Cost: 8
// bytes per device and per event; the lazy form 8 more, since every value of a pointer or an event is in use and none
// is left to say "not written". Threads: single. Owns nothing: whoever creates the events destroys them. Idea: ggml's
// ggml_tensor_extra_gpu; its default grew from 256 to 1152 bytes in September 2023 (llama.cpp d54a4027a).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "alloclab/device/handles.hpp"

namespace alloclab::device {

/// Which fields of an extra have been written: all of them, at birth.
struct all_fields {
    [[nodiscard]] static constexpr bool written(std::size_t) noexcept { return true; }
    static constexpr void mark(std::size_t) noexcept {}
};

/// Those that a word of marks says; the others answer as if they were clear.
class fields_in_use {
public:
    static constexpr std::size_t limit = 64;

    [[nodiscard]] bool written(std::size_t field) const noexcept { return (marks_ >> field & 1) != 0; }
    void mark(std::size_t field) noexcept { marks_ |= std::uint64_t{1} << field; }

private:
    std::uint64_t marks_ = 0;
};

/// Devices and streams count from 0; one that is out of range is undefined.
template <std::size_t Devices, std::size_t Streams, class Fields = all_fields>
class basic_tensor_extra {
    static constexpr bool lazy = requires { Fields::limit; };
    static_assert(!lazy || 2 * Devices <= fields_in_use::limit, "tensor_extra: a mark for each device and its events");

public:
    static constexpr std::size_t devices = Devices;
    static constexpr std::size_t streams = Streams;

    // What is not cleared is not read before it is written.
    basic_tensor_extra() noexcept {
        if constexpr (!lazy) clear(on_, sizeof on_);
    }

    /// nullptr: not on that device.
    [[nodiscard]] void* data(std::size_t device) const noexcept {
        return fields_.written(device) ? on_[device].data : nullptr;
    }
    void place(std::size_t device, void* address) noexcept {
        fields_.mark(device);
        on_[device].data = address;
    }
    /// `none` until one is recorded.
    [[nodiscard]] event recorded(std::size_t device, std::size_t stream) const noexcept {
        return fields_.written(Devices + device) ? on_[device].events[stream] : event::none;
    }
    /// The first one of a device clears its others.
    void record(std::size_t device, std::size_t stream, event e) noexcept {
        if (!fields_.written(Devices + device)) on_[device].events = {};
        fields_.mark(Devices + device);
        on_[device].events[stream] = e;
    }

private:
    struct of_device {
        void* data;
        std::array<event, Streams> events;
    };

    // Small sizes become a few vector stores. For others g++ would emit `rep stos`, half as fast as the C library,
    // whose stores are as wide as the machine's; it must not know the size.
    static void clear(of_device* all, std::size_t bytes) noexcept {
        if constexpr (sizeof(on_) > 128) asm("" : "+r"(bytes));
        std::memset(all, 0, bytes);
    }

    [[no_unique_address]] Fields fields_;
    of_device on_[Devices];
};

using tensor_extra = basic_tensor_extra<16, 8>;         ///< ggml since 2023-09
using legacy_tensor_extra = basic_tensor_extra<16, 1>;  ///< ggml in mid-2023, when llama.cpp#2145 was reported
using compact_tensor_extra = basic_tensor_extra<1, 8>;  ///< one device with all its streams

using lazy_tensor_extra = basic_tensor_extra<16, 8, fields_in_use>;
using lazy_legacy_tensor_extra = basic_tensor_extra<16, 1, fields_in_use>;
using lazy_compact_tensor_extra = basic_tensor_extra<1, 8, fields_in_use>;

static_assert(sizeof(tensor_extra) == 1152 && sizeof(legacy_tensor_extra) == 256 && sizeof(compact_tensor_extra) == 72);
static_assert(sizeof(lazy_tensor_extra) == 1160 && sizeof(lazy_compact_tensor_extra) == 80);

}  // namespace alloclab::device
