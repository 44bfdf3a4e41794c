// The registry: every entry meets its concept under a name of its own, and describes itself rightly.
#include "alloclab/registry.hpp"

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <set>
#include <string>
#include <string_view>

#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/locked.hpp"

namespace alloclab {
namespace {

using context_header = std::array<void*, 12>;
using extra = std::array<void*, 16>;

template <class List>
struct every;
template <class... S>
struct every<type_list<S...>> {
    static constexpr bool is_source = (memory_source<S> && ...);
    static constexpr bool is_slot_strategy = (slot_strategy<S> && ...);
    static constexpr bool is_extra_strategy = (any_extra_strategy<S> && ...);
    static constexpr bool is_measured = (measured<S> && ...);
    template <class T>
    static constexpr bool holds = (std::same_as<typename S::value_type, T> && ...);

    static constexpr bool names_are_unique() {
        constexpr std::array<std::string_view, sizeof...(S)> names{S::name...};
        for (std::size_t i = 0; i < names.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (names[i] == names[j]) return false;
        return true;
    }
    /// Users type them and files carry them.
    static constexpr bool names_are_words() {
        for (const std::string_view name : {std::string_view(S::name)...})
            for (const char c : name)
                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
        return true;
    }
};
using sources = every<source_strategies>;
using contexts = every<context_strategies<context_header>>;
using extras = every<extra_strategies<extra>>;

static_assert(sources::is_source && sources::names_are_unique() && sources::names_are_words());
static_assert(contexts::is_slot_strategy && contexts::names_are_unique() && contexts::names_are_words());
static_assert(contexts::holds<context_header>);
static_assert(extras::is_extra_strategy && extras::is_measured && extras::names_are_unique() &&
              extras::names_are_words());

// No strategy has a capability that always fails, and each that is bounded can say how full it is.
template <class List>
struct capabilities;
template <class... S>
struct capabilities<type_list<S...>> {
    static constexpr bool bounded_ones_own_and_measure = ((!bounded<S> || (owning<S> && measured<S>)) && ...);
};
static_assert(capabilities<context_strategies<context_header>>::bounded_ones_own_and_measure);

template <class List>
std::set<std::string> names() {
    std::set<std::string> all;
    List::for_each([&](auto tag) { all.emplace(decltype(tag)::type::name); });
    return all;
}

TEST(registry, has_the_strategies_that_are_compared) {
    for (const char* name : {"heap_malloc", "heap_aligned_malloc", "heap_mimalloc", "static_pool", "hybrid",
                             "scan_pool", "scan_pool_lock_over_buffer", "first_call_heap", "magazine_pool",
                             "magazine_heap", "magazine_hybrid", "owner_pool", "owner_hybrid"})
        EXPECT_TRUE(names<context_strategies<context_header>>().contains(name)) << name;
    for (const char* name : {"per_tensor", "free_list", "bump_arena", "ring", "inline_extra", "leaky"})
        EXPECT_TRUE(names<extra_strategies<extra>>().contains(name)) << name;
    for (const char* name : {"malloc", "aligned_malloc", "mimalloc", "pages"})
        EXPECT_TRUE(names<source_strategies>().contains(name)) << name;
}

TEST(registry, describes_bounds_threads_and_what_happens_when_full) {
    constexpr description pool = describe<static_pool<int, 64>>();
    EXPECT_TRUE(pool.bounded);
    EXPECT_EQ(pool.capacity, 64u);
    EXPECT_EQ(pool.threads, thread_use::single);
    EXPECT_EQ(pool.when_full, "nullptr, nothing changes");
    EXPECT_FALSE(pool.control);
    constexpr description both = describe<locked_hybrid<int>>();
    EXPECT_FALSE(both.bounded);
    EXPECT_EQ(both.capacity, 0u);
    EXPECT_EQ(both.threads, thread_use::shared);
    EXPECT_EQ(both.when_full, "the back serves");
    constexpr description fault = describe<leaky<extra>>();
    EXPECT_TRUE(fault.control && fault.leaks);
    EXPECT_EQ(describe<heap<int>>().when_full, "nullptr, when the source is exhausted");
}

TEST(registry, each_strategy_says_what_happens_when_it_is_full) {
    const auto says = [](auto tag) {
        EXPECT_FALSE(describe<typename decltype(tag)::type>().when_full.empty());
        EXPECT_EQ(describe<typename decltype(tag)::type>().bounded,
                  describe<typename decltype(tag)::type>().capacity != 0);
    };
    context_strategies<context_header>::for_each(says);
    extra_strategies<extra>::for_each(says);
    source_strategies::for_each(says);
}

TEST(registry, only_what_needs_a_missing_library_is_unavailable) {
    EXPECT_EQ((available<heap<int, mimalloc_source>>()), mimalloc_source::available());
    EXPECT_EQ(available<mimalloc_source>(), mimalloc_source::available());
    EXPECT_EQ((available<compose<heap<int, mimalloc_source>, counting, locked>>()), mimalloc_source::available());
    context_strategies<context_header>::for_each([](auto tag) {
        using s = typename decltype(tag)::type;
        if (s::name.find("mimalloc") == std::string_view::npos) {
            EXPECT_TRUE(available<s>()) << s::name;
        }
    });
}

}  // namespace
}  // namespace alloclab
