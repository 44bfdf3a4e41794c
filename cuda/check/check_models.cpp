// The small models on the device: near the CPU's results, and the same bits under every extra strategy and number of
// frames. And the events of many evals: as many after the thousandth as after the first few, none at the end.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/device/cuda_device.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "alloclab/tensor/ops.hpp"
#include "check.hpp"
#include "compare.hpp"

namespace alloclab::device::check {
namespace {

using tensor::batch;
using tensor::context;
using tensor::model_info;
using tensor::phase;

// Some layers after one another, with caches of f16 in between: a sum in another order may round to the next half.
constexpr double tolerance = 1e-3;

constexpr std::string_view name_of(phase p) {
    return p == phase::decode ? "decode" : p == phase::prefill ? "prefill" : "encode";
}

struct plan {
    phase of = phase::decode;
    std::vector<batch> steps = {{4, 8}};  // one eval each
    bool on_device = true;
    std::size_t frames = 1;
};

// What the last step gives. Only that one is waited for.
template <class Extras>
std::vector<float> result_of(cuda_device& d, const model_info& m, const plan& p) {
    using engine_type = tensor::engine<hybrid<context>, Extras, cuda_device>;
    tensor::loaded_model model(m, 7, engine_type::bytes_behind_tensor);
    engine_type engine(d, {.context_bytes = 4096, .growing = {}, .reset_context = true, .frames = p.frames});
    if (p.on_device) {
        std::vector<tensor::tensor*> all;
        for (const auto list : {model.weights(), model.caches()})
            for (const tensor::leaf& l : list) all.push_back(l.of);
        engine.upload(all);
    }
    std::vector<float> result;
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
        model.prepare(p.of, p.steps[i]);
        auto eval = engine.begin_eval();
        tensor::graph& g = *eval.new_graph(model.need().graph_nodes);
        const tensor::tensor* output = model.build(eval.context(), g);
        mark_offloaded(g, p.on_device ? too_many : 0);
        eval.plan(g);
        eval.attach(g);
        for (const tensor::input_value& in : model.inputs()) std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
        eval.submit(g);
        if (i + 1 < p.steps.size()) continue;
        eval.wait();
        result = elements_of(*output);
    }
    return result;
}

void near_the_cpu(checks& c, const std::string& what, const std::vector<float>& got,
                  const std::vector<float>& expected) {
    const double far = distance(got, expected);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), " %.1e from the CPU's", far);
    c.that(far <= tolerance, what + text.data(), "too far");
}

template <class Extras>
void compare_strategies(checks& c, cuda_device& d, const model_info& m, phase p, std::string_view with = "") {
    plan on_host{.of = p, .on_device = false};
    const plan on_device{.of = p};
    const std::string title = std::string(m.name) + ' ' + std::string(name_of(p)) + std::string(with);
    const auto expected = result_of<per_tensor<tensor_extra>>(d, m, on_host);
    const auto got = result_of<per_tensor<tensor_extra>>(d, m, on_device);
    near_the_cpu(c, title, got, expected);
    std::string others;
    Extras::for_each([&](auto tag) {
        using strategy = typename decltype(tag)::type;
        if (!same_bits(result_of<strategy>(d, m, on_device), got)) (others += ' ') += strategy::name;
    });
    c.that(others.empty(), title + " has the same bits under every extra strategy", others);
}

// A token after the other, over caches that all frames share.
void compare_frames(checks& c, cuda_device& d, const model_info& m) {
    plan p{.on_device = false};
    p.steps.clear();
    for (std::int32_t past = 0; past < 12; ++past) p.steps.push_back({1, past});
    const auto expected = result_of<bump_arena<tensor_extra>>(d, m, p);
    p.on_device = true;
    const auto got = result_of<bump_arena<tensor_extra>>(d, m, p);
    const std::string title = std::string(m.name) + ", token after token,";
    near_the_cpu(c, title, got, expected);
    for (p.frames = 2; p.frames <= 4; p.frames *= 2)
        c.that(same_bits(result_of<bump_arena<tensor_extra>>(d, m, p), got),
               title + " has the same bits with " + std::to_string(p.frames) + " frames");
}

}  // namespace

void check_models(checks& c) {
    cuda_device d;
    for (const model_info& m : tensor::models()) {
        if (m.full) continue;
        for (const phase p : {phase::decode, phase::encode})
            if (has_phase(m, p)) compare_strategies<extra_strategies<tensor_extra>>(c, d, m, p);
    }
    const model_info& small = *tensor::find_model("llama-2-7b-small");
    compare_strategies<extra_strategies<lazy_tensor_extra>>(c, d, small, phase::decode, " with lazy extras,");
    compare_frames(c, d, small);
    compare_frames(c, d, *tensor::find_model("llama-3-8b-small"));
    c.that(d.usage().live == 0 && d.usage().live_events == 0, "nothing is held at the end");
}

// Each eval writes a row of a cache that all frames share, and reads the whole of it.
void check_events(checks& c) {
    cuda_device d;
    malloc_source source;
    context memory({.growing = growth{}, .no_alloc = false}, any_source(source));
    tensor::tensor* cache = memory.new_tensor(tensor::type::f32, {64, 8});
    std::memset(cache->data, 0, cache->bytes());
    std::size_t early = 0;
    std::size_t late = 0;
    bool right = true;
    const auto value = [](std::size_t i) { return static_cast<float>(i % 97); };  // whose sums are exact in any order
    {
        tensor::engine<hybrid<context>, bump_arena<tensor_extra>, cuda_device> engine(
            d, {.context_bytes = 4096, .growing = {}, .reset_context = true, .frames = 2});
        engine.upload(std::vector{cache});
        for (std::size_t i = 0; i < 1000; ++i) {
            auto eval = engine.begin_eval();
            context& e = eval.context();
            tensor::tensor* row = e.new_input(tensor::type::f32, {64});
            tensor::tensor* stored = copy(e, scale(e, row, 2), view(e, cache, {64}, i % 8 * cache->nb[1]));
            tensor::tensor* sums = matmul(e, cache, scale(e, row, 1));
            sums->output = true;
            tensor::graph& g = *eval.new_graph(16);
            g.expand(stored);
            g.expand(sums);
            mark_offloaded(g, too_many);
            eval.plan(g);
            eval.attach(g);
            for (std::size_t k = 0; k < 64; ++k) static_cast<float*>(row->data)[k] = value(i);
            eval.submit(g);
            if (i == 20) early = d.usage().created_events;
            if (i % 100 != 99) continue;
            eval.wait();
            const auto got = elements_of(*sums);
            for (std::size_t k = 0; k < 8; ++k) {  // row k was written by the last eval whose number is k modulo 8
                const std::size_t last = i - (i % 8 + 8 - k) % 8;
                right = right && got[k] == 64 * 2 * value(last) * value(i);
            }
        }
        late = d.usage().created_events;
    }
    c.that(right, "1000 evals over a shared cache are right");
    c.that(early == late, "no event is made after the first evals",
           std::to_string(early) + ", then " + std::to_string(late));
    const cuda_usage u = d.usage();
    c.that(u.live == 0 && u.live_events == 0 && u.live_streams == 0 && u.live_host_bytes == 0,
           "nothing is held at the end");
    c.that(u.errors == 0, "no call failed", d.last_error());
}

}  // namespace alloclab::device::check
