#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "alloclab/bytes.hpp"
#include "cuda_support.hpp"

namespace alloclab::device {
namespace {

using ::testing::HasSubstr;

constexpr stream main_stream = cuda_device::default_stream();

class cuda_region_on_the_fake : public cuda_on_the_fake {
protected:
    cuda_device device;
};

TEST_F(cuda_region_on_the_fake, grows_in_place_and_keeps_what_it_holds) {
    cuda_region region(device, 20 * mib);
    EXPECT_EQ(region.mapped_bytes(), 0U);
    EXPECT_EQ(region.reserved_bytes(), 20 * mib);
    auto* const data = static_cast<std::byte*>(region.data());
    const std::size_t granule = region.granule();
    ASSERT_TRUE(region.grow(1));
    EXPECT_EQ(region.mapped_bytes(), granule);
    std::vector<std::uint32_t> sent(granule / 4);
    std::iota(sent.begin(), sent.end(), 1U);
    EXPECT_TRUE(device.copy_to_device(data, sent.data(), granule, main_stream));
    ASSERT_TRUE(region.grow(5 * granule));
    EXPECT_EQ(region.mapped_bytes(), 5 * granule);
    EXPECT_EQ(region.data(), data);
    EXPECT_TRUE(device.fill(data + granule, std::byte{9}, 4 * granule, main_stream)) << device.last_error();
    std::vector<std::uint32_t> got(sent.size());
    EXPECT_TRUE(device.copy_to_host(got.data(), data, granule, main_stream));
    EXPECT_TRUE(device.synchronize());
    EXPECT_EQ(got, sent);
    ASSERT_TRUE(region.grow(2));
    EXPECT_EQ(region.mapped_bytes(), 5 * granule) << "it does not shrink by growing";
}

TEST_F(cuda_region_on_the_fake, gives_back_what_lies_behind_the_bytes_it_keeps) {
    cuda_region region(device, 20 * mib);
    const std::size_t granule = region.granule();
    ASSERT_TRUE(region.grow(4 * granule));
    const std::size_t available = device.available_bytes();
    region.shrink(granule + 1);
    EXPECT_EQ(region.mapped_bytes(), 2 * granule);
    EXPECT_EQ(device.available_bytes(), available + 2 * granule);
    EXPECT_FALSE(device.fill(static_cast<std::byte*>(region.data()) + 2 * granule, std::byte{1}, 1, main_stream));
    EXPECT_TRUE(device.fill(region.data(), std::byte{1}, 2 * granule, main_stream));
    region.shrink(0);
    EXPECT_EQ(region.mapped_bytes(), 0U);
    ASSERT_TRUE(region.grow(granule)) << "and grows again";
}

TEST_F(cuda_region_on_the_fake, stays_as_it_was_when_memory_or_addresses_end) {
    cuda_region region(device, 40 * mib);
    const std::size_t granule = region.granule();
    ASSERT_TRUE(region.grow(granule));
    EXPECT_FALSE(region.grow(40 * mib + 1));
    EXPECT_THAT(std::string(device.last_error()), HasSubstr("cannot grow"));
    const std::size_t available = device.available_bytes();
    for (const char* function : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
        const std::size_t in_the_middle = function == std::string("cuMemSetAccess") ? 1 : 3;
        fake::fail(function, in_the_middle, cudaErrorUnknown);
        EXPECT_FALSE(region.grow(6 * granule)) << function;
        EXPECT_EQ(region.mapped_bytes(), granule);
        EXPECT_EQ(device.available_bytes(), available) << function;
        EXPECT_THAT(std::string(device.last_error()), HasSubstr(function));
    }
    fake::fail("cuMemCreate", 2, cudaErrorMemoryAllocation);
    EXPECT_TRUE(region.grow(5 * granule)) << "room is made once";
    EXPECT_EQ(device.available_bytes(), available - 4 * granule);
}

TEST_F(cuda_region_on_the_fake, says_why_it_cannot_be_had) {
    EXPECT_THROW(cuda_region(device, too_many), std::runtime_error);
    fake::fail("cudaGetDriverEntryPointByVersion", 3, cudaErrorSymbolNotFound);
    try {
        const cuda_region region(device, mib);
        ADD_FAILURE();
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("cuMemAddressFree"));
    }
    fake::fail("cuMemAddressReserve", 1, cudaErrorMemoryAllocation);
    EXPECT_THROW(cuda_region(device, mib), std::runtime_error);
}

}  // namespace
}  // namespace alloclab::device
