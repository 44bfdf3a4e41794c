#include "alloclab/device/sim_device.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "alloclab/bytes.hpp"

namespace alloclab::device {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;
constexpr auto main_stream = sim_device::default_stream();

std::size_t resident_bytes() {
    std::ifstream status("/proc/self/statm");
    std::size_t total = 0, resident = 0;
    status >> total >> resident;
    return resident * 4096;
}

// --- memory

TEST(sim_device_memory, whole_capacity_comes_back_after_any_order_of_release) {
    constexpr std::size_t capacity = 64 * 1024;
    sim_device device(capacity);
    std::mt19937 random{11};
    for (int pattern = 0; pattern < 1000; ++pattern) {
        std::vector<void*> blocks;
        const std::size_t largest = 1 + random() % 8192;
        while (void* p = device.allocate(random() % largest)) blocks.push_back(p);
        ASSERT_FALSE(blocks.empty());
        std::shuffle(blocks.begin(), blocks.end(), random);
        for (void* p : blocks) device.deallocate(p);
        void* whole = device.allocate(capacity);
        ASSERT_NE(whole, nullptr) << "pattern " << pattern;
        device.deallocate(whole);
    }
    EXPECT_EQ(device.usage().errors, 0u);
}

TEST(sim_device_memory, blocks_are_aligned_and_keep_what_was_written_to_each) {
    sim_device device(1 << 20);
    std::mt19937 random{12};
    std::vector<std::pair<void*, std::vector<std::uint32_t>>> blocks;
    for (int step = 1;; ++step) {
        std::vector<std::uint32_t> content(1 + random() % 500);
        void* p = device.allocate(content.size() * 4);
        if (p == nullptr) break;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % sim_device::alignment, 0u);
        std::generate(content.begin(), content.end(), std::ref(random));
        ASSERT_TRUE(device.copy_to_device(p, content.data(), content.size() * 4, main_stream));
        blocks.emplace_back(p, std::move(content));
        if (step % 3 == 0) {
            const auto victim = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
            device.deallocate(victim->first);
            blocks.erase(victim);
        }
    }
    ASSERT_GT(blocks.size(), 100u);
    for (const auto& [p, content] : blocks) {
        std::vector<std::uint32_t> back(content.size());
        ASSERT_TRUE(device.copy_to_host(back.data(), p, back.size() * 4, main_stream));
        EXPECT_EQ(back, content);
    }
}

TEST(sim_device_memory, size_0_gives_distinct_pointers) {
    sim_device device(4096);
    void* a = device.allocate(0);
    void* b = device.allocate(0);
    EXPECT_NE(a, nullptr);
    EXPECT_NE(b, nullptr);
    EXPECT_NE(a, b);
    EXPECT_EQ(device.usage().live_bytes, 2u);
}

TEST(sim_device_memory, a_request_that_does_not_fit_changes_nothing) {
    sim_device device(64 * 1024);
    void* kept = device.allocate(40'000);
    const sim_usage before = device.usage();
    const nanoseconds clock = device.now();
    for (const std::size_t bytes : {device.available_bytes() + 1, std::size_t{64 * 1024}, too_many, too_many - 511,
                                    std::size_t{1} << 63, (std::size_t{1} << 63) - 1})
        EXPECT_EQ(device.allocate(bytes), nullptr) << bytes;
    const sim_usage after = device.usage();
    EXPECT_EQ(after.live, before.live);
    EXPECT_EQ(after.live_bytes, before.live_bytes);
    EXPECT_EQ(after.peak_bytes, before.peak_bytes);
    EXPECT_EQ(after.reserved_bytes, before.reserved_bytes);
    EXPECT_EQ(after.errors, 0u) << "a full device is no misuse";
    EXPECT_EQ(device.now(), clock);
    void* rest = device.allocate(device.available_bytes());
    EXPECT_NE(rest, nullptr);
    EXPECT_EQ(device.available_bytes(), 0u);
    device.deallocate(kept);
    device.deallocate(rest);
}

TEST(sim_device_memory, capacity_is_rounded_down_to_granules) {
    EXPECT_EQ(sim_device(10'000).capacity(), 9728u);
    sim_device none(100);
    EXPECT_EQ(none.capacity(), 0u);
    EXPECT_EQ(none.allocate(0), nullptr);
}

TEST(sim_device_memory, a_capacity_that_no_address_space_holds_throws) {
    EXPECT_THROW(sim_device{std::size_t{1} << 62}, std::system_error);
    EXPECT_THROW(sim_device{too_many}, std::system_error);
}

// A sanitizer turns the signal into an exit with a report.
TEST(sim_device_memory, host_access_faults) {
    sim_device device(1 << 20);
    auto* p = static_cast<volatile char*>(device.allocate(4096));
    const auto died = [](int status) {
        return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WIFEXITED(status) && WEXITSTATUS(status) != 0;
    };
    EXPECT_EXIT(
        {
            p[0] = 1;
            std::_Exit(0);
        },
        died, "");
    EXPECT_EXIT({ std::_Exit(p[4095] * 0); }, died, "");
}

TEST(sim_device_memory, an_80_gb_device_costs_only_what_is_written) {
    const std::size_t before = resident_bytes();
    sim_device device(80 * gib);
    auto* block = static_cast<std::byte*>(device.allocate(70 * gib));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(device.allocate(11 * gib), nullptr);
    std::vector<int> out(50'000), in(50'000);
    std::iota(out.begin(), out.end(), 0);
    const std::size_t bytes = out.size() * sizeof(int);
    std::byte* end = block + 70 * gib - bytes;
    ASSERT_TRUE(device.copy_to_device(end, out.data(), bytes, main_stream));
    ASSERT_TRUE(device.copy_to_host(in.data(), end, bytes, main_stream));
    EXPECT_EQ(in, out);
    EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
}

TEST(sim_device_memory, large_released_blocks_give_their_host_pages_back) {
    constexpr std::size_t bytes = std::size_t{64} << 20;
    sim_device device(2 * bytes);
    const std::vector<char> host(bytes, 1);
    void* p = device.allocate(bytes);
    ASSERT_TRUE(device.copy_to_device(p, host.data(), bytes, main_stream));
    const std::size_t filled = resident_bytes();
    device.deallocate(p);
    EXPECT_LT(resident_bytes(), filled - bytes / 2);
}

// --- misuse

class sim_device_misuse : public ::testing::Test {
protected:
    sim_device device{1 << 20};
    std::vector<std::string> lines;

    void SetUp() override {
        device.report_to([](std::string_view line,
                            void* to) noexcept { static_cast<std::vector<std::string>*>(to)->emplace_back(line); },
                         &lines);
    }
    /// The last report, after a check that `n` were made in all.
    std::string after(std::size_t n) {
        EXPECT_EQ(device.usage().errors, n);
        EXPECT_EQ(lines.size(), n);
        EXPECT_EQ(device.last_error(), lines.empty() ? "" : lines.back());
        return lines.empty() ? "" : lines.back();
    }
};

TEST_F(sim_device_misuse, a_second_release_is_reported_and_harmless) {
    void* a = device.allocate(1000);
    void* b = device.allocate(1000);
    device.deallocate(a);
    const sim_usage before = device.usage();
    device.deallocate(a);
    EXPECT_NE(after(1).find("released twice"), std::string::npos);
    EXPECT_EQ(device.usage().live, before.live);
    EXPECT_EQ(device.usage().live_bytes, before.live_bytes);
    EXPECT_EQ(device.usage().reserved_bytes, before.reserved_bytes);
    void* c = device.allocate(1000);
    void* d = device.allocate(1000);
    EXPECT_NE(c, b);
    EXPECT_NE(c, d);
}

TEST_F(sim_device_misuse, releasing_foreign_pointers_is_reported) {
    int on_host = 0;
    sim_device other(4096);
    device.deallocate(&on_host);
    EXPECT_NE(after(1).find("not memory of this device"), std::string::npos);
    device.deallocate(other.allocate(1));
    EXPECT_NE(after(2).find("not memory of this device"), std::string::npos);
    device.deallocate(static_cast<char*>(device.allocate(2000)) + 512);
    EXPECT_NE(after(3).find("512 bytes into"), std::string::npos);
    device.deallocate(nullptr);
    after(3);
    EXPECT_EQ(device.usage().live, 1u);
}

TEST_F(sim_device_misuse, copies_outside_one_live_block_are_refused_and_copy_nothing) {
    std::vector<char> host(4096, 'h');
    auto* a = static_cast<char*>(device.allocate(1000));
    auto* b = static_cast<char*>(device.allocate(1000));
    ASSERT_EQ(b, a + 1024);
    ASSERT_TRUE(device.copy_to_device(a, host.data(), 1000, main_stream));
    ASSERT_TRUE(device.copy_to_device(b, host.data(), 1000, main_stream));
    device.synchronize();
    const nanoseconds clock = device.now();
    std::vector<char> other(4096, 'x');

    EXPECT_FALSE(device.copy_to_device(a, other.data(), 1001, main_stream)) << "one byte too far";
    EXPECT_NE(after(1).find("past the end of a block of 1000"), std::string::npos);
    EXPECT_FALSE(device.copy_to_device(a + 1000, other.data(), 1, main_stream)) << "the granule's unused end";
    EXPECT_FALSE(device.copy_to_device(a + 1010, other.data(), 1, main_stream)) << "further into it";
    EXPECT_FALSE(device.copy_to_device(a + 512, other.data(), 1024, main_stream)) << "into the next block";
    EXPECT_FALSE(device.copy_to_device(a + 1, other.data(), too_many, main_stream));
    EXPECT_FALSE(device.copy_to_device(a + 4096, other.data(), 1, main_stream)) << "never handed out";
    EXPECT_FALSE(device.copy_to_device(host.data(), other.data(), 1, main_stream)) << "not on the device";
    EXPECT_FALSE(device.copy_to_device(nullptr, other.data(), 1, main_stream));
    EXPECT_FALSE(device.copy_to_host(other.data(), a, 1001, main_stream));
    after(9);
    EXPECT_FALSE(device.copy_to_device(a, b, 4, main_stream)) << "the host's side is on the device";
    EXPECT_FALSE(device.copy_to_device(a, nullptr, 4, main_stream));
    EXPECT_FALSE(device.copy_to_host(b, a, 4, main_stream));
    EXPECT_FALSE(device.copy_to_host(nullptr, a, 4, main_stream));
    after(13);
    device.deallocate(b);
    const nanoseconds released = device.now();
    EXPECT_FALSE(device.copy_to_device(b, other.data(), 4, main_stream)) << "released";
    EXPECT_FALSE(device.copy_to_host(other.data(), b, 4, main_stream)) << "released";
    EXPECT_NE(after(15).find("not live"), std::string::npos);

    EXPECT_EQ(other, std::vector<char>(4096, 'x'));
    std::vector<char> back(1000);
    ASSERT_TRUE(device.copy_to_host(back.data(), a, 1000, main_stream));
    EXPECT_EQ(back, std::vector<char>(1000, 'h'));
    EXPECT_EQ(clock + device.cost().deallocate, released) << "a refused call takes no time";
}

TEST_F(sim_device_misuse, a_copy_of_0_bytes_needs_no_memory) {
    EXPECT_TRUE(device.copy_to_device(nullptr, nullptr, 0, main_stream));
    EXPECT_TRUE(device.copy_to_host(nullptr, nullptr, 0, main_stream));
    after(0);
}

TEST_F(sim_device_misuse, stale_events_and_streams_are_refused) {
    const event gone = device.create_event();
    device.destroy(gone);
    const event reused = device.create_event();
    EXPECT_NE(gone, reused);
    EXPECT_FALSE(device.record(gone, main_stream));
    EXPECT_FALSE(device.wait(main_stream, gone));
    EXPECT_FALSE(device.done(gone));
    EXPECT_FALSE(device.synchronize(gone));
    device.destroy(gone);
    after(5);
    EXPECT_EQ(device.usage().live_events, 1u);
    device.destroy(event::none);
    after(5);
    EXPECT_FALSE(device.record(event::none, main_stream));
    EXPECT_FALSE(device.done(static_cast<event>(~std::uint64_t{0})));
    after(7);

    const auto stream = device.create_stream();
    EXPECT_TRUE(device.destroy(stream));
    EXPECT_FALSE(device.destroy(stream));
    EXPECT_FALSE(device.record(reused, stream));
    EXPECT_FALSE(device.wait(stream, reused));
    EXPECT_FALSE(device.synchronize(stream));
    EXPECT_FALSE(device.copy_to_device(nullptr, nullptr, 0, stream));
    EXPECT_FALSE(device.synchronize(static_cast<sim_device::stream>(99)));
    EXPECT_FALSE(device.destroy(main_stream));
    after(14);
    EXPECT_NE(device.create_stream(), stream) << "numbers are never used again";
}

// --- usage

TEST(sim_device_usage, counts_what_is_live_and_its_peak) {
    sim_device device(1 << 20);
    void* a = device.allocate(1000);
    void* b = device.allocate(500);
    device.deallocate(a);
    const sim_usage u = device.usage();
    EXPECT_EQ(u.live, 1u);
    EXPECT_EQ(u.live_bytes, 500u);
    EXPECT_EQ(u.peak_bytes, 1500u);
    EXPECT_EQ(u.reserved_bytes, 512u);
    EXPECT_EQ(device.available_bytes(), (1u << 20) - 512);
    EXPECT_EQ(u.largest_free, (1u << 20) - 1024 - 512);
    device.deallocate(b);
    EXPECT_EQ(device.usage().largest_free, 1u << 20);
}

// An extra that is dropped with its events in it leaks them (llama.cpp#2145).
TEST(sim_device_usage, an_events_leak_is_seen) {
    sim_device device(4096);
    for (int eval = 0; eval < 10; ++eval) {
        const event kept = device.create_event(), lost = device.create_event();
        EXPECT_NE(kept, lost);
        device.destroy(kept);
    }
    EXPECT_EQ(device.usage().live_events, 10u);
    EXPECT_EQ(device.usage().peak_events, 11u);
}

TEST(sim_device_usage, counts_calls_by_kind) {
    sim_device device(1 << 20);
    void* p = device.allocate(8);
    EXPECT_EQ(device.allocate(2 << 20), nullptr);
    const event e = device.create_event();
    const auto s = device.create_stream();
    char byte = 0;
    EXPECT_TRUE(device.record(e, s));
    EXPECT_TRUE(device.wait(main_stream, e));
    EXPECT_FALSE(device.wait(main_stream, event::none));
    EXPECT_FALSE(device.done(event::none));
    EXPECT_TRUE(device.synchronize(s) && device.synchronize(e));
    device.synchronize();
    EXPECT_TRUE(device.copy_to_device(p, &byte, 1, s));
    EXPECT_TRUE(device.copy_to_host(&byte, p, 1, s));
    device.destroy(e);
    EXPECT_TRUE(device.destroy(s));
    device.deallocate(nullptr);
    device.deallocate(p);
    const sim_usage u = device.usage();
    constexpr std::size_t expected[call_kinds] = {2, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 1, 3, 1, 1};
    for (std::size_t i = 0; i < call_kinds; ++i) EXPECT_EQ(u.calls[i], expected[i]) << name_of(static_cast<call>(i));
    EXPECT_EQ(u.count(call::synchronize), 3u);
}

TEST(sim_device_usage, destruction_with_live_blocks_and_events_is_silent) {
    sim_device device(1 << 20);
    EXPECT_NE(device.allocate(100), nullptr);
    EXPECT_NE(device.create_event(), event::none);
}

// The address of the device is what streams and pools refer to.
static_assert(!std::is_copy_constructible_v<sim_device> && !std::is_move_constructible_v<sim_device>);

}  // namespace
}  // namespace alloclab::device
