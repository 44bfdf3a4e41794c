// alloclab compare: the gate: what got worse from one result file to another.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "alloclab/report/gates.hpp"
#include "command.hpp"

namespace alloclab::bench {
namespace {

struct asked {
    std::string base, next, output, on_inconclusive = "pass";
    std::vector<std::string> gates;
    bool lenient = false, json = false, markdown = false;
};

std::string metrics_that_exist(const report::run& base) {
    std::string names;
    for (const std::string& name : report::metrics_of(base)) names += (names.empty() ? "" : ", ") + name;
    return names.empty() ? "BASE has no metric at all" : "metrics of BASE: " + names;
}

int exit_code_of(const report::gate_report& r, const asked& a, const report::run& base) {
    const auto complaint = [&](int code, const std::string& more = "") { return complain(code, summary(r) + more); };
    switch (overall(r)) {
        case report::outcome::failed:
            return complaint(gate_failed);
        case report::outcome::not_comparable:
            return complaint(not_comparable);
        case report::outcome::nothing_matched:
            return complaint(failed, "; " + metrics_that_exist(base));
        case report::outcome::inconclusive:
            return a.on_inconclusive == "fail" ? complaint(inconclusive) : ok;
        case report::outcome::passed:
            break;
    }
    return ok;
}

int compare(const asked& a) {
    const bool colour = ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    try {
        for (const std::string& input : {a.base, a.next}) {
            std::error_code none;
            if (!a.output.empty() && std::filesystem::equivalent(a.output, input, none))
                return complain(usage_error,
                                "-o " + a.output + " would overwrite what is compared; expected another file");
        }
        const report::result_file base = report::read_results(a.base), next = report::read_results(a.next);
        std::vector<report::gate> gates;
        try {
            for (const std::string& text : a.gates) gates.push_back(report::parse_gate(text));
        } catch (const report::bad_gate& e) {
            return complain(usage_error,
                            std::string("--fail-if ") + e.what() + "; " + metrics_that_exist(base.results));
        }
        if (!a.output.empty()) check_writable(a.output);
        const report::gate_report r = report::judge(base, next, gates, a.lenient);
        const auto formatted = [&](bool in_colour) {
            return a.json ? to_json(r) : a.markdown ? to_markdown(r) : to_terminal(r, in_colour);
        };
        if (!a.output.empty()) report::write_file(a.output, formatted(false));
        std::cout << (a.output.empty() ? formatted(colour) : to_terminal(r, colour)) << std::flush;
        return exit_code_of(r, a, base.results);
    } catch (const report::not_comparable& e) {
        return complain(not_comparable, e.what());
    } catch (const std::exception& e) {
        return complain(usage_error, e.what());
    }
}

}  // namespace

command add_compare(CLI::App& app) {
    const auto a = std::make_shared<asked>();
    auto* parser =
        app.add_subcommand("compare", "Hold a new result file against an old one, and fail where a gate says");
    parser->add_option("base", a->base, "BASE: a run.json, or the JSON of Google Benchmark")->required();
    parser->add_option("new", a->next, "NEW: what is held against it, of the same kind")->required();
    parser
        ->add_option("--fail-if", a->gates,
                     "METRIC>NUMBER[%], such as 'time>3%', 'peak_bytes>0', 'instructions>0', 'leaked>0'; repeatable")
        ->allow_extra_args(false);
    parser->add_option("--on-inconclusive", a->on_inconclusive, "What a time that is not certain enough comes to")
        ->check(CLI::IsMember({"pass", "fail"}))
        ->capture_default_str();
    parser->add_flag("--lenient", a->lenient, "Cells may be missing in one of the two");
    auto* json = parser->add_flag("--json", a->json, "All changes as JSON");
    parser->add_flag("--markdown", a->markdown, "For a pull request")->excludes(json);
    parser->add_option("-o,--output", a->output, "File for that, and the table on the terminal");
    return {parser, [a] { return compare(*a); }};
}

}  // namespace alloclab::bench
