// Whether CUDA can be used by this process, and what the runtime's errors mean to its user.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace alloclab::device {

/// True in a child that was forked after CUDA came into use: nothing of CUDA works in it for good.
[[nodiscard]] bool lost_by_fork() noexcept;
inline constexpr const char* why_lost_by_fork =
    "CUDA was in use before this process was forked, and does not survive that: fork before its first use, or start "
    "another program";

/// "cudaMalloc: cudaErrorInvalidValue (1), invalid argument"; at most one line.
[[nodiscard]] std::string line_of(const char* function, cudaError_t error);

}  // namespace alloclab::device
