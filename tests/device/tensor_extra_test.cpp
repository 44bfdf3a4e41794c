#include "alloclab/device/tensor_extra.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <type_traits>
#include <vector>

#include "alloclab/registry.hpp"

namespace alloclab::device {
namespace {

constexpr auto event_number = [](std::uint64_t n) { return static_cast<event>(n); };
/// An address that nothing lies at.
void* address(std::uint64_t n) { return reinterpret_cast<void*>(n); }

/// Makes the compiler keep what was written before an object begins its life there, which no program may ask for.
void keep_bytes(void* storage) { asm volatile("" : : "r"(storage) : "memory"); }

template <class Extra>
bool is_clear(const Extra& e) {
    for (std::size_t d = 0; d < Extra::devices; ++d) {
        if (e.data(d) != nullptr) return false;
        for (std::size_t s = 0; s < Extra::streams; ++s)
            if (e.recorded(d, s) != event::none) return false;
    }
    return true;
}

/// Every field in use, so that whoever takes the memory next would see them.
template <class Extra>
void fill(Extra& e) {
    for (std::size_t d = 0; d < Extra::devices; ++d) {
        e.place(d, address(0x5A5A));
        for (std::size_t s = 0; s < Extra::streams; ++s) e.record(d, s, event_number(0x5A));
    }
}

template <class Extra>
class tensor_extra_forms : public ::testing::Test {};
using forms = ::testing::Types<tensor_extra, legacy_tensor_extra, compact_tensor_extra, basic_tensor_extra<2, 3>,
                               lazy_tensor_extra, lazy_legacy_tensor_extra, lazy_compact_tensor_extra,
                               basic_tensor_extra<32, 2, fields_in_use>>;
TYPED_TEST_SUITE(tensor_extra_forms, forms);

// Storage from an arena holds what its last user left (llama.cpp#2146 cleared it by memset).
TYPED_TEST(tensor_extra_forms, is_all_clear_when_made_in_used_storage) {
    alignas(TypeParam) unsigned char storage[sizeof(TypeParam)];
    for (const int left : {0xA5, 0xFF, 0x01}) {
        std::memset(storage, left, sizeof storage);
        keep_bytes(storage);
        EXPECT_TRUE(is_clear(*::new (static_cast<void*>(storage)) TypeParam));
        std::memset(storage, left, sizeof storage);
        keep_bytes(storage);
        EXPECT_TRUE(is_clear(*::new (static_cast<void*>(storage)) TypeParam{}));
    }
}

TYPED_TEST(tensor_extra_forms, answers_what_was_written_last_and_clear_for_the_rest) {
    constexpr std::size_t devices = TypeParam::devices, streams = TypeParam::streams;
    std::mt19937 random(3);
    alignas(TypeParam) unsigned char storage[sizeof(TypeParam)];
    for (int tensor = 0; tensor < 200; ++tensor) {
        auto& extra = *::new (static_cast<void*>(storage)) TypeParam{};
        std::array<void*, devices> data{};
        std::array<std::array<event, streams>, devices> events{};
        for (int written = 0; written < tensor % 20; ++written) {
            const std::size_t d = random() % devices, s = random() % streams;
            const std::uint64_t value = random() % 4;
            if (random() % 2 == 0) extra.place(d, data[d] = address(value));
            else extra.record(d, s, events[d][s] = event_number(value));
            for (std::size_t i = 0; i < devices; ++i) {
                ASSERT_EQ(extra.data(i), data[i]);
                for (std::size_t j = 0; j < streams; ++j) ASSERT_EQ(extra.recorded(i, j), events[i][j]);
            }
        }
        fill(extra);
        keep_bytes(storage);
    }
}

// Strategies that forget all extras at once run no destructors.
TYPED_TEST(tensor_extra_forms, may_be_dropped_without_a_destructor) {
    EXPECT_TRUE(std::is_trivially_destructible_v<TypeParam>);
    EXPECT_TRUE(std::is_trivially_copyable_v<TypeParam>);
}

TEST(tensor_extra, has_the_sizes_that_ggml_had) {
    EXPECT_EQ(sizeof(tensor_extra), 1152u);
    EXPECT_EQ(sizeof(legacy_tensor_extra), 256u);
    EXPECT_EQ(sizeof(compact_tensor_extra), 72u);
}

TEST(tensor_extra, is_a_word_larger_where_it_is_lazy) {
    EXPECT_EQ(sizeof(lazy_tensor_extra), 1152u + 8u);
    EXPECT_EQ(sizeof(lazy_legacy_tensor_extra), 256u + 8u);
    EXPECT_EQ(sizeof(lazy_compact_tensor_extra), 72u + 8u);
}

/// How many bytes of a `T` does `change` write?
template <class T, class Change>
std::size_t bytes_written(Change change) {
    std::array<bool, sizeof(T)> written{};
    for (const unsigned char left :
         {std::uint8_t{0xA5}, std::uint8_t{0x5A}}) {  // one of them differs from whatever is written
        alignas(T) std::array<unsigned char, sizeof(T)> storage;
        storage.fill(left);
        keep_bytes(storage.data());
        change(static_cast<void*>(storage.data()));
        keep_bytes(storage.data());
        for (std::size_t i = 0; i < storage.size(); ++i) written[i] |= storage[i] != left;
    }
    return static_cast<std::size_t>(std::count(written.begin(), written.end(), true));
}

TEST(lazy_tensor_extra, writes_a_word_at_birth_and_one_for_an_address_and_clears_the_events_of_a_device_in_use) {
    using extra = lazy_tensor_extra;
    EXPECT_EQ(bytes_written<extra>([](void* at) { ::new (at) extra{}; }), 8u);
    EXPECT_EQ(bytes_written<extra>([](void* at) { (::new (at) extra{})->place(15, nullptr); }), 16u);
    EXPECT_EQ(bytes_written<extra>([](void* at) { (::new (at) extra{})->record(15, 7, event::none); }), 8u + 64u);
    EXPECT_EQ(bytes_written<tensor_extra>([](void* at) { ::new (at) tensor_extra{}; }), 1152u);
}

template <class Strategy>
class lazy_extras_from : public ::testing::Test {};
TYPED_TEST_SUITE(lazy_extras_from, extra_strategies<lazy_tensor_extra>::into<::testing::Types>);

TYPED_TEST(lazy_extras_from, this_strategy_never_show_what_the_memory_held_before) {
    TypeParam extras;
    constexpr std::size_t tensors = 40;
    struct alignas(lazy_tensor_extra) room {
        std::byte bytes[sizeof(lazy_tensor_extra)];
    };
    std::vector<room> in_tensors(tensors);
    for (int eval = 0; eval < 5; ++eval) {
        extras.begin_eval();
        for (std::size_t i = 0; i < tensors; ++i) {
            const lifetime life = i % 8 == 0 ? lifetime::persistent : lifetime::temporary;
            lazy_tensor_extra* e = nullptr;
            if constexpr (embedded_extra_strategy<TypeParam>) e = extras.acquire(life, &in_tensors[i]);
            else e = extras.acquire(life);
            ASSERT_NE(e, nullptr);
            ASSERT_TRUE(is_clear(*e)) << "extra " << i << " of eval " << eval;
            e->place(i % 16, e);
            EXPECT_EQ(e->recorded(i % 16, 0), event::none);
            e->record(i % 16, 1, event_number(7));
            EXPECT_EQ(e->recorded(i % 16, 0), event::none);
            fill(*e);
            keep_bytes(e);
            if (i % 8 == 0 || (i % 5 == 0 && !embedded_extra_strategy<TypeParam>)) extras.release(e);
        }
        extras.end_eval();
    }
}

}  // namespace
}  // namespace alloclab::device
