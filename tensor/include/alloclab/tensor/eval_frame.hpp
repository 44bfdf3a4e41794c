// eval_frame: what an eval in flight has for itself: its context, its temporary extras, a host and a device buffer, a
// stream and the event that closes it. An engine has one, or several that are taken in turn.
// shared_leaves: keeps frames in order over the leaves that evals write, such as caches of keys and values, and lets
// them overlap elsewhere. Cost: a pass over the nodes at each submit, O(log leaves) for each leaf that a node touches;
// for each such leaf that an eval touches a record, and a wait for each other frame. Threads: single, as the engine's.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "alloclab/tensor/backend.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/event_pool.hpp"
#include "alloclab/tensor/planner.hpp"

namespace alloclab::tensor {

template <class Extras, device_backend Device>
struct eval_frame {
    struct aligned_delete {
        void operator()(std::byte* p) const noexcept { ::operator delete (p, std::align_val_t{planner::alignment}); }
    };

    eval_frame(std::size_t i, typename Device::stream s) noexcept : index(i), stream(s) {}

    context_ptr context;
    Extras extras;
    std::unique_ptr<std::byte, aligned_delete> host_buffer;
    std::size_t host_bytes = 0;
    std::size_t host_ready = 0;  ///< of these: to be planned into without a question; 0 while the device may use them
    void* device_buffer = nullptr;
    std::size_t device_bytes = 0;
    std::size_t device_ready = 0;  ///< likewise
    std::size_t index;             ///< among the engine's frames
    typename Device::stream stream;
    typename Device::event closing{};  ///< behind all that the last eval gave to the stream; none before the first
    bool submitted = false;            ///< the stream may still run what it was given
    bool copying = false;              ///< the device may still read the host buffer
    bool new_extras = false;           ///< made since the last submit
};

/// An extra that keeps, for each stream of each device, the event behind which the tensor is not used any more.
template <class Extra, class Device>
concept records_uses = requires(Extra& e, typename Device::event seen) {
    { Extra::streams } -> std::convertible_to<std::size_t>;
    { e.recorded(0, 0) } -> std::same_as<typename Device::event>;
    e.record(0, 0, seen);
};

/// The words by which a report knows what lies at some address: of a tensor by its name, or by its op without one.
class label {
public:
    label(const char* what, std::string_view name, const tensor& t) noexcept {
        if (name.empty()) name = t.op != op::none ? alloclab::tensor::name_of(t.op) : t.input ? "an input" : "a leaf";
        std::snprintf(text_, sizeof text_, "%s %.*s", what, static_cast<int>(std::min(name.size(), sizeof text_)),
                      name.data());
    }
    [[nodiscard]] operator std::string_view() const noexcept { return text_; }

private:
    char text_[128];
};

template <class Extras, device_backend Device>
class shared_leaves {
public:
    using extra_type = typename Extras::extra_type;
    using frame = eval_frame<Extras, Device>;

    /// Over the frames of one engine; all three must outlive it.
    shared_leaves(Device& device, event_pool<Device>& events, std::deque<frame>& frames) noexcept
        : device_(device), events_(events), frames_(frames) {}
    shared_leaves(const shared_leaves&) = delete;
    shared_leaves& operator=(const shared_leaves&) = delete;
    /// Takes the events out of the extras, which must still be there.
    ~shared_leaves() {
        if constexpr (records_uses<extra_type, Device>)
            for (const use& u : uses_)
                for (std::size_t i = 0; i < std::min(frames_.size(), extra_type::streams); ++i)
                    events_.release(extra_of(u).recorded(0, i));
    }

    /// Lists which of these leaves `g` touches, and where last. Throws std::bad_alloc.
    void look_at(const graph& g) {
        for (use& u : uses_) u.end = 0, u.waited = false;
        for (const tensor* t : g.nodes())
            if (t->op == op::copy && is_uploaded(t->root()) && find(t->root()) == nullptr)
                uses_.insert(place_of(t->root()), {.of = &t->root()});
        next_ending_ = 0;
        by_end_.resize(uses_.size());
        if (uses_.empty()) return;
        const auto nodes = g.nodes();
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const auto touched = [&](const tensor& t, std::size_t end) {
                if (use* u = find(t.root())) u->end = std::max(u->end, end);
            };
            if (nodes[i]->output) touched(*nodes[i], nodes.size() + 1);
            if (nodes[i]->op == op::view) continue;
            touched(*nodes[i], i + 1);
            for (const tensor* source : nodes[i]->sources)
                if (source != nullptr) touched(*source, i + 1);
        }
        for (std::size_t i = 0; i < uses_.size(); ++i) by_end_[i] = i;
        std::sort(by_end_.begin(), by_end_.end(),
                  [&](std::size_t a, std::size_t b) { return uses_[a].end < uses_[b].end; });
    }
    /// Before the frame's stream is given work that touches `root`: it waits for what other frames do with it.
    [[nodiscard]] bool begin(frame& f, const tensor& root) noexcept {
        use* u = find(root);
        if (u == nullptr || u->waited) return true;
        u->waited = true;
        // Those who read the leaf before anyone wrote it recorded nothing there.
        const bool each_recorded = std::exchange(u->recorded, true) && has_room_for(frames_.size());
        for (frame& other : frames_) {
            if (&other == &f) continue;
            const auto behind = each_recorded ? recorded_by(*u, other) : other.closing;
            if (behind != event{} && !device_.wait(f.stream, behind)) return false;
        }
        return true;
    }
    /// After the stream was given node `i`, or, with the number of nodes, the copies of the outputs; in that order.
    [[nodiscard]] bool end(frame& f, std::size_t i) noexcept {
        for (; next_ending_ < by_end_.size() && uses_[by_end_[next_ending_]].end <= i + 1; ++next_ending_)
            if (const use& u = uses_[by_end_[next_ending_]]; u.waited && !record(u, f)) return false;
        return true;
    }

private:
    using event = typename Device::event;
    struct use {
        const tensor* of;
        std::size_t end = 0;    // 1 + the last node of the graph that touches it; 0: none does
        bool waited = false;    // in this submit
        bool recorded = false;  // whoever has touched it since it was listed left an event
    };

    [[nodiscard]] static bool is_uploaded(const tensor& root) noexcept {
        return root.op == op::none && !root.input && root.extra != nullptr;
    }
    [[nodiscard]] static extra_type& extra_of(const use& u) noexcept { return *static_cast<extra_type*>(u.of->extra); }
    [[nodiscard]] auto place_of(const tensor& root) noexcept {
        return std::lower_bound(uses_.begin(), uses_.end(), &root,
                                [](const use& u, const tensor* of) { return std::less<>{}(u.of, of); });
    }
    [[nodiscard]] use* find(const tensor& root) noexcept {
        if (root.op != op::none) return nullptr;  // most are no leaves
        const auto found = place_of(root);
        return found != uses_.end() && found->of == &root ? &*found : nullptr;
    }
    // Where not, frames follow each other by their closing events.
    [[nodiscard]] static constexpr bool has_room_for(std::size_t frames) noexcept {
        if constexpr (records_uses<extra_type, Device>) return frames <= extra_type::streams;
        else return false;
    }
    [[nodiscard]] static event recorded_by(const use& u, const frame& f) noexcept {
        if constexpr (records_uses<extra_type, Device>) return extra_of(u).recorded(0, f.index);
        else return event{};
    }
    [[nodiscard]] bool record(const use& u, frame& f) noexcept {
        if constexpr (records_uses<extra_type, Device>) {
            if (!has_room_for(frames_.size())) return true;
            event e = extra_of(u).recorded(0, f.index);
            if (e == event{}) {
                e = events_.acquire();
                if (e != event{}) extra_of(u).record(0, f.index, e);
            }
            // Without an event only the host can tell the others.
            if (e == event{} || !device_.record(e, f.stream)) return device_.synchronize(f.stream);
        }
        return true;
    }

    Device& device_;
    event_pool<Device>& events_;
    std::deque<frame>& frames_;
    std::vector<use> uses_;            // of leaves that graphs write, by address
    std::vector<std::size_t> by_end_;  // indices of these
    std::size_t next_ending_ = 0;      // into by_end_
};

}  // namespace alloclab::tensor
