// use_map: for each range of addresses its last write and the reads since, so that a use which comes after too little
// is seen. Choose it for any addresses, of devices and of the host, mixed.
// Cost: O(log ranges + ranges touched) a use; ranges split where uses begin and end, and join again when their
// histories are equal. No heap once it has been as large. Threads: single. Full: what the use touched is forgotten.
//
// A read that has heard of an earlier read takes its place: who comes after the later one comes after both. A write
// that some read since has heard of is not asked for by the next write, for the same reason. So one missing wait is one
// race, however long the chain of uses behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "labels.hpp"
#include "vector_clock.hpp"

namespace alloclab::device {

/// Bytes, and where their block starts if it is known: reports count from there.
struct byte_range {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::uintptr_t block = 0;
};

/// What a use does to memory. All but reads come after everything and before everything. After a free only an
/// allocation may follow.
enum class use_kind : std::uint8_t { read, write, free, allocate };

/// One use of some memory by an actor's work. With no label there was none, which everybody has heard of.
struct memory_use {
    tick at = 0;
    const label* called = nullptr;
    actor who = actor::host;
    use_kind does = use_kind::read;

    friend bool operator==(const memory_use&, const memory_use&) = default;
};

/// Two uses of the same bytes that nothing orders and that are not both reads, or a use after a free.
struct race {
    memory_use later;
    memory_use earlier;  ///< of several in conflict by one actor the latest
    byte_range where;    ///< the first bytes in conflict with it that hang together

    [[nodiscard]] bool after_free() const noexcept {
        return earlier.does == use_kind::free && later.does != use_kind::allocate;
    }
};

class use_map {
public:
    use_map();
    use_map(const use_map&) = delete;
    use_map& operator=(const use_map&) = delete;

    /// Enters a use by an actor with that clock. At most one race for each earlier actor, valid until the next use.
    std::span<const race> enter(const memory_use& use, const vector_clock& clock, const byte_range& bytes) noexcept;
    /// Nothing is known of these bytes any more.
    void forget(const byte_range& bytes) noexcept;

    /// Calls `visit` with each label in use.
    template <class Visit>
    void for_each_label(const Visit& visit) const {
        for (const auto& [begin, known] : ranges_) {
            if (known.write.called != nullptr) visit(*known.write.called);
            for (const memory_use& read : known.reads) visit(*read.called);
        }
    }

    [[nodiscard]] std::size_t live_ranges() const noexcept { return ranges_.size(); }

private:
    struct history {
        std::uintptr_t end = 0;
        memory_use write;
        std::vector<memory_use> reads;  // since; none has heard of another; sorted by actor
        bool write_heard = false;       // by one of the reads
    };
    using ranges = std::map<std::uintptr_t, history>;  // none is empty, none overlap

    ranges::iterator first_from(std::uintptr_t address);
    ranges::iterator add(ranges::iterator before, std::uintptr_t begin, std::uintptr_t end);
    void split(ranges::iterator range, std::uintptr_t at);
    ranges::iterator join_with_previous(ranges::iterator range) noexcept;
    ranges::iterator remove(ranges::iterator range) noexcept;
    void drop(std::uintptr_t begin, std::uintptr_t end) noexcept;
    void enter_one(history& known, std::uintptr_t begin, const memory_use& use, const vector_clock& clock,
                   std::uintptr_t block);
    void found(const race& r);

    ranges ranges_;
    std::vector<ranges::node_type> spare_;  // with the room for reads that they had
    std::vector<race> races_;               // of the last use
};

}  // namespace alloclab::device
