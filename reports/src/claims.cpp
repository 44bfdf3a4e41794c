#include "claims.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "claim_rules.hpp"

namespace alloclab::report {
namespace {

struct entry {
    const char* id;
    const char* says;
    const char* source;
    std::vector<rule> rules;  ///< all must hold
};

/// The one place that knows workloads, parameters and strategies by name.
const std::vector<entry>& table() {
    static const spill pool{.workloads = {"context/slots", "context/replace", "context/init_free",
                                          "context/whisper_states", "context/multi_gpu_load"},
                            .bounded = "static_pool",
                            .spilling = "hybrid",
                            .unbounded = "heap_malloc"};
    static const lifetimes extras{.workload = "extra/growth",
                                  .series = "live_extras",
                                  .parameter = "lifetime",
                                  .temporary = "temporary",
                                  .persistent = "persistent",
                                  .left = "left_after_model"};
    static const std::vector<std::string> bare_extras{"extra/eval", "extra/eval_256", "extra/eval_72"};
    static const std::vector<entry> all{
        {"scan-against-malloc",
         "malloc is faster than scanning a pool for a free slot",
         "whisper.cpp#2525",
         {contested({.workloads = {"context/slots"}, .first = "heap_malloc", .second = "scan_pool"})}},
        {"aligned-malloc",
         "aligned malloc is overkill for contexts: plain malloc is faster",
         "whisper.cpp#2525",
         {contested({.workloads = {"context/slots", "context/init_free"},
                     .first = "heap_malloc",
                     .second = "heap_aligned_malloc"})}},
        {"states-limit",
         "4 contexts per state instead of 7 lift the limit from 9 states to 15",
         "whisper.cpp#2525",
         {serves_up_to({.workload = "context/whisper_states",
                        .strategy = "static_pool",
                        .along = "states",
                        .parameter = "contexts",
                        .most = {{"7", 9}, {"4", 15}}})}},
        {"hybrid",
         "hybrid removes the pool's limit at no cost",
         "whisper.cpp#2525",
         {never_refuses(pool), spills_at_no_cost(pool)}},
        {"contexts-in-inference",
         "avoiding the allocations of contexts during inference does not matter",
         "whisper.cpp#2525",
         {gains_nothing({"eval/contexts", "heap_malloc", "context", "compute"})}},
        {"reset",
         "reset beats free and init",
         "whisper.cpp#2525",
         {contested({.workloads = {"context/renew", "eval/contexts", "eval/buffers"},
                     .parameter = "context",
                     .first = "reset",
                     .second = "fresh"})}},
        {"growing-buffers",
         "buffers that grow cost nothing",
         "llama.cpp#23432",
         {contested({.workloads = {"eval/buffers"},
                     .parameter = "buffer",
                     .first = "growing",
                     .second = "fixed",
                     .expected = aim::no_slower,
                     .apart = "context"})}},
        {"extras-in-inference",
         "avoiding the allocations of extras during inference does not matter",
         "llama.cpp#2146",
         {gains_nothing({"eval/extras", "per_tensor", "extras", "compute"})}},
        {"counter-reset",
         "a buffer with a counter that is reset per eval ends the leak of extras",
         "llama.cpp#2146",
         {ends_leak(extras, "bump_arena", "leaky")}},
        {"temporaries-leak", "only temporaries leak", "llama.cpp#2145", {leaks_temporaries_alone(extras)}},
        {"free-list",
         "a free list is as good as a bump arena",
         "llama.cpp#2146",
         {contested(
              {.workloads = bare_extras, .first = "free_list", .second = "bump_arena", .expected = aim::no_slower}),
          contested({.workloads = bare_extras,
                     .first = "free_list",
                     .second = "bump_arena",
                     .expected = aim::no_more,
                     .counter = "reserved_bytes",
                     .apart = ""})}},
        {"extra-in-tensor",
         "embedding the extra in the tensor costs nothing",
         "llama.cpp#2146",
         {contested({.workloads = {"eval/extras"},
                     .first = "inline_extra",
                     .second = "bump_arena",
                     .expected = aim::no_slower}),
          contested({.workloads = {"eval/extras"},
                     .first = "inline_extra",
                     .second = "bump_arena",
                     .expected = aim::no_more,
                     .counter = "reserved_bytes",
                     .per = "nodes"})}},
        {"explicit-scope",
         "an explicit offload context costs no more than thread-local state",
         "llama.cpp#2146",
         {contested({.workloads = {"extra/scope"},
                     .parameter = "scope",
                     .first = "explicit",
                     .second = "thread_local",
                     .expected = aim::no_slower})}},
    };
    return all;
}

/// One part that fails is enough; one that was not run leaves the rest undecided.
ruling together(const std::vector<answer>& parts) {
    const auto any = [&](ruling r) {
        return std::any_of(parts.begin(), parts.end(), [r](const answer& a) { return a.ruled == r; });
    };
    for (const ruling r : {ruling::fails, ruling::depends, ruling::undecided}) {
        if (any(r)) return r;
    }
    return !any(ruling::holds) ? ruling::unmeasured : any(ruling::unmeasured) ? ruling::undecided : ruling::holds;
}

}  // namespace

std::string_view to_string(ruling r) noexcept {
    constexpr std::array<std::string_view, 5> words{"holds", "fails", "depends", "undecided", "unmeasured"};
    return words[static_cast<std::size_t>(r)];
}

std::vector<claim> claims_of(const book& b) {
    const roster cells(b.of);
    std::vector<claim> all;
    for (const entry& e : table()) {
        std::vector<answer> parts;
        std::transform(e.rules.begin(), e.rules.end(), std::back_inserter(parts),
                       [&](const rule& apply) { return apply(cells); });
        claim& c = all.emplace_back(claim{e.id, e.says, e.source, together(parts)});
        for (answer& a : parts) {
            for (sentence& s : a.evidence) {
                const bool said = std::any_of(c.evidence.begin(), c.evidence.end(),
                                              [&](const sentence& other) { return plain(other) == plain(s); });
                if (!said) c.evidence.push_back(std::move(s));
            }
            if (c.ruled == ruling::depends) c.flips.insert(c.flips.end(), a.flips.begin(), a.flips.end());
            if (c.on == nullptr && a.ruled != ruling::unmeasured) c.on = a.on;
        }
    }
    return all;
}

}  // namespace alloclab::report
