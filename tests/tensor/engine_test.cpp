#include "alloclab/tensor/engine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "alloclab/tensor/ops.hpp"
#include "counted_new.hpp"

namespace alloclab::tensor {
namespace {

using device::sim_device;
using extra = device::tensor_extra;
constexpr std::size_t device_bytes = std::size_t{256} << 20;

/// A model, an engine and what they computed.
template <class Slots, class Extras>
class runtime {
    using engine_type = engine<Slots, Extras, sim_device>;

public:
    explicit runtime(std::string_view model, bool reset_context = true)
        : model_(*find_model(model), 7, engine_type::bytes_behind_tensor),
          engine_(device_, {.context_bytes = 4096, .growing = {}, .reset_context = reset_context}) {}
    ~runtime() { EXPECT_EQ(device_.usage().errors, 0U) << device_.last_error(); }
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;

    void upload() {
        std::vector<tensor*> leaves;
        for (const auto list : {model_.weights(), model_.caches()})
            for (const leaf& l : list) leaves.push_back(l.of);
        engine_.upload(leaves);
    }

    /// The output's bytes after one eval in which so many nodes ran on the device.
    std::vector<std::byte> eval(std::size_t offload) {
        auto eval = engine_.begin_eval();
        graph& g = *eval.new_graph(model_.need().graph_nodes);
        const tensor* result = model_.build(eval.context(), g);
        mark_offloaded(g, offload);
        eval.plan(g);
        eval.attach(g);
        live_in_eval = engine_.extras().usage().live;
        for (const input_value& in : model_.inputs()) std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
        eval.execute(g);
        const auto* bytes = static_cast<const std::byte*>(result->data);
        return {bytes, bytes + result->bytes()};
    }

    std::size_t live_in_eval = 0;
    [[nodiscard]] loaded_model& model() { return model_; }
    [[nodiscard]] engine_type& loop() { return engine_; }
    [[nodiscard]] sim_device& device() { return device_; }

private:
    loaded_model model_;
    sim_device device_{device_bytes};
    engine_type engine_;
};

using plain = runtime<heap<context>, per_tensor<extra>>;

std::vector<std::byte> reference(std::string_view model, phase p = phase::decode, batch b = {4, 8}) {
    plain host(model);
    host.model().prepare(p, b);
    return host.eval(0);
}

// The promise of the project: the strategies move bytes, never bits.
template <class Slots, class Extras>
void same_bits_as(const std::vector<std::byte>& expected, std::string_view model) {
    if (!available<Slots>()) return;
    SCOPED_TRACE(std::string(Slots::name) + " with " + std::string(Extras::name));
    runtime<Slots, Extras> all(model, false);
    all.model().prepare(phase::decode, {4, 8});
    all.upload();
    EXPECT_EQ(all.eval(too_many), expected) << "everything on the device";
    EXPECT_EQ(all.eval(37), expected) << "the first 37 nodes on the device";
    EXPECT_EQ(all.eval(0), expected) << "nothing on the device, caches at home there";
}

template <class Extras>
class engine_with : public ::testing::Test {};
TYPED_TEST_SUITE(engine_with, extra_strategies<extra>::into<::testing::Types>);

TYPED_TEST(engine_with, these_extras_gives_the_same_bits_under_every_context_strategy) {
    for (const std::string_view model : {"llama-2-7b-small", "llama-2-70b-small", "whisper-base-small"}) {
        const auto expected = reference(model);
        context_strategies<context>::for_each(
            [&](auto tag) { same_bits_as<typename decltype(tag)::type, TypeParam>(expected, model); });
    }
}

TEST(engine, computes_every_small_model_on_the_device_as_on_the_host) {
    for (const model_info& info : models()) {
        if (info.full) continue;
        SCOPED_TRACE(info.name);
        runtime<hybrid<context>, bump_arena<extra>> offloaded(info.name);
        offloaded.model().prepare(phase::decode, {4, 8});
        offloaded.upload();
        EXPECT_EQ(offloaded.eval(too_many), reference(info.name));
    }
}

TEST(engine, computes_the_same_bits_with_extras_of_which_only_the_fields_in_use_are_written) {
    const auto expected = reference("llama-2-7b-small");
    extra_strategies<device::lazy_tensor_extra>::for_each(
        [&](auto tag) { same_bits_as<hybrid<context>, typename decltype(tag)::type>(expected, "llama-2-7b-small"); });
}

TEST(engine, encodes_audio_on_the_device_as_on_the_host) {
    runtime<hybrid<context>, bump_arena<extra>> offloaded("whisper-base-small");
    offloaded.model().prepare(phase::encode, {});
    offloaded.upload();
    EXPECT_EQ(offloaded.eval(too_many), reference("whisper-base-small", phase::encode));
}

TEST(engine, decodes_token_after_token_over_a_cache_that_stays_on_the_device) {
    plain host("llama-3-8b-small");
    runtime<static_pool<context, 64>, free_list<extra>> offloaded("llama-3-8b-small");
    offloaded.upload();
    for (std::int32_t past = 0; past < 12; ++past) {
        host.model().prepare(phase::decode, {1, past});
        offloaded.model().prepare(phase::decode, {1, past});
        // Some steps read on the host what others wrote on the device.
        EXPECT_EQ(offloaded.eval(past % 3 == 2 ? 20 : too_many), host.eval(0)) << "past " << past;
    }
}

TEST(engine, offloads_what_was_marked_and_nothing_else) {
    runtime<hybrid<context>, bump_arena<extra>> r("llama-2-7b-small");
    r.upload();
    const std::size_t persistent = r.model().weights().size() + r.model().caches().size();
    r.eval(37);
    EXPECT_EQ(r.live_in_eval, persistent + 37);
    EXPECT_EQ(r.loop().extras().usage().live, persistent) << "temporaries died with the eval";
    EXPECT_GE(r.device().usage().count(device::call::launch), 37U);
}

TEST(engine, leaves_nothing_on_the_device_when_it_dies) {
    sim_device device(device_bytes);
    loaded_model model(*find_model("llama-2-7b-small"));
    {
        engine<heap<context>, bump_arena<extra>, sim_device> e(device);
        std::vector<tensor*> leaves;
        for (const leaf& l : model.weights()) leaves.push_back(l.of);
        e.upload(leaves);
        EXPECT_GT(device.usage().live, 0U);
    }
    EXPECT_EQ(device.usage().live, 0U);
    for (const leaf& l : model.weights()) EXPECT_EQ(l.of->extra, nullptr);
}

// llama.cpp#2145: 200 offloaded tensors, 1000 evals. Full shape, so that no time goes into computing.
template <class Extras>
std::vector<std::size_t> live_over_evals() {
    sim_device device(std::size_t{8} << 30);
    loaded_model model(*find_model("llama-2-7b"));
    engine<hybrid<context>, Extras, sim_device> e(device);
    std::vector<std::size_t> live;
    for (int i = 0; i < 1000; ++i) {
        {
            auto eval = e.begin_eval();
            graph& g = *eval.context().new_graph(model.need().graph_nodes);
            model.build(eval.context(), g);
            EXPECT_EQ(mark_offloaded(g, 200), 200U);
            eval.plan(g);
            eval.attach(g);
        }
        live.push_back(e.extras().usage().live);
    }
    return live;
}

TEST(engine, keeps_live_extras_constant_over_1000_evals_unless_the_strategy_leaks) {
    extra_strategies<extra>::for_each([](auto tag) {
        using strategy = typename decltype(tag)::type;
        const std::vector<std::size_t> live = live_over_evals<strategy>();
        for (std::size_t i = 0; i < live.size(); ++i)
            ASSERT_EQ(live[i], describe<strategy>().leaks ? 200 * (i + 1) : 0) << strategy::name << " after eval " << i;
    });
}

TEST(engine, calls_no_source_from_the_second_eval_on) {
    using buffers = compose<malloc_source, counting>;
    sim_device device(std::size_t{8} << 30);
    loaded_model model(*find_model("llama-2-7b"));
    engine<static_pool<context, 64>, bump_arena<extra>, sim_device, buffers> e(
        device, {.context_bytes = 4096, .growing = {}, .reset_context = true});
    const auto one = [&] {
        auto eval = e.begin_eval();
        graph& g = *eval.context().new_graph(model.need().graph_nodes);
        model.build(eval.context(), g);
        mark_offloaded(g, too_many);
        eval.plan(g);
        eval.attach(g);
    };
    one();
    const std::size_t contexts = e.context_source().buffers().traffic().acquired;
    const std::size_t extras = e.extras().usage().source_calls;
    EXPECT_GT(contexts, 1U) << "the context has grown";
    for (int i = 0; i < 5; ++i) one();
    EXPECT_EQ(e.context_source().buffers().traffic().acquired, contexts);
    EXPECT_EQ(e.extras().usage().source_calls, extras);
}

TEST(engine, says_what_was_missing_when_the_device_is_full) {
    sim_device device(std::size_t{64} << 10);
    loaded_model model(*find_model("llama-2-7b-small"));
    engine<heap<context>, bump_arena<extra>, sim_device> e(device);
    std::vector<tensor*> leaves;
    for (const leaf& l : model.weights()) leaves.push_back(l.of);
    try {
        e.upload(leaves);
        FAIL() << "the model fits a device of 64 KiB";
    } catch (const offload_exhausted& full) {
        EXPECT_NE(std::string(full.what()).find("no device memory (needed "), std::string::npos) << full.what();
    }
    const std::size_t there = device.usage().live;
    EXPECT_GT(there, 0U);
    EXPECT_THROW(e.upload(leaves), offload_exhausted);
    EXPECT_EQ(device.usage().live, there) << "those that are there are not uploaded again";
}

TEST(engine, refuses_an_offloaded_reader_of_a_leaf_that_was_not_uploaded) {
    runtime<heap<context>, bump_arena<extra>> r("llama-2-7b-small");
    EXPECT_THROW(r.eval(too_many), shape_error);
    r.upload();
    r.model().prepare(phase::decode, {4, 8});
    EXPECT_EQ(r.eval(too_many), reference("llama-2-7b-small")) << "usable after the refusal";
}

TEST(engine, ends_the_eval_when_an_exception_leaves_it) {
    runtime<static_pool<context, 64>, free_list<extra>> r("llama-2-7b-small", false);
    EXPECT_THROW(r.eval(too_many), shape_error);
    EXPECT_EQ(r.loop().extras().usage().live, 0U);
    EXPECT_EQ(r.loop().context_source().slots().usage().live, 0U);
}

TEST(engine, refuses_an_eval_when_the_ring_would_hand_out_a_live_extra_again) {
    sim_device device(device_bytes);
    loaded_model model(*find_model("llama-2-7b"));
    engine<heap<context>, ring<extra, 100>, sim_device> e(device);
    auto eval = e.begin_eval();
    graph& g = *eval.context().new_graph(model.need().graph_nodes);
    model.build(eval.context(), g);
    mark_offloaded(g, 101);
    eval.plan(g);
    EXPECT_THROW(eval.attach(g), offload_exhausted);
    EXPECT_EQ(e.extras().overruns(), 1U);
}

TEST(engine, a_plan_that_no_memory_can_be_had_for_leaves_the_engine_usable) {
    sim_device device(device_bytes);
    engine<heap<context>, bump_arena<extra>, sim_device> e(device);
    const auto eval = [&](std::int64_t elements, std::size_t news = too_many) {
        auto one = e.begin_eval();
        graph& g = *one.new_graph(2);
        tensor* in = one.context().new_input(type::f32, {elements});
        tensor* out = scale(one.context(), in, 2.0F);
        g.expand(out);
        test::fail_new_after(news);
        one.plan(g);
        static_cast<float*>(in->data)[0] = 21.0F;
        one.execute(g);
        return static_cast<float*>(out->data)[0];
    };
    EXPECT_EQ(eval(1), 42.0F);
    const std::size_t before = test::calls_of_new();
    EXPECT_THROW(eval(1000, 0), std::bad_alloc);
    test::fail_new_after(too_many);
    EXPECT_EQ(test::calls_of_new(), before + 1) << "the buffer is all that a larger plan of as many nodes asks for";
    EXPECT_EQ(eval(1), 42.0F);
}

TEST(engine, says_what_the_device_refused_and_why) {
    runtime<heap<context>, bump_arena<extra>> r("llama-2-7b-small");
    r.upload();
    r.model().prepare(phase::decode, {4, 8});
    r.device().inject({.at = device::call::launch, .first = 5});
    try {
        r.eval(too_many);
        FAIL() << "a launch that failed went unseen";
    } catch (const device_refused& e) {
        const std::string why(r.device().last_error());
        EXPECT_FALSE(why.empty());
        EXPECT_EQ(std::string(e.what()).find("sim_device refused "), 0U) << e.what();
        EXPECT_NE(std::string(e.what()).find(": " + why), std::string::npos) << e.what();
    }
    r.device().clear_faults();
    EXPECT_EQ(r.eval(too_many), reference("llama-2-7b-small")) << "usable after the refusal";
}

// Copies do not hold the host up, and the planner gives bytes to the next tensor as soon as their last reader has run.
TEST(engine, a_host_node_does_not_write_to_bytes_that_are_still_being_copied_to_the_device) {
    sim_device device(device_bytes);
    malloc_source source;
    context leaves({.growing = growth{}, .no_alloc = false}, any_source(source));
    tensor* weights = leaves.new_tensor(type::f32, {32, 32});
    std::memset(weights->data, 0, weights->bytes());
    engine<heap<context>, bump_arena<extra>, sim_device> e(device);
    e.upload({&weights, 1});
    auto eval = e.begin_eval();
    context& c = eval.context();
    graph& g = *eval.new_graph(8);
    std::array inputs{c.new_input(type::f32, {32}), c.new_input(type::f32, {32})};
    tensor* copied = silu(c, inputs[0]);
    tensor* on_device = matmul(c, weights, copied);
    on_device->offload = true;
    g.expand(on_device);
    tensor* next = gelu(c, inputs[1]);
    g.expand(add(c, next, on_device));
    eval.plan(g);
    ASSERT_EQ(next->data, copied->data) << "not the case that is meant";
    eval.attach(g);
    for (tensor* t : inputs) std::memset(t->data, 0, t->bytes());
    eval.execute(g);
    EXPECT_EQ(device.usage().races, 0U) << device.last_error();
}

}  // namespace
}  // namespace alloclab::tensor
