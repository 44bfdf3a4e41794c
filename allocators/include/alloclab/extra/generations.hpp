// generations: extras that survive a reset until others take their place. Choose it where someone resets before each
// graph but acquires only for what is new: ggml's graph allocator resets its buffer every time, and initialises only
// tensors that have no data yet, so a bump arena reset there would take the extras of all that it met before.
// Cost: a branch over the strategy inside, of which there are three: two generations in turn, and the persistent ones.
// Threads: as the strategy. Full: as the strategy, of each generation.
//
// A reset ends a generation, and nothing dies of it. The first acquire after it begins the next one, and ends the life
// of the last but one: an extra is good until the second generation after its own begins. So a graph that is allocated
// again and again without a new tensor keeps its extras for ever, and one that gets new tensors beside its old ones has
// the extras of both. Old tensors that meet new ones for a second time must have been initialised again, or their extra
// be persistent: who still uses an extra is what nobody says, and to keep all of them would be the leak once more.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

template <extra_strategy Extras>
class generations {
public:
    using extra_type = typename Extras::extra_type;
    static constexpr std::string_view name = "generations";
    static constexpr thread_use threads = Extras::threads;

    /// nullptr when the strategy is exhausted; the last but one generation is gone all the same.
    [[nodiscard]] extra_type* acquire(lifetime life) noexcept {
        if (life == lifetime::persistent) return persistent_.acquire(life);
        if (std::exchange(ended_, false)) begin_next();
        return in_turn_[now_].acquire(life);
    }
    /// Persistent extras only: no one else is told apart. nullptr does nothing.
    void release(extra_type* persistent) noexcept { persistent_.release(persistent); }

    /// Ends the generation; several with nothing acquired in between end one.
    void reset() noexcept { ended_ = true; }

    [[nodiscard]] struct usage usage() const noexcept requires measured<Extras> {
        return in_turn_[0].usage() + in_turn_[1].usage() + persistent_.usage();
    }

private:
    void begin_next() noexcept {
        now_ = 1 - now_;
        in_turn_[now_].end_eval();
        in_turn_[now_].begin_eval();
    }

    std::array<Extras, 2> in_turn_;
    Extras persistent_;
    std::size_t now_ = 0;
    bool ended_ = true;
};

}  // namespace alloclab
