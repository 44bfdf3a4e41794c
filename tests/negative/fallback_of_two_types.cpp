// Front and back hand out slots for the same type.
// expect: same_as
#include "alloclab/presets.hpp"

using namespace alloclab;
#ifndef MENDED
using back = heap<long>;
#else
using back = heap<int>;
#endif
fallback<static_pool<int, 64>, back> strategy;
