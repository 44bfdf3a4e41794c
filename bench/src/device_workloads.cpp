// What a device takes for an eval, beside what the host does for it. The host's time is taken on a device that does
// nothing; the device's is virtual time, counted in a process of its own, on one that accounts for every call and
// computes nothing. So neither has anything of the other, nor of a simulator's own work. Kernels of several evals in
// flight overlap wholly on that device, so that what it takes with more than one is the least that it could be.
#include <cstdio>
#include <memory>

#include "alloclab/device/tensor_extra.hpp"
#include "catalogue.hpp"
#include "devices.hpp"
#include "eval_loop.hpp"

namespace alloclab::bench {
namespace {

/// Why the model's weights and caches cannot lie on the device, "" when they can.
std::string lack_of_memory(const eval_options& o) {
    const std::size_t needed = leaf_bytes(tensor::loaded_model(*tensor::find_model(o.model)));
    if (needed <= o.device.cost.capacity) return "";
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(), "%.1f GB of weights and caches, the device has %.1f GB",
                  static_cast<double>(needed) / 1e9, static_cast<double>(o.device.cost.capacity) / 1e9);
    return text.data();
}

template <class X>
measurement device_evals(const parameters& p) {
    using contexts = hybrid<tensor::context>;
    const eval_options options{
        .model = p.at("model"), .device = find_device(p.at("device")), .frames = number(p, "frames")};
    measurement made;
    made.refusal = lack_of_memory(options);
    made.parts = std::make_shared<std::map<std::string, double>>();
    made.loop = [=, parts = made.parts](benchmark::State& state) {
        const auto loop = std::make_unique<eval_loop<contexts, X, idle_device>>(options);
        loop->warm_up();
        for (auto _ : state) loop->once();
        *parts = loop->parts();
    };
    if (made.refusal.empty())
        made.observe = [=](observations& seen) {
            std::make_unique<eval_loop<watched<contexts>, X, accounting_device, counted_buffers>>(options)->observe(
                seen);
        };
    return made;
}

}  // namespace

void add_device_workloads(catalogue& c) {
    c.add<extra_strategies<device::tensor_extra>>(
        {.name = "device/evals",
         .kind = "extra",
         .title = "Bookkeeping on the host for one decode step, all on a simulated device, by evals in flight",
         .question = "What the extra strategy and the number of evals in flight cost the host, and what the device, in "
                     "virtual time and with its calls, takes beside it; with several in flight the least that it "
                     "could take, since their kernels overlap wholly",
         .unit = "ns/eval",
         .baseline = "",
         .axis = "frames"},
        {{"model", {"llama-2-7b", "llama-2-7b-small", "whisper-base"}, {"llama-2-7b"}},
         {.name = "frames", .values = {"1", "2", "4"}, .quick = {"1", "2"}, .lowest = 1, .highest = 8}},
        [](auto tag, const parameters& p) { return device_evals<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
