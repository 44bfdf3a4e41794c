// registry: the strategies that tests, benchmarks, the command line and the reports go through. A new strategy is one
// header and one line here: it is then listed, held to the laws, measured and reported.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/context/first_call_heap.hpp"
#include "alloclab/context/heap.hpp"
#include "alloclab/context/magazine_pool.hpp"
#include "alloclab/context/owner_pool.hpp"
#include "alloclab/context/scan_pool.hpp"
#include "alloclab/context/static_pool.hpp"
#include "alloclab/extra/bump_arena.hpp"
#include "alloclab/extra/free_list.hpp"
#include "alloclab/extra/inline_extra.hpp"
#include "alloclab/extra/leaky.hpp"
#include "alloclab/extra/per_tensor.hpp"
#include "alloclab/extra/ring.hpp"
#include "alloclab/presets.hpp"
#include "alloclab/source/aligned_malloc.hpp"
#include "alloclab/source/buffer.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/source/mimalloc.hpp"
#include "alloclab/source/pages.hpp"
#include "alloclab/type_list.hpp"

namespace alloclab {

/// The first is the baseline.
using source_strategies = type_list<  //
    malloc_source,                    //
    aligned_malloc_source,            //
    mimalloc_source,                  //
    pages_source>;

/// A source of memory that its user has; listed, but not made and measured by itself.
using given_sources = type_list<buffer_source>;

/// For contexts whose header is a T. The first is the baseline.
template <class T>
using context_strategies = type_list<     //
    heap<T>,                              //
    heap<T, aligned_malloc_source>,       //
    heap<T, mimalloc_source>,             //
    static_pool<T, 64>,                   //
    hybrid<T>,                            //
    locked_static_pool<T>,                //
    locked_hybrid<T>,                     //
    magazine_pool<T, 64>,                 //
    magazine_heap<T>,                     //
    magazine_hybrid<T>,                   //
    owner_pool<T, 64>,                    //
    owner_hybrid<T>,                      //
    scan_pool<T, 64>,                     //
    scan_pool<T, 64, lock_over::buffer>,  //
    first_call_heap<T>>;

/// For extras of type E. The first is the baseline.
template <class E>
using extra_strategies = type_list<  //
    per_tensor<E>,                   //
    free_list<E>,                    //
    bump_arena<E>,                   //
    ring<E>,                         //
    inline_extra<E>,                 //
    leaky<E>>;

/// A strategy in words, for lists and reports.
struct description {
    std::string_view name;
    thread_use threads;
    bool bounded;
    std::size_t capacity;  ///< slots, or 0 where unbounded
    std::string_view when_full;
    bool control;  ///< shows a known fault or a design of the past; not to be chosen
    bool leaks;
};

/// Reads a strategy's traits; what it does not say is as in the base that it wraps, else as in most.
template <named S>
[[nodiscard]] constexpr description describe() noexcept {
    description d{S::name, S::threads, false, 0, "nullptr, when the source is exhausted", false, false};
    if constexpr (requires(S & s) { s.base(); }) {
        d = describe<std::remove_reference_t<decltype(std::declval<S&>().base())>>();
        d.name = S::name;
        d.threads = S::threads;
    }
    if constexpr (bounded<S>) {
        d.bounded = true;
        d.capacity = S::capacity;
        d.when_full = "nullptr, nothing changes";
    }
    if constexpr (requires { S::when_full; }) d.when_full = S::when_full;
    if constexpr (requires { S::control; }) d.control = S::control;
    if constexpr (requires { S::leaks; }) d.leaks = S::leaks;
    return d;
}

/// False where a strategy needs something that this system lacks (mimalloc without its library).
template <named S>
[[nodiscard]] bool available() noexcept {
    if constexpr (requires { S::available(); }) return S::available();
    else if constexpr (requires(S & s) { s.source().available(); })
        return std::remove_reference_t<decltype(std::declval<S&>().source())>::available();
    else if constexpr (requires(S & s) { s.front(), s.back(); })
        return available<std::remove_reference_t<decltype(std::declval<S&>().front())>>() &&
               available<std::remove_reference_t<decltype(std::declval<S&>().back())>>();
    else if constexpr (requires(S & s) { s.base(); })
        return available<std::remove_reference_t<decltype(std::declval<S&>().base())>>();
    else return true;
}

}  // namespace alloclab
