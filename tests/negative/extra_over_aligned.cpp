// The same for extras of their own: it must not compile rather than always be refused.
// expect: node_list: the source cannot align an E
#include "alloclab/extra/bump_arena.hpp"
#include "alloclab/source/aligned_malloc.hpp"

using namespace alloclab;
struct alignas(64) extra {
    int value;
};
#ifndef MENDED
bump_arena<extra> strategy;
#else
bump_arena<extra, aligned_malloc_source> strategy;
#endif
