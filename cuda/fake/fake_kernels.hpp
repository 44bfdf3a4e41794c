// fake_kernels: this library's kernels where there is no GPU: the same bodies, run on the host.
#pragma once

namespace alloclab::device::fake {

/// From now on launches of the library's own kernels are emulated.
void emulate_kernels();

}  // namespace alloclab::device::fake
