#include "ggml.hpp"

#ifdef ALLOCLAB_GGML

#include <array>
#include <cstddef>

namespace alloclab::bench {

extern const ggml_library ggml_pool;  // ggml_package.cpp, once for each
extern const ggml_library ggml_heap;

std::span<const ggml_library> ggml_libraries() noexcept {
    static const std::array<ggml_library, 2> built_in = [] {
        const std::array libraries{ggml_pool, ggml_heap};
        for (const ggml_library& l : libraries) {
            alignas(std::max_align_t) std::byte buffer[64];
            l.free(l.init(buffer, sizeof buffer));
        }
        return libraries;
    }();
    return built_in;
}

}  // namespace alloclab::bench

#else

std::span<const alloclab::bench::ggml_library> alloclab::bench::ggml_libraries() noexcept { return {}; }

#endif
