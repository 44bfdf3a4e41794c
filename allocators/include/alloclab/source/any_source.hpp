// any_source: any memory source behind two words, for code that must not be compiled once per source.
// Choose it where the source is called seldom (growth of a chunk chain), not on a fast path.
// Cost: an indirect call through a table. Threads and full: as the source it refers to, which must outlive it.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"

namespace alloclab {

class any_source {
public:
    static constexpr std::string_view name = "any_source";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t max_alignment = std::size_t{2} << 20;

    /// A source that is always exhausted.
    any_source() noexcept = default;
    template <memory_source Source>
    requires(!std::same_as<Source, any_source>) explicit any_source(Source& source) noexcept
        : source_(&source), calls_(&calls_of<Source>) {}

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        return calls_ != nullptr ? calls_->allocate(source_, bytes, align) : nullptr;
    }
    void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept {
        if (p != nullptr) calls_->deallocate(source_, p, bytes, align);
    }

private:
    struct calls {
        void* (*allocate)(void*, std::size_t, std::size_t) noexcept;
        void (*deallocate)(void*, void*, std::size_t, std::size_t) noexcept;
    };
    template <memory_source Source>
    static constexpr calls calls_of{[](void* s, std::size_t bytes, std::size_t align) noexcept {
                                        return static_cast<Source*>(s)->allocate(bytes, align);
                                    },
                                    [](void* s, void* p, std::size_t bytes, std::size_t align) noexcept {
                                        static_cast<Source*>(s)->deallocate(p, bytes, align);
                                    }};

    void* source_ = nullptr;
    const calls* calls_ = nullptr;
};

static_assert(memory_source<any_source>);

}  // namespace alloclab
