// ring: N extras handed out in turn, for ever; the N-th next one takes the memory of the first.
// A control, kept to measure llama.cpp PR#2220, which stopped the leak so; choose bump_arena instead.
// Cost: a remainder and the construction, over memory that is walked from end to end and so never cached; a page fault
// for each page of it, in as many evals as it takes to come round once, and none after. Threads: single.
// Full: the original handed out live extras again without a word; here the overrun is refused with nullptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/extra/node_list.hpp"
#include "alloclab/source/malloc.hpp"

namespace alloclab {

template <class E, std::size_t N = 4096, memory_source Source = malloc_source>
class ring {
public:
    using extra_type = E;
    static constexpr std::string_view name = "ring";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t capacity = N;
    static constexpr bool control = true;

    explicit ring(Source source = Source{}) noexcept : persistent_(std::move(source)) {}
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() { persistent_.source().deallocate(slots_, bytes, alignof(E)); }

    void begin_eval() noexcept { depth_.begin(); }
    void end_eval() noexcept {
        if (!depth_.end() || slots_ == nullptr) return;
        stop_ = next_ + N;
        released_ = 0;
    }
    /// nullptr when this eval has taken N temporaries already, or when the source is exhausted. A released temporary's
    /// place is not used again within its eval.
    [[nodiscard]] E* acquire(lifetime life) noexcept {
        if (life == lifetime::persistent) return persistent_.acquire(life);
        if (next_ == stop_ && !may_go_on()) [[unlikely]]
            return nullptr;
        return ::new (slots_ + next_++ % N) E{};
    }
    /// nullptr does nothing.
    void release(E* extra) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(extra) - reinterpret_cast<std::uintptr_t>(slots_);
        if (slots_ != nullptr && at < bytes) ++released_;
        else persistent_.release(extra);
    }

    /// Requests that the original would have answered with a live extra.
    [[nodiscard]] std::size_t overruns() const noexcept { return overruns_; }
    [[nodiscard]] struct usage usage() const noexcept {
        struct usage all = persistent_.usage();
        all.source_calls += source_calls_;
        if (slots_ == nullptr) return all;
        all.live += next_ + N - stop_ - released_;
        all.reserved_bytes += bytes;
        return all;
    }

private:
    static constexpr std::size_t bytes = product(sizeof(E), N);

    // At the first temporary of all, which brings the slots, and at an overrun.
    [[gnu::noinline]] bool may_go_on() noexcept {
        if (slots_ != nullptr) {
            ++overruns_;
            return false;
        }
        ++source_calls_;
        slots_ = static_cast<E*>(persistent_.source().allocate(bytes, alignof(E)));
        if (slots_ == nullptr) return false;
        stop_ = next_ + N;
        return true;
    }

    node_list<E, Source> persistent_;
    E* slots_ = nullptr;  // raw memory; an extra begins its life when it is handed out
    std::size_t next_ = 0;
    std::size_t stop_ = 0;      // next_ when this eval has taken N; next_ itself before there are slots
    std::size_t released_ = 0;  // temporaries of this eval
    std::size_t overruns_ = 0;
    std::size_t source_calls_ = 0;  // for the slots
    eval_depth depth_;
};

}  // namespace alloclab
