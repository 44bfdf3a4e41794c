// Runs compared field by field, for the tests of what is written and read back.
#pragma once

#include <tuple>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

inline bool operator==(const sample& a, const sample& b) {
    const auto fields = [](const sample& s) { return std::tie(s.block, s.value, s.calibration, s.machine, s.turn); };
    return fields(a) == fields(b);
}
inline bool operator==(const latency_curve& a, const latency_curve& b) {
    const auto fields = [](const latency_curve& l) { return std::tie(l.floor, l.count, l.ecdf); };
    return fields(a) == fields(b);
}
inline bool operator==(const placement& a, const placement& b) {
    const auto fields = [](const placement& p) { return std::tie(p.tensor, p.first, p.last, p.offset, p.bytes); };
    return fields(a) == fields(b);
}
inline bool operator==(const memory_map& a, const memory_map& b) {
    const auto fields = [](const memory_map& m) {
        return std::tie(m.name, m.steps, m.bytes, m.lower_bound, m.placements);
    };
    return fields(a) == fields(b);
}
inline bool operator==(const machine& a, const machine& b) {
    const auto fields = [](const machine& m) { return std::tie(m.name, m.environment, m.warnings); };
    return fields(a) == fields(b);
}
inline bool operator==(const design& a, const design& b) {
    const auto fields = [](const design& d) {
        return std::tie(d.min_seconds, d.least_blocks, d.most_blocks, d.precision, d.max_seconds, d.shard, d.unmet);
    };
    return fields(a) == fields(b);
}
inline bool operator==(const strategy& a, const strategy& b) {
    const auto fields = [](const strategy& s) {
        return std::tie(s.name, s.kind, s.threads, s.bounded, s.capacity, s.when_full, s.control, s.twin_of);
    };
    return fields(a) == fields(b);
}
inline bool operator==(const workload& a, const workload& b) {
    const auto fields = [](const workload& w) {
        return std::tie(w.name, w.kind, w.title, w.question, w.unit, w.baseline, w.axis);
    };
    return fields(a) == fields(b);
}
inline bool operator==(const cell& a, const cell& b) {
    const auto fields = [](const cell& c) {
        return std::tie(c.workload, c.strategy, c.parameters, c.samples, c.counters, c.parts, c.series, c.timeline,
                        c.latency, c.refusal, c.error);
    };
    return fields(a) == fields(b);
}
inline bool operator==(const run& a, const run& b) {
    const auto fields = [](const run& r) {
        return std::tie(r.started, r.seconds, r.command, r.seed, r.partial, r.environment, r.warnings, r.machines,
                        r.plan, r.strategies, r.workloads, r.cells, r.maps);
    };
    return fields(a) == fields(b);
}

}  // namespace alloclab::report
