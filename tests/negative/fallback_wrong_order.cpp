// A heap cannot tell what it owns, so nothing may stand behind it.
// expect: front
#include "alloclab/presets.hpp"

using namespace alloclab;
#ifndef MENDED
using contexts = fallback<heap<int>, static_pool<int, 64>>;
#else
using contexts = fallback<static_pool<int, 64>, heap<int>>;
#endif
contexts strategy;
