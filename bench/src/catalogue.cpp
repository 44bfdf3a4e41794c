#include "catalogue.hpp"

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
        add_source_workloads(c);
        return c;
    }();
    return all;
}

std::vector<report::strategy> registered_strategies() {
    std::vector<report::strategy> all;
    const auto append = [&all](const char* kind) {
        return [&all, kind](auto tag) {
            using S = typename decltype(tag)::type;
            constexpr description d = describe<S>();
            all.push_back({.name = std::string(d.name),
                           .kind = kind,
                           .threads = d.threads == thread_use::shared ? "shared" : "single",
                           .bounded = d.bounded,
                           .capacity = d.capacity,
                           .when_full = std::string(d.when_full),
                           .control = d.control});
        };
    };
    context_strategies<tensor::context>::for_each(append("context"));
    extra_strategies<device::tensor_extra>::for_each(append("extra"));
    source_strategies::for_each(append("source"));
    given_sources::for_each(append("source"));
    return all;
}

}  // namespace alloclab::bench
