// malloc aligns to 16 bytes; a stricter type needs a source that can.
// expect: heap: the source cannot align a T
#include "alloclab/context/heap.hpp"
#include "alloclab/source/aligned_malloc.hpp"

using namespace alloclab;
struct alignas(64) cache_line {
    int value;
};
#ifndef MENDED
heap<cache_line> strategy;
#else
heap<cache_line, aligned_malloc_source> strategy;
#endif
