// resume: what an earlier run that was broken off has measured already, taken over into the run that goes on with it.
#pragma once

#include <stdexcept>

#include "alloclab/report/results.hpp"

namespace alloclab::bench {

/// A file that belongs to another run: the text says in what they differ.
class cannot_resume : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Gives `r`, in which nothing is measured yet, all that `before` has. Throws cannot_resume unless both have the same
/// seed, design, strategies, workloads and cells, and come from the same build on the same machine.
void take_over(report::run& r, report::run before);

}  // namespace alloclab::bench
