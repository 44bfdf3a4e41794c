// The laws of memory sources. A source joins by its line in the registry, never by a new test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "alloclab/concepts.hpp"
#include "named.hpp"

namespace alloclab::laws {

template <memory_source S>
class source_laws : public of_available<S> {
protected:
    S source;
};
TYPED_TEST_SUITE_P(source_laws);

TYPED_TEST_P(source_laws, every_power_of_two_up_to_the_maximum_is_honoured) {
    for (std::size_t align = 1; align <= TypeParam::max_alignment; align *= 2)
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{24}, align}) {
            std::vector<void*> blocks(3);
            for (void*& p : blocks) {
                p = this->source.allocate(bytes, align);
                ASSERT_NE(p, nullptr) << bytes << " bytes at " << align;
                EXPECT_TRUE(is_aligned(p, align)) << bytes << " bytes at " << align << ": " << p;
            }
            for (std::size_t i = blocks.size(); i-- > 0;) this->source.deallocate(blocks[i], bytes, align);
        }
}

// snmalloc#752 (size and alignment that wrap to a small size), mimalloc#121 (above PTRDIFF_MAX).
TYPED_TEST_P(source_laws, impossible_requests_are_refused_and_change_nothing) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
    constexpr std::size_t max_align = TypeParam::max_alignment;
    struct {
        std::size_t bytes, align;
    } const requests[] = {{16, 0},
                          {16, 3},
                          {16, 24},
                          {0, 0},
                          {16, max_align * 2},
                          {16, max_align + 1},
                          {16, SIZE_MAX},
                          {most, 1},
                          {most, max_align},
                          {most + 1, 1},
                          {most + 1, 8},
                          {SIZE_MAX, 1},
                          {SIZE_MAX, 16},
                          {SIZE_MAX - 5, 64},
                          {SIZE_MAX - 5, 16},
                          {1, std::size_t{1} << 40},
                          {most - 7, 16}};
    const auto before = [&] {
        if constexpr (measured<TypeParam>) return this->source.usage().reserved_bytes;
        else return std::size_t{0};
    };
    const std::size_t reserved = before();
    for (const auto& r : requests)
        EXPECT_EQ(this->source.allocate(r.bytes, r.align), nullptr) << r.bytes << " bytes at " << r.align;
    EXPECT_EQ(before(), reserved);
    void* p = this->source.allocate(64, 16);
    ASSERT_NE(p, nullptr) << "unusable after a refusal";
    this->source.deallocate(p, 64, 16);
}

TYPED_TEST_P(source_laws, blocks_of_no_bytes_are_distinct_and_releasable) {
    std::set<void*> blocks;
    for (int i = 0; i < 5; ++i) blocks.insert(this->source.allocate(0, 1));
    EXPECT_EQ(blocks.size(), 5u);
    EXPECT_FALSE(blocks.contains(nullptr));
    for (void* p : blocks) {
        std::memset(p, 0xA5, 1);
        this->source.deallocate(p, 0, 1);
    }
}

TYPED_TEST_P(source_laws, whole_blocks_are_writable_and_keep_their_contents) {
    struct block {
        unsigned char* at;
        std::size_t bytes;
    };
    std::vector<block> blocks;
    for (const std::size_t bytes : {1u, 7u, 16u, 100u, 4095u, 4096u, 4097u, 70'000u}) {
        auto* at = static_cast<unsigned char*>(this->source.allocate(bytes, 16));
        ASSERT_NE(at, nullptr);
        std::memset(at, static_cast<int>(blocks.size() + 1), bytes);
        blocks.push_back({at, bytes});
    }
    for (std::size_t i = 0; i < blocks.size(); ++i)
        EXPECT_EQ(std::count(blocks[i].at, blocks[i].at + blocks[i].bytes, i + 1),
                  static_cast<std::ptrdiff_t>(blocks[i].bytes));
    for (const block& b : blocks) this->source.deallocate(b.at, b.bytes, 16);
}

TYPED_TEST_P(source_laws, deallocating_null_does_nothing) {
    this->source.deallocate(nullptr, 0, 1);
    this->source.deallocate(nullptr, 64, 16);
    void* p = this->source.allocate(64, 16);
    EXPECT_NE(p, nullptr);
    this->source.deallocate(p, 64, 16);
}

TYPED_TEST_P(source_laws, owns_its_blocks_and_no_others) {
    if constexpr (owning<TypeParam>) {
        TypeParam other;
        void* own = this->source.allocate(32, 8);
        void* foreign = other.allocate(32, 8);
        int on_stack = 0;
        EXPECT_TRUE(this->source.owns(own));
        EXPECT_FALSE(this->source.owns(foreign));
        EXPECT_FALSE(this->source.owns(&on_stack));
        EXPECT_FALSE(this->source.owns(nullptr));
        other.deallocate(foreign, 32, 8);
        this->source.deallocate(own, 32, 8);
    }
}

REGISTER_TYPED_TEST_SUITE_P(source_laws, every_power_of_two_up_to_the_maximum_is_honoured,
                            impossible_requests_are_refused_and_change_nothing,
                            blocks_of_no_bytes_are_distinct_and_releasable,
                            whole_blocks_are_writable_and_keep_their_contents, deallocating_null_does_nothing,
                            owns_its_blocks_and_no_others);

}  // namespace alloclab::laws
