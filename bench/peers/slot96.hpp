// slot96: what every slot strategy beside a peer hands out here: 96 bytes, the size of a context's header.
#pragma once

#include <cstddef>

namespace alloclab::bench::peers {

struct alignas(16) slot96 {
    std::byte bytes[96];
};

}  // namespace alloclab::bench::peers
