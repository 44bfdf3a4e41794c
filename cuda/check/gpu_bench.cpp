// gpu_bench: what extra strategies, frames and memory cost on this GPU. JSON lines on standard output:
//
//   {"bench":"evals","strategy":NAME,"frames":N,"rounds":N,"evals":N,"host_ns":N,"host_ns_least":N,"host_ns_most":N,
//    "wall_ns":N,...}      one decode step of a small model; host: the host's own work up to the submission, with one
//                          frame the wait for the device too; wall: from eval to eval while they follow one another
//   {"bench":"memory","strategy":NAME,"bytes":N,"rounds":N,"pair_ns":N,...}    a block taken and given back on a stream
//   {"done":true}
//
// Medians over rounds, with the least and the most; in each round every variant is measured once, in an order drawn
// anew, so that a change of the machine's speed meets all of them. gpu_bench [SECONDS] (30): rounds are added until so
// many are over, five at least. Exit: 0, 1 a call failed, 2 usage, 77 and {"skip":WHY} where there is no device.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "alloclab/device/cuda_device.hpp"
#include "alloclab/device/stream_pool.hpp"
#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/registry.hpp"
#include "alloclab/tensor/engine.hpp"
#include "alloclab/tensor/models/load.hpp"
#include "alloclab/tensor/models/registry.hpp"
#include "figures.hpp"
#include "program.hpp"

namespace alloclab::device::check {
namespace {

constexpr std::size_t least_rounds = 5;
constexpr std::string_view model_name = "llama-2-7b-small";

/// One way to do something: its label, and one round of it.
struct variant {
    std::function<void()> round;
    std::function<void()> tell;
};

void with_figures(line& l, const std::string& name, const std::vector<double>& samples) {
    const figures f(samples);
    l.with(name, f.median()).with(name + "_least", f.least()).with(name + "_most", f.most());
}

template <class Extras>
class eval_loop {
    using engine_type = tensor::engine<hybrid<tensor::context>, Extras, cuda_device>;
    static constexpr std::size_t evals = 20;  // of a round

public:
    eval_loop(cuda_device& d, std::size_t frames)
        : model_(*tensor::find_model(model_name), 7, engine_type::bytes_behind_tensor),
          engine_(d, {.context_bytes = std::size_t{1} << 20, .growing = {}, .reset_context = true, .frames = frames}),
          frames_(frames) {
        std::vector<tensor::tensor*> all;
        for (const auto list : {model_.weights(), model_.caches()})
            for (const tensor::leaf& l : list) all.push_back(l.of);
        engine_.upload(all);
        model_.prepare(tensor::phase::decode, {1, 8});
        for (std::size_t i = 0; i < frames; ++i) (void)one();
        engine_.synchronize();
    }

    void round() {
        double host = 0;
        const double wall = time_of([&] {
            for (std::size_t i = 0; i < evals; ++i) host += one();
            engine_.synchronize();
        });
        host_.push_back(host / evals);
        wall_.push_back(wall / evals);
    }
    void tell() const {
        line l;
        l.with("bench", "evals").with("model", model_name).with("strategy", Extras::name).with("frames", frames_);
        l.with("rounds", host_.size()).with("evals", evals);
        with_figures(l, "host_ns", host_);
        with_figures(l, "wall_ns", wall_);
    }

private:
    // The host's own part: the wait for a frame that is still in use, in begin_eval, is none of it.
    double one() {
        auto eval = engine_.begin_eval();
        return time_of([&] {
            tensor::graph& g = *eval.new_graph(model_.need().graph_nodes);
            model_.build(eval.context(), g);
            mark_offloaded(g, too_many);
            eval.plan(g);
            eval.attach(g);
            for (const tensor::input_value& in : model_.inputs())
                std::memcpy(in.leaf->data, in.value, in.leaf->bytes());
            eval.submit(g);
        });
    }

    tensor::loaded_model model_;
    engine_type engine_;
    std::size_t frames_;
    std::vector<double> host_;
    std::vector<double> wall_;
};

/// Pairs of take() and give(), between which the stream gets a fill of the block's first bytes.
class memory_pairs {
    static constexpr std::size_t pairs = 50;  // of a round

public:
    memory_pairs(cuda_device& d, std::string_view name, std::size_t bytes) : device_(d), name_(name), bytes_(bytes) {
        if (name == "stream_pool") pool_ = std::make_unique<stream_pool<cuda_device>>(d);
        round();
        samples_.clear();
    }
    memory_pairs(const memory_pairs&) = delete;
    memory_pairs& operator=(const memory_pairs&) = delete;
    ~memory_pairs() {
        pool_.reset();
        device_.destroy(stream_);
    }

    void round() {
        const double all = time_of([&] {
            for (std::size_t i = 0; i < pairs; ++i) {
                void* p = take();
                if (p == nullptr || !device_.fill(p, std::byte{1}, 512, stream_))
                    throw std::runtime_error(std::string(device_.last_error()));
                give(p);
            }
            device_.synchronize(stream_);
        });
        samples_.push_back(all / pairs);
    }
    void tell() const {
        line l;
        l.with("bench", "memory").with("strategy", name_).with("bytes", bytes_).with("rounds", samples_.size());
        with_figures(l, "pair_ns", samples_);
    }

private:
    void* take() {
        if (pool_ != nullptr) return pool_->allocate(bytes_, stream_);
        return name_ == "cudaMalloc" ? device_.allocate(bytes_) : device_.allocate(bytes_, stream_);
    }
    void give(void* p) {
        if (pool_ != nullptr) pool_->deallocate(p, stream_);
        else if (name_ == "cudaMalloc") device_.deallocate(p);
        else device_.deallocate(p, stream_);
    }

    cuda_device& device_;
    std::string_view name_;
    std::size_t bytes_;
    stream stream_ = device_.create_stream();
    std::unique_ptr<stream_pool<cuda_device>> pool_;
    std::vector<double> samples_;
};

template <class V, class... Arguments>
void add(std::vector<variant>& all, Arguments&&... arguments) {
    auto made = std::make_shared<V>(std::forward<Arguments>(arguments)...);
    all.push_back({[made] { made->round(); }, [made] { made->tell(); }});
}

void measure(const std::vector<variant>& all, double seconds) {
    const double deadline = now_ns() + seconds * 1e9;
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937 drawn(1);
    for (std::size_t round = 0; round < least_rounds || (round < 100 && now_ns() < deadline); ++round) {
        std::shuffle(order.begin(), order.end(), drawn);
        for (const std::size_t i : order) all[i].round();
    }
    for (const variant& v : all) v.tell();
}

void measure_all(double seconds) {
    cuda_device d;
    line().with("device", d.device_name());
    {
        std::vector<variant> evals;
        extra_strategies<tensor_extra>::for_each([&](auto tag) {
            for (const std::size_t frames : {1U, 2U, 4U})
                add<eval_loop<typename decltype(tag)::type>>(evals, d, frames);
        });
        measure(evals, seconds * 2 / 3);
    }
    std::vector<variant> memory;
    for (const std::size_t bytes : {std::size_t{4} << 10, std::size_t{1} << 20, std::size_t{64} << 20})
        for (const std::string_view name : {"cudaMalloc", "cudaMallocAsync", "stream_pool"})
            add<memory_pairs>(memory, d, name, bytes);
    measure(memory, seconds / 3);
}

}  // namespace

int program(int argc, char** argv) {
    double seconds = 30;
    if (argc == 2) seconds = std::strtod(argv[1], nullptr);
    if (argc > 2 || !(seconds > 0)) {
        line().with("error", "usage: gpu_bench [SECONDS]");
        return 2;
    }
    const cuda_presence there = find_cuda();
    if (there.devices.empty()) {
        line().with("skip", there.why_none);
        return 77;
    }
    try {
        measure_all(seconds);
    } catch (const std::exception& e) {
        line().with("error", e.what());
        return 1;
    }
    line().with("done", true);
    return 0;
}

}  // namespace alloclab::device::check
