// bump_arena: an eval's temporaries lie one behind the other in chunks that are kept; the end of the eval forgets them.
// Choose it first: it is the cheapest way that does not leak.
// Cost: an addition, a compare and the construction; the end of an eval is O(1). Threads: single. Full: when the source
// is. From the second eval of the same size on, no source call and no page fault, whatever the arena may retain: it
// keeps what recent evals used, and only one that is larger than these pays again. Idea: the buffer with a counter
// reset per eval that was proposed in llama.cpp#2146.
#pragma once

#include <cstddef>
#include <new>
#include <string_view>

#include "alloclab/arena.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/extra/node_list.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab {

template <class E, memory_source Source = malloc_source>
class bump_arena {
public:
    using extra_type = E;
    static constexpr std::string_view name = "bump_arena";
    static constexpr thread_use threads = thread_use::single;

    explicit bump_arena(growth by = {}, Source source = Source{}) noexcept
        : temporary_(by, source), persistent_(std::move(source)) {}

    void begin_eval() noexcept { depth_.begin(); }
    void end_eval() noexcept {
        if (!depth_.end()) return;
        temporary_.reset();
        released_ = 0;
    }
    /// nullptr when the source is exhausted.
    [[nodiscard]] E* acquire(lifetime life) noexcept {
        if (life == lifetime::persistent) return persistent_.acquire(life);
        void* memory = temporary_.template allocate_next<E>();
        return memory != nullptr ? ::new (memory) E{} : nullptr;
    }
    /// A temporary's memory comes back at the end of the eval only. O(chunks). nullptr does nothing.
    void release(E* extra) noexcept {
        if (temporary_.owns(extra)) ++released_;
        else persistent_.release(extra);
    }

    /// O(chunks).
    [[nodiscard]] struct usage usage() const noexcept {
        struct usage all = persistent_.usage() + temporary_.usage();
        all.live += temporary_.template count<E>() - released_;
        return all;
    }

private:
    arena<Source> temporary_;
    node_list<E, Source> persistent_;
    eval_depth depth_;
    std::size_t released_ = 0;  // temporaries of this eval
};

}  // namespace alloclab
