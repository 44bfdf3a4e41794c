// process: the state of this process that a measurement depends on: its heap, and its page faults so far.
#pragma once

namespace alloclab::bench {

/// Brings the C library's heap into the state of a process that has worked for a while: blocks of many sizes, two
/// thirds of them freed in random order, one live at the top, and a trim threshold as it is after a large buffer was
/// freed. In a bare heap glibc gives freed memory back to the system at once, and its page faults outweigh all else.
void age_heap();

/// Page faults of this process so far that needed no disk.
[[nodiscard]] double minor_faults();

}  // namespace alloclab::bench
