// calibration: a fixed piece of work whose time tells how fast the machine runs at this moment. Taken beside each
// timing, it shows which of two timings was taken at another clock speed, and that pair is then left out.
#pragma once

namespace alloclab::bench {

/// Nanoseconds per step of a chain of multiplications, each of which waits for the one before. Takes about 0.3 ms,
/// touches no memory and allocates nothing; one preemption does not move it.
[[nodiscard]] double calibrate() noexcept;

}  // namespace alloclab::bench
