// What the tests of contexts look at: all that a caller can see of one, and whether a buffer's surroundings stay.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "alloclab/compose.hpp"
#include "alloclab/layer/counting.hpp"
#include "alloclab/layer/failing.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/context.hpp"

namespace alloclab::tensor::test {

using counted_source = compose<malloc_source, counting>;
using failing_source = compose<malloc_source, counting, failing>;

/// All of a context that a caller can see.
struct snapshot {
    explicit snapshot(const context& c)
        : used(c.used_bytes()), capacity(c.capacity_bytes()), tensors(c.tensors()), live(c.usage().live) {}
    bool operator==(const snapshot&) const = default;
    std::size_t used, capacity, tensors, live;
};

/// Whether the call throws E and leaves the context as it was; the text that it throws.
template <class E, class Call>
std::string refusal(const context& c, Call call) {
    const snapshot before(c);
    try {
        call();
    } catch (const E& refused) {
        EXPECT_TRUE(snapshot(c) == before) << "a refused call changed the context";
        return refused.what();
    }
    ADD_FAILURE() << "not refused";
    return {};
}

/// Memory with 64 bytes of a known pattern before and behind it, which must stay.
class guarded_buffer {
public:
    guarded_buffer(std::size_t bytes, std::size_t start)
        : all_(new (std::align_val_t{64}) std::byte[guard + start + bytes + guard]),
          total_(guard + start + bytes + guard),
          inside_(all_.get() + guard + start, bytes) {
        std::memset(all_.get(), pattern, total_);
    }
    std::span<std::byte> inside() const { return inside_; }
    bool intact() const {
        const auto is_pattern = [](std::byte b) { return b == std::byte{pattern}; };
        return std::all_of(all_.get(), inside_.data(), is_pattern) &&
               std::all_of(inside_.data() + inside_.size(), all_.get() + total_, is_pattern);
    }

private:
    struct aligned_delete {
        void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
    };
    static constexpr std::size_t guard = 64;
    static constexpr unsigned char pattern = 0xA5;
    std::unique_ptr<std::byte[], aligned_delete> all_;
    std::size_t total_;
    std::span<std::byte> inside_;
};

}  // namespace alloclab::tensor::test
