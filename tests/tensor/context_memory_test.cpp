// Where a context puts things: in whose memory, how aligned, apart from each other, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "alloclab/source/aligned_malloc.hpp"
#include "alloclab/source/buffer.hpp"
#include "alloclab/source/mimalloc.hpp"
#include "alloclab/source/pages.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/ops.hpp"
#include "context_support.hpp"

namespace alloclab::tensor {
namespace {

using test::counted_source;
using test::failing_source;
using test::guarded_buffer;
using test::refusal;

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// --- a caller's buffer

// protobuf PR#727: a caller's block smaller than the header. ggml#653: one that is misaligned.
TEST(callers_buffer, of_any_size_and_start_is_never_left) {
    counted_source none;
    for (const std::size_t start : {0U, 1U, 8U, 16U, 63U})
        for (const std::size_t size : {0U, 1U, 8U, 23U, 55U, 56U, 57U, 127U, 128U, 183U, 184U, 191U, 192U, 1000U}) {
            SCOPED_TRACE(std::to_string(size) + " bytes from " + std::to_string(start));
            const guarded_buffer buffer(size, start);
            {
                context c({.bytes = 4096, .buffer = buffer.inside()}, any_source(none));
                ASSERT_TRUE(c.ready());
                const std::size_t lost = std::min<std::size_t>(size, (64 - start) % 64);
                EXPECT_EQ(c.capacity_bytes(), size - lost);
                std::size_t made = 0;
                for (; tensor* t = c.try_new_tensor(type::f32, {4}); ++made) {
                    EXPECT_EQ(address(t) % 64, 0u);
                    EXPECT_GE(address(t), address(buffer.inside().data()));
                    EXPECT_LE(address(t + 1), address(buffer.inside().data() + size));
                    std::memset(static_cast<void*>(t), 0, sizeof *t);
                }
                EXPECT_EQ(made, (size - lost) / 128);
                while (c.try_new_graph(0) != nullptr) {
                }
                while (c.allocate(1, 1) != nullptr) {
                }
                EXPECT_EQ(c.used_bytes(), c.capacity_bytes());
                refusal<context_exhausted>(c, [&] { c.new_tensor(type::f32, {4}); });
                refusal<context_exhausted>(c, [&] { c.set_name(nullptr, "x"); });
                c.reset();
                EXPECT_EQ(c.used_bytes(), 0u);
            }
            EXPECT_TRUE(buffer.intact());
        }
    EXPECT_EQ(none.traffic().acquired + none.traffic().refused, 0u) << "nothing else is asked for";
}

TEST(callers_buffer, on_the_heap_is_not_overrun_by_a_byte) {  // the address sanitizer looks behind it
    malloc_source none;
    for (const std::size_t size : {1U, 8U, 23U, 127U, 128U, 200U}) {
        const auto buffer = std::make_unique<std::byte[]>(size);
        context c({.buffer = {buffer.get(), size}}, any_source(none));
        while (c.try_new_tensor(type::f32, {4}) != nullptr || c.allocate(1, 1) != nullptr) {
        }
    }
}

TEST(callers_buffer, too_small_for_anything_still_grows) {
    counted_source source;
    for (const std::size_t size : {0U, 1U, 63U, 127U}) {
        const guarded_buffer buffer(size, 8);
        context c({.buffer = buffer.inside(), .growing = growth{}}, any_source(source));
        for (int i = 0; i < 1000; ++i) EXPECT_EQ(address(c.new_tensor(type::f32, {4})) % 64, 0u);
        EXPECT_TRUE(buffer.intact());
    }
    EXPECT_EQ(source.traffic().live, 0u);
}

// cuda-api-wrappers#729: a handle that did not own the memory freed it. llama.cpp#10363: who owns the bytes decides
// how long what lies in them is valid.
TEST(callers_buffer, and_what_lies_in_it_outlive_the_context) {
    auto buffer = std::make_unique<std::byte[]>(8192);
    graph* g = nullptr;
    {
        malloc_source none;
        context c({.buffer = {buffer.get(), 8192}, .no_alloc = false}, any_source(none));
        g = c.new_graph(4);
        tensor* a = c.new_tensor(type::f32, {4});
        std::memset(a->data, 1, a->bytes());
        g->expand(silu(c, add(c, a, a)));
    }
    ASSERT_EQ(g->nodes().size(), 2u);
    EXPECT_EQ(g->nodes()[1]->sources[0], g->nodes()[0]);
    EXPECT_EQ(g->index_of(g->nodes()[1]), 1u);
    EXPECT_EQ(*static_cast<int*>(g->nodes()[0]->sources[0]->data), 0x01010101);
    buffer.reset();
}

TEST(owned_buffer, and_all_chunks_go_back_with_the_context) {
    counted_source source;
    {
        context c({.bytes = 4096, .growing = growth{}}, any_source(source));
        EXPECT_EQ(source.traffic().live, 1u);
        for (int i = 0; i < 1000; ++i) c.new_tensor(type::f32, {4});
        EXPECT_GT(source.traffic().live, 2u);
    }
    EXPECT_EQ(source.traffic().live, 0u);
    EXPECT_EQ(source.traffic().live_bytes, 0u) << "each with the size it was taken with";
}

TEST(owned_buffer, that_cannot_be_had_is_not_ready_and_holds_nothing) {
    failing_source source;
    source.fail_after(0);
    context c({.bytes = 4096, .growing = growth{}}, any_source(source));
    EXPECT_FALSE(c.ready());
    EXPECT_TRUE(context({.growing = growth{}}, any_source(source)).ready()) << "nothing was asked for yet";
    EXPECT_EQ(source.base().traffic().acquired, 0u);
}

// llama.cpp#18168: the model freed before the context that uses it.
TEST(context, may_die_before_or_after_another_that_its_graph_refers_to) {
    counted_source source;
    for (const bool weights_first : {true, false}) {
        std::optional<context> weights, eval;
        weights.emplace(context_options{.bytes = 4096}, any_source(source));
        eval.emplace(context_options{.bytes = 4096, .growing = growth{}}, any_source(source));
        tensor* w = weights->new_tensor(type::f32, {4});
        eval->new_graph(4)->expand(add(*eval, w, w));
        (weights_first ? weights : eval).reset();
        if (weights_first) {
            EXPECT_EQ(eval->usage().live, 1u) << "it can still say what it holds";
            EXPECT_EQ(eval->name_of(w), "");
            eval->reset();
        }
    }
    EXPECT_EQ(source.traffic().live, 0u);
}

// --- alignment and room

struct extent {
    std::uintptr_t begin, end;
};

/// Tensors with room behind them and data, in a context from `source`: aligned, apart, and kept.
template <memory_source Source>
void expect_aligned_and_apart(Source source, std::span<std::byte> buffer, growth growing, std::size_t behind) {
    SCOPED_TRACE(std::string(Source::name) + ", " + std::to_string(behind) + " behind");
    context c({.bytes = 3000, .buffer = buffer, .growing = growing, .no_alloc = false, .bytes_behind_tensor = behind},
              any_source(source));
    ASSERT_TRUE(c.ready());
    std::vector<tensor*> tensors;
    std::vector<extent> extents;
    const auto lies_at = [&](const void* p, std::size_t bytes) { extents.push_back({address(p), address(p) + bytes}); };
    for (std::int64_t i = 0; i < 300; ++i) {
        const bool node = i % 3 == 2;
        tensor* t = nullptr;
        try {
            t = node ? c.new_node(op::silu, type::f16, {i}, tensors.back()) : c.new_tensor(type::f16, {i % 70});
            if (i % 5 == 0) c.set_name(t, std::string(static_cast<std::size_t>(i) + 1, 'n'));
            if (i % 50 == 0) lies_at(c.new_graph(3), context::required_bytes(0, 3));
        } catch (const context_exhausted&) {
            ASSERT_EQ(growing.first_bytes, 0u);
            break;
        }
        EXPECT_EQ(address(t) % 64, 0u);
        EXPECT_EQ(address(context::behind(t)) % 64, 0u);
        lies_at(t, sizeof *t);
        if (behind > 0) lies_at(context::behind(t), behind);
        std::memset(context::behind(t), static_cast<int>(i), behind);
        EXPECT_EQ(t->data == nullptr, node) << "only leaves have data from the start";
        if (!node) {
            EXPECT_EQ(address(t->data) % 64, 0u);
            lies_at(t->data, at_least_one(t->bytes()));
            std::memset(t->data, 0xFF, t->bytes());
        }
        tensors.push_back(t);
    }
    ASSERT_GE(tensors.size(), 5u);
    std::sort(extents.begin(), extents.end(), [](const extent& a, const extent& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < extents.size(); ++i) ASSERT_LE(extents[i - 1].end, extents[i].begin);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto* room = static_cast<const unsigned char*>(context::behind(tensors[i]));
        EXPECT_TRUE(std::all_of(room, room + behind, [i](unsigned char b) { return b == (i & 0xFF); }));
        EXPECT_EQ(tensors[i]->type, type::f16);
        EXPECT_EQ(tensors[i]->nb[0], 2u);
    }
}

TEST(context, tensors_their_room_and_their_data_are_aligned_and_apart_in_every_kind_of_buffer) {
    for (const growth growing : {fixed, growth{}, growth{.first_bytes = 100, .max_bytes = 1000}})
        for (const std::size_t behind : {0U, 1U, 40U, 64U, 200U}) {
            expect_aligned_and_apart(malloc_source{}, {}, growing, behind);
            expect_aligned_and_apart(aligned_malloc_source{}, {}, growing, behind);
            expect_aligned_and_apart(pages_source{}, {}, growing, behind);
            if (mimalloc_source::available()) expect_aligned_and_apart(mimalloc_source{}, {}, growing, behind);
            for (const std::size_t start : {0U, 1U, 8U, 33U}) {
                const guarded_buffer memory(1 << 20, start), given(4000, start);
                expect_aligned_and_apart(buffer_source(memory.inside()), {}, growing, behind);
                expect_aligned_and_apart(buffer_source(memory.inside()), given.inside(), growing, behind);
                EXPECT_TRUE(memory.intact() && given.intact());
            }
        }
}

TEST(context, an_empty_tensor_has_data_of_its_own) {
    malloc_source source;
    context c({.growing = growth{}, .no_alloc = false}, any_source(source));
    const tensor* a = c.new_tensor(type::f32, {0});
    const tensor* b = c.new_tensor(type::f32, {0});
    EXPECT_NE(a->data, nullptr);
    EXPECT_NE(a->data, b->data);
    EXPECT_NE(a->data, static_cast<const void*>(b));
}

TEST(context, a_tensor_starts_blank_whatever_lay_there) {
    const guarded_buffer buffer(4096, 0);
    malloc_source none;
    context c({.buffer = buffer.inside()}, any_source(none));
    for (int round = 0; round < 2; ++round) {
        tensor* t = c.new_tensor(type::f16, {3, 5, 7});
        EXPECT_EQ(t->ne, (std::array<std::int64_t, 4>{3, 5, 7, 1}));
        EXPECT_EQ(t->nb, (std::array<std::size_t, 4>{2, 6, 30, 210}));
        EXPECT_EQ(t->sources, (std::array<tensor*, max_sources>{}));
        EXPECT_TRUE(t->data == nullptr && t->extra == nullptr && t->mark == 0);
        EXPECT_TRUE(t->op == op::none && t->type == type::f16 && t->params.offset == 0);
        EXPECT_FALSE(t->input || t->output || t->offload);
        std::memset(static_cast<void*>(t), 0xFF, sizeof *t);
        c.reset();
    }
    EXPECT_TRUE(c.new_input(type::i32, {2})->input);
}

// --- reset

TEST(context_reset, refilling_to_the_same_level_calls_no_source) {
    counted_source source;
    for (const growth growing : {fixed, growth{}, growth{.first_bytes = 256, .max_bytes = 1024}}) {
        context c({.bytes = 4096, .growing = growing}, any_source(source));
        const auto fill = [&] {
            const std::size_t most = growing.first_bytes == 0 ? 20 : 500;
            std::vector<const void*> made;
            for (std::size_t i = 0; i < most; ++i) {
                tensor* t = c.new_tensor(type::f32, {4});
                if (i % 10 == 0) c.set_name(t, "weights");
                made.push_back(t);
            }
            made.push_back(c.new_graph(10));
            return made;
        };
        const std::vector<const void*> made = fill();
        const std::size_t calls = source.traffic().acquired, used = c.used_bytes(), capacity = c.capacity_bytes();
        for (int round = 0; round < 10; ++round) {
            c.reset();
            EXPECT_EQ(c.used_bytes(), 0u);
            EXPECT_EQ(c.tensors(), 0u);
            EXPECT_EQ(fill(), made) << "no page is touched that was not";
            EXPECT_EQ(c.used_bytes(), used);
        }
        EXPECT_EQ(source.traffic().acquired, calls);
        EXPECT_EQ(c.capacity_bytes(), capacity) << "the memory stays";
    }
}

// --- names

TEST(context_names, are_copied_overwritten_and_forgotten) {
    malloc_source source;
    context c({.bytes = 4096}, any_source(source));
    const tensor* a = c.new_tensor(type::f32, {1});
    const tensor* b = c.new_tensor(type::f32, {1});
    EXPECT_EQ(c.name_of(a), "");
    std::string text = "blk.0.attn_q";
    c.set_name(a, text);
    text.assign(text.size(), '?');
    EXPECT_EQ(c.name_of(a), "blk.0.attn_q");
    EXPECT_EQ(c.name_of(b), "");
    c.set_name(b, c.name_of(a));
    c.set_name(a, "wq");
    EXPECT_EQ(c.name_of(a), "wq");
    EXPECT_EQ(c.name_of(b), "blk.0.attn_q");
    c.set_name(a, "");
    EXPECT_EQ(c.name_of(a), "") << "not the one before";
    EXPECT_EQ(c.name_of(b), "blk.0.attn_q");
    c.set_name(b, "");
    c.set_name(b, "");
    EXPECT_EQ(c.name_of(b), "");
    c.set_name(b, std::string("a\0b", 3));
    EXPECT_EQ(c.name_of(b).size(), 3u);
}

TEST(context_names, end_with_a_reset) {
    malloc_source source;
    context c({.bytes = 4096}, any_source(source));
    const tensor* before = c.new_tensor(type::f32, {1});
    c.set_name(before, "before");
    c.reset();
    const tensor* after = c.new_tensor(type::f32, {1});
    ASSERT_EQ(before, after) << "the address serves again";
    EXPECT_EQ(c.name_of(after), "");
}

TEST(context_names, that_do_not_fit_change_nothing_and_forgetting_always_fits) {
    malloc_source source;
    context c({.bytes = 128 + 64}, any_source(source));
    const tensor* t = c.new_tensor(type::f32, {1});
    c.set_name(t, "short");
    refusal<context_exhausted>(c, [&] { c.set_name(t, "a longer one than there is room for"); });
    for (const std::size_t endless : {too_many, too_many - 20, too_many / 2})
        refusal<context_exhausted>(c, [&] { c.set_name(t, {reinterpret_cast<const char*>(t), endless}); });
    EXPECT_EQ(c.name_of(t), "short");
    while (c.allocate(1, 1) != nullptr) {
    }
    c.set_name(t, "");
    EXPECT_EQ(c.name_of(t), "");
}

}  // namespace
}  // namespace alloclab::tensor
