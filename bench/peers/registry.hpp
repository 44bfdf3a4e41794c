// registry: whom the peer workloads compare. A new peer is one header and one line here; ours come from the registry of
// strategies by themselves.
#pragma once

#include "alloclab/registry.hpp"
#include "boost_pool.hpp"
#include "c_interface.hpp"
#include "c_library.hpp"
#include "extras.hpp"
#include "library.hpp"
#include "no_allocator.hpp"
#include "pmr.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

/// Slots of 96 bytes. The first is the baseline.
using slot_peers = type_list<        //
    malloc_slots,                    //
    calloc_slots,                    //
    posix_memalign_slots,            //
    library_slots<mimalloc_family>,  //
    library_slots<jemalloc_family>,  //
    library_slots<tcmalloc_family>,  //
    pmr_unsynchronized_slots,        //
    pmr_synchronized_slots,          //
    boost_object_slots,              //
    boost_singleton_slots,           //
    c_magazine_pool_slots>;

/// Records of tensors. The first is the baseline.
using extra_peers = type_list<                      //
    block_extras<new_delete_blocks>,                //
    block_extras<malloc_blocks>,                    //
    block_extras<library_blocks<mimalloc_family>>,  //
    block_extras<library_blocks<jemalloc_family>>,  //
    block_extras<library_blocks<tcmalloc_family>>,  //
    pmr_monotonic_extras>;

namespace detail {
template <class... A, class... B>
type_list<A..., B...> join(type_list<A...>, type_list<B...>);
}  // namespace detail
template <class A, class B>
using joined_lists = decltype(detail::join(A{}, B{}));

/// Everyone, and the control that has no allocator.
using slot_contenders =
    joined_lists<joined_lists<slot_peers, context_strategies<slot96>>, type_list<no_allocator_slots>>;
using extra_contenders =
    joined_lists<joined_lists<extra_peers, extra_strategies<bare_extra>>, type_list<no_allocator_extras>>;

/// Ours that may be chosen; a heap over a source is that source, which is a peer itself.
template <class S>
inline constexpr bool is_choice = !describe<S>().control && !requires(S & s) {
    s.source();
};
/// A peer, one of ours that may be chosen, or the control that has no allocator.
template <class S>
inline constexpr bool contends = is_choice<S> || S::name == std::string_view("no_allocator");

}  // namespace alloclab::bench::peers
