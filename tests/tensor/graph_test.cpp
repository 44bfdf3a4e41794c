// The order of a graph, what it does when it is full, and that graphs do not disturb each other.
#include "alloclab/tensor/graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloclab/tensor/context.hpp"
#include "support.hpp"

namespace alloclab::tensor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<tensor*> order_of(const graph& g) { return {g.nodes().begin(), g.nodes().end()}; }

/// The order by the plainest means: each source, left before right, then the node.
class reference_order {
public:
    void expand(tensor* t) {
        if (t == nullptr || t->op == op::none || !seen_.insert(t).second) return;
        for (tensor* source : t->sources) expand(source);
        order_.push_back(t);
    }
    const std::vector<tensor*>& order() const { return order_; }

private:
    std::set<const tensor*> seen_;
    std::vector<tensor*> order_;
};

void expect_sound(const graph& g, const std::vector<tensor*>& everything) {
    const std::set<const tensor*> members(g.nodes().begin(), g.nodes().end());
    EXPECT_EQ(members.size(), g.nodes().size()) << "each once";
    for (std::size_t i = 0; i < g.nodes().size(); ++i) {
        const tensor* t = g.nodes()[i];
        ASSERT_EQ(g.index_of(t), i);
        for (const tensor* source : t->sources) {
            if (source == nullptr || source->op == op::none) continue;
            ASSERT_TRUE(g.contains(source));
            ASSERT_LT(g.index_of(source), i) << "sources first";
        }
    }
    for (const tensor* t : everything) EXPECT_EQ(g.contains(t), members.contains(t));
}

class graphs : public ::testing::Test {
protected:
    tensor* leaf() { return c.new_tensor(type::f32, {4}); }
    tensor* node(tensor* a, tensor* b = nullptr, tensor* d = nullptr) {
        return c.new_node(op::add, type::f32, {4}, a, b, d);
    }
    graph& room(std::size_t nodes) { return *c.new_graph(nodes); }

    test::growing_context growing;
    context& c = growing.c;
};

// --- order

TEST_F(graphs, put_sources_first_left_before_right_and_each_once) {
    tensor* x = leaf();
    tensor* left = node(x);
    tensor* right = node(x, x);
    tensor* both = node(left, right);
    tensor* top = node(right, both, left);
    graph& g = room(8);
    g.expand(top);
    EXPECT_THAT(order_of(g), ElementsAre(right, left, both, top));
    expect_sound(g, {x, left, right, both, top});
}

TEST_F(graphs, grow_by_what_is_not_yet_there) {
    tensor* a = node(leaf());
    tensor* b = node(a);
    tensor* other = node(leaf());
    tensor* joined = node(other, b);
    graph& g = room(8);
    g.expand(b);
    g.expand(b);
    g.expand(a);
    EXPECT_THAT(order_of(g), ElementsAre(a, b));
    g.expand(joined);
    g.expand(other);
    EXPECT_THAT(order_of(g), ElementsAre(a, b, other, joined));
}

TEST_F(graphs, add_nothing_for_nullptr_and_leaves) {
    tensor* x = leaf();
    tensor* input = c.new_input(type::f32, {4});
    for (const std::size_t capacity : {0U, 4U}) {
        graph& g = room(capacity);
        g.expand(nullptr);
        g.expand(x);
        g.expand(input);
        EXPECT_TRUE(g.try_expand(nullptr));
        EXPECT_THAT(g.nodes(), IsEmpty());
        EXPECT_FALSE(g.contains(x));
    }
}

TEST_F(graphs, of_random_shape_have_the_order_of_the_plain_recursion) {
    std::mt19937 random(1);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int round = 0; round < 1000; ++round) {
        c.reset();
        std::vector<tensor*> all;
        const std::size_t size = 1 + below(60), near = 1 + below(60);
        for (std::size_t i = 0; i < size; ++i) {
            const auto source = [&]() -> tensor* {
                if (all.empty() || below(5) == 0) return nullptr;
                return all[all.size() - 1 - below(std::min(near, all.size()))];
            };
            all.push_back(below(4) == 0 ? leaf() : node(source(), source(), source()));
        }
        const auto nodes = static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [](const tensor* t) { return t->op != op::none; }));
        graph& g = room(nodes);
        reference_order expected;
        for (std::size_t roots = 1 + below(5); roots > 0; --roots) {
            tensor* root = all[below(all.size())];
            expected.expand(root);
            g.expand(root);
        }
        ASSERT_EQ(order_of(g), expected.order());
        expect_sound(g, all);
    }
}

TEST_F(graphs, a_million_deep_or_a_million_wide_need_no_recursion) {
    constexpr std::size_t many = 1'000'000;
    malloc_source source;
    for (const bool deep : {true, false}) {
        context large({.bytes = context::required_bytes(many + 1, many)}, any_source(source));
        graph& g = *large.new_graph(many);
        tensor* first = large.new_tensor(type::f32, {4});
        tensor* last = first;
        std::vector<tensor*> roots;
        for (std::size_t i = 0; i < many; ++i) {
            last = large.new_node(op::silu, type::f32, {4}, deep ? last : first);
            if (!deep) roots.push_back(last);
        }
        if (deep) roots.push_back(last);
        for (tensor* root : roots) g.expand(root);
        ASSERT_EQ(g.nodes().size(), many);
        for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(g.nodes()[i], first + 1 + i);
    }
}

TEST_F(graphs, wide_in_fan_and_wide_out_fan) {
    tensor* hub = node(leaf());
    std::vector<tensor*> layer;
    for (int i = 0; i < 4096; ++i) layer.push_back(node(hub, hub, hub));
    std::vector<tensor*> all = layer;
    while (layer.size() > 1) {
        std::vector<tensor*> next;
        for (std::size_t i = 0; i < layer.size(); i += 2) next.push_back(node(layer[i], layer[i + 1], hub));
        all.insert(all.end(), next.begin(), next.end());
        layer = std::move(next);
    }
    all.push_back(hub);
    graph& g = room(all.size());
    g.expand(layer[0]);
    EXPECT_EQ(g.nodes().size(), all.size());
    EXPECT_EQ(g.nodes()[0], hub);
    expect_sound(g, all);
}

// --- full

TEST_F(graphs, hold_exactly_their_capacity) {
    for (std::size_t nodes = 1; nodes < 20; ++nodes)
        for (const bool chain : {true, false}) {
            tensor* x = leaf();
            tensor* root = node(x);
            for (std::size_t i = 1; i < nodes; ++i) root = chain ? node(root) : node(x, root);
            graph& exact = room(nodes);
            EXPECT_TRUE(exact.try_expand(root));
            EXPECT_EQ(exact.nodes().size(), exact.capacity());
            EXPECT_TRUE(exact.try_expand(root)) << "what is there already needs no room";
            graph& small = room(nodes - 1);
            EXPECT_FALSE(small.try_expand(root));
            EXPECT_THAT(small.nodes(), IsEmpty());
        }
}

TEST_F(graphs, that_are_full_are_as_before_and_a_larger_one_takes_the_same_tensors) {
    // Two arms that meet in `top`: at each capacity the walk ends at another place.
    tensor* x = leaf();
    tensor* first = node(x);
    tensor* second = node(first);
    std::vector<tensor*> arms{node(second), node(x, second)};
    std::vector<tensor*> all{x, first, second, arms[0], arms[1]};
    for (int i = 0; i < 4; ++i)
        for (tensor*& end : arms) all.push_back(end = node(i % 2 == 0 ? x : end, end));
    tensor* top = node(arms[0], arms[1]);
    all.push_back(top);
    reference_order expected;
    expected.expand(top);

    for (std::size_t capacity = 2; capacity < expected.order().size(); ++capacity) {
        graph& g = room(capacity);
        g.expand(second);
        for (int attempt = 0; attempt < 2; ++attempt) {
            EXPECT_FALSE(g.try_expand(top));
            try {
                g.expand(top);
                ADD_FAILURE() << "not refused";
            } catch (const graph_full& full) {
                EXPECT_THAT(full.what(), HasSubstr(" " + std::to_string(capacity) + " "));
            }
            EXPECT_THAT(order_of(g), ElementsAre(first, second));
            expect_sound(g, all);
        }
        if (capacity > 2) {
            EXPECT_TRUE(g.try_expand(all[3])) << "what fits is still taken";
            expect_sound(g, all);
        }
        graph& larger = room(expected.order().size());
        larger.expand(top);
        EXPECT_EQ(order_of(larger), expected.order());
        expect_sound(larger, all);
    }
}

TEST_F(graphs, refuse_a_cycle_as_full) {
    tensor* a = node(leaf());
    tensor* b = node(a);
    tensor* c0 = node(b);
    a->sources[1] = c0;
    graph& g = room(100);
    EXPECT_FALSE(g.try_expand(b));
    EXPECT_THAT(g.nodes(), IsEmpty());
    a->sources[1] = a;
    EXPECT_FALSE(g.try_expand(c0));
    a->sources[1] = nullptr;
    EXPECT_TRUE(g.try_expand(c0));
}

// --- several graphs

TEST_F(graphs, take_over_tensors_one_after_the_other) {
    tensor* a = node(leaf());
    tensor* b = node(a);
    tensor* d = node(b, a);
    graph& first = room(8);
    first.expand(d);
    graph& second = room(8);
    second.expand(node(leaf()));  // so that no tensor has the same place in both
    second.expand(d);
    EXPECT_EQ(second.nodes().size(), 4u);
    expect_sound(second, {a, b, d});
    EXPECT_THAT(order_of(first), ElementsAre(a, b, d)) << "its order stays";
    for (const tensor* t : {a, b, d}) EXPECT_FALSE(first.contains(t));
    graph& third = room(3);
    third.expand(d);
    EXPECT_THAT(order_of(third), ElementsAre(a, b, d));
    expect_sound(third, {a, b, d});
}

TEST_F(graphs, that_grow_in_turn_keep_apart) {
    tensor* shared = leaf();
    std::vector<tensor*> all;
    std::vector<std::pair<graph*, tensor*>> chains;
    for (int i = 0; i < 3; ++i) chains.emplace_back(&room(50), shared);
    for (int i = 0; i < 50; ++i)
        for (auto& [g, end] : chains) {
            all.push_back(end = node(end, shared));
            g->expand(end);
        }
    for (const auto& [g, end] : chains) {
        EXPECT_EQ(g->nodes().size(), 50u);
        EXPECT_EQ(g->nodes().back(), end);
        expect_sound(*g, all);
    }
}

TEST_F(graphs, do_not_take_a_tensor_for_another_that_lay_at_its_address) {
    malloc_source source;
    context eval({.bytes = 4096}, any_source(source));
    graph& g = room(4);
    tensor* before = eval.new_node(op::silu, type::f32, {4}, leaf());
    g.expand(before);
    EXPECT_TRUE(g.contains(before));
    eval.reset();
    const tensor* after = eval.new_node(op::silu, type::f32, {4}, leaf());
    ASSERT_EQ(before, after);
    EXPECT_FALSE(g.contains(after));
}

// llama.cpp#14035: contexts that share a model shared more than its weights.
TEST_F(graphs, in_several_threads_share_weights) {
    std::vector<tensor*> weights;
    for (int i = 0; i < 50; ++i) weights.push_back(leaf());
    std::vector<std::vector<std::string>> seen(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < seen.size(); ++i)
        threads.emplace_back([&weights, &out = seen[i]] {
            malloc_source source;
            context eval({.growing = growth{}}, any_source(source));
            for (int round = 0; round < 20; ++round) {
                eval.reset();
                graph& g = *eval.new_graph(200);
                tensor* x = eval.new_input(type::f32, {4});
                for (tensor* w : weights) {
                    tensor* y = eval.new_node(op::mul, type::f32, {4}, x, w);
                    x = eval.new_node(op::add, type::f32, {4}, y, x, w);
                }
                g.expand(x);
                out.push_back(std::to_string(g.nodes().size()) + (g.contains(weights[0]) ? " wrong" : " right"));
            }
        });
    for (std::thread& t : threads) t.join();
    for (const auto& out : seen) EXPECT_EQ(out, std::vector<std::string>(20, "100 right"));
}

}  // namespace
}  // namespace alloclab::tensor
