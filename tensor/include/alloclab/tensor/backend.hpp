// device_backend: what the engine needs of a device, filled by alloclab::device (cuda/) and by nobody here.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "alloclab/tensor/kernels.hpp"
#include "alloclab/tensor/tensor.hpp"

// clang-format 14 breaks compound requirements over lines.
// clang-format off
namespace alloclab::tensor {

/// Streams and events are values; an event that was never recorded is complete. Times are nanoseconds on the device's
/// own clock, virtual where the device is. Failing calls change nothing: nullptr, false, or for a new event `event{}`,
/// which is no event and may be destroyed; `last_error` then says why, and is valid until the next failure.
/// `create_stream` alone throws std::bad_alloc. Stream-ordered memory may be used by what the stream is given from the
/// allocation to the deallocation, and by others that events put between the two.
template <class D>
concept device_backend = requires(D& d, const D& cd, void* p, const void* q, std::size_t n, typename D::stream s,
                                  typename D::event e, const tensor& t) {
    { D::name } -> std::convertible_to<std::string_view>;
    { D::alignment } -> std::convertible_to<std::size_t>;
    // device memory; the host must not touch it
    { d.allocate(n) } noexcept -> std::same_as<void*>;
    { d.deallocate(p) } noexcept -> std::same_as<void>;      // waits for the whole device
    { d.allocate(n, s) } noexcept -> std::same_as<void*>;    // stream-ordered
    { d.deallocate(p, s) } noexcept -> std::same_as<void>;   // likewise; for memory of either allocate
    { cd.available_bytes() } noexcept -> std::same_as<std::size_t>;
    // streams and events
    { d.default_stream() } noexcept -> std::same_as<typename D::stream>;
    { d.create_stream() } -> std::same_as<typename D::stream>;  // non-blocking
    { d.destroy(s) } noexcept -> std::same_as<bool>;            // what it was given still runs
    { d.create_event() } noexcept -> std::same_as<typename D::event>;
    { d.destroy(e) } noexcept -> std::same_as<void>;
    { d.record(e, s) } noexcept -> std::same_as<bool>;
    { d.wait(s, e) } noexcept -> std::same_as<bool>;
    { d.done(e) } noexcept -> std::same_as<bool>;
    { d.synchronize(e) } noexcept -> std::same_as<bool>;
    { d.synchronize(s) } noexcept -> std::same_as<bool>;
    // work, ordered within its stream
    { d.copy_to_device(p, q, n, s) } noexcept -> std::same_as<bool>;
    { d.copy_to_host(p, q, n, s) } noexcept -> std::same_as<bool>;
    { d.launch(t, s) } noexcept -> std::same_as<bool>;  // computes t, whose data and sources' data are device memory
    { cd.now() } noexcept -> std::same_as<std::int64_t>;
    { cd.last_error() } noexcept -> std::same_as<std::string_view>;
};

/// A device that names the race when memory is touched too early. Beside the operands of launches and copies, whose
/// `called` goes into the report, it can be told of other memory, on the host too, such as extras and host buffers: what
/// the last work given to a stream touches, and what the host touches now.
template <class D>
concept checks_order = device_backend<D> && requires(D& d, void* p, const void* q, std::size_t n, const tensor& t,
                                                     typename D::stream s, std::string_view called) {
    { d.copy_to_device(p, q, n, s, called) } noexcept -> std::same_as<bool>;
    { d.copy_to_host(p, q, n, s, called) } noexcept -> std::same_as<bool>;
    { d.launch(t, s, called) } noexcept -> std::same_as<bool>;
    { d.also_touches(s, q, n, D::writes, called) } noexcept -> std::same_as<bool>;
    { d.host_touches(q, n, D::writes, called) } noexcept -> std::same_as<bool>;
    { d.host_touches(q, n, D::reads, called) } noexcept -> std::same_as<bool>;
};

}  // namespace alloclab::tensor
// clang-format on
