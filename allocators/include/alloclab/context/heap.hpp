// heap: each slot straight from a source, malloc unless another is named.
// Choose it when the number of live objects has no bound and nothing has been measured to be better.
// Cost: the source's. Threads: as the source. Full: when the source is.
// Idea: ggml since whisper.cpp#2525 mallocs each context.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab {

template <class T, memory_source Source = malloc_source>
class heap {
    static_assert(alignof(T) <= Source::max_alignment, "heap: the source cannot align a T");
    static constexpr std::string_view prefix = "heap_";

public:
    using value_type = T;
    static constexpr std::string_view name = joined<prefix, Source::name>;
    static constexpr thread_use threads = Source::threads;

    heap() = default;
    explicit heap(Source source) noexcept : source_(std::move(source)) {}

    /// Storage for one T, uninitialised; nullptr when the source is exhausted.
    [[nodiscard]] void* acquire() noexcept { return source_.allocate(sizeof(T), alignof(T)); }
    /// The slot must come from this heap and be live; nullptr does nothing.
    void release(void* slot) noexcept { source_.deallocate(slot, sizeof(T), alignof(T)); }

    [[nodiscard]] Source& source() noexcept { return source_; }

private:
    [[no_unique_address]] Source source_;
};

}  // namespace alloclab
