// alloclab worker: measures one cell in this process and prints what it found; started by alloclab run.
#include <iostream>
#include <memory>

#include "callgrind.hpp"
#include "command.hpp"
#include "worker.hpp"

namespace alloclab::bench {
namespace {

outcome with_instructions(job j) {
    j.task = job::counting;
    j.count = 1;
    outcome o = measure(j);
    if (!o.error.empty() || !o.refusal.empty() || !o.has_time) return o;
    constexpr double longest = 600;  // seconds
    const instruction_count counted = count_instructions(j, longest, [] { return false; });
    o.error = counted.error;
    o.seen.counters = {{"instructions", counted.per_operation},
                       {"own_instructions", counted.own},
                       {"library_calls", counted.library_calls}};
    return o;
}

int worker(job j, const std::vector<std::string>& where, bool instructions) {
    for (const std::string& each : where) {
        const auto equals = each.find('=');
        if (equals == std::string::npos) return complain(usage_error, each + ": expected name=value");
        j.where[each.substr(0, equals)] = each.substr(equals + 1);
    }
    const outcome o = instructions ? with_instructions(j) : measure(j);
    std::cout << to_line(o);
    return ok;
}

}  // namespace

command add_worker(CLI::App& app) {
    struct asked {
        job one;
        std::vector<std::string> where;
        bool observe = false, instructions = false;
        std::size_t operations = 0, iterations = 0;
    };
    const auto a = std::make_shared<asked>();
    auto* parser = app.add_subcommand("worker", "Measure one cell in this process")->group("");
    parser->add_option("workload", a->one.workload)->required();
    parser->add_option("strategy", a->one.strategy)->required();
    parser->add_option("parameters", a->where);
    parser->add_option("--min-time", a->one.min_seconds);
    parser->add_option("--device", a->one.device);
    parser->add_flag("--observe", a->observe, "Counters, series, timelines and maps instead of a time");
    parser->add_option("--latency", a->operations, "Time so many single operations instead")
        ->check(CLI::PositiveNumber);
    parser->add_option("--iterations", a->iterations, "Run so many iterations and take no time")
        ->check(CLI::PositiveNumber);
    parser->add_flag("--instructions", a->instructions, "Count them, under valgrind, and take no time");
    return {parser, [a] {
                if (a->observe) a->one.task = job::observing;
                if (a->operations != 0) a->one.task = job::latency, a->one.count = a->operations;
                if (a->iterations != 0) a->one.task = job::counting, a->one.count = a->iterations;
                return worker(a->one, a->where, a->instructions);
            }};
}

}  // namespace alloclab::bench
