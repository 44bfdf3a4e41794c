#include "alloclab/tensor/graph.hpp"

#include <algorithm>
#include <cstdio>

namespace alloclab::tensor {

graph_full::graph_full(std::size_t capacity) noexcept {
    std::snprintf(text_, sizeof text_, "graph full: more nodes than the %zu it was made for", capacity);
}

// nodes_[0, count_) is the order so far, nodes_[top, capacity_) the stack: the path from the root to where the walk
// stands. Both grow into the same free middle; a tensor is in one of them, so they meet only when the graph is full.
bool graph::try_expand(tensor* root) noexcept {
    const std::size_t before = count_;
    std::size_t top = capacity_;
    const auto is_missing = [this](const tensor* t) noexcept {
        return t != nullptr && t->op != op::none && !contains(t);
    };
    const auto enter = [&](tensor* t) noexcept {
        if (top == count_) return false;
        nodes_[--top] = t;
        return true;
    };

    bool fits = !is_missing(root) || enter(root);
    while (fits && top != capacity_) {
        tensor* t = nodes_[top];
        const auto next = std::find_if(t->sources.begin(), t->sources.end(), is_missing);
        if (next != t->sources.end()) {
            fits = enter(*next);
        } else {
            ++top;
            nodes_[count_] = t;
            t->mark = ++count_;
        }
    }
    if (!fits) count_ = before;
    return fits;
}

void graph::expand(tensor* root) {
    if (!try_expand(root)) throw graph_full(capacity_);
}

}  // namespace alloclab::tensor
