#include "alloclab/tensor/models/load.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace alloclab::tensor {

namespace {

// Where the layers, and as the last position the output, lie. 0 is the host, then the devices.
class split {
public:
    split(const llama_shape& s, const load_options& o) noexcept
        : devices_(o.devices),
          first_(o.devices == 0 ? s.layers + 1 : o.host_layers),
          positions_(s.layers + 1 - first_) {}

    [[nodiscard]] std::size_t of(std::int32_t position) const noexcept {
        if (position < first_) return 0;
        return 1 + static_cast<std::size_t>(std::int64_t{position - first_} * devices_ / positions_);
    }

private:
    std::int64_t devices_;
    std::int32_t first_;
    std::int32_t positions_;
};

}  // namespace

std::vector<context_need> multi_gpu_load(const llama_shape& s, const load_options& options) {
    if (std::min({options.devices, options.loras, options.control_vectors, options.host_layers}) < 0 ||
        options.host_layers > s.layers)
        throw std::invalid_argument("multi-GPU load: counts must not be negative, and at most " +
                                    std::to_string(s.layers) + " layers can stay on the host");
    const split where(s, options);
    const auto buffer_types = static_cast<std::size_t>(options.devices) + 1;
    std::vector<context_need> needs;

    // One context for each buffer type that has tensors: `count(position)` of them by layer, `extra` on others.
    const auto add_group = [&](const std::string& name, auto count, std::vector<std::size_t> tensors) {
        tensors.resize(buffer_types);
        for (std::int32_t layer = 0; layer < s.layers; ++layer) tensors[where.of(layer)] += count(layer);
        for (std::size_t b = 0; b < buffer_types; ++b)
            if (tensors[b] != 0)
                needs.push_back({name + (b == 0 ? " host" : " device " + std::to_string(b - 1)), tensors[b], 0});
    };

    std::vector<std::size_t> apart(buffer_types);
    apart[0] += 1;                   // the embedding
    apart[where.of(s.layers)] += 2;  // norm and output
    add_group(
        "loader", [](std::int32_t) { return llama_layer_tensors; }, apart);
    add_group("kv", [](std::int32_t) { return std::size_t{2}; }, {});
    constexpr std::size_t pairs = 2 * (llama_layer_tensors - 2);  // two factors for each matrix, none for the two norms
    for (std::int32_t i = 0; i < options.loras; ++i)
        add_group("lora " + std::to_string(i), [](std::int32_t) { return pairs; }, {});
    for (std::int32_t i = 0; i < options.control_vectors; ++i)
        add_group("control vector " + std::to_string(i), [](std::int32_t layer) { return std::size_t{layer != 0}; },
                  {});
    return needs;
}

std::size_t mark_offloaded(const graph& g, std::size_t at_most) noexcept {
    std::size_t marked = 0;
    for (tensor* t : g.nodes()) {
        const bool offload = t->op != op::view && marked < at_most;
        t->offload = offload;
        marked += offload;
    }
    return marked;
}

}  // namespace alloclab::tensor
