// alloclab worker: measures one cell in this process and prints what it found; started by alloclab run.
#include <iostream>
#include <memory>

#include "command.hpp"
#include "worker.hpp"

namespace alloclab::bench {
namespace {

int worker(job j, const std::vector<std::string>& where) {
    for (const std::string& each : where) {
        const auto equals = each.find('=');
        if (equals == std::string::npos) return complain(usage_error, each + ": expected name=value");
        j.where[each.substr(0, equals)] = each.substr(equals + 1);
    }
    const outcome o = measure(j);
    std::cout << to_line(o);
    return ok;
}

}  // namespace

command add_worker(CLI::App& app) {
    struct asked {
        job one;
        std::vector<std::string> where;
        bool observe = false;
        std::size_t operations = 0, iterations = 0;
    };
    const auto a = std::make_shared<asked>();
    auto* parser = app.add_subcommand("worker", "Measure one cell in this process")->group("");
    parser->add_option("workload", a->one.workload)->required();
    parser->add_option("strategy", a->one.strategy)->required();
    parser->add_option("parameters", a->where);
    parser->add_option("--min-time", a->one.min_seconds);
    parser->add_flag("--observe", a->observe, "Counters, series, timelines and maps instead of a time");
    parser->add_option("--latency", a->operations, "Time so many single operations instead")
        ->check(CLI::PositiveNumber);
    parser->add_option("--iterations", a->iterations, "Run so many iterations and take no time")
        ->check(CLI::PositiveNumber);
    return {parser, [a] {
                if (a->observe) a->one.task = job::observing;
                if (a->operations != 0) a->one.task = job::latency, a->one.count = a->operations;
                if (a->iterations != 0) a->one.task = job::counting, a->one.count = a->iterations;
                return worker(a->one, a->where);
            }};
}

}  // namespace alloclab::bench
