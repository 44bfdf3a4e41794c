// Plans against the plainest judges: bytes stamped with their owner while the nodes "run", and sums over lifetimes.
#include "alloclab/tensor/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "alloclab/tensor/ops.hpp"
#include "counted_new.hpp"
#include "support.hpp"

namespace alloclab::tensor {
namespace {

using ::testing::IsEmpty;

/// The tensor whose memory `t` looks at.
const tensor* memory_of(const tensor* t) {
    if (t->op == op::view) return memory_of(t->sources[0]);
    if (t->op == op::copy) return memory_of(t->sources[1]);
    return t;
}
bool needs_place(const tensor* root) { return root->op != op::none || root->input; }

/// Memory that node i reads, writes or looks at.
std::set<const tensor*> touched_by(const tensor* node) {
    std::set<const tensor*> touched{memory_of(node)};
    for (const tensor* source : node->sources)
        if (source != nullptr) touched.insert(memory_of(source));
    std::erase_if(touched, [](const tensor* root) { return !needs_place(root); });
    return touched;
}

struct lifetime_of {
    std::size_t first, last;
};

/// By memory: from the node that computes it (the start, for an input) to the last that touches it (the end, for what
/// is kept).
std::map<const tensor*, lifetime_of> lifetimes(const graph& g) {
    std::map<const tensor*, lifetime_of> lives;
    const std::size_t end = g.nodes().size() - 1;
    for (std::size_t i = 0; i <= end && !g.nodes().empty(); ++i) {
        const tensor* node = g.nodes()[i];
        for (const tensor* root : touched_by(node)) {
            const std::size_t first = root->op == op::none ? 0 : i;
            lifetime_of& life = lives.try_emplace(root, lifetime_of{first, i}).first->second;
            life.last = std::max(life.last, i);
        }
        if (node->output || i == end)
            if (const auto kept = lives.find(memory_of(node)); kept != lives.end()) kept->second.last = end;
    }
    return lives;
}

/// Runs the graph with a stamp in each 64 bytes in place of values: whoever reads must find what was written.
void expect_values_survive(const graph& g, const planner& p) {
    std::map<const tensor*, const placement*> place;
    for (const placement& each : p.placements()) place[each.of] = &each;
    std::vector<const tensor*> stamps(p.bytes() / 64, nullptr);
    const auto write = [&](const tensor* root) {
        const placement& at = *place.at(root);
        std::fill_n(stamps.begin() + static_cast<std::ptrdiff_t>(at.offset / 64), at.bytes / 64, root);
    };
    const auto is_whole = [&](const tensor* root) {
        const placement& at = *place.at(root);
        return std::all_of(stamps.begin() + static_cast<std::ptrdiff_t>(at.offset / 64),
                           stamps.begin() + static_cast<std::ptrdiff_t>((at.offset + at.bytes) / 64),
                           [root](const tensor* stamp) { return stamp == root; });
    };
    std::set<const tensor*> kept;
    for (const auto& [root, life] : lifetimes(g))
        if (root->op == op::none) write(root);
    for (const tensor* node : g.nodes()) {
        if (memory_of(node) == node) write(node);
        for (const tensor* root : touched_by(node)) ASSERT_TRUE(is_whole(root)) << "at node " << g.index_of(node);
        if ((node->output || node == g.nodes().back()) && needs_place(memory_of(node))) kept.insert(memory_of(node));
    }
    for (const tensor* root : kept) EXPECT_TRUE(is_whole(root)) << "outputs stay to the end";
}

void expect_right(const graph& g, const planner& p) {
    const auto lives = lifetimes(g);
    ASSERT_EQ(p.placements().size(), lives.size()) << "a place for each memory, none for aliases and weights";
    std::size_t end = 0;
    for (std::size_t i = 0; i < p.placements().size(); ++i) {
        const placement& at = p.placements()[i];
        ASSERT_TRUE(lives.contains(at.of));
        EXPECT_EQ(at.offset % planner::alignment, 0u);
        EXPECT_GE(at.bytes, std::max<std::size_t>(at.of->bytes(), 1));
        EXPECT_LT(at.bytes, at.of->bytes() + 65);
        EXPECT_EQ(at.first, lives.at(at.of).first);
        EXPECT_EQ(at.last, lives.at(at.of).last);
        EXPECT_EQ(p.index_of(g, *at.of), i);
        end = std::max(end, at.offset + at.bytes);
        for (const placement& other : p.placements()) {
            const bool same_time = at.first <= other.last && other.first <= at.last;
            const bool same_bytes = at.offset < other.offset + other.bytes && other.offset < at.offset + at.bytes;
            ASSERT_FALSE(&other != &at && same_time && same_bytes);
        }
    }
    EXPECT_EQ(p.bytes(), end);
    std::size_t most = 0;
    for (std::size_t i = 0; i < g.nodes().size(); ++i) {
        std::size_t alive = 0;
        for (const placement& at : p.placements())
            if (lives.at(at.of).first <= i && i <= lives.at(at.of).last) alive += at.bytes;
        most = std::max(most, alive);
    }
    EXPECT_EQ(p.lower_bound(), most);
    EXPECT_GE(p.bytes(), most);
    expect_values_survive(g, p);
}

class plans : public ::testing::Test {
protected:
    tensor* leaf(std::int64_t n = 4) { return c.new_tensor(type::f32, {n}); }
    tensor* input(std::int64_t n = 4) { return c.new_input(type::f32, {n}); }
    /// A result of n cells of 64 bytes.
    tensor* node(std::int64_t n, tensor* a, tensor* b = nullptr, tensor* d = nullptr) {
        return c.new_node(op::add, type::f32, {16 * n}, a, b, d);
    }
    graph& graph_of(std::initializer_list<tensor*> roots) {
        graph& g = *c.new_graph(1000);
        for (tensor* root : roots) g.expand(root);
        return g;
    }
    const placement& place_of(const graph& g, const tensor* t) const { return p.placements()[p.index_of(g, *t)]; }

    test::growing_context growing;
    context& c = growing.c;
    planner p;
};

TEST_F(plans, of_random_graphs_are_right) {
    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int round = 0; round < 1000; ++round) {
        c.reset();
        std::vector<tensor*> all{leaf(4096), input(), input(100)};
        const std::size_t size = 1 + below(50);
        for (std::size_t i = 0; i < size; ++i) {
            const auto any = [&] { return all[all.size() - 1 - below(std::min<std::size_t>(all.size(), 12))]; };
            const auto maybe = [&]() -> tensor* { return below(3) == 0 ? nullptr : any(); };
            tensor *a = any(), *t = nullptr;
            switch (below(8)) {
                case 0:
                    t = below(2) == 0 ? input(static_cast<std::int64_t>(below(200))) : leaf();
                    break;
                case 1:
                    t = c.new_view(a, {a->ne[0] / 2}, a->nb, 0);
                    break;
                case 2:
                    t = c.new_node(op::copy, a->type, {a->ne[0]}, any(), a);
                    break;
                case 3:
                    t = node(static_cast<std::int64_t>(below(2)), a, a, maybe());
                    break;
                default:
                    t = node(static_cast<std::int64_t>(below(20)), a, maybe(), maybe());
            }
            t->output = t->op != op::none && below(10) == 0;
            all.push_back(t);
        }
        graph& g = *c.new_graph(size);
        for (std::size_t roots = 1 + below(4); roots > 0; --roots) g.expand(all[below(all.size())]);
        g.expand(all.back());
        p.plan(g);
        expect_right(g, p);
        if (HasFatalFailure()) FAIL() << "round " << round;
    }
}

TEST_F(plans, of_an_empty_graph_are_empty) {
    graph& g = graph_of({});
    p.plan(graph_of({node(3, input())}));
    p.plan(g);
    EXPECT_EQ(p.bytes(), 0u);
    EXPECT_EQ(p.lower_bound(), 0u);
    EXPECT_THAT(p.placements(), IsEmpty());
}

TEST_F(plans, let_a_chain_alternate_between_two_places) {
    tensor* t = leaf();
    for (int i = 0; i < 100; ++i) t = node(5, t);
    graph& g = graph_of({t});
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(p.bytes(), 2 * 5 * 64u);
}

TEST_F(plans, keep_what_an_alias_looks_at_and_no_place_for_the_alias) {
    tensor* base = node(4, leaf());
    tensor* part = view(c, base, {8}, 64);
    tensor* part_of_part = view(c, part, {4}, 16);
    tensor* between = node(4, leaf());
    for (int i = 0; i < 5; ++i) between = node(4, between);
    graph& g = graph_of({part_of_part, between, node(1, part_of_part, between)});
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(place_of(g, base).last, 9u);
    EXPECT_EQ(p.placements().size(), g.nodes().size() - 2);
}

TEST_F(plans, keep_a_result_that_a_copy_writes_into_until_the_copy_is_read) {
    tensor* target = node(4, leaf());
    tensor* value = node(1, leaf());
    tensor* written = copy(c, value, view(c, target, {16}, 64));
    tensor* later = node(4, node(4, leaf()));
    graph& g = graph_of({written, later, node(1, written, later)});
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(place_of(g, target).last, g.nodes().size() - 1);
    EXPECT_LT(place_of(g, value).last, place_of(g, target).last);
}

TEST_F(plans, place_an_input_once_from_the_start_however_often_it_is_read) {
    tensor* x = input(16);
    tensor* y = input(16);
    tensor* first = node(3, leaf());
    tensor* twice = node(3, x, x);
    tensor* through_view = node(2, view(c, x, {4}, 0), first);
    graph& g = graph_of({first, twice, through_view,
                         node(1, copy(c, first, view(c, c.new_input(type::f32, {48}), {48}, 0))), node(1, y, twice)});
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(place_of(g, x).first, 0u);
    EXPECT_EQ(place_of(g, y).first, 0u);
    EXPECT_EQ(
        std::count_if(p.placements().begin(), p.placements().end(), [](const placement& at) { return at.of->input; }),
        3);
}

TEST_F(plans, heed_the_input_flag_of_leaves_alone) {
    tensor* t = node(2, leaf());
    t->input = true;
    graph& g = graph_of({node(1, t)});
    p.plan(g);
    EXPECT_EQ(p.placements().size(), 2u);
    EXPECT_EQ(p.bytes(), 3 * 64u);
}

TEST_F(plans, give_up_a_source_that_one_node_reads_twice_only_once) {
    tensor* t = node(2, leaf());
    tensor* sum_of_three = node(2, t, t, view(c, t, {4}, 0));
    tensor *a = node(2, sum_of_three), *b = node(2, sum_of_three);
    graph& g = graph_of({node(1, a, b)});
    p.plan(g);
    expect_right(g, p);
}

TEST_F(plans, give_what_nobody_reads_a_place_for_its_own_node) {
    tensor* x = leaf();
    std::initializer_list<tensor*> unread{node(7, x), node(7, x), node(7, x), node(1, x)};
    graph& g = graph_of(unread);
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(p.bytes(), 7 * 64u);
}

TEST_F(plans, keep_outputs_and_the_last_node_to_the_end) {
    tensor* x = leaf();
    tensor* early = node(2, x);
    tensor* seen_through = node(2, x);
    tensor* window = view(c, seen_through, {4}, 0);
    early->output = window->output = true;
    tensor* t = x;
    for (int i = 0; i < 6; ++i) t = node(2, t);
    graph& g = graph_of({early, window, t});
    p.plan(g);
    expect_right(g, p);
    for (const tensor* kept : {early, seen_through, t}) EXPECT_EQ(place_of(g, kept).last, g.nodes().size() - 1);
}

TEST_F(plans, give_an_empty_tensor_a_place_of_its_own) {
    tensor *a = node(0, leaf()), *b = node(0, leaf());
    graph& g = graph_of({node(0, a, b)});
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(p.bytes(), 3 * 64u);
}

TEST_F(plans, join_free_blocks_and_take_the_one_that_fits_best) {
    tensor* x = leaf();
    tensor *a = node(2, x), *b = node(2, x), *gap1 = node(1, x), *d = node(3, x), *gap2 = node(1, x);
    tensor* reads = node(1, a, b, d);                    // frees 2 + 2 cells that touch, and 3
    tensor *three = node(3, reads), *four = node(4, x);  // each fits one of them exactly
    graph& g = graph_of({a, b, gap1, d, gap2, reads, three, four, node(1, gap1, gap2, reads), node(1, three, four)});
    p.plan(g);
    expect_right(g, p);
    EXPECT_EQ(place_of(g, three).offset, place_of(g, d).offset);
    EXPECT_EQ(place_of(g, four).offset, place_of(g, a).offset);
}

TEST_F(plans, of_the_same_graph_again_allocate_nothing) {
    for (const char* name : {"llama-2-7b", "whisper-base"}) {
        loaded_model model(*find_model(name));
        graph& g = *c.new_graph(4096);
        model.build(c, g);
        p.plan(g);
        const std::vector<placement> before(p.placements().begin(), p.placements().end());
        const std::size_t bytes = p.bytes(), allocated = test::calls_of_new();
        for (int i = 0; i < 3; ++i) p.plan(g);
        EXPECT_EQ(test::calls_of_new(), allocated);
        EXPECT_EQ(p.bytes(), bytes);
        EXPECT_TRUE(std::equal(before.begin(), before.end(), p.placements().begin(), p.placements().end(),
                               [](const placement& a, const placement& b) { return a.offset == b.offset; }));
    }
    EXPECT_GT(test::calls_of_new(), 0u) << "they are counted";
}

// A plan may be the last one only where nothing that it depends on has changed.
TEST_F(plans, are_those_of_a_new_planner_whatever_was_planned_before) {
    std::size_t changed = 0;
    for (unsigned seed = 0; seed < 4000; ++seed) {
        c.reset();
        std::mt19937 random(seed / 8), change(seed);
        const auto below = [](std::mt19937& of, std::size_t n) { return static_cast<std::size_t>(of() % n); };
        for (std::size_t n = below(change, 3); n > 0; --n) leaf();  // other addresses
        std::vector<tensor*> all{leaf(4096), input(), input(100), input(50)};
        const std::size_t size = 2 + below(random, 20);
        for (std::size_t i = 0; i < size; ++i) {
            const auto any = [&] { return all[all.size() - 1 - below(random, std::min<std::size_t>(all.size(), 9))]; };
            tensor* a = any();
            const std::size_t kind = below(random, 6);
            all.push_back(kind == 0   ? c.new_view(a, {a->ne[0] / 2}, a->nb, 0)
                          : kind == 1 ? c.new_node(op::copy, a->type, {a->ne[0]}, any(), a)
                                      : node(static_cast<std::int64_t>(below(random, 20)), a, any()));
        }
        tensor* t = all[below(change, all.size())];
        tensor* other = all[below(change, all.size())];
        switch (below(change, 7)) {
            case 0:
                t->output = !t->output;
                break;
            case 1:
                t->input = !t->input;
                break;
            case 2:
                if (t->op != op::copy && t->op != op::view) t->ne[0] += 16;
                break;
            case 3:
                std::swap(t->sources[0], t->sources[1]);
                if (t->sources[0] == nullptr) std::swap(t->sources[0], t->sources[1]);
                break;
            case 4:
                if (other < t && t->op == op::add) t->sources[2] = other;
                break;
            case 5:
                if (t->op == op::copy) t->op = op::add;
                break;
            default:
                break;
        }
        graph& g = graph_of({all[below(change, 4) == 0 ? all.size() / 2 : all.size() - 1]});
        planner fresh;
        fresh.plan(g);
        const std::vector<placement> before(p.placements().begin(), p.placements().end());
        p.plan(g);
        const auto same = [](const placement& a, const placement& b) {
            return a.of == b.of && a.offset == b.offset && a.bytes == b.bytes && a.first == b.first && a.last == b.last;
        };
        ASSERT_TRUE(std::ranges::equal(p.placements(), fresh.placements(), same)) << seed;
        ASSERT_EQ(p.bytes(), fresh.bytes()) << seed;
        ASSERT_EQ(p.lower_bound(), fresh.lower_bound()) << seed;
        for (const placement& at : p.placements()) ASSERT_EQ(&p.placements()[p.index_of(g, *at.of)], &at) << seed;
        changed += !std::ranges::equal(before, p.placements(), [](const placement& a, const placement& b) {
            return a.offset == b.offset && a.bytes == b.bytes && a.first == b.first && a.last == b.last;
        });
    }
    EXPECT_GT(changed, 1000u);
    EXPECT_LT(changed, 3000u);
}

// As many results of the same sizes with the same last nodes; but `b` starts while `x` is still read, or behind it.
TEST_F(plans, heed_where_a_result_is_first_alive) {
    for (const bool early : {false, true}) {
        c.reset();
        tensor *x = node(4, leaf()), *a = node(4, leaf());
        tensor* b = node(4, early ? x : a);
        tensor* look = view(c, early ? a : x, {4}, 0);
        graph& g = early ? graph_of({x, a, b, look, node(1, b)}) : graph_of({x, a, look, b, node(1, b)});
        p.plan(g);
        expect_right(g, p);
        EXPECT_EQ(place_of(g, x).last, 2u);
        EXPECT_EQ(place_of(g, a).last, 3u);
        EXPECT_EQ(place_of(g, b).offset == place_of(g, x).offset, !early);
    }
}

TEST_F(plans, of_sizes_that_no_buffer_can_have_are_refused) {
    constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 4 - 16;
    tensor* a = c.new_node(op::silu, type::f32, {huge}, leaf());
    tensor* b = c.new_node(op::silu, type::f32, {huge}, leaf());
    tensor* d = c.new_node(op::silu, type::f32, {huge}, a, b);
    graph& large = graph_of({d});
    EXPECT_THROW(p.plan(large), shape_error);
    EXPECT_EQ(p.bytes(), 0u);
    EXPECT_EQ(p.lower_bound(), 0u);
    EXPECT_THAT(p.placements(), IsEmpty());
    graph& small = graph_of({node(3, leaf())});
    p.plan(small);
    expect_right(small, p);
    EXPECT_EQ(p.bytes(), 3 * 64u);
}

TEST_F(plans, of_real_models_are_right_and_near_the_lower_bound) {
    const auto plan = [&](const char* name, phase ph) {
        c.reset();
        loaded_model model(*find_model(name));
        model.prepare(ph, {});
        graph& g = *c.new_graph(8192);
        model.build(c, g);
        p.plan(g);
        expect_right(g, p);
        return static_cast<double>(p.bytes()) / static_cast<double>(p.lower_bound());
    };
    EXPECT_LE(plan("llama-2-7b", phase::decode), 1.23);
    EXPECT_LE(plan("whisper-base", phase::encode), 1.05);
    plan("llama-2-70b-small", phase::prefill);
    plan("whisper-tiny-small", phase::decode);
}

}  // namespace
}  // namespace alloclab::tensor
