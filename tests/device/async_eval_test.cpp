// Evals in flight: that frames overlap, that their order is kept where they share something, and that the simulator
// sees it by name where it is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "alloclab/device/sim_device.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "pipeline.hpp"

namespace alloclab::tensor {
namespace {

using device::call;
using device::sim_device;
using test::bytes;
using test::cache;
using test::device_bytes;
using test::extra;
using test::pipeline;
using one_by_one = pipeline<bump_arena<extra>>;

// ---- the same bits

template <class Extras>
class frames_with : public ::testing::Test {};
TYPED_TEST_SUITE(frames_with, extra_strategies<extra>::into<::testing::Types>);

/// What a model computes with some frames in flight: `tokens` decodes over a cache, each behind the last.
template <class Extras>
std::vector<bytes> decodes(std::string_view name, std::size_t frames, std::int32_t tokens, std::size_t offload) {
    using engine_type = engine<hybrid<context>, Extras, sim_device>;
    loaded_model model(*find_model(name), 7, engine_type::bytes_behind_tensor);
    sim_device device(std::size_t{256} << 20);
    std::vector<bytes> all;
    {
        engine_type loop(device, {.context_bytes = 4096, .growing = {}, .reset_context = true, .frames = frames});
        std::vector<tensor*> leaves;
        for (const auto list : {model.weights(), model.caches()})
            for (const leaf& l : list) leaves.push_back(l.of);
        loop.upload(leaves);
        std::vector<const tensor*> flying;
        const auto land = [&] {
            loop.synchronize();
            for (const tensor* t : flying) {
                const auto* first = static_cast<const std::byte*>(t->data);
                all.emplace_back(first, first + t->bytes());
            }
            flying.clear();
        };
        const auto submit = [&] {
            auto eval = loop.begin_eval();
            graph& g = *eval.new_graph(model.need().graph_nodes);
            const tensor* result = model.build(eval.context(), g);
            mark_offloaded(g, offload);
            eval.plan(g);
            eval.attach(g);
            for (const input_value& in : model.inputs()) std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
            eval.submit(g);
            flying.push_back(result);
            if (flying.size() == std::max<std::size_t>(frames, 1)) land();
        };
        if (has_phase(model.info(), phase::encode)) {
            model.prepare(phase::encode, {});
            submit();
        }
        for (std::int32_t past = 0; past < tokens; ++past) {
            model.prepare(phase::decode, {1, past});
            submit();
        }
        land();
    }
    EXPECT_EQ(device.usage().races, 0U) << device.last_error();
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
    EXPECT_EQ(device.usage().live_events, 0U);
    return all;
}

TYPED_TEST(frames_with, these_extras_decode_the_same_bits_as_the_host_over_caches_that_frames_share) {
    for (const std::string_view model : {"llama-2-7b-small", "llama-3-8b-small", "whisper-base-small"}) {
        const std::vector<bytes> expected = decodes<per_tensor<extra>>(model, 1, 9, 0);
        for (const std::size_t frames : {1U, 2U, 4U}) {
            EXPECT_EQ(decodes<TypeParam>(model, frames, 9, too_many), expected) << model << ", frames " << frames;
            EXPECT_EQ(decodes<TypeParam>(model, frames, 9, 25), expected) << model << ", partly, frames " << frames;
        }
    }
}

TYPED_TEST(frames_with, these_extras_are_used_again_without_a_race_and_without_growth) {
    pipeline<TypeParam> p(3);
    std::size_t reserved = 0;
    for (int i = 0; i < 200; ++i) {
        p.next();
        if (i == 80) reserved = p.loop->extras_usage().reserved_bytes;
    }
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
    if (!describe<TypeParam>().leaks) {
        EXPECT_EQ(p.loop->extras_usage().reserved_bytes, reserved);
    }
}

/// An extra that knows of no events.
struct plain_extra {
    void* on = nullptr;
    [[nodiscard]] void* data(std::size_t) const noexcept { return on; }
    void place(std::size_t, void* p) noexcept { on = p; }
};

TEST(async_eval, extras_without_events_or_with_too_few_of_them_keep_the_order_too) {
    const std::vector<bytes> expected = one_by_one(1).outputs(40, 1);
    const auto same = [&](auto tag) {
        pipeline<typename decltype(tag)::type> p(4);
        EXPECT_EQ(p.outputs(40, 4), expected);
        EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
        EXPECT_EQ(p.loop->events().created(), 4U) << "closing events only";
    };
    same(std::type_identity<bump_arena<plain_extra>>{});
    same(std::type_identity<bump_arena<device::legacy_tensor_extra>>{});
}

TEST(async_eval, lazy_and_compact_extras_compute_the_same_bits) {
    const std::vector<bytes> expected = one_by_one(1).outputs(40, 1);
    EXPECT_EQ(pipeline<bump_arena<device::lazy_tensor_extra>>(4).outputs(40, 4), expected);
    EXPECT_EQ(pipeline<free_list<device::compact_tensor_extra>>(4).outputs(40, 4), expected);
}

TEST(async_eval, a_new_context_for_each_eval_stays_until_its_frame_comes_round) {
    const std::vector<bytes> expected = one_by_one(1).outputs(40, 1);
    pipeline<inline_extra<extra>> p(4, cache::writes, false);
    EXPECT_EQ(p.outputs(40, 4), expected);
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
    EXPECT_EQ(p.loop->context_source().slots().usage().live, 4U);
}

TEST(async_eval, contexts_are_made_once_for_each_frame_or_once_for_each_eval) {
    for (const bool reset : {true, false}) {
        sim_device device(device_bytes);
        engine<hybrid<context>, bump_arena<extra>, sim_device, compose<malloc_source, counting>> loop(
            device, {.context_bytes = 4096, .growing = {}, .reset_context = reset, .frames = 2});
        for (int i = 0; i < 10; ++i) loop.begin_eval().context().new_tensor(type::f32, {1});
        EXPECT_EQ(loop.context_source().buffers().traffic().acquired, reset ? 2U : 10U);
    }
}

// ---- what waiting means

TEST(async_eval, outputs_stay_where_they_are_until_the_frame_comes_round_again) {
    const std::vector<bytes> expected = one_by_one(1).outputs(4, 1);
    one_by_one p(4);
    std::vector<const tensor*> out;
    for (int i = 0; i < 4; ++i) out.push_back(p.next());
    p.loop->synchronize();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(one_by_one::read(*out[i]), expected[i]);
}

TEST(async_eval, execute_waits_for_its_own_eval) {
    const std::vector<bytes> expected = one_by_one(1).outputs(10, 1);
    one_by_one p(2);
    for (const bytes& e : expected) {
        const tensor* out = p.next(true);
        p.device.host_touches(out->data, out->bytes(), device::access::read, "the caller");
        EXPECT_EQ(one_by_one::read(*out), e);
    }
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
}

TEST(async_eval, reading_an_output_before_the_wait_is_a_race) {
    one_by_one p(2);
    const tensor* out = p.next();
    EXPECT_FALSE(p.device.host_touches(out->data, out->bytes(), device::access::read, "the caller"));
    EXPECT_EQ(p.said.naming("scores"), 1U) << p.device.last_error();
}

TEST(async_eval, frames_overlap_where_they_share_nothing_that_is_written) {
    const auto nanoseconds_of = [](std::size_t frames) {
        device::cost_profile slow;
        slow.flops = 1e8;  // a kernel takes longer than its launch
        one_by_one p(frames, cache::leaves, true, slow);
        for (std::size_t i = 0; i < frames; ++i) p.next();  // warm: buffers and events are made
        p.loop->synchronize();
        const auto before = p.device.now();
        for (int i = 0; i < 40; ++i) p.next();
        p.loop->synchronize();
        return p.device.now() - before;
    };
    const auto one = nanoseconds_of(1), two = nanoseconds_of(2), four = nanoseconds_of(4);
    EXPECT_LT(two, one);
    EXPECT_LE(four, two);
}

TEST(async_eval, a_graph_can_be_submitted_and_planned_again_within_one_eval) {
    const std::vector<bytes> expected = one_by_one(1).outputs(20, 1);
    one_by_one p(2);
    for (const bytes& e : expected) {
        const tensor* out = p.next(cache::writes, false, 3);
        p.loop->synchronize();
        EXPECT_EQ(one_by_one::read(*out), e);
    }
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
}

// Who read the cache before anyone wrote to it has left no event there.
TEST(async_eval, the_first_write_to_a_leaf_waits_for_those_who_have_only_read_it) {
    one_by_one p(4);
    for (int i = 0; i < 3; ++i) p.next(cache::reads);
    p.next(cache::writes);
    for (int i = 0; i < 40; ++i) p.next(i % 3 == 0 ? cache::writes : cache::reads);
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
}

TEST(async_eval, a_cache_that_is_an_output_is_copied_home_before_another_frame_writes_to_it) {
    one_by_one one(1), p(3);
    for (int i = 0; i < 20; ++i) {
        p.next(cache::shows);
        one.next(cache::shows);
    }
    const tensor *shown = p.next(cache::shows, true), *expected = one.next(cache::shows, true);
    EXPECT_EQ(one_by_one::read(shown->root()), one_by_one::read(expected->root()));
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
}

TEST(async_eval, a_frame_that_reads_on_the_host_what_another_wrote_on_the_device_waits_for_it) {
    one_by_one one(1), p(3);
    for (int i = 0; i < 20; ++i) {
        p.next(cache::writes);
        one.next(cache::writes);
        const tensor* out = p.next(cache::reads, true, 1, 0);
        EXPECT_EQ(one_by_one::read(*out), one_by_one::read(*one.next(cache::reads, true, 1, 0)));
    }
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
}

// ---- events

TEST(async_eval, events_are_constant_after_the_first_round_over_a_thousand_evals) {
    one_by_one p(4);
    for (int i = 0; i < 4; ++i) p.next();
    const std::size_t made = p.device.usage().live_events;
    EXPECT_EQ(made, 8U) << "a closing event and one of the cache for each frame";
    for (int i = 0; i < 1000; ++i) p.next();
    EXPECT_EQ(p.device.usage().live_events, made);
    EXPECT_EQ(p.device.usage().count(call::create_event), made);
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
    p.loop.reset();
    EXPECT_EQ(p.device.usage().live_events, 0U);
    EXPECT_EQ(p.device.usage().count(call::destroy_event), made);
}

TEST(async_eval, one_frame_has_no_stream_and_no_event) {
    one_by_one p(1);
    for (int i = 0; i < 20; ++i) p.next();
    EXPECT_EQ(p.device.usage().count(call::create_stream), 0U);
    EXPECT_EQ(p.device.usage().count(call::create_event), 0U);
    EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
}

TEST(async_eval, leaves_that_are_only_read_have_no_event) {
    one_by_one p(4, cache::leaves);
    for (int i = 0; i < 20; ++i) p.next();
    EXPECT_EQ(p.device.usage().live_events, 4U) << "closing events";
    EXPECT_EQ(p.device.usage().count(call::wait), 0U);
}

// ---- faults

TEST(async_eval, without_events_to_be_had_or_recorded_the_host_keeps_the_order) {
    const std::vector<bytes> expected = one_by_one(1).outputs(40, 1);
    for (const call at : {call::create_event, call::record})
        for (const std::size_t every : {1U, 2U, 3U}) {
            one_by_one p(4);
            p.device.inject({.at = at, .first = 1, .every = every});
            EXPECT_EQ(p.outputs(40, 4), expected);
            for (int i = 0; i < 40; ++i) p.next(i % 5 == 0 ? cache::writes : cache::leaves);
            EXPECT_GT(p.device.usage().faults, 0U);
            EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
        }
}

// Each call in turn: refused with the device's own reason, nothing lost, and the next eval computes.
TEST(async_eval, any_failing_call_is_told_with_its_reason_and_leaves_the_engine_usable) {
    for (const call at : {call::launch, call::copy_to_device, call::copy_to_host, call::wait, call::synchronize})
        for (std::size_t k = 1; k <= 8; ++k) {
            SCOPED_TRACE(std::string(name_of(at)) + " number " + std::to_string(k));
            one_by_one p(2);
            for (int i = 0; i < 2; ++i) p.next(true);
            p.device.inject({.at = at, .first = k});
            bool refused = false;
            for (int i = 0; i < 8 && !refused; ++i) {
                try {
                    p.next(true);
                } catch (const device_refused& e) {
                    refused = true;
                    EXPECT_NE(std::string(e.what()).find(std::string(": ") + std::string(p.device.last_error())),
                              std::string::npos)
                        << e.what();
                }
            }
            EXPECT_TRUE(refused);
            p.device.clear_faults();
            const tensor* out = p.next(true);
            EXPECT_EQ(out->bytes(), one_by_one::read(*out).size());
            EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
        }
}

TEST(async_eval, a_refused_stream_leaves_none_behind) {
    sim_device device(device_bytes);
    device.inject({.at = call::create_stream, .first = 3});
    EXPECT_THROW((engine<hybrid<context>, bump_arena<extra>, sim_device>(device, {.frames = 4})), std::bad_alloc);
    EXPECT_EQ(device.usage().live_streams, 0U);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

// ---- mutations

template <class Extras>
class caught_with : public ::testing::Test {};
using reusing = ::testing::Types<bump_arena<extra>, free_list<extra>, inline_extra<extra>>;
TYPED_TEST_SUITE(caught_with, reusing);

TYPED_TEST(caught_with, these_extras_a_frame_used_before_its_closing_event_is_a_race_by_name_every_time) {
    for (const cache what : {cache::leaves, cache::reads, cache::writes})
        for (const std::size_t frames : {2U, 3U, 4U}) {
            pipeline<TypeParam, device::test::hasty_device> p(frames, what);
            for (std::size_t i = 0; i < frames; ++i) p.next();
            EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
            for (int reuse = 1; reuse <= 50; ++reuse) {
                p.said.lines.clear();
                p.next();
                ASSERT_GT(p.said.naming("host bytes of token"), 0U) << "reuse " << reuse;
                ASSERT_GT(p.said.naming("extra of hidden"), 0U) << "reuse " << reuse;
            }
            p.loop->synchronize();
        }
}

TEST(async_eval, without_the_wait_for_other_frames_every_use_of_the_cache_is_a_race_by_name) {
    const auto caught = [](auto tag) {
        pipeline<typename decltype(tag)::type, device::test::deaf_device> p(4);
        p.next();
        EXPECT_EQ(p.device.usage().races, 0U) << p.device.last_error();
        // Beyond one round the host has waited for the closing event of three evals ago, and for nothing later.
        for (int i = 1; i < 100; ++i) {
            p.said.lines.clear();
            p.next();
            ASSERT_GT(p.said.naming("scores"), 0U) << "eval " << i;
            ASSERT_GT(p.said.naming("keep"), 0U) << "eval " << i;
        }
        p.loop->synchronize();
    };
    caught(std::type_identity<bump_arena<extra>>{});
    caught(std::type_identity<bump_arena<plain_extra>>{});
}

}  // namespace
}  // namespace alloclab::tensor
