// checked: every misuse is reported with both names and does not reach the strategy below.
#include "alloclab/layer/checked.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "alloclab/extra/per_tensor.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/layer/locked.hpp"
#include "alloclab/presets.hpp"
#include "alloclab/source/buffer.hpp"
#include "alloclab/source/malloc.hpp"
#include "failing_new.hpp"

namespace alloclab {
namespace {

/// Puts a reporter in place that keeps what it is told, and asks `then` at each.
class checked_layer : public ::testing::Test {
protected:
    static inline std::vector<violation> found;
    static inline std::function<void(const violation&)> then;

    void SetUp() override {
        found.clear();
        then = nullptr;
        before_ = set_violation_reporter([](const violation& v) noexcept {
            found.push_back(v);
            if (then) then(v);
        });
    }
    void TearDown() override { set_violation_reporter(before_); }

    /// The one violation since the last call.
    static violation only() {
        EXPECT_EQ(found.size(), 1u);
        const violation v = found.empty() ? violation{} : found.back();
        found.clear();
        return v;
    }

private:
    violation_reporter before_ = nullptr;
};

using pool = static_pool<int, 8>;
using checked_pool = compose<pool, checked>;
using other_pool = compose<pool, counting, checked>;

/// The slots that a pool still has, in its order.
std::vector<void*> drain(pool& p) {
    std::vector<void*> all;
    while (void* slot = p.acquire()) all.push_back(slot);
    for (void* slot : all) p.release(slot);
    return all;
}

TEST_F(checked_layer, correct_use_reports_nothing) {
    {
        checked_pool p;
        for (int i = 0; i < 3; ++i) p.release(p.acquire());
        p.release(nullptr);
        void* slots[] = {p.acquire(), p.acquire()};
        for (void* s : slots) p.release(s);
        compose<malloc_source, checked> source;
        for (const std::size_t bytes : {0u, 1u, 100u}) source.deallocate(source.allocate(bytes, 8), bytes, 8);
        source.deallocate(nullptr, 5, 8);
    }
    EXPECT_TRUE(found.empty());
}

// Umpire#108: through another instance of the same strategy, from the stack, and past the end of a chunk.
TEST_F(checked_layer, no_misuse_reaches_the_pool_and_both_owners_are_named) {
    checked_pool a, b;
    other_pool c;
    void* const slot = a.acquire();
    const auto free_of_a = drain(a.base()), free_of_b = drain(b.base()), free_of_c = drain(c.base().base());
    int on_stack = 0;

    b.release(slot);
    violation v = only();
    EXPECT_EQ(v.kind, violation::other_owner);
    EXPECT_EQ(v.pointer, slot);
    EXPECT_EQ(v.bytes, sizeof(int));
    EXPECT_EQ(v.owner, "checked:static_pool");
    EXPECT_EQ(v.through, "checked:static_pool");

    c.release(slot);
    v = only();
    EXPECT_EQ(v.kind, violation::other_owner);
    EXPECT_EQ(v.owner, "checked:static_pool");
    EXPECT_EQ(v.through, "checked:counting:static_pool");

    for (void* foreign : {static_cast<void*>(&on_stack), static_cast<void*>(static_cast<int*>(slot) + 8),
                          static_cast<void*>(static_cast<char*>(slot) + 1)}) {
        a.release(foreign);
        v = only();
        EXPECT_EQ(v.kind, violation::foreign);
        EXPECT_EQ(v.owner, "");
        EXPECT_EQ(v.through, "checked:static_pool");
    }

    EXPECT_EQ(drain(a.base()), free_of_a);
    EXPECT_EQ(drain(b.base()), free_of_b);
    EXPECT_EQ(drain(c.base().base()), free_of_c);
    EXPECT_EQ(c.base().traffic().released, 0u);

    a.release(slot);
    EXPECT_TRUE(found.empty()) << "the owner may release it still";
    const auto free_after = drain(a.base());
    a.release(slot);
    v = only();
    EXPECT_EQ(v.kind, violation::released_twice);
    EXPECT_EQ(v.owner, "checked:static_pool");
    EXPECT_EQ(drain(a.base()), free_after);
}

TEST_F(checked_layer, a_wrong_size_is_reported_and_the_block_stays_live) {
    compose<malloc_source, counting, checked> source;
    void* p = source.allocate(100, 8);
    for (const std::size_t bytes : {99u, 101u, 0u}) {
        source.deallocate(p, bytes, 8);
        const violation v = only();
        EXPECT_EQ(v.kind, violation::wrong_size);
        EXPECT_EQ(v.bytes, 100u);
    }
    EXPECT_EQ(source.base().traffic().live, 1u);
    source.deallocate(p, 100, 8);
    EXPECT_TRUE(found.empty());
    EXPECT_EQ(source.base().traffic().live, 0u);
}

// whisper.cpp#149: a forgotten release is reported, one by one.
TEST_F(checked_layer, what_is_still_live_at_the_end_is_reported_each) {
    std::vector<void*> forgotten;
    {
        compose<static_pool<int, 1000>, checked> p;
        for (int i = 0; i < 700; ++i) forgotten.push_back(p.acquire());
        for (int i = 0; i < 10; ++i) {
            p.release(forgotten.back());
            forgotten.pop_back();
        }
    }
    ASSERT_EQ(found.size(), 690u);
    std::vector<void*> reported;
    for (const violation& v : found) {
        EXPECT_EQ(v.kind, violation::still_live);
        EXPECT_EQ(v.owner, "checked:static_pool");
        reported.push_back(const_cast<void*>(v.pointer));
    }
    std::sort(reported.begin(), reported.end());
    EXPECT_EQ(reported, forgotten);
}

TEST_F(checked_layer, a_dead_owners_pointers_are_foreign_to_the_next_at_the_same_address) {
    alignas(checked_pool) std::byte place[sizeof(checked_pool)];
    auto* first = ::new (place) checked_pool;
    void* slot = first->acquire();
    first->~over();
    only();
    auto* second = ::new (place) checked_pool;
    second->release(slot);
    EXPECT_EQ(only().kind, violation::foreign);
    second->~over();
    EXPECT_TRUE(found.empty());
}

TEST_F(checked_layer, use_after_reset_is_reported_with_its_owner) {
    checked_pool p;
    void* before = p.acquire();
    p.reset();
    p.release(before);
    violation v = only();
    EXPECT_EQ(v.kind, violation::released_twice);
    EXPECT_EQ(v.owner, "checked:static_pool");
    EXPECT_EQ(p.usage().live, 0u);
    void* again = p.acquire();
    EXPECT_EQ(again, before);
    p.release(again);
    EXPECT_TRUE(found.empty());
}

// A heap hands the same address to one owner after another.
TEST_F(checked_layer, an_address_that_moves_on_to_another_owner_is_that_ones) {
    alignas(16) std::byte memory[64];
    compose<buffer_source, checked> a{std::span<std::byte>(memory)}, b{std::span<std::byte>(memory)};
    void* p = a.allocate(8, 8);
    a.deallocate(p, 8, 8);
    ASSERT_EQ(b.allocate(8, 8), p);
    a.deallocate(p, 8, 8);
    EXPECT_EQ(only().kind, violation::other_owner);
    b.deallocate(p, 8, 8);
    EXPECT_TRUE(found.empty());
}

TEST_F(checked_layer, checked_parts_inside_a_checked_whole_agree) {
    using part = compose<static_pool<int, 2>, checked>;
    compose<fallback<part, compose<heap<int>, checked>>, checked> whole;
    void* slots[4];
    for (void*& s : slots) s = whole.acquire();
    for (void* s : slots) whole.release(s);
    EXPECT_TRUE(found.empty());
    whole.release(slots[0]);
    EXPECT_EQ(only().kind, violation::released_twice);
    EXPECT_EQ(whole.base().in_back(), 0u);
}

/// Calls back from inside of acquire and release, as a signal handler that interrupts them would.
struct interrupted_pool : pool {
    static constexpr std::string_view name = "interrupted";
    std::function<void()> interruption;
    void* acquire() noexcept {
        if (interruption) std::exchange(interruption, nullptr)();
        return pool::acquire();
    }
    void release(void* slot) noexcept {
        if (interruption) std::exchange(interruption, nullptr)();
        pool::release(slot);
    }
};

TEST_F(checked_layer, a_call_from_inside_a_call_is_refused_and_reported) {
    compose<interrupted_pool, checked> p;
    void* held = p.acquire();
    void* inner = held;
    p.base().interruption = [&] { inner = p.acquire(); };
    void* outer = p.acquire();
    EXPECT_NE(outer, nullptr) << "the interrupted call goes on";
    EXPECT_EQ(inner, nullptr);
    EXPECT_EQ(only().kind, violation::reentered);
    p.base().interruption = [&] { p.release(held); };
    p.release(outer);
    const violation v = only();
    EXPECT_EQ(v.kind, violation::reentered);
    EXPECT_EQ(v.pointer, held);
    EXPECT_EQ(p.usage().live, 1u);
    p.base().interruption = [&] { p.reset(); };
    outer = p.acquire();
    EXPECT_EQ(only().kind, violation::reentered);
    EXPECT_EQ(p.usage().live, 2u);
    p.release(held);
    p.release(outer);
    EXPECT_TRUE(found.empty());
}

TEST_F(checked_layer, an_interrupted_lock_is_not_waited_for) {
    compose<interrupted_pool, locked, checked> p;
    p.base().base().interruption = [&] { EXPECT_EQ(p.acquire(), nullptr); };
    p.release(p.acquire());
    EXPECT_EQ(only().kind, violation::reentered);
}

TEST_F(checked_layer, calls_from_inside_a_reporter_are_refused_without_an_end_to_reports) {
    checked_pool other;
    void* served = &other;
    then = [&](const violation&) { served = other.acquire(); };
    {
        checked_pool p;
        int on_stack = 0;
        p.release(&on_stack);
        EXPECT_EQ(only().kind, violation::foreign);
        EXPECT_EQ(served, nullptr);
        ASSERT_NE(p.acquire(), nullptr);
        served = &other;
    }
    EXPECT_EQ(only().kind, violation::still_live);
    EXPECT_EQ(served, nullptr);
    EXPECT_EQ(other.usage().live, 0u);
    then = nullptr;
    void* slot = other.acquire();
    EXPECT_NE(slot, nullptr) << "usable afterwards";
    other.release(slot);
}

TEST_F(checked_layer, a_reporter_may_end_another_owner) {
    auto other = std::make_unique<checked_pool>();
    then = [&](const violation&) { other.reset(); };
    int on_stack = 0;
    checked_pool p;
    p.release(&on_stack);
    EXPECT_EQ(only().kind, violation::foreign);
    EXPECT_EQ(other, nullptr);
}

TEST_F(checked_layer, no_memory_for_its_table_is_exhaustion_and_passes) {
    compose<static_pool<int, 64>, checked> p;
    p.release(p.acquire());
    std::vector<void*> taken;
    taken.reserve(64);
    {
        const failing_new no_memory;
        for (int i = 0; i < 3; ++i)
            if (void* slot = p.acquire()) taken.push_back(slot);
    }
    EXPECT_LE(taken.size(), 1u) << "one entry was there already";
    EXPECT_EQ(p.usage().live, taken.size()) << "what could not be listed went back";
    for (int i = 0; i < 10; ++i) {
        taken.push_back(p.acquire());
        ASSERT_NE(taken.back(), nullptr) << "usable afterwards";
    }
    for (void* slot : taken) p.release(slot);
    EXPECT_TRUE(found.empty());
}

TEST_F(checked_layer, many_releases_do_not_grow_the_table_and_the_last_is_still_known) {
    compose<heap<int>, checked> p;
    std::vector<void*> kept;
    for (int i = 0; i < 20'000; ++i) {
        void* slot = p.acquire();
        if (i % 2'000 == 0) kept.push_back(slot);
        else p.release(slot);
    }
    void* last = p.acquire();
    p.release(last);
    p.release(last);
    EXPECT_EQ(only().kind, violation::released_twice);
    for (void* slot : kept) p.release(slot);
    EXPECT_TRUE(found.empty());
}

TEST_F(checked_layer, threads_of_a_shared_strategy_share_the_table) {
    compose<heap<int>, checked> p;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            void* slots[4];
            for (int i = 0; i < 2500; ++i) {
                for (void*& s : slots) s = p.acquire();
                for (void* s : slots) p.release(s);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(found.empty());
}

// cumo#173: the strategy was switched between acquire and release.
TEST_F(checked_layer, a_slot_of_the_pool_released_to_the_heap_is_reported_and_neither_is_harmed) {
    checked_pool p;
    compose<heap<int>, checked> h;
    void* of_pool = p.acquire();
    void* of_heap = h.acquire();
    h.release(of_pool);
    violation v = only();
    EXPECT_EQ(v.owner, "checked:static_pool");
    EXPECT_EQ(v.through, "checked:heap_malloc");
    p.release(of_heap);
    v = only();
    EXPECT_EQ(v.owner, "checked:heap_malloc");
    EXPECT_EQ(v.through, "checked:static_pool");
    p.release(of_pool);
    h.release(of_heap);
    EXPECT_TRUE(found.empty());
}

TEST(checked, reports_on_stderr_unless_told_otherwise) {
    int on_stack = 0;
    ::testing::internal::CaptureStderr();
    {
        checked_pool p;
        p.release(&on_stack);
        static_cast<void>(p.acquire());
    }
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find(text_of(violation::foreign)), std::string::npos) << text;
    EXPECT_NE(text.find("given to \"checked:static_pool\""), std::string::npos) << text;
    EXPECT_NE(text.find(text_of(violation::still_live)), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

}  // namespace
}  // namespace alloclab
