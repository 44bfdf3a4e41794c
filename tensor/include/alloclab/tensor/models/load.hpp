// load: what goes to which device: the contexts that loading a model onto several GPUs takes, and the nodes of a graph
// that are computed on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "alloclab/tensor/graph.hpp"
#include "alloclab/tensor/models/llama.hpp"
#include "alloclab/tensor/models/needs.hpp"

namespace alloclab::tensor {

struct load_options {
    std::int32_t devices = 1;          ///< 0: all on the host
    std::int32_t loras = 0;            ///< adapters of all seven matrices of each layer
    std::int32_t control_vectors = 0;  ///< one vector for each layer but the first
    std::int32_t host_layers = 0;      ///< leading layers that stay on the host
};

/// The contexts that llama.cpp makes: for the loader, the KV cache, each adapter and each control vector one per buffer
/// type that gets a tensor. The embedding stays on the host; layers, then the output, are split evenly in order.
/// Throws std::invalid_argument for a negative count or more host layers than there are. O(layers x contexts).
[[nodiscard]] std::vector<context_need> multi_gpu_load(const llama_shape& s, const load_options& options);

/// Marks the first `at_most` nodes that compute something (views do not) as offloaded and all others as not; returns
/// how many it marked. O(nodes).
std::size_t mark_offloaded(const graph& g, std::size_t at_most) noexcept;

}  // namespace alloclab::tensor
