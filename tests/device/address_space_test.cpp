#include "alloclab/device/address_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "heap_limit.hpp"

namespace alloclab::device {
namespace {

constexpr std::size_t granule = 512;

/// Best fit as one would write it without caring for time: a scan over the gaps between live blocks.
class plain_best_fit {
public:
    explicit plain_best_fit(std::size_t capacity) : capacity_(capacity) {}

    std::size_t allocate(std::size_t bytes) {
        const std::size_t need = align_up(at_least_one(bytes), granule);
        std::size_t best = too_many, best_extent = too_many;
        for (const auto& [offset, extent] : gaps())
            if (extent >= need && extent < best_extent) best = offset, best_extent = extent;
        if (best != too_many) live_[best] = need;
        return best;
    }
    void release(std::size_t offset) { live_.erase(offset); }
    std::size_t largest_gap() const {
        std::size_t largest = 0;
        for (const auto& [offset, extent] : gaps()) largest = std::max(largest, extent);
        return largest;
    }

private:
    std::map<std::size_t, std::size_t> gaps() const {
        std::map<std::size_t, std::size_t> found;
        std::size_t end = 0;
        for (const auto& [offset, extent] : live_) {
            if (offset > end) found[end] = offset - end;
            end = offset + extent;
        }
        if (end < capacity_) found[end] = capacity_ - end;
        return found;
    }
    std::size_t capacity_;
    std::map<std::size_t, std::size_t> live_;
};

TEST(address_space, picks_the_same_offsets_as_a_plain_best_fit) {
    constexpr std::size_t capacity = 200 * granule;
    std::mt19937 random{7};
    address_space space(capacity, granule);
    plain_best_fit plain(capacity);
    std::vector<std::size_t> live;
    std::size_t refused = 0;
    for (int step = 0; step < 20'000; ++step) {
        if (live.empty() || random() % 100 < 52) {
            const std::size_t bytes = random() % (random() % 8 == 0 ? 40 * granule : 4 * granule);
            const std::size_t offset = space.allocate(bytes);
            ASSERT_EQ(offset, plain.allocate(bytes)) << "step " << step;
            if (offset != too_many) live.push_back(offset);
            else ++refused;
        } else {
            std::swap(live[random() % live.size()], live.back());
            ASSERT_NE(space.release(live.back()).bytes, 0u);
            plain.release(live.back());
            live.pop_back();
        }
        ASSERT_EQ(space.largest_gap(), plain.largest_gap()) << "step " << step;
    }
    EXPECT_GT(refused, 100u) << "the traffic never filled the space";
}

TEST(address_space, releasing_what_is_not_a_live_block_changes_nothing) {
    address_space space(8 * granule, granule);
    const std::size_t a = space.allocate(700), b = space.allocate(1);
    ASSERT_EQ(space.release(a).bytes, 700u);
    const std::size_t reserved = space.reserved(), largest = space.largest_gap();
    for (const std::size_t wrong : {a, b + 1, b + granule, 8 * granule, too_many})
        EXPECT_EQ(space.release(wrong).bytes, 0u) << wrong;
    EXPECT_EQ(space.reserved(), reserved);
    EXPECT_EQ(space.largest_gap(), largest);
}

TEST(address_space, finds_the_live_block_around_an_offset) {
    address_space space(8 * granule, granule);
    const std::size_t a = space.allocate(granule + 1), b = space.allocate(3), c = space.allocate(5);
    ASSERT_NE(space.release(b).bytes, 0u);
    EXPECT_EQ(space.find(a).bytes, granule + 1);
    EXPECT_EQ(space.find(a + 2 * granule - 1).offset, a);
    EXPECT_EQ(space.find(b).bytes, 0u);
    EXPECT_EQ(space.find(c + 4).offset, c);
    EXPECT_EQ(space.find(c + granule).bytes, 0u);
    EXPECT_EQ(space.find(8 * granule).bytes, 0u);
}

TEST(address_space, capacity_is_whole_granules_and_may_be_none) {
    EXPECT_EQ(address_space(3 * granule - 1, granule).capacity(), 2 * granule);
    address_space none(granule - 1, granule);
    EXPECT_EQ(none.capacity(), 0u);
    EXPECT_EQ(none.allocate(0), too_many);
    EXPECT_EQ(none.largest_gap(), 0u);
    EXPECT_EQ(none.find(0).bytes, 0u);
}

TEST(address_space, an_empty_heap_refuses_allocate_without_a_trace_and_never_release) {
    address_space space(64 * granule, granule);
    const std::size_t first = space.allocate(granule);
    bool served = false;
    for (int nodes = 0; !served; ++nodes) {  // fail at every allocation that a split makes
        ASSERT_LT(nodes, 10);
        heap_left = nodes;
        const std::size_t offset = space.allocate(granule);
        heap_left = -1;
        served = offset != too_many;
        EXPECT_EQ(served, nodes >= 2) << nodes;
        EXPECT_EQ(space.reserved(), (served ? 2 : 1) * granule);
        EXPECT_EQ(space.largest_gap(), (served ? 62 : 63) * granule);
    }
    heap_left = 0;
    const bool released = space.release(first).bytes != 0 && space.release(first + granule).bytes != 0;
    heap_left = -1;
    EXPECT_TRUE(released);
    EXPECT_EQ(space.largest_gap(), 64 * granule);
}

}  // namespace
}  // namespace alloclab::device
