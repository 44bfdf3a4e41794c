// Buffers: what it costs to take and give back the memory behind a context.
#include <memory>

#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"

namespace alloclab::bench {
namespace {

template <class Source>
void take_and_give_back(Source& from, std::size_t bytes) noexcept {
    auto* block = static_cast<std::byte*>(from.allocate(bytes, 16));
    for (std::size_t at = 0; at < bytes; at += 4096) block[at] = std::byte{1};
    keep(block);
    from.deallocate(block, bytes, 16);
}

template <class Source>
measurement buffers(const parameters& p) {
    const std::size_t bytes = number(p, "bytes");
    measurement m;
    m.loop = [bytes](benchmark::State& state) {
        Source from;
        for (auto _ : state) take_and_give_back(from, bytes);
    };
    m.single = [bytes] { return [from = std::make_shared<Source>(), bytes] { take_and_give_back(*from, bytes); }; };
    m.observe = [bytes](observations& seen) {
        compose<Source, counting> from;
        take_and_give_back(from, bytes);
        count_rounds(
            seen, "round", [&] { take_and_give_back(from, bytes); }, [&] { return usage_of(from.traffic()); });
        seen.counters["peak_bytes"] = static_cast<double>(from.traffic().peak_bytes);
        seen.counters["reserved_bytes"] = seen.counters["peak_bytes"];
    };
    return m;
}

}  // namespace

void add_source_workloads(catalogue& c) {
    c.add<source_strategies>({.name = "source/buffer",
                              .kind = "source",
                              .title = "Take a metadata buffer, write to each of its pages, give it back",
                              .question = "What an owned buffer costs, and where alignment or fresh pages make it dear",
                              .unit = "ns/buffer",
                              .baseline = "",
                              .axis = "bytes"},
                             {{.name = "bytes",
                               .values = {"384", "16384", "131072", "1048576"},
                               .quick = {"384", "131072"},
                               .lowest = 1,
                               .highest = std::size_t{1} << 30}},
                             [](auto tag, const parameters& p) { return buffers<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
