// Buffers: what it costs to take and give back the memory behind a context.
#include "catalogue.hpp"
#include "keep.hpp"

namespace alloclab::bench {

void add_source_workloads(catalogue& c) {
    c.add<source_strategies>(
        {.name = "source/buffer",
         .kind = "source",
         .title = "Take a metadata buffer, write to each of its pages, give it back",
         .question = "What an owned buffer costs, and where alignment or fresh pages make it dear",
         .unit = "ns/buffer",
         .baseline = "",
         .axis = "bytes"},
        {{"bytes", {"384", "16384", "131072", "1048576"}, {"384", "131072"}, 1, std::size_t{1} << 30}},
        [](auto tag, const parameters& p) {
            using source = typename decltype(tag)::type;
            const std::size_t bytes = number(p, "bytes");
            return measurement{
                .loop =
                    [bytes](benchmark::State& state) {
                        source from;
                        for (auto _ : state) {
                            auto* block = static_cast<std::byte*>(from.allocate(bytes, 16));
                            for (std::size_t at = 0; at < bytes; at += 4096) block[at] = std::byte{1};
                            keep(block);
                            from.deallocate(block, bytes, 16);
                        }
                    },
            };
        });
}

}  // namespace alloclab::bench
