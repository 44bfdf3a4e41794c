#include "text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace alloclab::report {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// Takes one code point off the front; a broken sequence is taken as one U+FFFD. Refuses overlong forms and surrogates.
char32_t take(std::string_view& text, std::string_view& bytes) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xC2 ? 0
                               : first < 0xE0 ? 2
                               : first < 0xF0 ? 3
                               : first < 0xF5 ? 4
                                              : 0;
    char32_t point = length <= 1 ? first : first & (0xFFu >> (length + 1));
    std::size_t taken = 1;
    while (taken < length && taken < text.size() && (byte(taken) & 0xC0) == 0x80)
        point = point << 6 | (byte(taken++) & 0x3Fu);
    const bool good = taken == length && !(length == 3 && (point < 0x800 || (point >= 0xD800 && point < 0xE000))) &&
                      !(length == 4 && (point < 0x10000 || point > 0x10FFFF));
    bytes = good ? text.substr(0, taken) : replacement;
    text.remove_prefix(taken);
    return good ? point : U'\uFFFD';
}

/// Calls each(code point, its UTF-8) over a text.
template <class F>
void points(std::string_view text, F each) {
    while (!text.empty()) {
        std::string_view bytes;
        const char32_t point = take(text, bytes);
        each(point, bytes);
    }
}

bool is_wide(char32_t p) noexcept {
    return (p >= 0x1100 && p < 0x1160) || (p >= 0x2E80 && p < 0xA4D0) || (p >= 0xAC00 && p < 0xD7A4) ||
           (p >= 0xF900 && p < 0xFB00) || (p >= 0xFE30 && p < 0xFE70) || (p >= 0xFF00 && p < 0xFF61) ||
           (p >= 0x1F300 && p < 0x1FB00) || (p >= 0x20000 && p < 0x40000);
}
bool is_combining(char32_t p) noexcept {
    return (p >= 0x300 && p < 0x370) || p == 0x200D || (p >= 0xFE00 && p < 0xFE10);
}

/// What a terminal may obey, or what reverses the text that follows.
bool is_unseen_control(char32_t p) noexcept {
    return (p >= 0x80 && p < 0xA0) || (p >= 0x202A && p <= 0x202E) || (p >= 0x2066 && p <= 0x2069);
}

}  // namespace

std::string visible(std::string_view text) {
    std::string out;
    points(text, [&](char32_t point, std::string_view bytes) {
        if (point < 0x20) out.append({'\xE2', '\x90', static_cast<char>(0x80 + point)});
        else if (point == 0x7F) out += "\xE2\x90\xA1";
        else if (is_unseen_control(point)) out += fmt::format("<U+{:04X}>", static_cast<std::uint32_t>(point));
        else out += bytes;
    });
    return out;
}

std::string html(std::string_view text) {
    std::string out;
    for (const char c : visible(text)) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : visible(text)) {
        if (c == '<') out += "\\u003c";
        else out.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
    }
    return out += '"';
}

std::string listed(const std::vector<std::string>& items, std::string_view word) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out += i + 1 < items.size() ? ", " : fmt::format(" {} ", word);
        out += items[i];
    }
    return out;
}

std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
}

std::size_t width(std::string_view text) noexcept {
    std::size_t columns = 0;
    points(text, [&](char32_t point, std::string_view) {
        columns += is_combining(point) ? 0 : is_wide(point) ? 2 : 1;
    });
    return columns;
}

std::optional<double> number(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

std::string figure(double value) {
    if (!std::isfinite(value)) return "–";
    const double size = std::abs(value);
    if (size == 0) return "0";
    if (size >= 1e15 || size < 0.001) return fmt::format("{:.2e}", value);
    const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : 4;
    return fmt::format("{:.{}f}", value, decimals);
}

std::string exact(double value) {
    if (!std::isfinite(value)) return "";
    std::array<char, 32> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string count(double value) {
    const bool whole = std::abs(value) < 9e15 && std::trunc(value) == value;
    return whole ? fmt::format("{:.0f}", value) : figure(value);
}

std::string percent(double share) {
    const double value = 100 * share, size = std::abs(value);
    int decimals = 1;
    for (double limit = 0.95; size > 0 && size < limit && decimals < 8; limit /= 10) ++decimals;
    return fmt::format("{:.{}f} %", value, decimals);
}

byte_unit unit_for(double largest) noexcept {
    constexpr double step = 1024;
    if (largest < 10 * step) return {};
    if (largest < 10 * step * step) return {step, "KiB"};
    if (largest < 10 * step * step * step) return {step * step, "MiB"};
    return {step * step * step, "GiB"};
}

std::string in_words(double ratio) {
    const double change = std::abs(1 - ratio) * 100;
    if (change < 0.5) return "the same time as";
    if (ratio >= 2) return fmt::format("{} times as long as", figure(ratio));
    return fmt::format("{:.{}f} % {} time than", change,
                       ratio < 0.01  ? 2
                       : ratio < 0.1 ? 1
                                     : 0,
                       ratio < 1 ? "less" : "more");
}

}  // namespace alloclab::report
