// Runs a graph on the host without planner or engine: each tensor gets memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/graph.hpp"
#include "alloclab/tensor/kernels.hpp"
#include "alloclab/tensor/models/decoder.hpp"

namespace alloclab::tensor::test {

/// A context that grows, with its source.
struct growing_context {
    explicit growing_context(bool no_alloc = true)
        : c({.growing = growth{}, .no_alloc = no_alloc}, any_source(source)) {}

    malloc_source source;
    context c;
};

/// Memory of tensors; it starts as NaN in every type, so that what was never written shows.
class host_memory {
public:
    void give(tensor& t) {
        blocks_.push_back(std::make_unique<line[]>(t.bytes() / sizeof(line) + 1));
        t.data = blocks_.back().get();
        std::memset(t.data, 0xff, t.bytes());
    }

private:
    struct alignas(64) line {
        std::byte bytes[64];
    };
    std::vector<std::unique_ptr<line[]>> blocks_;
};

/// Writes the inputs and computes every node in order. Results live as long as the memory returned.
[[nodiscard]] inline host_memory run_on_host(const graph& g, std::span<const input_value> inputs) {
    host_memory memory;
    for (const auto& [leaf, value] : inputs) {
        memory.give(*leaf);
        std::memcpy(leaf->data, value, leaf->bytes());
    }
    for (tensor* t : g.nodes()) {
        if (t->op == op::view) t->data = static_cast<std::byte*>(t->sources[0]->data) + t->params.offset;
        else if (t->op == op::copy) t->data = t->sources[1]->data;
        else memory.give(*t);
        compute(*t);
    }
    return memory;
}

/// The elements of a contiguous f32 tensor.
[[nodiscard]] inline std::vector<float> floats_of(const tensor& t) {
    const auto* first = static_cast<const float*>(t.data);
    return {first, first + t.elements()};
}

}  // namespace alloclab::tensor::test
