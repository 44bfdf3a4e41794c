// graph: tensors in the order in which they can be computed. Built by an iterative walk that notes in each tensor where
// it lies in the node array, and uses the unfilled end of that array as its stack: no recursion, no hash table, no
// other memory. A note counts only where the array points back (Briggs and Torczon's sparse set, 1993), so nothing has
// to be cleared first, an old note of another graph is never taken for one of this, and graphs share no counter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

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

class graph;

/// The order in which a graph was built, kept by whoever builds such a graph again and again: of each node only where
/// its sources stand, no address, so it outlives contexts and their resets. Expanding with it is a pass over the nodes
/// that checks them against it in place of a walk; see graph::expand. One thread at a time. 16 bytes per node.
class last_order {
public:
    /// Nodes that were put in order without a walk so far.
    [[nodiscard]] std::size_t reused() const noexcept { return reused_; }
    /// The next expand walks.
    void forget() noexcept;

private:
    friend class graph;
    static constexpr std::uint32_t no_node = ~std::uint32_t{0};            // nullptr or a leaf
    static constexpr std::uint32_t here_first = std::uint32_t{1} << 31;    // the last node that reads this source
    static constexpr std::size_t max_nodes = std::size_t{here_first} - 1;  // so that no position looks like no_node
    struct step {
        std::array<std::uint32_t, max_sources> sources;  // positions
        std::uint32_t is_read;                           // while it is noted
    };
    struct stretch {
        std::size_t begin, end;
    };
    [[nodiscard]] std::size_t end_of_stretch(std::size_t begin) noexcept;
    void note(const graph& g, std::size_t begin) noexcept;

    std::vector<step> steps_;         // by position
    std::vector<stretch> stretches_;  // what each expand added, in order, apart
    std::size_t next_ = 0;            // among them
    std::size_t reused_ = 0;
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
    /// As above, with the same result: what `order` remembers of an expand from this position on is reused if it fits
    /// each node and each source exactly, and renewed if not. Memory that cannot be had for it only loses the reuse.
    void expand(tensor* root, last_order& order);
    [[nodiscard]] bool try_expand(tensor* root, last_order& order) noexcept;
    /// Every expand without an order uses this one from now on; it must outlive the last of them.
    void follow(last_order& order) noexcept { order_ = &order; }

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
    [[nodiscard]] bool is_missing(const tensor* t) const noexcept {
        return t != nullptr && t->op != op::none && !contains(t);
    }
    [[nodiscard]] bool walk(tensor* root) noexcept;
    [[nodiscard]] bool replay(tensor* root, const last_order& order, std::size_t end) noexcept;

    tensor** nodes_;
    std::size_t capacity_;
    std::size_t count_ = 0;
    last_order* order_ = nullptr;
};

}  // namespace alloclab::tensor
