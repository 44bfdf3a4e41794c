// environment: what a reader must know of the machine and the build to believe a figure, and what may have spoilt it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace alloclab::bench {

struct environment {
    std::vector<std::pair<std::string, std::string>> facts;
    std::vector<std::string> warnings;
};

[[nodiscard]] environment look_around();
/// The file that serves `malloc` in this process, and whether it is the C library's.
struct malloc_server {
    std::string file;
    bool is_libc;
};
[[nodiscard]] malloc_server who_serves_malloc();

}  // namespace alloclab::bench
