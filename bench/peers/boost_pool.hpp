// boost_pool: Boost's object_pool, which keeps its free list in order and so searches on release, and singleton_pool,
// one for the process behind a mutex; both inlined. Without Boost's headers they are not available.
// Threads: object_pool single, singleton_pool shared. Full: nullptr.
#pragma once

#include <cstddef>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "slot96.hpp"

#if __has_include(<boost/pool/object_pool.hpp>)
#include <boost/pool/object_pool.hpp>
#include <boost/pool/singleton_pool.hpp>

namespace alloclab::bench::peers {

struct boost_pools {
    static constexpr bool here = true;
    class object {
    public:
        [[nodiscard]] void* acquire() noexcept { return pool_.malloc(); }
        void release(void* slot) noexcept { pool_.free(static_cast<slot96*>(slot)); }

    private:
        boost::object_pool<slot96> pool_;
    };
    struct singleton {
        using pool = boost::singleton_pool<boost_pools, sizeof(slot96)>;
        [[nodiscard]] void* acquire() noexcept { return pool::malloc(); }
        void release(void* slot) noexcept { pool::free(slot); }
    };
};

}  // namespace alloclab::bench::peers
#else
namespace alloclab::bench::peers {

struct boost_pools {
    static constexpr bool here = false;
    struct object {
        [[nodiscard]] void* acquire() noexcept { return nullptr; }
        void release(void*) noexcept {}
    };
    using singleton = object;
};

}  // namespace alloclab::bench::peers
#endif

namespace alloclab::bench::peers {

struct from_boost {
    using value_type = slot96;
    [[nodiscard]] static bool available() noexcept { return boost_pools::here; }
    [[nodiscard]] static std::string_view absence() noexcept { return "built without the headers of Boost.Pool"; }
};

struct boost_object_slots : from_boost, boost_pools::object {
    static constexpr std::string_view name = "boost_object_pool";
    static constexpr thread_use threads = thread_use::single;
};
struct boost_singleton_slots : from_boost, boost_pools::singleton {
    static constexpr std::string_view name = "boost_singleton_pool";
    static constexpr thread_use threads = thread_use::shared;
};

}  // namespace alloclab::bench::peers
