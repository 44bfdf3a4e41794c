// magazines: each thread's private stack of slots in front of a home that the threads share. Base of the magazine and
// owner pools. Cost: 4 loads or stores and 3 branches a call, no locked instruction, no lock while the magazine serves;
// every half magazine a lock. Threads: shared. A bounded home stays exact: before "exhausted" is said, what is parked
// in other magazines is stolen back. Idea: magazines (Bonwick, USENIX 2001); biased locking by an asymmetric fence.
//
// The handshake. Only its thread writes a magazine's `hand` and `top`, and each call changes one of them by one store,
// so what is parked is whole at every instant, at a fork too. The owner stores, then loads `limit`; a thief, under the
// lock, sets `limit` to 0, makes the heavy fence, then reads `hand` and `top`, takes what they say and notes it in
// `seen_*`. So either the thief saw the owner's store, or the owner sees limit 0, or both; and an owner that sees 0
// learns from the note, under the lock, whose the slot of its call is. No side ever waits for the other's progress.
// A magazine with limit 0 is at rest: it has nothing parked that counts, and its thread's calls take the lock.
//
// A thread keeps its magazines in a small table, by a hash of the pool's address: pools that share an entry take turns
// at it. Locks: the process-wide one of lives (ends of threads and of pools) before a pool's, never after.
// In a shared library, -ftls-model=initial-exec saves the call that finds the table.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "alloclab/asymmetric_fence.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/fork_safe.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/usage.hpp"

namespace alloclab::detail {

inline constexpr std::size_t magazine_slots = 48;

struct magazine;

// What only slow calls touch, and the slots.
struct magazine_rest {
    magazine* next = nullptr;
    magazine* previous = nullptr;
    bool claimed = false;  // limit 0 by a thief, which noted:
    void* seen_hand = nullptr;
    std::size_t seen_top = 0;
    void (*evict)(magazine&) noexcept = nullptr;    // of the pool that has it
    std::array<void*, magazine_slots + 1> slots{};  // one more: a release stores before it looks at the limit
};

struct alignas(64) magazine {
    std::atomic<const void*> pool{nullptr};
    std::atomic<void*> hand{nullptr};
    std::atomic<std::size_t> top{0};
    std::atomic<std::size_t> limit{0};
    magazine_rest* rest = nullptr;
    std::size_t others = 0;  // calls for other pools that met this one here
};

// Held where a thread's end, a pool's end or an entry's change of pool could meet. Never destroyed: late static
// destructors may still use a pool.
[[nodiscard]] inline fork_safe<std::mutex>& lives() noexcept {
    alignas(fork_safe<std::mutex>) static std::byte storage[sizeof(fork_safe<std::mutex>)];
    static auto* const mutex = new (storage) fork_safe<std::mutex>;
    return *mutex;
}

// Under the lock of lives, of the thread whose entry it is.
inline void evict(magazine& mine) noexcept {
    if (mine.pool.load(std::memory_order_acquire) != nullptr) mine.rest->evict(mine);
}

// One for pools of all types: a shared library that is opened at run time has room for some 1.5 KiB.
inline constinit thread_local std::array<magazine, 16> thread_magazines{};
inline constinit thread_local bool thread_left = false;

// The thread's end, after which its calls go without magazines: later destructors may still make some.
struct leaving {
    ~leaving() {
        thread_left = true;
        const std::lock_guard hold(lives());
        for (magazine& each : thread_magazines) evict(each);
    }
};
inline thread_local leaving thread_leaving{};

/// `Home` keeps the slots that are in no magazine, and is called under the lock:
/// take(to, most, mine) -> count; give(slots, count); free() -> at least 1 when one is left; bounded (constant);
/// and, where slots have owners, is_of(slot, magazine), leave(magazine), and a give that needs no lock.
template <class Home>
class magazines {
public:
    static constexpr thread_use threads = thread_use::shared;
    /// A slot in a magazine is not told from a live one: a foreign or second release is undefined, `checked` finds it.
    static constexpr bool trusts_release = true;

    magazines() noexcept { static_cast<void>(lives()); }
    ~magazines() {
        const std::lock_guard hold(lives());
        while (first_ != nullptr) go_home(*first_);
    }
    magazines(const magazines&) = delete;
    magazines& operator=(const magazines&) = delete;

    /// Storage for one value, uninitialised; nullptr when exhausted, which a bounded pool only is when all are live.
    [[nodiscard, gnu::always_inline]] void* acquire() noexcept {
        magazine& mine = entry();
        void* slot = mine.hand.load(std::memory_order_relaxed);
        std::size_t place = in_hand;
        const bool here = mine.pool.load(std::memory_order_relaxed) == this;
        if (here && slot != nothing()) [[likely]] {
            mine.hand.store(nothing(), std::memory_order_release);
            if (armed(mine)) [[likely]]
                return slot;
        } else {
            slot = nullptr;
            if (here) [[likely]] {
                place = mine.top.load(std::memory_order_relaxed);
                if (place != 0) [[likely]] {
                    slot = mine.rest->slots[place - 1];
                    mine.top.store(place - 1, std::memory_order_release);
                    if (armed(mine)) [[likely]]
                        return slot;
                } else if (is_dry()) {
                    return nullptr;
                }
            }
        }
        return acquire_slowly(mine, slot, place);
    }

    /// From any thread. nullptr does nothing; any other pointer must be live here.
    [[gnu::always_inline]] void release(void* slot) noexcept {
        if (slot == nullptr) return;
        magazine& mine = entry();
        if constexpr (owned) {
            if (!home_.is_of(slot, mine)) return release_foreign(slot);
        }
        std::size_t place = in_hand;
        if (mine.hand.load(std::memory_order_relaxed) == nothing()) [[likely]] {
            mine.hand.store(slot, std::memory_order_release);
            if (armed(mine)) [[likely]]
                return;
        } else if (mine.pool.load(std::memory_order_relaxed) == this) [[likely]] {
            place = mine.top.load(std::memory_order_relaxed) + 1;
            mine.rest->slots[place - 1] = slot;
            mine.top.store(place, std::memory_order_release);
            light_fence();
            if (place <= mine.limit.load(std::memory_order_relaxed)) [[likely]]
                return;
        }
        release_slowly(mine, slot, place);
    }

    /// True for an address inside this pool's slots, live or free.
    [[nodiscard]] bool owns(const void* pointer) const noexcept requires owning<Home> { return home_.owns(pointer); }

    /// Forgets every live slot; the memory stays. No other thread may be inside.
    void reset() noexcept requires(Home::bounded) {
        const std::lock_guard hold(lock_);
        for_each([&](magazine& each) { put_down(each); });
        home_.reset();
        stock_.store(stock::some);
    }

    /// Exact when no other thread is inside. O(threads + slots / 64), under the lock.
    [[nodiscard]] struct usage usage() const noexcept {
        const std::lock_guard hold(lock_);
        struct usage all = home_.usage();
        for_each([&](magazine& each) { all.live -= std::min(all.live, parked(each)); });
        return all;
    }

private:
    static constexpr std::size_t batch = magazine_slots / 2;
    static constexpr std::size_t in_hand = 0;  // else a slot's place in the stack, from 1
    static constexpr bool owned = requires(Home & h, magazine& m) { h.leave(m); };

    // none: all slots are live and all magazines at rest, so there is nothing to look for.
    enum class stock : unsigned char { some, sought, none };

    [[nodiscard, gnu::always_inline]] magazine& entry() const noexcept {
        magazine* at = &thread_magazines[(reinterpret_cast<std::uintptr_t>(this) * 0x9E37'79B9'7F4A'7C15U) >> 61 << 1 |
                                         (Home::bounded ? 0 : 1)];  // a pool and the heap it spills to never meet
        asm("" : "+r"(at));  // one base register for all fields: processors forward a store by its address expression
        return *at;
    }
    // What an empty hand holds: it tells a release at once that the entry is this pool's and the hand free. No other
    // pool's hand does, as what that holds is free, and a pool that lives in a slot is not.
    [[nodiscard]] void* nothing() noexcept { return this; }
    [[nodiscard]] bool is_dry() const noexcept {
        return Home::bounded && stock_.load(std::memory_order_relaxed) == stock::none;
    }
    // The owner's half of the handshake, after its store.
    [[nodiscard]] static bool armed(const magazine& mine) noexcept {
        light_fence();
        return !Home::bounded || mine.limit.load(std::memory_order_relaxed) != 0;
    }

    // ---- slow calls ----

    // With what was taken from its magazine at `place`, or nullptr.
    [[gnu::noinline]] void* acquire_slowly(magazine& mine, void* slot, std::size_t place) noexcept {
        magazine* const at_rest = of_this_pool(mine);
        if (slot == nullptr && is_dry()) return nullptr;
        const std::lock_guard hold(lock_);
        if (slot != nullptr && is_stolen(mine, place)) slot = nullptr;
        if (at_rest != nullptr) put_down(mine);
        if (slot == nullptr) return take(at_rest);
        if (!is_dry() && may_park()) arm(mine);
        return slot;
    }
    // With what was put into its magazine at `place`.
    [[gnu::noinline]] void release_slowly(magazine& mine, void* slot, std::size_t place) noexcept {
        const bool put = mine.pool.load(std::memory_order_relaxed) == this;
        magazine* const at_rest = of_this_pool(mine);
        const std::lock_guard hold(lock_);
        if (put && mine.limit.load(std::memory_order_relaxed) != 0) return flush_half(mine);
        const bool stolen = put && is_stolen(mine, place);
        if (at_rest != nullptr) put_down(mine);
        if (stolen) return;
        give(&slot, 1);
        if (at_rest != nullptr && may_park()) arm(mine);
    }
    [[gnu::noinline]] void release_foreign(void* slot) noexcept {
        if constexpr (owned) {
            home_.give(&slot, 1);
            restock();
        }
    }

    // ---- under the lock ----

    // A slot for the caller, and some for its magazine when it may park any. `mine` is at rest, or nullptr.
    [[nodiscard]] void* take(magazine* mine) noexcept {
        const bool parks = mine != nullptr && may_park();
        std::array<void*, 1 + batch> got;
        const std::size_t most = parks ? 1 + share() : 1;
        std::size_t n = home_.take(got.data(), most, mine);
        while (n == 0 && Home::bounded) {
            stock_.store(stock::sought);
            steal();
            n = home_.take(got.data(), most, mine);
            // Who gives something after this look, without the lock, finds `sought` and says `some`: one more look.
            stock seen = stock::sought;
            if (stock_.compare_exchange_strong(seen, n == 0 ? stock::none : stock::some)) break;
        }
        if (n == 0) {
            if (!Home::bounded && mine != nullptr) arm(*mine);  // its fast calls do not ask whether it is at rest
            return nullptr;
        }
        restock();  // what was found may be from a release that has not come to that yet
        if (parks) {
            std::copy_n(got.data() + 1, n - 1, mine->rest->slots.data());
            mine->top.store(n - 1, std::memory_order_release);
            arm(*mine);
        }
        return got[0];
    }
    void give(void* const* slots, std::size_t count) noexcept {
        home_.give(slots, count);
        restock();
    }
    // After the store of what was given, as take looks after its store: one of both sees the other's.
    void restock() noexcept {
        if (stock_.load() != stock::some) stock_.store(stock::some);
    }

    // All that is parked goes home; every magazine is at rest afterwards.
    void steal() noexcept {
        bool any = false;
        for_each([&](magazine& each) {
            if (each.limit.load(std::memory_order_relaxed) == 0) return;
            each.limit.store(0, std::memory_order_relaxed);
            each.rest->claimed = any = true;
        });
        if (!any) return;
        heavy_fence();
        for_each([&](magazine& each) {
            magazine_rest& rest = *each.rest;
            if (!rest.claimed || rest.seen_hand != nullptr || rest.seen_top != 0) return;
            rest.seen_hand = hand_of(each);
            rest.seen_top = each.top.load(std::memory_order_acquire);
            give_home(each, rest.seen_hand, rest.seen_top);
        });
        calm_ = 32;
    }
    // A magazine that has just been robbed would be robbed again: while slots are few, calls go to the home for a time.
    [[nodiscard]] bool may_park() noexcept {
        if constexpr (Home::bounded) {
            if (!heavy_fence_available()) return false;
            if (calm_ == 0 || count_ == 1) return true;
            --calm_;
            return home_.free() >= 2 * count_;
        }
        return true;
    }
    // So that the magazines of all threads together leave half of a bounded home in it.
    [[nodiscard]] std::size_t fair_limit() const noexcept {
        if constexpr (!Home::bounded) return magazine_slots;
        else
            return count_ == 1 ? magazine_slots
                               : std::clamp<std::size_t>(Home::capacity / (2 * count_), 1, magazine_slots);
    }
    [[nodiscard]] std::size_t share() const noexcept {
        if constexpr (!Home::bounded) return batch;
        else return std::min({batch, fair_limit(), home_.free() / (2 * count_)});
    }
    void arm(magazine& mine) noexcept { mine.limit.store(fair_limit(), std::memory_order_relaxed); }
    void share_anew() noexcept {
        for_each([&](magazine& each) {
            if (each.limit.load(std::memory_order_relaxed) != 0) arm(each);
        });
    }
    void flush_half(magazine& mine) noexcept {
        auto& slots = mine.rest->slots;
        const std::size_t n = mine.top.load(std::memory_order_relaxed);
        const std::size_t limit = mine.limit.load(std::memory_order_relaxed);
        if (n <= limit) return;                 // raised meanwhile, by the end of another thread
        const std::size_t out = n - limit / 2;  // the oldest, the others stay warm
        give(slots.data(), out);
        std::copy(slots.begin() + static_cast<std::ptrdiff_t>(out), slots.begin() + static_cast<std::ptrdiff_t>(n),
                  slots.begin());
        mine.top.store(n - out, std::memory_order_release);
    }

    [[nodiscard]] static bool is_stolen(const magazine& mine, std::size_t place) noexcept {
        const magazine_rest& rest = *mine.rest;
        return rest.claimed && (place == in_hand ? rest.seen_hand != nullptr : rest.seen_top >= place);
    }
    [[nodiscard]] static std::size_t parked(const magazine& each) noexcept {
        if (each.limit.load(std::memory_order_relaxed) == 0) return 0;
        return each.top.load(std::memory_order_acquire) + (hand_of(each) != nullptr);
    }
    [[nodiscard]] static void* hand_of(const magazine& each) noexcept {
        void* const hand = each.hand.load(std::memory_order_acquire);
        return hand != each.pool.load(std::memory_order_relaxed) ? hand : nullptr;
    }
    void give_home(const magazine& each, void* hand, std::size_t top) noexcept {
        if (hand != nullptr) give(&hand, 1);
        give(each.rest->slots.data(), top);
    }
    // To rest, with nothing in it.
    void put_down(magazine& mine) noexcept {
        mine.limit.store(0, std::memory_order_relaxed);
        mine.hand.store(nothing(), std::memory_order_relaxed);
        mine.top.store(0, std::memory_order_relaxed);
        mine.rest->claimed = false;
        mine.rest->seen_hand = nullptr;
        mine.rest->seen_top = 0;
    }

    template <class Visit>
    void for_each(Visit visit) const noexcept {
        for (magazine* each = first_; each != nullptr; each = each->rest->next) visit(*each);
    }

    // ---- lives ----

    // The entry becomes this pool's, unless another has it and is used more, or the thread or memory is at its end.
    magazine* of_this_pool(magazine& mine) noexcept {
        if (mine.pool.load(std::memory_order_relaxed) == this) return &mine;
        if (thread_left) return nullptr;
        if (mine.pool.load(std::memory_order_acquire) != nullptr) {
            if (++mine.others % 64 != 0) return nullptr;
            const std::lock_guard hold(lives());
            evict(mine);
        }
        static_cast<void>(&thread_leaving);
        void* bytes = malloc_source{}.allocate(sizeof(magazine_rest), alignof(magazine_rest));
        if (bytes == nullptr) return nullptr;
        mine.rest = new (bytes) magazine_rest;
        mine.rest->evict = &lose;
        const std::lock_guard hold(lock_);
        put_down(mine);
        mine.rest->next = first_;
        if (first_ != nullptr) first_->rest->previous = &mine;
        first_ = &mine;
        ++count_;
        share_anew();
        if constexpr (!Home::bounded) arm(mine);
        mine.pool.store(this, std::memory_order_release);
        return &mine;
    }
    // Under the lock of lives.
    static void lose(magazine& mine) noexcept {
        auto* const pool = static_cast<magazines*>(const_cast<void*>(mine.pool.load(std::memory_order_acquire)));
        const std::lock_guard hold(pool->lock_);
        pool->go_home(mine);
        pool->share_anew();
    }
    // What is parked goes home and the entry is free.
    void go_home(magazine& each) noexcept {
        if (parked(each) != 0) give_home(each, hand_of(each), each.top.load(std::memory_order_acquire));
        if constexpr (owned) home_.leave(each);
        put_down(each);
        each.hand.store(nullptr, std::memory_order_relaxed);
        const magazine_rest& rest = *each.rest;
        (rest.previous != nullptr ? rest.previous->rest->next : first_) = rest.next;
        if (rest.next != nullptr) rest.next->rest->previous = rest.previous;
        --count_;
        malloc_source{}.deallocate(each.rest, sizeof(magazine_rest), alignof(magazine_rest));
        each.pool.store(nullptr, std::memory_order_release);
    }
    // The other threads are gone, their magazines as they were at some instant: memory of theirs may be reused.
    static void begin_child(void* pool) noexcept {
        auto& self = *static_cast<magazines*>(pool);
        for (magazine* each = self.first_; each != nullptr;) {
            magazine* const next = each->rest->next;
            if (each != &self.entry()) self.go_home(*each);
            each = next;
        }
        self.stock_.store(stock::some);  // who is gone may have given a slot and not come to saying so
        self.share_anew();
    }

    Home home_;
    alignas(64) std::atomic<stock> stock_{stock::some};  // read by all, rarely written: apart from the rest
    alignas(64) magazine* first_ = nullptr;
    std::size_t count_ = 0;
    std::size_t calm_ = 0;
    mutable fork_safe<std::mutex> lock_{&begin_child, this};  // last: a fork finds it only while the others are whole
};

}  // namespace alloclab::detail
