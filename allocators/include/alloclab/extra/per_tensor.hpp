// per_tensor: a heap object for each extra; an eval's temporaries are deleted one by one when it ends.
// Choose it when evals are few or long; it needs no tuning and no memory between evals.
// Cost: a source call for each tensor and eval, both ways, and what the source makes of it: a malloc that trims its
// heap gives the pages of one eval back and faults them in for the next. Threads: single. Full: when the source is.
// Idea: ggml's new and delete of ggml_tensor_extra_gpu, with the delete that llama.cpp#2145 found missing.
#pragma once

#include <string_view>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/extra/node_list.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab {

template <class E, memory_source Source = malloc_source>
class per_tensor {
public:
    using extra_type = E;
    static constexpr std::string_view name = "per_tensor";
    static constexpr thread_use threads = thread_use::single;

    explicit per_tensor(Source source = Source{}) noexcept : extras_(std::move(source)) {}

    void begin_eval() noexcept { depth_.begin(); }
    void end_eval() noexcept {
        if (depth_.end()) extras_.release_all(lifetime::temporary);
    }
    /// nullptr when the source is exhausted.
    [[nodiscard]] E* acquire(lifetime life) noexcept { return extras_.acquire(life); }
    /// nullptr does nothing.
    void release(E* extra) noexcept { extras_.release(extra); }

    [[nodiscard]] struct usage usage() const noexcept { return extras_.usage(); }

private:
    node_list<E, Source> extras_;
    eval_depth depth_;
};

}  // namespace alloclab
