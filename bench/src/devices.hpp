// devices: what evals offload to while they are measured. simulated_device computes, on the CPU; accounting_device
// takes the same calls with the same costs and orders, but computes nothing and reads no weights, so that full shapes,
// which are metadata alone, run too; idle_device does nothing at all, so that what an eval on it takes is the host's
// own bookkeeping: no time of a simulator is in it.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "alloclab/bytes.hpp"
#include "alloclab/device/sim_device.hpp"
#include "device_profile.hpp"

namespace alloclab::bench {

/// A simulated device that remembers the first race or misuse.
class simulated_device : public device::sim_device {
public:
    explicit simulated_device(const device_profile& p) : sim_device(p.cost.capacity, p.cost) {
        report_to(
            [](std::string_view message, void* self) noexcept {
                auto& first = static_cast<simulated_device*>(self)->first_;
                if (first[0] == '\0')
                    std::snprintf(first.data(), first.size(), "%.*s", static_cast<int>(message.size()), message.data());
            },
            this);
    }

    /// Throws std::runtime_error when there was one: whatever was counted is then not to be believed.
    void must_be_clean() const {
        const device::sim_usage seen = usage();
        if (seen.races + seen.errors == 0) return;
        throw std::runtime_error("the simulated device saw races: " + std::to_string(seen.races) +
                                 ", misuse: " + std::to_string(seen.errors) + "; the first: " + first_.data());
    }

private:
    std::array<char, 512> first_{};
};

class accounting_device : public simulated_device {
public:
    static constexpr bool computes = false;

    explicit accounting_device(const device_profile& p) : simulated_device(p) {}

    /// Takes the time of the kernel and touches what it would.
    bool launch(const tensor::tensor& t, stream s, std::string_view called = {}) noexcept {
        ++launches_;
        if (called.empty()) called = tensor::name_of(t.op);
        if (!work(s, cost().kernel_time(tensor::work_of(t)), called)) return false;
        for (const tensor::tensor* source : t.sources)
            if (source != nullptr) also_touches(s, source->data, source->bytes(), reads, called);
        also_touches(s, t.data, t.bytes(), writes, called);
        return true;
    }
    /// The same for a copy, which so may be of memory that cannot be read.
    bool copy_to_device(void* device, const void*, std::size_t bytes, stream s, std::string_view called = {}) noexcept {
        if (called.empty()) called = "a copy to the device";
        if (!work(s, cost().copy_time(bytes), called)) return false;
        also_touches(s, device, bytes, writes, called);
        return true;
    }
    [[nodiscard]] std::size_t launches() const noexcept { return launches_; }

private:
    std::size_t launches_ = 0;
};

class idle_device {
public:
    static constexpr std::string_view name = "idle_device";
    static constexpr std::size_t alignment = device::sim_device::alignment;
    static constexpr bool computes = false;

    using stream = device::stream;
    using event = device::event;

    explicit idle_device(const device_profile&) noexcept {}

    /// Addresses that nobody else has been given.
    [[nodiscard]] void* allocate(std::size_t bytes) noexcept {
        const std::size_t at = next_;
        next_ += align_up(at_least_one(bytes), alignment);
        return reinterpret_cast<void*>(at);
    }
    void deallocate(void*) noexcept {}
    [[nodiscard]] void* allocate(std::size_t bytes, stream) noexcept { return allocate(bytes); }
    void deallocate(void*, stream) noexcept {}
    [[nodiscard]] std::size_t available_bytes() const noexcept { return ~std::size_t{0} - next_; }

    [[nodiscard]] static stream default_stream() noexcept { return stream{0}; }
    [[nodiscard]] stream create_stream() noexcept { return static_cast<stream>(++streams_); }
    bool destroy(stream) noexcept { return true; }
    [[nodiscard]] event create_event() noexcept { return static_cast<event>(++events_); }
    void destroy(event) noexcept {}
    bool record(event, stream) noexcept { return true; }
    bool wait(stream, event) noexcept { return true; }
    [[nodiscard]] bool done(event) noexcept { return true; }
    bool synchronize(event) noexcept { return true; }
    bool synchronize(stream) noexcept { return true; }

    bool copy_to_device(void*, const void*, std::size_t, stream) noexcept { return true; }
    bool copy_to_host(void*, const void*, std::size_t, stream) noexcept { return true; }
    bool launch(const tensor::tensor&, stream) noexcept { return true; }
    [[nodiscard]] std::int64_t now() const noexcept { return 0; }
    [[nodiscard]] std::string_view last_error() const noexcept { return {}; }

private:
    std::size_t next_ = std::size_t{1} << 40;
    std::uint32_t streams_ = 0;
    std::uint64_t events_ = 0;
};
static_assert(tensor::device_backend<idle_device> && tensor::checks_order<accounting_device>);

/// Addresses that stand for memory and have none; to touch them is a fault.
class reserved_addresses {
public:
    /// Throws std::system_error.
    explicit reserved_addresses(std::size_t bytes)
        : bytes_(bytes),
          base_(bytes == 0 ? nullptr
                           : ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (base_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "cannot reserve addresses");
    }
    reserved_addresses(const reserved_addresses&) = delete;
    reserved_addresses& operator=(const reserved_addresses&) = delete;
    ~reserved_addresses() {
        if (base_ != nullptr) ::munmap(base_, bytes_);
    }
    [[nodiscard]] void* at(std::size_t offset) const noexcept { return static_cast<std::byte*>(base_) + offset; }

private:
    std::size_t bytes_;
    void* base_;
};

}  // namespace alloclab::bench
