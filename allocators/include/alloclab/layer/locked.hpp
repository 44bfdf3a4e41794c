// locked: a mutex around each call, so that threads may share what was made for one.
// Choose it where calls are rare; a shared strategy or one object per thread is faster.
// Cost: an uncontended mutex, about a glibc pair; contended calls wait. Threads: shared. Full: as the base.
#pragma once

#include <cstddef>
#include <mutex>
#include <string_view>

#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/fork_safe.hpp"
#include "alloclab/layer/forward.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

struct locked {
    template <class Base>
    class over : public forward<Base> {
        static constexpr std::string_view prefix = "locked:";

    public:
        static constexpr std::string_view name = joined<prefix, Base::name>;
        static constexpr thread_use threads = thread_use::shared;
        using forward<Base>::forward;

        [[nodiscard]] void* acquire() noexcept requires slot_strategy<Base> {
            const std::lock_guard hold(mutex_);
            return this->base().acquire();
        }
        void release(void* slot) noexcept requires slot_strategy<Base> {
            const std::lock_guard hold(mutex_);
            this->base().release(slot);
        }
        [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            const std::lock_guard hold(mutex_);
            return this->base().allocate(bytes, align);
        }
        void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            const std::lock_guard hold(mutex_);
            this->base().deallocate(p, bytes, align);
        }
        [[nodiscard]] bool owns(const void* p) const noexcept requires owning<Base> {
            const std::lock_guard hold(mutex_);
            return this->base().owns(p);
        }
        void reset() noexcept requires resettable<Base> {
            const std::lock_guard hold(mutex_);
            this->base().reset();
        }
        [[nodiscard]] struct usage usage() const noexcept requires measured<Base> {
            const std::lock_guard hold(mutex_);
            return this->base().usage();
        }

    private:
        mutable fork_safe<std::mutex> mutex_;
    };
};

}  // namespace alloclab
