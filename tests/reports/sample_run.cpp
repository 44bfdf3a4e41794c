#include "sample_run.hpp"

#include <cmath>
#include <cstdint>
#include <random>

namespace alloclab::report {
namespace {

struct cost {
    const char* name;
    double fixed;     ///< ns/op with nothing live
    double per_live;  ///< added for each live context, up to `scanned`
    double scanned;
    std::size_t capacity;
    bool control;
};
constexpr cost contexts[]{
    {"heap", 21, 0.004, 1024, 0, false},
    {"heap_aligned", 29, 0.004, 1024, 0, false},
    {"heap_mimalloc", 9.4, 0.001, 1024, 0, false},
    {"static_pool", 3.1, 0, 0, 64, false},
    {"hybrid", 3.6, 0, 0, 0, false},
    {"free_list", 3.55, 0, 0, 0, false},
    {"magazine_pool", 4.4, 0, 0, 0, false},
    {"arena", 2.9, 0.0005, 1024, 0, false},
    {"scan_pool", 14, 1.1, 64, 64, true},
    {odd_name, 20.6, 0.004, 1024, 0, false},
};
struct extra {
    const char* name;
    double ns;    ///< extras part of an eval, us
    double kept;  ///< live after every eval
    bool control;
};
constexpr extra extras[]{
    {"per_tensor", 41, 200, false}, {"free_list", 9.5, 200, false},    {"bump_arena", 5.2, 200, false},
    {"ring", 6.1, 4096, true},      {"inline_extra", 3.3, 1090, true}, {"leaky", 36, 0, true},
};

class maker {
public:
    explicit maker(std::size_t blocks) : blocks_{blocks} {}

    std::vector<sample> samples(double around) {
        std::vector<sample> all;
        for (std::size_t block = 0; block < blocks_; ++block) {
            // Both sides of a pair share the machine's drift in that block.
            const double drift = 1 + 0.12 * std::sin(static_cast<double>(block) * 1.7);
            all.push_back({block, around * drift * std::exp(noise_(random_))});
        }
        return all;
    }

private:
    std::mt19937_64 random_{20};
    std::normal_distribution<double> noise_{0, 0.006};
    std::size_t blocks_;
};

void add_contexts(run& r, maker& make) {
    r.workloads.push_back({"context/slots", "context", "Acquire and release one context slot",
                           "What does a strategy cost when so many other contexts are alive?", "ns/op", "heap",
                           "live"});
    for (const cost& s : contexts) {
        r.strategies.push_back({s.name, "context", "single", s.capacity != 0, s.capacity,
                                s.capacity != 0 ? "nullptr" : "asks malloc", s.control});
        for (const std::size_t live : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 63u, 128u, 256u, 512u, 1024u}) {
            cell c{"context/slots", s.name, {{"live", std::to_string(live)}}, {}, {}, {}, {}, "", ""};
            if (s.capacity != 0 && live >= s.capacity) {
                c.refusal = "full at 64 of 64 slots";
            } else {
                const auto n = static_cast<double>(live);
                const double spill = s.name == std::string_view("hybrid") && live > 64 ? 18 : 0;
                c.samples = make.samples(s.fixed + spill + s.per_live * std::min(n, s.scanned));
                c.counters = {{"peak_bytes", 208 * (n + 1)},
                              {"reserved_bytes", s.capacity != 0 ? 208.0 * 64 : 208 * (n + 1) * 1.08},
                              {"page_faults", std::ceil(208 * (n + 1) / 4096)},
                              {"source_calls", s.capacity != 0 ? 0 : n + 1}};
            }
            r.cells.push_back(std::move(c));
        }
    }
}

void add_evals(run& r, maker& make) {
    r.workloads.push_back({"eval/engine", "context", "One eval of a llama graph",
                           "How much of an eval does the strategy decide at all?", "us/eval", "heap", ""});
    for (const char* model : {"llama-2-7b/16", "whisper-tiny/4"}) {
        for (const cost& s : contexts) {
            const double context = s.fixed * 0.09, build = 96 + s.fixed * 0.4, plan = 31, extra = 9,
                         compute = model[0] == 'l' ? 870 : 240;
            cell c{"eval/engine",
                   s.name,
                   {{"model", model}},
                   make.samples(context + build + plan + extra + compute),
                   {},
                   {},
                   {},
                   "",
                   ""};
            c.parts = {{"context", context}, {"build", build}, {"plan", plan}, {"extras", extra}, {"compute", compute}};
            c.counters = {
                {"peak_bytes", 1.1e6 + s.fixed * 1000}, {"reserved_bytes", 1.3e6 + s.fixed * 9000}, {"page_faults", 0}};
            r.cells.push_back(std::move(c));
        }
    }
}

void add_extras(run& r, maker& make) {
    r.workloads.push_back({"extra/evals", "extra", "200 temporary extras for every eval",
                           "What does it cost to give each offloaded tensor an extra?", "us/eval", "per_tensor", ""});
    r.workloads.push_back({"extra/growth", "extra", "Live extras over 1000 evals",
                           "Does the number of live extras stay constant from eval to eval?", "extras", "per_tensor",
                           ""});
    for (const extra& s : extras) {
        r.strategies.push_back(
            {s.name, "extra", "single", s.name == std::string_view("ring"), 4096, "reports an overrun", s.control});
        cell cost{"extra/evals", s.name, {}, make.samples(s.ns), {}, {}, {}, "", ""};
        cell growth{"extra/growth", s.name, {}, {}, {}, {}, {}, "", ""};
        auto& live = growth.series["live_extras"];
        for (int eval = 1; eval <= 1000; ++eval) {
            live.push_back(s.kept != 0 ? std::min(s.kept, 200.0 * eval) : 200.0 * eval);
            growth.series["reserved_bytes"].push_back(live.back() * 1152);
        }
        cost.counters = {{"peak_bytes", live.back() * 1152},
                         {"reserved_bytes", live.back() * 1152 * 1.02},
                         {"source_calls", live.back()}};
        r.cells.push_back(std::move(cost));
        r.cells.push_back(std::move(growth));
    }
}

void add_sources(run& r, maker& make) {
    r.workloads.push_back({"source/buffer", "source", "Take a buffer and give it back", "What does a buffer cost?",
                           "ns/buffer", "malloc", ""});
    for (const auto& [name, ns] : {std::pair{"malloc", 240.0}, {"pages", 9100.0}, {"huge_pages", 0.0}}) {
        r.strategies.push_back({name, "source", "shared", false, 0, "nullptr", false});
        cell c{"source/buffer", name, {}, {}, {}, {}, {}, "", ""};
        if (ns > 0) c.samples = make.samples(ns);
        else c.error = "ended by signal: Killed";
        r.cells.push_back(std::move(c));
    }
}

}  // namespace

run made_run(std::size_t blocks) {
    run r;
    r.started = "2025-01-31T12:34:56Z";
    r.seconds = 154.5;
    r.command = "alloclab run --blocks 7 --seed 42 -o run.json";
    r.seed = 42;
    r.environment = {{"cpu", "Example CPU, 2 cores"},
                     {"kernel", "Linux 6.1"},
                     {"compiler", "g++ 12.2 -O3, NDEBUG"},
                     {"malloc", "glibc 2.36 (verified: not replaced)"},
                     {"timer", "31 ns"}};
    r.warnings = {"load average 2.4 on 2 cores: other programs were running", "the CPU governor could not be read"};
    maker make(blocks);
    add_contexts(r, make);
    add_evals(r, make);
    add_extras(r, make);
    add_sources(r, make);
    return r;
}

}  // namespace alloclab::report
