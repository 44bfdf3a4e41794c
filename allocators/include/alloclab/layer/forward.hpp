// forward: what every layer passes on unchanged, so that a layer says only what it does.
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

namespace detail {
template <class Base>
struct forwarded_constants {};
template <bounded Base>
struct forwarded_constants<Base> {
    static constexpr std::size_t capacity = Base::capacity;
};
template <class Base>
struct forwarded_type {
    static constexpr std::size_t max_alignment = Base::max_alignment;
};
template <slot_strategy Base>
struct forwarded_type<Base> {
    using value_type = typename Base::value_type;
};
}  // namespace detail

/// Holds the base, constructed from the arguments. Passes on the constants, `owns` and `usage`; acquire, release and
/// reset are the layer's, since passing them on is where layers differ.
template <class Base>
requires slot_strategy<Base> || memory_source<Base>
class forward : public detail::forwarded_constants<Base>, public detail::forwarded_type<Base> {
public:
    static constexpr thread_use threads = Base::threads;

    forward() requires std::default_initializable<Base>
    = default;
    template <class... Arguments>
    requires(sizeof...(Arguments) > 0 &&
             std::constructible_from<Base, Arguments...>) explicit forward(Arguments&&... arguments)
        : base_(std::forward<Arguments>(arguments)...) {}

    [[nodiscard]] bool owns(const void* p) const noexcept requires owning<Base> { return base_.owns(p); }
    [[nodiscard]] struct usage usage() const noexcept requires measured<Base> { return base_.usage(); }
    [[nodiscard]] Base& base() noexcept { return base_; }
    [[nodiscard]] const Base& base() const noexcept { return base_; }

private:
    [[no_unique_address]] Base base_;
};

}  // namespace alloclab
