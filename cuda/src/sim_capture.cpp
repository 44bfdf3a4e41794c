// Capture on the simulated device: work that a stream keeps and does later, as often as it is launched.
#include <new>
#include <utility>

#include "sim_state.hpp"

namespace alloclab::device {

bool sim_device::begin_capture(stream s) noexcept {
    state& d = *state_;
    if (!d.enter(call::capture)) return false;
    if (d.known(call::capture, s) == nullptr) return false;
    if (s == default_stream()) return d.refuse(call::capture, "the default stream cannot capture");
    if (d.in_capture) return d.refuse(call::capture, "stream %u captures already", static_cast<unsigned>(d.capturing));
    d.taking = {};
    d.capturing = s;
    d.in_capture = true;
    return true;
}

captured sim_device::end_capture(stream s) noexcept try {
    state& d = *state_;
    if (!d.enter(call::capture)) return captured::none;
    if (!d.in_capture || s != d.capturing) {
        d.refuse(call::capture, "stream %u captures nothing", static_cast<unsigned>(s));
        return captured::none;
    }
    d.graphs.emplace_back();
    d.graphs.back() = std::exchange(d.taking, {});
    d.in_capture = false;
    return static_cast<captured>(d.graphs.size());
} catch (const std::bad_alloc&) {
    return captured::none;
}

bool sim_device::captures() const noexcept { return state_->in_capture; }

bool sim_device::launch(captured graph, stream s) noexcept {
    state& d = *state_;
    if (!d.enter(call::launch)) return false;
    if (d.known(call::launch, s) == nullptr) return false;
    const auto n = static_cast<std::size_t>(graph);
    if (n == 0 || n > d.graphs.size() || !d.graphs[n - 1].alive)
        return d.refuse(call::launch, "graph %zu %s", n, n == 0 ? "is none" : "is not live");
    if (d.in_capture && s == d.capturing) return d.refuse(call::launch, "a graph within a capture is not modelled");
    d.host.spend(d.cost.launch);
    d.replaying = true;
    bool all = true;
    for (const state::named_piece& p : d.graphs[n - 1].pieces) all = p.does(*this, s, p.called) && all;
    d.replaying = false;
    return all;
}

void sim_device::destroy(captured graph) noexcept {
    state& d = *state_;
    const auto n = static_cast<std::size_t>(graph);
    if (n == 0 || d.gone) return;
    if (n > d.graphs.size() || !d.graphs[n - 1].alive) {
        d.refuse(call::capture, "graph %zu is not live", n);
        return;
    }
    d.graphs[n - 1] = {.pieces = {}, .alive = false};
}

}  // namespace alloclab::device
