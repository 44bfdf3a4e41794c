// limiting: no more than so many live bytes pass; a request beyond is refused although the base could serve it.
// Choose it to bound an unbounded strategy or source (mimalloc#617: "return null when my region is full").
// Cost: an addition and a compare, atomic where the base is shared. Threads: as the base. Full: nullptr at the limit.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/compose.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/layer/forward.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

struct limiting {
    template <class Base>
    class over : public forward<Base> {
        static constexpr std::string_view prefix = "limiting:";

    public:
        static constexpr std::string_view name = joined<prefix, Base::name>;
        using forward<Base>::forward;

        /// Live bytes allowed from now on; slots count sizeof(value_type) each. What is live already stays.
        void limit(std::size_t bytes) noexcept { limit_.set(bytes); }
        [[nodiscard]] std::size_t live_bytes() const noexcept { return live_.get(); }

        [[nodiscard]] void* acquire() noexcept requires slot_strategy<Base> {
            return within(sizeof(typename Base::value_type), [this] { return this->base().acquire(); });
        }
        void release(void* slot) noexcept requires slot_strategy<Base> {
            this->base().release(slot);
            if (slot != nullptr) live_.subtract(sizeof(typename Base::value_type));
        }
        [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            if (!is_size(bytes)) return nullptr;
            return within(at_least_one(bytes), [&] { return this->base().allocate(bytes, align); });
        }
        void deallocate(void* p, std::size_t bytes, std::size_t align) noexcept requires memory_source<Base> {
            this->base().deallocate(p, bytes, align);
            if (p != nullptr) live_.subtract(at_least_one(bytes));
        }
        void reset() noexcept requires resettable<Base> {
            this->base().reset();
            live_.set(0);
        }

    private:
        // Counted before the base serves and until it has taken back: what it holds is never above what is counted.
        template <class Serve>
        void* within(std::size_t bytes, Serve serve) noexcept {
            if (!live_.add_within(bytes, limit_.get())) return nullptr;
            void* p = serve();
            if (p == nullptr) live_.subtract(bytes);
            return p;
        }

        counter<Base::threads> live_;
        counter<Base::threads> limit_{too_many};
    };
};

}  // namespace alloclab
