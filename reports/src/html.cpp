#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "alloclab/report/writers.hpp"
#include "bars.hpp"
#include "claims.hpp"
#include "elements.hpp"
#include "page.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

constexpr std::size_t open_panels = 2;  ///< of a chapter; a reader opens the others

std::string id_of(const book& b, const workload* on) {
    for (std::size_t i = 0; i < b.chapters.size(); ++i) {
        if (b.chapters[i].on == on) return fmt::format("workload-{}", i + 1);
    }
    return "";
}

/// What web/filter.js hides by workload.
std::string of_workload(const workload& w) { return fmt::format(" data-w=\"{}\"", html(w.name)); }

std::string plural(std::size_t n, std::string_view one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

std::string drawn(const book& b, const finding& f) {
    const bool leak = f.tone == verdict::failed;
    std::string out = fmt::format("<div{}{}><dt>{}<a href=\"#{}\">{}</a></dt><dd>", leak ? " class=\"leak\"" : "",
                                  of_workload(*f.on), leak ? "Leak: " : "", id_of(b, f.on), html(title_of(*f.on)));
    for (const auto* part : {&f.sentences, &f.limits})
        for (const sentence& s : *part) out += "<p>" + drawn(s) + "</p>";
    return out + "</dd></div>\n";
}

/// What shows a claim or a bar: the first chart of its workload's chapter, with its table; else the chapter.
using shown_at = std::map<const workload*, std::string>;

/// A claim or a bar as an item of its list.
struct item {
    std::string id = {}, tone = {}, ruled = {}, says = {};
    std::vector<sentence> evidence = {};
    sentence flips = {};
    const workload* on = nullptr;
    std::string source = {};
};

std::string drawn(const item& c, const shown_at& ids) {
    std::string out =
        fmt::format("<li{}><p class=\"ruling {}\">{}</p><div><p class=\"says\">{}</p>",
                    c.id.empty() ? "" : fmt::format(" id=\"{}\"", html(c.id)), c.tone, c.ruled, html(capital(c.says)));
    for (const sentence& s : c.evidence) out += "<p>" + drawn(s) + "</p>";
    if (!c.flips.empty()) out += "<p class=\"flips\">" + drawn(c.flips) + "</p>";
    std::vector<std::string> ends;
    if (const auto at = ids.find(c.on); at != ids.end())
        ends.push_back(fmt::format("<a href=\"#{}\">{}</a>", at->second, html(title_of(*c.on))));
    if (!c.source.empty()) ends.push_back("said in " + html(c.source));
    return out + (ends.empty() ? "" : fmt::format("<p class=\"soft\">{}</p>", fmt::join(ends, " · "))) +
           "</div></li>\n";
}

std::string list_of(const std::string& items) { return "<ol class=\"claims\">\n" + items + "</ol>\n"; }
std::string not_measured(const std::string& items) {
    if (items.empty()) return "";
    return "<details><summary>Not measured in this run</summary>\n" + list_of(items) + "</details>\n";
}

std::string section(const char* id, const char* title, const std::string& body) {
    return fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n", id, title,
        body);
}

std::string claims(const book& b, const shown_at& ids) {
    const std::vector<claim> all = claims_of(b);
    std::string measured, others;
    std::vector<std::string> counts;
    for (const ruling r : {ruling::holds, ruling::fails, ruling::depends, ruling::undecided, ruling::unmeasured}) {
        const auto n = std::count_if(all.begin(), all.end(), [&](const claim& c) { return c.ruled == r; });
        std::string_view word = to_string(r);
        if (n > 1 && word.ends_with('s')) word.remove_suffix(1);  // 7 hold, 1 fails
        if (n > 0) counts.push_back(fmt::format("{} {}", n, word));
    }
    for (const claim& c : all) {
        const std::string ruled(to_string(c.ruled));
        (c.ruled == ruling::unmeasured ? others : measured) +=
            drawn(item{"claim-" + c.id, ruled, ruled, c.says, c.evidence, c.flips, c.on, c.source}, ids);
    }
    if (measured.empty() && has_peers(b)) return "";  // such a run was not made for them
    const std::string lead =
        measured.empty()
            ? "<p class=\"question\">This run has no two cells that any of the claims could be put to.</p>\n"
            : fmt::format(
                  "<p class=\"question\">What was said in the discussions that this project came from, put to "
                  "this run: {}.</p>\n{}",
                  fmt::join(counts, ", "), list_of(measured));
    return section("claims", "Claims under test", lead + not_measured(others));
}

std::string bars(const book& b, const shown_at& ids, sheet& page) {
    const bar_list list = bars_of(b);
    if (list.bars.empty()) return "";
    std::string told, others;
    std::vector<std::string> counts;
    for (const grade g : {grade::missed, grade::undecided, grade::reached, grade::stretch, grade::unmeasured}) {
        const auto n = std::count_if(list.bars.begin(), list.bars.end(), [&](const bar& x) { return x.graded == g; });
        if (n > 0) counts.push_back(fmt::format("{} {}", n, to_string(g)));
    }
    for (const bar& x : list.bars) {
        const char* tone = x.graded == grade::missed       ? "fails"
                           : x.graded == grade::undecided  ? "undecided"
                           : x.graded == grade::unmeasured ? "unmeasured"
                                                           : "holds";
        if (!x.evidence.empty())
            (x.graded == grade::unmeasured ? others : told) +=
                drawn(item{"", tone, std::string(to_string(x.graded)), x.figure, x.evidence, {}, x.on}, ids);
    }
    return section("bars", "Bars",
                   fmt::format("<p class=\"question\">What the fastest strategies are held to, beside other people's "
                               "allocators and the same work without one: {}.</p>\n",
                               fmt::join(counts, ", ")) +
                       page.draw(bars_exhibit(list), {.classes = "held"}) +
                       (list.eval.empty() ? "" : "<p class=\"soft\">" + drawn(list.eval) + "</p>\n") +
                       (told.empty() ? "" : list_of(told)) + not_measured(others));
}

/// Links to the chapters by their short names, a line for each kind of strategy.
std::string contents(const book& b, const std::string& first) {
    std::string out = "<nav aria-label=\"Contents\"><dl>\n";
    for (const std::string& kind : kinds(b)) {
        out += fmt::format("<div><dt>{}</dt><dd>", html(kind.empty() ? "workloads" : kind));
        for (const chapter& ch : b.chapters) {
            if (ch.on->kind != kind) continue;
            out += fmt::format("<a href=\"#{}\" title=\"{}\"{}>{}</a> ", id_of(b, ch.on), html(title_of(*ch.on)),
                               of_workload(*ch.on), html(short_name(*ch.on)));
        }
        out += "</dd></div>\n";
    }
    return out + fmt::format(
                     "<div><dt>report</dt><dd>{}{}<a href=\"#method\">How it was "
                     "judged</a> <a href=\"#run\">The run</a></dd></div>\n</dl></nav>\n",
                     first, b.of.maps.empty() ? "" : "<a href=\"#maps\">Activation plans</a> ");
}

std::string verdicts(const book& b, const std::string& first, sheet& page) {
    if (b.chapters.empty()) return "<p>This run holds no cells, so there is nothing to compare.</p>";
    std::string out = "<dl class=\"findings\">\n";
    for (const finding& f : b.leaks) out += drawn(b, f);
    for (const finding& f : b.findings) out += drawn(b, f);
    out += "</dl>\n";
    for (const std::string& kind : kinds(b)) {
        sheet::looks looks{.classes = "standings"};
        for (const chapter& ch : b.chapters) {
            if (ch.on->kind == kind) looks.workloads.push_back(ch.on->name);
        }
        out += page.draw(standings_exhibit(b, kind), looks);
    }
    out +=
        "<p class=\"soft\"><span class=\"faster\">▼ faster</span>, <span class=\"slower\">▲ slower</span>, = "
        "same, ? inconclusive. A ratio of 0.50 is half the baseline's time; full is a setting that the strategy has no "
        "room for.</p>\n";
    return out + contents(b, first);
}

std::string drawn(const chapter& ch, const panel& p, sheet& page) {
    std::string out;
    bool paired = false;  // charts whose tables are folded stand side by side
    for (const exhibit& e : exhibits_of(ch, p)) {
        if (e.folded != paired) out += e.folded ? "<div class=\"pair\">\n" : "</div>\n";
        paired = e.folded;
        out += page.draw(e);
    }
    return out + (paired ? "</div>\n" : "");
}

std::string drawn(const book& b, const chapter& ch, sheet& page) {
    std::string out = fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\"{1}>\n<h2 id=\"{0}-title\">{2}</h2>\n<p "
        "class=\"question\">{3}{4}{5}</p>\n",
        id_of(b, ch.on), of_workload(*ch.on), html(title_of(*ch.on)), "<code>" + html(ch.on->name) + "</code>",
        ch.on->question.empty() ? "" : ": ", html(ch.on->question));
    if (ch.panels.size() > open_panels && !ch.only_series())
        out += page.draw(overview_table(ch), {.classes = "standings"});
    for (std::size_t i = 0; i < ch.panels.size(); ++i) {
        const panel& p = ch.panels[i];
        const std::string title = html(describe(p.parameters));
        if (i >= open_panels) {
            out += fmt::format("<details class=\"panel\"><summary>{}</summary>\n{}</details>\n",
                               title.empty() ? "without parameters" : title, drawn(ch, p, page));
        } else {
            out += (title.empty() ? "" : "<h3>" + title + "</h3>\n") + drawn(ch, p, page);
        }
    }
    std::string without;
    for (const outage& o : ch.refusals) without += "<li>" + drawn(told(ch, o)) + "</li>\n";
    for (const outage& o : ch.failures)
        without += "<li><span class=\"failed\">Failed.</span> " + drawn(told(ch, o)) + "</li>\n";
    if (ch.repeated > 0) without += "<li>" + repetition(ch) + "</li>\n";
    if (!without.empty()) out += "<ul class=\"plainlist\" aria-label=\"Not measured\">\n" + without + "</ul>\n";
    return out + page.draw_folded(cells_table(ch), "Every cell with its interval") + "</section>\n";
}

std::string maps(const run& r, sheet& page) {
    std::string out = page.draw(maps_table(r));
    for (const memory_map& m : r.maps) out += page.draw(map_exhibit(m));
    if (out.empty()) return "";
    return "<section id=\"maps\" aria-labelledby=\"maps-title\">\n<h2 id=\"maps-title\">Activation plans</h2>\n"
           "<p class=\"question\">Where every tensor of one eval lies while it is in use, and how near the plan comes "
           "to "
           "the most bytes that are live at one step, below which no plan can be.</p>\n" +
           out + "</section>\n";
}

std::string notes(const book& b, bool with_charts) {
    std::string lines;
    for (const notice& n : notices(b)) lines += fmt::format("<p><b>{}.</b> {}</p>\n", html(n.lead), html(n.text));
    if (!with_charts) {
        lines +=
            "<p><b>No charts.</b> Vega was not found when this report was written; run <code>npm ci "
            "--ignore-scripts</code> in "
            "reports/web and write it again. The tables hold every figure.</p>\n";
    }
    return (lines.empty() ? "" : "<aside class=\"note\" aria-label=\"Warnings\">\n" + lines + "</aside>\n") +
           "<p class=\"soft unscripted\">Scripts are off, so there are no charts; the tables hold every figure.</p>\n";
}

std::string facts(const run& r) {
    std::vector<std::string> parts;
    if (!r.started.empty()) parts.push_back(fmt::format("<time datetime=\"{0}\">{0}</time>", html(r.started)));
    const auto add_from = [&](const std::vector<std::pair<std::string, std::string>>& environment) {
        for (const auto& [key, value] : environment) {
            if (key == "cpu" || key == "gpu") parts.push_back(html(value));
        }
    };
    add_from(r.environment);
    for (const machine& m : r.machines) add_from(m.environment);
    parts.push_back(plural(r.cells.size(), "cell"));
    std::size_t samples = 0;
    for (const cell& c : r.cells) samples += c.samples.size();
    parts.push_back(plural(samples, "sample"));
    if (r.seconds > 0)
        parts.push_back(r.seconds < 120 ? fmt::format("{:.0f} s", r.seconds)
                                        : fmt::format("{:.0f} min", r.seconds / 60));
    if (!r.plan.shard.empty()) parts.push_back("shard " + html(r.plan.shard));
    return fmt::format("<p class=\"facts\">{}</p>", fmt::join(parts, " · "));
}

std::string how(const book& b, sheet& page) {
    const run& r = b.of;
    std::string out = paragraphs(method(b));
    if (!r.command.empty())
        out += fmt::format("<p>Repeat it with this command (seed {}):</p>\n<pre tabindex=\"0\"><code>{}</code></pre>\n",
                           r.seed, html(r.command));
    const table twins = twins_table(b);
    out += page.draw(design_table(b)) + page.draw(speed_exhibit(r));
    out += page.draw_folded(twins, twins.caption);
    const table order = order_table(r);
    return out + page.draw_folded(order, order.caption);
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
    sheet page(with_charts);
    std::string chapters;
    shown_at ids;
    for (const chapter& ch : b.chapters) {
        const std::size_t before = page.exhibits();
        chapters += drawn(b, ch, page);
        ids[ch.on] = page.exhibits() > before ? fmt::format("exhibit-{}", before + 1) : id_of(b, ch.on);
    }
    chapters += maps(r, page);
    const std::string ruled = claims(b, ids), held = bars(b, ids, page);
    const std::string links = std::string(ruled.empty() ? "" : "<a href=\"#claims\">Claims</a> ") +
                              (held.empty() ? "" : "<a href=\"#bars\">Bars</a> ");

    const std::map<std::string_view, std::string> filled{
        {"when", r.started.empty() ? "" : ", " + html(r.started)},
        {"style", std::string(page_style)},
        {"facts", facts(r)},
        {"notes", notes(b, with_charts)},
        {"first", !ruled.empty()  ? "claims"
                  : !held.empty() ? "bars"
                                  : "verdicts"},
        {"claims", ruled + held},
        {"verdicts", verdicts(b, links, page)},
        {"chapters", chapters},
        {"method", how(b, page)},
        {"run", page.draw(environment_table(r)) + page.draw(machines_table(r)) + page.draw(strategies_table(r))},
        {"scripts", (with_charts ? fmt::format("<script type=\"application/json\" id=\"strategies\">{}</script>\n{}",
                                               strategies_json(r), scripts)
                                 : "") +
                        fmt::format("<script>\n{}</script>", page_script)}};
    std::string text;
    std::string_view rest = page_skeleton;
    for (std::size_t open = 0; (open = rest.find("{{")) != std::string_view::npos;) {
        const std::size_t close = rest.find("}}", open);
        text.append(rest.substr(0, open)).append(filled.at(rest.substr(open + 2, close - open - 2)));
        rest.remove_prefix(close + 2);
    }
    return text.append(rest);
}

}  // namespace alloclab::report
