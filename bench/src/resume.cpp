#include "resume.hpp"

#include <algorithm>
#include <sstream>

namespace alloclab::bench {
namespace {

template <class T>
std::string text_of(const T& value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

template <class T>
void must_equal(const std::string& what, const T& file, const T& asked) {
    if (file != asked)
        throw cannot_resume(what + " differs: \"" + text_of(file) + "\" in the file, \"" + text_of(asked) + "\" now");
}

bool is_twin(const report::run& r, const report::cell& c) {
    return std::any_of(r.strategies.begin(), r.strategies.end(),
                       [&](const report::strategy& s) { return s.name == c.strategy && !s.twin_of.empty(); });
}

}  // namespace

void take_over(report::run& r, report::run before) {
    must_equal("seed", before.seed, r.seed);
    const report::design &file = before.plan, &asked = r.plan;
    must_equal("design.min_seconds (--min-time)", file.min_seconds, asked.min_seconds);
    must_equal("design.least_blocks (--blocks)", file.least_blocks, asked.least_blocks);
    must_equal("design.most_blocks (--blocks)", file.most_blocks, asked.most_blocks);
    must_equal("design.precision (--precision)", file.precision, asked.precision);
    must_equal("design.max_seconds (--max-time)", file.max_seconds, asked.max_seconds);
    must_equal("design.shard (--shard)", file.shard, asked.shard);
    for (const char* name : {"machine", "cpu", "cores", "system", "compiler", "build", "alloclab", "revision",
                             "C library", "malloc served by", "device", "device figures"})
        must_equal(name, report::fact_of(before.environment, name), report::fact_of(r.environment, name));

    const auto names = [](const auto& all) {
        std::string text;
        for (const auto& each : all) text += (text.empty() ? "" : ", ") + each.name;
        return text;
    };
    must_equal("the list of workloads", names(before.workloads), names(r.workloads));
    for (std::size_t i = 0; i < r.workloads.size(); ++i)
        must_equal("the baseline of " + r.workloads[i].name, before.workloads[i].baseline, r.workloads[i].baseline);
    must_equal("the list of strategies", names(before.strategies), names(r.strategies));
    // A run that came to its end has dropped the twins that nothing was timed for.
    if (!before.partial)
        std::erase_if(r.cells, [&](const report::cell& c) {
            return is_twin(r, c) && std::none_of(before.cells.begin(), before.cells.end(),
                                                 [&](const report::cell& b) { return to_string(b) == to_string(c); });
        });
    for (std::size_t i = 0; i < std::min(before.cells.size(), r.cells.size()); ++i)
        must_equal("cell " + std::to_string(i + 1), to_string(before.cells[i]), to_string(r.cells[i]));
    must_equal("the number of cells", before.cells.size(), r.cells.size());

    r.cells = std::move(before.cells);
    r.maps = std::move(before.maps);
    r.started = std::move(before.started);
    r.command = std::move(before.command);
    r.seconds = before.seconds;
    for (std::string& warning : r.warnings)
        if (std::find(before.warnings.begin(), before.warnings.end(), warning) == before.warnings.end())
            before.warnings.push_back(std::move(warning));
    r.warnings = std::move(before.warnings);
}

}  // namespace alloclab::bench
