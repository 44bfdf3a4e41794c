// alloclab run: reads what to measure, measures it and writes run.json.
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <tuple>

#include "alloclab/report/results.hpp"
#include "child.hpp"
#include "command.hpp"
#include "device_profile.hpp"
#include "environment.hpp"
#include "experiment.hpp"
#include "resume.hpp"

namespace alloclab::bench {
namespace {

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch a lock-free atomic");

struct run_options {
    plan what;
    std::vector<std::string> live, threads, models, others;
    std::string output = "run.json", preset;
    std::string blocks, precision, max_time, shard;
    std::size_t min_milliseconds = 10;
    bool no_twin = false;
    bool resume = false;
};

/// What the option was to be, beside what it is.
class bad_option : public std::invalid_argument {
public:
    bad_option(const std::string& option, const std::string& value, const char* expected)
        : std::invalid_argument(option + " \"" + value + "\": expected " + expected) {}
};

/// Reads a number off the front of `text`; nullopt when none stands there.
template <class T>
std::optional<T> number_off(std::string_view& text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

/// "9" or "7..15" or "2/8".
std::pair<std::size_t, std::size_t> two_numbers(const std::string& option, const std::string& value,
                                                std::string_view between, const char* expected) {
    std::string_view text = value;
    const auto first = number_off<std::size_t>(text);
    auto second = first;
    if (text.starts_with(between)) {
        text.remove_prefix(between.size());
        second = number_off<std::size_t>(text);
    }
    if (!first || !second || !text.empty() || *first < 1 || *first > *second) throw bad_option(option, value, expected);
    return {*first, *second};
}

double percentage(const std::string& option, const std::string& value) {
    std::string_view text = value;
    const auto percent = number_off<double>(text);
    if (!percent || (text != "%" && !text.empty()) || !(*percent >= 0.01 && *percent <= 1000))
        throw bad_option(option, value, "a percentage such as 3%, from 0.01% to 1000%");
    return *percent / 100;
}

double duration(const std::string& option, const std::string& value) {
    std::string_view text = value;
    const auto amount = number_off<double>(text);
    const double unit = text.empty() || text == "s" ? 1 : text == "m" ? 60 : text == "h" ? 3600 : 0;
    if (!amount || unit == 0 || !(*amount > 0 && *amount * unit <= 1e7))
        throw bad_option(option, value, "a time such as 90s, 5m or 1h; a number alone counts seconds");
    return *amount * unit;
}

/// Fills the plan's design. Throws bad_option.
void read_design(const run_options& o, plan& p) {
    report::design& d = p.design;
    d.min_seconds = static_cast<double>(o.min_milliseconds) / 1000;
    // A preset is for ratios between any two cells, of which those to the baseline alone end at a verdict.
    d.least_blocks = p.quick ? 6 : p.full || p.of != nullptr ? 15 : 7;
    d.most_blocks = p.quick ? 6 : p.full ? 31 : 15;
    if (!o.blocks.empty()) {
        const char* expected = "a number such as 9, or the least and the most such as 7..15, from 1 to 1000";
        std::tie(d.least_blocks, d.most_blocks) = two_numbers("--blocks", o.blocks, "..", expected);
        if (d.most_blocks > 1000) throw bad_option("--blocks", o.blocks, expected);
    }
    d.precision = o.precision.empty() ? 0.03 : percentage("--precision", o.precision);
    d.max_seconds = !o.max_time.empty() ? duration("--max-time", o.max_time) : p.full ? 0 : 300;
    p.within_time = !o.max_time.empty();
    p.twin = !o.no_twin;
    if (o.shard.empty()) return;
    std::tie(p.shard, p.shards) = two_numbers("--shard", o.shard, "/", "i/n with i from 1 to n, such as 2/8");
    if (o.shard.find('/') == std::string::npos) throw bad_option("--shard", o.shard, "i/n, such as 2/8");
    d.shard = std::to_string(p.shard) + "/" + std::to_string(p.shards);
}

std::string quoted(const std::string& word) {
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,=+:") ==
            std::string::npos &&
        !word.empty())
        return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

std::string now_in_utc() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text.data();
}

int run(run_options options, const std::string& command) {
    plan& p = options.what;
    const auto put = [&p](const char* name, const std::vector<std::string>& values) {
        if (!values.empty()) p.values[name] = values;
    };
    put("live", options.live);
    put("threads", options.threads);
    put("model", options.models);
    for (const std::string& other : options.others) {
        const auto equals = other.find('=');
        if (equals == std::string::npos) return complain(usage_error, "-p " + other + ": expected name=value,value");
        if (p.values.contains(other.substr(0, equals)))
            return complain(usage_error, "-p " + other + ": this parameter was given already");
        std::vector<std::string> values;
        std::stringstream list(other.substr(equals + 1));
        for (std::string value; std::getline(list, value, ',');) values.push_back(value);
        p.values[other.substr(0, equals)] = values;
    }

    std::vector<group> groups;
    device_profile on;
    try {
        on = find_device(p.device);
        if (!options.preset.empty()) p.of = &find_preset(options.preset);
        read_design(options, p);
        p.without_counted = on_path("valgrind").empty();
        groups = select(p);
        check_writable(options.output);
        if (p.instructions && p.without_counted)
            return complain(usage_error, "--instructions: expected valgrind on PATH, found none");
    } catch (const std::exception& e) {
        return complain(usage_error, e.what());
    }
    if (groups.empty()) return complain(failed, "no workload has a strategy that matches; see alloclab list");
    if (p.of != nullptr && p.without_counted)
        std::cerr << "note: no valgrind on PATH, so no instructions are counted for " << p.of->counted.workload << '\n';

    report::run r = prepared(p, groups);
    r.started = now_in_utc();
    r.command = command;
    const environment around = look_around();
    r.environment = around.facts;
    for (auto& fact : on.facts()) r.environment.push_back(std::move(fact));
    r.warnings = around.warnings;
    if (options.resume && std::filesystem::exists(options.output)) try {
            report::run before = report::read_run(options.output);
            const bool complete = !before.partial;
            const auto broken = std::count_if(before.cells.begin(), before.cells.end(),
                                              [](const report::cell& c) { return !c.error.empty(); });
            take_over(r, std::move(before));
            if (complete && broken > 0)
                return complain(failed, options.output + " is complete, but " + std::to_string(broken) +
                                            " of its cells failed; expected a new file to measure them again");
            if (complete && p.instructions && std::none_of(r.cells.begin(), r.cells.end(), [](const report::cell& c) {
                    return c.counters.contains("instructions");
                }))
                return complain(usage_error,
                                options.output + " is complete and has no instructions; expected a new file");
            if (complete) {
                std::cerr << options.output << " is complete: nothing to resume\n";
                return ok;
            }
        } catch (const cannot_resume& e) {
            return complain(usage_error, "cannot resume " + options.output + ": " + e.what());
        } catch (const report::bad_results& e) {
            return complain(usage_error, e.what());
        }
    for (const std::string& warning : r.warnings) std::cerr << "warning: " << warning << '\n';

    struct sigaction on_interrupt {};
    on_interrupt.sa_handler = [](int) { interrupt_seen = true; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {};
        ::sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN)
            ::sigaction(signal, &on_interrupt, nullptr);  // nohup and its like stay in force
    }
    ::signal(SIGPIPE, SIG_IGN);  // who reads the progress may leave before the end
    const bool is_file = !report::open_descriptor(options.output) &&
                         (!std::filesystem::exists(options.output) || std::filesystem::is_regular_file(options.output));
    constexpr double longest = 60, longest_counting = 600;  // seconds; valgrind makes all some fifty times as slow
    bool (*const interrupted)() = [] { return interrupt_seen.load(); };
    carry_out(p, groups, r,
              {.measure = [=](const job& j) { return measure_apart(j, longest, interrupted); },
               .count_instructions = [=](const job& j) { return count_instructions(j, longest_counting, interrupted); },
               .interrupted = interrupted},
              [&] {
                  if (is_file) report::write_run(r, options.output);
              });

    std::size_t measured = 0, broken = 0;
    for (const report::cell& c : r.cells) {
        measured += has_figures(c) ? 1 : 0;
        // A refusal is an answer; a cell that could not be measured is none.
        if (!c.error.empty()) {
            ++broken;
            std::cerr << "failed: " << c.workload << ' ' << c.strategy << ": " << c.error << '\n';
        }
    }
    for (const std::string& open : r.plan.unmet) std::cerr << "open: " << open << '\n';
    if (measured == 0 && std::filesystem::exists(options.output))
        return complain(failed, std::string(r.partial ? "interrupted before anything was measured; "
                                                      : "not one cell could be measured; ") +
                                    options.output + " is as it was");
    report::write_run(r, options.output);
    std::cerr << measured << " of " << r.cells.size() << " cells measured in " << static_cast<int>(r.seconds) << " s, "
              << options.output << '\n';
    if (r.partial)
        return complain(failed, "interrupted: " + options.output + " is marked partial; --resume goes on with it");
    if (measured == 0) return complain(failed, "not one cell could be measured");
    if (broken != 0) return complain(failed, std::to_string(broken) + " cells failed");
    return ok;
}

}  // namespace

command add_run(CLI::App& app, int argc, char** argv) {
    const auto options = std::make_shared<run_options>();
    auto* parser = app.add_subcommand("run", "Measure and write run.json");
    parser
        ->add_option("-w,--workload", options->what.workloads,
                     "Names or patterns such as 'context/*'; all but peers/* by default")
        ->delimiter(',');
    parser->add_option("-s,--strategy", options->what.strategies, "Names or patterns; the baseline is added")
        ->delimiter(',');
    parser
        ->add_option("--preset", options->preset,
                     "A selection with a name: peers, other people's allocators beside ours")
        ->take_last();
    parser->add_option("--live", options->live, "Live counts instead of the workloads' own")->delimiter(',');
    parser->add_option("--threads", options->threads, "Thread counts, likewise")->delimiter(',');
    parser->add_option("--model", options->models, "Models, likewise; see alloclab list")->delimiter(',');
    parser->add_option("-p,--parameter", options->others, "name=value,value for any other parameter")
        ->allow_extra_args(false);
    parser->add_option("--baseline", options->what.baselines, "The strategy that ratios are formed to, where it is one")
        ->delimiter(',');
    parser
        ->add_option("--device", options->what.device,
                     "What evals offload to: sim:NAME, see alloclab list, or sim:FILE with the calibration of a GPU")
        ->take_last()
        ->capture_default_str();
    parser
        ->add_option("--blocks", options->blocks,
                     "Measurements of each cell: 9, or 7..15 for the least and the most; 6 or more give verdicts")
        ->take_last();
    parser
        ->add_option("--precision", options->precision,
                     "A cell whose ratio is known to this is measured no more, once the least is done; 3% by default")
        ->take_last();
    parser
        ->add_option("--max-time", options->max_time,
                     "90s, 5m or 1h: no block but the first begins after it; 5m by default, which "
                     "the least may exceed")
        ->take_last();
    auto* min_time =
        parser->add_option("--min-time", options->min_milliseconds, "Milliseconds that each measurement takes, roughly")
            ->check(CLI::Range(1, 60000))
            ->take_last();
    parser->add_option("--seed", options->what.seed, "Of the order of cells")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53));
    auto* quick = parser->add_flag("--quick", options->what.quick, "Fewer parameter values, shorter measurements");
    parser->add_flag("--full", options->what.full, "More parameter values, 15..31 blocks, no limit of time")
        ->excludes(quick);
    parser->add_flag("--no-twin", options->no_twin, "Leave out the A/A rows, the baseline measured once more");
    parser->add_flag("--instructions", options->what.instructions, "Count instructions too, under valgrind");
    parser->add_option("--shard", options->shard, "i/n: measure the i-th of n parts alone; see alloclab merge")
        ->take_last();
    parser->add_flag("--resume", options->resume, "Go on with a file that is marked partial");
    parser->add_option("-o,--output", options->output, "File to write")->capture_default_str();
    std::string line = "alloclab";
    for (int i = 1; i < argc; ++i) line += " " + quoted(argv[i]);
    return {parser, [=] {
                if (options->what.quick && min_time->count() == 0) options->min_milliseconds = 3;
                return run(*options, line);
            }};
}

}  // namespace alloclab::bench
