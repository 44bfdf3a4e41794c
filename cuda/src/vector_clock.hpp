// vector_clock: what somebody has heard of everybody's work: of each actor, how much.
// Cost: O(actors) for a join or a copy. Threads: single. Full: widening and copying throw std::bad_alloc; a join never.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace alloclab::device {

/// Who does work: the host, or a stream of any of its devices.
enum class actor : std::uint32_t { host = 0 };

/// The how-manieth work of an actor it is; 0 is before the first.
using tick = std::uint64_t;

class vector_clock {
public:
    /// The last work of the actor that this clock comes after.
    [[nodiscard]] tick heard(actor a) const noexcept {
        const auto number = static_cast<std::size_t>(a);
        return number < heard_.size() ? heard_[number] : 0;
    }
    [[nodiscard]] std::size_t width() const noexcept { return heard_.size(); }

    /// Room for so many actors. Never shrinks.
    void widen(std::size_t actors) {
        if (actors > heard_.size()) heard_.resize(actors);
    }
    /// Comes after all that `other` comes after, of the actors that this clock has room for.
    void join(const vector_clock& other) noexcept {
        const std::size_t common = std::min(heard_.size(), other.heard_.size());
        for (std::size_t i = 0; i < common; ++i) heard_[i] = std::max(heard_[i], other.heard_[i]);
    }
    /// One more work of the actor, which there must be room for.
    void step(actor a) noexcept { ++heard_[static_cast<std::size_t>(a)]; }

private:
    std::vector<tick> heard_;
};

}  // namespace alloclab::device
