// Extras: an eval's worth of them, and whether they come back.
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "catalogue.hpp"
#include "keep.hpp"
#include "observe.hpp"
#include "process.hpp"

namespace alloclab::bench {
namespace {

constexpr std::size_t warm_up = 5;  // evals: the ring has then been round once at 1061 tensors

/// An extra strategy and, for one that lives inside tensors, the tensors' room.
template <class S>
struct extras {
    using extra = typename S::extra_type;

    explicit extras(std::size_t tensors) {
        // Not written to, so that a first eval finds its pages as untouched as those of any other strategy.
        if constexpr (embedded_extra_strategy<S>) in_tensors = std::make_unique_for_overwrite<room[]>(tensors);
    }

    /// An extra for tensor `i` from the strategy that `find()` gives, written to as a backend does; nullptr when full.
    template <class Find>
    extra* take(lifetime life, [[maybe_unused]] std::size_t i, Find find) noexcept {
        extra* e = nullptr;
        if constexpr (embedded_extra_strategy<S>) e = find().acquire(life, &in_tensors[i]);
        else e = find().acquire(life);
        if (e == nullptr) return nullptr;
        e->place(0, this);
        keep(e);
        return e;
    }
    extra* take(lifetime life, std::size_t i) noexcept {
        return take(life, i, [this]() -> S& { return strategy; });
    }
    /// Temporaries for so many tensors; the number taken before the first refusal.
    template <class Find>
    std::size_t take_all(std::size_t tensors, Find find) noexcept {
        for (std::size_t i = 0; i < tensors; ++i)
            if (take(lifetime::temporary, i, find) == nullptr) return i;
        return tensors;
    }
    std::size_t eval(std::size_t tensors) noexcept {
        offload_scope scope(strategy);
        return take_all(tensors, [&]() -> S& { return scope.extras(); });
    }
    /// The same, but who takes an extra has no scope in hand and finds this thread's.
    std::size_t ambient_eval(std::size_t tensors) noexcept {
        const ambient_offload_scope scope(strategy);
        return take_all(tensors, []() -> S& { return ambient_offload_scope<S>::current()->extras(); });
    }

    S strategy;
    struct room {
        alignas(extra) std::byte bytes[sizeof(extra)];
    };
    std::unique_ptr<room[]> in_tensors;
};

/// Why not all tensors get an extra, "" when they do.
template <class S>
std::string refusal_of(std::size_t tensors) {
    const std::size_t fit = std::make_unique<extras<S>>(tensors)->eval(tensors);
    return fit == tensors ? "" : "full at " + std::to_string(fit) + " extras of an eval";
}

/// One eval, looked at after each extra.
template <class S>
memory_watch watch_eval(extras<S>& all, std::size_t tensors) {
    memory_watch memory;
    const auto look = [&] {
        const usage now = all.strategy.usage();
        memory.look(now.live * sizeof(typename S::extra_type), now.reserved_bytes);
    };
    look();
    {
        const offload_scope scope(all.strategy);
        for (std::size_t i = 0; i < tensors; ++i) {
            all.take(lifetime::temporary, i);
            look();
        }
    }
    look();
    return memory;
}

/// `eval(all)` is what the loop times.
template <class S, class Eval>
void observe_evals(std::size_t tensors, observations& seen, Eval eval) {
    const auto all = std::make_unique<extras<S>>(tensors);
    for (std::size_t i = 0; i < warm_up; ++i) eval(*all);
    count_rounds(
        seen, "eval", [&] { eval(*all); }, [&] { return all->strategy.usage(); });
    const memory_watch memory = watch_eval(*all, tensors);
    memory.tell_peaks(seen);
    memory.tell_timeline(seen);
    seen.counters["requested_bytes"] = static_cast<double>(tensors * sizeof(typename S::extra_type));
}

/// One extra after another, the eval ended and the next begun behind each last tensor.
template <class S>
std::function<void()> endless_evals(std::size_t tensors) {
    const auto all = std::make_shared<extras<S>>(tensors);
    for (std::size_t i = 0; i < warm_up; ++i) all->eval(tensors);
    all->strategy.begin_eval();
    return [all, tensors, i = std::size_t{0}]() mutable {
        all->take(lifetime::temporary, i);
        if (++i < tensors) return;
        i = 0;
        all->strategy.end_eval();
        all->strategy.begin_eval();
    };
}

template <class S>
measurement evals(std::size_t tensors) {
    measurement m;
    m.refusal = refusal_of<S>(tensors);
    if (!m.refusal.empty()) return m;
    m.operations = static_cast<double>(tensors);
    m.loop = [tensors](benchmark::State& state) {
        const auto all = std::make_unique<extras<S>>(tensors);
        for (std::size_t i = 0; i < warm_up; ++i) all->eval(tensors);
        for (auto _ : state) benchmark::DoNotOptimize(all->eval(tensors));
    };
    m.single = [tensors] { return endless_evals<S>(tensors); };
    m.observe = [tensors](observations& seen) {
        observe_evals<S>(tensors, seen, [tensors](extras<S>& all) { all.eval(tensors); });
    };
    return m;
}

/// `prepare(all)` before each eval that is timed, which `fresh` says begins with a strategy made anew.
template <class S, class Prepare>
measurement timed_evals(std::size_t tensors, bool fresh, Prepare prepare) {
    measurement m;
    m.refusal = refusal_of<S>(tensors);
    if (!m.refusal.empty()) return m;
    m.operations = static_cast<double>(tensors);
    m.times_itself = true;
    m.loop = [=](benchmark::State& state) {
        using clock = std::chrono::steady_clock;
        auto all = std::make_unique<extras<S>>(tensors);
        for (std::size_t i = 0; i < warm_up; ++i) all->eval(tensors);
        for (auto _ : state) {
            if (fresh) all.reset();
            prepare();
            if (fresh) all = std::make_unique<extras<S>>(tensors);
            const auto start = clock::now();
            benchmark::DoNotOptimize(all->eval(tensors));
            state.SetIterationTime(std::chrono::duration<double>(clock::now() - start).count());
        }
    };
    return m;
}

template <class S>
measurement cold_evals(const parameters& p) {
    static constexpr std::size_t tensors = 64;
    const bool cold = p.at("cache") == "cold";
    measurement m = timed_evals<S>(tensors, false, [cold] {
        if (cold) cool_caches();
    });
    m.observe = [](observations& seen) { observe_evals<S>(tensors, seen, [](extras<S>& all) { all.eval(tensors); }); };
    m.iterations = cold ? 24 : 0;  // each takes a hundred times as long as what is timed of it
    return m;
}

template <class S>
measurement first_evals(const parameters& p) {
    const std::size_t tensors = number(p, "tensors");
    measurement m = timed_evals<S>(tensors, true, forget_free_pages);
    if (!m.refusal.empty()) return m;
    m.iterations = 8;
    m.observe = [tensors](observations& seen) {
        forget_free_pages();
        const auto all = std::make_unique<extras<S>>(tensors);
        const double faults = minor_faults();
        all->eval(tensors);
        seen.counters["faults_first"] = minor_faults() - faults;
        seen.counters["source_calls_first"] = static_cast<double>(all->strategy.usage().source_calls);
        seen.counters["leaked"] = static_cast<double>(all->strategy.usage().live);
        watch_eval(*all, tensors).tell_peaks(seen);
    };
    return m;
}

template <class S>
measurement scopes(const parameters& p) {
    static constexpr std::size_t tensors = 1061;
    const bool ambient = p.at("scope") == "thread_local";
    measurement m;
    m.operations = tensors;
    const auto set = [&m](auto eval) {
        m.loop = [eval](benchmark::State& state) {
            const auto all = std::make_unique<extras<S>>(tensors);
            for (std::size_t i = 0; i < warm_up; ++i) eval(*all);
            for (auto _ : state) benchmark::DoNotOptimize(eval(*all));
        };
        m.observe = [eval](observations& seen) { observe_evals<S>(tensors, seen, eval); };
    };
    if (ambient) set([](extras<S>& all) { return all.ambient_eval(tensors); });
    else set([](extras<S>& all) { return all.eval(tensors); });
    return m;
}

template <class S>
measurement growth_over_evals(const parameters& p) {
    static constexpr std::size_t tensors = 200, count = 1000;
    const bool persistent = p.at("lifetime") == "persistent";
    return {
        .observe =
            [persistent](observations& seen) {
                const auto all = std::make_unique<extras<S>>(tensors);
                const auto usage = [&] { return all->strategy.usage(); };
                std::vector<typename S::extra_type*> of_model;
                for (std::size_t i = 0; persistent && i < tensors; ++i)
                    of_model.push_back(all->take(lifetime::persistent, i));
                auto& live = seen.series["live_extras"];
                auto& bytes = seen.series["reserved_bytes"];
                for (std::size_t i = 0; i < count; ++i) {
                    all->eval(persistent ? 0 : tensors);
                    live.push_back(static_cast<double>(usage().live));
                    bytes.push_back(static_cast<double>(usage().reserved_bytes));
                }
                seen.counters["leaked"] = (live.back() - live.front()) / (count - 1);
                for (typename S::extra_type* e : of_model) all->strategy.release(e);
                seen.counters["left_after_model"] = static_cast<double>(usage().live);
            },
    };
}

/// Those of the strategy with that name in `Strategies`.
template <class Strategies>
measurement evals_of(std::string_view strategy, std::size_t tensors) {
    measurement made;
    Strategies::for_each([&](auto tag) {
        using S = typename decltype(tag)::type;
        if (S::name == strategy) made = evals<S>(tensors);
    });
    return made;
}

/// Extras of type `All` are cleared at birth, of `Used` only the fields in use are written.
template <class All, class Used>
void add_evals(catalogue& c, std::string name, const std::string& size, std::string question, std::vector<axis> axes) {
    c.add<extra_strategies<All>>({.name = std::move(name),
                                  .kind = "extra",
                                  .title = "Give each of an eval's tensors an extra of " + size + ", then end the eval",
                                  .question = std::move(question),
                                  .unit = "ns/extra",
                                  .baseline = "",
                                  .axis = "tensors"},
                                 std::move(axes), [](auto tag, const parameters& p) {
                                     using S = typename decltype(tag)::type;
                                     const std::size_t tensors = number(p, "tensors");
                                     return p.at("clear") == "all" ? evals<S>(tensors)
                                                                   : evals_of<extra_strategies<Used>>(S::name, tensors);
                                 });
}

}  // namespace

void add_extra_workloads(catalogue& c) {
    constexpr std::size_t most = 1'000'000;
    const axis few{"tensors", {"64", "1061"}, {"1061"}, 1, most};
    const axis one{"tensors", {"1061"}, {"1061"}, 1, most, {"64", "1061"}};
    const axis clear{"clear", {"all", "used"}, {"all", "used"}};
    const axis rather_all{"clear", {"all", "used"}, {"all"}};
    add_evals<device::tensor_extra, device::lazy_tensor_extra>(
        c, "extra/eval", "1152 bytes",
        "What the bookkeeping of a GPU backend costs per tensor, by the number of tensors, and how much of it is left "
        "when only the fields in use are written instead of all cleared",
        {{.name = "heap", .values = {"aged"}, .quick = {"aged"}, .full = {"aged", "bare", "littered"}},
         clear,
         {.name = "tensors",
          .values = {"64", "1061", "8192"},
          .quick = {"64", "1061"},
          .lowest = 1,
          .highest = most,
          .full = {"16", "64", "256", "1061", "4096", "8192"}}});
    add_evals<device::legacy_tensor_extra, device::lazy_legacy_tensor_extra>(
        c, "extra/eval_256", "256 bytes, the size of mid-2023", "How much of it is clearing memory", {rather_all, one});
    add_evals<device::compact_tensor_extra, device::lazy_compact_tensor_extra>(
        c, "extra/eval_72", "72 bytes, for one device", "What is left when an extra has only the fields in use",
        {rather_all, one});
    using strategies = extra_strategies<device::tensor_extra>;
    c.add<strategies>(
        {.name = "extra/first_eval",
         .kind = "extra",
         .title = "The first eval of a strategy just made, in a heap without a free page at hand",
         .question = "What a cold start costs, which reuse hides in all later evals",
         .unit = "ns/extra",
         .baseline = "",
         .axis = "tensors"},
        {{.name = "heap", .values = {"bare"}, .quick = {"bare"}, .full = {"bare", "aged", "littered"}}, few},
        [](auto tag, const parameters& p) { return first_evals<typename decltype(tag)::type>(p); });
    c.add<strategies>({.name = "extra/cold",
                       .kind = "extra",
                       .title = "One eval of 64 extras, caches warm or cold: after 4 MiB of other memory were written",
                       .question = "What the bookkeeping costs when the work between two evals has emptied the caches; "
                                   "a 64th of one reading of the clock is in each extra",
                       .unit = "ns/extra",
                       .baseline = "",
                       .axis = "cache"},
                      {{"cache", {"warm", "cold"}, {"warm", "cold"}}},
                      [](auto tag, const parameters& p) { return cold_evals<typename decltype(tag)::type>(p); });
    c.add<strategies>(
        {.name = "extra/scope",
         .kind = "extra",
         .title = "An eval of 1061 extras in a scope that is passed on, or found through thread-local state",
         .question = "Whether an explicit offload context costs more than thread-local state",
         .unit = "ns/extra",
         .baseline = "",
         .axis = "scope"},
        {{"scope", {"explicit", "thread_local"}, {"explicit", "thread_local"}}},
        [](auto tag, const parameters& p) { return scopes<typename decltype(tag)::type>(p); });
    c.add<strategies>({.name = "extra/growth",
                       .kind = "extra",
                       .title = "Live extras over 1000 evals of 200 offloaded tensors, temporary or the model's own",
                       .question = "Which strategies give back what an eval took, and which what a model took "
                                   "(llama.cpp#2145)",
                       .unit = "extras",
                       .baseline = "",
                       .axis = ""},
                      {{"lifetime", {"temporary", "persistent"}, {"temporary", "persistent"}}},
                      [](auto tag, const parameters& p) { return growth_over_evals<typename decltype(tag)::type>(p); });
}

}  // namespace alloclab::bench
