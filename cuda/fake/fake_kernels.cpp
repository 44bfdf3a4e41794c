#include "fake_kernels.hpp"

#include <cstddef>

#include "fake_launch.hpp"
#include "host_team.hpp"
#include "kernel_plan.hpp"

namespace alloclab::device::fake {

namespace {

// From the first to past the last element.
std::size_t bytes_of(const kernels::operand& o) noexcept {
    std::size_t last = 0;
    for (int d = 0; d < 4; ++d) {
        if (o.ne[d] == 0) return 0;
        last += static_cast<std::size_t>(o.ne[d] - 1) * o.nb[d];
    }
    return last + tensor::bytes_of(o.type);
}

/// False when the launch would be an illegal access.
bool find(kernels::operand& o, touches& memory, access how) {
    const std::size_t bytes = bytes_of(o);
    o.data = static_cast<std::byte*>(memory(o.data, bytes, how));
    return o.data != nullptr || bytes == 0;
}

}  // namespace

void emulate_kernels() {
    for (auto k = kernels::kernel::move; k <= kernels::kernel::softmax_block;
         k = static_cast<kernels::kernel>(static_cast<int>(k) + 1))
        emulate_as(kernels::name_of(k),
                   {.argument_bytes = {sizeof(kernels::kernel_args)},
                    .run = [k](void** arguments, dim3, dim3, touches& memory) {
                        kernels::kernel_args args = *static_cast<const kernels::kernel_args*>(arguments[0]);
                        const bool found = find(args.a, memory, access::read) && find(args.b, memory, access::read) &&
                                           find(args.out, memory, access::write);
                        if (found) kernels::run_on_host(k, args);
                    }});
}

}  // namespace alloclab::device::fake
