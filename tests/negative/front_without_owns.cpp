// A strategy that leaves `owns` out is no front.
// expect: owning
#include "alloclab/presets.hpp"

using namespace alloclab;
struct one_slot {
    using value_type = int;
    static constexpr std::string_view name = "one_slot";
    static constexpr thread_use threads = thread_use::single;
    void* acquire() noexcept { return nullptr; }
    void release(void*) noexcept {}
#ifdef MENDED
    bool owns(const void*) const noexcept { return false; }
#endif
};
fallback<one_slot, heap<int>> strategy;
