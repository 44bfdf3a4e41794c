// Whole evals and pools over cuda_device.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "alloclab/bytes.hpp"
#include "alloclab/device/stream_pool.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "cuda_support.hpp"

namespace alloclab::device {
namespace {

using tensor::context;
using tensor::loaded_model;

class cuda_eval : public cuda_on_the_fake {
protected:
    using engine = tensor::engine<hybrid<context>, bump_arena<tensor_extra>, cuda_device>;

    cuda_eval() { model.prepare(tensor::phase::decode, {4, 8}); }

    void upload(engine& loop) {
        std::vector<tensor::tensor*> leaves;
        for (const auto list : {model.weights(), model.caches()})
            for (const tensor::leaf& l : list) leaves.push_back(l.of);
        loop.upload(leaves);
    }
    void eval(engine& loop) {
        auto eval = loop.begin_eval();
        tensor::graph& g = *eval.new_graph(model.need().graph_nodes);
        (void)model.build(eval.context(), g);
        tensor::mark_offloaded(g, too_many);
        eval.plan(g);
        eval.attach(g);
        for (const tensor::input_value& in : model.inputs()) std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
        eval.submit(g);
    }

    cuda_device device;
    loaded_model model{*tensor::find_model("llama-2-7b-small"), 7, engine::bytes_behind_tensor};
};

TEST_F(cuda_eval, events_are_constant_after_warm_up_and_none_at_the_end) {
    {
        engine loop(device, {.context_bytes = 4096, .growing = {}, .frames = 3});
        upload(loop);
        for (int warm = 0; warm < 6; ++warm) eval(loop);
        const cuda_usage before = device.usage();
        const std::size_t made = fake::calls("cudaEventCreateWithFlags");
        EXPECT_GT(before.created_events, 3U) << "closing events and those of caches";
        for (int i = 0; i < 1000; ++i) eval(loop);
        loop.synchronize();
        EXPECT_EQ(device.usage().created_events, before.created_events);
        EXPECT_EQ(fake::calls("cudaEventCreateWithFlags"), made);
        EXPECT_EQ(device.usage().live_bytes, before.live_bytes);
        EXPECT_EQ(device.usage().source_calls, before.source_calls);
    }
    EXPECT_EQ(device.usage().live_events, 0U);
    EXPECT_EQ(device.usage().live, 0U);
    EXPECT_EQ(device.usage().errors, 0U) << device.last_error();
}

TEST_F(cuda_eval, a_pool_that_is_full_flushes_and_tries_again) {
    stream_pool<cuda_device> pool(device);
    const stream s = device.create_stream();
    for (int i = 0; i < 3; ++i) {
        void* p = pool.allocate(16 * mib, s);
        ASSERT_NE(p, nullptr);
        void* q = pool.allocate(24 * mib, s);
        ASSERT_NE(q, nullptr) << device.last_error();
        EXPECT_TRUE(device.fill(q, std::byte{1}, 24 * mib, s));
        EXPECT_TRUE(pool.deallocate(p, s));
        EXPECT_TRUE(pool.deallocate(q, s));
        void* all = pool.allocate(56 * mib, s);
        ASSERT_NE(all, nullptr) << device.last_error();
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
        EXPECT_TRUE(device.fill(all, std::byte{2}, 56 * mib, s));
        EXPECT_TRUE(pool.deallocate(all, s));
        EXPECT_EQ(pool.usage().flushes, static_cast<std::size_t>(2 * i + 1));
    }
    EXPECT_EQ(pool.allocate(2 * capacity, s), nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_EQ(pool.usage().live, 0U);
}

}  // namespace
}  // namespace alloclab::device
