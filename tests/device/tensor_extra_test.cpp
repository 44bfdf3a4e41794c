#include "alloclab/device/tensor_extra.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

namespace alloclab::device {
namespace {

template <class Extra>
class tensor_extra_forms : public ::testing::Test {};
using forms = ::testing::Types<tensor_extra, legacy_tensor_extra, compact_tensor_extra, basic_tensor_extra<2, 3>>;
TYPED_TEST_SUITE(tensor_extra_forms, forms);

TYPED_TEST(tensor_extra_forms, has_8_bytes_per_device_and_per_event_and_no_padding) {
    EXPECT_EQ(sizeof(TypeParam), TypeParam::devices * (1 + TypeParam::streams) * 8);
}

// Storage from an arena holds what its last user left (llama.cpp#2146 cleared it by memset).
TYPED_TEST(tensor_extra_forms, is_all_clear_when_made_in_used_storage) {
    alignas(TypeParam) unsigned char storage[sizeof(TypeParam)];
    std::memset(storage, 0xA5, sizeof storage);
    const auto* extra = ::new (static_cast<void*>(storage)) TypeParam;
    EXPECT_EQ(std::count(extra->data.begin(), extra->data.end(), nullptr), std::ptrdiff_t{TypeParam::devices});
    for (const auto& of_device : extra->events)
        EXPECT_EQ(std::count(of_device.begin(), of_device.end(), event::none), std::ptrdiff_t{TypeParam::streams});
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

}  // namespace
}  // namespace alloclab::device
