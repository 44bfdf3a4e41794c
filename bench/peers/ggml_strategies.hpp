// ggml_strategies: each real ggml under the name that it is picked by.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "ggml.hpp"

namespace alloclab::bench::peers {

/// What the library of that name does, where it was built in.
template <class Package>
struct ggml : Package {
    static constexpr thread_use threads = thread_use::shared;

    /// nullptr where it was not built in.
    [[nodiscard]] static const ggml_library* library() noexcept {
        for (const ggml_library& each : ggml_libraries())
            if (each.name == Package::name) return &each;
        return nullptr;
    }
    [[nodiscard]] static bool available() noexcept { return library() != nullptr; }
    [[nodiscard]] static std::string_view absence() noexcept {
        return "built without ggml, which ./bench/run --preset peers fetches";
    }
};

/// ggml of 2023: a static pool of 64 contexts.
struct ggml_pool_package {
    static constexpr std::string_view name = "ggml_pool";
    static constexpr std::size_t capacity = 64;
};
/// ggml of today: each context from malloc.
struct ggml_heap_package {
    static constexpr std::string_view name = "ggml_heap";
    static constexpr std::string_view when_full = "nullptr, when malloc has none";
};
using ggml_pool = ggml<ggml_pool_package>;
using ggml_heap = ggml<ggml_heap_package>;

}  // namespace alloclab::bench::peers
