// observe: what counters come of rounds that are counted and not timed. A round is one iteration of the timed loop: an
// eval, a load, or a batch of pairs.
//
// peak_bytes      the most bytes of live objects at one moment, as they were asked for
// reserved_bytes  the most bytes held for them, used or not; 1 - peak / reserved is the fragmentation
// requested_bytes what one round asks for, where it is known beforehand
// leaked          live objects that a round leaves behind
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "alloclab/compose.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/usage.hpp"
#include "catalogue.hpp"
#include "process.hpp"

namespace alloclab::bench {

/// Live slots that a fallback's back holds, under whatever layers; 0 where there is no back.
template <class S>
[[nodiscard]] std::size_t in_back(const S& s) noexcept {
    if constexpr (requires { s.in_back(); }) return s.in_back();
    else if constexpr (requires { s.base(); }) return in_back(s.base());
    else return 0;
}

using counted_buffers = compose<malloc_source, counting>;

/// Of what keeps nothing back: each block is a call to the source, and only live ones are held.
[[nodiscard]] inline usage usage_of(const traffic& seen) noexcept {
    return {.live = seen.live, .reserved_bytes = seen.live_bytes, .source_calls = seen.acquired};
}

/// Counts all traffic of a slot strategy; one that does not measure itself is taken for one that keeps nothing back.
/// Threads: single, whatever the strategy allows.
template <class S>
class watched : public compose<S, counting> {
    using counted = compose<S, counting>;

public:
    [[nodiscard]] void* acquire() noexcept {
        void* slot = counted::acquire();
        peak_reserved_ = std::max(peak_reserved_, usage().reserved_bytes);
        return slot;
    }
    [[nodiscard]] struct usage usage() const noexcept {
        if constexpr (measured<S>) return this->base().usage();
        else return usage_of(this->traffic());
    }
    [[nodiscard]] std::size_t peak_reserved_bytes() const noexcept { return peak_reserved_; }

private:
    std::size_t peak_reserved_ = 0;
};

/// Live and reserved bytes, looked at as often as they may have changed.
class memory_watch {
public:
    void look(std::size_t live_bytes, std::size_t reserved_bytes) {
        live_.push_back(static_cast<double>(live_bytes));
        reserved_.push_back(static_cast<double>(reserved_bytes));
    }
    void tell_peaks(observations& seen) const {
        if (live_.empty()) return;
        seen.counters["peak_bytes"] = *std::max_element(live_.begin(), live_.end());
        seen.counters["reserved_bytes"] = *std::max_element(reserved_.begin(), reserved_.end());
    }
    void tell_timeline(observations& seen) const {
        seen.timeline["live_bytes"] = thinned(live_);
        seen.timeline["reserved_bytes"] = thinned(reserved_);
    }

private:
    /// At most 200 points: the largest of so many neighbours each, so that no peak is lost, and at the end the last.
    [[nodiscard]] static std::vector<double> thinned(const std::vector<double>& all) {
        constexpr std::size_t most = 200;
        if (all.size() <= most) return all;
        std::vector<double> few;
        const auto at = [&](std::size_t i) {
            return all.begin() + static_cast<std::ptrdiff_t>(i * (all.size() - 1) / (most - 1));
        };
        for (std::size_t i = 0; i + 1 < most; ++i) few.push_back(*std::max_element(at(i), at(i + 1)));
        few.push_back(all.back());
        return few;
    }

    std::vector<double> live_, reserved_;
};

constexpr std::size_t repeats = 20;  // rounds that a count is the mean of

/// What one of many rounds costs in page faults: all that there is to tell of what counts nothing itself. Names the
/// counter by `of`: "faults_per_eval". Warm up before.
template <class Round>
void count_faults(observations& seen, const std::string& of, Round round) {
    const double faults = minor_faults();
    for (std::size_t i = 0; i < repeats; ++i) round();
    seen.counters["faults_per_" + of] = (minor_faults() - faults) / repeats;
}

/// And in calls to the source, and what it leaves live: `read()` gives the usage of all that takes part.
template <class Round, class Read>
void count_rounds(observations& seen, const std::string& of, Round round, Read read) {
    const usage before = read();
    count_faults(seen, of, round);
    const usage after = read();
    const auto grown = [](std::size_t now, std::size_t then) {
        return (static_cast<double>(now) - static_cast<double>(then)) / repeats;
    };
    seen.counters["source_calls_per_" + of] = grown(after.source_calls, before.source_calls);
    seen.counters["leaked"] = grown(after.live, before.live);
}

/// Rounds over a watched slot strategy, and over counted buffers where they take part, with the peaks of all.
template <class Round, class Slots, class... Buffers>
void observe_rounds(observations& seen, Round round, const Slots& slots, const Buffers&... buffers) {
    round();
    count_rounds(seen, "round", round, [&] { return (slots.usage() + ... + usage_of(buffers.traffic())); });
    seen.counters["peak_bytes"] =
        static_cast<double>((slots.traffic().peak_bytes + ... + buffers.traffic().peak_bytes));
    seen.counters["reserved_bytes"] =
        static_cast<double>((slots.peak_reserved_bytes() + ... + buffers.traffic().peak_bytes));
}

}  // namespace alloclab::bench
