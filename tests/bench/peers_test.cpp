// Other people's allocators, all of them in one process: what they hand out, and that the C library stays in place.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pinned.hpp"
#include "registry.hpp"
#include "touch.hpp"

namespace alloclab::bench::peers {
namespace {

TEST(peers, hand_out_slots_that_are_apart_aligned_and_wholly_writable_or_say_why_not) {
    slot_contenders::for_each([](auto tag) {
        using S = typename decltype(tag)::type;
        SCOPED_TRACE(std::string(S::name));
        if (!available<S>()) {
            if constexpr (requires { S::absence(); }) {
                EXPECT_NE(S::absence(), "");
            }
            return;
        }
        const auto strategy = std::make_unique<S>();
        std::vector<void*> slots(48);
        for (void*& slot : slots) {
            slot = strategy->acquire();
            ASSERT_NE(slot, nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot) % alignof(slot96), 0u);
            std::memset(slot, 0xA5, sizeof(slot96));
        }
        std::sort(slots.begin(), slots.end());
        for (std::size_t i = 1; i < slots.size(); ++i)
            EXPECT_GE(static_cast<std::byte*>(slots[i]) - static_cast<std::byte*>(slots[i - 1]), 96);
        for (void* slot : slots) strategy->release(slot);
    });
}

TEST(peers, leave_malloc_and_new_to_the_c_library_when_all_are_loaded) {
    slot_peers::for_each([](auto tag) { static_cast<void>(available<typename decltype(tag)::type>()); });
    for (const char* name : {"malloc", "free", "calloc", "posix_memalign"}) {
        Dl_info from{};
        ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, name), &from), 0);
        for (const char* other : {"jemalloc", "tcmalloc", "mimalloc"})
            EXPECT_EQ(std::string(from.dli_fname).find(other), std::string::npos) << name << " of " << from.dli_fname;
    }
    void* const block = std::malloc(96);
    EXPECT_FALSE(mimalloc_source::serves(block));
    std::free(block);
}

TEST(peers, extras_of_an_eval_are_apart_and_the_next_eval_gets_as_many) {
    extra_peers::for_each([](auto tag) {
        using X = typename decltype(tag)::type;
        SCOPED_TRACE(std::string(X::name));
        if (!available<X>()) return;
        X strategy;
        for (int eval = 0; eval < 2; ++eval) {
            strategy.begin_eval();
            std::set<bare_extra*> seen;
            for (int i = 0; i < 100; ++i) {
                bare_extra* e = strategy.acquire(lifetime::temporary);
                ASSERT_NE(e, nullptr);
                e->words.fill(e);
                EXPECT_TRUE(seen.insert(e).second);
            }
            for (const bare_extra* e : seen) EXPECT_EQ(std::count(e->words.begin(), e->words.end(), e), 144);
            strategy.end_eval();
        }
    });
}

TEST(peers, new_delete_clears_what_the_others_leave) {
    block_extras<new_delete_blocks> strategy;
    for (int eval = 0; eval < 2; ++eval) {
        bare_extra* e = strategy.acquire(lifetime::temporary);
        EXPECT_EQ(std::count(e->words.begin(), e->words.end(), nullptr), 144);
        e->words.fill(e);
        strategy.end_eval();
    }
}

TEST(touch, writes_the_first_and_the_last_word_and_clear_writes_all) {
    slot96 slot;
    std::memset(&slot, 0xA5, sizeof slot);
    touch(&slot);
    for (std::size_t i = 0; i < sizeof slot; ++i)
        EXPECT_EQ(slot.bytes[i] != std::byte{0xA5}, i < 8 || i >= sizeof slot - 8) << i;
    clear(&slot);
    EXPECT_TRUE(
        std::all_of(std::begin(slot.bytes), std::end(slot.bytes), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(pinned, holds_one_core_and_gives_all_back) {
    cpu_set_t before{}, during{}, after{};
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    {
        const pinned here(1);
        ASSERT_EQ(::sched_getaffinity(0, sizeof during, &during), 0);
    }
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_EQ(CPU_COUNT(&during), 1);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace alloclab::bench::peers
