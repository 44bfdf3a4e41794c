#include "bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "bar_figures.hpp"
#include "blocks.hpp"
#include "claim_words.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

/// How many of the operation an eval makes: a context, or one for each tensor that is offloaded or in the graph.
enum class per_eval { one, offloaded, nodes, none };

struct entry {
    const char* figure;
    measure by;
    limits held_to;
    per_eval times = per_eval::one;
    bool counted = false;
};

/// The one place that knows the peers' workloads, their parameters, strategies and limits.
const std::vector<entry>& table() {
    static const std::vector<std::string> all_ggml{"ggml_pool", "ggml_heap"};
    static const std::vector<entry> all{
        {"slot pair, inlined, to malloc",
         ratio_of({.workload = "peers/slots",
                   .ours = "magazine_pool",
                   .rivals = {"malloc"},
                   .axis = "live",
                   .values = {"0"}}),
         {0.15, 0.10}},
        {"instructions of a slot pair, inlined",
         most_of({.workloads = {"peers/slots"},
                  .counter = "instructions",
                  .ours = "magazine_pool",
                  .where = {{"live", "0"}},
                  .asked_with = " -p live=0 --instructions"}),
         {22},
         per_eval::none,
         true},
        {"slot pair through the C interface, to malloc",
         ratio_of({.workload = "peers/slots",
                   .ours = "c_magazine_pool",
                   .rivals = {"malloc"},
                   .axis = "live",
                   .values = {"0"}}),
         {0.30, 0.25}},
        {"48 slots in random order, to no allocator",
         ratio_of({.workload = "peers/random",
                   .ours = "magazine_pool",
                   .rivals = {"no_allocator"},
                   .axis = "live",
                   .values = {"48"}}),
         {1.20, 1.10}},
        {"release by another thread, to malloc",
         ratio_of(
             {.workload = "peers/foreign", .ours = "owner_pool", .rivals = {"malloc"}, .beside = {"magazine_pool"}}),
         {0.35, 0.20}},
        {"throughput of 2 threads, to 1",
         ratio_of({.workload = "peers/threads",
                   .ours = "magazine_pool",
                   .rivals = {"magazine_pool"},
                   .axis = "threads",
                   .values = {"1"},
                   .rival_value = "2",
                   .factor = 2}),
         {1.9, 2.0, true}},
        {"slots, live < 64: worst to best",
         worst_to_best({"peers/slots", "magazine_hybrid", "live", {"0", "8", "32", "63"}}),
         {1.3, 1.1}},
        {"slots, live ≥ 64: worst to best",
         worst_to_best({"peers/slots", "magazine_hybrid", "live", {"128", "1024"}}),
         {1.3, 1.1}},
        {"context init and free, to ggml",
         ratio_of({.workload = "peers/contexts",
                   .ours = "magazine_hybrid",
                   .rivals = all_ggml,
                   .axis = "live",
                   .values = {"0", "8", "32", "63"}}),
         {0.35, 0.15}},
        {"extras, uncleared, to no allocator",
         ratio_of({.workload = "peers/extras", .ours = "bump_arena", .rivals = {"no_allocator"}}),
         {1.2, 1.05},
         per_eval::offloaded},
        {"extras on a bare heap, to new",
         ratio_of({.workload = "peers/extras",
                   .ours = "bump_arena",
                   .rivals = {"new_delete"},
                   .axis = "heap",
                   .values = {"bare"}}),
         {0.02, 0.005},
         per_eval::offloaded},
        {"page faults per eval, from the second on",
         most_of({.workloads = {"peers/extras", "peers/graph"},
                  .counter = "faults_per_eval",
                  .except = {"new_delete", "malloc", "mimalloc", "jemalloc", "tcmalloc", "pmr_monotonic", "ggml_pool",
                             "ggml_heap"}}),
         {0, 0},
         per_eval::none,
         true},
        {"decode graph, per node, to ggml",
         ratio_of({.workload = "peers/graph", .ours = "fixed", .rivals = all_ggml, .beside = {"last_order"}}),
         {0.35, 0.20},
         per_eval::nodes},
        {"growing context, to a fixed one",
         ratio_of({.workload = "peers/graph", .ours = "growing", .rivals = {"fixed"}}),
         {1.03, 1.00},
         per_eval::nodes},
        {"cost per node, 10³ to 10⁶: worst to best",
         worst_to_best({"peers/nodes", "fixed", "nodes", {"1000", "10000", "100000", "1000000"}}),
         {1.5, 1.2},
         per_eval::nodes},
    };
    return all;
}

/// ns of one `unit`, such as "us/eval"; 0 for another quantity.
double nanoseconds(const std::string& unit) {
    const std::string name = unit.substr(0, unit.find('/'));
    for (const auto& [such, ns] : {std::pair{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}) {
        if (name == such) return ns;
    }
    return 0;
}

std::optional<double> median_ns(const cell& c, const workload& on) {
    const auto middle = median_of(c);
    const double ns = nanoseconds(on.unit);
    return middle && *middle > 0 && ns > 0 ? std::optional{ns * *middle} : std::nullopt;
}

struct whole_eval {
    const cell* of = nullptr;
    double ns = 0, nodes = 0, offloaded = 0;
};

/// The fastest eval that was computed: against a slower one every share would look smaller.
whole_eval fastest_eval(const roster& cells, const run& r) {
    whole_eval best;
    for (const workload& w : r.workloads) {
        for (const roster::entry& e : cells.of(w.name)) {
            const auto& n = e.of->counters;
            const auto nodes = n.find("nodes"), offloaded = n.find("offloaded");
            if (!e.of->parts.contains("compute") || nodes == n.end() || offloaded == n.end()) continue;
            const auto ns = median_ns(*e.of, w);
            if (ns && (best.of == nullptr || *ns < best.ns)) best = {e.of, *ns, nodes->second, offloaded->second};
        }
    }
    return best;
}

sentence in_words(const whole_eval& e) {
    if (e.of == nullptr) return {};
    const std::string setting = describe(e.of->parameters);
    sentence s{{piece::kind::plain, "Shares are of one eval of "}, name_of(e.of->strategy)};
    add(s, fmt::format(" in {}{}: {} µs with its computing, for {} nodes, {} of them offloaded, in one context.",
                       e.of->workload, setting.empty() ? "" : " (" + setting + ')', figure(e.ns / 1000), count(e.nodes),
                       count(e.offloaded)));
    return s;
}

void add_share(bar& b, const cell& ours, per_eval times, const whole_eval& e) {
    const auto ns = b.on == nullptr ? std::nullopt : median_ns(ours, *b.on);
    if (times == per_eval::none || e.of == nullptr || !ns) return;
    const double n = times == per_eval::one ? 1 : times == per_eval::nodes ? e.nodes : e.offloaded;
    const std::size_t slash = b.on->unit.find('/');
    const std::string one = slash == std::string::npos ? "operation" : b.on->unit.substr(slash + 1);
    b.share = n * *ns / e.ns;
    b.per_eval = fmt::format("{} {}{}", count(n), one, n == 1 ? "" : "s");
}

std::optional<double> instructions_of(const cell* c) {
    if (c == nullptr) return std::nullopt;
    const auto n = c->counters.find("instructions");
    return n == c->counters.end() ? std::nullopt : std::optional{n->second};
}

/// "0.41 (interval 0.40 to 0.43)"
sentence told(const part& p) {
    sentence s{figure_of(figure(*p.value))};
    if (!p.bounds) add(s, " (no interval: " + p.why + ')');
    else if (p.bounds->low < p.bounds->high)
        add(s, fmt::format(" (interval {} to {})", figure(p.bounds->low), figure(p.bounds->high)));
    return s;
}

/// "Not told: a / b, live = 8 (not run)."
void tell_missing(bar& b, const std::vector<const part*>& missing) {
    std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
    for (const part* p : missing) {
        auto with = std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& x) { return x.first == p->why; });
        if (with == by_reason.end()) with = by_reason.insert(with, {p->why, {}});
        with->second.push_back(p->where);
    }
    for (const auto& [why, who] : by_reason)
        b.evidence.push_back(words(fmt::format("Not told: {} ({}).", fmt::join(who, "; "), why)));
}

bar judged(const entry& e, const roster& cells, const whole_eval& eval) {
    const measured_parts m = e.by(cells);
    bar b{.figure = e.figure, .held_to = e.held_to, .counted = e.counted, .on = m.on};
    std::vector<const part*> missing;
    const part* nearest = nullptr;  // to missing the bar, or the furthest beyond it
    std::size_t told_parts = 0;
    for (const part& p : m.parts) {
        if (!p.value) {
            missing.push_back(&p);
            continue;
        }
        ++told_parts;
        const grade g = grade_of(p.bounds, e.held_to);
        const bool worse =
            nearest != nullptr && (e.held_to.at_least ? *p.value < *nearest->value : *p.value > *nearest->value);
        if (nearest == nullptr || g < b.graded || (g == b.graded && worse)) nearest = &p, b.graded = g;
    }
    if (nearest == nullptr) {
        tell_missing(b, missing);
        b.evidence.push_back(m.would_tell);
        return b;
    }
    if (!missing.empty()) b.graded = std::min(b.graded, grade::undecided);
    b.value = nearest->value;
    b.bounds = nearest->bounds;
    b.where = nearest->where;
    b.instructions = instructions_of(nearest->ours);
    b.their_instructions = instructions_of(nearest->theirs);
    if (nearest->ours != nullptr) add_share(b, *nearest->ours, e.times, eval);

    const bool straddles = grade_of(nearest->bounds, e.held_to) == grade::undecided && nearest->bounds;
    if (b.graded == grade::missed || told_parts > 1 || straddles || !nearest->bounds) {
        sentence s = words((told_parts > 1 ? fmt::format("The hardest of {} is ", told_parts) : "") + b.where + ": ");
        add(s, told(*nearest));
        add(s, b.graded == grade::missed ? ", where the bar is " + in_words(e.held_to) + '.'
               : straddles               ? ", which reaches over the bar of " + exact(e.held_to.bar) + '.'
                                         : ".");
        b.evidence.push_back(std::move(s));
    }
    for (const part& p : m.beside) {
        if (!p.value) continue;
        sentence s = words("Beside it, " + p.where + ": ");
        add(s, told(p));
        add(s, ".");
        b.evidence.push_back(std::move(s));
    }
    if (!missing.empty()) tell_missing(b, missing), b.evidence.push_back(m.would_tell);
    return b;
}

}  // namespace

std::string_view to_string(grade g) noexcept {
    constexpr std::array<std::string_view, 5> words{"missed", "undecided", "reached", "stretch reached", "unmeasured"};
    return words[static_cast<std::size_t>(g)];
}

std::string in_words(const limits& to) {
    return fmt::format("at {} {}", to.at_least ? "least" : "most", exact(to.bar));
}

grade grade_of(const std::optional<interval>& bounds, const limits& to) noexcept {
    if (!bounds) return grade::undecided;
    const auto [best, worst] =
        to.at_least ? std::pair{bounds->high, bounds->low} : std::pair{bounds->low, bounds->high};
    const auto meets = [&](double value, double limit) { return to.at_least ? value >= limit : value <= limit; };
    if (to.stretch && meets(worst, *to.stretch)) return grade::stretch;
    return meets(worst, to.bar) ? grade::reached : meets(best, to.bar) ? grade::undecided : grade::missed;
}

bool has_peers(const book& b) {
    return std::any_of(b.chapters.begin(), b.chapters.end(), [](const chapter& ch) { return ch.on->kind == "peer"; });
}

bar_list bars_of(const book& b) {
    bar_list list;
    if (!has_peers(b)) return list;
    const roster cells(b.of);
    const whole_eval eval = fastest_eval(cells, b.of);
    list.eval = in_words(eval);
    for (const entry& e : table()) list.bars.push_back(judged(e, cells, eval));
    std::stable_sort(list.bars.begin(), list.bars.end(),
                     [](const bar& x, const bar& y) { return x.graded < y.graded; });
    return list;
}

}  // namespace alloclab::report
