// The alloclab command. Exit codes: 0 ok, 2 usage or bad input, 3 measuring failed, was interrupted or nothing matched.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "alloclab/report/results.hpp"
#include "alloclab/report/writers.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "environment.hpp"
#include "experiment.hpp"

namespace alloclab::bench {
namespace {

enum exit_code : int { ok = 0, usage_error = 2, failed = 3 };

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch a lock-free atomic");

// One line whatever the text holds: it may repeat what a user or a file said.
int complain(int code, std::string text) {
    constexpr std::size_t longest = 2000;
    if (text.size() > longest) text = text.substr(0, longest) + " ...";
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    std::cerr << "alloclab: " << text << '\n';
    return code;
}

// A closed descriptor below 3 would be taken by the next file or pipe and then be mistaken for what it stands for.
void open_standard_streams() {
    for (int opened = ::open("/dev/null", O_RDWR); opened >= 0; opened = ::open("/dev/null", O_RDWR))
        if (opened > STDERR_FILENO) {
            ::close(opened);
            return;
        }
}

// ---- list

nlohmann::json listed_as_json() {
    nlohmann::json all;
    for (const report::strategy& s : registered_strategies())
        all["strategies"].push_back({{"name", s.name},
                                     {"kind", s.kind},
                                     {"threads", s.threads},
                                     {"bounded", s.bounded},
                                     {"capacity", s.bounded ? nlohmann::json(s.capacity) : nlohmann::json(nullptr)},
                                     {"when_full", s.when_full},
                                     {"control", s.control}});
    for (const family& f : everything().families()) {
        nlohmann::json axes = nlohmann::json::object();
        for (const axis& a : f.axes) axes[a.name] = a.values;
        std::vector<std::string> strategies;
        for (const auto& e : f.entries) strategies.push_back(e.strategy);
        all["workloads"].push_back({{"name", f.about.name},
                                    {"kind", f.about.kind},
                                    {"title", f.about.title},
                                    {"question", f.about.question},
                                    {"unit", f.about.unit},
                                    {"baseline", f.about.baseline},
                                    {"parameters", axes},
                                    {"strategies", strategies}});
    }
    for (const tensor::model_info& m : tensor::models()) {
        const tensor::context_need need = tensor::decode_need(m);
        all["models"].push_back({{"name", m.name},
                                 {"family", m.family},
                                 {"full", m.full},
                                 {"decode_nodes", need.graph_nodes},
                                 {"decode_tensors", need.tensors}});
    }
    return all;
}

int list(bool as_json) {
    if (as_json) {
        std::cout << listed_as_json().dump(2) << '\n';
        return ok;
    }
    std::printf("strategies\n");
    for (const report::strategy& s : registered_strategies())
        std::printf("  %-8s %-28s threads: %-6s  %-14s when full: %s%s\n", s.kind.c_str(), s.name.c_str(),
                    s.threads.c_str(), s.bounded ? ("slots: " + std::to_string(s.capacity)).c_str() : "unbounded",
                    s.when_full.c_str(), s.control ? "  (a control, not to be chosen)" : "");
    std::printf("\nworkloads\n");
    for (const family& f : everything().families()) {
        std::printf("  %-24s %s\n", f.about.name.c_str(), f.about.title.c_str());
        for (const axis& a : f.axes) {
            std::string values;
            for (const std::string& v : a.values) values += " " + v;
            std::printf("  %-24s   %s:%s\n", "", a.name.c_str(), values.c_str());
        }
    }
    std::printf("\nmodels\n");
    for (const tensor::model_info& m : tensor::models())
        std::printf("  %-24.*s %s\n", static_cast<int>(m.name.size()), m.name.data(),
                    m.full ? "full shape, metadata only" : "small, computes");
    return ok;
}

// ---- run

struct run_options {
    plan what;
    std::vector<std::string> live, threads, models, others;
    std::string output = "run.json";
};

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

// Tried before anything is measured: what the system says of permissions is not always what it then does.
void check_writable(const std::filesystem::path& file) {
    if (file.empty()) throw std::runtime_error("no name for the output; expected a file");
    if (std::filesystem::is_directory(file)) throw std::runtime_error(file.string() + " is a folder; expected a file");
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) return;  // /dev/stdout
    std::filesystem::path beside = file;
    beside += "." + std::to_string(::getpid()) + ".probe";
    std::FILE* probe = std::fopen(beside.c_str(), "wx");
    if (probe == nullptr) throw std::runtime_error("cannot write " + file.string() + ": " + std::strerror(errno));
    std::fclose(probe);
    std::filesystem::remove(beside);
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
        std::vector<std::string> values;
        std::stringstream list(other.substr(equals + 1));
        for (std::string value; std::getline(list, value, ',');) values.push_back(value);
        p.values[other.substr(0, equals)] = values;
    }

    std::vector<std::vector<job>> groups;
    try {
        groups = select(p);
        check_writable(options.output);
    } catch (const std::exception& e) {
        return complain(usage_error, e.what());
    }
    if (groups.empty()) return complain(failed, "no workload has a strategy that matches; see alloclab list");

    report::run r;
    r.started = now_in_utc();
    r.command = command;
    r.seed = p.seed;
    r.strategies = registered_strategies();
    const environment around = look_around();
    r.environment = around.facts;
    r.warnings = around.warnings;
    for (const std::string& warning : r.warnings) std::cerr << "warning: " << warning << '\n';

    struct sigaction on_interrupt {};
    on_interrupt.sa_handler = [](int) { interrupt_seen = true; };
    ::sigaction(SIGINT, &on_interrupt, nullptr);
    ::sigaction(SIGTERM, &on_interrupt, nullptr);
    ::sigaction(SIGHUP, &on_interrupt, nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // who reads the progress may leave before the end
    carry_out(p, std::move(groups), r, [] { return interrupt_seen.load(); });

    std::size_t measured = 0, broken = 0;
    for (const report::cell& c : r.cells) {
        measured += c.samples.empty() && c.series.empty() ? 0 : 1;
        // A refusal is an answer; a cell that could not be measured is none.
        if (!c.error.empty()) {
            ++broken;
            std::cerr << "failed: " << c.workload << ' ' << c.strategy << ": " << c.error << '\n';
        }
    }
    if (measured == 0 && std::filesystem::exists(options.output))
        return complain(failed, std::string(r.partial ? "interrupted before anything was measured; "
                                                      : "not one cell could be measured; ") +
                                    options.output + " is as it was");
    report::write_run(r, options.output);
    std::cerr << measured << " of " << r.cells.size() << " cells measured in " << static_cast<int>(r.seconds) << " s, "
              << options.output << '\n';
    if (r.partial) return complain(failed, "interrupted: " + options.output + " is marked partial");
    if (measured == 0) return complain(failed, "not one cell could be measured");
    if (broken != 0) return complain(failed, std::to_string(broken) + " cells failed");
    return ok;
}

// ---- worker

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

// ---- report

int report_on(const std::string& input, std::filesystem::path folder, bool quiet) {
    if (folder.empty()) folder = std::filesystem::path(input).parent_path();
    if (folder.empty()) folder = ".";
    try {
        const report::run r = report::read_run(input);
        check_writable(folder / "index.html");
        report::write_file(folder / "index.html", report::to_html(r));
        report::write_file(folder / "report.md", report::to_markdown(r));
        report::write_file(folder / "report.csv", report::to_csv(r));
        if (!quiet)
            std::cout << report::to_terminal(r, ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr);
    } catch (const std::exception& e) {
        return complain(usage_error, e.what());
    }
    return ok;
}

int parsed(int argc, char** argv) {
    CLI::App app{"Measures the memory strategies of tensor-graph runtimes, side by side"};
    app.name("alloclab");
    app.require_subcommand(1);
    app.set_version_flag("--version", ALLOCLAB_VERSION);

    bool as_json = false;
    auto* list_command = app.add_subcommand("list", "Strategies, workloads and models");
    list_command->add_flag("--json", as_json, "As JSON");

    run_options options;
    std::size_t min_milliseconds = 10;
    auto* run_command = app.add_subcommand("run", "Measure and write run.json");
    run_command
        ->add_option("-w,--workload", options.what.workloads, "Names or patterns such as 'context/*'; all by default")
        ->delimiter(',');
    run_command->add_option("-s,--strategy", options.what.strategies, "Names or patterns; the baseline is added")
        ->delimiter(',');
    run_command->add_option("--live", options.live, "Live counts instead of the workloads' own")->delimiter(',');
    run_command->add_option("--threads", options.threads, "Thread counts, likewise")->delimiter(',');
    run_command->add_option("--model", options.models, "Models, likewise; see alloclab list")->delimiter(',');
    run_command->add_option("-p,--parameter", options.others, "name=value,value for any other parameter")
        ->allow_extra_args(false);
    auto* blocks =
        run_command->add_option("--blocks", options.what.blocks, "Measurements of each cell; 6 or more give verdicts")
            ->check(CLI::Range(1, 1000))
            ->take_last();
    auto* min_time =
        run_command->add_option("--min-time", min_milliseconds, "Milliseconds that each measurement takes, roughly")
            ->check(CLI::Range(1, 60000))
            ->take_last();
    run_command->add_option("--seed", options.what.seed, "Of the order of cells")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53));
    run_command->add_flag("--quick", options.what.quick, "Fewer parameter values, shorter measurements");
    run_command->add_option("-o,--output", options.output, "File to write")->capture_default_str();

    std::string input, folder;
    bool quiet = false;
    auto* report_command = app.add_subcommand("report", "Write index.html, report.md and report.csv from run.json");
    report_command->add_option("run", input, "A run.json")->required();
    report_command->add_option("-o,--output", folder, "Folder to write to; that of the run by default");
    report_command->add_flag("-q,--quiet", quiet, "No table on the terminal");

    job one;
    std::vector<std::string> where;
    auto* worker_command = app.add_subcommand("worker", "Measure one cell in this process")->group("");
    worker_command->add_option("workload", one.workload)->required();
    worker_command->add_option("strategy", one.strategy)->required();
    worker_command->add_option("parameters", where);
    worker_command->add_option("--min-time", one.min_seconds);
    bool observe = false;
    worker_command->add_flag("--observe", observe, "Counters and series instead of a time");

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        return complain(usage_error, std::string(e.what()) + "; see alloclab --help");
    }

    if (*list_command) return list(as_json);
    if (*report_command) return report_on(input, folder, quiet);
    if (*worker_command) {
        if (observe) one.task = job::observing;
        return worker(one, where);
    }
    if (options.what.quick) {
        if (blocks->count() == 0) options.what.blocks = 6;
        if (min_time->count() == 0) min_milliseconds = 3;
    }
    options.what.min_seconds = static_cast<double>(min_milliseconds) / 1000;
    std::string command = "alloclab";
    for (int i = 1; i < argc; ++i) command += " " + quoted(argv[i]);
    return run(std::move(options), command);
}

}  // namespace
}  // namespace alloclab::bench

int main(int argc, char** argv) {
    alloclab::bench::open_standard_streams();
    try {
        const int code = alloclab::bench::parsed(argc, argv);
        if (std::cout.flush() && std::fflush(stdout) == 0) return code;
        return alloclab::bench::complain(alloclab::bench::failed, "standard output could not be written");
    } catch (const std::exception& e) {
        return alloclab::bench::complain(alloclab::bench::failed, e.what());
    }
}
