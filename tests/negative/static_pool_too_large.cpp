// Two levels of 64-bit words reach 4096 slots.
// expect: static_pool: 1 to 4096 slots
#include "alloclab/context/static_pool.hpp"

#ifndef MENDED
alloclab::static_pool<char, 4097> strategy;
#else
alloclab::static_pool<char, 4096> strategy;
#endif
