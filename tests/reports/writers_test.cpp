// Writers: small runs in full as golden text; odd names come out escaped in every format; the page reads without
// scripts.
#include "alloclab/report/writers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "sample_run.hpp"

namespace alloclab::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path no_assets = "no/such/folder";

cell measured(const std::string& strategy, double value, std::size_t blocks = 7) {
    cell c;
    c.workload = "slots", c.strategy = strategy;
    for (std::size_t i = 0; i < blocks; ++i) c.samples.push_back({i, value});
    return c;
}

/// A baseline of 10 ns, a strategy that takes half of it, a control that takes 4 times it, one that ran out of slots.
run small() {
    run r;
    r.command = "alloclab run";
    r.seed = 42;
    r.strategies = {{"heap", "context", "shared", false, 0, "", false},
                    {"pool", "context", "single", true, 64, "nullptr", false},
                    {"scan", "context", "single", true, 64, "nullptr", true},
                    {"tiny", "context", "single", true, 2, "nullptr", false}};
    r.workloads = {{"slots", "context", "One slot", "What does it cost?", "ns/op", "heap", ""}};
    r.cells = {measured("heap", 10), measured("pool", 5), measured("scan", 40), measured("tiny", 0, 0)};
    r.cells.back().refusal = "full at 2 of 2 slots";
    r.cells[1].counters = {{"peak_bytes", 20480}, {"source_calls", 3}};
    return r;
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
    return n;
}

/// Records of RFC 4180 text.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
    std::vector<std::vector<std::string>> records{{""}};
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string& field = records.back().back();
        if (quoted) {
            if (text[i] != '"') field += text[i];
            else if (i + 1 < text.size() && text[i + 1] == '"') field += text[i++];
            else quoted = false;
        } else if (text[i] == '"') {
            EXPECT_TRUE(field.empty()) << "a quote inside a bare field";
            quoted = true;
        } else if (text[i] == ',') {
            records.back().emplace_back();
        } else if (text.compare(i, 2, "\r\n") == 0) {
            records.push_back({""});
            ++i;
        } else {
            EXPECT_NE(text[i], '\n') << "a bare line feed";
            field += text[i];
        }
    }
    EXPECT_FALSE(quoted);
    records.pop_back();
    return records;
}

TEST(csv_test, is_one_row_a_figure_and_one_for_a_refusal) {
    run r = small();
    for (cell& c : r.cells) c.samples.resize(std::min<std::size_t>(c.samples.size(), 1));
    r.cells[0].samples[0] = {.block = 3, .value = 10, .calibration = 0.5, .machine = 1, .turn = 7};
    r.machines = {{"one", {}, {}}, {"two", {}, {}}};
    r.cells[2].error = "killed";
    EXPECT_EQ(to_csv(r),
              "workload,strategy,measure,block,machine,turn,value,calibration,unit,refusal,error\r\n"
              "slots,heap,time,3,two,7,10,0.5,ns/op,,\r\n"
              "slots,pool,time,0,one,,5,,ns/op,,\r\n"
              "slots,pool,counter.peak_bytes,,,,20480,,B,,\r\n"
              "slots,pool,counter.source_calls,,,,3,,,,\r\n"
              "slots,scan,time,0,one,,40,,ns/op,,killed\r\n"
              "slots,tiny,,,,,,,ns/op,full at 2 of 2 slots,\r\n");
}

TEST(csv_test, has_the_quantiles_of_single_operations) {
    run r = small();
    r.cells.resize(1);
    r.cells[0].samples.clear();
    r.cells[0].latency = latency_curve{20, 1000, {{25, 0.5}, {30, 0.99}, {400, 1}}};
    EXPECT_THAT(to_csv(r),
                AllOf(HasSubstr("latency.floor,,,,20,,ns,,\r\n"), HasSubstr("latency.p50,,,,25,,ns,,\r\n"),
                      HasSubstr("latency.p99.9,,,,400,,ns,,\r\n"), HasSubstr("latency.count,,,,1000,,,,\r\n")));
}

TEST(csv_test, any_name_and_number_survives_a_standard_reader) {
    run r;
    r.workloads.push_back({"Pool<int, 4>", "", "", "", "µs \"wall\"", "", ""});
    cell& c = r.cells.emplace_back();
    c.workload = "Pool<int, 4>", c.strategy = "say \"x\"\r\na newline b";
    c.parameters = {{"block", ","}, {"live", "1"}, {"=1+1", "@x"}};
    c.samples = {{3, 0.1}, {4, NAN}};
    const auto records = parse_csv(to_csv(r));
    ASSERT_EQ(records.size(), 3u);
    EXPECT_THAT(records[0],
                ::testing::ElementsAre("workload", "strategy", "=1+1", "parameter.block", "live", "measure", "block",
                                       "machine", "turn", "value", "calibration", "unit", "refusal", "error"));
    EXPECT_THAT(records[1], ::testing::ElementsAre("Pool<int, 4>", "say \"x\"\r\na newline b", "@x", ",", "1", "time",
                                                   "3", "", "", "0.1", "", "µs \"wall\"", "", ""));
    EXPECT_EQ(records[2][9], "");
}

TEST(csv_test, holds_every_sample_of_a_run) {
    const run r = made_run();
    std::size_t samples = 0;
    for (const cell& c : r.cells) samples += c.samples.size();
    const auto records = parse_csv(to_csv(r));
    const auto& names = records.front();
    const auto measure = std::find(names.begin(), names.end(), "measure") - names.begin();
    std::size_t times = 0;
    for (const auto& record : records) {
        EXPECT_EQ(record.size(), names.size());
        times += record[static_cast<std::size_t>(measure)] == "time";
    }
    EXPECT_EQ(times, samples);
}

TEST(terminal_test, shows_findings_and_times) {
    EXPECT_EQ(to_terminal(small(), false),
              R"(One slot
  Fastest: pool takes 50 % less time than heap (ratio 0.500, interval 0.500 to 0.500).
  Controls, against the baseline: scan takes 4.00 times as long (slower).
  Full at 2 of 2 slots: tiny.

  Times
  strategy        median (ns/op)  ratio to heap        interval  pairs  verdict
  heap                      10.0           1.00               –      –  baseline
  pool                      5.00          0.500  0.500 to 0.500      7  ▼ faster
  scan (control)            40.0           4.00    4.00 to 4.00      7  ▲ slower
  tiny                         –              –               –      –  full

▼ faster, ▲ slower, = same, ? inconclusive, full: no room; ratios to the baseline, below 1 is faster
)");
}

TEST(terminal_test, colours_only_when_asked_and_never_passes_control_characters_on) {
    run r = small();
    r.cells[1].strategy = "evil\x1b[2Jname\n";
    const std::string plain = to_terminal(r, false);
    EXPECT_THAT(plain, AllOf(Not(HasSubstr("\x1b")), HasSubstr("evil␛[2Jname␊")));
    EXPECT_THAT(to_terminal(r, true), AllOf(HasSubstr("\x1b[32m"), Not(HasSubstr("\x1b[2J"))));
}

TEST(terminal_test, columns_stay_aligned_with_wide_characters) {
    run r = small();
    r.cells[1].strategy = "λ🧠";
    const std::string text = to_terminal(r, false);
    EXPECT_THAT(text, HasSubstr("\n  heap                      10.0"));
    EXPECT_THAT(text, HasSubstr("\n  λ🧠                       5.00"));
}

TEST(markdown_test, shows_verdicts_first_and_folds_the_rest) {
    const std::string text = to_markdown(small());
    EXPECT_THAT(text, ::testing::StartsWith(R"(## alloclab: memory strategies side by side

- **One slot:** Fastest: `pool` takes **50 % less time than** `heap` (ratio 0.500, interval 0.500 to 0.500). Controls, against the baseline: `scan` takes 4.00 times as long (slower). `tiny` is **full**; the other 3 never refuse.

Verdicts against the baseline, with the ratio of the times:

| workload | baseline | A/A | ▼ faster | = same | ▲ slower | ? mixed or open | not everywhere | leaks |
|:--|:--|:--|:--|:--|:--|:--|:--|:--|
| `slots` | `heap` | – | `pool` 0.500 | – | `scan` (control) 4.00 | – | `tiny` full | – |

▼ faster, ▲ slower, = same, ? inconclusive, full: no room; a ratio below 1 is faster

<details><summary>Every strategy by workload</summary>

Context strategies: ratio to the baseline, geometric mean over the settings:

| strategy | slots (1 setting) |
|:--|--:|
| `heap` | 1.00 (baseline) |
| `pool` | 0.500 ▼ |
| `scan` (control) | 4.00 ▲ |
| `tiny` | full |

</details>

<details><summary>One slot (slots)</summary>

What does it cost?

Times:

| strategy | median (ns/op) | ratio to heap | interval | pairs | verdict |
|:--|--:|--:|--:|--:|:--|
| `heap` | 10.0 | 1.00 | – | – | baseline |
| `pool` | 5.00 | 0.500 | 0.500 to 0.500 | 7 | ▼ faster |
| `scan` (control) | 40.0 | 4.00 | 4.00 to 4.00 | 7 | ▲ slower |
| `tiny` | – | – | – | – | full |

Counters:

| strategy | peak (KiB) | source calls |
|:--|--:|--:|
| `pool` | 20.0 | 3 |
| `tiny` | full | – |

- Full at 2 of 2 slots: `tiny`.

</details>
)"));
    EXPECT_THAT(text, HasSubstr("Repeat it with `alloclab run` (seed 42)."));
}

TEST(markdown_test, odd_names_break_no_table_and_are_no_markup) {
    run r = small();
    for (strategy& s : r.strategies) s.name = s.name == "pool" ? odd_name : s.name;
    r.cells[1].strategy = odd_name;
    r.warnings = {"<img src=x> @everyone #1 [a](b) *c*"};
    r.cells[3].refusal = "a | b";
    const std::string text = to_markdown(r);
    EXPECT_THAT(text,
                HasSubstr("| <code>pool&#60;int&#44;&#32;4&#62;&#32;&#34;λ&#34;␊&#60;&#47;script&#62;&#60;b&#62;&#124;"
                          "&#96;🧠&#96;</code> |"));
    EXPECT_THAT(text, HasSubstr("&lt;img src=x&gt; @<!-- -->everyone #<!-- -->1 \\[a\\](b) \\*c\\*"));
    EXPECT_THAT(text, HasSubstr("A \\| b"));
    std::istringstream lines(text);
    std::size_t columns = 0;
    for (std::string line; std::getline(lines, line);) {
        const bool row = line.size() > 1 && line.front() == '|';
        const std::size_t bars = count(line, "|") - count(line, "\\|");
        if (row && columns != 0) {
            EXPECT_EQ(bars, columns) << line;
        }
        columns = row ? bars : 0;
    }
}

TEST(markdown_test, of_a_large_run_leaves_out_detail_and_says_so_to_fit_a_comment) {
    run r = small();
    const auto kept = r.cells;
    std::size_t whole = 0, without_counters = 0, without_times = 0, cut_off = 0;
    for (int workloads = 20; workloads <= 340; workloads += 10) {
        while (r.workloads.size() < static_cast<std::size_t>(workloads)) {
            r.workloads.push_back(r.workloads[0]);
            r.workloads.back().name += std::to_string(r.workloads.size());
            for (cell c : kept) {
                c.workload = r.workloads.back().name;
                r.cells.push_back(std::move(c));
            }
        }
        const std::string text = to_markdown(r);
        EXPECT_LT(text.size(), 65536u);
        EXPECT_EQ(count(text, "<details>"), count(text, "</details>"));
        if (count(text, "Counters:") > 0) {
            ++whole;
            EXPECT_EQ(count(text, "eft out here"), 0u);
            continue;
        }
        EXPECT_GE(count(text, "eft out here"), 1u) << workloads;
        without_counters += count(text, "Times:") > 0;
        without_times += count(text, "Times:") == 0;
        cut_off += count(text, "The rest is left out here") > 0;
    }
    for (const std::size_t n : {whole, without_counters, without_times, cut_off}) EXPECT_GT(n, 0u);
}

TEST(markdown_test, a_leak_is_flagged_before_all_else) {
    const std::string text = to_markdown(made_run());
    EXPECT_THAT(
        text, HasSubstr(":red_circle: **Live extras over 1000 evals:** `leaky` (control) leaks: live extras **grow by "
                        "200 per eval**."));
    EXPECT_LT(text.find(":red_circle:"), text.find("Fastest:"));
}

/// Tags that open and close, by a stack; names of the elements seen, with their attributes' text.
std::multiset<std::string> balanced(const std::string& page) {
    static const std::set<std::string> alone{"meta", "link", "!doctype", "wbr"};
    std::multiset<std::string> seen;
    std::vector<std::string> open;
    for (std::size_t at = 0; (at = page.find('<', at)) != std::string::npos;) {
        const bool closing = page[at + 1] == '/';
        const std::size_t name = at + 1 + closing;
        const std::string tag = page.substr(name, page.find_first_of(" >\n", name) - name);
        at = page.find('>', at);
        if (closing) {
            EXPECT_FALSE(open.empty() || open.back() != tag) << "</" << tag << ">";
            if (open.empty() || open.back() != tag) return seen;
            open.pop_back();
        } else if (!alone.contains(tag)) {
            seen.insert(tag);
            open.push_back(tag);
            if (tag == "script" || tag == "style") at = page.find("</" + tag, at);
        }
    }
    EXPECT_TRUE(open.empty());
    return seen;
}

TEST(html_test, is_a_well_formed_offline_page_that_says_why_it_has_no_charts) {
    const std::string page = std::regex_replace(
        to_html(made_run(), no_assets), std::regex("https://vega.github.io/schema/[a-z0-9/.-]*"), "");  // a name
    const auto tags = balanced(page);
    EXPECT_EQ(tags.count("script"), 1u);  // the filter
    EXPECT_EQ(tags.count("h1"), 1u);
    EXPECT_EQ(tags.count("main"), 1u);
    EXPECT_EQ(tags.count("table"), tags.count("caption"));
    EXPECT_EQ(count(page, "No charts."), 1u);
    EXPECT_THAT(page, HasSubstr("<meta charset=\"utf-8\">"));
    EXPECT_THAT(page,
                HasSubstr("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"));
    EXPECT_THAT(page, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr(" src=")),
                            Not(HasSubstr("url("))));
    EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(html_test, every_ratio_and_median_stands_in_a_table) {
    run r = small();
    r.cells[1] = measured("pool", 3.14159);
    const std::string page = to_html(r, no_assets);
    for (const char* text : {">3.14<", ">0.314<", ">0.314 to 0.314<", ">full at 2 of 2 slots<",
                             "<td class=\"wide slower\"><span aria-hidden=\"true\">▲</span> slower</td>"})
        EXPECT_THAT(page, HasSubstr(text));
}

TEST(html_test, odd_names_are_escaped_wherever_they_stand) {
    run r = small();
    const std::string evil = "</script><img src=x onerror=alert(1)>\"'&\xFF";
    r.command = r.started = r.workloads[0].title = r.workloads[0].question = r.workloads[0].unit = r.cells[3].refusal =
        r.cells[2].error = evil;
    r.warnings = {evil};
    r.environment = {{evil, evil}, {"cpu", evil}};
    for (strategy& s : r.strategies) s.when_full = evil;
    r.workloads[0].baseline = r.cells[0].strategy = r.strategies[0].name = evil;
    for (cell& c : r.cells) c.parameters[evil] = c.parameters["live"] = evil;
    r.cells[1].series[evil] = {1, 2, 3, 4, 5};
    r.cells[1].parts[evil] = 1;
    const std::string page = to_html(r, no_assets);
    balanced(page);
    EXPECT_THAT(page, AllOf(Not(HasSubstr("<img")), Not(HasSubstr("\xFF"))));
    EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\xEF\xBF\xBD"));
}

TEST(html_test, a_leak_is_flagged_in_the_verdicts) {
    const std::string page = to_html(made_run(), no_assets);
    const std::size_t leak = page.find("class=\"leak\"");
    ASSERT_NE(leak, std::string::npos);
    EXPECT_THAT(page.substr(leak, 400), AllOf(HasSubstr("<code>leaky</code>"), HasSubstr("grow by 200 per eval")));
    EXPECT_EQ(count(page, "class=\"leak\""), 1u);
}

TEST(html_test, a_control_is_marked_and_never_the_fastest) {
    run r = small();
    r.cells[2] = measured("scan", 1);
    const std::string page = to_html(r, no_assets);
    EXPECT_THAT(page, HasSubstr("<code>scan</code><span class=\"control\">control</span>"));
    EXPECT_THAT(page, HasSubstr("Fastest: <code>pool</code>"));
}

TEST(html_test, a_leaking_strategy_is_never_the_fastest) {
    run r = small();
    for (int eval = 0; eval < 100; ++eval) r.cells[1].series["live_extras"].push_back(eval);
    EXPECT_THAT(to_terminal(r, false),
                AllOf(Not(HasSubstr("Fastest: pool")), HasSubstr("pool leaks: live extras grow by 1 per eval")));
}

TEST(html_test, with_assets_inlines_scripts_that_cannot_end_early) {
    const fs::path assets = fs::path(::testing::TempDir()) / "alloclab_assets";
    for (const char* package : {"vega", "vega-lite", "vega-embed"}) {
        fs::create_directories(assets / package / "build");
        write_file(assets / package / "build" / (std::string(package) + ".min.js"), "const s='</script>';");
        write_file(assets / package / "LICENSE", "Licence text\n");
    }
    const std::string page = to_html(made_run(), assets);
    fs::remove_all(assets);
    const auto tags = balanced(page);
    EXPECT_EQ(tags.count("figure"), tags.count("figcaption"));
    EXPECT_EQ(tags.count("script"), tags.count("figure") + 5);
    EXPECT_EQ(count(page, "const s='<\\/script>';"), 3u);
    EXPECT_EQ(count(page, "Licence text"), 3u);
    EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>"));
    EXPECT_THAT(page, Not(HasSubstr("No charts.")));
}

TEST(writers_test, an_empty_a_partial_and_a_baseless_run_are_written_by_all) {
    run partial = small();
    partial.partial = true;
    run baseless = small();
    baseless.cells.erase(baseless.cells.begin());
    run unmeasured = small();
    for (cell& c : unmeasured.cells) c.samples.clear(), c.error = "no such device";
    for (const run& r : {run{}, partial, baseless, unmeasured}) {
        balanced(to_html(r, no_assets));
        for (const std::string& text : {to_html(r, no_assets), to_markdown(r), to_terminal(r, true), to_csv(r)}) {
            EXPECT_FALSE(text.empty());
            EXPECT_THAT(text, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf "))));
        }
    }
    EXPECT_THAT(to_html(partial, no_assets), HasSubstr("Partial run."));
    EXPECT_THAT(to_markdown(partial), HasSubstr("Partial run"));
    EXPECT_THAT(to_terminal(partial, false), HasSubstr("Partial run"));
    EXPECT_THAT(to_terminal(baseless, false), HasSubstr("Nothing could be compared with the baseline heap."));
    EXPECT_THAT(to_html(baseless, no_assets), HasSubstr("the baseline heap was not run here"));
}

TEST(writers_test, all_show_the_same_verdicts) {
    const run r = made_run();
    const std::string line = "takes 86 % less time than heap over 12 settings (all faster).";
    const auto bare = [](const std::string& text) { return std::regex_replace(text, std::regex("<[^>]*>|[`*]"), ""); };
    EXPECT_THAT(to_terminal(r, false), HasSubstr(line));
    EXPECT_THAT(bare(to_markdown(r)), HasSubstr(line));
    EXPECT_THAT(bare(to_html(r, no_assets)), HasSubstr(line));
}

}  // namespace
}  // namespace alloclab::report
