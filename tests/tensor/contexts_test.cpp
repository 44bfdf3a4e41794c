// Contexts from slots and buffers: who gives what back, when, and what a refusal leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../laws/named.hpp"
#include "alloclab/layer/checked.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/models/whisper.hpp"
#include "context_support.hpp"

namespace alloclab::tensor {
namespace {

using test::counted_source;
using test::failing_source;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr context_options small{.bytes = context::alignment * 8};
using bounded_pool = static_pool<context, 64>;

static_assert(locks_over_buffer<scan_pool<context, 64, lock_over::buffer>>);
static_assert(!locks_over_buffer<scan_pool<context, 64>>);

using states = std::vector<std::vector<context_ptr>>;

template <class Contexts>
std::vector<context_ptr> make_state(Contexts& from, bool reduced) {
    std::vector<context_ptr> state(whisper_state_contexts(whisper_shapes[0], reduced).size());
    for (context_ptr& c : state) {
        c = from.make(small);
        c->new_tensor(type::f32, {4});
    }
    return state;
}

/// whisper.cpp#2521: the ninth parallel state crashed. With one context for the model, so many states fit, one more is
/// refused and leaves the pool as it was, and its turn comes when another one ends.
template <class Slots>
void expect_states(bool reduced, std::size_t fitting) {
    SCOPED_TRACE(std::string(Slots::name) + (reduced ? ", reduced" : ""));
    contexts<Slots, counted_source> pool;
    const context_ptr model = pool.make(small);
    states made;
    for (std::size_t i = 0; i < fitting; ++i) ASSERT_NO_THROW(made.push_back(make_state(pool, reduced))) << i;
    const std::size_t live = 1 + fitting * made[0].size();
    EXPECT_EQ(pool.slots().usage().live, live);

    for (int attempt = 0; attempt < 3; ++attempt) {
        try {
            made.push_back(make_state(pool, reduced));
            ADD_FAILURE() << "not refused";
        } catch (const context_exhausted& refused) {
            EXPECT_THAT(refused.what(), AllOf(HasSubstr(std::string(Slots::name)), HasSubstr("64 of 64 slots in use"),
                                              HasSubstr("buffer of 512 bytes")));
            EXPECT_EQ(refused.slots_in_use, 64u);
            EXPECT_EQ(refused.slot_capacity, 64u);
            EXPECT_EQ(refused.needed, 512u);
        }
        EXPECT_EQ(pool.slots().usage().live, live);
        EXPECT_EQ(pool.buffers().traffic().live, live);
    }
    for (const auto& state : made)
        for (const context_ptr& c : state) EXPECT_EQ(c->tensors(), 1u);

    made.erase(made.begin() + 3);
    made.push_back(make_state(pool, reduced));
    EXPECT_EQ(pool.slots().usage().live, live);
}

TEST(contexts, nine_whisper_states_fit_a_pool_of_64_and_fifteen_reduced_ones) {
    for (const bool reduced : {false, true}) {
        const std::size_t fitting = reduced ? 15 : 9;
        expect_states<static_pool<context, 64>>(reduced, fitting);
        expect_states<locked_static_pool<context>>(reduced, fitting);
        expect_states<scan_pool<context, 64>>(reduced, fitting);
        expect_states<scan_pool<context, 64, lock_over::buffer>>(reduced, fitting);
    }
}

TEST(contexts, hybrid_refuses_no_state_and_holds_64_in_front) {
    contexts<hybrid<context>> pool;
    const context_ptr model = pool.make(small);
    states made;
    for (int i = 0; i < 40; ++i) made.push_back(make_state(pool, false));
    EXPECT_EQ(pool.slots().usage().live, 281u);
    EXPECT_EQ(pool.slots().front().usage().live, 64u);
    EXPECT_EQ(pool.slots().in_back(), 217u);
    made.erase(made.begin());
    EXPECT_EQ(pool.slots().front().usage().live, 57u) << "each slot goes home";
    made.clear();
    EXPECT_EQ(pool.slots().usage().live, 1u);
    EXPECT_EQ(pool.slots().in_back(), 0u);
}

// whisper.cpp#149: repeated loading and unloading ran the pool dry.
template <class Slots>
void expect_no_drain() {
    SCOPED_TRACE(std::string(Slots::name));
    contexts<Slots, counted_source> pool;
    for (int cycle = 0; cycle < 200; ++cycle) {
        const context_ptr loader = pool.make(small), model = pool.make(small), cache = pool.make(small);
        ASSERT_EQ(pool.buffers().traffic().live, 3u);
    }
    EXPECT_EQ(pool.buffers().traffic().live, 0u);
    if constexpr (measured<Slots>) {
        EXPECT_EQ(pool.slots().usage().live, 0u);
    }
}

TEST(contexts, loading_and_unloading_200_times_drains_nothing) {
    context_strategies<context>::for_each([]<class Slots>(type_tag<Slots>) {
        if (available<Slots>()) expect_no_drain<Slots>();
    });
}

// --- context_ptr

// whisper.cpp#2220: a handle was overwritten without release.
TEST(context_ptr, assignment_releases_what_it_held) {
    contexts<compose<bounded_pool, counting>> pool;
    context_ptr held = pool.make(small);
    for (int i = 0; i < 500; ++i) held = pool.make(small);
    EXPECT_EQ(pool.slots().traffic().peak, 2u);
    EXPECT_EQ(pool.slots().traffic().live, 1u);
    held = nullptr;
    EXPECT_EQ(pool.slots().traffic().live, 0u);
}

// stable-diffusion.cpp#206: the second destroy of an owner.
TEST(context_ptr, moved_from_is_empty_and_every_context_goes_home_once) {
    contexts<compose<bounded_pool, counting>> here;
    contexts<compose<heap<context>, counting>> there;
    {
        context_ptr a = here.make(small), b = there.make(small);
        const context* made_here = a.get();
        context_ptr moved = std::move(a);
        EXPECT_EQ(a, nullptr);
        EXPECT_EQ(moved.get(), made_here);
        a.reset();
        std::swap(moved, b);
        EXPECT_EQ(b.get(), made_here);
        std::vector<context_ptr> many;
        for (int i = 0; i < 40; ++i) many.push_back(i % 2 == 0 ? here.make(small) : there.make(small));
        many.erase(many.begin(), many.begin() + 7);
        std::rotate(many.begin(), many.begin() + 5, many.end());
    }
    EXPECT_EQ(here.slots().traffic().acquired, here.slots().traffic().released);
    EXPECT_EQ(there.slots().traffic().acquired, there.slots().traffic().released);
    EXPECT_EQ(context_ptr{}, nullptr);
}

std::vector<std::string>& events() {
    static std::vector<std::string> all;
    return all;
}
struct told_slots : bounded_pool {
    void* acquire() noexcept {
        events().push_back("take slot");
        return bounded_pool::acquire();
    }
    void release(void* slot) noexcept {
        events().push_back("give slot");
        bounded_pool::release(slot);
    }
};
struct told_buffers : malloc_source {
    void* allocate(std::size_t bytes, std::size_t align) noexcept {
        events().push_back("take buffer");
        return bytes < 100'000 ? malloc_source::allocate(bytes, align) : nullptr;
    }
    void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept {
        events().push_back("give buffer");
        malloc_source::deallocate(p, bytes, align);
    }
};

TEST(contexts, the_buffer_goes_back_before_the_slot_that_describes_it) {
    contexts<told_slots, told_buffers> pool;
    events().clear();
    pool.make(small).reset();
    EXPECT_THAT(events(), ElementsAre("take slot", "take buffer", "give buffer", "give slot"));
    events().clear();
    EXPECT_EQ(pool.try_make({.bytes = 100'000}), nullptr);
    EXPECT_THAT(events(), ElementsAre("take slot", "take buffer", "give slot"));
    events().clear();
    pool.make({}).reset();
    EXPECT_THAT(events(), ElementsAre("take slot", "give slot")) << "no buffer, nothing to give back";
}

// --- refusals

template <class Slots>
void expect_nothing_leaks_when_buffers_fail() {
    SCOPED_TRACE(std::string(Slots::name));
    bool all_served = false;
    for (std::size_t k = 0; !all_served; ++k) {
        ASSERT_LT(k, 200u);
        contexts<Slots, failing_source> pool;
        pool.buffers().fail_after(k);
        std::vector<context_ptr> made;
        for (int i = 0; i < 5; ++i) {
            context_ptr c = pool.try_make({.bytes = 512, .growing = {.first_bytes = 512, .max_bytes = 2048}});
            if (c == nullptr) continue;
            for (int t = 0; t < 40; ++t) (void)c->try_new_tensor(type::f32, {4});
            made.push_back(std::move(c));
        }
        all_served = pool.buffers().refused() == 0;
        EXPECT_TRUE(all_served || pool.buffers().base().traffic().acquired == k);
        if constexpr (measured<Slots>) {
            EXPECT_EQ(pool.slots().usage().live, made.size());
        }
        made.clear();
        EXPECT_EQ(pool.buffers().base().traffic().live, 0u);
        EXPECT_EQ(pool.buffers().base().traffic().live_bytes, 0u);
        pool.buffers().fail_after(too_many);
        for (int i = 0; i < 64; ++i) made.push_back(pool.make(small));
    }
}

TEST(contexts, a_buffer_that_fails_at_any_call_leaks_nothing_and_costs_no_slot) {
    expect_nothing_leaks_when_buffers_fail<bounded_pool>();
    expect_nothing_leaks_when_buffers_fail<hybrid<context>>();
    expect_nothing_leaks_when_buffers_fail<heap<context>>();
    expect_nothing_leaks_when_buffers_fail<locked_static_pool<context>>();
    expect_nothing_leaks_when_buffers_fail<scan_pool<context, 64>>();
    expect_nothing_leaks_when_buffers_fail<scan_pool<context, 64, lock_over::buffer>>();
}

template <class Slots>
std::string refusal_without_memory() {
    contexts<Slots, failing_source> pool;
    const context_ptr one = pool.make(small);
    pool.buffers().fail_after(0);
    try {
        (void)pool.make({.bytes = 12345});
    } catch (const context_exhausted& refused) {
        EXPECT_EQ(refused.needed, 12345u);
        return refused.what();
    }
    return "not refused";
}

TEST(contexts, a_refused_buffer_is_told_with_its_size_and_the_slots) {
    EXPECT_EQ(refusal_without_memory<bounded_pool>(),
              "no context from static_pool: 1 of 64 slots in use, buffer of 12345 bytes");
    EXPECT_EQ(refusal_without_memory<heap<context>>(),
              "no context from heap_malloc: the source is exhausted, buffer of 12345 bytes");
}

TEST(contexts, without_a_slot_no_buffer_is_asked_for) {
    contexts<compose<bounded_pool, failing>, counted_source> pool;
    pool.slots().fail_after(1);
    const context_ptr one = pool.make(small);
    EXPECT_EQ(pool.try_make(small), nullptr);
    EXPECT_THROW((void)pool.make(small), context_exhausted);
    EXPECT_EQ(pool.buffers().traffic().acquired, 1u);
    EXPECT_EQ(pool.slots().usage().live, 1u);
}

// llama.cpp#18168, whisper.cpp PR#150: the wrong order, and a forgotten release, are told by the strategy's name.
TEST(contexts, that_die_before_their_contexts_say_so_when_checked) {
    static std::vector<violation> seen;
    seen.clear();
    const violation_reporter before = set_violation_reporter([](const violation& v) noexcept { seen.push_back(v); });
    context* forgotten = nullptr;
    {
        contexts<compose<heap<context>, checked>> pool;
        forgotten = pool.make({}).release();
        pool.make(small).reset();
    }
    set_violation_reporter(before);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].kind, violation::still_live);
    EXPECT_EQ(seen[0].pointer, forgotten);
    EXPECT_EQ(seen[0].owner, "checked:heap_malloc");
    forgotten->~context();
    std::free(forgotten);
}

TEST(contexts, buffers_go_back_as_they_were_taken) {
    static int violations = 0;
    const violation_reporter before = set_violation_reporter([](const violation&) noexcept { ++violations; });
    {
        contexts<compose<bounded_pool, checked>, compose<malloc_source, checked>> pool;
        for (const std::size_t bytes : {0U, 1U, 63U, 4096U}) {
            const context_ptr c = pool.make({.bytes = bytes, .growing = growth{}});
            for (int i = 0; i < 300; ++i) c->new_tensor(type::f32, {4});
            c->reset();
        }
    }
    set_violation_reporter(before);
    EXPECT_EQ(violations, 0);
}

// --- threads

/// A source during whose call another thread asks the pool for a slot.
struct watched_source : malloc_source {
    void* allocate(std::size_t bytes, std::size_t align) noexcept {
        if (ask) ask();
        return malloc_source::allocate(bytes, align);
    }
    static inline void (*ask)() = nullptr;
};

template <class Slots>
bool another_thread_gets_a_slot_during_the_buffer() {
    static contexts<Slots, watched_source>* pool = nullptr;
    static std::thread other;
    static std::atomic<bool> served;
    contexts<Slots, watched_source> here;
    pool = &here;
    served = false;
    static bool served_in_time;
    watched_source::ask = [] {
        watched_source::ask = nullptr;
        other = std::thread([] {
            const context_ptr c = pool->make({});
            served = true;
        });
        const auto patience = locks_over_buffer<Slots> ? std::chrono::milliseconds(100) : std::chrono::seconds(20);
        const auto until = std::chrono::steady_clock::now() + patience;
        while (!served && std::chrono::steady_clock::now() < until) std::this_thread::yield();
        served_in_time = served;
    };
    const context_ptr c = here.make(small);
    other.join();
    EXPECT_TRUE(served) << "in the end it is served";
    return served_in_time;
}

TEST(contexts, the_control_keeps_its_lock_over_the_buffer_and_the_others_do_not) {
    EXPECT_TRUE((another_thread_gets_a_slot_during_the_buffer<scan_pool<context, 64>>()));
    EXPECT_TRUE((another_thread_gets_a_slot_during_the_buffer<locked_hybrid<context>>()));
    EXPECT_FALSE((another_thread_gets_a_slot_during_the_buffer<scan_pool<context, 64, lock_over::buffer>>()));
}

TEST(contexts, of_a_shared_strategy_serve_several_threads) {
    context_strategies<context>::for_each([]<class Slots>(type_tag<Slots>) {
        if constexpr (contexts<Slots>::threads == thread_use::shared && laws::threads_are_judged<Slots>) {
            if (!available<Slots>()) return;
            SCOPED_TRACE(std::string(Slots::name));
            contexts<Slots, counted_source> pool;
            std::vector<std::thread> threads;
            for (int i = 0; i < 4; ++i)
                threads.emplace_back([&pool, i] {
                    for (int round = 0; round < 200; ++round) {
                        const context_ptr a = pool.make(small), b = pool.make(small);
                        tensor* t = a->new_tensor(type::f32, {i + 1});
                        b->new_graph(4)->expand(b->new_node(op::silu, type::f32, {4}, t));
                    }
                });
            for (std::thread& t : threads) t.join();
            EXPECT_EQ(pool.buffers().traffic().acquired, 1600u);
            EXPECT_EQ(pool.buffers().traffic().live, 0u);
        }
    });
}

}  // namespace
}  // namespace alloclab::tensor
