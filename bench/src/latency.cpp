#include "latency.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace alloclab::bench {
namespace {

using clock = std::chrono::steady_clock;

std::vector<double> times_of(const std::function<void()>& operation, std::size_t most, clock::duration limit) {
    constexpr std::size_t least = 1000;
    std::vector<double> times(most);  // written once already, so that no page of it is touched first between readings
    std::size_t count = 0;
    for (const auto begin = clock::now(); count < most;) {
        const auto start = clock::now();
        operation();
        const auto end = clock::now();
        times[count++] = std::chrono::duration<double, std::nano>(end - start).count();
        if (count >= least && end - begin > limit) break;
    }
    times.resize(count);
    return times;
}

/// Place of a quantile among n sorted values: the first within which that share lies.
std::size_t rank_of(double share, std::size_t n) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(n)));
    return std::clamp<std::size_t>(rank, 1, n) - 1;
}

}  // namespace

std::vector<std::pair<double, double>> ecdf_of(std::vector<double> times) {
    std::vector<std::pair<double, double>> curve;
    if (times.empty()) return curve;
    std::sort(times.begin(), times.end());
    std::vector<std::size_t> ranks{0, rank_of(0.999, times.size()), times.size() - 1};
    for (int percent = 1; percent < 100; ++percent) ranks.push_back(rank_of(percent / 100.0, times.size()));
    for (int step = 1; step <= 95; ++step)  // beyond 99 %: 20 steps from one decade to the next
        ranks.push_back(rank_of(1 - 0.01 * std::pow(10, -step / 20.0), times.size()));
    std::sort(ranks.begin(), ranks.end());
    for (const std::size_t rank : ranks) {
        const double value = times[rank];
        if (!curve.empty() && curve.back().first == value) continue;
        const auto within = std::upper_bound(times.begin(), times.end(), value) - times.begin();
        curve.emplace_back(value, static_cast<double>(within) / static_cast<double>(times.size()));
    }
    return curve;
}

report::latency_curve time_one_by_one(const std::function<void()>& operation, std::size_t most) {
    using namespace std::chrono_literals;
    std::vector<double> empty = times_of([] {}, 10'001, 10ms);
    const auto middle = empty.begin() + static_cast<std::ptrdiff_t>(empty.size() / 2);
    std::nth_element(empty.begin(), middle, empty.end());
    for (std::size_t i = 0; i < most / 100; ++i) operation();
    std::vector<double> times = times_of(operation, most, 50ms);
    const std::size_t count = times.size();
    return {.floor = *middle, .count = count, .ecdf = ecdf_of(std::move(times))};
}

}  // namespace alloclab::bench
