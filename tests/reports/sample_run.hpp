// A made run with every shape that a report must draw: cost over live contexts, an eval in parts, growing extras,
// counters, slots that run out, and a strategy with an unpleasant name. Seeded, so the same everywhere.
#pragma once

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// What `made_run` calls its one oddly named strategy: quotes, comma, newline, markup, Greek, emoji.
inline constexpr const char* odd_name = "pool<int, 4> \"λ\"\n</script><b>|`🧠`";

[[nodiscard]] run made_run(std::size_t blocks = 7);

}  // namespace alloclab::report
