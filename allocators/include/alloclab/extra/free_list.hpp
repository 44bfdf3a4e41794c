// free_list: extras carved from chunks; those of an ended eval are handed out again, the last released first.
// Choose it when temporaries are released one by one within an eval, so that their memory serves the same eval again.
// Cost: two list operations and the construction; the end of an eval is O(1). Threads: single. Full: when the source
// is. Idea: the free list proposed in llama.cpp#2146; ggml's OpenCL backend keeps its extras so (temp_tensor_extras).
#pragma once

#include <cstddef>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "alloclab/arena.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/extra/node_list.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab {

template <class E, memory_source Source = malloc_source>
class free_list {
    static_assert(std::is_trivially_destructible_v<E>, "extras die by being forgotten");

public:
    using extra_type = E;
    static constexpr std::string_view name = "free_list";
    static constexpr thread_use threads = thread_use::single;

    explicit free_list(growth by = {}, Source source = Source{}) noexcept : nodes_(by, std::move(source)) {}

    void begin_eval() noexcept { depth_.begin(); }
    void end_eval() noexcept {
        if (!depth_.end() || oldest_ == nullptr) return;
        oldest_->next = std::exchange(free_, std::exchange(temporary_, nullptr));
        oldest_ = nullptr;
        ++eval_;
        live_ -= std::exchange(live_temporary_, 0);
    }
    /// nullptr when the source is exhausted.
    [[nodiscard]] E* acquire(lifetime life) noexcept {
        node* taken = free_;
        if (taken != nullptr) free_ = taken->next;
        else if (void* memory = nodes_.allocate(sizeof(node), alignof(node)); memory != nullptr)
            taken = ::new (memory) node;
        else return nullptr;
        taken->dies_with = life == lifetime::temporary ? eval_ : persistent;
        ++live_;
        if (life == lifetime::temporary) {
            taken->previous = nullptr;
            taken->next = temporary_;
            (temporary_ != nullptr ? temporary_->previous : oldest_) = taken;
            temporary_ = taken;
            ++live_temporary_;
        }
        return ::new (taken->extra) E{};
    }
    /// nullptr does nothing, nor does an extra whose memory waits to be handed out again.
    void release(E* extra) noexcept {
        if (extra == nullptr) return;
        node* gone = reinterpret_cast<node*>(reinterpret_cast<std::byte*>(extra) - offsetof(node, extra));
        if (gone->dies_with == eval_) {
            (gone->previous != nullptr ? gone->previous->next : temporary_) = gone->next;
            (gone->next != nullptr ? gone->next->previous : oldest_) = gone->previous;
            --live_temporary_;
        } else if (gone->dies_with != persistent) return;
        gone->dies_with = released;
        gone->next = std::exchange(free_, gone);
        --live_;
    }

    [[nodiscard]] struct usage usage() const noexcept {
        struct usage all = nodes_.usage();
        all.live = live_;
        return all;
    }

private:
    enum : std::size_t { released, persistent, first_eval };
    struct node {
        node* next;
        node* previous;         // among temporaries
        std::size_t dies_with;  // the number of its eval, or one of the above
        alignas(E) std::byte extra[sizeof(E)];
    };

    arena<Source> nodes_;
    node* free_ = nullptr;
    node* temporary_ = nullptr;  // this eval's, youngest first
    node* oldest_ = nullptr;     // the last of them, so that all are given back in O(1)
    eval_depth depth_;
    std::size_t eval_ = first_eval;
    std::size_t live_ = 0;
    std::size_t live_temporary_ = 0;
};

}  // namespace alloclab
