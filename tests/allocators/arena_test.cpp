// arena: chunks, growth, reset and release, and what users reported of other arenas.
#include "alloclab/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/source/any_source.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/source/pages.hpp"

namespace alloclab {
namespace {

/// malloc with a log of the sizes asked for, that refuses what is absurd before malloc does.
struct logged_source : malloc_source {
    static constexpr std::string_view name = "logged";
    std::vector<std::size_t> asked;
    std::vector<std::pair<std::byte*, std::size_t>> live;

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        asked.push_back(bytes);
        void* p = bytes < (std::size_t{1} << 40) ? malloc_source::allocate(bytes, align) : nullptr;
        if (p != nullptr) live.emplace_back(static_cast<std::byte*>(p), bytes);
        return p;
    }
    void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept {
        const auto gone = std::find(live.begin(), live.end(), std::pair{static_cast<std::byte*>(p), bytes});
        EXPECT_NE(gone, live.end()) << "given back with another size or twice";
        if (gone != live.end()) live.erase(gone);
        malloc_source::deallocate(p, bytes, align);
    }
    [[nodiscard]] bool holds(const void* p, std::size_t bytes) const {
        const auto* at = static_cast<const std::byte*>(p);
        return std::any_of(live.begin(), live.end(), [&](const auto& block) {
            return at >= block.first && at + bytes <= block.first + block.second;
        });
    }
};

class arenas : public ::testing::Test {
protected:
    logged_source source;

    [[nodiscard]] any_source any() { return any_source(source); }
    void* take(arena<any_source>& a, std::size_t bytes, std::size_t align = 8) {
        void* p = a.allocate(bytes, align);
        EXPECT_NE(p, nullptr);
        std::memset(p, 0x5A, bytes);
        return p;
    }
};
constexpr std::size_t header = 16;

TEST_F(arenas, make_no_source_call_before_the_first_request) {
    arena<any_source> a({}, any());
    EXPECT_EQ(a.used_bytes(), 0u);
    EXPECT_EQ(a.available_bytes(), 0u);
    EXPECT_EQ(a.capacity_bytes(), 0u);
    a.reset();
    a.release();
    EXPECT_TRUE(source.asked.empty());
    take(a, 1);
    EXPECT_EQ(source.asked, (std::vector<std::size_t>{growth{}.first_bytes}));
}

TEST_F(arenas, double_their_chunks_to_the_cap) {
    arena<any_source> a({.first_bytes = 1024, .max_bytes = 5000}, any());
    for (int i = 0; i < 1000; ++i) take(a, 32);
    const std::vector<std::size_t> expected{1024, 2048, 4096, 5000, 5000};
    ASSERT_GE(source.asked.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), source.asked.begin()));
    EXPECT_EQ(*std::max_element(source.asked.begin(), source.asked.end()), 5000u);
}

TEST_F(arenas, give_a_request_above_the_cap_a_chunk_of_its_own_size) {
    arena<any_source> a({.first_bytes = 1024, .max_bytes = 4096}, any());
    take(a, 100'000);
    EXPECT_EQ(source.asked.back(), 100'000 + header);
    take(a, 8);
    EXPECT_EQ(source.asked.back(), 2048u) << "an oversized chunk is a step of the growth like any other";
}

// boost.container#151: the left-over gap was charged to the new chunk. 7 bytes are left, 16 at 16 are asked.
TEST_F(arenas, a_new_minimal_chunk_holds_the_request_whatever_was_left_of_the_old) {
    for (const std::size_t align : {1u, 8u, 16u, 32u, 64u, 4096u})
        for (std::size_t left = 0; left < 40; ++left) {
            arena<any_source> a({.first_bytes = 256, .max_bytes = 1}, any());
            take(a, 256 - header, 1);
            a.release();
            std::array<std::byte, 64> first;
            arena<any_source> b(std::span<std::byte>(first).first(left), {.first_bytes = 1, .max_bytes = 1}, any());
            const std::size_t calls = source.asked.size();
            void* p = take(b, 16, align);
            EXPECT_LE(source.asked.size(), calls + 1) << "the first chunk was too small for the gap";
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0u);
            const auto* at = static_cast<std::byte*>(p);
            EXPECT_TRUE(source.holds(p, 16) || (at >= first.data() && at + 16 <= first.data() + left));
        }
    EXPECT_TRUE(source.live.empty());
}

// protobuf PR#727: a first block smaller than the header. ggml#653: a first buffer that is misaligned.
TEST_F(arenas, stay_inside_a_first_buffer_of_any_size_and_start) {
    alignas(64) std::array<std::byte, 256> memory;
    for (const std::size_t start : {0u, 1u, 8u, 15u})
        for (const std::size_t size : {0u, 1u, 7u, 8u, 23u, 100u}) {
            memory.fill(std::byte{0xEE});
            arena<any_source> a(std::span<std::byte>(memory).subspan(start, size), fixed, any());
            EXPECT_EQ(a.available_bytes(), size);
            for (std::size_t i = 0; void* p = a.allocate(1 + i % 5, std::size_t{1} << i % 5); ++i) {
                EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % (std::size_t{1} << i % 5), 0u);
                EXPECT_TRUE(a.owns(p));
                std::memset(p, 1, 1 + i % 5);
            }
            EXPECT_LE(a.used_bytes(), size);
            EXPECT_EQ(a.used_bytes() + a.available_bytes(), size);
            for (std::size_t i = 0; i < memory.size(); ++i)
                if (i < start || i >= start + size) {
                    ASSERT_EQ(memory[i], std::byte{0xEE}) << size << " from " << start;
                }
            a.reset();
            EXPECT_EQ(a.available_bytes(), size);
            a.release();
            EXPECT_EQ(a.allocate(1, 1) != nullptr, size != 0) << "the first buffer stays";
        }
    EXPECT_TRUE(source.asked.empty()) << "a fixed one never grows";
}

TEST_F(arenas, grow_past_the_first_buffer_and_leave_it_to_its_owner) {
    auto first = std::make_unique<std::array<std::byte, 100>>();
    {
        arena<any_source> a(*first, growth{.first_bytes = 256, .max_bytes = 256}, any());
        EXPECT_EQ(take(a, 60, 1), first->data());
        EXPECT_FALSE(source.holds(take(a, 40, 1), 1));
        EXPECT_TRUE(source.holds(take(a, 40, 1), 40));
    }
    EXPECT_TRUE(source.live.empty());
    EXPECT_EQ((*first)[59], std::byte{0x5A});
}

// thejefflarson/arena#1.
TEST_F(arenas, an_exact_fit_opens_no_chunk_and_one_byte_more_does) {
    arena<any_source> a({.first_bytes = 512, .max_bytes = 512}, any());
    take(a, 100, 1);
    take(a, a.available_bytes(), 1);
    EXPECT_EQ(a.available_bytes(), 0u);
    EXPECT_EQ(source.asked.size(), 1u);
    take(a, 1, 1);
    EXPECT_EQ(source.asked.size(), 2u);

    arena<any_source> b({.first_bytes = 512, .max_bytes = 512}, any());
    take(b, 512 - header, 1);
    EXPECT_EQ(source.asked, (std::vector<std::size_t>{512, 512, 512})) << "the header is part of the chunk";
}

// protobuf#5562, upb#547.
TEST_F(arenas, reset_keeps_the_memory_and_release_gives_it_back) {
    arena<any_source> a({.first_bytes = 1024, .max_bytes = 65536}, any());
    const auto fill = [&] {
        std::vector<void*> taken;
        for (std::size_t i = 0; i < 10'000; ++i) taken.push_back(take(a, 1 + i * 37 % 3000, std::size_t{1} << i % 7));
        return taken;
    };
    const auto first = fill();
    const std::size_t calls = source.asked.size(), reserved = a.usage().reserved_bytes, used = a.used_bytes();
    EXPECT_GT(reserved, std::size_t{10} << 20);
    for (int i = 0; i < 3; ++i) {
        a.reset();
        EXPECT_EQ(a.used_bytes(), 0u);
        EXPECT_EQ(a.usage().reserved_bytes, reserved);
        EXPECT_EQ(fill(), first);
        EXPECT_EQ(a.used_bytes(), used);
        EXPECT_EQ(source.asked.size(), calls) << "a refill called the source";
    }
    a.release();
    EXPECT_EQ(a.usage().reserved_bytes, 0u);
    EXPECT_EQ(a.used_bytes(), 0u);
    EXPECT_EQ(a.capacity_bytes(), 0u);
    EXPECT_TRUE(source.live.empty());
    fill();
    EXPECT_EQ(source.asked.size(), 2 * calls);
}

// boost.pool#54, boost.container#60: each purge doubled the next chunk.
TEST_F(arenas, release_restarts_the_growth) {
    arena<any_source> a({.first_bytes = 1024, .max_bytes = std::size_t{1} << 30}, any());
    for (int i = 0; i < 20; ++i) {
        take(a, 8);
        a.release();
    }
    EXPECT_EQ(source.asked, std::vector<std::size_t>(20, 1024));
}

// boost.container#65.
TEST_F(arenas, what_is_served_after_a_release_lies_in_a_live_chunk) {
    arena<any_source> a({.first_bytes = 256, .max_bytes = 256}, any());
    for (int i = 0; i < 3; ++i) take(a, 150);
    EXPECT_EQ(source.live.size(), 3u);
    a.release();
    EXPECT_TRUE(source.live.empty());
    EXPECT_TRUE(source.holds(take(a, 150), 150));
    EXPECT_EQ(source.live.size(), 1u);
}

// onnxruntime#7284: 100 small, one huge, 100 small; the huge one must go, wherever its chunk stands among the others.
TEST_F(arenas, a_retain_limit_lets_one_huge_round_go_and_keeps_what_recent_rounds_used) {
    for (const std::size_t small_bytes : {1000u, 20'000u, 200'000u}) {
        arena<any_source> a({.first_bytes = 16384, .max_bytes = 65536, .retain_bytes = 32768}, any());
        const auto round = [&](std::size_t huge) {
            for (std::size_t at = 0; at < small_bytes; at += 500) {
                if (huge != 0 && at >= small_bytes / 2) take(a, std::exchange(huge, 0));
                take(a, 500);
            }
            a.reset();
        };
        for (int i = 0; i < 100; ++i) round(0);
        const std::size_t before = a.usage().reserved_bytes;
        round(std::size_t{64} << 20);
        EXPECT_GT(a.usage().reserved_bytes, std::size_t{64} << 20) << "what was just used is recent";
        for (int i = 0; i < 100; ++i) round(0);
        EXPECT_LE(a.usage().reserved_bytes, before + 65536);
        const std::size_t calls = source.asked.size();
        for (int i = 0; i < 10; ++i) round(0);
        EXPECT_EQ(source.asked.size(), calls) << "a steady level is kept";
    }
}

// What is left of each chunk counts as used: else the limit would take chunks that the next round needs.
TEST_F(arenas, a_retain_limit_takes_nothing_that_the_same_requests_need_again) {
    for (const std::size_t bytes : {24u, 700u, 900u, 1500u}) {
        arena<any_source> a({.first_bytes = 1024, .max_bytes = 1024, .retain_bytes = 0}, any());
        for (int i = 0; i < 20; ++i) take(a, bytes);
        const std::size_t calls = source.asked.size();
        for (int round = 0; round < 5; ++round) {
            a.reset();
            for (int i = 0; i < 20; ++i) take(a, bytes);
            EXPECT_EQ(source.asked.size(), calls) << bytes << " bytes, round " << round;
        }
    }
}

TEST_F(arenas, without_a_retain_limit_nothing_goes_back) {
    arena<any_source> a({.first_bytes = 1024, .max_bytes = 1024}, any());
    take(a, std::size_t{10} << 20);
    for (int i = 0; i < 200; ++i) a.reset();
    EXPECT_EQ(source.live.size(), 1u);
}

// ravendb#4194: doubling overflows.
TEST_F(arenas, fail_cleanly_where_growth_would_overflow) {
    arena<any_source> a({.first_bytes = std::size_t{1} << 62, .max_bytes = SIZE_MAX}, any());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(a.allocate(1, 1), nullptr);
    EXPECT_EQ(a.usage().reserved_bytes, 0u);
    arena<any_source> b({.first_bytes = SIZE_MAX, .max_bytes = SIZE_MAX}, any());
    EXPECT_EQ(b.allocate(1, 1), nullptr);
    EXPECT_EQ(b.usage().source_calls, 0u) << "no call is made for a chunk that cannot be";
    arena<any_source> c({.first_bytes = 1024, .max_bytes = 2048}, any());
    for (const std::size_t bytes : {std::size_t{PTRDIFF_MAX}, std::size_t{PTRDIFF_MAX} + 1, SIZE_MAX, SIZE_MAX - 15})
        for (const std::size_t align : {1u, 16u, 4096u}) EXPECT_EQ(c.allocate(bytes, align), nullptr);
    EXPECT_EQ(c.usage().reserved_bytes, 0u);
    EXPECT_TRUE(source.holds(take(c, 100), 100));
}

// Heap-Layers' bump allocator served a null chunk's bytes at the second call.
TEST(arena, a_failing_source_changes_nothing) {
    compose<malloc_source, failing> source;
    arena<any_source> a({.first_bytes = 128, .max_bytes = 128}, any_source(source));
    source.fail_after(1);
    void* kept = a.allocate(100, 1);
    ASSERT_NE(kept, nullptr);
    const std::size_t used = a.used_bytes(), left = a.available_bytes();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.allocate(100, 1), nullptr);
    EXPECT_EQ(a.used_bytes(), used);
    EXPECT_EQ(a.available_bytes(), left);
    EXPECT_EQ(a.usage().source_calls, 4u);
    EXPECT_NE(a.allocate(left, 1), nullptr);
    source.fail_after(too_many);
    EXPECT_NE(a.allocate(100, 1), nullptr);
}

TEST_F(arenas, earlier_addresses_and_contents_stay_while_they_grow) {
    arena<any_source> a({.first_bytes = 256, .max_bytes = 8192}, any());
    std::vector<unsigned char*> blocks;
    for (std::size_t i = 0; i < 2000; ++i) {
        blocks.push_back(static_cast<unsigned char*>(take(a, 50)));
        std::memset(blocks.back(), static_cast<int>(i % 251), 50);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i)
        ASSERT_EQ(std::count(blocks[i], blocks[i] + 50, i % 251), 50) << "block " << i;
}

TEST_F(arenas, own_what_they_hand_out_and_no_header_and_no_stranger) {
    arena<any_source> a({.first_bytes = 256, .max_bytes = 256}, any()), b({}, any());
    std::vector<void*> taken;
    for (int i = 0; i < 10; ++i) taken.push_back(take(a, 100));
    for (void* p : taken) {
        EXPECT_TRUE(a.owns(p));
        EXPECT_TRUE(a.owns(static_cast<std::byte*>(p) + 99));
        EXPECT_FALSE(b.owns(p));
    }
    for (const auto& [block, bytes] : source.live) {
        EXPECT_FALSE(a.owns(block)) << "the header is not the user's";
        EXPECT_TRUE(a.owns(block + bytes - 1));
        EXPECT_FALSE(a.owns(block + bytes));
    }
    EXPECT_FALSE(a.owns(nullptr));
    a.release();
    EXPECT_FALSE(a.owns(taken[0]));
}

TEST_F(arenas, skip_a_kept_chunk_that_is_too_small_and_use_it_later) {
    arena<any_source> a({.first_bytes = 256, .max_bytes = 256}, any());
    take(a, 200);
    take(a, 200);
    take(a, 5000);
    a.reset();
    const std::size_t calls = source.asked.size();
    take(a, 5000);
    take(a, 200);
    take(a, 200);
    EXPECT_EQ(source.asked.size(), calls);
    take(a, 200);
    EXPECT_EQ(source.asked.size(), calls + 1);
}

template <std::size_t Size, std::size_t Alignment>
struct alignas(Alignment) sized {
    std::byte bytes[Size];
};

template <class T>
class arenas_of_one_type : public ::testing::Test {};
using one_types = ::testing::Types<sized<1, 1>, sized<24, 8>, sized<200, 8>, sized<48, 16>, sized<128, 64>, sized<3, 1>,
                                   sized<4096, 4096>>;
TYPED_TEST_SUITE(arenas_of_one_type, one_types);

TYPED_TEST(arenas_of_one_type, hand_out_aligned_places_that_do_not_overlap_and_count_them) {
    arena<malloc_source> a({.first_bytes = 512, .max_bytes = 20'000});
    std::vector<std::byte*> first;
    for (int round = 0; round < 3; ++round) {
        std::vector<std::byte*> taken;
        for (std::size_t i = 0; i < 1000; ++i) {
            EXPECT_EQ(a.template count<TypeParam>(), i);
            taken.push_back(static_cast<std::byte*>(a.template allocate_next<TypeParam>()));
            ASSERT_NE(taken.back(), nullptr);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(taken.back()) % alignof(TypeParam), 0u);
            ASSERT_TRUE(a.owns(taken.back()) && a.owns(taken.back() + sizeof(TypeParam) - 1));
        }
        if (round == 0) first = taken;
        EXPECT_EQ(taken, first) << "the same places in the same order in round " << round;
        std::sort(taken.begin(), taken.end());
        for (std::size_t i = 1; i < taken.size(); ++i)
            ASSERT_GE(taken[i] - taken[i - 1], std::ptrdiff_t{sizeof(TypeParam)});
        a.reset();
        EXPECT_EQ(a.template count<TypeParam>(), 0u);
    }
    a.release();
    EXPECT_EQ(a.template count<TypeParam>(), 0u);
}

TYPED_TEST(arenas_of_one_type, fill_the_chunk_to_its_end_and_count_nothing_for_a_refusal) {
    compose<malloc_source, failing> source;
    arena<any_source> a({.first_bytes = 8 * sizeof(TypeParam), .max_bytes = 8 * sizeof(TypeParam)}, any_source(source));
    source.fail_after(1);
    std::size_t taken = 0;
    while (a.template allocate_next<TypeParam>() != nullptr) ++taken;
    EXPECT_GE(taken, 1u);
    EXPECT_LT(a.available_bytes(alignof(TypeParam)), sizeof(TypeParam));
    EXPECT_EQ(a.template count<TypeParam>(), taken);
    source.fail_after(too_many);
    EXPECT_NE(a.template allocate_next<TypeParam>(), nullptr);
    EXPECT_EQ(a.template count<TypeParam>(), taken + 1);
}

TEST_F(arenas, count_used_bytes_with_gaps_and_left_overs) {
    arena<any_source> a({.first_bytes = 256, .max_bytes = 256}, any());
    take(a, 1, 1);
    EXPECT_EQ(a.used_bytes(), 1u);
    take(a, 8, 8);
    EXPECT_EQ(a.used_bytes(), 16u);
    take(a, 0, 1);
    EXPECT_EQ(a.used_bytes(), 17u) << "no bytes count as one";
    take(a, 239, 1);
    EXPECT_EQ(a.used_bytes(), 240 + 239u) << "what was left of the first chunk is used";
    EXPECT_EQ(a.used_bytes() + a.available_bytes(), a.capacity_bytes());
}

}  // namespace
}  // namespace alloclab
