// type_list: types in a row, to be visited one by one.
#pragma once

#include <cstddef>

namespace alloclab {

template <class T>
struct type_tag {
    using type = T;
};

template <class... Types>
struct type_list {
    static constexpr std::size_t size = sizeof...(Types);

    /// Calls `visit(type_tag<T>{})` for each T in order.
    template <class Visit>
    static constexpr void for_each(Visit&& visit) {
        (visit(type_tag<Types>{}), ...);
    }
    /// The list handed to another template: `into<::testing::Types>`.
    template <template <class...> class Into>
    using into = Into<Types...>;
};

}  // namespace alloclab
