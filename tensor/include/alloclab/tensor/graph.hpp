// graph: tensors in the order in which they can be computed. Built by an iterative walk that notes in each tensor where
// it lies in the node array, and uses the unfilled end of that array as its stack: no recursion, no hash table, no
// other memory. A note counts only where the array points back (Briggs and Torczon's sparse set, 1993), so nothing has
// to be cleared first, an old note of another graph is never taken for one of this, and graphs share no counter.
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
/// several threads may share weights (llama.cpp#14035); a computed tensor belongs to the graph that took it last, and
/// one that has lost a tensor to another graph must not be expanded or planned any more.
class graph {
public:
    /// Adds `root` and all that it needs and that is not yet here, sources first, left before right. O(added).
    /// Throws graph_full, for a cycle too; the graph is as before then, and a larger one can take the same tensors.
    /// nullptr and leaves add nothing.
    void expand(tensor* root);
    /// false where expand throws.
    [[nodiscard]] bool try_expand(tensor* root) noexcept;

    [[nodiscard]] std::span<tensor* const> nodes() const noexcept { return {nodes_, count_}; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] bool contains(const tensor* t) const noexcept {
        return index_of(t) < count_ && nodes_[index_of(t)] == t;
    }
    /// Position of a node of this graph; `contains(t)` must hold.
    [[nodiscard]] std::size_t index_of(const tensor* t) const noexcept { return t->mark - 1; }

private:
    friend class context;
    graph(tensor** nodes, std::size_t capacity) noexcept : nodes_(nodes), capacity_(capacity) {}

    tensor** nodes_;
    std::size_t capacity_;
    std::size_t count_ = 0;
};

}  // namespace alloclab::tensor
