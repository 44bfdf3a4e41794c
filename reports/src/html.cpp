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

std::string name(std::string_view text, bool control) {
    return fmt::format("<code>{}</code>{}", html(text), control ? "<span class=\"control\">control</span>" : "");
}

std::string drawn(const sentence& s) {
    std::string out;
    for (const piece& p : s) {
        out += p.as == piece::kind::name     ? name(p.text, false)
               : p.as == piece::kind::figure ? "<b>" + html(p.text) + "</b>"
                                             : html(p.text);
    }
    return out;
}

/// A symbol is read aloud as the word that it stands for.
std::string spoken(const entry& e) {
    if (!e.tone) return html(grouped(e.text));
    const auto symbol = mark(*e.tone);
    const bool bare =
        !symbol.empty() && e.text.size() >= symbol.size() && e.text.substr(e.text.size() - symbol.size()) == symbol;
    if (!bare) return html(grouped(e.text));
    return fmt::format("{}<span aria-hidden=\"true\">{}</span><span class=\"hidden\">{}</span>",
                       html(e.text.substr(0, e.text.size() - symbol.size())), symbol, to_string(*e.tone));
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
    return fmt::format("<td{}>{}{}</td>", attributes, spoken(e),
                       e.detail.empty() ? "" : "<small>" + html(e.detail) + "</small>");
}

std::string drawn(const table& t, const char* classes = "") {
    if (t.rows.empty()) return "";
    std::string out = fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table "
        "class=\"{1}\"><caption>{0}</caption>\n<thead><tr>",
        html(t.caption), classes);
    for (const column& c : t.columns) {
        out += fmt::format("<th scope=\"col\"{}>{}</th>", c.as == column::kind::figure ? " class=\"figure\"" : "",
                           html(c.heading) + (c.unit.empty() ? "" : "<small>" + html(c.unit) + "</small>"));
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
    for (const sentence& s : f.sentences) out += "<p>" + drawn(s) + "</p>";
    return out + "</dd></div>\n";
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
        "same, "
        "<span class=\"inconclusive\">? inconclusive</span>. A ratio of 0.50 is half the baseline's time.</p>\n"
        "<nav aria-label=\"Workloads\"><ul>\n";
    for (const chapter& ch : b.chapters) {
        out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id_of(b, ch.on), html(title_of(*ch.on)));
    }
    return out +
           "<li><a href=\"#method\">How it was judged</a></li>\n<li><a href=\"#run\">The run</a></li>\n</ul></nav>\n";
}

std::string drawn(const chart& c) {
    return fmt::format(
        "<figure><figcaption>{}</figcaption><div class=\"plot\"></div><script "
        "type=\"application/json\">{}</script></figure>\n",
        html(c.caption), c.json);
}

std::string drawn(const book& b, const chapter& ch, bool with_charts) {
    const std::string id = id_of(b, ch.on);
    std::string out = fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n",
                                  id, html(title_of(*ch.on)));
    if (!ch.on->question.empty()) out += "<p class=\"question\">" + html(ch.on->question) + "</p>\n";
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
    if (!ch.failures.empty()) {
        out += "<ul class=\"plainlist\" aria-label=\"Not measured\">\n";
        for (const std::string& line : ch.failures)
            out += "<li><span class=\"failed\">Not measured</span> " + html(line) + "</li>\n";
        out += "</ul>\n";
    }
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
