#include "catalogue.hpp"

#include <set>

#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/tensor/context.hpp"

namespace alloclab::bench {

const catalogue& everything() {
    static const catalogue all = [] {
        catalogue c;
        add_slot_workloads(c);
        add_context_workloads(c);
        add_extra_workloads(c);
        add_eval_workloads(c);
        add_device_workloads(c);
        add_source_workloads(c);
        add_peer_slot_workloads(c);
        add_peer_extra_workloads(c);
        add_peer_graph_workloads(c);
        return c;
    }();
    return all;
}

std::vector<report::strategy> registered_strategies() {
    std::vector<report::strategy> all;
    const auto append = [&all](const char* kind, const description& d) {
        all.push_back({.name = std::string(d.name),
                       .kind = kind,
                       .threads = d.threads == thread_use::shared ? "shared" : "single",
                       .bounded = d.bounded,
                       .capacity = d.capacity,
                       .when_full = std::string(d.when_full),
                       .control = d.control});
    };
    const auto of_kind = [&append](const char* kind) {
        return [&append, kind](auto tag) { append(kind, describe<typename decltype(tag)::type>()); };
    };
    context_strategies<tensor::context>::for_each(of_kind("context"));
    extra_strategies<device::tensor_extra>::for_each(of_kind("extra"));
    source_strategies::for_each(of_kind("source"));
    given_sources::for_each(of_kind("source"));
    std::set<std::string> peers;
    for (const family& f : everything().families())
        for (const family::entry& e : f.entries)
            if (f.about.kind == "peer" && peers.insert(e.strategy).second) append("peer", e.traits);
    return all;
}

}  // namespace alloclab::bench
