#include <fmt/format.h>

#include <array>
#include <fstream>
#include <sstream>

#include "alloclab/report/writers.hpp"
#include "charts.hpp"
#include "page.hpp"
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

/// May be broken after an underscore.
std::string breakable(std::string_view text) {
    std::string out = html(text);
    for (std::size_t at = 0; (at = out.find('_', at)) != std::string::npos; at += 6) out.insert(at + 1, "<wbr>");
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

std::string drawn(const sentence& s) {
    std::string out;
    for (const piece& p : s) {
        out += p.as == piece::kind::name     ? "<code>" + html(p.text) + "</code>"
               : p.as == piece::kind::figure ? "<b>" + html(p.text) + "</b>"
                                             : unbroken(html(p.text));
    }
    return out;
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
        return fmt::format("<th scope=\"row\"{}>{}</th>", attributes,
                           c.as == column::kind::name ? name(e.text, e.control) : html(e.text));
    }
    return fmt::format("<td{}>{}{}</td>", attributes, e.tone ? spoken(e.text) : html(grouped(e.text)),
                       e.detail.empty() ? "" : "<small>" + spoken(e.detail) + "</small>");
}

std::string drawn(const table& t, const char* classes = "") {
    if (t.rows.empty()) return "";
    std::string out = fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table "
        "class=\"{1}\"><caption>{0}</caption>\n<thead><tr>",
        html(t.caption), classes);
    for (const column& c : t.columns) {
        out += fmt::format("<th scope=\"col\"{}>{}</th>", c.as == column::kind::figure ? " class=\"figure\"" : "",
                           breakable(c.heading) + (c.unit.empty() ? "" : "<small>" + html(c.unit) + "</small>"));
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : t.rows) {
        out += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) out += drawn(row[i], t.columns[i], i == 0);
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string id_of(const book& b, const workload* on) {
    for (std::size_t i = 0; i < b.chapters.size(); ++i) {
        if (b.chapters[i].on == on) return fmt::format("workload-{}", i + 1);
    }
    return "";
}

std::string drawn(const book& b, const finding& f) {
    const bool leak = f.tone == verdict::failed;
    std::string out = fmt::format("<div{}><dt>{}<a href=\"#{}\">{}</a></dt><dd>", leak ? " class=\"leak\"" : "",
                                  leak ? "Leak: " : "", id_of(b, f.on), html(title_of(*f.on)));
    for (const auto* part : {&f.sentences, &f.limits})
        for (const sentence& s : *part) out += "<p>" + drawn(s) + "</p>";
    return out + "</dd></div>\n";
}

/// Links to the chapters by their short names, a line for each kind of strategy.
std::string contents(const book& b) {
    std::string out = "<nav aria-label=\"Contents\"><dl>\n";
    for (const std::string& kind : kinds(b)) {
        out += fmt::format("<div><dt>{}</dt><dd>", html(kind.empty() ? "workloads" : kind));
        for (const chapter& ch : b.chapters) {
            if (ch.on->kind != kind) continue;
            out += fmt::format("<a href=\"#{}\" title=\"{}\">{}</a> ", id_of(b, ch.on), html(title_of(*ch.on)),
                               html(short_name(*ch.on)));
        }
        out += "</dd></div>\n";
    }
    return out +
           "<div><dt>report</dt><dd><a href=\"#method\">How it was judged</a> <a href=\"#run\">The run</a></dd></div>\n"
           "</dl></nav>\n";
}

std::string verdicts(const book& b) {
    if (b.chapters.empty()) return "<p>This run holds no cells, so there is nothing to compare.</p>";
    std::string out = "<dl class=\"findings\">\n";
    for (const finding& f : b.leaks) out += drawn(b, f);
    for (const finding& f : b.findings) out += drawn(b, f);
    out += "</dl>\n";
    out += "<div class=\"exhibit\">\n";
    for (const std::string& kind : kinds(b)) out += drawn(standings_table(b, kind), "standings");
    out +=
        "</div>\n<p class=\"soft\"><span class=\"faster\">▼ faster</span>, <span class=\"slower\">▲ slower</span>, = "
        "same, ? inconclusive. A ratio of 0.50 is half the baseline's time; full is a setting that the strategy has no "
        "room for.</p>\n";
    return out + contents(b);
}

std::string drawn(const chart& c) {
    return fmt::format(
        "<figure><figcaption>{}</figcaption><div class=\"plot\"></div><script "
        "type=\"application/json\">{}</script></figure>\n",
        html(c.caption), c.json);
}

std::string drawn(const book& b, const chapter& ch, bool with_charts) {
    const std::string id = id_of(b, ch.on);
    std::string out = fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n<p "
        "class=\"question\">{2}{3}{4}</p>\n",
        id, html(title_of(*ch.on)), "<code>" + html(ch.on->name) + "</code>", ch.on->question.empty() ? "" : ": ",
        html(ch.on->question));
    for (const panel& p : ch.panels) {
        if (!p.parameters.empty()) out += "<h3>" + html(describe(p.parameters)) + "</h3>\n";
        for (const exhibit& e : exhibits_of(ch, p)) {
            out += "<div class=\"exhibit\">\n";
            if (with_charts && !e.charts.empty()) {
                out += "<div class=\"charts\">\n";
                for (const chart& c : e.charts) out += drawn(c);
                out += "</div>\n";
            }
            out += drawn(e.figures) + "</div>\n";
        }
    }
    std::string without;
    for (const outage& o : ch.refusals) without += "<li>" + drawn(told(ch, o)) + "</li>\n";
    for (const outage& o : ch.failures)
        without += "<li><span class=\"failed\">Failed.</span> " + drawn(told(ch, o)) + "</li>\n";
    if (ch.repeated > 0) without += "<li>" + repetition(ch) + "</li>\n";
    if (!without.empty()) out += "<ul class=\"plainlist\" aria-label=\"Not measured\">\n" + without + "</ul>\n";
    return out + "<details><summary>Every cell with its interval</summary>\n" + drawn(cells_table(ch)) +
           "</details>\n</section>\n";
}

std::string notes(const run& r, bool with_charts) {
    std::string lines;
    if (r.partial) lines += "<p><b>Partial run.</b> It ended before all cells were measured.</p>\n";
    for (const std::string& warning : r.warnings) lines += "<p><b>Warning.</b> " + html(warning) + "</p>\n";
    if (!with_charts) {
        lines +=
            "<p><b>No charts.</b> Vega was not found when this report was written; run <code>npm ci "
            "--ignore-scripts</code> in "
            "reports/web and write it again. The tables hold every figure.</p>\n";
    }
    return lines.empty() ? "" : "<aside class=\"note\" aria-label=\"Warnings\">\n" + lines + "</aside>";
}

std::string facts(const run& r) {
    std::vector<std::string> parts;
    if (!r.started.empty()) parts.push_back(fmt::format("<time datetime=\"{0}\">{0}</time>", html(r.started)));
    for (const auto& [key, value] : r.environment) {
        if (key == "cpu" || key == "gpu") parts.push_back(html(value));
    }
    parts.push_back(fmt::format("{} cells", r.cells.size()));
    if (r.seconds > 0)
        parts.push_back(r.seconds < 120 ? fmt::format("{:.0f} s", r.seconds)
                                        : fmt::format("{:.0f} min", r.seconds / 60));
    return fmt::format("<p class=\"facts\">{}</p>", fmt::join(parts, " · "));
}

std::string about(const run& r) {
    std::string out;
    if (!r.command.empty())
        out += fmt::format("<p>Repeat it with this command (seed {}):</p>\n<pre><code>{}</code></pre>\n", r.seed,
                           html(r.command));
    return out + drawn(environment_table(r)) + drawn(strategies_table(r));
}

std::string paragraphs(const std::vector<std::string>& lines) {
    std::string out;
    for (const std::string& line : lines) out += "<p>" + html(line) + "</p>\n";
    return out;
}

/// The scripts with their licences, or nothing when one of them is missing.
std::string vega(const std::filesystem::path& assets) {
    const auto text = [](const std::filesystem::path& file) {
        std::ifstream in(file, std::ios::binary);
        std::ostringstream out;
        out << in.rdbuf();
        return std::move(out).str();
    };
    std::string all;
    for (const char* package : {"vega", "vega-lite", "vega-embed"}) {
        std::string script = text(assets / package / "build" / fmt::format("{}.min.js", package));
        if (script.empty()) return "";
        for (std::size_t at = 0; (at = script.find("</script", at)) != std::string::npos; at += 2)
            script.replace(at, 2, "<\\/");
        all +=
            fmt::format("<script>/*! {}\n{}*/\n{}\n</script>\n", package, text(assets / package / "LICENSE"), script);
    }
    return all;
}

}  // namespace

std::string to_html(const run& r, const std::filesystem::path& assets) {
    const book b(r);
    const std::string scripts = vega(assets);
    const bool with_charts = !scripts.empty();
    std::string chapters;
    for (const chapter& ch : b.chapters) chapters += drawn(b, ch, with_charts);

    const std::map<std::string_view, std::string> filled{
        {"when", r.started.empty() ? "" : ", " + html(r.started)},
        {"style", std::string(page_style)},
        {"facts", facts(r)},
        {"notes", notes(r, with_charts)},
        {"verdicts", verdicts(b)},
        {"chapters", chapters},
        {"method", paragraphs(method(b))},
        {"run", about(r)},
        {"scripts",
         with_charts
             ? fmt::format("<script type=\"application/json\" id=\"strategies\">{}</script>\n{}<script>\n{}</script>",
                           strategies_json(r), scripts, page_script)
             : ""}};
    std::string page;
    std::string_view rest = page_skeleton;
    for (std::size_t open = 0; (open = rest.find("{{")) != std::string_view::npos;) {
        const std::size_t close = rest.find("}}", open);
        page.append(rest.substr(0, open)).append(filled.at(rest.substr(open + 2, close - open - 2)));
        rest.remove_prefix(close + 2);
    }
    return page.append(rest);
}

}  // namespace alloclab::report
