// The small models against plain double-precision loops that know nothing of graphs, views or caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "alloclab/tensor/models/llama.hpp"
#include "alloclab/tensor/models/whisper.hpp"
#include "support.hpp"

namespace alloclab::tensor {
namespace {

struct matrix {
    matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
    double& at(std::size_t r, std::size_t c) { return values[r * columns + c]; }
    [[nodiscard]] double at(std::size_t r, std::size_t c) const { return values[r * columns + c]; }

    std::size_t rows, columns;
    std::vector<double> values;
};

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

double element(const tensor* t, std::size_t i, std::size_t j = 0, std::size_t k = 0) {
    const auto* at = static_cast<const std::byte*>(t->data) + i * t->nb[0] + j * t->nb[1] + k * t->nb[2];
    if (t->type == type::f16) return to_float(*reinterpret_cast<const std::uint16_t*>(at));
    return *reinterpret_cast<const float*>(at);
}

matrix linear(const matrix& x, const tensor* w, const tensor* bias = nullptr) {
    matrix y(x.rows, size(w->ne[1]));
    for (std::size_t r = 0; r < y.rows; ++r)
        for (std::size_t o = 0; o < y.columns; ++o) {
            double sum = bias != nullptr ? element(bias, o) : 0.0;
            for (std::size_t i = 0; i < x.columns; ++i) sum += x.at(r, i) * element(w, i, o);
            y.at(r, o) = sum;
        }
    return y;
}
matrix linear(const matrix& x, const whisper_linear& l) { return linear(x, l.weights, l.bias); }

matrix plus(matrix a, const matrix& b) {
    std::transform(a.values.begin(), a.values.end(), b.values.begin(), a.values.begin(), std::plus<>());
    return a;
}

template <class F>
matrix each(matrix x, F f) {
    for (double& value : x.values) value = f(value);
    return x;
}
double gelu_of(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
double as_half(double x) { return to_float(to_half(static_cast<float>(x))); }

matrix rms_normed(matrix x, const tensor* gain, double eps) {
    for (std::size_t r = 0; r < x.rows; ++r) {
        double squares = 0;
        for (std::size_t c = 0; c < x.columns; ++c) squares += x.at(r, c) * x.at(r, c);
        const double factor = 1 / std::sqrt(squares / static_cast<double>(x.columns) + eps);
        for (std::size_t c = 0; c < x.columns; ++c) x.at(r, c) *= factor * element(gain, c);
    }
    return x;
}

matrix layer_normed(matrix x, const whisper_norm& n) {
    const auto width = static_cast<double>(x.columns);
    for (std::size_t r = 0; r < x.rows; ++r) {
        double mean = 0, squares = 0;
        for (std::size_t c = 0; c < x.columns; ++c) mean += x.at(r, c) / width;
        for (std::size_t c = 0; c < x.columns; ++c) squares += std::pow(x.at(r, c) - mean, 2);
        const double deviation = std::sqrt(squares / width + 1e-5);
        for (std::size_t c = 0; c < x.columns; ++c)
            x.at(r, c) = (x.at(r, c) - mean) / deviation * element(n.gain, c) + element(n.bias, c);
    }
    return x;
}

matrix rotated(matrix x, std::size_t head_width, double base) {
    const std::size_t half = head_width / 2;
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t head = 0; head < x.columns; head += head_width)
            for (std::size_t i = 0; i < half; ++i) {
                const double angle = static_cast<double>(r) *
                                     std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
                double &a = x.at(r, head + i), &b = x.at(r, head + i + half);
                const double turned = a * std::cos(angle) - b * std::sin(angle);
                b = a * std::sin(angle) + b * std::cos(angle);
                a = turned;
            }
    return x;
}

matrix attention(const matrix& q, const matrix& k, const matrix& v, std::size_t head_width, bool causal) {
    const std::size_t group = q.columns / k.columns;
    matrix out(q.rows, q.columns);
    for (std::size_t head = 0; head < q.columns / head_width; ++head) {
        const std::size_t own = head * head_width, shared = head / group * head_width;
        for (std::size_t r = 0; r < q.rows; ++r) {
            std::vector<double> weights(causal ? r + 1 : k.rows);
            for (std::size_t p = 0; p < weights.size(); ++p) {
                double dot = 0;
                for (std::size_t i = 0; i < head_width; ++i) dot += q.at(r, own + i) * k.at(p, shared + i);
                weights[p] = std::exp(dot / std::sqrt(static_cast<double>(head_width)));
            }
            const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
            for (std::size_t p = 0; p < weights.size(); ++p)
                for (std::size_t i = 0; i < head_width; ++i)
                    out.at(r, own + i) += weights[p] / sum * v.at(p, shared + i);
        }
    }
    return out;
}

matrix embedded(const tensor* table, const std::vector<std::int32_t>& ids) {
    matrix x(ids.size(), size(table->ne[0]));
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t c = 0; c < x.columns; ++c) x.at(r, c) = element(table, c, size(ids[r]));
    return x;
}

matrix llama_logits(const llama_model& m, const std::vector<std::int32_t>& ids) {
    const std::size_t width = size(m.shape.head_width());
    const double base = m.shape.rope_base, eps = m.shape.eps;
    matrix x = embedded(m.embedding, ids);
    for (const llama_layer& l : m.layers) {
        matrix n = rms_normed(x, l.attention_norm, eps);
        const matrix q = rotated(linear(n, l.wq), width, base);
        const matrix k = each(rotated(linear(n, l.wk), width, base), as_half);
        const matrix v = each(linear(n, l.wv), as_half);
        x = plus(x, linear(attention(q, k, v, width, true), l.wo));
        n = rms_normed(x, l.ff_norm, eps);
        matrix gate = each(linear(n, l.w1), [](double g) { return g / (1 + std::exp(-g)); });
        const matrix up = linear(n, l.w3);
        std::transform(gate.values.begin(), gate.values.end(), up.values.begin(), gate.values.begin(),
                       std::multiplies<>());
        x = plus(x, linear(gate, l.w2));
    }
    return linear(rms_normed(x, m.norm, eps), m.output);
}

// Rows are moments, columns channels.
matrix convolved(const matrix& x, const whisper_linear& l, std::size_t stride) {
    matrix y(x.rows / stride, size(l.weights->ne[2]));
    for (std::size_t r = 0; r < y.rows; ++r)
        for (std::size_t o = 0; o < y.columns; ++o) {
            double sum = element(l.bias, 0, o);
            for (std::size_t tap = 0; tap < 3; ++tap) {
                const std::size_t from = r * stride + tap;  // one above the row, for the padding
                if (from < 1 || from > x.rows) continue;
                for (std::size_t i = 0; i < x.columns; ++i) sum += x.at(from - 1, i) * element(l.weights, tap, i, o);
            }
            y.at(r, o) = gelu_of(sum);
        }
    return y;
}

matrix mlp(const matrix& x, const whisper_mlp& m) {
    return plus(x, linear(each(linear(layer_normed(x, m.norm), m.up), gelu_of), m.down));
}

matrix audio_of(const whisper_model& m, const matrix& mel) {
    matrix x = convolved(convolved(mel, m.conv1, 1), m.conv2, 2);
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t c = 0; c < x.columns; ++c) x.at(r, c) += element(m.audio_positions, c, r);
    for (const auto& [a, feed] : m.encoder) {
        const matrix n = layer_normed(x, a.norm);
        x = plus(x, linear(attention(linear(n, a.q), linear(n, a.k), linear(n, a.v), size(m.shape.head_width()), false),
                           a.out));
        x = mlp(x, feed);
    }
    return layer_normed(x, m.audio_norm);
}

matrix whisper_logits(const whisper_model& m, const matrix& audio, const std::vector<std::int32_t>& ids) {
    const std::size_t width = size(m.shape.head_width());
    const double half = std::pow(static_cast<double>(width), -0.25);
    const auto cached_keys = [&](const matrix& x, const whisper_attention& a) {
        return each(linear(x, a.k), [half](double k) { return as_half(k * half) / half; });
    };
    std::vector<std::int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    matrix x = plus(embedded(m.embedding, ids), embedded(m.text_positions, positions));
    for (const auto& [self, cross, feed] : m.decoder) {
        matrix n = layer_normed(x, self.norm);
        x = plus(
            x, linear(attention(linear(n, self.q), cached_keys(n, self), each(linear(n, self.v), as_half), width, true),
                      self.out));
        n = layer_normed(x, cross.norm);
        x = plus(x, linear(attention(linear(n, cross.q), cached_keys(audio, cross),
                                     each(linear(audio, cross.v), as_half), width, false),
                           cross.out));
        x = mlp(x, feed);
    }
    return linear(layer_normed(x, m.text_norm), m.embedding);
}

// Values of about 1; f32 sums and f16 roundings that fall to the other side grow through the layers.
constexpr double tolerance = 5e-3;

void expect_near(const tensor& seen, const matrix& expected) {
    ASSERT_EQ(seen.elements(), expected.values.size());
    double largest = 0, scale = 0;
    for (std::size_t r = 0; r < expected.rows; ++r)
        for (std::size_t c = 0; c < expected.columns; ++c) {
            largest = std::max(largest, std::fabs(element(&seen, c, r) - expected.at(r, c)));
            scale = std::max(scale, std::fabs(expected.at(r, c)));
        }
    EXPECT_LT(largest, tolerance) << "of values up to " << scale;
    EXPECT_GT(scale, 1.0) << "values too small to tell anything";
}

const std::vector<std::int32_t> sentence{11, 200, 3, 77, 150, 42, 9, 255, 0};
const batch whole{static_cast<std::int32_t>(sentence.size()), 0};

TEST(models_reference, llama_logits_are_those_of_plain_loops) {
    for (const llama_shape& s : llama_small_shapes) {
        SCOPED_TRACE(std::string(s.name));
        test::growing_context leaves(false), eval;
        const llama_model m = new_llama(leaves.c, s);
        const kv_cache cache = new_llama_cache(leaves.c, s);
        fill(m.leaves, 7);
        fill(cache.leaves, 8);
        graph& g = *eval.c.new_graph(llama_max_nodes(s));
        const decoder_step step = build_llama(eval.c, g, m, cache, whole);
        const decoder_values values(whole, sentence);
        const auto memory = test::run_on_host(g, values.of(step));
        expect_near(*step.logits, llama_logits(m, sentence));
    }
}

TEST(models_reference, whisper_audio_and_logits_are_those_of_plain_loops) {
    for (const whisper_shape& s : whisper_small_shapes) {
        SCOPED_TRACE(std::string(s.name));
        test::growing_context leaves(false), listening, speaking;
        const whisper_model m = new_whisper(leaves.c, s);
        const whisper_state state = new_whisper_state(leaves.c, s);
        fill(m.leaves, 7);
        fill(state.self.leaves, 8);
        fill(state.cross.leaves, 9);

        graph& encoder = *listening.c.new_graph(whisper_max_nodes(s));
        const whisper_encoder_step heard = build_whisper_encoder(listening.c, encoder, m, state);
        matrix mel(size(heard.mel->ne[0]), size(heard.mel->ne[1]));
        std::vector<float> mel_values(heard.mel->elements());
        for (std::size_t i = 0; i < mel_values.size(); ++i) {
            mel_values[i] = static_cast<float>(i * 29 % 97) / 48.0F - 1.0F;
            mel.at(i % mel.rows, i / mel.rows) = mel_values[i];
        }
        const input_value input{heard.mel, mel_values.data()};
        const auto encoder_memory = test::run_on_host(encoder, {&input, 1});
        const matrix audio = audio_of(m, mel);
        expect_near(*heard.audio, audio);

        graph& decoder = *speaking.c.new_graph(whisper_max_nodes(s));
        const decoder_step step = build_whisper_decoder(speaking.c, decoder, m, state, whole);
        const decoder_values values(whole, sentence);
        const auto decoder_memory = test::run_on_host(decoder, values.of(step));
        expect_near(*step.logits, whisper_logits(m, audio, sentence));
    }
}

}  // namespace
}  // namespace alloclab::tensor
