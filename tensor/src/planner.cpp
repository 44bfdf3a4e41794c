#include "alloclab/tensor/planner.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "alloclab/bytes.hpp"

namespace alloclab::tensor {

std::size_t planner::index_of(const graph& g, const tensor& root) const noexcept {
    return root.op != op::none ? place_[g.index_of(&root)] : input_place(root);
}

// Inputs are few and stand in front; as leaves they carry no mark that could say where.
std::uint32_t planner::input_place(const tensor& leaf) const noexcept {
    const auto found = std::find(inputs_.begin(), inputs_.end(), &leaf);
    return found != inputs_.end() ? static_cast<std::uint32_t>(found - inputs_.begin()) : none;
}

// Sizes and lifetimes, which are all that a plan depends on, take the place of the last graph's; tells whether they
// were the same. `inputs` is how many to expect: where there are others, it has to be called again. Sources come before
// their readers, so what an alias looks at is known when the alias is reached.
bool planner::list_lifetimes(const graph& g, std::size_t inputs) {
    const auto nodes = g.nodes();
    const std::size_t most = nodes.size() + inputs;
    if (most >= none) throw std::bad_alloc();
    bool same = true;
    std::swap(last_, last_before_);
    place_.resize(nodes.size());
    if (placements_.size() < most) placements_.resize(most);
    for (auto* last : {&last_, &last_before_})
        if (last->size() < most) last->resize(most);
    inputs_.clear();
    kept_.clear();

    std::uint32_t* const last = last_.data();
    const auto put = [&, placements = placements_.data()](std::uint32_t at, tensor* t, std::uint32_t first) {
        placement& p = placements[at];
        const std::size_t bytes = align_up(at_least_one(t->bytes()), alignment);
        same &= p.bytes == bytes && p.first == first;
        p = {t, p.offset, bytes, first, p.last};
        last[at] = first;
    };
    const auto put_input = [&](tensor* leaf) {
        std::uint32_t at = input_place(*leaf);
        if (at != none) return at;
        at = static_cast<std::uint32_t>(inputs_.size());
        inputs_.push_back(leaf);
        if (at < inputs) put(at, leaf, 0);
        return at;
    };
    auto own = static_cast<std::uint32_t>(inputs);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        tensor* t = nodes[i];
        const std::size_t looks_at = t->op == op::view ? 0 : t->op == op::copy ? 1 : max_sources;
        std::uint32_t place = own;
        for (std::size_t k = 0; k < max_sources; ++k) {
            tensor* source = t->sources[k];
            if (source == nullptr) continue;
            std::uint32_t at = none;
            if (source->op != op::none) at = place_[g.index_of(source)];
            else if (source->input) at = put_input(source);
            if (at < most) last[at] = i;
            if (k == looks_at) place = at;
        }
        if (looks_at == max_sources) put(own++, t, i);
        place_[i] = place;
        if (t->output && place != none) kept_.push_back(place);
    }
    for (const std::uint32_t at : kept_) last[at] = static_cast<std::uint32_t>(nodes.size() - 1);
    same &= placed_ == own && inputs_.size() == inputs;
    placed_ = own;
    return same && std::equal(last, last + own, last_before_.data());
}

void planner::list_endings() {
    std::size_t all = 0;
    ending_.assign(place_.size(), none);
    next_ending_.resize(placed_);
    for (std::uint32_t at = 0; at < placed_; ++at) {
        placement& p = placements_[at];
        p.last = last_[at];
        all = sum(all, p.bytes);
        next_ending_[at] = std::exchange(ending_[p.last], at);
    }
    if (is_size(all)) return;  // so that no sum of offsets or sizes below can overflow
    placed_ = 0;
    throw shape_error("the results of " + std::to_string(place_.size()) + " nodes have more than PTRDIFF_MAX bytes");
}

void planner::plan(const graph& g) {
    const std::size_t inputs = inputs_.size();
    const bool was_planned = std::exchange(planned_, false);
    const bool same = list_lifetimes(g, inputs) && was_planned;
    if (!same) {
        if (inputs_.size() != inputs) static_cast<void>(list_lifetimes(g, inputs_.size()));
        place();
    }
    planned_ = true;
}

void planner::place() {
    free_.clear();
    top_ = bytes_ = lower_bound_ = 0;
    list_endings();

    std::size_t alive = 0;
    const auto start = [&](placement& p) {
        p.offset = take(p.bytes);
        alive += p.bytes;
        lower_bound_ = std::max(lower_bound_, alive);
    };
    std::size_t next = 0;
    while (next < inputs_.size()) start(placements_[next++]);
    for (std::uint32_t i = 0; i < place_.size(); ++i) {
        if (place_[i] == next) start(placements_[next++]);
        for (std::uint32_t at = ending_[i]; at != none; at = next_ending_[at]) {
            give(placements_[at].offset, placements_[at].bytes);
            alive -= placements_[at].bytes;
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
