// keep: makes the compiler believe that a pointer is used, so that what made it is not dropped (g++ drops a malloc and
// free whose pointer escapes nowhere). The pointer stays in its register: benchmark::DoNotOptimize would send it
// through memory, which costs a fast strategy as much as its own work. It takes pointers alone, so that no large object
// is ever copied on the way (google/benchmark#1340).
#pragma once

namespace alloclab::bench {

template <class T>
inline void keep(T* pointer) noexcept {
    asm volatile("" : : "r"(pointer) : "memory");
}

}  // namespace alloclab::bench
