// callgrind: instructions per operation, counted by valgrind's callgrind. The figure does not depend on the machine's
// load or clock, so a gate can stand on it.
#pragma once

#include <string>

#include "worker.hpp"

namespace alloclab::bench {

struct instruction_count {
    double per_operation = 0;
    double own = 0;            ///< of these, in this program; the others change with the libraries' versions
    double library_calls = 0;  ///< from this program into a library, per operation
    std::string error = {};    ///< "" when counted
};

/// Two runs of the cell's loop under callgrind that differ in the number of iterations alone; the difference of their
/// counts is exactly that of the iterations between, set-up and warm-up left out. For loops of one thread. Takes
/// seconds per cell.
[[nodiscard]] instruction_count count_instructions(job j, double limit_seconds, bool (*interrupted)());

}  // namespace alloclab::bench
