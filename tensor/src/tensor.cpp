#include "alloclab/tensor/tensor.hpp"

namespace alloclab::tensor {

static_assert(sizeof(tensor) == 128, "a tensor is two cache lines");

std::string_view name_of(type t) noexcept {
    constexpr std::array<std::string_view, 3> names{"f32", "f16", "i32"};
    return names[static_cast<std::size_t>(t)];
}

bool tensor::contiguous() const noexcept {
    std::size_t stride = bytes_of(type);
    for (std::size_t d = 0; d < 4; ++d) {
        if (ne[d] > 1 && nb[d] != stride) return false;
        stride *= static_cast<std::size_t>(ne[d]);
    }
    return true;
}

const tensor& tensor::root() const noexcept {
    const tensor* t = this;
    while (t->is_alias()) t = t->op == op::view ? t->sources[0] : t->sources[1];
    return *t;
}

}  // namespace alloclab::tensor
