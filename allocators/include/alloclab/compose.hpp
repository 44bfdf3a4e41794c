// compose<base, layer...>: base first, then what wraps it, so that it reads in the order a request leaves the base.
// A layer is a tag with a nested `template <class Base> class over` that keeps the interface of what it wraps.
// `joined` makes the name of a whole from the names of its parts at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace alloclab {

namespace detail {
template <class Base, class... Layers>
struct composed {
    using type = Base;
};
template <class Base, class Layer, class... Rest>
struct composed<Base, Layer, Rest...> {
    using type = typename composed<typename Layer::template over<Base>, Rest...>::type;
};

template <const std::string_view&... Parts>
struct joined_text {
    static constexpr std::size_t size = (Parts.size() + ... + 0);
    static constexpr auto text = [] {
        std::array<char, size + 1> all{};
        auto at = all.begin();
        ((at = std::copy(Parts.begin(), Parts.end(), at)), ...);
        return all;
    }();
};
}  // namespace detail

/// `compose<heap<T>, counting, locked>` is `locked::over<counting::over<heap<T>>>`.
template <class Base, class... Layers>
using compose = typename detail::composed<Base, Layers...>::type;

/// The parts in a row, with static storage.
template <const std::string_view&... Parts>
inline constexpr std::string_view joined{detail::joined_text<Parts...>::text.data(),
                                         detail::joined_text<Parts...>::size};

}  // namespace alloclab
