// handles: a stream and an event by value, the same type whatever the device.
#pragma once

#include <cstdint>

namespace alloclab::device {

/// A number that its device never gives twice, so that work of a destroyed stream cannot be taken for a later one's
/// (rmm#510); 0 is the default stream.
enum class stream : std::uint32_t {};

/// 8 bytes, so that a CUDA handle fits as well. `none` is what creation answers on failure.
enum class event : std::uint64_t { none = 0 };

/// How a stream stands to the legacy default stream: a blocking one starts nothing before what that one was given
/// earlier is through, and holds up what that one is given later; a non-blocking one runs beside it.
enum class stream_kind : std::uint8_t { blocking, non_blocking };

/// What work does to memory that it touches.
enum class access : std::uint8_t { read, write };

}  // namespace alloclab::device
