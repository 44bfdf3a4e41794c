// A tiny model, and an engine that runs evals of it over one or several frames.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/ops.hpp"
#include "mutants.hpp"

namespace alloclab::tensor::test {

using extra = device::tensor_extra;
using bytes = std::vector<std::byte>;
inline constexpr std::size_t device_bytes = std::size_t{64} << 20;

/// What a graph of the tiny model does with its cache.
enum class cache { writes, reads, leaves, shows };

/// One layer of attention with one matrix: each token's vector goes through it into a cache, and is compared with all
/// that are there.
class tiny_model {
public:
    static constexpr std::int64_t width = 32, tokens = 64;

    explicit tiny_model(std::size_t bytes_behind_tensor)
        : leaves_({.growing = growth{}, .no_alloc = false, .bytes_behind_tensor = bytes_behind_tensor},
                  any_source(source_)),
          matrix(leaves_.new_tensor(type::f32, {width, width})),
          kept(leaves_.new_tensor(type::f32, {width, tokens})) {
        for (std::int64_t i = 0; i < width * width; ++i)
            static_cast<float*>(matrix->data)[i] = static_cast<float>(i * 37 % 101) / 50.0F - 1.0F;
        std::memset(kept->data, 0, kept->bytes());
    }

    struct step {
        tensor *input, *output;
    };
    /// The graph of token `n`. One that leaves the cache alone goes through the matrix a few times instead.
    step build(context& c, graph& g, std::int64_t n, cache what) const {
        tensor* x = c.new_input(type::f32, {width});
        c.set_name(x, "token");
        tensor* hidden = matmul(c, matrix, x);
        c.set_name(hidden, "hidden");
        if (what == cache::writes || what == cache::shows) {
            const auto row = static_cast<std::size_t>(width) * sizeof(float);
            tensor* into = view(c, kept, {width}, static_cast<std::size_t>(n % tokens) * row);
            tensor* written = copy(c, hidden, into);
            c.set_name(written, "keep");
            g.expand(written);
            if (what == cache::shows) {
                written->output = true;
                return {x, written};
            }
        }
        tensor* out = hidden;
        if (what != cache::leaves) out = matmul(c, view(c, kept, {width, tokens}, 0), hidden);
        else
            for (int i = 0; i < 4; ++i) out = matmul(c, matrix, rms_norm(c, out, 1e-5F));
        c.set_name(out, "scores");
        out->output = true;
        g.expand(out);
        return {x, out};
    }
    [[nodiscard]] static std::vector<float> value(std::int64_t n) {
        std::vector<float> v(static_cast<std::size_t>(width));
        for (std::size_t i = 0; i < v.size(); ++i)
            v[i] = static_cast<float>((i + 1) * static_cast<std::size_t>(n + 3) % 17) / 8.0F - 1.0F;
        return v;
    }

private:
    malloc_source source_;
    context leaves_;

public:
    tensor* const matrix;
    tensor* const kept;
};

template <class Extras, class Device = device::sim_device>
class pipeline {
    using engine_type = engine<hybrid<context>, Extras, Device>;

public:
    explicit pipeline(std::size_t frames, cache what = cache::writes, bool reset_context = true,
                      const device::cost_profile& cost = {})
        : model_(engine_type::bytes_behind_tensor), what_(what), device(device_bytes, cost), said(device) {
        const engine_options options{
            .context_bytes = 8192, .growing = {}, .reset_context = reset_context, .frames = frames};
        loop = std::make_unique<engine_type>(device, options);
        std::array leaves{model_.matrix, model_.kept};
        loop->upload(leaves);
    }
    /// Nothing on the device outlives the engine, nothing was misused.
    ~pipeline() {
        loop.reset();
        const device::sim_usage u = device.usage();
        EXPECT_EQ(u.live, 0U);
        EXPECT_EQ(u.live_events, 0U);
        EXPECT_EQ(u.live_streams, 0U);
        EXPECT_EQ(u.errors, 0U) << device.last_error();
    }
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;

    /// Submits the next token, `and_wait`: and waits for it. The output, where its bytes are or will be.
    const tensor* next(bool and_wait = false) { return next(what_, and_wait); }
    const tensor* next(cache what, bool and_wait = false, int times = 1, std::size_t offload = too_many) {
        auto eval = loop->begin_eval();
        graph& g = *eval.new_graph(16);
        const auto [input, output] = model_.build(eval.context(), g, token_, what);
        mark_offloaded(g, offload);
        for (; times > 0; --times) {
            eval.plan(g);
            if (times == 1 || output->extra == nullptr) eval.attach(g);
            std::memcpy(input->data, tiny_model::value(token_).data(), input->bytes());
            if (and_wait) eval.execute(g);
            else eval.submit(g);
            if (times == 2) eval.submit(g);  // the very same once more, with nothing in between
        }
        ++token_;
        return output;
    }
    /// The outputs of so many tokens, `frames` of them in flight together. A result is read after its wait; those of
    /// one frame alone at once, since its context is the next eval's too.
    std::vector<bytes> outputs(std::size_t count, std::size_t frames) {
        std::vector<bytes> all;
        while (all.size() < count) {
            std::vector<const tensor*> flying;
            for (std::size_t i = 0; i < frames && all.size() + i < count; ++i) flying.push_back(next());
            loop->synchronize();
            for (const tensor* t : flying) all.push_back(read(*t));
        }
        return all;
    }
    [[nodiscard]] static bytes read(const tensor& t) {
        const auto* first = static_cast<const std::byte*>(t.data);
        return {first, first + t.bytes()};
    }

private:
    tiny_model model_;
    cache what_;
    std::int64_t token_ = 0;

public:
    Device device;
    alloclab::device::test::reports said;
    std::unique_ptr<engine_type> loop;
};

}  // namespace alloclab::tensor::test
