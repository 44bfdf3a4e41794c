// Figures and names as text, the same in every writer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace alloclab::report {

/// Valid UTF-8 on one line: control characters as their Unicode pictures, those of U+0080 to U+009F and of direction as
/// "<U+009B>", broken sequences as U+FFFD.
[[nodiscard]] std::string visible(std::string_view text);

/// visible() with the five characters escaped that mean something in HTML text and attributes.
[[nodiscard]] std::string html(std::string_view text);

/// visible() as a JSON string literal that may also stand inside a <script> element.
[[nodiscard]] std::string json_string(std::string_view text);

/// "a, b and c"; the word stands before the last.
[[nodiscard]] std::string listed(const std::vector<std::string>& items, std::string_view word = "and");

/// The first letter large, if it is an ASCII one.
[[nodiscard]] std::string capital(std::string text);

/// Columns that valid UTF-8 takes in a terminal, whatever the locale.
[[nodiscard]] std::size_t width(std::string_view text) noexcept;

/// The number that the whole text is.
[[nodiscard]] std::optional<double> number(const std::string& text);

/// Three significant digits, more where a whole number has more; "–" for what is no number.
[[nodiscard]] std::string figure(double value);

/// The shortest text that reads back as the same double; "" for what is no number.
[[nodiscard]] std::string exact(double value);

/// A count in full, anything else as a figure.
[[nodiscard]] std::string count(double value);

/// A share of 1 as "4.5 %", with more decimals where it is small.
[[nodiscard]] std::string percent(double share);

/// A binary unit in which a column of byte counts reads well.
struct byte_unit {
    double bytes = 1;
    std::string_view name = "B";
};
[[nodiscard]] byte_unit unit_for(double largest) noexcept;

/// How much time a ratio means: "57 % less time than", "3.1 times as long as".
[[nodiscard]] std::string in_words(double ratio);

}  // namespace alloclab::report
