// fallback: asks the front first and the back when the front is exhausted; each slot goes home on release.
// Choose it to keep the speed of a bounded pool without its limit: fallback<static_pool<T, 64>, heap<T>> is "hybrid".
// Cost: one branch over the front while that has room. Threads: as the weaker of the two. Full: when the back is.
// Idea: FallbackAllocator (Alexandrescu, CppCon 2015); the front must know what it owns, which the concept asks for.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

template <front Front, slot_strategy Back>
requires std::same_as<typename Front::value_type, typename Back::value_type>
class fallback {
    static constexpr std::string_view open = "fallback<", comma = ",", close = ">";

public:
    using value_type = typename Front::value_type;
    static constexpr std::string_view name = joined<open, Front::name, comma, Back::name, close>;
    static constexpr thread_use threads = weaker(Front::threads, Back::threads);
    static constexpr std::string_view when_full = "the back serves";

    fallback() = default;
    /// Makes the back from the arguments: a heap over a source that has a state.
    template <class... Arguments>
    requires(sizeof...(Arguments) > 0 &&
             std::constructible_from<Back, Arguments...>) explicit fallback(Arguments&&... for_back)
        : back_(std::forward<Arguments>(for_back)...) {}

    /// Storage for one value_type; nullptr when both are exhausted.
    [[nodiscard, gnu::always_inline]] void* acquire() noexcept {
        if (void* slot = front_.acquire()) [[likely]]
            return slot;
        void* slot = back_.acquire();
        if constexpr (!measured<Back>)
            if (slot != nullptr) {
                of_back_.live.add();
                of_back_.calls.add();
            }
        return slot;
    }

    /// nullptr does nothing; any other slot must be live here.
    [[gnu::always_inline]] void release(void* slot) noexcept {
        if (front_.owns(slot)) [[likely]]
            return front_.release(slot);
        if constexpr (!measured<Back>)
            if (slot != nullptr) of_back_.live.subtract();
        back_.release(slot);
    }

    [[nodiscard]] bool owns(const void* slot) const noexcept requires owning<Back> {
        return front_.owns(slot) || back_.owns(slot);
    }

    /// Forgets every live slot of both; the memory stays.
    void reset() noexcept requires resettable<Front> && resettable<Back> {
        front_.reset();
        back_.reset();
        if constexpr (!measured<Back>) of_back_.live.set(0);
    }

    /// Both together; of a back that does not measure itself, the live slots, their bytes as they were asked for, and
    /// each slot so far as a call to its source.
    [[nodiscard]] struct usage usage() const noexcept requires measured<Front> {
        if constexpr (measured<Back>) return front_.usage() + back_.usage();
        else return front_.usage() + alloclab::usage{in_back(), in_back() * sizeof(value_type), of_back_.calls.get()};
    }

    [[nodiscard]] Front& front() noexcept { return front_; }
    [[nodiscard]] Back& back() noexcept { return back_; }
    /// Live slots that the back holds.
    [[nodiscard]] std::size_t in_back() const noexcept {
        if constexpr (measured<Back>) return back_.usage().live;
        else return of_back_.live.get();
    }

private:
    [[no_unique_address]] Front front_;
    [[no_unique_address]] Back back_;
    struct nothing {};
    struct counters {
        counter<threads> live, calls;
    };
    [[no_unique_address]] std::conditional_t<measured<Back>, nothing, counters> of_back_;
};

}  // namespace alloclab
