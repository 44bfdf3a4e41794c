// What a strategy must offer. Nothing else lives here; a capability that a strategy lacks is a member it leaves out.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

// clang-format 14 breaks compound requirements over lines.
// clang-format off
namespace alloclab {

struct usage;

/// Whether several threads may call one object at the same time.
enum class thread_use { single, shared };

/// The thread use of a whole whose parts are used as `a` and `b`.
[[nodiscard]] constexpr thread_use weaker(thread_use a, thread_use b) noexcept {
    return a == thread_use::single ? a : b;
}

/// How long an extra lives: persistent with the model, temporary until the eval ends (llama.cpp#2146).
enum class lifetime { persistent, temporary };

/// Has the name that users pick it by and says whether threads may share it.
template <class S>
concept named = requires {
    { S::name } -> std::convertible_to<std::string_view>;
    { S::threads } -> std::convertible_to<thread_use>;
};

/// Where bytes come from. `allocate` returns nullptr when exhausted, when the alignment is no power of two or above
/// `max_alignment`, and when the size is above PTRDIFF_MAX; size 0 counts as 1 byte. `deallocate` takes nullptr.
template <class S>
concept memory_source = named<S> && requires(S& s, void* p, std::size_t size, std::size_t align) {
    { S::max_alignment } -> std::convertible_to<std::size_t>;
    { s.allocate(size, align) } noexcept -> std::same_as<void*>;
    { s.deallocate(p, size, align) } noexcept -> std::same_as<void>;
};

/// Hands out storage for one `value_type` at a time; `acquire` returns nullptr when exhausted, `release` takes nullptr.
template <class P>
concept slot_strategy = named<P> && requires(P& p, void* slot) {
    typename P::value_type;
    { p.acquire() } noexcept -> std::same_as<void*>;
    { p.release(slot) } noexcept -> std::same_as<void>;
};

/// Can tell its own slots from others'; what it says of an address inside one of its slots is its own affair.
template <class P>
concept owning = requires(const P& p, const void* q) {
    { p.owns(q) } noexcept -> std::same_as<bool>;
};

/// Can forget every live object and keep its memory.
template <class P>
concept resettable = requires(P& p) {
    { p.reset() } noexcept -> std::same_as<void>;
};

/// Reports its counters.
template <class P>
concept measured = requires(const P& p) {
    { p.usage() } noexcept -> std::same_as<struct usage>;
};

/// Has a fixed number of slots.
template <class P>
concept bounded = requires {
    { P::capacity } -> std::convertible_to<std::size_t>;
};

/// A slot strategy that may stand before a fallback.
template <class P>
concept front = slot_strategy<P> && owning<P>;

/// A slot strategy that, as ggml did until 2024, keeps its lock while the caller makes the metadata buffer: both calls
/// run `work(slot)` under the lock, and `acquire_then` gives the slot back when it returns false.
template <class P>
concept locks_over_buffer = slot_strategy<P> && requires(P& p, void* slot, bool (*make)(void*), void (*drop)(void*)) {
    { p.acquire_then(make) } -> std::same_as<void*>;
    { p.release_after(slot, drop) } -> std::same_as<void>;
};

/// Brackets evals. Evals nest: temporaries die at the outermost `end_eval`; an `end_eval` without a begin does nothing.
template <class P>
concept eval_bracket = named<P> && requires(P& p) {
    typename P::extra_type;
    { p.begin_eval() } noexcept;
    { p.end_eval() } noexcept;
};

/// Hands out default-constructed extras from storage of its own; nullptr when exhausted. Temporaries die at `end_eval`
/// and may be released earlier; persistent ones live until they are released or the strategy dies.
template <class P>
concept extra_strategy = eval_bracket<P> && requires(P& p, typename P::extra_type* e, lifetime life) {
    { p.acquire(life) } noexcept -> std::same_as<typename P::extra_type*>;
    { p.release(e) } noexcept;
};

/// Makes the extra inside storage that every tensor carries: `bytes_in_tensor` bytes, aligned for `extra_type`.
template <class P>
concept embedded_extra_strategy = eval_bracket<P> &&
    requires(P& p, void* in_tensor, typename P::extra_type* e, lifetime life) {
    { P::bytes_in_tensor } -> std::convertible_to<std::size_t>;
    { p.acquire(life, in_tensor) } noexcept -> std::same_as<typename P::extra_type*>;
    { p.release(e) } noexcept;
};

template <class P>
concept any_extra_strategy = extra_strategy<P> || embedded_extra_strategy<P>;

}  // namespace alloclab
// clang-format on
