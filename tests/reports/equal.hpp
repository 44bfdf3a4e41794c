// Runs compared field by field, for the tests of what is written and read back.
#pragma once

#include <tuple>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

inline bool operator==(const sample& a, const sample& b) { return a.block == b.block && a.value == b.value; }
inline bool operator==(const strategy& a, const strategy& b) {
    const auto fields = [](const strategy& s) {
        return std::tie(s.name, s.kind, s.threads, s.bounded, s.capacity, s.when_full, s.control);
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
        return std::tie(c.workload, c.strategy, c.parameters, c.samples, c.counters, c.parts, c.series, c.refusal,
                        c.error);
    };
    return fields(a) == fields(b);
}
inline bool operator==(const run& a, const run& b) {
    const auto fields = [](const run& r) {
        return std::tie(r.started, r.seconds, r.command, r.seed, r.partial, r.environment, r.warnings, r.strategies,
                        r.workloads, r.cells);
    };
    return fields(a) == fields(b);
}

}  // namespace alloclab::report
