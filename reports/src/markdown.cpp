#include <fmt/format.h>

#include <algorithm>

#include "alloclab/report/writers.hpp"
#include "tables.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

/// Running text: nothing in it is markup, a mention or a cell border.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : visible(text)) {
        if (c == '<') out += "&lt;";
        else if (c == '&') out += "&amp;";
        else if (c == '@') out += "&#64;";
        else if (c == '#') out += "&#35;";
        else if (std::string_view("\\`*_[]|~").find(c) != std::string_view::npos) out.append({'\\', c});
        else out += c;
    }
    return out;
}

/// A code span, fenced by more backticks than stand side by side in it; '|' would end a table's cell even there.
std::string code(std::string_view text) {
    std::string inner;
    std::size_t run = 0, longest = 0;
    for (const char c : visible(text)) {
        run = c == '`' ? run + 1 : 0;
        longest = std::max(longest, run);
        if (c == '|') inner += '\\';
        inner += c;
    }
    const std::string fence(longest + 1, '`');
    const char* space = longest > 0 ? " " : "";
    return inner.empty() ? "" : fence + space + inner + space + fence;
}

std::string drawn(const sentence& s) {
    std::string out;
    for (const piece& p : s) {
        out += p.as == piece::kind::name     ? code(p.text)
               : p.as == piece::kind::figure ? fmt::format("**{}**", escaped(p.text))
                                             : escaped(p.text);
    }
    return out;
}

std::string drawn(const entry& e, const column& c) {
    std::string out = c.as == column::kind::name ? code(e.text) : escaped(e.text);
    if (e.control) out += " (control)";
    if (!e.detail.empty()) out += fmt::format(" ({})", escaped(e.detail));
    return out;
}

std::string drawn(const table& t) {
    std::string out = escaped(t.caption) + ":\n\n|";
    for (const column& c : t.columns) out += fmt::format(" {} |", escaped(heading(c)));
    out += "\n|";
    for (const column& c : t.columns) out += c.as == column::kind::figure ? "--:|" : ":--|";
    out += '\n';
    for (const auto& row : t.rows) {
        out += '|';
        for (std::size_t i = 0; i < row.size(); ++i) out += fmt::format(" {} |", drawn(row[i], t.columns[i]));
        out += '\n';
    }
    return out + '\n';
}

std::string drawn(const finding& f) {
    std::string out = fmt::format("- **{}:**", escaped(title_of(*f.on)));
    for (const auto* part : {&f.sentences, &f.limits})
        for (const sentence& s : *part) out.append(1, ' ').append(drawn(s));
    return out + '\n';
}

std::string folded(const std::string& summary, const std::string& body) {
    return fmt::format("<details><summary>{}</summary>\n\n{}</details>\n\n", html(summary), body);
}

}  // namespace

std::string to_markdown(const run& r) {
    const book b(r);
    std::string out = "## alloclab: memory strategies side by side\n\n";
    if (r.partial) out += "> **Partial run:** it ended before all cells were measured.\n\n";
    for (const std::string& warning : r.warnings) out += fmt::format("> **Warning:** {}\n\n", escaped(warning));
    if (b.chapters.empty()) return out + "This run holds no cells.\n";

    for (const finding& f : b.leaks) out += fmt::format("- :red_circle: {}", drawn(f).substr(2));
    for (const finding& f : b.findings) out += drawn(f);
    out += '\n';
    for (const std::string& kind : kinds(b)) out += drawn(standings_table(b, kind));
    out += "▼ faster, ▲ slower, = same, ? inconclusive, full: no room\n\n";

    for (const chapter& ch : b.chapters) {
        std::string body = ch.on->question.empty() ? "" : escaped(ch.on->question) + "\n\n";
        for (const panel& p : ch.panels) {
            if (!p.parameters.empty()) body += fmt::format("**{}**\n\n", escaped(describe(p.parameters)));
            for (const table& t : tables_of(ch, p)) body += drawn(t);
        }
        std::string without;
        for (const outage& o : ch.refusals) without += fmt::format("- {}\n", drawn(told(ch, o)));
        for (const outage& o : ch.failures) without += fmt::format("- **Failed:** {}\n", drawn(told(ch, o)));
        if (ch.repeated > 0) without += fmt::format("- {}\n", repetition(ch));
        body += without + (without.empty() ? "" : "\n");
        out += folded(fmt::format("{} ({})", title_of(*ch.on), ch.on->name), body);
    }

    std::string about;
    for (const std::string& line : method(b)) about += fmt::format("- {}\n", escaped(line));
    if (!r.environment.empty()) about += fmt::format("\n{}", drawn(environment_table(r)));
    if (!r.command.empty()) about += fmt::format("\nRepeat it with {} (seed {}).\n", code(r.command), r.seed);
    return out + folded("Method and environment", about + '\n');
}

}  // namespace alloclab::report
