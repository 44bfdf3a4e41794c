#include "consistency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "text.hpp"

namespace alloclab::report {
namespace {

/// Where each thing was first seen; a later one of the same key is refused.
template <class Key>
class index {
public:
    /// The fault when the key was seen before.
    [[nodiscard]] std::optional<fault> add(Key key, const std::string& place) {
        const auto [first, fresh] = places_.emplace(std::move(key), place);
        if (fresh) return std::nullopt;
        return fault{place, "expected another than " + first->second + ", found the same once more"};
    }
    [[nodiscard]] bool has(const Key& key) const { return places_.contains(key); }

private:
    std::map<Key, std::string> places_;
};

/// As it stands in the file.
std::string shown(double value) { return std::isfinite(value) ? exact(value) : "null"; }

std::optional<fault> fault_of(const sample& s, std::size_t machines, const std::string& place) {
    if (s.value < 0) return fault{place + "/value", fmt::format("expected a time from 0, found {}", s.value)};
    if (s.calibration < 0)
        return fault{place + "/calibration", fmt::format("expected a time from 0, found {}", s.calibration)};
    if (s.machine >= std::max<std::size_t>(machines, 1)) {
        return fault{place + "/machine", fmt::format("expected the place of one of {} /machines, found {}",
                                                     machines == 0 ? "no" : fmt::to_string(machines), s.machine)};
    }
    return std::nullopt;
}

std::optional<fault> fault_of(const latency_curve& l, const std::string& place) {
    if (l.floor < 0) return fault{place + "/floor", fmt::format("expected a time from 0, found {}", l.floor)};
    std::pair<double, double> before{0, 0};
    for (std::size_t i = 0; i < l.ecdf.size(); ++i) {
        const auto& [ns, share] = l.ecdf[i];
        const auto at = [&](const char* key) { return fmt::format("{}/ecdf/{}/{}", place, i, key); };
        if (!(ns >= before.first))
            return fault{at("ns"), fmt::format("expected a number from {}, found {}", before.first, shown(ns))};
        if (!(share >= before.second && share <= 1)) {
            return fault{at("share"),
                         fmt::format("expected a number from {} to 1, found {}", before.second, shown(share))};
        }
        before = l.ecdf[i];
    }
    // A writer may have rounded.
    if (!l.ecdf.empty() && before.second < 1 - 1e-6) {
        return fault{fmt::format("{}/ecdf/{}/share", place, l.ecdf.size() - 1),
                     fmt::format("expected 1 at the end, found {}", before.second)};
    }
    return std::nullopt;
}

std::optional<fault> fault_of(const memory_map& m, const std::string& place) {
    for (std::size_t i = 0; i < m.placements.size(); ++i) {
        const placement& p = m.placements[i];
        const auto at = [&](const char* key) { return fmt::format("{}/placements/{}/{}", place, i, key); };
        if (p.last < p.first || p.last >= m.steps) {
            return fault{at("last"),
                         fmt::format("expected a step from {} to before {}, found {}", p.first, m.steps, p.last)};
        }
        if (p.offset > m.bytes || p.bytes > m.bytes - p.offset) {
            return fault{at("bytes"), fmt::format("expected offset and bytes within the map's {}, found {} and {}",
                                                  m.bytes, p.offset, p.bytes)};
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<fault> fault_of(const run& r) {
    const auto unknown = [](std::string place, const char* where, const std::string& name) {
        return fault{std::move(place),
                     fmt::format("expected the name of one of {}, found \"{}\"", where, visible(name))};
    };

    index<std::pair<std::string_view, std::string_view>> strategies;  // one name may serve in two kinds
    for (std::size_t i = 0; i < r.strategies.size(); ++i) {
        const strategy& s = r.strategies[i];
        if (auto twice = strategies.add({s.kind, s.name}, fmt::format("/strategies/{}", i))) return twice;
    }
    for (std::size_t i = 0; i < r.strategies.size(); ++i) {
        const strategy& s = r.strategies[i];
        if (!s.twin_of.empty() && !strategies.has({s.kind, s.twin_of}))
            return unknown(fmt::format("/strategies/{}/twin_of", i), "/strategies", s.twin_of);
    }

    index<std::string_view> workloads;
    std::map<std::string_view, std::string_view> kinds;
    for (std::size_t i = 0; i < r.workloads.size(); ++i) {
        const workload& w = r.workloads[i];
        if (auto twice = workloads.add(w.name, fmt::format("/workloads/{}", i))) return twice;
        kinds.emplace(w.name, w.kind);
    }

    index<std::tuple<std::string_view, std::string_view, std::map<std::string, std::string>>> cells;
    for (std::size_t i = 0; i < r.cells.size(); ++i) {
        const cell& c = r.cells[i];
        const std::string place = fmt::format("/cells/{}", i);
        if (!workloads.has(c.workload)) return unknown(place + "/workload", "/workloads", c.workload);
        if (!strategies.has({kinds[c.workload], c.strategy})) {
            const std::string of_kind = fmt::format("/strategies of kind \"{}\"", visible(kinds[c.workload]));
            return unknown(place + "/strategy", of_kind.c_str(), c.strategy);
        }
        if (auto twice = cells.add({c.workload, c.strategy, c.parameters}, place)) return twice;
        for (std::size_t k = 0; k < c.samples.size(); ++k) {
            if (auto f = fault_of(c.samples[k], r.machines.size(), fmt::format("{}/samples/{}", place, k))) return f;
        }
        if (c.latency) {
            if (auto f = fault_of(*c.latency, place + "/latency")) return f;
        }
    }
    for (std::size_t i = 0; i < r.maps.size(); ++i) {
        if (auto f = fault_of(r.maps[i], fmt::format("/maps/{}", i))) return f;
    }
    return std::nullopt;
}

}  // namespace alloclab::report
