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
/// which is no event and may be destroyed.
template <class D>
concept device_backend = requires(D& d, const D& cd, void* p, const void* q, std::size_t n, typename D::stream s,
                                  typename D::event e, const tensor& t) {
    { D::name } -> std::convertible_to<std::string_view>;
    { D::alignment } -> std::convertible_to<std::size_t>;
    // device memory; the host must not touch it
    { d.allocate(n) } noexcept -> std::same_as<void*>;
    { d.deallocate(p) } noexcept -> std::same_as<void>;
    { cd.available_bytes() } noexcept -> std::same_as<std::size_t>;
    // streams and events
    { d.default_stream() } noexcept -> std::same_as<typename D::stream>;
    { d.create_event() } noexcept -> std::same_as<typename D::event>;
    { d.destroy(e) } noexcept -> std::same_as<void>;
    { d.record(e, s) } noexcept -> std::same_as<bool>;
    { d.wait(s, e) } noexcept -> std::same_as<bool>;
    { d.done(e) } noexcept -> std::same_as<bool>;
    { d.synchronize(s) } noexcept -> std::same_as<bool>;
    // work, ordered within its stream
    { d.copy_to_device(p, q, n, s) } noexcept -> std::same_as<bool>;
    { d.copy_to_host(p, q, n, s) } noexcept -> std::same_as<bool>;
    { d.launch(t, s) } noexcept -> std::same_as<bool>;  // computes t, whose data and sources' data are device memory
    { cd.now() } noexcept -> std::same_as<std::int64_t>;
};

}  // namespace alloclab::tensor
// clang-format on
