#include <fmt/format.h>

#include <algorithm>

#include "alloclab/report/writers.hpp"
#include "drawn.hpp"
#include "tables.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

class painter {
public:
    explicit painter(bool colour) : colour_{colour} {}

    [[nodiscard]] std::string operator()(std::string_view code, const std::string& text) const {
        return colour_ && !code.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
    }
    [[nodiscard]] std::string bold(const std::string& text) const { return (*this)("1", text); }
    [[nodiscard]] std::string tone(verdict v, const std::string& text) const {
        return (*this)(v == verdict::faster         ? "32"
                       : v == verdict::slower       ? "31"
                       : v == verdict::failed       ? "1;31"
                       : v == verdict::inconclusive ? "33"
                                                    : "",
                       text);
    }

private:
    bool colour_;
};

std::string cell_text(const entry& e) {
    return visible(e.text) + (role(e).empty() ? "" : fmt::format(" ({})", role(e)));
}

std::string drawn(const table& t, const painter& paint) {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < t.columns.size(); ++i) {
        widths.push_back(width(visible(heading(t.columns[i]))));
        for (const auto& row : t.rows) widths[i] = std::max(widths[i], width(cell_text(row[i])));
    }
    const auto line = [&](auto text, auto colour) {
        std::string out = " ";
        for (std::size_t i = 0; i < widths.size(); ++i) {
            const std::string words = text(i);
            const std::string padding(widths[i] - width(words), ' ');
            const bool right = t.columns[i].as == column::kind::figure;
            out += ' ' + (right ? padding : "") + colour(i, words) + (right || i + 1 == widths.size() ? "" : padding) +
                   ' ';
        }
        out.erase(out.find_last_not_of(' ') + 1);
        return out + '\n';
    };
    std::string out = "  " + visible(t.caption) + '\n';
    out += line([&](std::size_t i) { return visible(heading(t.columns[i])); },
                [&](std::size_t, const std::string& words) { return paint.bold(words); });
    for (const auto& row : t.rows) {
        out += line([&](std::size_t i) { return cell_text(row[i]); },
                    [&](std::size_t i, const std::string& words) {
                        return row[i].tone ? paint.tone(*row[i].tone, words) : words;
                    });
    }
    return out + '\n';
}

}  // namespace

std::string terminal_table(const table& t, bool colour) { return drawn(t, painter(colour)); }

std::string to_terminal(const run& r, bool colour) {
    const book b(r);
    const painter paint(colour);
    std::string out;
    for (const notice& n : notices(b))
        out += paint.tone(verdict::inconclusive, visible(fmt::format("{}: {}", n.lead, n.text))) + '\n';
    if (b.chapters.empty()) return out + "this run holds no cells\n";

    for (std::size_t i = 0; i < b.chapters.size(); ++i) {
        const chapter& ch = b.chapters[i];
        out += paint.bold(visible(title_of(*ch.on))) + '\n';
        for (const sentence& s : b.findings[i].sentences) out += "  " + visible(plain(s)) + '\n';
        for (const outage& o : ch.refusals) out += "  " + visible(plain(told(ch, o))) + '\n';
        for (const finding& leak : b.leaks) {
            if (leak.on == ch.on)
                out += "  " + paint.tone(verdict::failed, visible(plain(leak.sentences.front()))) + '\n';
        }
        out += '\n';
        for (const panel& p : ch.panels) {
            if (!p.parameters.empty()) out += "  " + paint.bold(visible(describe(p.parameters))) + '\n';
            const auto tables = tables_of(ch, p);
            if (!tables.empty()) out += drawn(tables.front(), paint);
        }
        std::string without;
        for (const outage& o : ch.failures)
            without += "  " + paint.tone(verdict::failed, "failed: ") + visible(plain(told(ch, o))) + '\n';
        if (ch.repeated > 0) without += "  " + repetition(ch) + '\n';
        out += without + (without.empty() ? "" : "\n");
    }
    const auto claims = claims_of(b);
    if (const table ruled = claims_table(claims); !ruled.rows.empty()) {
        out += drawn(ruled, paint);
        if (const auto ids = unmeasured(claims); !ids.empty())
            out += fmt::format("  Not measured by this run: {}.\n\n", visible(listed(ids)));
    }
    if (const bar_list list = bars_of(b); !list.bars.empty()) {
        out += drawn(bars_table(list), paint);
        for (const bar& x : list.bars) {
            if (x.evidence.empty()) continue;
            std::string told;
            for (const sentence& s : x.evidence) told += ' ' + plain(s);
            out += visible(fmt::format("  {}, {}:{}", capital(x.figure), to_string(x.graded), told)) + '\n';
        }
        if (!list.eval.empty()) out += "  " + visible(plain(list.eval)) + '\n';
        out += '\n';
    }
    if (b.null.rows > 0) out += visible(in_words(b.null)) + '\n';
    return out +
           "▼ faster, ▲ slower, = same, ? inconclusive, full: no room; ratios to the baseline, below 1 is faster\n";
}

}  // namespace alloclab::report
