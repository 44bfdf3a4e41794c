// offload_scope: begin and end of an eval as one object, so that temporaries die when the block is left, whichever way.
// Choose the explicit form where the scope can be passed on; ambient_offload_scope where the code that takes extras has
// no parameter for it.
// Cost: a begin and an end of the strategy; the ambient form adds two thread-local accesses. Threads: as the strategy.
// Idea: the offload context with begin and end that was proposed in llama.cpp#2146, in its two forms.
#pragma once

#include <utility>

#include "alloclab/concepts.hpp"

namespace alloclab {

/// The explicit form: whoever holds the scope may take extras.
template <any_extra_strategy Extras>
class offload_scope {
public:
    explicit offload_scope(Extras& extras) noexcept : extras_(extras) { extras_.begin_eval(); }
    ~offload_scope() { extras_.end_eval(); }
    offload_scope(const offload_scope&) = delete;
    offload_scope& operator=(const offload_scope&) = delete;

    /// A temporary extra that dies with the outermost scope over these extras; nullptr when the strategy is exhausted.
    [[nodiscard]] typename Extras::extra_type* acquire() noexcept requires extra_strategy<Extras> {
        return extras_.acquire(lifetime::temporary);
    }
    [[nodiscard]] Extras& extras() noexcept { return extras_; }

private:
    Extras& extras_;
};

/// The thread-local form: the innermost scope of this thread is found by `current`. Leaving a scope, by return or by
/// exception, makes the one around it current again (uTensor#219).
template <any_extra_strategy Extras>
class ambient_offload_scope {
public:
    explicit ambient_offload_scope(Extras& extras) noexcept
        : scope_(extras), outer_(std::exchange(current_, &scope_)) {}
    ~ambient_offload_scope() { current_ = outer_; }
    ambient_offload_scope(const ambient_offload_scope&) = delete;
    ambient_offload_scope& operator=(const ambient_offload_scope&) = delete;

    /// This thread's innermost scope over an `Extras`; nullptr outside of any.
    [[nodiscard]] static offload_scope<Extras>* current() noexcept { return current_; }

private:
    static inline thread_local offload_scope<Extras>* current_ = nullptr;

    offload_scope<Extras> scope_;
    offload_scope<Extras>* outer_;
};

}  // namespace alloclab
