#include "elements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text.hpp"

namespace alloclab::report {
namespace {

/// Digits of long whole numbers in groups of three, by a narrow space that copies as a space and never breaks.
std::string grouped(const std::string& text) {
    const std::size_t digits = text.find_first_not_of("0123456789") == std::string::npos ? text.size() : 0;
    if (digits < 5) return text;
    std::string out;
    for (std::size_t i = 0; i < digits; ++i) {
        if (i > 0 && (digits - i) % 3 == 0) out += "\xE2\x80\xAF";
        out += text[i];
    }
    return out;
}

std::string name(std::string_view text, bool control) {
    return fmt::format("<code>{}</code>{}", breakable(text), control ? "<span class=\"control\">control</span>" : "");
}

/// "live = 64" stays on one line.
std::string unbroken(std::string text) {
    for (std::size_t at = 0; (at = text.find(" = ", at)) != std::string::npos;) text.replace(at, 3, "&nbsp;=&nbsp;");
    return text;
}

/// Marks of verdicts are read aloud as the words that they stand for, unless these follow.
std::string spoken(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        std::string word = text.substr(at, end - at), comma;
        if (!word.empty() && word.back() == ',') comma = ',', word.pop_back();
        verdict meant = verdict::baseline;
        for (const verdict v : {verdict::faster, verdict::slower, verdict::same, verdict::inconclusive})
            meant = word == mark(v) ? v : meant;
        out += at > 0 ? " " : "";
        if (meant == verdict::baseline) {
            out += html(grouped(word));
        } else {
            out += fmt::format("<span aria-hidden=\"true\">{}</span>", word);
            const auto aloud = to_string(meant);
            if (end == text.size() || text.compare(end + 1, aloud.size(), aloud) != 0)
                out += fmt::format("<span class=\"hidden\">{}</span>", aloud);
        }
        out += comma;
        at = end + 1;
    }
    return out;
}

std::string drawn(const entry& e, const column& c, bool row_heading) {
    const bool long_text = c.as == column::kind::text && e.text.size() > 40;
    const auto attributes = fmt::format(" class=\"{}{}{}\"",
                                        c.as == column::kind::figure ? "figure"
                                        : long_text                  ? "wrap"
                                                                     : "wide",
                                        e.tone ? " " : "", e.tone ? to_string(*e.tone) : "");
    if (row_heading) {
        return fmt::format("<th scope=\"row\"{}>{}{}</th>", attributes,
                           c.as == column::kind::name ? name(e.text, e.control) : html(e.text),
                           e.detail.empty() ? "" : "<small>" + breakable(e.detail) + "</small>");
    }
    return fmt::format("<td{}>{}{}</td>", attributes, e.tone ? spoken(e.text) : html(grouped(e.text)),
                       e.detail.empty() ? "" : "<small>" + spoken(e.detail) + "</small>");
}

std::string of_strategy(const table& t, const std::vector<entry>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (t.columns[i].heading == "strategy") return fmt::format(" data-s=\"{}\"", html(row[i].text));
    }
    return "";
}

std::string drawn(const chart& c, const std::string& table_id) {
    const bool plain = c.json.rfind("{\"kind\":\"map\"", 0) != 0;  // a map has controls of its own
    return fmt::format(
        "<figure><figcaption>{0} <a class=\"figures\" href=\"#{1}\">figures</a></figcaption><div "
        "class=\"plot\"{2}></div>"
        "<script type=\"application/json\">{3}</script></figure>\n",
        html(c.caption), table_id,
        plain ? fmt::format(" role=\"img\" aria-label=\"Chart: {}; the table after it holds its figures\"",
                            html(c.caption))
              : "",
        c.json);
}

}  // namespace

std::string breakable(std::string_view text) {
    std::string out = html(text);
    for (std::size_t at = 0; (at = out.find('_', at)) != std::string::npos; at += 6) out.insert(at + 1, "<wbr>");
    return out;
}

std::string drawn(const sentence& s) {
    std::string out;
    for (const piece& p : s) {
        out += p.as == piece::kind::name     ? "<code>" + html(p.text) + "</code>"
               : p.as == piece::kind::figure ? "<b>" + html(p.text) + "</b>"
                                             : unbroken(html(p.text));
    }
    return out;
}

std::string paragraphs(const std::vector<std::string>& lines) {
    std::string out;
    for (const std::string& line : lines) out += "<p>" + html(line) + "</p>\n";
    return out;
}

std::string sheet::draw(const table& t, const looks& with) {
    if (t.rows.empty()) return "";
    const auto of_workload = [&](std::size_t i) {
        return i == 0 || i > with.workloads.size() ? "" : fmt::format(" data-w=\"{}\"", html(with.workloads[i - 1]));
    };
    std::string out = fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table id=\"table-{2}\" "
        "class=\"{1}\"><caption>{0}</caption>\n<thead><tr>",
        html(t.caption), with.classes, ++tables_);
    for (std::size_t i = 0; i < t.columns.size(); ++i) {
        const column& c = t.columns[i];
        out += fmt::format("<th scope=\"col\"{}{}>{}</th>", c.as == column::kind::figure ? " class=\"figure\"" : "",
                           of_workload(i),
                           breakable(c.heading) + (c.unit.empty() ? "" : "<small>" + html(c.unit) + "</small>"));
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : t.rows) {
        out += fmt::format("<tr{}>", of_strategy(t, row));
        for (std::size_t i = 0; i < row.size(); ++i) out += drawn(row[i], t.columns[i], i == 0);
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string sheet::draw_folded(const table& t, std::string_view summary) {
    if (t.rows.empty()) return "";
    return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html(summary), draw(t));
}

std::string sheet::draw(const exhibit& e, const looks& with) {
    if (e.figures.rows.empty()) return "";
    std::string charts, id;
    if (with_charts_ && !e.charts.empty()) {
        id = fmt::format(" id=\"exhibit-{}\"", ++exhibits_);
        charts = "<div class=\"charts\">\n";
        for (const chart& c : e.charts) charts += drawn(c, fmt::format("table-{}", tables_ + 1));
        charts += "</div>\n";
    }
    return fmt::format("<div class=\"exhibit\"{}>\n{}{}</div>\n", id, charts,
                       e.folded ? draw_folded(e.figures, e.figures.caption) : draw(e.figures, with));
}

}  // namespace alloclab::report
