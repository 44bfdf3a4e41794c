// Evals: the whole loop of a runtime, split into its parts. Full shapes stop before computing, since they are metadata
// alone; small ones compute on the simulated device.
#include <algorithm>
#include <memory>

#include "alloclab/device/tensor_extra.hpp"
#include "catalogue.hpp"
#include "devices.hpp"
#include "eval_loop.hpp"

namespace alloclab::bench {
namespace {

constexpr std::size_t everything_offloaded = too_many;

/// Where the results of one eval lie in the activation buffer, and when.
report::memory_map activation_plan(const tensor::model_info& info, tensor::phase phase) {
    tensor::loaded_model model(info);
    if (phase != tensor::phase::decode) model.prepare(phase, {});
    const auto home = std::make_unique<tensor::contexts<heap<tensor::context>>>();
    const tensor::context_ptr context = home->make({.bytes = model.need().bytes() + tensor::context::alignment});
    tensor::graph& g = *context->new_graph(model.need().graph_nodes);
    model.build(*context, g);
    tensor::planner planner;
    planner.plan(g);
    report::memory_map map{.name = std::string(info.name) + (phase == tensor::phase::decode ? " decode" : " encode"),
                           .steps = g.nodes().size(),
                           .bytes = planner.bytes(),
                           .lower_bound = planner.lower_bound(),
                           .placements = {}};
    for (const tensor::placement& p : planner.placements()) {
        std::string name(context->name_of(p.of));
        if (name.empty())
            name = p.of->op == tensor::op::none
                       ? "input"
                       : std::string(tensor::name_of(p.of->op)) + " " + std::to_string(g.index_of(p.of));
        map.placements.push_back({std::move(name), p.first, p.last, p.offset, p.bytes});
    }
    return map;
}

template <class S, class X>
measurement evals(const parameters& p, std::size_t offload) {
    eval_options options{.model = p.at("model"),
                         .device = find_device(p.at("device")),
                         .reset_context = !p.contains("context") || p.at("context") == "reset",
                         .offload = offload};
    // What computes is small. The device takes twice its size in addresses, of which valgrind has 128 GB in all.
    options.device.cost.capacity = std::min(options.device.cost.capacity, std::size_t{8} << 30);
    measurement made;
    made.parts = std::make_shared<std::map<std::string, double>>();
    made.loop = [=, parts = made.parts](benchmark::State& state) {
        const auto loop = std::make_unique<eval_loop<S, X, simulated_device>>(options);
        loop->warm_up();
        for (auto _ : state) loop->once();
        *parts = loop->parts();
    };
    made.observe = [=](observations& seen) {
        std::make_unique<eval_loop<watched<S>, X, simulated_device, counted_buffers>>(options)->observe(seen);
    };
    return made;
}

// The plan is the same whatever the strategies.
template <class S>
measurement evals_with_plan(const parameters& p) {
    measurement made = evals<S, bump_arena<device::tensor_extra>>(p, 200);
    if constexpr (std::same_as<S, heap<tensor::context>>)
        made.observe = [counted = made.observe, &info = *tensor::find_model(p.at("model"))](observations& seen) {
            counted(seen);
            for (const tensor::phase phase : {tensor::phase::decode, tensor::phase::encode})
                if (tensor::has_phase(info, phase)) seen.maps.push_back(activation_plan(info, phase));
        };
    return made;
}

/// One graph after another, in a context over the caller's buffer, over one of its own, or growing from 4 KiB.
template <class S, class Buffers = malloc_source>
class graph_builder {
public:
    explicit graph_builder(const parameters& p)
        : reset_(p.at("context") == "reset"), buffer_(p.at("buffer") == "caller" ? bytes() : 0) {
        const bool growing = p.at("buffer") == "growing";
        options_.bytes = growing ? 4096 : bytes();
        options_.buffer = buffer_;
        if (growing) options_.growing = growth{};
        for (int i = 0; i < 25; ++i) build();
    }

    void build() {
        if (context_ == nullptr || !reset_) {
            context_.reset();
            context_ = home_.make(options_);
        } else context_->reset();
        model_.build(*context_, *context_->new_graph(model_.need().graph_nodes));
    }

    /// Where slots and buffers are counted.
    void observe(observations& seen) {
        auto& slots = home_.slots();
        count_rounds(
            seen, "eval", [&] { build(); }, [&] { return slots.usage() + usage_of(home_.buffers().traffic()); });
        memory_watch memory;
        memory.look(slots.traffic().live_bytes + context_->used_bytes(),
                    slots.usage().reserved_bytes + context_->capacity_bytes());
        memory.tell_peaks(seen);
    }

private:
    [[nodiscard]] std::size_t bytes() const { return model_.need().bytes() + tensor::context::alignment; }

    tensor::loaded_model model_{*tensor::find_model("llama-2-7b")};
    bool reset_;
    std::vector<std::byte> buffer_;
    tensor::context_options options_;
    tensor::contexts<S, Buffers> home_;
    tensor::context_ptr context_;
};

template <class S>
measurement graph_builds(const parameters& p) {
    measurement m;
    m.loop = [p](benchmark::State& state) {
        const auto graphs = std::make_unique<graph_builder<S>>(p);
        for (auto _ : state) graphs->build();
    };
    m.observe = [p](observations& seen) {
        std::make_unique<graph_builder<watched<S>, counted_buffers>>(p)->observe(seen);
    };
    return m;
}

const axis models{
    "model", {"llama-2-7b", "llama-2-7b-small", "whisper-base-small"}, {"llama-2-7b", "llama-2-7b-small"}};

}  // namespace

void add_eval_workloads(catalogue& c) {
    using extra = device::tensor_extra;
    c.add<context_strategies<tensor::context>>(
        {.name = "eval/contexts",
         .kind = "context",
         .title = "One decode step, its context from each strategy, reset or made anew",
         .question = "What the context strategy matters to a whole eval",
         .unit = "ns/eval",
         .baseline = "",
         .axis = "context"},
        {models, {"context", {"reset", "fresh"}, {"reset", "fresh"}}},
        [](auto tag, const parameters& p) { return evals_with_plan<typename decltype(tag)::type>(p); });
    c.add<context_strategies<tensor::context>>(
        {.name = "eval/buffers",
         .kind = "context",
         .title = "Build the llama-2-7b decode graph in a context, by where its buffer comes from",
         .question = "Whether a buffer that grows, or one made anew for each eval, costs anything",
         .unit = "ns/graph",
         .baseline = "",
         .axis = "buffer"},
        {{"buffer", {"caller", "fixed", "growing"}, {"fixed", "growing"}},
         {"context", {"reset", "fresh"}, {"reset", "fresh"}}},
        [](auto tag, const parameters& p) { return graph_builds<typename decltype(tag)::type>(p); });
    c.add<extra_strategies<extra>>({.name = "eval/extras",
                                    .kind = "extra",
                                    .title = "One decode step, everything offloaded, its extras from each strategy",
                                    .question = "What the extra strategy matters to a whole eval",
                                    .unit = "ns/eval",
                                    .baseline = "",
                                    .axis = ""},
                                   {models}, [](auto tag, const parameters& p) {
                                       return evals<hybrid<tensor::context>, typename decltype(tag)::type>(
                                           p, everything_offloaded);
                                   });
}

}  // namespace alloclab::bench
