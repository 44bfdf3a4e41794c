// counting: counts what passes through to the strategy or source under it; see `traffic`.
// Choose it to measure memory, or to see that everything came back; not while timing.
// Cost: a few additions, atomic where the base is shared. Threads and full: as the base.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "alloclab/bytes.hpp"
#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/layer/forward.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

struct counting {
    template <class Base>
    class over : public forward<Base> {
        static constexpr std::string_view prefix = "counting:";

    public:
        static constexpr std::string_view name = joined<prefix, Base::name>;
        using forward<Base>::forward;

        [[nodiscard]] void* acquire() noexcept requires slot_strategy<Base> {
            return seen(this->base().acquire(), sizeof(typename Base::value_type));
        }
        void release(void* slot) noexcept requires slot_strategy<Base> {
            gone(slot, sizeof(typename Base::value_type));
            this->base().release(slot);
        }

        [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            return seen(this->base().allocate(bytes, align), at_least_one(bytes));
        }
        void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            gone(p, at_least_one(bytes));
            this->base().deallocate(p, bytes, align);
        }

        /// Forgets the base's live objects and counts them as released.
        void reset() noexcept requires resettable<Base> {
            this->base().reset();
            released_.add(live_.get());
            live_.set(0);
            live_bytes_.set(0);
        }

        [[nodiscard]] struct traffic traffic() const noexcept {
            return {acquired_.get(), released_.get(),   refused_.get(),   live_.get(),
                    peak_.get(),     live_bytes_.get(), peak_bytes_.get()};
        }

    private:
        void* seen(void* p, std::size_t bytes) noexcept {
            if (p == nullptr) {
                refused_.add();
                return nullptr;
            }
            acquired_.add();
            peak_.raise_to(live_.add());
            peak_bytes_.raise_to(live_bytes_.add(bytes));
            return p;
        }
        void gone(const void* p, std::size_t bytes) noexcept {
            if (p == nullptr) return;
            released_.add();
            live_.subtract();
            live_bytes_.subtract(bytes);
        }

        counter<Base::threads> acquired_, released_, refused_, live_, peak_, live_bytes_, peak_bytes_;
    };
};

}  // namespace alloclab
