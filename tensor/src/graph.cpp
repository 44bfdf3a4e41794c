#include "alloclab/tensor/graph.hpp"

#include <algorithm>
#include <cstdio>

namespace alloclab::tensor {

namespace {
// A source was mostly made shortly before its reader, so what lies before it is needed next. A prefetch so many tensors
// away makes a walk over 10^3 nodes a tenth and one over 10^6 a third shorter; 4 and 16 gained less.
constexpr std::ptrdiff_t ahead = 8;
}  // namespace

graph_full::graph_full(std::size_t capacity) noexcept {
    std::snprintf(text_, sizeof text_, "graph full: more nodes than the %zu it was made for", capacity);
}

bool graph::try_expand(tensor* root) noexcept {
    if (order_ != nullptr) return try_expand(root, *order_);
    return !is_missing(root) || walk(root);
}

bool graph::try_expand(tensor* root, last_order& order) noexcept {
    if (!is_missing(root)) return true;
    const std::size_t begin = count_, end = order.end_of_stretch(begin);
    if (end <= capacity_ && replay(root, order, end)) {
        order.reused_ += end - begin;
        return true;
    }
    if (!walk(root)) return false;
    order.note(*this, begin);
    return true;
}

void graph::expand(tensor* root) {
    if (!try_expand(root)) throw graph_full(capacity_);
}

void graph::expand(tensor* root, last_order& order) {
    if (!try_expand(root, order)) throw graph_full(capacity_);
}

// nodes_[0, count) is the order so far, nodes_[top, capacity_) the stack: the path from the root to the tensor above
// the one that is looked at. Both grow into the same free middle; a tensor is in one of them, so they meet only when
// the graph is full. Where a tensor stands among its sources is not noted: the source that was finished last tells.
bool graph::walk(tensor* root) noexcept {
    tensor** const nodes = nodes_;
    const std::size_t capacity = capacity_;
    std::size_t count = count_, top = capacity;
    if (count == top) return false;
    const auto is_missing = [&](const tensor* t) noexcept {
        return t != nullptr && t->op != op::none && !(index_of(t) < count && nodes[index_of(t)] == t);
    };
    tensor* t = root;
    std::size_t next = 0;
    while (true) {
        while (next < max_sources && !is_missing(t->sources[next])) ++next;
        if (next < max_sources) {
            if (top - count < 2) return false;
            nodes[--top] = t;
            t = t->sources[next];
            __builtin_prefetch(&(t - ahead)->sources);
            next = 0;
        } else {
            nodes[count] = t;
            t->mark = ++count;
            if (top == capacity) break;
            const tensor* finished = t;
            t = nodes[top++];
            next = t->sources[0] == finished ? 1 : t->sources[1] == finished ? 2 : 3;
        }
    }
    count_ = count;
    return true;
}

// Backward from the root, each node gives its sources their positions, so nothing is looked at that is not reachable
// from it. The source slots then hold what they held last time, seen as positions: a leaf or nullptr, the same node of
// this graph, or the one tensor at a position of the stretch. One at each: the last reader sets a position, the others
// must agree. Each at one: a tensor that has its place already is told by its mark, if that place has been passed, and
// if it has not, because the mark no longer names that place when it is reached. A walk looks at nothing else, so it
// would find this order. After a refusal it writes each place and each mark that it trusts itself.
bool graph::replay(tensor* root, const last_order& order, std::size_t end) noexcept {
    tensor** const nodes = nodes_;
    const last_order::step* const steps = order.steps_.data();
    const std::size_t begin = count_;
    if (end == begin) return false;
    nodes[end - 1] = root;
    root->mark = end;
    for (std::size_t i = end; i-- > begin;) {
        const tensor* t = nodes[i];
        __builtin_prefetch(&(t - ahead)->sources);
        if (t->mark != i + 1) return false;
        for (std::size_t k = 0; k < max_sources; ++k) {
            tensor* source = t->sources[k];
            const std::uint32_t at = steps[i].sources[k];
            if ((at & last_order::here_first) == 0) {
                if (nodes[at] != source) return false;
            } else if (source == nullptr || source->op == op::none) {
                if (at != last_order::no_node) return false;
            } else {
                if (at == last_order::no_node) return false;
                const std::size_t had = index_of(source), place = at - last_order::here_first;
                if (had < end && (had < begin || had >= i) && nodes[had] == source) return false;
                nodes[place] = source;
                source->mark = place + 1;
            }
        }
    }
    count_ = end;
    return true;
}

void last_order::forget() noexcept {
    stretches_.clear();
    steps_.clear();
}

/// Of the stretch that starts at `begin`; `begin` when there is none. Stretches are mostly asked for in turn.
std::size_t last_order::end_of_stretch(std::size_t begin) noexcept {
    if (next_ >= stretches_.size() || stretches_[next_].begin != begin)
        next_ =
            static_cast<std::size_t>(std::lower_bound(stretches_.begin(), stretches_.end(), begin,
                                                      [](const stretch& s, std::size_t at) { return s.begin < at; }) -
                                     stretches_.begin());
    if (next_ == stretches_.size() || stretches_[next_].begin != begin) return begin;
    return stretches_[next_++].end;
}

// Backward as in replay: the first reader that is met there sets the position.
void last_order::note(const graph& g, std::size_t begin) noexcept {
    while (!stretches_.empty() && stretches_.back().end > begin) stretches_.pop_back();
    const std::size_t end = g.nodes().size();
    if (end > max_nodes) return;
    try {
        steps_.resize(std::max(steps_.size(), end));
        stretches_.push_back({begin, end});
    } catch (const std::bad_alloc&) {
        return;
    }
    for (std::size_t i = begin; i < end; ++i) steps_[i].is_read = 0;
    for (std::size_t i = end; i-- > begin;)
        for (std::size_t k = 0; k < max_sources; ++k) {
            const tensor* source = g.nodes()[i]->sources[k];
            std::uint32_t& at = steps_[i].sources[k];
            if (source == nullptr || source->op == op::none) {
                at = no_node;
                continue;
            }
            const std::size_t place = g.index_of(source);
            at = static_cast<std::uint32_t>(place);
            if (place >= begin && steps_[place].is_read == 0) {
                steps_[place].is_read = 1;
                at += here_first;
            }
        }
}

}  // namespace alloclab::tensor
