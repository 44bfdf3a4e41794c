// together: several threads that begin at once, timed from the first one's start to the last one's end.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace alloclab::bench {

/// Each iteration runs `work(thread)` once in each of so many threads and sets its time. All begin together behind a
/// spin, so that waking up is not in the time. Threads beyond the cores take turns, and their waiting counts.
template <class Work>
void time_together(benchmark::State& state, std::size_t threads, Work work) {
    using clock = std::chrono::steady_clock;
    std::vector<clock::time_point> first(threads), last(threads);
    std::atomic<std::size_t> ready{0};
    std::barrier gate(static_cast<std::ptrdiff_t>(threads + 1));
    bool stop = false;  // written before the gate opens
    const auto rounds = [&](std::size_t thread) {
        for (;;) {
            gate.arrive_and_wait();
            if (stop) return;
            ++ready;
            while (ready.load() < threads) std::this_thread::yield();
            first[thread] = clock::now();
            work(thread);
            last[thread] = clock::now();
            gate.arrive_and_wait();
        }
    };
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t) workers.emplace_back(rounds, t);
    for (auto _ : state) {
        ready = 0;
        gate.arrive_and_wait();
        gate.arrive_and_wait();
        const clock::duration all =
            *std::max_element(last.begin(), last.end()) - *std::min_element(first.begin(), first.end());
        state.SetIterationTime(std::chrono::duration<double>(all).count());
    }
    stop = true;
    gate.arrive_and_wait();
}

}  // namespace alloclab::bench
