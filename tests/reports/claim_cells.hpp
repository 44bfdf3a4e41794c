// Hand-made cells and runs for the tests of claims.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"

namespace alloclab::report::made {

using parameters = std::map<std::string, std::string>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Its ratio to a steady cell that takes 100 has the median `value` / 100 and an interval of `spread` to both sides.
inline cell timed(const std::string& workload, const std::string& strategy, const parameters& where, double value,
                  double spread = 0, std::size_t blocks = 11) {
    cell c;
    c.workload = workload;
    c.strategy = strategy;
    c.parameters = where;
    for (std::size_t block = 0; block < blocks; ++block) {
        const double away = spread * (static_cast<double>(block % 5) - 2) / 2;
        c.samples.push_back({block, value * (1 + away)});
    }
    return c;
}
inline cell refused(const std::string& workload, const std::string& strategy, const parameters& where) {
    cell c = timed(workload, strategy, where, 0, 0, 0);
    c.refusal = "full at 64 of 64 slots";
    return c;
}
inline cell with_parts(cell c, double decided, const std::string& part, bool computed = true) {
    c.parts = {{part, decided}, {"build", 100 - decided}};
    if (computed) c.parts["compute"] = 900;
    return c;
}
inline cell counted(cell c, const std::string& counter, double value) {
    c.counters[counter] = value;
    return c;
}
inline cell grown(const std::string& strategy, const parameters& where, double per_eval) {
    cell c = timed("extra/growth", strategy, where, 0, 0, 0);
    for (int eval = 0; eval < 100; ++eval) c.series["live_extras"].push_back(200 + per_eval * eval);
    return c;
}

inline strategy named(const std::string& name, const std::string& kind, const std::string& twin_of = "") {
    strategy s;
    s.name = name;
    s.kind = kind;
    s.control = name == "scan_pool" || name == "inline_extra" || name == "leaky";
    s.twin_of = twin_of;
    return s;
}

inline run with(std::vector<cell> cells) {
    run r;
    for (const char* name : {"heap_malloc", "heap_aligned_malloc", "static_pool", "hybrid", "scan_pool"})
        r.strategies.push_back(named(name, "context"));
    for (const char* name : {"per_tensor", "free_list", "bump_arena", "inline_extra", "leaky"})
        r.strategies.push_back(named(name, "extra"));
    for (const auto& [name, axis] : {std::pair{"context/slots", "live"},
                                     {"context/init_free", "live"},
                                     {"context/replace", "live"},
                                     {"context/whisper_states", "states"},
                                     {"context/multi_gpu_load", "devices"},
                                     {"eval/contexts", ""},
                                     {"eval/buffers", ""}})
        r.workloads.push_back({name, "context", "", "", "ns", "heap_malloc", axis});
    for (const auto& [name, axis] : {std::pair{"extra/eval", "tensors"},
                                     {"extra/eval_256", "tensors"},
                                     {"extra/eval_72", "tensors"},
                                     {"extra/growth", ""},
                                     {"extra/scope", ""},
                                     {"eval/extras", ""}})
        r.workloads.push_back({name, "extra", "", "", "ns", "per_tensor", axis});
    r.cells = std::move(cells);
    return r;
}

/// What became of a claim, as text; a workload by name, since the run is gone.
struct outcome {
    ruling ruled;
    std::vector<std::string> evidence;
    std::string flips, on;
};
inline outcome claimed(const std::string& id, const run& r) {
    const book b(r);
    for (const claim& c : claims_of(b)) {
        if (c.id != id) continue;
        outcome o{c.ruled, {}, plain(c.flips), c.on == nullptr ? "" : c.on->name};
        for (const sentence& s : c.evidence) o.evidence.push_back(plain(s));
        return o;
    }
    ADD_FAILURE() << "no claim " << id;
    return {ruling::unmeasured, {}, "", ""};
}
inline outcome claimed(const std::string& id, std::vector<cell> cells) { return claimed(id, with(std::move(cells))); }

}  // namespace alloclab::report::made
