// generations: which extras outlive which reset, over each strategy that has storage of its own.
#include "alloclab/extra/generations.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "../laws/named.hpp"
#include "alloclab/registry.hpp"

namespace alloclab {
namespace {

struct number {
    std::uint64_t value = 0;
};

using strategies = ::testing::Types<per_tensor<number>, free_list<number>, bump_arena<number>, ring<number>>;

/// Extras with a mark each, as a buffer of ggml gives them to tensors: after a reset, to those without data.
template <class Extras>
class allocator {
public:
    generations<Extras> extras;

    void allocate_graph(std::size_t new_tensors) {
        extras.reset();
        for (std::size_t i = 0; i < new_tensors; ++i) {
            number* e = extras.acquire(lifetime::temporary);
            ASSERT_NE(e, nullptr);
            ASSERT_EQ(e->value, 0U) << "not clear at birth";
            e->value = ++marks_;
            tensors_.push_back({e, marks_});
        }
    }
    void forget_tensors() { tensors_.clear(); }
    [[nodiscard]] std::size_t damaged() const {
        std::size_t n = 0;
        for (const auto& [extra, mark] : tensors_) n += extra->value != mark ? 1U : 0U;
        return n;
    }

private:
    struct tensor {
        number* extra;
        std::uint64_t mark;
    };
    std::vector<tensor> tensors_;
    std::uint64_t marks_ = 0;
};

template <class Extras>
class generations_of : public ::testing::Test {
protected:
    allocator<Extras> graphs;
};
TYPED_TEST_SUITE(generations_of, strategies, laws::by_name);

TYPED_TEST(generations_of, a_graph_that_is_allocated_again_without_new_tensors_keeps_its_extras) {
    this->graphs.allocate_graph(200);
    for (int again = 0; again < 1000; ++again) {
        this->graphs.allocate_graph(0);
        ASSERT_EQ(this->graphs.damaged(), 0U) << "after reset " << again;
    }
    EXPECT_EQ(this->graphs.extras.usage().live, 200U);
}

TYPED_TEST(generations_of, a_graph_with_old_and_new_tensors_has_the_extras_of_both) {
    this->graphs.allocate_graph(100);
    for (int again = 0; again < 3; ++again) this->graphs.allocate_graph(0);
    this->graphs.allocate_graph(100);
    EXPECT_EQ(this->graphs.damaged(), 0U);
    for (int again = 0; again < 3; ++again) this->graphs.allocate_graph(0);
    EXPECT_EQ(this->graphs.damaged(), 0U);
    EXPECT_EQ(this->graphs.extras.usage().live, 200U);
}

TYPED_TEST(generations_of, two_generations_are_live_at_most_and_no_memory_is_added_by_more_of_them) {
    std::size_t reserved = 0;
    for (int graph = 0; graph < 1000; ++graph) {
        this->graphs.forget_tensors();
        this->graphs.allocate_graph(200);
        ASSERT_EQ(this->graphs.damaged(), 0U);
        ASSERT_EQ(this->graphs.extras.usage().live, graph == 0 ? 200U : 400U);
        if (graph == 1) reserved = this->graphs.extras.usage().reserved_bytes;
    }
    EXPECT_EQ(this->graphs.extras.usage().reserved_bytes, reserved);
}

TYPED_TEST(generations_of, persistent_extras_survive_every_reset_until_they_are_released) {
    number* model = this->graphs.extras.acquire(lifetime::persistent);
    ASSERT_NE(model, nullptr);
    model->value = 4711;
    for (int graph = 0; graph < 100; ++graph) this->graphs.allocate_graph(10);
    EXPECT_EQ(model->value, 4711U);
    EXPECT_EQ(this->graphs.extras.usage().live, 21U);
    this->graphs.extras.release(model);
    this->graphs.extras.release(nullptr);
    EXPECT_EQ(this->graphs.extras.usage().live, 20U);
}

TEST(generations, a_full_strategy_inside_refuses_and_serves_again_after_the_reset) {
    generations<ring<number, 8>> extras;
    for (int graph = 0; graph < 4; ++graph) {
        extras.reset();
        for (int i = 0; i < 8; ++i) ASSERT_NE(extras.acquire(lifetime::temporary), nullptr);
        EXPECT_EQ(extras.acquire(lifetime::temporary), nullptr);
    }
}

}  // namespace
}  // namespace alloclab
