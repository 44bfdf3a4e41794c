// The state of a process before it measures, and what keeps a measured pointer alive.
#include "process.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "keep.hpp"

namespace alloclab::bench {
namespace {

/// How far apart blocks lie that are taken one after the other: the median distance.
std::uintptr_t spread_of(std::size_t bytes) {
    std::array<void*, 257> blocks;
    for (void*& block : blocks) {
        block = std::malloc(bytes);
        keep(block);
    }
    std::vector<std::uintptr_t> distances;
    for (std::size_t i = 1; i < blocks.size(); ++i) {
        const auto a = reinterpret_cast<std::uintptr_t>(blocks[i - 1]), b = reinterpret_cast<std::uintptr_t>(blocks[i]);
        distances.push_back(std::max(a, b) - std::min(a, b));
    }
    for (void* block : blocks) std::free(block);
    std::nth_element(distances.begin(), distances.begin() + 128, distances.end());
    return distances[128];
}

TEST(heap, littered_neighbours_lie_far_apart_and_bare_ones_side_by_side) {
    constexpr std::size_t sizes[]{208, 1168};
    prepare_heap("bare");
    for (const std::size_t bytes : sizes) EXPECT_LE(spread_of(bytes), 2 * bytes);
    prepare_heap("littered");
    for (const std::size_t bytes : sizes) EXPECT_GT(spread_of(bytes), 64U << 10) << bytes;
}

TEST(heap, a_state_that_is_none_is_refused_by_name) {
    try {
        prepare_heap("tidy");
        FAIL() << "taken";
    } catch (const std::invalid_argument& e) {
        EXPECT_STREQ(e.what(), "heap=tidy: expected bare, aged or littered");
    }
}

TEST(heap, freed_pages_fault_again_once_they_are_forgotten) {
    constexpr std::size_t bytes = std::size_t{4} << 20, page = 4096;
    prepare_heap("aged");
    const auto faults = [] {
        const double before = minor_faults();
        auto* block = static_cast<char*>(std::malloc(bytes));
        for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(block)[at] = 1;
        std::free(block);
        return minor_faults() - before;
    };
    faults();
    const double again = faults();
    EXPECT_LT(again, bytes / page / 8);
    forget_free_pages();
    EXPECT_GT(faults(), again);  // by how much depends on the size of pages
}

template <class T>
concept can_be_kept = requires(T& object) {
    keep(object);
};

// google/benchmark#1340: one that takes objects by value copies 4 MiB for each call.
TEST(keep, takes_pointers_alone_and_never_looks_at_what_they_point_to) {
    using large = std::array<std::byte, std::size_t{4} << 20>;
    static_assert(can_be_kept<large*> && can_be_kept<void*>);
    static_assert(!can_be_kept<large> && !can_be_kept<int>);

    void* closed = ::mmap(nullptr, sizeof(large), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(closed, MAP_FAILED);
    auto* object = static_cast<large*>(closed);
    keep(object);
    EXPECT_EQ(object, closed);
    ::munmap(closed, sizeof(large));
}

}  // namespace
}  // namespace alloclab::bench
