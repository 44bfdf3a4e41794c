// Which contexts a whisper state and a multi-GPU load take, and which nodes go to the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "support.hpp"

namespace alloclab::tensor {
namespace {

using test::growing_context;

TEST(models_load, a_whisper_state_keeps_seven_contexts_and_four_when_reduced) {
    constexpr std::size_t slots = 64, model = 1;
    for (const whisper_shape& s : whisper_shapes) {
        const auto before = whisper_state_contexts(s, false), after = whisper_state_contexts(s, true);
        ASSERT_GE(before.size(), after.size());
        EXPECT_EQ((slots - model) / before.size(), 9u) << s.name;
        EXPECT_EQ((slots - model) / after.size(), 15u) << s.name;
        std::vector<std::string> names;
        for (const context_need& need : before) names.push_back(need.name);
        ASSERT_EQ(names,
                  (std::vector<std::string>{"kv_self", "kv_cross", "kv_pad", "conv", "encode", "cross", "decode"}));
        EXPECT_EQ(before[0].bytes(), 2 * sizeof(tensor));
        for (std::size_t i = 0; i < after.size(); ++i) {
            EXPECT_EQ(after[i].name, before[i + 3].name);
            EXPECT_EQ(after[i].bytes(), before[i + 3].bytes());
        }
    }
}

TEST(models_load, the_stages_of_the_whisper_encoder_add_up_to_its_graph) {
    for (const whisper_shape& s : whisper_shapes) {
        loaded_model m(*find_model(s.name));
        m.prepare(phase::encode, {});
        const auto stages = whisper_state_contexts(s, true);
        EXPECT_EQ(stages[0].graph_nodes + stages[1].graph_nodes + stages[2].graph_nodes, m.need().graph_nodes)
            << s.name;
        EXPECT_EQ(whisper_model_context(s).tensors, m.weights().size());
    }
}

std::size_t tensors_named(const std::vector<context_need>& needs, const std::string& prefix) {
    std::size_t tensors = 0;
    for (const context_need& need : needs)
        if (need.name.starts_with(prefix)) tensors += need.tensors;
    return tensors;
}

TEST(models_load, loading_places_every_tensor_on_exactly_one_device) {
    for (const llama_shape& s : llama_shapes) {
        growing_context leaves;
        const std::size_t weights = new_llama(leaves.c, s).leaves.size();
        const auto layers = static_cast<std::size_t>(s.layers);
        for (const std::int32_t devices : {0, 1, 2, 3, 8, 16}) {
            for (const std::int32_t host_layers : {0, 5, s.layers}) {
                const auto needs = multi_gpu_load(s, {devices, 2, 1, host_layers});
                EXPECT_EQ(tensors_named(needs, "loader "), weights);
                EXPECT_EQ(tensors_named(needs, "kv "), 2 * layers);
                EXPECT_EQ(tensors_named(needs, "lora 0 "), 14 * layers);
                EXPECT_EQ(tensors_named(needs, "lora 1 "), 14 * layers);
                EXPECT_EQ(tensors_named(needs, "control vector 0 "), layers - 1);
                for (const context_need& need : needs) EXPECT_EQ(need.bytes(), need.tensors * sizeof(tensor));
            }
        }
    }
}

TEST(models_load, layers_are_split_evenly_in_order_with_the_output_last) {
    const auto two =
        multi_gpu_load(llama_shapes[0], {.devices = 2, .loras = 0, .control_vectors = 0, .host_layers = 0});
    ASSERT_EQ(two.size(), 5u);  // 33 positions: 17 layers, then 15 and the output
    EXPECT_EQ(two[0].name, "loader host");
    EXPECT_EQ(two[0].tensors, 1u);
    EXPECT_EQ(two[1].tensors, 17u * 9);
    EXPECT_EQ(two[2].tensors, 15u * 9 + 2);
    EXPECT_EQ(two[3].name, "kv device 0");
    EXPECT_EQ(two[3].tensors, 34u);
    EXPECT_EQ(two[4].tensors, 30u);

    const auto three =
        multi_gpu_load(llama_shapes[0], {.devices = 3, .loras = 0, .control_vectors = 0, .host_layers = 0});
    EXPECT_EQ(three[1].tensors, 11u * 9);
    EXPECT_EQ(three[2].tensors, 11u * 9);
    EXPECT_EQ(three[3].tensors, 10u * 9 + 2);

    const auto eight =
        multi_gpu_load(llama_shapes[2], {.devices = 8, .loras = 4, .control_vectors = 2, .host_layers = 10});
    EXPECT_EQ(eight.size(), (1 + 1 + 4 + 2) * 9u) << "every group has tensors on the host and on all devices";
    const auto host =
        multi_gpu_load(llama_shapes[0], {.devices = 0, .loras = 1, .control_vectors = 0, .host_layers = 0});
    EXPECT_EQ(host.size(), 3u);
}

TEST(models_load, a_load_that_cannot_be_is_refused) {
    const llama_shape& s = llama_shapes[0];
    for (const load_options& o : {load_options{-1, 0, 0, 0}, load_options{1, -1, 0, 0}, load_options{1, 0, -1, 0},
                                  load_options{1, 0, 0, -1}, load_options{1, 0, 0, s.layers + 1}})
        EXPECT_THROW(static_cast<void>(multi_gpu_load(s, o)), std::invalid_argument);
}

TEST(models_load, offloading_marks_the_first_nodes_that_compute) {
    loaded_model m(*find_model("llama-2-7b"));
    growing_context eval;
    graph& g = *eval.c.new_graph(m.need().graph_nodes);
    m.build(eval.c, g);
    const auto marked = [&] {
        return std::count_if(g.nodes().begin(), g.nodes().end(), [](const tensor* t) { return t->offload; });
    };
    EXPECT_EQ(mark_offloaded(g, too_many), 740u);
    EXPECT_EQ(marked(), 740);
    EXPECT_EQ(mark_offloaded(g, 200), 200u);
    EXPECT_EQ(marked(), 200);
    std::size_t computed = 0;
    for (const tensor* t : g.nodes()) {
        const bool computes = t->op != op::view;
        EXPECT_EQ(t->offload, computes && computed < 200);
        computed += computes;
    }
    EXPECT_EQ(mark_offloaded(g, 0), 0u);
    EXPECT_EQ(marked(), 0);
}

}  // namespace
}  // namespace alloclab::tensor
