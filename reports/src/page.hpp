// The parts of the HTML page that are files under web/, and default_assets().
#pragma once

#include <string_view>

#include "alloclab/report/writers.hpp"

namespace alloclab::report {

extern const std::string_view page_skeleton;  ///< with {{name}} where text goes
extern const std::string_view page_style;
extern const std::string_view page_script;

}  // namespace alloclab::report
