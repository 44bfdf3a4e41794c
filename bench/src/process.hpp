// process: the state of this process that a measurement depends on: its heap, its caches, its page faults so far.
#pragma once

#include <string_view>

namespace alloclab::bench {

/// Brings the C library's heap into a state, the same in every process:
/// "bare"      as it is at the start. glibc gives freed memory back to the system at once then, and its page faults
///             outweigh all else;
/// "aged"      as in a process that has worked for a while: blocks of many sizes, two thirds of them freed in random
///             order, one live at the top, and a trim threshold as it is after a large buffer was freed;
/// "littered"  aged, and half of many small blocks freed at random, so that what is taken one after the other lies far
///             apart.
/// Throws std::invalid_argument for any other.
void prepare_heap(std::string_view state);

/// Gives the free pages of the C library's heap back to the system, so that who takes them next faults them in.
void forget_free_pages();

/// Writes to each line of 4 MiB of other memory, as the work between two allocations does; that is more than the
/// private caches of most cores hold.
void cool_caches();

/// Page faults of this process so far that needed no disk.
[[nodiscard]] double minor_faults();

}  // namespace alloclab::bench
