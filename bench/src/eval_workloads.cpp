// Evals: the whole loop of a runtime, split into its parts. Full shapes stop before computing, since they are metadata
// alone; small ones compute on the simulated device.
#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include "alloclab/device/sim_device.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "catalogue.hpp"
#include "observe.hpp"

namespace alloclab::bench {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t everything_offloaded = too_many;

enum part : std::size_t { context_part, build_part, plan_part, extras_part, compute_part, part_count };
constexpr std::array<const char*, part_count> part_names{"context", "build", "plan", "extras", "compute"};

template <class S, class X, class Buffers = malloc_source>
class eval_loop {
    using engine_type = tensor::engine<S, X, device::sim_device, Buffers>;

public:
    eval_loop(const std::string& model, bool reset_context, std::size_t offload)
        : model_(*tensor::find_model(model), 1, engine_type::bytes_behind_tensor),
          offload_(offload),
          engine_(device_, {.context_bytes = metadata_bytes(), .growing = {}, .reset_context = reset_context}) {
        if (model_.info().full) return;
        std::vector<tensor::tensor*> leaves;
        for (const auto list : {model_.weights(), model_.caches()})
            for (const tensor::leaf& l : list) leaves.push_back(l.of);
        engine_.upload(leaves);
    }

    void once() {
        once([](const tensor::context&) {});
    }
    /// Calls `look` when the eval holds most.
    template <class Look>
    void once(Look look) {
        std::array<clock::time_point, part_count + 2> at;
        at[0] = clock::now();
        {
            auto eval = engine_.begin_eval();
            at[1] = clock::now();
            tensor::context& c = eval.context();
            tensor::graph& g = *c.new_graph(model_.need().graph_nodes);
            model_.build(c, g);
            offloaded_ = tensor::mark_offloaded(g, offload_);
            at[2] = clock::now();
            eval.plan(g);
            at[3] = clock::now();
            eval.attach(g);
            at[4] = clock::now();
            look(c);
            if (!model_.info().full) {
                for (const tensor::input_value& in : model_.inputs())
                    std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
                eval.execute(g);
            }
            at[5] = clock::now();
            eval.detach();
            at[6] = clock::now();
        }
        const auto end = clock::now();
        const auto took = [&](std::size_t from) {
            return std::chrono::duration<double, std::nano>(at[from + 1] - at[from]).count();
        };
        times_[context_part] += took(0) + std::chrono::duration<double, std::nano>(end - at[6]).count();
        times_[build_part] += took(1);
        times_[plan_part] += took(2);
        times_[extras_part] += took(3) + took(5);
        times_[compute_part] += took(4);
        ++evals_;
    }

    [[nodiscard]] std::map<std::string, double> parts() const {
        std::map<std::string, double> all;
        for (std::size_t i = 0; i < part_count; ++i)
            if (i != compute_part || !model_.info().full) all[part_names[i]] = times_[i] / static_cast<double>(evals_);
        return all;
    }

    /// Before anything is timed: buffers have grown and pages been touched.
    void warm_up() {
        for (int i = 0; i < 5; ++i) once();
        times_.fill(0);
        evals_ = 0;
    }

    /// Where slots and buffers are counted.
    void observe(observations& seen) {
        warm_up();
        auto& slots = engine_.context_source().slots();
        auto& buffers = engine_.context_source().buffers();
        memory_watch memory;
        const auto look = [&](const tensor::context& c) {
            usage of_extras = engine_.extras().usage();
            // What lies inside tensors is in their context already.
            if constexpr (embedded_extra_strategy<X>) of_extras = {};
            memory.look(slots.traffic().live_bytes + c.used_bytes() + of_extras.live * sizeof(typename X::extra_type),
                        slots.usage().reserved_bytes + c.capacity_bytes() + of_extras.reserved_bytes);
        };
        const auto before = device_.now();
        const std::size_t evals_before = evals_;
        count_rounds(
            seen, "eval", [&] { once(); },
            [&] { return slots.usage() + usage_of(buffers.traffic()) + engine_.extras().usage(); });
        auto& n = seen.counters;
        if (!model_.info().full)
            n["device_ns_per_eval"] =
                static_cast<double>(device_.now() - before) / static_cast<double>(evals_ - evals_before);
        once(look);
        memory.tell_peaks(seen);
        n["nodes"] = static_cast<double>(model_.need().graph_nodes);
        n["offloaded"] = static_cast<double>(offloaded_);
        n["metadata_bytes"] = static_cast<double>(metadata_bytes());
        n["plan_bytes"] = static_cast<double>(engine_.plan().bytes());
        n["plan_lower_bound_bytes"] = static_cast<double>(engine_.plan().lower_bound());
    }

private:
    [[nodiscard]] std::size_t metadata_bytes() const {
        const tensor::context_need& need = model_.need();
        return tensor::context::required_bytes(need.tensors, need.graph_nodes, engine_type::bytes_behind_tensor);
    }

    tensor::loaded_model model_;
    device::sim_device device_{std::size_t{8} << 30};
    std::size_t offload_;
    std::size_t offloaded_ = 0;
    engine_type engine_;
    std::array<double, part_count> times_{};
    std::size_t evals_ = 0;
};

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
    const std::string model = p.at("model");
    const bool reset = !p.contains("context") || p.at("context") == "reset";
    measurement made;
    made.parts = std::make_shared<std::map<std::string, double>>();
    made.loop = [=, parts = made.parts](benchmark::State& state) {
        const auto loop = std::make_unique<eval_loop<S, X>>(model, reset, offload);
        loop->warm_up();
        for (auto _ : state) loop->once();
        *parts = loop->parts();
    };
    made.observe = [=](observations& seen) {
        std::make_unique<eval_loop<watched<S>, X, counted_buffers>>(model, reset, offload)->observe(seen);
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
        for (int i = 0; i < 5; ++i) build();
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
