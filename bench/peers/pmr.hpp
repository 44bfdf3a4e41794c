// pmr: the standard library's memory resources over operator new, inlined as far as their header goes.
// Threads: unsynchronized_pool_resource single, synchronized_pool_resource shared. Full: operator new throws, which
// ends the process.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string_view>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"
#include "slot96.hpp"

namespace alloclab::bench::peers {

/// operator new, with what is taken from it counted: chunks, not slots. Threads: as its one user, who locks.
class counted_upstream : public std::pmr::memory_resource {
public:
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = 0, .reserved_bytes = reserved_, .source_calls = calls_};
    }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override {
        void* chunk = base_->allocate(bytes, align);
        reserved_ += bytes;
        ++calls_;
        return chunk;
    }
    void do_deallocate(void* chunk, std::size_t bytes, std::size_t align) override {
        base_->deallocate(chunk, bytes, align);
        reserved_ -= bytes;
    }
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

    std::pmr::memory_resource* base_ = std::pmr::new_delete_resource();
    std::size_t reserved_ = 0;
    std::size_t calls_ = 0;
};

template <class Resource, thread_use Use>
class pmr_slots {
public:
    using value_type = slot96;
    static constexpr std::string_view name =
        Use == thread_use::shared ? "pmr_synchronized_pool" : "pmr_unsynchronized_pool";
    static constexpr thread_use threads = Use;

    [[nodiscard]] void* acquire() noexcept { return resource_.allocate(sizeof(slot96), alignof(slot96)); }
    void release(void* slot) noexcept { resource_.deallocate(slot, sizeof(slot96), alignof(slot96)); }
    /// Without the live slots, which the resource does not count.
    [[nodiscard]] struct usage usage() const noexcept { return upstream_.usage(); }

private:
    counted_upstream upstream_;
    Resource resource_{&upstream_};
};

using pmr_unsynchronized_slots = pmr_slots<std::pmr::unsynchronized_pool_resource, thread_use::single>;
using pmr_synchronized_slots = pmr_slots<std::pmr::synchronized_pool_resource, thread_use::shared>;

}  // namespace alloclab::bench::peers
