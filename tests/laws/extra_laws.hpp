// The laws of extra strategies, those embedded in tensors included. A strategy joins by its line in the registry.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "alloclab/arena.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/source/any_source.hpp"
#include "alloclab/source/malloc.hpp"
#include "named.hpp"

namespace alloclab::laws {

/// An extra with members that only value-initialisation clears, and one that has a default of its own.
struct record {
    std::array<void*, 4> data;
    std::uint64_t number;
    int device = -1;

    [[nodiscard]] bool is_clear() const { return data == std::array<void*, 4>{} && number == 0 && device == -1; }
};

/// The same strategy over another source; `void` where it takes none.
template <class S, memory_source Source>
struct over_source {
    using type = void;
};
template <template <class, class> class S, class E, class Old, memory_source Source>
struct over_source<S<E, Old>, Source> {
    using type = S<E, Source>;
};
template <template <class, std::size_t, class> class S, class E, std::size_t N, class Old, memory_source Source>
struct over_source<S<E, N, Old>, Source> {
    using type = S<E, N, Source>;
};

/// malloc whose blocks are never clear by luck.
struct dirty_source : malloc_source {
    static constexpr std::string_view name = "dirty";
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        void* p = malloc_source::allocate(bytes, align);
        if (p != nullptr) std::memset(p, 0xA5, bytes);
        return p;
    }
};

/// One call for strategies with storage of their own and for embedded ones, whose tensors are made here and are dirty.
template <any_extra_strategy S>
class extras_of {
public:
    template <class... Arguments>
    explicit extras_of(Arguments&&... arguments) : strategy(std::forward<Arguments>(arguments)...) {}

    [[nodiscard]] record* acquire(lifetime life) {
        if constexpr (extra_strategy<S>) return strategy.acquire(life);
        else {
            auto& tensors = life == lifetime::persistent ? persistent_ : temporary_;
            auto& next = life == lifetime::persistent ? next_persistent_ : next_temporary_;
            if (next == tensors.size()) tensors.emplace_back();
            tensor& in = tensors[next++];
            in.bytes.fill(std::byte{0xA5});
            return strategy.acquire(life, in.bytes.data());
        }
    }
    void begin() { strategy.begin_eval(); }
    void end() {
        strategy.end_eval();
        next_temporary_ = 0;
    }
    /// An eval of so many temporaries, all written to; false when one was refused.
    bool eval(std::size_t temporaries) {
        begin();
        bool all = true;
        for (std::size_t i = 0; i < temporaries && all; ++i) {
            record* e = acquire(lifetime::temporary);
            if (e != nullptr) std::memset(static_cast<void*>(e), 0x5A, sizeof *e);
            else all = false;
        }
        end();
        return all;
    }
    [[nodiscard]] usage used() const { return strategy.usage(); }

    S strategy;

private:
    struct tensor {
        alignas(record) std::array<std::byte, sizeof(record)> bytes;
    };
    std::deque<tensor> persistent_, temporary_;
    std::size_t next_persistent_ = 0, next_temporary_ = 0;
};

template <any_extra_strategy S>
class extra_laws : public of_available<S> {
protected:
    static constexpr bool leaks = describe<S>().leaks;
    static constexpr std::size_t offloaded = 200;
    static constexpr bool has_source = !std::is_void_v<typename over_source<S, any_source>::type>;

    extras_of<S> extras;

    /// Runs `body(extras)` over the strategy with that source; not at all where it takes none.
    template <memory_source Source, class Body>
    static void over(Source& source, Body body) {
        using over_any = typename over_source<S, any_source>::type;
        if constexpr (!has_source) return;
        else if constexpr (std::constructible_from<over_any, growth, any_source>) {
            extras_of<over_any> all(growth{.first_bytes = 512, .max_bytes = 4096}, any_source(source));
            body(all);
        } else {
            extras_of<over_any> all{any_source(source)};
            body(all);
        }
    }
};
TYPED_TEST_SUITE_P(extra_laws);

TYPED_TEST_P(extra_laws, live_extras_are_distinct_and_keep_their_contents) {
    std::vector<record*> live;
    this->extras.begin();
    for (std::uint64_t i = 0; i < 600; ++i) {
        record* e = this->extras.acquire(i % 3 == 0 ? lifetime::persistent : lifetime::temporary);
        ASSERT_NE(e, nullptr);
        EXPECT_TRUE(is_aligned(e, alignof(record)));
        e->number = i;
        live.push_back(e);
    }
    EXPECT_EQ(std::set<record*>(live.begin(), live.end()).size(), live.size());
    for (std::uint64_t i = 0; i < live.size(); ++i) EXPECT_EQ(live[i]->number, i);
    EXPECT_EQ(this->extras.used().live, live.size());
    this->extras.end();
    for (std::uint64_t i = 0; i < live.size(); i += 3) EXPECT_EQ(live[i]->number, i);
}

TYPED_TEST_P(extra_laws, every_extra_is_clear_at_birth_even_in_dirty_memory) {
    const auto all_clear = [](auto& all) {
        for (int eval = 0; eval < 3; ++eval) {
            all.begin();
            for (int i = 0; i < 50; ++i) {
                record* e = all.acquire(i % 10 == 0 ? lifetime::persistent : lifetime::temporary);
                ASSERT_NE(e, nullptr);
                EXPECT_TRUE(e->is_clear()) << "extra " << i << " of eval " << eval;
                *e = {{e, e, e, e}, 77, 5};
                if (i % 10 == 0) all.strategy.release(e);
            }
            all.end();
        }
    };
    all_clear(this->extras);
    dirty_source dirty;
    this->over(dirty, all_clear);
}

// llama.cpp#2145: 200 offloaded tensors leaked 200 extras at each eval.
TYPED_TEST_P(extra_laws, live_extras_are_constant_over_a_thousand_evals_or_leak_by_exactly_the_offloaded) {
    for (int i = 0; i < 5; ++i) ASSERT_NE(this->extras.acquire(lifetime::persistent), nullptr);
    ASSERT_TRUE(this->extras.eval(this->offloaded));
    const usage warm = this->extras.used();
    EXPECT_EQ(warm.live, 5 + (this->leaks ? this->offloaded : 0));
    for (std::size_t eval = 1; eval <= 1000; ++eval) {
        ASSERT_TRUE(this->extras.eval(this->offloaded));
        ASSERT_EQ(this->extras.used().live, warm.live + (this->leaks ? eval * this->offloaded : 0));
        if (!this->leaks) {
            ASSERT_EQ(this->extras.used().reserved_bytes, warm.reserved_bytes);
        }
    }
}

TYPED_TEST_P(extra_laws, persistent_extras_survive_a_thousand_evals_until_they_are_released) {
    std::vector<record*> persistent;
    for (std::uint64_t i = 0; i < 40; ++i) {
        persistent.push_back(this->extras.acquire(lifetime::persistent));
        ASSERT_NE(persistent.back(), nullptr);
        *persistent.back() = {{}, i + 1, 2};
    }
    const std::size_t evals = this->leaks ? 10 : 1000;
    for (std::size_t eval = 0; eval < evals; ++eval) ASSERT_TRUE(this->extras.eval(20));
    std::size_t live = this->extras.used().live;
    EXPECT_EQ(live, persistent.size() + (this->leaks ? evals * 20 : 0));
    for (std::uint64_t i = 0; i < persistent.size(); ++i) {
        EXPECT_EQ(persistent[i]->number, i + 1);
        EXPECT_EQ(persistent[i]->device, 2);
        this->extras.strategy.release(persistent[i]);
        EXPECT_EQ(this->extras.used().live, --live);
    }
    this->extras.strategy.release(nullptr);
    EXPECT_EQ(this->extras.used().live, live);
}

TYPED_TEST_P(extra_laws, temporaries_can_be_released_early_in_any_order) {
    if constexpr (extra_strategy<TypeParam>) {
        for (int order = 0; order < 3; ++order) {
            const std::size_t before = this->extras.used().live;
            this->extras.begin();
            std::vector<record*> live;
            for (int i = 0; i < 30; ++i) live.push_back(this->extras.acquire(lifetime::temporary));
            // First the oldest, the youngest or one of the middle, then every other, and some are left to the eval.
            if (order == 1) std::reverse(live.begin(), live.end());
            if (order == 2) std::rotate(live.begin(), live.begin() + 15, live.end());
            for (std::size_t i = 0; i < 20; ++i) this->extras.strategy.release(live[i]);
            EXPECT_EQ(this->extras.used().live, before + 10);
            for (std::uint64_t i = 20; i < 30; ++i) live[i]->number = i;
            for (int i = 0; i < 40; ++i) ASSERT_NE(this->extras.acquire(lifetime::temporary), nullptr);
            for (std::uint64_t i = 20; i < 30; ++i) EXPECT_EQ(live[i]->number, i);
            EXPECT_EQ(this->extras.used().live, before + 50);
            this->extras.end();
            EXPECT_EQ(this->extras.used().live, before + (this->leaks ? 50 : 0));
        }
    }
}

TYPED_TEST_P(extra_laws, temporaries_of_nested_evals_die_at_the_outermost_end) {
    this->extras.begin();
    record* outer = this->extras.acquire(lifetime::temporary);
    outer->number = 11;
    this->extras.begin();
    record* inner = this->extras.acquire(lifetime::temporary);
    inner->number = 22;
    this->extras.strategy.end_eval();
    EXPECT_EQ(this->extras.used().live, 2u);
    EXPECT_NE(this->extras.acquire(lifetime::temporary), inner);
    EXPECT_EQ(outer->number, 11u);
    EXPECT_EQ(inner->number, 22u);
    this->extras.end();
    EXPECT_EQ(this->extras.used().live, this->leaks ? 3u : 0u);
}

TYPED_TEST_P(extra_laws, an_end_without_a_begin_does_nothing) {
    this->extras.end();
    record* e = this->extras.acquire(lifetime::temporary);
    e->number = 33;
    this->extras.end();
    EXPECT_EQ(this->extras.used().live, 1u);
    EXPECT_EQ(e->number, 33u);
    ASSERT_TRUE(this->extras.eval(3));
    EXPECT_EQ(this->extras.used().live, this->leaks ? 4u : 0u);
    ASSERT_TRUE(this->extras.eval(3));
}

TYPED_TEST_P(extra_laws, what_keeps_memory_calls_the_source_in_the_first_eval_only_and_gives_all_back) {
    compose<malloc_source, counting> source;
    this->over(source, [&](auto& all) {
        ASSERT_TRUE(all.eval(TestFixture::offloaded));
        const auto first = source.traffic();
        EXPECT_EQ(all.used().source_calls, first.acquired + first.refused);
        EXPECT_EQ(all.used().reserved_bytes, first.live_bytes);
        const bool keeps_memory = !TestFixture::leaks && first.live_bytes != 0;
        for (int eval = 0; eval < 20; ++eval) ASSERT_TRUE(all.eval(TestFixture::offloaded));
        const auto last = source.traffic();
        if (keeps_memory) {
            EXPECT_EQ(last.acquired, first.acquired);
        } else EXPECT_EQ(last.acquired, 21 * first.acquired);
        EXPECT_EQ(last.live_bytes, TestFixture::leaks ? 21 * first.live_bytes : first.live_bytes);
        EXPECT_EQ(all.used().source_calls, last.acquired);
    });
    EXPECT_EQ(source.traffic().live, 0u);
    EXPECT_EQ(source.traffic().live_bytes, 0u);
}

// Zig's checkAllAllocationFailures: each call to the source fails in turn.
TYPED_TEST_P(extra_laws, a_failure_of_any_source_call_leaks_nothing_and_leaves_the_strategy_usable) {
    bool refused = this->has_source;
    for (std::size_t k = 0; refused; ++k) {
        ASSERT_LT(k, 1000u);
        compose<malloc_source, counting, failing> source;
        this->over(source, [&](auto& all) {
            source.fail_after(k);
            record* persistent = all.acquire(lifetime::persistent);
            if (persistent != nullptr) persistent->number = 44;
            refused = !all.eval(50) || persistent == nullptr;
            EXPECT_EQ(refused, source.refused() != 0);
            if (!TestFixture::leaks) {
                EXPECT_EQ(all.used().live, persistent != nullptr ? 1u : 0u);
            }
            if (persistent != nullptr) {
                EXPECT_EQ(persistent->number, 44u);
            }
            source.fail_after(too_many);
            EXPECT_TRUE(all.eval(50)) << "unusable after source call " << k << " failed";
            EXPECT_NE(all.acquire(lifetime::persistent), nullptr);
            EXPECT_EQ(all.used().source_calls, source.base().traffic().acquired + source.refused());
        });
        EXPECT_EQ(source.base().traffic().live, 0u) << "leaked after source call " << k << " failed";
    }
}

// uTensor#219: the current one was not restored when an inner scope was left early.
TYPED_TEST_P(extra_laws, temporaries_die_with_their_scope_however_it_is_left) {
    if (this->leaks) return;
    {
        const offload_scope scope(this->extras.strategy);
        ASSERT_NE(this->extras.acquire(lifetime::temporary), nullptr);
        EXPECT_EQ(this->extras.used().live, 1u);
    }
    EXPECT_EQ(this->extras.used().live, 0u);
    EXPECT_THROW(
        {
            const offload_scope scope(this->extras.strategy);
            const offload_scope nested(this->extras.strategy);
            if (this->extras.acquire(lifetime::temporary) != nullptr) throw std::runtime_error("an op failed");
        },
        std::runtime_error);
    EXPECT_EQ(this->extras.used().live, 0u);
}

TYPED_TEST_P(extra_laws, the_scope_around_is_current_again_however_the_inner_one_is_left) {
    if (this->leaks) return;
    using scope = ambient_offload_scope<TypeParam>;
    extras_of<TypeParam> inner;
    EXPECT_EQ(scope::current(), nullptr);
    {
        const scope outer_scope(this->extras.strategy);
        auto* const outer = scope::current();
        ASSERT_NE(outer, nullptr);
        EXPECT_EQ(&outer->extras(), &this->extras.strategy);
        EXPECT_NE(this->extras.acquire(lifetime::temporary), nullptr);
        EXPECT_THROW(
            {
                const scope inner_scope(inner.strategy);
                EXPECT_EQ(&scope::current()->extras(), &inner.strategy);
                if (inner.acquire(lifetime::temporary) != nullptr) throw std::runtime_error("an op failed");
            },
            std::runtime_error);
        EXPECT_EQ(scope::current(), outer);
        EXPECT_EQ(inner.used().live, 0u);
        EXPECT_EQ(this->extras.used().live, 1u);
    }
    EXPECT_EQ(scope::current(), nullptr);
    EXPECT_EQ(this->extras.used().live, 0u);
}

REGISTER_TYPED_TEST_SUITE_P(extra_laws, live_extras_are_distinct_and_keep_their_contents,
                            every_extra_is_clear_at_birth_even_in_dirty_memory,
                            live_extras_are_constant_over_a_thousand_evals_or_leak_by_exactly_the_offloaded,
                            persistent_extras_survive_a_thousand_evals_until_they_are_released,
                            temporaries_can_be_released_early_in_any_order,
                            temporaries_of_nested_evals_die_at_the_outermost_end, an_end_without_a_begin_does_nothing,
                            what_keeps_memory_calls_the_source_in_the_first_eval_only_and_gives_all_back,
                            a_failure_of_any_source_call_leaks_nothing_and_leaves_the_strategy_usable,
                            temporaries_die_with_their_scope_however_it_is_left,
                            the_scope_around_is_current_again_however_the_inner_one_is_left);

}  // namespace alloclab::laws
