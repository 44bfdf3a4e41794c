// graph: tensors in the order in which they can be computed. Built by an iterative walk that marks the tensors
// themselves and uses the unfilled end of the node array as its stack: no recursion, no hash table, no other memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "alloclab/tensor/tensor.hpp"

namespace alloclab::tensor {

/// More nodes than the graph was made for. The text says how many it has room for.
class graph_full : public std::bad_alloc {
public:
    explicit graph_full(std::size_t capacity) noexcept;
    [[nodiscard]] const char* what() const noexcept override { return text_; }

private:
    char text_[96];
};

/// Lives in a context, made by context::new_graph. Leaves are not nodes and are never written to, so that graphs in
/// several threads may share weights (llama.cpp#14035); a computed tensor belongs to one graph at a time.
class graph {
public:
    /// Adds `root` and all that it needs and that is not yet here, sources first, left before right. O(added).
    /// Throws graph_full; the graph is as before then. nullptr and leaves add nothing.
    void expand(tensor* root);
    /// false where expand throws.
    [[nodiscard]] bool try_expand(tensor* root) noexcept;

    [[nodiscard]] std::span<tensor* const> nodes() const noexcept { return {nodes_, count_}; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] bool contains(const tensor* t) const noexcept { return t->op != op::none && is_marked(t); }
    /// Position of a node of this graph; `contains(t)` must hold.
    [[nodiscard]] std::size_t index_of(const tensor* t) const noexcept { return t->mark - first_mark_; }

private:
    friend class context;
    graph(tensor** nodes, std::size_t capacity) noexcept;
    [[nodiscard]] bool is_marked(const tensor* t) const noexcept { return t->mark - first_mark_ < capacity_; }
    void set_mark(tensor* t, std::size_t place) const noexcept {
        t->mark = (first_mark_ + place) & ((std::uint64_t{1} << 48) - 1);
    }

    tensor** nodes_;
    std::size_t capacity_;
    std::size_t count_ = 0;
    std::uint64_t first_mark_;  // marks [first_mark_, first_mark_ + capacity_) are this graph's alone
};

}  // namespace alloclab::tensor
