// Extras die by being forgotten, so one with a destructor would leak what it holds.
// expect: extras die by being forgotten
#include "alloclab/extra/free_list.hpp"

using namespace alloclab;
struct extra {
#ifndef MENDED
    ~extra() {}
#endif
    int value = 0;
};
free_list<extra> strategy;
