// mimalloc_source: mimalloc's own heap beside the C library's, in the same process.
// Choose it to have mimalloc serve one strategy without replacing malloc for everyone.
// Cost: one mi_malloc or mi_malloc_aligned through a pointer. Threads: shared. Full, or no libmimalloc on this system:
// nullptr. The library is opened with RTLD_LOCAL, since being linked with Debian's libmimalloc.so is enough to replace
// malloc in the whole process. A program that is linked with it on purpose gets that same copy.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"

namespace alloclab {

class mimalloc_source {
public:
    static constexpr std::string_view name = "mimalloc";
    static constexpr thread_use threads = thread_use::shared;
    static constexpr std::size_t max_alignment = std::size_t{64} << 10;

    /// Opens libmimalloc at first use in the process; see `available`.
    mimalloc_source() noexcept : library_(library()) {}

    /// False when this system has no libmimalloc; every allocate then returns nullptr.
    [[nodiscard]] static bool available() noexcept { return library().allocate != nullptr; }
    /// mimalloc's version as it gives it, 209 for 2.0.9; 0 without the library.
    [[nodiscard]] static int version() noexcept { return library().version != nullptr ? library().version() : 0; }
    /// True when the block lies in mimalloc's heap: tells who served a malloc.
    [[nodiscard]] static bool serves(const void* p) noexcept {
        return library().in_heap != nullptr && library().in_heap(p);
    }

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        if (!is_request(bytes, align, max_alignment) || library_.allocate == nullptr) return nullptr;
        bytes = at_least_one(bytes);
        if (align <= alignof(std::max_align_t) && bytes >= align) return library_.allocate(bytes);
        // An odd size: mi_malloc_aligned 2.0.9 takes small powers of two for naturally aligned, beyond 128 they are
        // not.
        return library_.allocate_aligned(bytes | 1, align);
    }
    void deallocate(void* p, std::size_t, std::size_t) noexcept {
        if (p != nullptr) library_.deallocate(p);
    }

private:
    struct entry_points {
        void* (*allocate)(std::size_t) = nullptr;
        void* (*allocate_aligned)(std::size_t, std::size_t) = nullptr;
        void (*deallocate)(void*) = nullptr;
        int (*version)() = nullptr;
        bool (*in_heap)(const void*) = nullptr;
    };
    static const entry_points& library() noexcept {
        static const entry_points loaded = [] {
            entry_points found;
            for (const char* file : {"libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"}) {
                void* opened = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
                if (opened == nullptr) continue;
                const auto find = [opened](auto& entry, const char* symbol) {
                    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(opened, symbol));
                };
                find(found.allocate, "mi_malloc");
                find(found.allocate_aligned, "mi_malloc_aligned");
                find(found.deallocate, "mi_free");
                find(found.version, "mi_version");
                find(found.in_heap, "mi_is_in_heap_region");
                if (found.allocate && found.allocate_aligned && found.deallocate) return found;
            }
            return entry_points{};
        }();
        return loaded;
    }

    entry_points library_;
};

static_assert(memory_source<mimalloc_source>);

}  // namespace alloclab
