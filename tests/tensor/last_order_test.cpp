// An order that is reused is the order that a walk finds, whatever has changed since.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/graph.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "counted_new.hpp"
#include "support.hpp"

namespace alloclab::tensor {
namespace {

using ::testing::ElementsAre;

/// A graph to be built anywhere: nodes and leaves that name earlier ones as sources, and what is expanded in turn.
struct recipe {
    static constexpr std::size_t absent = too_many;
    struct step {
        bool leaf;
        std::array<std::size_t, max_sources> sources;
    };
    std::vector<step> steps;
    std::vector<std::size_t> roots;

    std::vector<tensor*> make(context& c) const {
        std::vector<tensor*> made;
        for (const step& s : steps) {
            std::array<tensor*, max_sources> sources{};
            for (std::size_t k = 0; k < max_sources; ++k)
                if (s.sources[k] != absent) sources[k] = made[s.sources[k]];
            made.push_back(s.leaf ? c.new_tensor(type::f32, {4})
                                  : c.new_node(op::add, type::f32, {4}, sources[0], sources[1], sources[2]));
        }
        return made;
    }
};

class recipes {
public:
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

    recipe fresh() {
        recipe r;
        const std::size_t size = 1 + below(40), near = 1 + below(size);
        for (std::size_t i = 0; i < size; ++i) {
            const auto source = [&] {
                return i == 0 || below(4) == 0 ? recipe::absent : i - 1 - below(std::min(i, near));
            };
            r.steps.push_back({below(4) == 0, {source(), source(), source()}});
        }
        for (std::size_t n = 1 + below(4); n > 1; --n) r.roots.push_back(below(size));
        r.roots.push_back(size - 1);
        return r;
    }

    /// Changes one thing.
    void mutate(recipe& r) {
        const std::size_t at = below(r.steps.size()), k = below(max_sources);
        recipe::step& s = r.steps[at];
        switch (below(8)) {
            case 0:  // an edge
                s.sources[k] = at == 0 || below(4) == 0 ? recipe::absent : below(at);
                break;
            case 1:  // the order of sources
                std::swap(s.sources[k], s.sources[below(max_sources)]);
                break;
            case 2:
                s.leaf = !s.leaf;
                break;
            case 3: {  // one node where there were two
                const std::size_t other = below(r.steps.size());
                for (std::size_t i = std::max(at, other) + 1; i < r.steps.size(); ++i)
                    std::replace(r.steps[i].sources.begin(), r.steps[i].sources.end(), other, at);
                break;
            }
            case 4: {  // two nodes where there was one: the last reader gets its own
                r.steps.push_back(s);
                r.steps.push_back({false, {at, r.steps.size() - 1, r.roots.back()}});
                r.roots.push_back(r.steps.size() - 1);
                break;
            }
            case 5:  // longer
                r.steps.push_back({false, {r.roots.back(), below(r.steps.size()), recipe::absent}});
                r.roots.back() = r.steps.size() - 1;
                break;
            case 6:  // shorter
                r.roots.back() = below(r.steps.size());
                break;
            default:  // other roots
                r.roots.insert(r.roots.begin(), at);
        }
    }

private:
    std::mt19937 random_{3};
};

std::vector<tensor*> nodes_of(const graph& g) { return {g.nodes().begin(), g.nodes().end()}; }

class last_orders : public ::testing::Test {
protected:
    /// Expands it plainly and with the order, one after the other in either turn, over tensors that another graph may
    /// have marked.
    void expect_as_a_walk(const recipe& r, std::size_t room = 200) {
        for (std::size_t n = pick.below(3); n > 0; --n) c.new_tensor(type::f32, {1});
        const std::vector<tensor*> made = r.make(c);
        if (pick.below(3) == 0) c.new_graph(200)->expand(made[pick.below(made.size())]);
        graph& plain = *c.new_graph(room);
        graph& g = *c.new_graph(room);
        std::vector<std::vector<tensor*>> expected, seen;
        const auto walk = [&] {
            for (const std::size_t root : r.roots)
                expected.push_back(plain.try_expand(made[root]) ? nodes_of(plain) : std::vector<tensor*>{});
        };
        const bool walk_first = pick.below(2) == 0;
        if (walk_first) walk();
        for (const std::size_t root : r.roots)
            seen.push_back(g.try_expand(made[root], order) ? nodes_of(g) : std::vector<tensor*>{});
        nodes = g.nodes().size();
        for (std::size_t i = 0; i < nodes; ++i) ASSERT_EQ(g.index_of(g.nodes()[i]), i);
        const std::set<const tensor*> members(g.nodes().begin(), g.nodes().end());
        for (const tensor* t : made) {
            ASSERT_EQ(g.contains(t), members.contains(t));
            ASSERT_TRUE(t->op != op::none || t->mark == 0) << "a leaf is never written to";
        }
        if (!walk_first) walk();
        ASSERT_EQ(seen, expected);
    }

    recipes pick;
    test::growing_context growing;
    context& c = growing.c;
    last_order order;
    std::size_t nodes = 0;
};

TEST_F(last_orders, give_what_a_walk_gives_for_every_change) {
    std::size_t reused = 0, walked = 0;
    for (int round = 0; round < 3000; ++round) {
        if (round % 7 == 0) c.reset();
        recipe r = pick.fresh();
        for (int change = 0; change < 6; ++change) {
            expect_as_a_walk(r);
            const std::size_t before = order.reused();
            expect_as_a_walk(r);
            if (HasFatalFailure()) FAIL() << "round " << round << ", change " << change;
            ASSERT_EQ(order.reused(), before + nodes) << "the same again is reused, at whatever addresses";
            pick.mutate(r);
            const std::size_t now = order.reused();
            expect_as_a_walk(r, pick.below(4) == 0 ? pick.below(50) : 200);
            if (HasFatalFailure()) FAIL() << "round " << round << ", after change " << change;
            (order.reused() == now ? walked : reused) += 1;
        }
    }
    EXPECT_GT(reused, 1000u) << "changes that leave some expands alone";
    EXPECT_GT(walked, 1000u);
}

// The same tensor at two places: wherever the first of them is set, before or after the other has been passed.
TEST_F(last_orders, tell_two_tensors_from_one_that_is_read_twice) {
    const auto build = [&](bool twins, bool late) {
        tensor* x = c.new_tensor(type::f32, {4});
        const auto node = [&](tensor* a, tensor* b = nullptr) { return c.new_node(op::add, type::f32, {4}, a, b); };
        tensor* first = node(x);
        tensor* second = twins ? node(x) : first;
        tensor* top = late ? node(node(first), second) : node(first, node(second));
        graph& g = *c.new_graph(10);
        g.expand(top, order);
        return nodes_of(g).size();
    };
    for (const bool late : {false, true}) {
        order.forget();
        EXPECT_EQ(build(true, late), 4u);
        EXPECT_EQ(build(false, late), 3u);
        EXPECT_EQ(build(true, late), 4u);
    }
    EXPECT_EQ(order.reused(), 0u);
}

TEST_F(last_orders, serve_whole_models_whatever_context_they_are_built_in) {
    for (const char* name : {"llama-2-7b", "whisper-base-small"}) {
        loaded_model model(*find_model(name));
        order.forget();
        const std::size_t before = order.reused();
        for (int round = 0; round < 3; ++round) {
            test::growing_context other;
            context& where = round == 1 ? other.c : c;
            graph& plain = *where.new_graph(2000);
            graph& g = *where.new_graph(2000);
            g.follow(order);
            model.build(where, plain);
            model.build(where, g);
            ASSERT_EQ(g.nodes().size(), plain.nodes().size());
            for (std::size_t i = 0; i < g.nodes().size(); ++i) {
                EXPECT_EQ(g.nodes()[i]->op, plain.nodes()[i]->op);
                EXPECT_EQ(g.nodes()[i]->ne, plain.nodes()[i]->ne);
            }
            EXPECT_EQ(order.reused() - before, static_cast<std::size_t>(round) * g.nodes().size());
        }
    }
}

TEST_F(last_orders, are_renewed_from_the_first_expand_that_differs) {
    const auto node = [&](tensor* a) { return c.new_node(op::silu, type::f32, {4}, a); };
    const auto build = [&](int length) {
        tensor* first = node(c.new_tensor(type::f32, {4}));
        tensor* end = first;
        for (int i = 0; i < length; ++i) end = node(end);
        graph& g = *c.new_graph(20);
        g.follow(order);
        g.expand(first);
        g.expand(end);
        g.expand(node(end));
        const std::size_t reused = order.reused();
        return reused;
    };
    EXPECT_EQ(build(3), 0u);
    EXPECT_EQ(build(3), 5u);
    EXPECT_EQ(build(4), 6u) << "the first node alone";
    EXPECT_EQ(build(4), 12u);
}

TEST_F(last_orders, longer_than_the_graph_has_room_for_leave_it_as_it_was) {
    recipe chain;
    for (std::size_t i = 0; i < 8; ++i)
        chain.steps.push_back({i == 0, {i == 0 ? recipe::absent : i - 1, recipe::absent, recipe::absent}});
    chain.roots = {7};
    expect_as_a_walk(chain);
    expect_as_a_walk(chain, 6);
    graph& small = *c.new_graph(6);
    const std::vector<tensor*> made = chain.make(c);
    small.expand(made[2], order);
    EXPECT_THROW(small.expand(made[7], order), graph_full);
    EXPECT_THAT(small.nodes(), ElementsAre(made[1], made[2]));
    small.follow(order);
    EXPECT_TRUE(small.try_expand(made[6]));
}

TEST_F(last_orders, without_memory_only_lose_the_reuse) {
    recipe r = pick.fresh();
    while (r.steps.back().leaf) r = pick.fresh();
    const std::vector<tensor*> made = r.make(c);
    for (std::size_t allowed = 0; allowed < 3; ++allowed) {
        last_order poor;
        graph& g = *c.new_graph(100);
        test::fail_new_after(allowed);
        const bool expanded = g.try_expand(made.back(), poor);
        test::fail_new_after(too_many);
        EXPECT_TRUE(expanded);
        graph& plain = *c.new_graph(100);
        plain.expand(made.back());
        EXPECT_EQ(nodes_of(g), nodes_of(plain));
        graph& again = *c.new_graph(100);
        again.expand(made.back(), poor);
        EXPECT_EQ(nodes_of(again), nodes_of(plain));
        EXPECT_EQ(poor.reused(), allowed < 2 ? 0 : plain.nodes().size());
    }
}

}  // namespace
}  // namespace alloclab::tensor
