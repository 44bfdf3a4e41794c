#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "alloclab/report/writers.hpp"
#include "drawn.hpp"
#include "tables.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

/// The longest comment that GitHub takes; counted in bytes here, which are never fewer than characters.
constexpr std::size_t limit = 65536;

/// Running text: nothing in it is markup, a mention, a reference, a formula or a cell border. An empty comment parts
/// '@' and '#' from what follows, because GitHub looks for both once the Markdown is gone.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : visible(text)) {
        if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '&') out += "&amp;";
        else if (c == '@' || c == '#') out.append({c}).append("<!-- -->");
        else if (c == '$') out += "<span>$</span>";
        else if (std::string_view("\\`*_[]|~").find(c) != std::string_view::npos) out.append({'\\', c});
        else out += c;
    }
    return out;
}

/// Running text at the start of a line, where it is no list, rule or heading either.
std::string paragraph(std::string_view text) {
    std::string out = escaped(text.substr(std::min(text.find_first_not_of(' '), text.size())));
    const std::size_t sign = out.find_first_not_of("0123456789");
    if (sign != std::string::npos &&
        std::string_view(sign == 0 ? "-+=" : ".)").find(out[sign]) != std::string_view::npos)
        out.insert(sign, "\\");
    return out;
}

/// A code span; as an element where backticks could not hold the text exactly, in a table and outside alike.
std::string code(std::string_view name) {
    const std::string text = visible(name);
    if (text.empty()) return "";
    if (text.find_first_of("`|\\") == std::string::npos && text.front() != ' ' && text.back() != ' ')
        return '`' + text + '`';
    std::string out = "<code>";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::ispunct(byte) != 0 || c == ' ') out += fmt::format("&#{};", byte);
        else out += c;
    }
    return out + "</code>";
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
    std::string out = !e.said.empty() ? drawn(e.said) : c.as == column::kind::name ? code(e.text) : escaped(e.text);
    if (!role(e).empty()) out += fmt::format(" ({})", role(e));
    if (!e.detail.empty()) out += fmt::format(" ({})", escaped(e.detail));
    return out;
}

std::string drawn(const table& t) {
    if (t.rows.empty()) return "";
    std::string out = paragraph(t.caption) + ":\n\n|";
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
    if (body.empty()) return "";
    return fmt::format("<details><summary>{}</summary>\n\n{}</details>\n\n", html(summary), body);
}

/// How much is folded below the table of verdicts, the most first.
enum class depth { whole, times, outages, nothing };
constexpr std::array<const char*, 4> left_out_at{
    "", "scaling, single operations, parts, counters and growth of each workload", "the tables of each workload",
    "all tables but that of the verdicts"};

std::string drawn(const chapter& ch, depth to) {
    std::string body;
    if (to <= depth::times) {
        if (!ch.on->question.empty()) body += paragraph(ch.on->question) + "\n\n";
        for (const panel& p : ch.panels) {
            if (!p.parameters.empty()) body += fmt::format("**{}**\n\n", escaped(describe(p.parameters)));
            for (const table& t : to == depth::whole ? tables_of(ch, p) : std::vector{times_table(ch, p)})
                body += drawn(t);
        }
    }
    std::string without;
    for (const outage& o : ch.refusals) without += fmt::format("- {}\n", drawn(told(ch, o)));
    for (const outage& o : ch.failures) without += fmt::format("- **Failed:** {}\n", drawn(told(ch, o)));
    if (ch.repeated > 0) without += fmt::format("- {}\n", repetition(ch));
    body += without + (without.empty() ? "" : "\n");
    return folded(fmt::format("{} ({})", title_of(*ch.on), ch.on->name), body);
}

std::string opening(const book& b, const std::vector<claim>& claims, const bar_list& bars) {
    std::string out = "## alloclab: memory strategies side by side\n\n";
    for (const notice& n : notices(b)) out += fmt::format("> **{}:** {}\n\n", escaped(n.lead), escaped(n.text));
    if (b.chapters.empty()) return out + "This run holds no cells.\n";
    for (const finding& f : b.leaks) out += fmt::format("- :red_circle: {}", drawn(f).substr(2));
    for (const finding& f : b.findings) out += drawn(f);
    if (b.null.rows > 0) out += fmt::format("- {}\n", escaped(in_words(b.null)));
    return out + '\n' + drawn(claims_table(claims)) + drawn(bars_table(bars)) + drawn(verdicts_table(b)) +
           "▼ faster, ▲ slower, = same, ? inconclusive, full: no room; a ratio below 1 is faster\n\n";
}

std::string evidence(const std::vector<claim>& claims) {
    std::string out;
    for (const claim& c : claims) {
        if (c.ruled == ruling::unmeasured) continue;
        out += fmt::format("- {} ({}), {}:", code(c.id), escaped(c.source), to_string(c.ruled));
        for (const sentence& s : c.evidence) out.append(1, ' ').append(drawn(s));
        out += '\n';
    }
    if (out.empty()) return "";
    if (const auto ids = unmeasured(claims); !ids.empty())
        out += fmt::format("- Not measured by this run: {}\n", escaped(listed(ids)));
    return folded("Claims: the figures", out + '\n');
}

std::string evidence(const bar_list& list) {
    std::string out;
    for (const bar& x : list.bars) {
        if (x.evidence.empty()) continue;
        out += fmt::format("- {}, {}:", escaped(capital(x.figure)), to_string(x.graded));
        for (const sentence& s : x.evidence) out.append(1, ' ').append(drawn(s));
        out += '\n';
    }
    if (!list.eval.empty()) out += "- " + drawn(list.eval) + '\n';
    return folded("Bars: the figures", out.empty() ? "" : out + '\n');
}

std::string standings(const book& b) {
    std::string body;
    for (const std::string& kind : kinds(b)) body += drawn(standings_table(b, kind));
    return folded("Every strategy by workload", body);
}

std::string about(const book& b) {
    const run& r = b.of;
    std::string body;
    for (const std::string& line : method(b)) body += fmt::format("- {}\n", escaped(line));
    body += '\n' + drawn(design_table(b)) + drawn(maps_table(r)) + drawn(environment_table(r));
    if (!r.machines.empty()) body += drawn(machines_table(r));
    if (!r.command.empty()) body += fmt::format("Repeat it with {} (seed {}).\n\n", code(r.command), r.seed);
    return folded("Method and environment", body);
}

/// What is longer than GitHub takes even without its chapters: whole lines of it, and a word on the rest.
std::string shortened(std::string text) {
    const std::string_view note = "\nThe rest is left out here: a comment on GitHub ends at 65536 characters.\n";
    if (text.size() < limit) return text;
    text.resize(text.rfind('\n', limit - note.size() - 2) + 1);
    return text.append(note);
}

}  // namespace

std::string markdown_table(const table& t) { return drawn(t); }
std::string markdown_text(std::string_view text) { return escaped(text); }
std::string markdown_folded(const std::string& summary, const std::string& body) { return folded(summary, body); }

std::string to_markdown(const run& r) {
    const book b(r);
    const auto claims = claims_of(b);
    const bar_list bars = bars_of(b);
    const std::string first = opening(b, claims, bars);
    if (b.chapters.empty()) return shortened(first);
    const std::string details = evidence(claims) + evidence(bars) + standings(b), last = about(b);
    std::string out;
    for (const depth to : {depth::whole, depth::times, depth::outages, depth::nothing}) {
        out = first;
        if (to != depth::whole) {
            out += fmt::format(
                "Left out here, since a comment on GitHub ends at {} characters: {}. index.html and report.csv have "
                "it.\n\n",
                limit, left_out_at[static_cast<std::size_t>(to)]);
        }
        if (to != depth::nothing) {
            out += details;
            for (const chapter& ch : b.chapters) out += drawn(ch, to);
        }
        out += last;
        if (out.size() < limit) break;
    }
    return shortened(std::move(out));
}

}  // namespace alloclab::report
