// checked: reports a release of what is not live here, with the names of both owners, instead of passing it on; and
// what is still live when the strategy dies.
// Choose it while developing and in tests of code that uses a strategy.
// Cost: a mutex and a hash table of the live pointers of the whole process. Threads: as the base. Full: as the base.
// A call from inside a violation reporter, or into an owner that this thread is inside of already (a signal handler
// that interrupted it), is refused, not dead-locked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "alloclab/bytes.hpp"
#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/fork_safe.hpp"
#include "alloclab/layer/forward.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

/// What checked has found.
struct violation {
    enum kind { foreign, released_twice, other_owner, wrong_size, still_live, reentered };
    enum kind kind;
    const void* pointer;
    std::string_view owner;    ///< who handed it out; "" where nobody did
    std::string_view through;  ///< whom it was given to
    std::size_t bytes;         ///< as handed out
};

[[nodiscard]] constexpr std::string_view text_of(enum violation::kind k) noexcept {
    constexpr std::string_view texts[] = {"released a pointer that nobody handed out",
                                          "released again, or after a reset",
                                          "released through another owner",
                                          "released with another size than it was taken with",
                                          "still live at the end of its owner",
                                          "called again from inside a check"};
    return texts[k];
}

using violation_reporter = void (*)(const violation&) noexcept;

namespace detail {

inline void report_on_stderr(const violation& v) noexcept {
    std::fprintf(stderr, "alloclab: %.*s: %p, %zu bytes, from \"%.*s\", given to \"%.*s\"\n",
                 static_cast<int>(text_of(v.kind).size()), text_of(v.kind).data(), v.pointer, v.bytes,
                 static_cast<int>(v.owner.size()), v.owner.data(), static_cast<int>(v.through.size()),
                 v.through.data());
}

/// What this thread is doing in checked, so that a call from inside is refused.
class checked_call {
public:
    /// A call into an owner. Others may nest in it, since what it wraps may have checked parts of its own.
    explicit checked_call(const void* owner) noexcept : owner_(owner), outer_(std::exchange(innermost_, this)) {
        for (const checked_call* c = outer_; c != nullptr && allowed_; c = c->outer_)
            allowed_ = c->owner_ != owner && c->owner_ != nullptr;
    }
    /// Work under the table's lock, or a reporter's: nothing may nest in it.
    checked_call() noexcept : checked_call(nullptr) {}
    ~checked_call() { innermost_ = outer_; }
    checked_call(const checked_call&) = delete;
    checked_call& operator=(const checked_call&) = delete;

    [[nodiscard]] bool allowed() const noexcept { return allowed_; }

private:
    static inline thread_local const checked_call* innermost_ = nullptr;

    const void* owner_;
    const checked_call* outer_;
    bool allowed_ = true;
};

/// Every pointer that a checked owner handed out, in the whole process; a released one stays listed, so that the second
/// release can be told from a foreign pointer, until its address is handed out again or too many are listed. A pointer
/// is listed once for each owner where it is live: a slot can be a block of what its strategy wraps.
class live_table {
public:
    // Never destroyed: owners may outlive every other static.
    static live_table& get() {
        static auto* table = new live_table;
        return *table;
    }

    /// False when there is no memory for the entry.
    bool list(void* p, const void* owner, std::string_view name, std::size_t bytes) noexcept {
        const checked_call inside;
        const std::lock_guard hold(mutex_);
        const entry made{owner, name, bytes, true};
        for (auto [at, end] = entries_.equal_range(p); at != end; ++at)
            if (at->second.owner == owner || !at->second.live) {
                at->second = made;
                return true;
            }
        try {
            entries_.emplace(p, made);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    /// Marks the pointer as released; false when it is not live at that owner with that size, and `found` then says
    /// what it is instead.
    bool strike(const void* p, const void* owner, violation& found) noexcept {
        const checked_call inside;
        const std::lock_guard hold(mutex_);
        const auto rank = [owner](const entry& e) { return (e.owner == owner ? 2 : 0) + (e.live ? 1 : 0); };
        entry* known = nullptr;
        for (auto [at, end] = entries_.equal_range(p); at != end; ++at)
            if (known == nullptr || rank(at->second) > rank(*known)) known = &at->second;
        if (known == nullptr) return false;
        found.owner = known->name;
        const std::size_t given_bytes = std::exchange(found.bytes, known->bytes);
        if (!known->live) found.kind = violation::released_twice;
        else if (known->owner != owner) found.kind = violation::other_owner;
        else if (known->bytes != given_bytes) found.kind = violation::wrong_size;
        else {
            known->live = false;
            return true;
        }
        return false;
    }

    void strike_all(const void* owner) noexcept {
        const checked_call inside;
        const std::lock_guard hold(mutex_);
        for (auto& [p, e] : entries_)
            if (e.owner == owner) e.live = false;
    }

    void forget_released(const void* owner) noexcept {
        const checked_call inside;
        const std::lock_guard hold(mutex_);
        std::erase_if(entries_, [owner](const auto& e) { return e.second.owner == owner && !e.second.live; });
    }
    /// Reports those that are live, a batch at a time, so that reporters run without the lock.
    void forget_all(const void* owner) noexcept {
        std::array<violation, 256> found;
        std::size_t n = 0;
        do {
            n = take_live(owner, found);
            for (std::size_t i = 0; i < n; ++i) report(found[i]);
        } while (n == found.size());
        forget_released(owner);
    }

    violation_reporter exchange(violation_reporter next) noexcept { return std::exchange(reporter_, next); }
    /// Silent inside a reporter, which would be called by its own calls for ever.
    void report(const violation& v) const noexcept {
        const checked_call inside;
        if (inside.allowed()) reporter_(v);
    }

private:
    struct entry {
        const void* owner;
        std::string_view name;
        std::size_t bytes;
        bool live;
    };

    /// How many of the owner's live pointers went from the table into `found`.
    std::size_t take_live(const void* owner, std::span<violation> found) noexcept {
        const checked_call inside;
        const std::lock_guard hold(mutex_);
        std::size_t n = 0;
        std::erase_if(entries_, [&](const auto& each) {
            const entry& e = each.second;
            if (e.owner != owner || !e.live || n == found.size()) return false;
            found[n++] = {violation::still_live, each.first, e.name, e.name, e.bytes};
            return true;
        });
        return n;
    }

    fork_safe<std::mutex> mutex_;
    std::unordered_multimap<const void*, entry> entries_;
    violation_reporter reporter_ = &report_on_stderr;
};

}  // namespace detail

/// Puts another reporter in place and returns the one before; the first prints a line on stderr. Not thread-safe: set
/// it before strategies are used.
inline violation_reporter set_violation_reporter(violation_reporter next) noexcept {
    return detail::live_table::get().exchange(next);
}

struct checked {
    template <class Base>
    class over : public forward<Base> {
        static constexpr std::string_view prefix = "checked:";

    public:
        static constexpr std::string_view name = joined<prefix, Base::name>;
        using forward<Base>::forward;
        ~over() { table_.forget_all(identity()); }

        [[nodiscard]] void* acquire() noexcept requires slot_strategy<Base> {
            return listed(
                slot_bytes(), [this] { return this->base().acquire(); }, [this](void* p) { this->base().release(p); });
        }
        void release(void* slot) noexcept requires slot_strategy<Base> {
            unlisted(slot, slot_bytes(), [&] { this->base().release(slot); });
        }
        [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            return listed(
                bytes, [&] { return this->base().allocate(bytes, align); },
                [&](void* p) { this->base().deallocate(p, bytes, align); });
        }
        void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            unlisted(p, bytes, [&] { this->base().deallocate(p, bytes, align); });
        }
        void reset() noexcept requires resettable<Base> {
            const detail::checked_call call(identity());
            if (!call.allowed()) return refuse(nullptr, 0);
            table_.strike_all(identity());
            this->base().reset();
        }

    private:
        static constexpr std::size_t most_released_listed = 4096;

        // Not `this`: an owner may begin with a base that is checked itself.
        [[nodiscard]] const void* identity() const noexcept { return &released_listed_; }
        static constexpr std::size_t slot_bytes() noexcept {
            if constexpr (slot_strategy<Base>) return sizeof(typename Base::value_type);
            else return 0;
        }
        void refuse(const void* p, std::size_t bytes) const noexcept {
            table_.report({violation::reentered, p, name, name, bytes});
        }

        template <class Take, class Undo>
        void* listed(std::size_t bytes, Take take, Undo undo) noexcept {
            const detail::checked_call call(identity());
            if (!call.allowed()) return refuse(nullptr, bytes), nullptr;
            void* p = take();
            if (p == nullptr || table_.list(p, identity(), name, bytes)) return p;
            undo(p);
            return nullptr;
        }

        template <class GiveBack>
        void unlisted(const void* p, std::size_t bytes, GiveBack give_back) noexcept {
            if (p == nullptr) return;
            const detail::checked_call call(identity());
            if (!call.allowed()) return refuse(p, bytes);
            if (released_listed_.add() % most_released_listed == 0) table_.forget_released(identity());
            if (violation found{violation::foreign, p, {}, name, bytes}; !table_.strike(p, identity(), found))
                return table_.report(found);
            give_back();
        }

        // Made with the owner: a child of fork would wait for ever for one that another thread was just making.
        detail::live_table& table_ = detail::live_table::get();
        counter<Base::threads> released_listed_;
    };
};

}  // namespace alloclab
