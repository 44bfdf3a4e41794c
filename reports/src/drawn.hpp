// drawn: tables and text in a format, for what is printed beside a report in the same hand.
#pragma once

#include <string>
#include <string_view>

#include "tables.hpp"

namespace alloclab::report {

[[nodiscard]] std::string terminal_table(const table& t, bool colour);

[[nodiscard]] std::string markdown_table(const table& t);
/// Running text in which nothing is markup, a mention or a cell border.
[[nodiscard]] std::string markdown_text(std::string_view text);
/// `body` in a <details> element.
[[nodiscard]] std::string markdown_folded(const std::string& summary, const std::string& body);

}  // namespace alloclab::report
