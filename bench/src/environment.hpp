// environment: what a reader must know of the machine and the build to believe a figure, and what may have spoilt it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "doctor.hpp"

namespace alloclab::bench {

struct environment {
    std::vector<std::pair<std::string, std::string>> facts;  ///< those of a check have its name
    std::vector<std::string> warnings;                       ///< the checks that failed
};

/// The fact "machine" is an identity: runs that agree in it were made on one machine, so their times may be compared.
/// Takes some 30 ms.
[[nodiscard]] environment look_around(const system_files& files = system_files{});

}  // namespace alloclab::bench
