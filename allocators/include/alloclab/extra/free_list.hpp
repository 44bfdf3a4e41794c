// free_list: extras carved from chunks; a released one is handed out again first, and an ended eval's all start over.
// Choose it when temporaries are released one by one within an eval, so that their memory serves the same eval again.
// Cost: a test and a word in front of each extra more than bump_arena; release and the end of an eval are O(1).
// Threads: single. Full: when the source is. From the second eval of the same size on, no source call and no page
// fault. Idea: the free list proposed in llama.cpp#2146. Only what is released early is ever listed: those that live to
// the end of the eval come back by starting over, and are not found one through another, each a cache miss.
#pragma once

#include <cstddef>
#include <cstdint>
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

    explicit free_list(growth by = {}, Source source = Source{}) noexcept
        : temporary_(by, source), persistent_(by, std::move(source)) {}

    void begin_eval() noexcept { depth_.begin(); }
    void end_eval() noexcept {
        if (!depth_.end()) return;
        temporary_.reset();
        eval_ += 2;
    }
    /// nullptr when the source is exhausted.
    [[nodiscard]] E* acquire(lifetime life) noexcept {
        const bool temporary = life == lifetime::temporary;
        node* taken = (temporary ? temporary_ : persistent_).take();
        if (taken == nullptr) return nullptr;
        taken->state = temporary ? eval_ : persistent;
        return ::new (taken->extra) E{};
    }
    /// nullptr does nothing, nor does one that was released already in this eval.
    void release(E* extra) noexcept {
        if (extra == nullptr) return;
        node* gone = reinterpret_cast<node*>(reinterpret_cast<std::byte*>(extra) - offsetof(node, extra));
        if (gone->state == eval_) temporary_.put(gone);
        else if (gone->state == persistent) persistent_.put(gone);
    }

    /// O(chunks).
    [[nodiscard]] struct usage usage() const noexcept { return temporary_.usage() + persistent_.usage(); }

private:
    static constexpr std::uintptr_t persistent = 1;
    struct node {
        std::uintptr_t state;  // the number of its eval, or `persistent`: odd; released: the next one, or 0
        alignas(E) std::byte extra[sizeof(E)];
    };

    /// The nodes of one lifetime.
    class store {
    public:
        explicit store(growth by, Source source) noexcept : nodes_(by, std::move(source)) {}

        [[nodiscard]] node* take() noexcept {
            if (released_ == nullptr) [[likely]]
                return static_cast<node*>(nodes_.template allocate_next<node>());
            --count_;
            return std::exchange(released_, reinterpret_cast<node*>(released_->state));
        }
        void put(node* gone) noexcept {
            gone->state = reinterpret_cast<std::uintptr_t>(std::exchange(released_, gone));
            ++count_;
        }
        void reset() noexcept {
            nodes_.reset();
            released_ = nullptr;
            count_ = 0;
        }
        [[nodiscard]] struct usage usage() const noexcept {
            struct usage all = nodes_.usage();
            all.live = nodes_.template count<node>() - count_;
            return all;
        }

    private:
        arena<Source> nodes_;
        node* released_ = nullptr;  // the last one first
        std::size_t count_ = 0;     // of those
    };

    store temporary_;
    store persistent_;
    eval_depth depth_;
    std::uintptr_t eval_ = 3;
};

}  // namespace alloclab
