// alloclab doctor: what on this machine would spoil a measurement, and how to mend it.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "child.hpp"
#include "command.hpp"
#include "doctor.hpp"

namespace alloclab::bench {
namespace {

void print(const std::vector<check>& checks) {
    std::size_t widest = 0;
    for (const check& c : checks) widest = std::max(widest, c.name.size());
    const std::string margin(9, ' ');
    for (const check& c : checks) {
        std::string judged(to_string(c.judged));
        judged.resize(margin.size(), ' ');
        std::cout << judged << c.name << std::string(widest + 2 - c.name.size(), ' ') << c.found << '\n';
        if (c.judged == state::warn)
            std::cout << margin << "why:  " << c.why << '\n' << margin << "mend: " << c.mend << '\n';
    }
}

void print_json(const std::vector<check>& checks) {
    nlohmann::json all = nlohmann::json::array();
    for (const check& c : checks)
        all.push_back({{"name", c.name},
                       {"found", c.found},
                       {"state", to_string(c.judged)},
                       {"why", c.why},
                       {"mend", c.mend},
                       {"spoils", c.spoils}});
    // What a file or a variable holds need not be UTF-8.
    std::cout << nlohmann::json{{"checks", all}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

// Another program asks: the runtime, linked into this one, would change what it measures.
check cuda_devices() {
#ifdef ALLOCLAB_CUDA_DEVICES
    const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const ended asked = run_child(beside / ALLOCLAB_CUDA_DEVICES, {ALLOCLAB_CUDA_DEVICES}, 60, [] { return false; });
    if (!asked.error.empty()) return judge_cuda_devices({}, ALLOCLAB_CUDA_DEVICES ": " + asked.error);
    std::vector<std::string> lines;
    std::istringstream output(asked.output);
    for (std::string line; std::getline(output, line);) lines.push_back(line);
    if (lines.empty() || lines.front().starts_with("no CUDA device"))
        return judge_cuda_devices({}, lines.empty() ? "no answer" : lines.front());
    return judge_cuda_devices(lines, {});
#else
    return judge_cuda_devices({}, "this build has no CUDA");
#endif
}

}  // namespace

command add_doctor(CLI::App& app) {
    struct asked {
        bool json = false, strict = false;
        double seconds = 1;
        std::string root = "/";
    };
    const auto a = std::make_shared<asked>();
    auto* parser = app.add_subcommand("doctor", "What on this machine would spoil a measurement, and how to mend it");
    parser->add_flag("--json", a->json, "As JSON");
    parser->add_flag("--strict", a->strict, "Exit with 1 when a check warns");
    parser->add_option("--seconds", a->seconds, "To watch the speed of a fixed loop; 0: not at all")
        ->check(CLI::Range(0.0, 600.0))
        ->capture_default_str();
    parser->add_option("--root", a->root, "Folder with proc and sys in it")->check(CLI::ExistingDirectory)->group("");
    return {parser, [a] {
                std::vector<check> checks = examine(system_files{a->root});
                checks.push_back(judge_cuda_toolkit(ALLOCLAB_CUDA_TOOLKIT, ALLOCLAB_WHY_NO_CUDA));
                checks.push_back(cuda_devices());
                if (a->seconds > 0) checks.push_back(judge_speed(watch_speed(a->seconds)));
                a->json ? print_json(checks) : print(checks);
                const bool warns =
                    std::any_of(checks.begin(), checks.end(), [](const check& c) { return c.judged == state::warn; });
                return a->strict && warns ? gate_failed : ok;
            }};
}

}  // namespace alloclab::bench
