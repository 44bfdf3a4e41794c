#include "process.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <vector>

#include "keep.hpp"

namespace alloclab::bench {

void age_heap() {
    std::mt19937 random(11);
    std::vector<void*> blocks(4096);
    for (void*& block : blocks) block = std::malloc(32 + random() % 2048);
    void* top = std::malloc(64);
    keep(top);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        keep(blocks[i]);
        if (i % 3 != 0) std::free(blocks[i]);
    }
    // glibc raises its thresholds to the size of the largest mapped block that was freed (mallopt(3),
    // M_MMAP_THRESHOLD).
    void* large = std::malloc(std::size_t{24} << 20);
    keep(large);
    std::free(large);
}

double minor_faults() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_minflt);
}

}  // namespace alloclab::bench
