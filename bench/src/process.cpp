#include "process.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "keep.hpp"

namespace alloclab::bench {
namespace {

/// Takes blocks of 32 to 32 + `spread` bytes and frees all but every `kept`-th of them in random order.
void scatter(std::size_t count, std::size_t spread, std::size_t kept) {
    std::mt19937 random(11);
    std::vector<void*> blocks(count);
    for (void*& block : blocks) block = std::malloc(32 + random() % spread);
    void* top = std::malloc(64);
    keep(top);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        keep(blocks[i]);
        if (i % kept != 0) std::free(blocks[i]);
    }
}

/// glibc raises its thresholds to the size of the largest mapped block that was freed (mallopt(3), M_MMAP_THRESHOLD).
void raise_thresholds() {
    void* large = std::malloc(std::size_t{24} << 20);
    keep(large);
    std::free(large);
}

}  // namespace

void prepare_heap(std::string_view state) {
    if (state == "bare") return;
    if (state != "aged" && state != "littered")
        throw std::invalid_argument("heap=" + std::string(state) + ": expected bare, aged or littered");
    scatter(4096, 2048, 3);
    raise_thresholds();
    if (state != "littered") return;
    constexpr std::size_t blocks = 32768;
    scatter(blocks, 1536, 2);
    // A large request makes glibc sort what was freed into its bins, once; the first small one would pay for it.
    void* large = std::malloc(std::size_t{1} << 20);
    keep(large);
    std::free(large);
}

void forget_free_pages() { ::malloc_trim(0); }

void cool_caches() {
    static std::vector<std::byte> other(std::size_t{4} << 20);
    std::byte* memory = other.data();
    constexpr std::size_t line = 64;
    for (std::size_t at = 0; at < other.size(); at += line) memory[at] ^= std::byte{1};
    keep(memory);
}

double minor_faults() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_minflt);
}

}  // namespace alloclab::bench
