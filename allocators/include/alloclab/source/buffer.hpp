// buffer_source: one buffer of the caller's, handed out from front to back; the buffer itself is never freed.
// Choose it where the memory is given (static storage, a mapped region, a caller of a C interface).
// Cost: an addition and a compare. Threads: single. Full: nullptr.
// Only the block handed out last can be given back; the others come back with reset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"

namespace alloclab {

class buffer_source {
public:
    static constexpr std::string_view name = "buffer";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t max_alignment = std::size_t{2} << 20;

    /// Serves from `buffer`, which must outlive this object; any size and any start are allowed, 0 bytes too.
    explicit buffer_source(std::span<std::byte> buffer) noexcept : buffer_(buffer) {}

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept {
        if (!is_request(bytes, align, max_alignment)) return nullptr;
        const std::size_t gap = padding(reinterpret_cast<std::uintptr_t>(buffer_.data()) + used_, align);
        const std::size_t needed = sum(gap, at_least_one(bytes));
        if (needed > buffer_.size() - used_) return nullptr;
        std::byte* block = buffer_.data() + used_ + gap;
        used_ += needed;
        return block;
    }
    void deallocate(void* p, std::size_t bytes, std::size_t) noexcept {
        if (p != nullptr && static_cast<std::byte*>(p) + at_least_one(bytes) == buffer_.data() + used_)
            used_ = static_cast<std::size_t>(static_cast<std::byte*>(p) - buffer_.data());
    }
    [[nodiscard]] bool owns(const void* p) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(p);
        const auto first = reinterpret_cast<std::uintptr_t>(buffer_.data());
        return at >= first && at - first < buffer_.size();
    }
    void reset() noexcept { used_ = 0; }
    [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }

private:
    std::span<std::byte> buffer_;
    std::size_t used_ = 0;
};

static_assert(memory_source<buffer_source> && owning<buffer_source> && resettable<buffer_source>);

}  // namespace alloclab
