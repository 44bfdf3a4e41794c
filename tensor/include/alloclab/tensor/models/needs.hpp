// needs: how much metadata a graph or a group of leaves takes, found by building it once and counting.
// Cost: one build in a context that grows. Threads: any number at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/context.hpp"

namespace alloclab::tensor {

/// A context to make: what it is for and what must fit into it.
struct context_need {
    std::string name;
    std::size_t tensors = 0;
    std::size_t graph_nodes = 0;  ///< 0: no graph

    /// A context of that size fits exactly this.
    [[nodiscard]] std::size_t bytes() const noexcept {
        const std::size_t all = context::required_bytes(tensors, graph_nodes);
        return graph_nodes == 0 ? all - context::required_bytes(0, 0) : all;
    }
};

/// What `build` makes; it gets a context without data and a graph of `max_nodes`, and its exceptions pass.
template <std::invocable<context&, graph&> Build>
[[nodiscard]] context_need need_of(std::string name, std::size_t max_nodes, Build build) {
    malloc_source source;
    context c({.growing = growth{}}, any_source(source));
    graph& g = *c.new_graph(max_nodes);
    build(c, g);
    return {std::move(name), c.tensors(), g.nodes().size()};
}

}  // namespace alloclab::tensor
