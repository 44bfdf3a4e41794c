// named: shared by all laws. Test names from strategies' names, skipping what this system lacks, filters over type
// lists.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "alloclab/concepts.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/type_list.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

[[nodiscard]] inline bool operator==(const usage& a, const usage& b) {
    return a.live == b.live && a.reserved_bytes == b.reserved_bytes && a.source_calls == b.source_calls;
}
inline std::ostream& operator<<(std::ostream& out, const usage& u) {
    return out << u.live << " live, " << u.reserved_bytes << " bytes reserved, " << u.source_calls << " source calls";
}

}  // namespace alloclab

namespace alloclab::laws {

/// A law reads `slot_laws/hybrid_3.aligned`.
struct by_name {
    template <named S>
    static std::string GetName(int index) {
        std::string text(S::name);
        for (char& c : text)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
        return text + "_" + std::to_string(index);
    }
};

template <named S>
class of_available : public ::testing::Test {
protected:
    void SetUp() override {
        if (!available<S>()) GTEST_SKIP() << S::name << " is not available on this system";
    }
};

namespace detail {
template <class Kept, template <class> class Wanted, class... Types>
struct filter {
    using type = Kept;
};
template <class... Kept, template <class> class Wanted, class T, class... Rest>
struct filter<type_list<Kept...>, Wanted, T, Rest...>
    : filter<std::conditional_t<Wanted<T>::value, type_list<Kept..., T>, type_list<Kept...>>, Wanted, Rest...> {};
}  // namespace detail

/// Those types of the list for which `Wanted<T>::value` is true.
template <class List, template <class> class Wanted>
struct only;
template <class... Types, template <class> class Wanted>
struct only<type_list<Types...>, Wanted> : detail::filter<type_list<>, Wanted, Types...> {};

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool thread_sanitized = __has_feature(thread_sanitizer);
#else
inline constexpr bool thread_sanitized = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = thread_sanitized || __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = thread_sanitized;
#endif

/// False where ThreadSanitizer would report what a library does that was not compiled with it, and synchronises unseen.
template <named S>
inline constexpr bool threads_are_judged = !thread_sanitized || S::name.find("mimalloc") == std::string_view::npos;

[[nodiscard]] inline bool is_aligned(const void* p, std::size_t align) {
    return reinterpret_cast<std::uintptr_t>(p) % align == 0;
}

}  // namespace alloclab::laws
