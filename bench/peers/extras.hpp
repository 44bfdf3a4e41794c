// extras: other people's ways to give each tensor of an eval a record of 1152 bytes, which nobody clears unless it says
// so. Those that hand out single blocks remember them, as a backend does, and release them one by one when the eval
// ends. Threads: single. Full: nullptr, or operator new throws, which ends the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>
#include <vector>

#include "alloclab/concepts.hpp"
#include "alloclab/usage.hpp"
#include "library.hpp"
#include "pmr.hpp"

namespace alloclab::bench::peers {

/// As large as device::tensor_extra, left as the memory is.
struct bare_extra {
    bare_extra() noexcept {}  // NOLINT: not defaulted, since E{} would clear it then
    std::array<void*, 144> words;
};
static_assert(sizeof(bare_extra) == 1152);

/// What `Source` hands out, released in order.
template <class Source>
class block_extras {
public:
    using extra_type = bare_extra;
    static constexpr std::string_view name = Source::name;
    static constexpr thread_use threads = thread_use::single;
    [[nodiscard]] static bool available() noexcept requires requires { Source::available(); }
    { return Source::available(); }
    [[nodiscard]] static std::string_view absence() noexcept requires requires { Source::absence(); }
    { return Source::absence(); }

    /// Memory for the addresses first: behind the blocks it would keep the heap from shrinking between evals.
    block_extras() { held_.reserve(8192); }

    void begin_eval() noexcept {}
    void end_eval() noexcept {
        for (bare_extra* e : held_) source_.release(e);
        calls_ += held_.size();
        held_.clear();
    }
    [[nodiscard]] bare_extra* acquire(lifetime) noexcept {
        void* block = source_.allocate(sizeof(bare_extra));
        if (block == nullptr) return nullptr;
        held_.push_back(::new (block) bare_extra);
        return held_.back();
    }
    /// Not before the eval ends.
    void release(bare_extra*) noexcept {}

    [[nodiscard]] struct usage usage() const noexcept {
        const std::size_t live = held_.size();
        return {.live = live, .reserved_bytes = live * sizeof(bare_extra), .source_calls = calls_ + live};
    }

private:
    Source source_;
    std::vector<bare_extra*> held_;
    std::size_t calls_ = 0;
};

struct malloc_blocks {
    static constexpr std::string_view name = "malloc";
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
    void release(void* block) noexcept { std::free(block); }
};
/// ggml's CUDA backend as it was: new, memset, and delete when the eval ends.
struct new_delete_blocks {
    static constexpr std::string_view name = "new_delete";
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept { return std::memset(::operator new(bytes), 0, bytes); }
    void release(void* block) noexcept { ::operator delete(block); }
};
template <class Family>
struct library_blocks : library<Family> {
    static constexpr std::string_view name = Family::name;
};

/// A monotonic_buffer_resource over a buffer that holds an eval of the usual size, released when it ends; beyond that
/// it grows over operator new.
class pmr_monotonic_extras {
    static constexpr std::size_t at_hand = std::size_t{2} << 20;

public:
    using extra_type = bare_extra;
    static constexpr std::string_view name = "pmr_monotonic";
    static constexpr thread_use threads = thread_use::single;

    void begin_eval() noexcept {}
    void end_eval() noexcept { resource_.release(); }
    [[nodiscard]] bare_extra* acquire(lifetime) noexcept {
        return ::new (resource_.allocate(sizeof(bare_extra), alignof(bare_extra))) bare_extra;
    }
    void release(bare_extra*) noexcept {}

    /// Without the live ones, which nobody counts.
    [[nodiscard]] struct usage usage() const noexcept {
        const struct usage grown = upstream_.usage();
        return {.live = 0, .reserved_bytes = at_hand + grown.reserved_bytes, .source_calls = grown.source_calls};
    }

private:
    counted_upstream upstream_;
    std::unique_ptr<std::byte[]> buffer_ = std::make_unique_for_overwrite<std::byte[]>(at_hand);
    std::pmr::monotonic_buffer_resource resource_{buffer_.get(), at_hand, &upstream_};
};

/// The control: one static buffer with the same stride, and no allocator.
class no_allocator_extras {
    static constexpr std::size_t count = 8192;

public:
    using extra_type = bare_extra;
    static constexpr std::string_view name = "no_allocator";
    static constexpr thread_use threads = thread_use::single;
    static constexpr std::size_t capacity = count;
    static constexpr bool control = true;

    void begin_eval() noexcept {}
    void end_eval() noexcept { next_ = 0; }
    [[nodiscard]] bare_extra* acquire(lifetime) noexcept {
        return ::new (&memory_[sizeof(bare_extra) * next_++]) bare_extra;
    }
    void release(bare_extra*) noexcept {}
    [[nodiscard]] struct usage usage() const noexcept {
        return {.live = next_, .reserved_bytes = sizeof memory_, .source_calls = 0};
    }

private:
    alignas(64) static inline std::byte memory_[sizeof(bare_extra) * count];
    std::size_t next_ = 0;
};

}  // namespace alloclab::bench::peers
