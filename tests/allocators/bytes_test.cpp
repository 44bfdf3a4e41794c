// bytes.hpp against 128-bit arithmetic: every small value, and everything near the edges.
#include "alloclab/bytes.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace alloclab {
namespace {

__extension__ typedef unsigned __int128 wide;

std::vector<std::size_t> edges() {
    std::vector<std::size_t> all;
    for (int bit = 0; bit < 64; ++bit)
        for (std::size_t near = 0; near < 5; ++near) all.push_back((std::size_t{1} << bit) + near - 2);
    for (std::size_t near = 0; near < 70; ++near) all.push_back(SIZE_MAX - near);
    for (std::size_t n = 0; n < 300; ++n) all.push_back(n);
    return all;
}
std::size_t saturated(wide exact) { return exact > SIZE_MAX ? too_many : static_cast<std::size_t>(exact); }

TEST(bytes, sums_and_products_saturate) {
    const auto all = edges();
    for (const std::size_t a : all)
        for (const std::size_t b : all) {
            ASSERT_EQ(sum(a, b), saturated(wide{a} + b)) << a << " + " << b;
            ASSERT_EQ(product(a, b), saturated(wide{a} * b)) << a << " * " << b;
        }
}

TEST(bytes, rounding_up_is_exact_or_saturates) {
    for (const std::size_t n : edges())
        for (int bit = 0; bit < 64; ++bit) {
            const wide align = wide{1} << bit;
            const wide exact = (wide{n} + align - 1) / align * align;
            ASSERT_EQ(align_up(n, std::size_t{1} << bit), saturated(exact)) << n << " to 2^" << bit;
        }
}

TEST(bytes, padding_reaches_the_next_multiple_and_no_further) {
    for (const std::size_t address : edges())
        for (int bit = 0; bit < 64; ++bit) {
            const std::size_t align = std::size_t{1} << bit;
            const std::size_t gap = padding(address, align);
            ASSERT_LT(gap, align);
            ASSERT_EQ((address + gap) % align, 0u);
        }
}

TEST(bytes, alignments_are_the_powers_of_two) {
    for (const std::size_t n : edges()) {
        bool power = false;
        for (int bit = 0; bit < 64; ++bit) power = power || n == std::size_t{1} << bit;
        ASSERT_EQ(is_alignment(n), power) << n;
    }
}

TEST(bytes, sizes_end_at_ptrdiff_max) {
    for (const std::size_t n : edges()) ASSERT_EQ(is_size(n), n <= std::size_t{PTRDIFF_MAX}) << n;
    EXPECT_FALSE(is_size(too_many));
    EXPECT_FALSE(is_size(sum(too_many, 1)));
    EXPECT_FALSE(is_size(align_up(product(too_many, 2), 64)));
}

TEST(bytes, a_request_needs_a_size_and_an_alignment_up_to_the_maximum) {
    for (const std::size_t bytes : edges())
        for (const std::size_t align : {0u, 1u, 3u, 16u, 64u, 128u})
            ASSERT_EQ(is_request(bytes, align, 64), is_size(bytes) && (align == 1 || align == 16 || align == 64));
}

TEST(bytes, no_bytes_count_as_one) {
    EXPECT_EQ(at_least_one(0), 1u);
    for (const std::size_t n : edges())
        if (n != 0) {
            ASSERT_EQ(at_least_one(n), n);
        }
}

}  // namespace
}  // namespace alloclab
