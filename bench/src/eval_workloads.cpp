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
#include "process.hpp"

namespace alloclab::bench {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t everything_offloaded = too_many;

enum part : std::size_t { context_part, build_part, plan_part, extras_part, compute_part, part_count };
constexpr std::array<const char*, part_count> part_names{"context", "build", "plan", "extras", "compute"};

template <class S, class X>
class eval_loop {
    using engine_type = tensor::engine<S, X, device::sim_device>;

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
            // What lies inside tensors is in their context already.
            if constexpr (!embedded_extra_strategy<X>) extras_in_eval_ = engine_.extras().usage().reserved_bytes;
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

    void observe(observations& seen) {
        warm_up();
        const auto before = device_.now();
        const double faults = minor_faults();
        constexpr std::size_t repeats = 10;
        for (std::size_t i = 0; i < repeats; ++i) once();
        auto& n = seen.counters;
        n["faults_per_eval"] = (minor_faults() - faults) / repeats;
        n["nodes"] = static_cast<double>(model_.need().graph_nodes);
        n["offloaded"] = static_cast<double>(offloaded_);
        n["metadata_bytes"] = static_cast<double>(metadata_bytes());
        n["plan_bytes"] = static_cast<double>(engine_.plan().bytes());
        n["plan_lower_bound_bytes"] = static_cast<double>(engine_.plan().lower_bound());
        n["reserved_bytes"] = static_cast<double>(metadata_bytes() + extras_in_eval_);
        if (!model_.info().full) n["device_ns_per_eval"] = static_cast<double>(device_.now() - before) / repeats;
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
    std::size_t extras_in_eval_ = 0;
    engine_type engine_;
    std::array<double, part_count> times_{};
    std::size_t evals_ = 0;
};

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
    made.observe = [=](observations& seen) { std::make_unique<eval_loop<S, X>>(model, reset, offload)->observe(seen); };
    return made;
}

// One graph after another, in a context over the caller's buffer, over one of its own, or growing from 4 KiB.
template <class S>
measurement graph_builds(const parameters& p) {
    const std::string kind = p.at("buffer");
    const bool reset = p.at("context") == "reset";
    measurement m;
    m.loop = [kind, reset](benchmark::State& state) {
        tensor::loaded_model model(*tensor::find_model("llama-2-7b"));
        const std::size_t bytes = model.need().bytes() + tensor::context::alignment;
        std::vector<std::byte> buffer(kind == "caller" ? bytes : 0);
        const tensor::context_options options{.bytes = kind == "growing" ? 4096 : bytes,
                                              .buffer = buffer,
                                              .growing = kind == "growing" ? growth{} : fixed};
        const auto home = std::make_unique<tensor::contexts<S>>();
        tensor::context_ptr context;
        const auto build = [&] {
            if (context == nullptr || !reset) {
                context.reset();
                context = home->make(options);
            } else context->reset();
            model.build(*context, *context->new_graph(model.need().graph_nodes));
        };
        for (int i = 0; i < 5; ++i) build();
        for (auto _ : state) build();
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
         .axis = ""},
        {models, {"context", {"reset", "fresh"}, {"fresh"}}},
        [](auto tag, const parameters& p) { return evals<typename decltype(tag)::type, bump_arena<extra>>(p, 200); });
    c.add<context_strategies<tensor::context>>(
        {.name = "eval/buffers",
         .kind = "context",
         .title = "Build the llama-2-7b decode graph in a context, by where its buffer comes from",
         .question = "Whether a buffer that grows, or one made anew for each eval, costs anything",
         .unit = "ns/graph",
         .baseline = "",
         .axis = ""},
        {{"buffer", {"caller", "fixed", "growing"}, {"fixed", "growing"}}, {"context", {"reset", "fresh"}, {"fresh"}}},
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
