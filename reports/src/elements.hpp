// elements: names, sentences, tables and charts as HTML. Text is escaped here and nowhere else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "charts.hpp"

namespace alloclab::report {

/// As HTML that may be broken after an underscore.
[[nodiscard]] std::string breakable(std::string_view text);
[[nodiscard]] std::string drawn(const sentence& s);
[[nodiscard]] std::string paragraphs(const std::vector<std::string>& lines);

/// Draws the tables and charts of one page, each table with an id of its own that its charts point to. Rows that begin
/// with a strategy, and columns that stand for a workload, bear its name for web/filter.js.
class sheet {
public:
    explicit sheet(bool with_charts) : with_charts_{with_charts} {}

    struct looks {
        const char* classes = "";
        std::vector<std::string> workloads = {};  ///< that the columns after the first stand for
    };
    /// "" without rows.
    [[nodiscard]] std::string draw(const table& t, const looks& with);
    [[nodiscard]] std::string draw(const table& t) { return draw(t, looks{}); }
    [[nodiscard]] std::string draw(const exhibit& e, const looks& with);
    [[nodiscard]] std::string draw(const exhibit& e) { return draw(e, looks{}); }
    /// How many with a chart were drawn: they are "exhibit-1" and so on.
    [[nodiscard]] std::size_t exhibits() const noexcept { return exhibits_; }
    /// The same behind a summary that opens it.
    [[nodiscard]] std::string draw_folded(const table& t, std::string_view summary);

private:
    bool with_charts_;
    std::size_t tables_ = 0, exhibits_ = 0;
};

}  // namespace alloclab::report
