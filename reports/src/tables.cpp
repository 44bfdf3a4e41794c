#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace alloclab::report {

std::string_view role(const entry& e) noexcept { return e.twin ? "noise check" : e.control ? "control" : ""; }

std::string_view mark(verdict v) noexcept {
    constexpr std::array<std::string_view, 5> marks{"", "▼", "▲", "=", "?"};
    return v < verdict::full ? marks[static_cast<std::size_t>(v)] : "";
}

std::string heading(const column& c) { return c.unit.empty() ? c.heading : fmt::format("{} ({})", c.heading, c.unit); }

std::string_view word(verdict v) noexcept { return v == verdict::untimed ? "–" : to_string(v); }

entry name_of(const chapter& ch, const std::string& strategy) {
    const standing& s = ch.of(strategy);
    return {.text = strategy, .control = s.control, .twin = s.twin};
}

std::optional<double> fragmentation(const cell& c) {
    const auto peak = c.counters.find("peak_bytes"), reserved = c.counters.find("reserved_bytes");
    if (peak == c.counters.end() || reserved == c.counters.end() || !(reserved->second > 0)) return std::nullopt;
    return 1 - peak->second / reserved->second;
}

std::vector<table> tables_of(const chapter& ch, const panel& p) {
    std::vector<table> tables;
    for (table& t : std::array{times_table(ch, p), scaling_table(ch, p), latency_table(ch, p), parts_table(ch, p),
                               counters_table(ch, p), growth_table(ch, p)}) {
        if (!t.rows.empty()) tables.push_back(std::move(t));
    }
    return tables;
}

byte_unit unit_of(const panel& p, const std::string& series) {
    double largest = 0;
    if (!counts_bytes(series)) return {1, ""};
    for (const auto& [where, c] : p.cells) {
        const auto values = c->of->series.find(series);
        if (values == c->of->series.end()) continue;
        for (const double v : values->second) largest = std::max(largest, v);
    }
    return unit_for(largest);
}

std::string counted_place(const panel& p) {
    const std::string at = busiest(p, [](const cell& c) { return has_counters(c) || !c.refusal.empty(); });
    const bool served = std::any_of(p.cells.begin(), p.cells.end(), [&](const auto& c) {
        return c.first.second == at && has_counters(*c.second->of) && c.second->of->refusal.empty();
    });
    return served ? at : busiest(p, has_counters);
}

std::string place(const chapter& ch, const std::string& at) {
    return ch.on->axis.empty() || at.empty() ? "" : fmt::format(" at {} = {}", ch.on->axis, at);
}

}  // namespace alloclab::report
