// library: other people's malloc families beside the C library's, each opened with RTLD_LOCAL and called through two
// pointers, since being linked with one would replace malloc in the whole process.
// Threads: shared. Full: nullptr. To add one: a struct as those below and a line in registry.hpp.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

/// Where a family lies and what its two functions are called.
struct mimalloc_family {
    static constexpr std::string_view name = "mimalloc";
    static constexpr std::initializer_list<const char*> files{"libmimalloc.so.2", "libmimalloc.so.3"};
    static constexpr const char* allocate = "mi_malloc";
    static constexpr const char* release = "mi_free";
};
struct jemalloc_family {
    static constexpr std::string_view name = "jemalloc";
    static constexpr std::initializer_list<const char*> files{"libjemalloc.so.2"};
    static constexpr const char* allocate = "malloc";
    static constexpr const char* release = "free";
};
struct tcmalloc_family {
    static constexpr std::string_view name = "tcmalloc";
    static constexpr std::initializer_list<const char*> files{"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"};
    static constexpr const char* allocate = "tc_malloc";
    static constexpr const char* release = "tc_free";
};

/// The two functions of a family, looked up at first use in the process.
template <class Family>
class library {
public:
    library() noexcept : calls_(opened().calls) {}

    [[nodiscard]] static bool available() noexcept { return opened().calls.release != nullptr; }
    /// What the loader says where there is none.
    [[nodiscard]] static std::string_view absence() noexcept { return opened().why; }

    [[nodiscard]] void* allocate(std::size_t bytes) noexcept { return calls_.allocate(bytes); }
    void release(void* block) noexcept { calls_.release(block); }

private:
    struct functions {
        void* (*allocate)(std::size_t) = nullptr;
        void (*release)(void*) = nullptr;
    };
    struct search {
        functions calls;
        std::string why;
    };
    static const search& opened() noexcept {
        static const search found = [] {
            search s;
            for (const char* file : Family::files) {
                void* handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
                void* allocate = handle != nullptr ? ::dlsym(handle, Family::allocate) : nullptr;
                void* release = allocate != nullptr ? ::dlsym(handle, Family::release) : nullptr;
                if (release != nullptr) {
                    s.calls = {reinterpret_cast<void* (*)(std::size_t)>(allocate),
                               reinterpret_cast<void (*)(void*)>(release)};
                    return s;
                }
                if (const char* error = ::dlerror(); error != nullptr && s.why.empty()) s.why = error;
            }
            return s;
        }();
        return found;
    }

    functions calls_;
};

template <class Family>
class library_slots {
public:
    using value_type = slot96;
    static constexpr std::string_view name = Family::name;
    static constexpr thread_use threads = thread_use::shared;
    [[nodiscard]] static bool available() noexcept { return library<Family>::available(); }
    [[nodiscard]] static std::string_view absence() noexcept { return library<Family>::absence(); }

    [[nodiscard]] void* acquire() noexcept { return family_.allocate(sizeof(slot96)); }
    void release(void* slot) noexcept { family_.release(slot); }

private:
    library<Family> family_;
};

}  // namespace alloclab::bench::peers
