// inline_extra: the extra lies inside every tensor, whether the tensor is offloaded or not.
// A control, kept to measure the first proposal of llama.cpp#2146, refused since a tensor must stay free of what one
// device needs; choose bump_arena instead.
// Cost: a construction; every tensor grows by an extra. Threads: single. Full: never, the context is.
#pragma once

#include <cstddef>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/extra/node_list.hpp"

namespace alloclab {

template <class E>
class inline_extra {
    static_assert(std::is_trivially_destructible_v<E>, "extras die by being forgotten");

public:
    using extra_type = E;
    static constexpr std::string_view name = "inline_extra";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::string_view when_full = "the context is exhausted";
    static constexpr bool control = true;
    static constexpr std::size_t bytes_in_tensor = sizeof(E);

    void begin_eval() noexcept { depth_.begin(); }
    void end_eval() noexcept {
        if (depth_.end()) live_ -= std::exchange(temporary_, 0);
    }
    /// `in_tensor` is `bytes_in_tensor` bytes, aligned for E, that live as long as the tensor.
    [[nodiscard]] E* acquire(lifetime life, void* in_tensor) noexcept {
        ++live_;
        if (life == lifetime::temporary) ++temporary_;
        return ::new (in_tensor) E{};
    }
    /// Only persistent extras may be released before their eval ends: nothing tells the two apart here. nullptr does
    /// nothing.
    void release(E* extra) noexcept {
        if (extra != nullptr) --live_;
    }

    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = live_, .reserved_bytes = live_ * sizeof(E), .source_calls = 0};
    }

private:
    eval_depth depth_;
    std::size_t live_ = 0;
    std::size_t temporary_ = 0;
};

}  // namespace alloclab
