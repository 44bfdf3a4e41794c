// A new strategy is one header and one line: this is the line.
#include "toy_strategy.hpp"

#include "../laws/fallback_laws.hpp"
#include "../laws/slot_laws.hpp"

namespace alloclab::laws {

INSTANTIATE_TYPED_TEST_SUITE_P(toy, slot_laws, toy_strategy<long>, by_name);

// Since it is a front, it may stand before any other.
using toy_then_heap = fallback<toy_strategy<long>, heap<long>>;
INSTANTIATE_TYPED_TEST_SUITE_P(toy, fallback_laws, toy_then_heap, by_name);

}  // namespace alloclab::laws
