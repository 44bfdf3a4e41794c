// consistency: what every run must satisfy beyond its schema. The reader refuses a file by it; whoever joins runs may
// ask it too.
#pragma once

#include <optional>
#include <string>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

struct fault {
    std::string place;  ///< JSON pointer: "/cells/3/samples/0/value"
    std::string what;   ///< "expected a time from 0, found -1"
};

/// The first fault: a name that is described twice or not at all, a cell that comes twice, a sample of a machine that
/// there is not, a time below 0, latencies that fall, a placement outside its map. n log n in all that the run holds.
[[nodiscard]] std::optional<fault> fault_of(const run& r);

}  // namespace alloclab::report
