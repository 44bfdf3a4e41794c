// The graphs of published shapes: how many nodes, in which order, and that the small twins compute what they should.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alloclab/tensor/models/registry.hpp"
#include "support.hpp"

namespace alloclab::tensor {
namespace {

using test::floats_of;
using test::growing_context;

constexpr phase phases[] = {phase::decode, phase::prefill, phase::encode};
constexpr float noise_of_f32 = 2e-4F;  // sums run over other lengths, so logits of about 1 differ in their last bits

std::vector<float> compute_outputs(loaded_model& m) {
    growing_context eval;
    graph& g = *eval.c.new_graph(m.need().graph_nodes);
    const tensor* out = m.build(eval.c, g);
    const auto memory = test::run_on_host(g, m.inputs());
    return floats_of(*out);
}

std::vector<float> last_row(const std::vector<float>& values, std::size_t width) {
    return {values.end() - static_cast<std::ptrdiff_t>(width), values.end()};
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    float largest = 0.0F;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
    return largest;
}

bool all_finite(const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

/// A small llama whose caches start as noise, and its logits for a batch.
struct llama_fixture {
    explicit llama_fixture(const llama_shape& s) : model(new_llama(leaves.c, s)), cache(new_llama_cache(leaves.c, s)) {
        fill(model.leaves, 3);
        fill(cache.leaves, 4);
    }
    std::vector<float> logits(std::int32_t past, const std::vector<std::int32_t>& ids, std::int32_t shift = 0) {
        growing_context eval;
        graph& g = *eval.c.new_graph(llama_max_nodes(model.shape));
        const batch b{static_cast<std::int32_t>(ids.size()), past};
        const decoder_step step = build_llama(eval.c, g, model, cache, b);
        decoder_values values(b, ids);
        for (std::int32_t& position : values.positions) position += shift;
        const auto memory = test::run_on_host(g, values.of(step));
        return floats_of(*step.logits);
    }

    growing_context leaves{false};
    llama_model model;
    kv_cache cache;
};

struct whisper_fixture {
    explicit whisper_fixture(const whisper_shape& s)
        : model(new_whisper(leaves.c, s)), state(new_whisper_state(leaves.c, s)) {
        fill(model.leaves, 3);
        fill(state.self.leaves, 4);
        fill(state.cross.leaves, 5);
    }
    std::vector<float> encode(float loudness) {
        growing_context eval;
        graph& g = *eval.c.new_graph(whisper_max_nodes(model.shape));
        const whisper_encoder_step step = build_whisper_encoder(eval.c, g, model, state);
        std::vector<float> mel(step.mel->elements());
        for (std::size_t i = 0; i < mel.size(); ++i)
            mel[i] = loudness * (static_cast<float>(i * 29 % 97) / 48.0F - 1.0F);
        const input_value input{step.mel, mel.data()};
        const auto memory = test::run_on_host(g, {&input, 1});
        return floats_of(*step.audio);
    }
    std::vector<float> logits(std::int32_t past, const std::vector<std::int32_t>& ids) {
        growing_context eval;
        graph& g = *eval.c.new_graph(whisper_max_nodes(model.shape));
        const batch b{static_cast<std::int32_t>(ids.size()), past};
        const decoder_step step = build_whisper_decoder(eval.c, g, model, state, b);
        const decoder_values values(b, ids);
        const auto memory = test::run_on_host(g, values.of(step));
        return floats_of(*step.logits);
    }

    growing_context leaves{false};
    whisper_model model;
    whisper_state state;
};

const std::vector<std::int32_t> sentence{11, 200, 3, 77, 150, 42, 9, 255};

// ---- graphs

TEST(models, llama_2_7b_decode_has_as_many_nodes_as_ggmls_own_graph) {
    const context_need need = decode_need(*find_model("llama-2-7b"));
    std::cout << "llama-2-7b decode: " << need.graph_nodes << " nodes, " << need.tensors << " tensors, " << need.bytes()
              << " bytes\n";
    EXPECT_GE(need.graph_nodes, 900u);
    EXPECT_LE(need.graph_nodes, 1300u);
    EXPECT_EQ(need.graph_nodes, 1060u);
}

TEST(models, every_phase_of_every_model_fits_a_context_of_exactly_its_need) {
    for (const model_info& info : models()) {
        loaded_model m(info);
        for (const phase p : phases) {
            if (!has_phase(info, p)) continue;
            m.prepare(p, p == phase::prefill ? batch{16, 0} : batch{1, 16});
            const context_need need = m.need();
            SCOPED_TRACE(std::string(info.name) + " phase " + std::to_string(static_cast<int>(p)));

            malloc_source source;
            context exact({.bytes = need.bytes()}, any_source(source));
            m.build(exact, *exact.new_graph(need.graph_nodes));
            EXPECT_EQ(exact.used_bytes(), need.bytes());

            context short_of_one({.bytes = need.bytes() - 1}, any_source(source));
            EXPECT_THROW(m.build(short_of_one, *short_of_one.new_graph(need.graph_nodes)), context_exhausted);
        }
    }
}

TEST(models, full_shapes_never_get_data) {
    for (const model_info& info : models()) {
        if (!info.full) continue;
        SCOPED_TRACE(std::string(info.name));
        loaded_model m(info);
        for (const leaf& l : m.weights()) ASSERT_EQ(l.of->data, nullptr);
        for (const leaf& l : m.caches()) ASSERT_EQ(l.of->data, nullptr);
        growing_context eval;
        graph& g = *eval.c.new_graph(m.need().graph_nodes);
        m.build(eval.c, g);
        for (const tensor* t : g.nodes()) ASSERT_EQ(t->data, nullptr);
        for (const input_value& input : m.inputs()) EXPECT_EQ(input.value, nullptr);
    }
}

TEST(models, sources_come_before_users_and_cache_writes_before_reads) {
    for (const model_info& info : models()) {
        loaded_model m(info);
        for (const phase p : phases) {
            if (!has_phase(info, p)) continue;
            m.prepare(p, {1, 3});
            growing_context eval;
            graph& g = *eval.c.new_graph(m.need().graph_nodes);
            m.build(eval.c, g);
            // A read of a cache that this graph writes must come after the write to the same layer.
            const auto layer_of = [](const tensor& view) {
                return std::pair{&view.root(), view.params.offset / view.root().nb[2]};
            };
            std::set<const tensor*> own_caches, seen;
            for (const tensor* t : g.nodes())
                if (t->op == op::copy) own_caches.insert(&t->root());
            std::set<std::pair<const tensor*, std::size_t>> written;
            std::size_t reads = 0;
            for (const tensor* t : g.nodes()) {
                for (const tensor* source : t->sources)
                    ASSERT_TRUE(source == nullptr || source->op == op::none || seen.contains(source)) << info.name;
                seen.insert(t);
                if (t->op == op::copy) written.insert(layer_of(*t->sources[1]));
                if (t->op != op::matmul || !own_caches.contains(&t->sources[0]->root())) continue;
                ++reads;
                EXPECT_TRUE(written.contains(layer_of(*t->sources[0]))) << info.name;
            }
            EXPECT_GT(written.size(), 0u);
            EXPECT_EQ(reads, p == phase::encode ? 0 : written.size()) << info.name;
        }
    }
}

TEST(models, batches_that_the_cache_cannot_hold_are_refused) {
    const llama_shape& s = llama_small_shapes[0];
    growing_context leaves;
    const llama_model m = new_llama(leaves.c, s);
    const kv_cache cache = new_llama_cache(leaves.c, s);
    growing_context eval;
    graph& g = *eval.c.new_graph(llama_max_nodes(s));
    EXPECT_NO_THROW(build_llama(eval.c, g, m, cache, {s.context, 0}));
    for (const batch b : {batch{0, 0}, batch{-1, 4}, batch{1, -1}, batch{1, s.context}, batch{s.context, 1},
                          batch{2147483647, 2147483647}}) {
        std::string said;
        try {
            build_llama(eval.c, g, m, cache, b);
        } catch (const shape_error& e) {
            said = e.what();
        }
        EXPECT_EQ(said, "a batch of " + std::to_string(b.tokens) + " tokens behind " + std::to_string(b.past) +
                            " does not fit a cache of 64 positions");
    }
}

TEST(models, shapes_that_cannot_be_are_refused) {
    growing_context leaves;
    const auto broken = [](auto change) {
        llama_shape s = llama_shapes[0];
        change(s);
        return s;
    };
    EXPECT_THROW(static_cast<void>(new_llama(leaves.c, broken([](auto& s) { s.heads = 0; }))), shape_error);
    EXPECT_THROW(static_cast<void>(new_llama(leaves.c, broken([](auto& s) { s.layers = -1; }))), shape_error);
    EXPECT_THROW(static_cast<void>(new_llama(leaves.c, broken([](auto& s) { s.heads = 3; }))), shape_error);
    EXPECT_THROW(static_cast<void>(new_llama(leaves.c, broken([](auto& s) { s.kv_heads = 5; }))), shape_error);
    EXPECT_THROW(static_cast<void>(new_llama(leaves.c, broken([](auto& s) { s.heads = s.kv_heads = 4096; }))),
                 shape_error);
    whisper_shape w = whisper_shapes[0];
    w.heads = 5;
    EXPECT_THROW(static_cast<void>(new_whisper(leaves.c, w)), shape_error);
}

TEST(models, small_twins_keep_the_grouping_of_heads) {
    for (std::size_t i = 0; i < llama_shapes.size(); ++i) {
        const llama_shape &full = llama_shapes[i], &small = llama_small_shapes[i];
        EXPECT_EQ(full.heads / full.kv_heads, small.heads / small.kv_heads) << full.name;
        EXPECT_EQ(small.name, std::string(full.name) + "-small");
        EXPECT_GT(small.kv_heads, 1) << "one kv head would not tell which head reads which";
    }
    for (std::size_t i = 0; i < whisper_shapes.size(); ++i) {
        EXPECT_EQ(whisper_shapes[i].heads, whisper_small_shapes[i].heads);
        EXPECT_EQ(whisper_small_shapes[i].name, std::string(whisper_shapes[i].name) + "-small");
    }
}

TEST(models, there_are_as_many_parameters_as_in_the_published_models) {
    const auto parameters = [](std::string_view name) {
        loaded_model m(*find_model(name));
        std::size_t count = 0;
        for (const leaf& l : m.weights()) count += l.of->elements();
        return count;
    };
    EXPECT_EQ(parameters("llama-2-7b"), 6'738'415'616u);
    EXPECT_EQ(parameters("llama-2-13b"), 13'015'864'320u);
    EXPECT_EQ(parameters("llama-2-70b"), 68'976'648'192u);
    EXPECT_EQ(parameters("llama-3-8b"), 8'030'261'248u);
    EXPECT_EQ(parameters("whisper-tiny"), 37'760'640u);
    EXPECT_EQ(parameters("whisper-base"), 72'593'920u);
    EXPECT_EQ(parameters("whisper-small"), 241'734'912u);
    EXPECT_EQ(parameters("whisper-medium"), 763'857'920u);
    EXPECT_EQ(parameters("whisper-large-v3"), 1'543'490'560u);
}

// ---- computing

TEST(models, small_models_compute_finite_and_the_same_bits_twice) {
    for (const model_info& info : models()) {
        if (info.full) continue;
        for (const phase p : phases) {
            if (!has_phase(info, p)) continue;
            SCOPED_TRACE(std::string(info.name) + " phase " + std::to_string(static_cast<int>(p)));
            const auto run = [&](std::uint64_t seed) {
                loaded_model m(info, seed);
                m.prepare(p, p == phase::prefill ? batch{8, 0} : batch{1, 8});
                return compute_outputs(m);
            };
            const std::vector<float> first = run(1);
            EXPECT_TRUE(all_finite(first));
            EXPECT_EQ(first, run(1));
            EXPECT_NE(first, run(2));
        }
    }
}

TEST(models, decoding_token_by_token_equals_prefill) {
    for (const model_info& info : models()) {
        if (info.full) continue;
        SCOPED_TRACE(std::string(info.name));
        loaded_model m(info);
        constexpr std::int32_t tokens = 12;
        m.prepare(phase::prefill, {tokens, 0});
        const std::vector<float> all = compute_outputs(m);
        const std::size_t vocab = all.size() / tokens;
        m.reset_caches();
        for (std::int32_t past = 0; past < tokens; ++past) {
            m.prepare(phase::decode, {1, past});
            const std::vector<float> one = compute_outputs(m);
            const auto row = all.begin() + static_cast<std::ptrdiff_t>(vocab) * past;
            const auto end = row + static_cast<std::ptrdiff_t>(vocab);
            EXPECT_LT(largest_difference(one, {row, end}), noise_of_f32) << "token " << past;
        }
    }
}

TEST(models, a_prompt_in_two_parts_equals_the_whole) {
    for (const llama_shape& s : llama_small_shapes) {
        llama_fixture whole(s), parts(s);
        const std::vector<float> expected = last_row(whole.logits(0, sentence), 256);
        parts.logits(0, {sentence.begin(), sentence.begin() + 3});
        const auto seen = parts.logits(3, {sentence.begin() + 3, sentence.end()});
        EXPECT_LT(largest_difference(last_row(seen, 256), expected), noise_of_f32) << s.name;
    }
}

TEST(models, a_token_changes_its_own_and_later_logits_but_no_earlier_ones) {
    std::vector<std::int32_t> other = sentence;
    other[4] = 151;
    const auto expect_causal = [&](const std::vector<float>& a, const std::vector<float>& b) {
        for (std::size_t token = 0; token < sentence.size(); ++token) {
            const auto first = static_cast<std::ptrdiff_t>(token * 256);
            const bool same = std::equal(a.begin() + first, a.begin() + first + 256, b.begin() + first);
            EXPECT_EQ(same, token < 4) << "token " << token;
        }
    };
    for (const llama_shape& s : llama_small_shapes) {
        SCOPED_TRACE(std::string(s.name));
        llama_fixture f(s);
        expect_causal(f.logits(0, sentence), f.logits(0, other));
    }
    for (const whisper_shape& s : whisper_small_shapes) {
        SCOPED_TRACE(std::string(s.name));
        whisper_fixture f(s);
        expect_causal(f.logits(0, sentence), f.logits(0, other));
    }
}

TEST(models, llama_logits_depend_on_distances_and_not_on_absolute_positions) {
    llama_fixture f(llama_small_shapes[0]);
    const std::vector<float> here = f.logits(0, sentence);
    EXPECT_LT(largest_difference(f.logits(0, sentence, 1000), here), 2e-2F);  // keys are rounded to f16 when rotated
    std::vector<std::int32_t> swapped = sentence;
    std::swap(swapped[0], swapped[1]);
    EXPECT_GT(largest_difference(last_row(f.logits(0, swapped), 256), last_row(here, 256)), 2e-2F);
}

TEST(models, grouped_heads_equal_full_attention_with_repeated_keys_and_values) {
    llama_shape s = llama_small_shapes[2];
    llama_fixture grouped(s);
    const std::int32_t group = s.heads / s.kv_heads;
    ASSERT_GT(group, 1);
    s.kv_heads = s.heads;
    llama_fixture repeated(s);
    const auto copy_all = [](const tensor* from, tensor* to) { std::memcpy(to->data, from->data, from->bytes()); };
    copy_all(grouped.model.embedding, repeated.model.embedding);
    copy_all(grouped.model.norm, repeated.model.norm);
    copy_all(grouped.model.output, repeated.model.output);
    for (std::size_t i = 0; i < grouped.model.layers.size(); ++i) {
        const llama_layer &from = grouped.model.layers[i], &to = repeated.model.layers[i];
        for (const auto part : {&llama_layer::attention_norm, &llama_layer::wq, &llama_layer::wo, &llama_layer::ff_norm,
                                &llama_layer::w1, &llama_layer::w2, &llama_layer::w3})
            copy_all(from.*part, to.*part);
        for (const auto part : {&llama_layer::wk, &llama_layer::wv}) {
            const std::size_t head_bytes = (from.*part)->nb[1] * static_cast<std::size_t>(s.head_width());
            for (std::int32_t head = 0; head < s.heads; ++head)
                std::memcpy(
                    static_cast<std::byte*>((to.*part)->data) + static_cast<std::size_t>(head) * head_bytes,
                    static_cast<std::byte*>((from.*part)->data) + static_cast<std::size_t>(head / group) * head_bytes,
                    head_bytes);
        }
    }
    EXPECT_LT(largest_difference(grouped.logits(0, sentence), repeated.logits(0, sentence)), noise_of_f32);
}

TEST(models, whisper_text_depends_on_the_audio_only_through_the_cross_cache) {
    for (const whisper_shape& s : whisper_small_shapes) {
        SCOPED_TRACE(std::string(s.name));
        whisper_fixture f(s);
        const std::vector<float> quiet_audio = f.encode(0.5F);
        EXPECT_TRUE(all_finite(quiet_audio));
        const std::vector<float> quiet = f.logits(0, sentence);
        EXPECT_NE(f.encode(2.0F), quiet_audio);
        EXPECT_GT(largest_difference(f.logits(0, sentence), quiet), 1e-3F);
        f.encode(0.5F);
        EXPECT_EQ(f.logits(0, sentence), quiet);
    }
}

TEST(models, noise_is_the_same_on_every_machine_and_has_the_variance_it_should) {
    growing_context leaves{false};
    std::vector<leaf> made;
    leaf_maker make(leaves.c, made);
    tensor* matrix = make.matrix({64, 512}, 64);
    tensor* gain = make.gain(64);
    fill(made, 1);
    const auto* halves = static_cast<const std::uint16_t*>(matrix->data);
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a over the f16 bits
    double squares = 0;
    for (std::size_t i = 0; i < matrix->elements(); ++i) {
        hash = (hash ^ halves[i]) * 1099511628211U;
        squares += std::pow(to_float(halves[i]), 2);
    }
    EXPECT_EQ(hash, 4717152270991258513U);
    EXPECT_NEAR(squares / static_cast<double>(matrix->elements()), 1.0 / 64, 0.01 / 64);
    const auto gains = floats_of(*gain);
    EXPECT_NEAR(std::accumulate(gains.begin(), gains.end(), 0.0) / 64, 1.0, 0.05);
}

// ---- names

TEST(models, every_name_finds_its_model_and_no_other_name_does) {
    std::set<std::string_view> names;
    for (const model_info& info : models()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_EQ(find_model(info.name), &info);
        EXPECT_EQ(info.full, !info.name.ends_with("-small") || info.name == "whisper-small");
        EXPECT_TRUE(info.name.starts_with(info.family));
    }
    EXPECT_EQ(names.size(), 18u);
    for (const char* unknown : {"", "llama", "llama-2-7", "LLAMA-2-7B", "whisper-huge"})
        EXPECT_EQ(find_model(unknown), nullptr) << unknown;
}

TEST(models, resetting_caches_brings_back_their_first_bytes) {
    loaded_model m(*find_model("whisper-tiny-small"));
    const auto bytes = [&] {
        std::vector<std::byte> all;
        for (const leaf& l : m.caches()) {
            const auto* first = static_cast<const std::byte*>(l.of->data);
            all.insert(all.end(), first, first + l.of->bytes());
        }
        return all;
    };
    const auto before = bytes();
    EXPECT_EQ(m.caches().size(), 4u);
    compute_outputs(m);
    EXPECT_NE(bytes(), before);
    m.reset_caches();
    EXPECT_EQ(bytes(), before);
}

TEST(models, a_refused_prepare_leaves_the_model_as_it_was) {
    loaded_model m(*find_model("llama-2-7b-small"));
    m.prepare(phase::decode, {1, 5});
    const std::vector<float> before = compute_outputs(m);
    EXPECT_THROW(m.prepare(phase::encode, {}), std::invalid_argument);
    EXPECT_THROW(m.prepare(phase::prefill, {65, 0}), shape_error);
    m.reset_caches();
    EXPECT_EQ(compute_outputs(m), before);
}

}  // namespace
}  // namespace alloclab::tensor
