#include "json_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "text.hpp"

namespace alloclab::report {

using nlohmann::json;
namespace fs = std::filesystem;

void refuse(const fs::path& file, std::string_view place, std::string_view what) {
    throw bad_results(fmt::format("{}: {}: {}", visible(file.string()), place, what));
}

std::string found(const json& value) {
    if (value.is_string()) {
        const auto text = visible(value.get_ref<const std::string&>());
        return text.size() > 40 ? "a long string" : '"' + text + '"';
    }
    return value.is_number() || value.is_boolean() ? value.dump() : fmt::format("{}", value.type_name());
}

std::string slurp(const fs::path& file) {
    std::error_code none;
    if (fs::is_directory(file, none)) refuse(file, "not a file", "expected a run.json, found a folder");
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (in) text << in.rdbuf();
    if (!in.is_open() || in.bad()) {
        refuse(file, "cannot be read",
               fmt::format("expected a run.json ({})", std::generic_category().message(errno != 0 ? errno : EIO)));
    }
    return std::move(text).str();
}

namespace {

/// "line 3, column 7" of a 1-based byte offset.
std::string position(const std::string& text, std::size_t byte) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte == 0 ? 0 : byte - 1, text.size()));
    const auto line = std::count(text.begin(), end, '\n') + 1;
    const auto last = std::find(std::make_reverse_iterator(end), text.rend(), '\n').base();
    return fmt::format("line {}, column {}", line, end - last + 1);
}

}  // namespace

json parse(const fs::path& file, const std::string& text) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        refuse(file, "line 1", "expected JSON, found an empty file");
    try {
        return json::parse(text);
    } catch (const json::parse_error& e) {
        const bool cut = e.byte > text.size();
        refuse(file, position(text, e.byte),
               cut ? "expected more JSON, found the end of the file: it is truncated"
                   : fmt::format("expected JSON, found {}",
                                 found(text.substr(e.byte == 0 ? 0 : e.byte - 1, 12).insert(0, "…").append("…"))));
    } catch (const json::exception& e) {
        refuse(file, "JSON", fmt::format("expected numbers in the range of a double ({})", visible(e.what())));
    }
}

}  // namespace alloclab::report
