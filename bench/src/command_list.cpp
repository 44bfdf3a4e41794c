// alloclab list: strategies, workloads, models and devices.
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "alloclab/tensor/models/registry.hpp"
#include "catalogue.hpp"
#include "command.hpp"
#include "device_profile.hpp"

namespace alloclab::bench {
namespace {

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
        for (const axis& a : f.axes) axes[a.name] = a.all();
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
    for (const device_profile& d : built_in_devices())
        all["devices"].push_back({{"name", "sim:" + d.name}, {"capacity", d.cost.capacity}});
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
            for (const std::string& v : a.all()) values += " " + v;
            std::printf("  %-24s   %s:%s\n", "", a.name.c_str(), values.c_str());
        }
    }
    std::printf("\nmodels\n");
    for (const tensor::model_info& m : tensor::models())
        std::printf("  %-24.*s %s\n", static_cast<int>(m.name.size()), m.name.data(),
                    m.full ? "full shape, metadata only" : "small, computes");
    std::printf("\ndevices\n");
    for (const device_profile& d : built_in_devices())
        std::printf("  %-24s simulated, %.0f GB\n", ("sim:" + d.name).c_str(),
                    static_cast<double>(d.cost.capacity) / 1e9);
    std::printf("  %-24s simulated, as a calibration of a real one says (cuda/gpu_check.sh)\n", "sim:FILE");
    return ok;
}

}  // namespace

command add_list(CLI::App& app) {
    const auto as_json = std::make_shared<bool>(false);
    auto* parser = app.add_subcommand("list", "Strategies, workloads, models and devices");
    parser->add_flag("--json", *as_json, "As JSON");
    return {parser, [as_json] { return list(*as_json); }};
}

}  // namespace alloclab::bench
