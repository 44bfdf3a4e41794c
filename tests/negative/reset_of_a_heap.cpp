// A capability that the base lacks is not there on the layer either.
// expect: resettable
#include "alloclab/context/heap.hpp"
#include "alloclab/context/static_pool.hpp"
#include "alloclab/layer/counting.hpp"

using namespace alloclab;
#ifndef MENDED
using base = heap<int>;
#else
using base = static_pool<int, 8>;
#endif
void forget(compose<base, counting>& strategy) { strategy.reset(); }
