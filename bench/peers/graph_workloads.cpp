// Contexts and graphs, ours beside real ggml, whose C functions are called through a table.
#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "alloclab/tensor/models/llama.hpp"
#include "alloclab/tensor/models/needs.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "catalogue.hpp"
#include "ggml_strategies.hpp"
#include "keep.hpp"
#include "observe.hpp"
#include "registry.hpp"
#include "slots.hpp"

namespace alloclab::bench {
namespace {

/// `live` ggml contexts over a caller's buffer, and one more made and dropped.
template <class S>
struct ggml_contexts {
    explicit ggml_contexts(std::size_t live) : held(live) {
        for (void*& context : held) context = library.init(buffer.data(), buffer.size());
    }
    ~ggml_contexts() {
        for (void* context : held) library.free(context);
    }
    ggml_contexts(const ggml_contexts&) = delete;
    ggml_contexts& operator=(const ggml_contexts&) = delete;

    void once() noexcept {
        void* context = library.init(buffer.data(), buffer.size());
        keep(context);
        library.free(context);
    }
    template <class Round>
    void observe(observations& seen, Round round) const {
        round();
        count_faults(seen, "round", round);
    }

    const ggml_library& library = *S::library();
    std::vector<std::byte> buffer = std::vector<std::byte>(1024);
    std::vector<void*> held;
};

template <class S>
measurement contexts(const parameters& p) {
    if constexpr (slot_strategy<S>) return context_pairs<S>(p);
    else return batches_beside<S, ggml_contexts<S>, ggml_contexts<S>>(p);
}

/// The decode graph of llama-2-7b with so many layers: one token behind half a cache, without data.
[[nodiscard]] tensor::llama_shape shape_of(std::size_t layers) {
    tensor::llama_shape shape = tensor::llama_shapes.front();
    shape.layers = static_cast<std::int32_t>(layers);
    return shape;
}

/// Graphs of ours, one after another in a context that is reset.
class our_graphs {
public:
    struct how {
        bool growing = false;  ///< from 4 KiB on, instead of a buffer that fits
        bool follows = false;  ///< the order of the graph before
    };
    our_graphs(const tensor::llama_shape& shape, how h)
        : shape_(shape), room_(tensor::llama_max_nodes(shape)), follows_(h.follows) {
        const tensor::context_need need = tensor::need_of(
            "", room_, [&](tensor::context& c, tensor::graph& g) { tensor::build_llama(c, g, model_, cache_, step_); });
        if (!h.growing)
            buffer_.resize(tensor::context::required_bytes(need.tensors, room_) + tensor::context::alignment);
        context_ = home_.make(
            {.bytes = h.growing ? 4096 : buffer_.size(), .buffer = buffer_, .growing = h.growing ? growth{} : fixed});
    }
    /// The number of nodes.
    std::size_t build() {
        context_->reset();
        tensor::graph& g = *context_->new_graph(room_);
        if (follows_) g.follow(order_);
        tensor::build_llama(*context_, g, model_, cache_, step_);
        return g.nodes().size();
    }
    [[nodiscard]] struct usage usage() const noexcept { return context_->usage(); }
    [[nodiscard]] std::size_t used_bytes() const noexcept { return context_->used_bytes(); }
    /// The whole buffer: what the context has of it depends on where it begins.
    [[nodiscard]] std::size_t reserved_bytes() const noexcept {
        return buffer_.empty() ? context_->capacity_bytes() : buffer_.size();
    }

private:
    tensor::llama_shape shape_;
    std::size_t room_;
    bool follows_;
    tensor::last_order order_;
    tensor::batch step_{.tokens = 1, .past = shape_.context / 2};
    tensor::contexts<heap<tensor::context>> home_;
    tensor::context_ptr leaves_ = home_.make({.growing = growth{}});
    tensor::llama_model model_ = tensor::new_llama(*leaves_, shape_);
    tensor::kv_cache cache_ = tensor::new_llama_cache(*leaves_, shape_);
    std::vector<std::byte> buffer_;
    tensor::context_ptr context_;
};

struct fixed_graphs : our_graphs {
    static constexpr std::string_view name = "fixed";
    static constexpr thread_use threads = thread_use::single;
    explicit fixed_graphs(const tensor::llama_shape& shape) : our_graphs(shape, {}) {}
};
struct growing_graphs : our_graphs {
    static constexpr std::string_view name = "growing";
    static constexpr thread_use threads = thread_use::single;
    explicit growing_graphs(const tensor::llama_shape& shape) : our_graphs(shape, {.growing = true}) {}
};
struct last_order_graphs : our_graphs {
    static constexpr std::string_view name = "last_order";
    static constexpr thread_use threads = thread_use::single;
    explicit last_order_graphs(const tensor::llama_shape& shape) : our_graphs(shape, {.follows = true}) {}
};

/// The same of ggml, each in a context made anew over one buffer.
template <class Package>
class ggml_graphs : public peers::ggml<Package> {
public:
    explicit ggml_graphs(const tensor::llama_shape& shape)
        : room_(tensor::llama_max_nodes(shape)),
          leaves_(library_.leaves(static_cast<std::size_t>(shape.layers))),
          buffer_(library_.metadata_bytes(room_ + ggml_inputs, room_)) {}
    ~ggml_graphs() { library_.drop_leaves(leaves_); }
    ggml_graphs(const ggml_graphs&) = delete;
    ggml_graphs& operator=(const ggml_graphs&) = delete;

    std::size_t build() {
        void* context = library_.init(buffer_.data(), buffer_.size());
        const std::size_t nodes = library_.build(leaves_, context, room_);
        library_.free(context);
        return nodes;
    }

private:
    const ggml_library& library_ = *peers::ggml<Package>::library();
    std::size_t room_;
    void* leaves_;
    std::vector<std::byte> buffer_;
};

template <class Graphs>
measurement graphs(const tensor::llama_shape& shape) {
    // Made once for all runs of the process: the largest takes longer to make than to measure.
    const auto all = std::make_shared<Graphs>(shape);
    std::size_t nodes = 0;
    for (int i = 0; i < 3; ++i) nodes = all->build();
    measurement m;
    m.operations = static_cast<double>(nodes);
    m.loop = [all](benchmark::State& state) {
        for (auto _ : state) benchmark::DoNotOptimize(all->build());
    };
    m.observe = [all, nodes](observations& seen) {
        const auto round = [&] { all->build(); };
        seen.counters["nodes"] = static_cast<double>(nodes);
        if constexpr (!requires { all->usage(); }) return count_faults(seen, "eval", round);
        else {
            count_rounds(seen, "eval", round, [&] { return all->usage(); });
            memory_watch memory;
            memory.look(all->used_bytes(), all->reserved_bytes());
            memory.tell_peaks(seen);
        }
    };
    return m;
}

template <class Graphs>
measurement decode_graphs(const parameters& p) {
    const auto* shape = std::get_if<const tensor::llama_shape*>(&tensor::find_model(p.at("model"))->shape);
    if (shape == nullptr || (*shape)->name != tensor::llama_shapes.front().name)
        return {.refusal = "built for llama-2-7b alone"};
    return graphs<Graphs>(**shape);
}

template <class Graphs>
measurement graphs_of_size(const parameters& p) {
    const auto nodes = [](std::size_t layers) { return our_graphs(shape_of(layers), {.growing = true}).build(); };
    const std::size_t one = nodes(1), each = nodes(2) - one, wanted = std::max(number(p, "nodes"), one);
    return graphs<Graphs>(shape_of(1 + (wanted - one + each / 2) / each));
}

}  // namespace

void add_peer_graph_workloads(catalogue& c) {
    using ours = context_strategies<tensor::context>;
    c.add<peers::joined_lists<type_list<peers::ggml_heap, peers::ggml_pool>, ours>>(
        {.name = "peers/contexts",
         .kind = "peer",
         .title = "Make and drop a context over a caller's buffer while others are live",
         .question = "What ggml_init and ggml_free cost beside the same of ours",
         .unit = "ns/pair",
         .baseline = "",
         .axis = "live"},
        {{.name = "live", .values = {"0", "8", "32", "63"}, .quick = {"0", "63"}, .lowest = 0, .highest = 100'000}},
        [](auto tag, const parameters& p) { return contexts<typename decltype(tag)::type>(p); },
        [](auto tag) {
            using S = typename decltype(tag)::type;
            if constexpr (slot_strategy<S>) return peers::is_choice<S>;
            else return true;
        });
    c.add<type_list<ggml_graphs<peers::ggml_heap_package>, ggml_graphs<peers::ggml_pool_package>, fixed_graphs,
                    growing_graphs, last_order_graphs>>(
        {.name = "peers/graph",
         .kind = "peer",
         .title = "Build the decode graph of a model: a context begun anew, its tensors, and their order",
         .question = "What a node of a graph costs, ours and ggml's",
         .unit = "ns/node",
         .baseline = "",
         .axis = ""},
        {{"model", {"llama-2-7b"}, {"llama-2-7b"}}},
        [](auto tag, const parameters& p) { return decode_graphs<typename decltype(tag)::type>(p); });
    c.add<type_list<fixed_graphs, growing_graphs, ggml_graphs<peers::ggml_heap_package>>>(
        {.name = "peers/nodes",
         .kind = "peer",
         .title = "Build a decode graph of so many nodes, the layers of llama-2-7b over and over",
         .question = "Whether a node costs the same in graphs of any size",
         .unit = "ns/node",
         .baseline = "",
         .axis = "nodes"},
        {{.name = "nodes",
          .values = {"1000", "10000", "100000", "1000000"},
          .quick = {"1000", "10000", "100000"},
          .lowest = 1,
          .highest = 10'000'000}},
        [](auto tag, const parameters& p) { return graphs_of_size<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
