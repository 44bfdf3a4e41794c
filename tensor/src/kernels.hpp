// What the kernels' files share: where an element lies, reading with any stride, and the walk over rows. Results are
// contiguous (all but those of copy); sources may have any strides unless ops.hpp says otherwise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "alloclab/tensor/tensor.hpp"

namespace alloclab::tensor::kernels {

void matmul(const tensor& t) noexcept;
void conv1d(const tensor& t) noexcept;

void get_rows(const tensor& t) noexcept;
void cont(const tensor& t) noexcept;
void copy(const tensor& t) noexcept;
void concat(const tensor& t) noexcept;

void add(const tensor& t) noexcept;
void mul(const tensor& t) noexcept;
void scale(const tensor& t) noexcept;
void silu(const tensor& t) noexcept;
void gelu(const tensor& t) noexcept;
void rms_norm(const tensor& t) noexcept;
void layer_norm(const tensor& t) noexcept;
void softmax(const tensor& t) noexcept;
void rope(const tensor& t) noexcept;

/// Element [0, i1, i2, i3].
inline std::byte* row_at(const tensor& t, std::int64_t i1, std::int64_t i2, std::int64_t i3) noexcept {
    return static_cast<std::byte*>(t.data) + static_cast<std::size_t>(i1) * t.nb[1] +
           static_cast<std::size_t>(i2) * t.nb[2] + static_cast<std::size_t>(i3) * t.nb[3];
}

/// A row whose elements lie `step` bytes apart.
template <class T>
struct strided {
    const std::byte* first;
    std::size_t step;
    T operator[](std::int64_t i) const noexcept {
        return *reinterpret_cast<const T*>(first + static_cast<std::size_t>(i) * step);
    }
};

/// Calls use(row) with a plain pointer where elements are adjacent, so that its loop vectorises, else with a strided.
template <class T, class Use>
void with_row(const std::byte* first, std::size_t step, Use use) noexcept {
    if (step == sizeof(T)) use(reinterpret_cast<const T*>(first));
    else use(strided<T>{first, step});
}

/// Calls visit(i1, i2, i3) for each row of `t`.
template <class Visit>
void each_row(const tensor& t, Visit visit) noexcept {
    for (std::int64_t i3 = 0; i3 < t.ne[3]; ++i3)
        for (std::int64_t i2 = 0; i2 < t.ne[2]; ++i2)
            for (std::int64_t i1 = 0; i1 < t.ne[1]; ++i1) visit(i1, i2, i3);
}

}  // namespace alloclab::tensor::kernels
