// node_list: extras that are heap objects of their own, linked by lifetime so that all of one can be released at once.
// Every extra strategy with storage of its own keeps its persistent extras in one; per_tensor is nothing else.
// Cost: a source call and a construction each. Threads: single. Full: when the source is.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

template <class E, memory_source Source>
class node_list {
    static_assert(std::is_trivially_destructible_v<E>, "extras die by being forgotten");
    static_assert(alignof(E) <= Source::max_alignment, "node_list: the source cannot align an E");

public:
    explicit node_list(Source source = Source{}) noexcept : source_(std::move(source)) {}
    node_list(const node_list&) = delete;
    node_list& operator=(const node_list&) = delete;
    ~node_list() {
        release_all(lifetime::temporary);
        release_all(lifetime::persistent);
    }

    /// nullptr when the source is exhausted.
    [[nodiscard]] E* acquire(lifetime life) noexcept {
        ++source_calls_;
        void* memory = source_.allocate(sizeof(node), alignof(node));
        if (memory == nullptr) return nullptr;
        links& ring = ring_of(life);
        node* made = ::new (memory) node{{ring.next, &ring}, E{}};
        ring.next->previous = &made->link;
        ring.next = &made->link;
        ++live_;
        return &made->extra;
    }
    /// The extra must be live here; nullptr does nothing.
    void release(E* extra) noexcept {
        if (extra != nullptr) give_back(reinterpret_cast<node*>(reinterpret_cast<std::byte*>(extra) - before_extra));
    }
    void release_all(lifetime life) noexcept {
        links& ring = ring_of(life);
        while (ring.next != &ring) give_back(reinterpret_cast<node*>(ring.next));
    }
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = live_, .reserved_bytes = live_ * sizeof(node), .source_calls = source_calls_};
    }
    [[nodiscard]] Source& source() noexcept { return source_; }

private:
    struct links {
        links* next;
        links* previous;
    };
    struct node {
        links link;
        E extra;
    };
    static constexpr std::size_t before_extra = align_up(sizeof(links), alignof(E));

    [[nodiscard]] links& ring_of(lifetime life) noexcept {
        return life == lifetime::persistent ? persistent_ : temporary_;
    }
    void give_back(node* gone) noexcept {
        gone->link.previous->next = gone->link.next;
        gone->link.next->previous = gone->link.previous;
        source_.deallocate(gone, sizeof(node), alignof(node));
        --live_;
    }

    links persistent_{&persistent_, &persistent_};
    links temporary_{&temporary_, &temporary_};
    [[no_unique_address]] Source source_;
    std::size_t live_ = 0;
    std::size_t source_calls_ = 0;
};

/// Evals nest; only the outermost end ends one.
class eval_depth {
public:
    void begin() noexcept { ++depth_; }
    /// True at the outermost end; an end without a begin is none.
    [[nodiscard]] bool end() noexcept { return depth_ != 0 && --depth_ == 0; }

private:
    std::size_t depth_ = 0;
};

}  // namespace alloclab
