// blocks: the samples of a cell by the block in which they were taken, which is what may be paired.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// One side of a pair.
struct timing {
    double value = 0;
    double calibration = 0;  ///< 0: unknown
};

/// The median sample of each block of each machine (machine, block), so that samples of one block never count as
/// independent. A block with a time that is not finite and above 0 is left out.
[[nodiscard]] std::map<std::pair<std::size_t, std::size_t>, timing> by_block(const cell& c);

/// Of the finite samples, in the workload's unit; nullopt without any.
[[nodiscard]] std::optional<double> median_of(const cell& c);

/// Whether the machine's speed changed by more than uneven_speed between the two; false where it is unknown.
[[nodiscard]] bool uneven(double calibration, double other) noexcept;

}  // namespace alloclab::report
