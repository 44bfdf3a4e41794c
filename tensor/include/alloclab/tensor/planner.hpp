// planner: where each intermediate result of an eval lies in one activation buffer, so that results which are never
// alive together share bytes. Best fit over a list of free blocks in execution order, as ggml's graph allocator does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "alloclab/tensor/graph.hpp"

namespace alloclab::tensor {

/// One tensor's place: bytes [offset, offset + bytes) of the buffer while nodes [first, last] run.
struct placement {
    tensor* of;
    std::size_t offset;
    std::size_t bytes;
    std::uint32_t first;
    std::uint32_t last;
};

/// Keeps its memory from plan to plan: from the second plan of the same graph on, planning allocates nothing. The
/// sizes and lifetimes, which are all that a plan depends on, are compared with the last graph's: where they are equal,
/// wherever the tensors lie, the last plan serves again and nothing is placed anew.
class planner {
public:
    static constexpr std::size_t alignment = 64;

    /// Places every computed tensor that is no alias, and every input leaf, of `g`. Inputs lie there from the start,
    /// outputs and the last node to the end. Throws shape_error when all sizes together are above PTRDIFF_MAX, and
    /// std::bad_alloc; there is no plan until the next one then. O(nodes x free blocks).
    void plan(const graph& g);

    /// Bytes of the buffer that the last plan needs.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    /// The highest sum of sizes alive at one node: no plan can need less.
    [[nodiscard]] std::size_t lower_bound() const noexcept { return lower_bound_; }
    [[nodiscard]] std::span<const placement> placements() const noexcept { return {placements_.data(), placed_}; }
    /// Which of them is that of `root`, an input or a node of the graph planned last that is no alias. O(inputs).
    [[nodiscard]] std::size_t index_of(const graph& g, const tensor& root) const noexcept;

private:
    struct free_block {
        std::size_t offset, bytes;
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};  // no place: nullptr, a weight or a look at one
    [[nodiscard]] std::uint32_t input_place(const tensor& leaf) const noexcept;
    [[nodiscard]] bool list_lifetimes(const graph& g, std::size_t inputs);
    void list_endings();
    void place();
    [[nodiscard]] std::size_t take(std::size_t bytes);
    void give(std::size_t offset, std::size_t bytes);

    std::vector<placement> placements_;              // placed_ of them: inputs first, then nodes in order
    std::vector<std::uint32_t> last_, last_before_;  // by placement: its last node, now and in the graph before
    std::vector<const tensor*> inputs_;              // in the order of their first readers
    std::vector<std::uint32_t> kept_;                // places of outputs
    std::vector<std::uint32_t> place_;               // by node: index into placements_ of what it is or looks at
    std::vector<std::uint32_t> ending_;              // by node: a placement whose last node it is, or none
    std::vector<std::uint32_t> next_ending_;         // by placement: another with the same last node, or none
    std::vector<free_block> free_;                   // by offset, never touching; what lies behind top_ is free too
    std::size_t placed_ = 0;
    std::size_t top_ = 0;
    std::size_t bytes_ = 0;
    std::size_t lower_bound_ = 0;
    bool planned_ = false;
};

}  // namespace alloclab::tensor
