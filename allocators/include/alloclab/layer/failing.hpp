// failing: answers nullptr once `fail_after` more requests have been served, until told otherwise.
// Choose it in tests, to see what a caller does when each of its requests fails in turn (Zig's FailingAllocator).
// Cost: a compare. Threads: single. Full: by order.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/layer/forward.hpp"

namespace alloclab {

struct failing {
    template <class Base>
    class over : public forward<Base> {
        static constexpr std::string_view prefix = "failing:";

    public:
        static constexpr std::string_view name = joined<prefix, Base::name>;
        static constexpr thread_use threads = thread_use::single;
        using forward<Base>::forward;

        /// The next `requests` requests are served, all later ones refused.
        void fail_after(std::size_t requests) noexcept { left_ = requests; }
        /// Requests refused so far.
        [[nodiscard]] std::size_t refused() const noexcept { return refused_; }

        [[nodiscard]] void* acquire() noexcept requires slot_strategy<Base> {
            return served() ? this->base().acquire() : nullptr;
        }
        void release(void* slot) noexcept requires slot_strategy<Base> { this->base().release(slot); }
        [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            return served() ? this->base().allocate(bytes, align) : nullptr;
        }
        void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            this->base().deallocate(p, bytes, align);
        }
        void reset() noexcept requires resettable<Base> { this->base().reset(); }

    private:
        bool served() noexcept {
            if (left_ == 0) {
                ++refused_;
                return false;
            }
            if (left_ != too_many) --left_;
            return true;
        }

        std::size_t left_ = too_many;
        std::size_t refused_ = 0;
    };
};

}  // namespace alloclab
