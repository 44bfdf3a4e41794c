// Sources: the laws, for each in the registry, under each layer, and for an arena as a source; then what is particular.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include "../laws/source_laws.hpp"
#include "alloclab/arena.hpp"
#include "alloclab/layer/checked.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/layer/limiting.hpp"
#include "alloclab/layer/locked.hpp"
#include "alloclab/source/any_source.hpp"
#include "alloclab/source/buffer.hpp"

namespace alloclab::laws {
namespace {

struct large_memory {
    static constexpr std::size_t bytes = std::size_t{256} << 20;
    large_memory() = default;
    ~large_memory() { pages_source().deallocate(memory, bytes, 1); }
    large_memory(const large_memory&) = delete;
    large_memory& operator=(const large_memory&) = delete;

    std::byte* memory = static_cast<std::byte*>(pages_source().allocate(bytes, 1));
};
/// A buffer that is large enough for every law and starts at an odd address.
struct own_buffer : large_memory, buffer_source {
    own_buffer() : buffer_source(std::span<std::byte>(memory + 1, bytes - 1)) {}
};
struct held_malloc {
    malloc_source held;
};
struct any_malloc : held_malloc, any_source {
    static constexpr std::size_t max_alignment = malloc_source::max_alignment;
    any_malloc() : any_source(held) {}
};

using given = type_list<own_buffer, any_malloc, arena<malloc_source>, compose<arena<pages_source>, locked>,
                        compose<malloc_source, counting, limiting, failing, locked, checked>>;

INSTANTIATE_TYPED_TEST_SUITE_P(registered, source_laws, source_strategies::into<::testing::Types>, by_name);
INSTANTIATE_TYPED_TEST_SUITE_P(given, source_laws, given::into<::testing::Types>, by_name);

TEST(buffer_source, never_leaves_its_buffer_whatever_its_size_and_start) {
    alignas(64) std::array<std::byte, 128> memory;
    for (std::size_t start = 0; start < 16; ++start)
        for (std::size_t size = 0; size <= 64; ++size) {
            memory.fill(std::byte{0xEE});
            buffer_source source(std::span<std::byte>(memory).subspan(start, size));
            for (std::size_t n = 0; void* p = source.allocate(1 + n % 9, std::size_t{1} << n % 5); ++n) {
                ASSERT_TRUE(is_aligned(p, std::size_t{1} << n % 5));
                std::fill_n(static_cast<std::byte*>(p), 1 + n % 9, std::byte{1});
            }
            ASSERT_LE(source.used_bytes(), size);
            for (std::size_t i = 0; i < memory.size(); ++i)
                if (i < start || i >= start + size) {
                    ASSERT_EQ(memory[i], std::byte{0xEE}) << size << " from " << start;
                }
        }
}

TEST(buffer_source, serves_every_byte_and_takes_the_last_block_back) {
    alignas(16) std::array<std::byte, 64> memory;
    buffer_source source(memory);
    void* first = source.allocate(40, 8);
    void* last = source.allocate(24, 8);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(source.allocate(1, 1), nullptr);
    source.deallocate(first, 40, 8);
    EXPECT_EQ(source.allocate(1, 1), nullptr) << "only the last one can be given back";
    source.deallocate(last, 24, 8);
    EXPECT_EQ(source.allocate(24, 8), last);
    source.reset();
    EXPECT_EQ(source.used_bytes(), 0u);
    EXPECT_EQ(source.allocate(64, 16), memory.data());
}

TEST(any_source, passes_requests_on_and_is_exhausted_where_it_refers_to_none) {
    compose<malloc_source, counting> counted;
    any_source source(counted);
    any_source copy = source;
    void* p = copy.allocate(10, 8);
    EXPECT_EQ(counted.traffic().live_bytes, 10u);
    source.deallocate(p, 10, 8);
    source.deallocate(nullptr, 10, 8);
    EXPECT_EQ(counted.traffic().live, 0u);
    EXPECT_EQ(counted.traffic().released, 1u);
    any_source none;
    EXPECT_EQ(none.allocate(1, 1), nullptr);
    none.deallocate(nullptr, 1, 1);
}

TEST(pages_source, pages_are_clear_and_start_pages) {
    pages_source source;
    for (const std::size_t bytes : {1u, 4096u, 4097u}) {
        auto* p = static_cast<unsigned char*>(source.allocate(bytes, 1));
        ASSERT_NE(p, nullptr);
        EXPECT_TRUE(is_aligned(p, pages_source::page_bytes));
        EXPECT_EQ(std::count(p, p + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
        source.deallocate(p, bytes, 1);
    }
}

// The C library's malloc stays the C library's although mimalloc is measured beside it.
TEST(mimalloc_source, serves_its_own_blocks_and_none_of_mallocs) {
    if (!mimalloc_source::available()) GTEST_SKIP() << "no libmimalloc";
    mimalloc_source source;
    malloc_source libc;
    for (const std::size_t bytes : {1u, 64u, 5000u, 1u << 20}) {
        void* own = source.allocate(bytes, 16);
        void* others = libc.allocate(bytes, 16);
        // mimalloc 2 knows its blocks by address below 20 TiB only, where a sanitizer keeps its shadow.
        EXPECT_TRUE(sanitized || mimalloc_source::serves(own));
        EXPECT_FALSE(mimalloc_source::serves(others));
        source.deallocate(own, bytes, 16);
        libc.deallocate(others, bytes, 16);
    }
    EXPECT_GE(mimalloc_source::version(), 100);
}

// rpmalloc#396: the first use races.
TEST(mimalloc_source, first_use_from_many_threads_sees_a_complete_library) {
    if (!threads_are_judged<mimalloc_source>) GTEST_SKIP() << "ThreadSanitizer cannot judge mimalloc";
    std::vector<std::thread> threads;
    std::atomic<int> ready{0}, complete{0};
    for (int i = 0; i < 16; ++i)
        threads.emplace_back([&] {
            ++ready;
            while (ready < 16) std::this_thread::yield();
            mimalloc_source source;
            void* p = source.allocate(48, 16);
            if ((p != nullptr) == mimalloc_source::available()) ++complete;
            source.deallocate(p, 48, 16);
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(complete, 16);
}

}  // namespace
}  // namespace alloclab::laws
