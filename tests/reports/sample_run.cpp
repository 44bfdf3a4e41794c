#include "sample_run.hpp"

#include <algorithm>
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

    /// The first half of the blocks comes from one machine, the others from a second one of another speed.
    std::vector<sample> samples(double around) {
        std::vector<sample> all;
        const std::size_t first = (blocks_ + 1) / 2;
        for (std::size_t i = 0; i < blocks_; ++i) {
            // Both sides of a pair share the machine's drift in that block.
            const double drift = 1 + 0.12 * std::sin(static_cast<double>(i) * 1.7);
            sample s;
            s.machine = i < first ? 0 : 1;
            s.block = i < first ? i : i - first;
            s.value = around * drift * (s.machine == 0 ? 1 : 1.4) * std::exp(noise_(random_));
            s.calibration = 1.21 * drift * (s.machine == 0 ? 1 : 1.4);
            s.turn = ++turns_[s.machine];
            all.push_back(s);
        }
        return all;
    }

private:
    std::mt19937_64 random_{20};
    std::normal_distribution<double> noise_{0, 0.006};
    std::size_t blocks_;
    std::size_t turns_[2]{};
};

cell at(const std::string& workload, const std::string& strategy, std::map<std::string, std::string> parameters = {}) {
    cell c;
    c.workload = workload;
    c.strategy = strategy;
    c.parameters = std::move(parameters);
    return c;
}

/// The strategy measured once more under another name, as an A/A row.
strategy twin(const strategy& of) {
    strategy again = of;
    again.name += " (A/A)";
    again.control = true;
    again.twin_of = of.name;
    return again;
}

/// Operations that mostly take `usual` ns, one in a hundred ten times as long, one in ten thousand a page fault.
latency_curve latencies(double usual) {
    latency_curve l{.floor = 24, .count = 100'000, .ecdf = {}};
    for (int i = 1; i <= 60; ++i) {
        const double rank = 1 - std::pow(10, -i / 12.0);  // 0.17, 0.32 ... 0.99999
        const double tail = rank > 0.9999 ? 900 : rank > 0.99 ? 10 * usual : usual * (1 + rank / 8);
        l.ecdf.emplace_back(l.floor + tail + 0.5 * i, i == 60 ? 1 : rank);
    }
    return l;
}

void add_contexts(run& r, maker& make) {
    r.workloads.push_back({"context/slots", "context", "Acquire and release one context slot",
                           "What does a strategy cost when so many other contexts are alive?", "ns/op", "heap",
                           "live"});
    const auto slots = [&](const cost& s, const std::string& name, std::size_t live) {
        cell c = at("context/slots", name, {{"live", std::to_string(live)}});
        if (s.capacity != 0 && live >= s.capacity) {
            c.refusal = "full at 64 of 64 slots";
            return c;
        }
        const auto n = static_cast<double>(live);
        const double spill = s.name == std::string_view("hybrid") && live > 64 ? 18 : 0;
        c.samples = make.samples(s.fixed + spill + s.per_live * std::min(n, s.scanned));
        c.counters = {{"peak_bytes", 208 * (n + 1)},
                      {"reserved_bytes", s.capacity != 0 ? 208.0 * 64 : 208 * (n + 1) * 1.08},
                      {"page_faults", std::ceil(208 * (n + 1) / 4096)},
                      {"source_calls", s.capacity != 0 ? 0 : n + 1},
                      {"leaked", 0}};
        if (live == 32) c.latency = latencies(s.fixed + s.per_live * 32);
        return c;
    };
    constexpr std::size_t lives[]{0, 1, 2, 4, 8, 16, 32, 63, 128, 256, 512, 1024};
    for (const cost& s : contexts) {
        r.strategies.push_back({s.name, "context", "single", s.capacity != 0, s.capacity,
                                s.capacity != 0 ? "nullptr" : "asks malloc", s.control});
        for (const std::size_t live : lives) r.cells.push_back(slots(s, s.name, live));
    }
    const strategy& again = *r.strategies.insert(r.strategies.begin() + 1, twin(r.strategies.front()));
    for (const std::size_t live : lives) r.cells.push_back(slots(contexts[0], again.name, live));
}

/// Time per operation and thread on two cores: level for two threads, doubled for four, which share them; a strategy
/// behind a lock grows slower from the second on.
void add_threads(run& r, maker& make) {
    r.workloads.push_back({"context/threads", "context", "Slots taken by several threads at once",
                           "Does the strategy scale with threads?", "ns/op", "heap", "threads"});
    for (const cost& s : contexts) {
        for (const double threads : {1.0, 2.0, 4.0}) {
            cell c = at("context/threads", s.name, {{"threads", std::to_string(static_cast<int>(threads))}});
            if (s.capacity != 0) c.refusal = "for one thread alone";
            else c.samples = make.samples(s.control ? s.fixed * threads : s.fixed * std::max(1.0, threads / 2));
            r.cells.push_back(std::move(c));
        }
    }
}

/// Memory over the steps of one round: made one by one, then dropped; chunks of 64 KiB stay reserved.
void add_states(run& r, maker& make) {
    r.workloads.push_back({"context/states", "context", "Load whisper states and drop them",
                           "How many states fit, and what stays reserved?", "us/state", "heap", "states"});
    for (const cost& s : contexts) {
        for (const int states : {1, 4, 9, 16}) {
            cell c = at("context/states", s.name, {{"states", std::to_string(states)}, {"contexts", "7"}});
            if (s.capacity != 0 && 7 * states > 63) {
                c.refusal = "refused context 65 of " + std::to_string(7 * states + 1);
                r.cells.push_back(std::move(c));
                continue;
            }
            c.samples = make.samples(s.fixed * 7 * states / 1000 + 12);
            double reserved = 0;
            for (int step = 0; step <= 14 * states; ++step) {
                const double live = 5320.0 * std::min(step, 14 * states - step);
                reserved = std::max(reserved, std::ceil(live / 65536) * 65536);
                c.timeline["live_bytes"].push_back(live);
                c.timeline["reserved_bytes"].push_back(reserved);
            }
            c.counters = {{"peak_bytes", 5320.0 * 7 * states}, {"reserved_bytes", reserved}};
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
            cell c = at("eval/engine", s.name, {{"model", model}});
            c.samples = make.samples(context + build + plan + extra + compute);
            c.parts = {{"context", context}, {"build", build}, {"plan", plan}, {"extras", extra}, {"compute", compute}};
            const double peak = 1.1e6 + (s.control ? 6e5 : 1e6 / s.fixed);  // what is fast pays in memory
            c.counters = {{"peak_bytes", peak}, {"reserved_bytes", peak * 1.2}, {"page_faults", 0}};
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
        cell cost = at("extra/evals", s.name), growth = at("extra/growth", s.name);
        cost.samples = make.samples(s.ns);
        auto& live = growth.series["live_extras"];
        for (int eval = 1; eval <= 1000; ++eval) {
            live.push_back(s.kept != 0 ? std::min(s.kept, 200.0 * eval) : 200.0 * eval);
            growth.series["reserved_bytes"].push_back(live.back() * 1152);
        }
        cost.counters = {{"peak_bytes", live.back() * 1152},
                         {"reserved_bytes", live.back() * 1152 * 1.02},
                         {"source_calls", live.back()},
                         {"leaked", s.kept != 0 ? 0 : 200}};
        r.cells.push_back(std::move(cost));
        r.cells.push_back(std::move(growth));
    }
}

void add_sources(run& r, maker& make) {
    r.workloads.push_back({"source/buffer", "source", "Take a buffer and give it back", "What does a buffer cost?",
                           "ns/buffer", "malloc", ""});
    for (const auto& [name, ns] : {std::pair{"malloc", 240.0}, {"pages", 9100.0}, {"huge_pages", 0.0}}) {
        r.strategies.push_back({name, "source", "shared", false, 0, "nullptr", false});
        for (const char* value : {"64 KiB", odd_value}) {
            cell c = at("source/buffer", name, {{odd_parameter, value}});
            if (ns > 0) c.samples = make.samples(ns);
            else c.error = "ended by signal: Killed";
            r.cells.push_back(std::move(c));
        }
    }
}

/// Ten layers of four tensors, each placed at the lowest offset that is free over its life.
memory_map activations() {
    memory_map m{.name = "llama-2-7b decode", .steps = 40, .bytes = 0, .lower_bound = 0, .placements = {}};
    constexpr std::size_t sizes[]{16384, 49152, 16384, 88064}, lives[]{3, 1, 2, 1};
    for (std::size_t step = 0; step < m.steps; ++step) {
        const std::size_t kind = step % 4;
        placement p{.tensor = std::string(kind == 0   ? "attn"
                                          : kind == 1 ? "qkv"
                                          : kind == 2 ? "ffn_norm"
                                                      : "ffn_up") +
                              '-' + std::to_string(step / 4),
                    .first = step,
                    .last = std::min(step + lives[kind], m.steps - 1),
                    .offset = 0,
                    .bytes = sizes[kind]};
        std::vector<placement> alive;
        for (const placement& q : m.placements)
            if (q.last >= p.first) alive.push_back(q);
        std::sort(alive.begin(), alive.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
        for (const placement& q : alive)
            if (q.offset < p.offset + p.bytes) p.offset = std::max(p.offset, q.offset + q.bytes);
        m.placements.push_back(p);
        m.bytes = std::max(m.bytes, p.offset + p.bytes);
    }
    for (std::size_t step = 0; step < m.steps; ++step) {
        std::size_t live = 0;
        for (const placement& p : m.placements) live += p.first <= step && step <= p.last ? p.bytes : 0;
        m.lower_bound = std::max(m.lower_bound, live);
    }
    return m;
}

}  // namespace

run made_run(std::size_t blocks) {
    run r;
    r.started = "2025-01-31T12:34:56Z";
    r.seconds = 154.5;
    r.command = "alloclab merge run.json one.json two.json";
    r.seed = 42;
    r.environment = {{"kernel", "Linux 6.1"},
                     {"compiler", "g++ 12.2 -O3, NDEBUG"},
                     {"malloc", "glibc 2.36 (verified: not replaced)"}};
    r.warnings = {"two: load average 2.4 on 2 cores: other programs were running",
                  "one: the CPU governor could not be read"};
    r.machines = {
        {"one", {{"cpu", "Example CPU, 2 cores"}, {"timer", "31 ns"}}, {"the CPU governor could not be read"}},
        {"two",
         {{"cpu", "Older CPU, 4 cores"}, {"timer", "44 ns"}},
         {"load average 2.4 on 2 cores: other programs were running"}}};
    r.plan = {.min_seconds = 0.01,
              .least_blocks = 7,
              .most_blocks = 15,
              .precision = 0.03,
              .max_seconds = 300,
              .shard = "",
              .unmet = {"3 of 120 ratios are wider than ±3 %; the widest: magazine_pool at live = 2, ±4.1 %"}};
    maker make(blocks);
    add_contexts(r, make);
    add_threads(r, make);
    add_states(r, make);
    add_evals(r, make);
    add_extras(r, make);
    add_sources(r, make);
    r.maps.push_back(activations());
    return r;
}

}  // namespace alloclab::report
