// order: which work of the host and of its streams comes after which, and who used which bytes last: the witness that
// sees a race whenever no event forbids it, however the work happened to fall in time.
// Cost: O(streams) a call, and for a use O(log ranges + ranges touched); no heap once the same ranges are used by the
// same streams. Threads: single. Full: `add_stream` throws, `record` is false, and a use that cannot be kept is
// forgotten together with the ranges that it touched: a race may be missed, none is made up.
//
// Each actor has a vector clock. Work given to a stream comes after the stream's earlier work and after all that the
// host has done or heard; an event is a copy of its stream's clock, which whoever waits for it joins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/device/handles.hpp"
#include "labels.hpp"
#include "use_map.hpp"
#include "vector_clock.hpp"

namespace alloclab::device {

class order {
public:
    order();
    order(const order&) = delete;
    order& operator=(const order&) = delete;

    // --- who comes after whom

    /// A new stream, which comes after all that the host has heard. `name` as reports say it: `stream "decode 1"`.
    /// Throws std::bad_alloc and changes nothing. The number of a retired stream returns once the host has heard of
    /// all its work.
    [[nodiscard]] actor add_stream(std::string_view name);
    /// The stream is given nothing more. What it did still counts.
    void retire(actor stream) noexcept;

    /// New work of the actor; the uses that follow are its. A stream's comes after all that the host did and heard.
    void begin_work(actor a) noexcept;
    /// From now on `into` stands behind all work of the stream. `event` as reports say it: `event "closing 2"`; a
    /// record without a name is in no report. False when there is no heap left: `into` is as it was.
    [[nodiscard]] bool record(actor stream, vector_clock& into, std::string_view event = {}) noexcept;
    /// What the actor does from now on comes after what `event` stands behind: a wait; of the host, a query that found
    /// it complete, or a synchronisation.
    void wait(actor a, const vector_clock& event) noexcept;
    /// The same with all work of another actor so far.
    void join(actor later, actor earlier) noexcept;
    /// Whether the actor's next work comes after what `event` stands behind without a wait.
    [[nodiscard]] bool has_heard(actor a, const vector_clock& event) const noexcept;

    // --- who touches what

    /// The work that the actor began last uses these bytes. Reports say `what "called" on name`, without what is
    /// empty. The races, one for each earlier actor at most, are valid until the next use.
    std::span<const race> use(actor a, const byte_range& bytes, access does, std::string_view what,
                              std::string_view called = {}) noexcept;
    /// It frees them, in its order: a write, behind which every use is one after free until they are reborn.
    std::span<const race> free(actor a, const byte_range& bytes, std::string_view what,
                               std::string_view called = {}) noexcept;
    /// It allocates them, in its order: a write, which must come after the free, and every other use after it.
    std::span<const race> reborn(actor a, const byte_range& bytes, std::string_view what,
                                 std::string_view called = {}) noexcept;
    /// Nothing is known of these bytes any more: they are nobody's, or all that used them is through.
    void forget(const byte_range& bytes) noexcept;

    /// One line that names both uses and the wait that is missing, cut where there is no room. Of races still valid.
    std::string_view describe(const race& r, std::span<char> into) const noexcept;

    /// Ranges with a history, and names kept: what a long run must not let grow.
    [[nodiscard]] std::size_t live_ranges() const noexcept;
    [[nodiscard]] std::size_t live_labels() const noexcept;

private:
    struct recorded {
        tick behind = 0;
        const label* event = nullptr;
    };
    static constexpr std::size_t records_kept = 16;  // where an older one was the first, the first of these is named
    struct actor_state {
        std::string name;
        vector_clock clock;
        std::array<recorded, records_kept> records;  // a ring
        std::size_t records_made = 0;
        bool retired = false;
    };

    actor_state& state(actor a) noexcept { return actors_[static_cast<std::size_t>(a)]; }
    const actor_state& state(actor a) const noexcept { return actors_[static_cast<std::size_t>(a)]; }
    const label* label_for(std::string_view what, std::string_view called, std::string_view by) noexcept;
    std::span<const race> enter(use_kind does, actor a, const byte_range& bytes, std::string_view what,
                                std::string_view called) noexcept;
    const label* first_record_behind(const memory_use& use) const noexcept;

    std::vector<actor_state> actors_;  // by number; each clock has room for all
    labels labels_;
    use_map uses_;
};

}  // namespace alloclab::device
