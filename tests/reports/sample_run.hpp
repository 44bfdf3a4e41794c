// A made run with every field of a run and every shape that a report must draw: cost over live contexts and threads, an
// eval in parts, growing extras, counters, slots that run out, an A/A twin, latencies, timelines, a memory map, two
// machines, and a strategy, a parameter and a value with unpleasant names. Seeded, so the same everywhere.
#pragma once

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// What `made_run` calls its one oddly named strategy: quotes, comma, newline, markup, Greek, emoji.
inline constexpr const char* odd_name = "pool<int, 4> \"λ\"\n</script><b>|`🧠`";
/// Likewise a parameter of source/buffer and one of its values.
inline constexpr const char* odd_parameter = "by\\tes[\"µ\"]\n<i>|`= ";
inline constexpr const char* odd_value = "=1\\2, \"Ł\"\n</script>|`🧠'";

/// `blocks` in all, the first half from one machine, the rest from another; 6 are needed for a verdict.
[[nodiscard]] run made_run(std::size_t blocks = 7);

}  // namespace alloclab::report
