// eval_loop: the eval loop of a runtime over one model, timed by its parts and observed. Evals stop before executing
// where the device would compute and the model, metadata alone, has nothing to compute with.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "catalogue.hpp"
#include "devices.hpp"
#include "observe.hpp"

namespace alloclab::bench {

struct eval_options {
    std::string model;
    device_profile device;
    bool reset_context = true;
    std::size_t offload = too_many;  ///< nodes, the first ones
    std::size_t frames = 1;          ///< evals in flight
};

/// Bytes that the weights and caches of a model take on a device.
[[nodiscard]] inline std::size_t leaf_bytes(const tensor::loaded_model& m) noexcept {
    std::size_t all = 0;
    for (const auto list : {m.weights(), m.caches()})
        for (const tensor::leaf& l : list) all += align_up(l.of->bytes(), device::sim_device::alignment);
    return all;
}

template <class S, class X, class Device, class Buffers = malloc_source>
class eval_loop {
    using engine_type = tensor::engine<S, X, Device, Buffers>;
    static constexpr bool computes = !requires { requires !Device::computes; };

public:
    explicit eval_loop(const eval_options& o)
        : model_(*tensor::find_model(o.model), 1, engine_type::bytes_behind_tensor),
          leaves_(!computes && model_.info().full ? leaf_bytes(model_) : 0),
          device_(o.device),
          offload_(o.offload),
          frames_(o.frames),
          executes_(!computes || !model_.info().full),
          engine_(device_, {.context_bytes = metadata_bytes(),
                            .growing = {},
                            .reset_context = o.reset_context,
                            .frames = o.frames}) {
        if (executes_) upload();
    }

    void once() {
        once([](const tensor::context&) {});
    }
    /// Calls `look` when the eval holds most.
    template <class Look>
    void once(Look look) {
        std::array<clock::time_point, part_count + 2> at;
        at[0] = clock::now();
        {
            auto eval = engine_.begin_eval();
            at[1] = clock::now();
            tensor::context& c = eval.context();
            tensor::graph& g = *c.new_graph(model_.need().graph_nodes);
            model_.build(c, g);
            offloaded_ = tensor::mark_offloaded(g, offload_);
            at[2] = clock::now();
            eval.plan(g);
            at[3] = clock::now();
            eval.attach(g);
            at[4] = clock::now();
            look(c);
            if (executes_) {
                for (const tensor::input_value& in : model_.inputs())
                    if (in.value != nullptr) std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
                eval.submit(g);
            }
            at[5] = clock::now();
            eval.detach();
            at[6] = clock::now();
        }
        const auto end = clock::now();
        const auto took = [&](std::size_t from) {
            return std::chrono::duration<double, std::nano>(at[from + 1] - at[from]).count();
        };
        times_[context_part] += took(0) + std::chrono::duration<double, std::nano>(end - at[6]).count();
        times_[build_part] += took(1);
        times_[plan_part] += took(2);
        times_[extras_part] += took(3) + took(5);
        times_[execute_part] += took(4);
        ++evals_;
    }

    [[nodiscard]] std::map<std::string, double> parts() const {
        constexpr std::array<const char*, part_count> names{"context", "build", "plan", "extras",
                                                            computes ? "compute" : "submit"};
        std::map<std::string, double> all;
        for (std::size_t i = 0; i < part_count; ++i)
            if (i != execute_part || executes_) all[names[i]] = times_[i] / static_cast<double>(evals_);
        return all;
    }

    /// Before anything is timed: buffers have grown, pages been touched, and every frame been used.
    void warm_up() {
        for (std::size_t i = 0; i < 4 + frames_; ++i) once();
        times_.fill(0);
        evals_ = 0;
    }

    /// Where slots and buffers are counted. Throws std::runtime_error when the device has seen a race or misuse.
    void observe(observations& seen) {
        warm_up();
        auto& slots = engine_.context_source().slots();
        auto& buffers = engine_.context_source().buffers();
        memory_watch memory;
        const auto look = [&](const tensor::context& c) {
            usage of_extras = engine_.extras_usage();
            // What lies inside tensors is in their context already.
            if constexpr (embedded_extra_strategy<X>) of_extras = {};
            memory.look(
                slots.traffic().live_bytes + frames_ * c.used_bytes() + of_extras.live * sizeof(typename X::extra_type),
                slots.usage().reserved_bytes + frames_ * c.capacity_bytes() + of_extras.reserved_bytes);
        };
        engine_.synchronize();
        const device::nanoseconds before = device_.now();
        const std::size_t evals_before = evals_;
        const counted_calls calls(*this);
        count_rounds(
            seen, "eval", [&] { once(); },
            [&] { return slots.usage() + usage_of(buffers.traffic()) + engine_.extras_usage(); });
        engine_.synchronize();
        auto& n = seen.counters;
        const double evals = static_cast<double>(evals_ - evals_before);
        if (executes_) n["device_ns_per_eval"] = static_cast<double>(device_.now() - before) / evals;
        if constexpr (!computes) calls.tell(n, evals);
        once(look);
        memory.tell_peaks(seen);
        n["nodes"] = static_cast<double>(model_.need().graph_nodes);
        n["offloaded"] = static_cast<double>(offloaded_);
        n["metadata_bytes"] = static_cast<double>(metadata_bytes());
        n["plan_bytes"] = static_cast<double>(engine_.plan().bytes());
        n["plan_lower_bound_bytes"] = static_cast<double>(engine_.plan().lower_bound());
        engine_.synchronize();
        device_.must_be_clean();
    }

private:
    using clock = std::chrono::steady_clock;
    enum part : std::size_t { context_part, build_part, plan_part, extras_part, execute_part, part_count };

    /// Calls to the device from here on.
    class counted_calls {
    public:
        explicit counted_calls(const eval_loop& of) : device_(of.device_), before_(of.device_.usage()) {
            if constexpr (!computes) launches_ = device_.launches();
        }
        void tell(std::map<std::string, double>& n, double evals) const {
            using device::call;
            const device::sim_usage now = device_.usage();
            const auto each = [&](const char* name, std::initializer_list<call> kinds) {
                std::size_t made = 0;
                for (const call c : kinds) made += now.count(c) - before_.count(c);
                n[std::string("device_") + name + "_per_eval"] = static_cast<double>(made) / evals;
            };
            each("allocations", {call::allocate, call::allocate_async});
            each("records", {call::record});
            each("waits", {call::wait});
            n["device_launches_per_eval"] = static_cast<double>(device_.launches() - launches_) / evals;
            n["device_live_events"] = static_cast<double>(now.live_events);
            n["device_peak_bytes"] = static_cast<double>(now.peak_bytes);
            n["races"] = static_cast<double>(now.races);
        }

    private:
        const Device& device_;
        device::sim_usage before_;
        std::size_t launches_ = 0;
    };

    void upload() {
        std::vector<tensor::tensor*> leaves;
        std::size_t offset = 0;
        for (const auto list : {model_.weights(), model_.caches()})
            for (const tensor::leaf& l : list) {
                leaves.push_back(l.of);
                if (!model_.info().full) continue;
                l.of->data = leaves_.at(offset);
                offset += align_up(l.of->bytes(), device::sim_device::alignment);
            }
        engine_.upload(leaves);
    }
    [[nodiscard]] std::size_t metadata_bytes() const {
        const tensor::context_need& need = model_.need();
        return tensor::context::required_bytes(need.tensors, need.graph_nodes, engine_type::bytes_behind_tensor);
    }

    tensor::loaded_model model_;
    reserved_addresses leaves_;  // of a full model, whose views need something to point into
    Device device_;
    std::size_t offload_;
    std::size_t offloaded_ = 0;
    std::size_t frames_;
    bool executes_;
    engine_type engine_;
    std::array<double, part_count> times_{};
    std::size_t evals_ = 0;
};

}  // namespace alloclab::bench
