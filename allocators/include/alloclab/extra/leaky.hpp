// leaky: a heap object for each extra, and nobody deletes those of an ended eval.
// A control, kept to show the fault of llama.cpp#2145 in figures; never choose it.
// Cost: a source call for each tensor, and its memory for ever. Threads: single. Full: when the source is.
// The fault ends with the strategy, which frees what it has leaked, so that a process can measure it and go on.
#pragma once

#include <string_view>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/extra/node_list.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab {

template <class E, memory_source Source = malloc_source>
class leaky {
public:
    using extra_type = E;
    static constexpr std::string_view name = "leaky";
    static constexpr thread_use threads = thread_use::single;
    static constexpr bool control = true;
    static constexpr bool leaks = true;

    explicit leaky(Source source = Source{}) noexcept : extras_(std::move(source)) {}

    void begin_eval() noexcept {}
    void end_eval() noexcept {}
    /// nullptr when the source is exhausted.
    [[nodiscard]] E* acquire(lifetime life) noexcept { return extras_.acquire(life); }
    /// nullptr does nothing.
    void release(E* extra) noexcept { extras_.release(extra); }

    [[nodiscard]] struct usage usage() const noexcept { return extras_.usage(); }

private:
    node_list<E, Source> extras_;
};

}  // namespace alloclab
