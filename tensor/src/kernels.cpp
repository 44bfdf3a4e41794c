#include "alloclab/tensor/kernels.hpp"

#include "half.hpp"
#include "kernels.hpp"

namespace alloclab::tensor {

namespace {

double count(const tensor* t) noexcept { return t == nullptr ? 0 : static_cast<double>(t->elements()); }
double size(const tensor* t) noexcept { return t == nullptr ? 0 : count(t) * static_cast<double>(bytes_of(t->type)); }

}  // namespace

void compute(const tensor& t) noexcept {
    if (t.elements() == 0) return;
    switch (t.op) {
        case op::none:
        case op::view:
            return;
        case op::get_rows:
            return kernels::get_rows(t);
        case op::add:
            return kernels::add(t);
        case op::mul:
            return kernels::mul(t);
        case op::scale:
            return kernels::scale(t);
        case op::matmul:
            return kernels::matmul(t);
        case op::rms_norm:
            return kernels::rms_norm(t);
        case op::layer_norm:
            return kernels::layer_norm(t);
        case op::rope:
            return kernels::rope(t);
        case op::softmax:
            return kernels::softmax(t);
        case op::silu:
            return kernels::silu(t);
        case op::gelu:
            return kernels::gelu(t);
        case op::conv1d:
            return kernels::conv1d(t);
        case op::cont:
            return kernels::cont(t);
        case op::copy:
            return kernels::copy(t);
        case op::concat:
            return kernels::concat(t);
    }
}

work work_of(const tensor& t) noexcept {
    const auto [a, b, c] = t.sources;
    const double n = count(&t);
    const double moved = size(a) + size(b) + size(c) + size(&t);
    switch (t.op) {
        case op::none:
        case op::view:
            return {};
        case op::get_rows:
            return {0, n * static_cast<double>(bytes_of(a->type)) + size(b) + size(&t)};
        case op::cont:
        case op::concat:
            return {0, moved};
        case op::copy:
            return {0, size(a) + size(&t)};
        case op::add:
        case op::mul:
        case op::scale:
            return {n, moved};
        case op::matmul:
            return {2 * n * static_cast<double>(a->ne[0]), moved};
        case op::conv1d:
            return {2 * n * static_cast<double>(a->ne[0]) * static_cast<double>(a->ne[1]), moved};
        case op::rope:
            return {3 * n, moved};
        case op::rms_norm:
            return {3 * n, moved};
        case op::silu:
            return {4 * n, moved};
        case op::layer_norm:
        case op::softmax:
            return {5 * n, moved};
        case op::gelu:
            return {9 * n, moved};
    }
    return {};
}

float to_float(std::uint16_t half) noexcept { return widen(half); }
std::uint16_t to_half(float value) noexcept { return narrow(value); }

}  // namespace alloclab::tensor
