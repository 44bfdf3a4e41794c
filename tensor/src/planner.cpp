#include "alloclab/tensor/planner.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "alloclab/bytes.hpp"

namespace alloclab::tensor {

namespace {
constexpr std::uint32_t none = ~std::uint32_t{0};

placement whole_life(tensor* t, std::size_t first) noexcept {
    const auto at = static_cast<std::uint32_t>(first);
    return {t, 0, align_up(at_least_one(t->bytes()), planner::alignment), at, at};
}

bool is_input(const tensor& t) noexcept { return t.op == op::none && t.input; }
}  // namespace

std::size_t planner::index_of(const graph& g, const tensor& root) const noexcept {
    if (root.op != op::none) return place_[g.index_of(&root)];
    // Inputs are few and stand in front; as leaves they carry no mark that could say where.
    for (std::size_t i = 0; i < placements_.size() && placements_[i].of->op == op::none; ++i)
        if (placements_[i].of == &root) return i;
    return none;
}

placement* planner::placed(const graph& g, const tensor& root) noexcept {
    const std::size_t at = root.op != op::none || is_input(root) ? index_of(g, root) : none;
    return at != none ? &placements_[at] : nullptr;
}

void planner::list_lifetimes(const graph& g) {
    const auto nodes = g.nodes();
    placements_.clear();
    place_.assign(nodes.size(), none);
    for (tensor* t : nodes)
        for (tensor* source : t->sources)
            if (source != nullptr && is_input(*source) && placed(g, *source) == nullptr)
                placements_.push_back(whole_life(source, 0));
    const auto end = static_cast<std::uint32_t>(nodes.empty() ? 0 : nodes.size() - 1);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i]->is_alias()) {
            place_[i] = static_cast<std::uint32_t>(placements_.size());
            placements_.push_back(whole_life(nodes[i], i));
        }
        for (tensor* source : nodes[i]->sources)
            if (source != nullptr)
                if (placement* p = placed(g, source->root()))
                    p->last = std::max(p->last, static_cast<std::uint32_t>(i));
        if (nodes[i]->output)
            if (placement* p = placed(g, nodes[i]->root())) p->last = end;
    }

    std::size_t all = 0;
    ending_.assign(nodes.size(), none);
    next_ending_.resize(placements_.size());
    for (std::size_t p = 0; p < placements_.size(); ++p) {
        all = sum(all, placements_[p].bytes);
        next_ending_[p] = std::exchange(ending_[placements_[p].last], static_cast<std::uint32_t>(p));
    }
    if (is_size(all)) return;  // so that no sum of offsets or sizes below can overflow
    placements_.clear();
    throw shape_error("the results of " + std::to_string(nodes.size()) + " nodes have more than PTRDIFF_MAX bytes");
}

void planner::plan(const graph& g) {
    free_.clear();
    top_ = bytes_ = lower_bound_ = 0;
    list_lifetimes(g);

    std::size_t alive = 0;
    const auto start = [&](placement& p) {
        p.offset = take(p.bytes);
        alive += p.bytes;
        lower_bound_ = std::max(lower_bound_, alive);
    };
    for (placement& p : placements_) {
        if (p.of->op != op::none) break;
        start(p);
    }
    for (std::size_t i = 0; i < place_.size(); ++i) {
        if (place_[i] != none) start(placements_[place_[i]]);
        for (std::uint32_t p = ending_[i]; p != none; p = next_ending_[p]) {
            give(placements_[p].offset, placements_[p].bytes);
            alive -= placements_[p].bytes;
        }
    }
}

std::size_t planner::take(std::size_t bytes) {
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block)
        if (block->bytes >= bytes && (best == free_.end() || block->bytes < best->bytes)) best = block;
    if (best != free_.end()) {
        const std::size_t offset = best->offset;
        best->offset += bytes;
        best->bytes -= bytes;
        if (best->bytes == 0) free_.erase(best);
        return offset;
    }
    std::size_t offset = top_;
    if (!free_.empty() && free_.back().offset + free_.back().bytes == top_) {
        offset = free_.back().offset;
        free_.pop_back();
    }
    top_ = offset + bytes;
    bytes_ = std::max(bytes_, top_);
    return offset;
}

void planner::give(std::size_t offset, std::size_t bytes) {
    const auto after = std::lower_bound(free_.begin(), free_.end(), offset,
                                        [](const free_block& b, std::size_t at) { return b.offset < at; });
    const bool joins_left = after != free_.begin() && std::prev(after)->offset + std::prev(after)->bytes == offset;
    const bool joins_right = after != free_.end() && offset + bytes == after->offset;
    if (joins_left && joins_right) {
        std::prev(after)->bytes += bytes + after->bytes;
        free_.erase(after);
    } else if (joins_left) {
        std::prev(after)->bytes += bytes;
    } else if (joins_right) {
        after->offset = offset;
        after->bytes += bytes;
    } else {
        free_.insert(after, {offset, bytes});
    }
}

}  // namespace alloclab::tensor
