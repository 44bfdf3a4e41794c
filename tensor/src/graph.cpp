#include "alloclab/tensor/graph.hpp"

#include <atomic>
#include <cstdio>

namespace alloclab::tensor {

namespace {
// Marks are never used twice in a process, so a mark left by another graph cannot be taken for one of this graph.
// 2^48 of them last for years: 1000 evals of 8192 nodes a second use them up in more than a year.
std::atomic<std::uint64_t> next_mark{1};
}  // namespace

graph_full::graph_full(std::size_t capacity) noexcept {
    std::snprintf(text_, sizeof text_, "graph full: more nodes than the %zu it was made for", capacity);
}

graph::graph(tensor** nodes, std::size_t capacity) noexcept
    : nodes_(nodes), capacity_(capacity), first_mark_(next_mark.fetch_add(capacity, std::memory_order_relaxed)) {}

// nodes_[0, count_) is the order so far, nodes_[top, capacity_) the stack of tensors that the walk stands on. Both grow
// into the same free middle: a tensor is in one of them, so they meet only when the graph is full.
bool graph::try_expand(tensor* root) noexcept {
    const std::size_t before = count_;
    std::size_t top = capacity_;
    const auto enter = [&](tensor* t) noexcept {
        if (t == nullptr || t->op == op::none || is_marked(t)) return true;
        if (top == count_) return false;
        t->visiting = 0;
        set_mark(t, 0);  // on the way: marked, so that it is not entered again; its place is written on leaving
        nodes_[--top] = t;
        return true;
    };

    bool fits = enter(root);
    while (fits && top != capacity_) {
        tensor* t = nodes_[top];
        if (t->visiting < max_sources) {
            const std::size_t source = t->visiting;
            t->visiting = static_cast<std::uint64_t>(source + 1) & 3;
            fits = enter(t->sources[source]);
        } else {
            ++top;
            set_mark(t, count_);
            nodes_[count_++] = t;
        }
    }
    if (fits) return true;
    for (; top != capacity_; ++top) nodes_[top]->mark = 0;
    while (count_ != before) nodes_[--count_]->mark = 0;
    return false;
}

void graph::expand(tensor* root) {
    if (!try_expand(root)) throw graph_full(capacity_);
}

}  // namespace alloclab::tensor
