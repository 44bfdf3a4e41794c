// alloclab merge: the shards of a sweep, or repeated runs, as one run.json.
#include <iostream>
#include <memory>

#include "alloclab/report/merge.hpp"
#include "alloclab/report/results.hpp"
#include "command.hpp"

namespace alloclab::bench {
namespace {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
    std::error_code absent;
    return a == b || fs::equivalent(a, b, absent);
}

int merge(const std::string& output, const std::vector<std::string>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (same_file(inputs[i], output))
            return complain(usage_error, inputs[i] + " is to be read and written; expected another file to write");
        for (std::size_t j = 0; j < i; ++j)
            if (same_file(inputs[i], inputs[j]))
                return complain(usage_error, inputs[j] + " and " + inputs[i] + " are one file; expected each run once");
    }
    report::run merged;
    try {
        std::vector<std::pair<std::string, report::run>> runs;
        for (const std::string& input : inputs) runs.emplace_back(input, report::read_run(input));
        merged = report::merge(std::move(runs));
        check_writable(output);
        report::write_run(merged, output);
    } catch (const std::exception& e) {
        return complain(usage_error, e.what());
    }
    if (!merged.plan.shard.empty()) complain(ok, "warning: " + merged.plan.unmet.front());
    std::cerr << "runs: " << inputs.size() << ", machines: " << merged.machines.size()
              << ", cells: " << merged.cells.size() << "; " << output << '\n';
    return ok;
}

}  // namespace

command add_merge(CLI::App& app) {
    struct asked {
        std::string output;
        std::vector<std::string> inputs;
    };
    const auto a = std::make_shared<asked>();
    auto* parser = app.add_subcommand("merge", "Make one run.json of the shards of a sweep, or of repeated runs");
    parser->add_option("output", a->output, "File to write")->required();
    parser->add_option("runs", a->inputs, "Files that alloclab run or merge wrote")->required();
    return {parser, [a] { return merge(a->output, a->inputs); }};
}

}  // namespace alloclab::bench
