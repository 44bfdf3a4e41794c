#include "experiment.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "alloclab/report/verdicts.hpp"
#include "order.hpp"
#include "progress.hpp"

namespace alloclab::bench {
namespace {

constexpr std::size_t latency_count = 100'000;
constexpr std::size_t quick_latency_count = 10'000;

template <class... Values>
std::string in_words(const char* format, Values... values) {
    std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, values...)), '\0');
    std::snprintf(text.data(), text.size() + 1, format, values...);
    return text;
}

bool has_several_threads(const parameters& where) { return where.contains("threads") && number(where, "threads") > 1; }

class experiment {
public:
    experiment(const plan& p, const std::vector<group>& groups, report::run& r, const instruments& with)
        : plan_(p), run_(r), with_(with), before_(r.seconds) {
        for (const report::cell& c : r.cells)
            for (const report::sample& s : c.samples) {
                turn_ = std::max(turn_, s.turn);
                first_block_ = std::max(first_block_, s.block);
            }
        std::size_t next = 0;
        for (const group& g : groups) {
            places& beside = groups_.emplace_back();
            for (const job& j : g) {
                report::cell& c = r.cells.at(next++);
                place at{.what = &j, .cell = &c, .settled = !c.refusal.empty(), .failed_before = !c.error.empty()};
                c.error.clear();  // what failed is tried once more
                // The last block may have been broken off between cells of a group.
                if (!c.samples.empty() && c.samples.back().block == first_block_) {
                    at.aside = c.samples.back();
                    c.samples.pop_back();
                }
                beside.push_back(at);
            }
        }
    }

    void carry_out(const std::function<void()>& save) {
        run_.partial = true;
        take_counts();
        const auto keep_so_far = [&] {
            run_.seconds = elapsed();
            if (std::any_of(run_.cells.begin(), run_.cells.end(), has_figures)) save();
        };
        if (before_ == 0) keep_so_far();  // else the file has more: the block that is put aside
        std::size_t block = first_block_;
        bool time_up = false;
        for (; block < plan_.design.most_blocks && !stopped(); ++block) {
            std::vector<std::vector<place*>> open;
            for (auto& g : groups_) open.push_back(open_in(g, block));
            if (std::all_of(open.begin(), open.end(), [](const auto& cells) { return cells.empty(); })) break;
            time_up = is_time_up(block);
            if (time_up) break;
            take_block(block, open);
            if (!stopped()) keep_so_far();
        }
        shown_.end();
        // A block that was put aside and never begun again was good as far as it went.
        for (auto& g : groups_)
            for (place& x : g)
                if (x.aside) x.cell->samples.push_back(*std::exchange(x.aside, std::nullopt));
        run_.seconds = elapsed();
        if (stopped()) return;
        run_.partial = false;
        run_.plan.unmet = unmet(block, time_up);
    }

private:
    struct place {
        const job* what;
        report::cell* cell;
        bool settled;                              ///< refused, failed, or without a time to take
        bool failed_before;                        ///< in an earlier run
        std::optional<report::sample> aside = {};  ///< of the block that an earlier run may not have finished
        std::map<std::string, double> parts = {};  ///< of the last sample, not yet in the cell's means
    };
    using places = std::vector<place>;

    [[nodiscard]] double elapsed() const { return before_ + shown_.seconds(); }
    bool stopped() { return stopped_ = stopped_ || with_.interrupted(); }

    [[nodiscard]] bool is_time_up(std::size_t block) const {
        const report::design& d = plan_.design;
        return d.max_seconds > 0 && elapsed() >= d.max_seconds && block >= (plan_.within_time ? 1 : d.least_blocks);
    }

    void begin(const place& x) {
        const double limit = plan_.design.max_seconds;
        shown_.next(*x.cell, limit > 0 ? limit - before_ : 0);
    }

    /// The groups in the order of a phase, the cells of each in their own.
    template <class Visit>
    void in_random_order(std::uint64_t phase, Visit visit) {
        for (const std::size_t g : shuffled(groups_.size(), plan_.seed, phase << 32)) visit(g, phase << 32 | (g + 1));
    }

    /// What a phase found out about a cell; `later` blocks are then not needed.
    void settle(place& x, const outcome& o, std::size_t later) {
        x.cell->refusal = o.refusal;
        x.cell->error = o.error;
        x.settled = !o.refusal.empty() || !o.error.empty() || !o.has_time;
        if (x.settled) shown_.skip(later);
    }

    [[nodiscard]] bool wants_instructions(const job& j) const { return plan_.instructions || j.counted; }

    void take_counts() {
        const auto lacks = [this](const place& x) {
            return !x.settled && ((x.cell->samples.empty() && !x.aside) ||
                                  (wants_instructions(*x.what) && !x.cell->counters.contains("instructions")));
        };
        std::size_t left = 0;
        for (const places& g : groups_)
            for (const place& x : g)
                left += (lacks(x) ? 1 : 0) + (x.settled ? 0 : plan_.design.most_blocks - first_block_);
        shown_.phase("counts", left);
        in_random_order(1, [&](std::size_t g, std::uint64_t draw) {
            for (const std::size_t i : shuffled(groups_[g].size(), plan_.seed, draw)) {
                place& x = groups_[g][i];
                if (stopped() || !lacks(x)) continue;
                begin(x);
                const outcome o = count(*x.what, *x.cell);
                if (!stopped()) settle(x, o, plan_.design.most_blocks - first_block_);
            }
        });
    }

    /// All that is no time of a batch: counters, latency and instructions.
    outcome count(job j, report::cell& cell) {
        j.task = job::observing;
        outcome o = with_.measure(j);
        if (!o.error.empty() || stopped()) return o;
        o.seen.counters.merge(cell.counters);  // instructions, of an earlier run
        cell.counters = std::move(o.seen.counters);
        cell.series = std::move(o.seen.series);
        cell.timeline = std::move(o.seen.timeline);
        for (report::memory_map& map : o.seen.maps)
            if (std::none_of(run_.maps.begin(), run_.maps.end(), [&](const auto& m) { return m.name == map.name; }))
                run_.maps.push_back(std::move(map));
        if (o.has_single && o.refusal.empty()) {
            j.task = job::latency;
            j.count = plan_.quick ? quick_latency_count : latency_count;
            outcome single = with_.measure(j);
            if (!single.error.empty() || stopped()) return single;
            cell.latency = std::move(single.latency);
        }
        if (wants_instructions(j) && o.has_time && o.refusal.empty() && !has_several_threads(j.where) &&
            !cell.counters.contains("instructions")) {
            const instruction_count counted = with_.count_instructions(j);
            o.error = counted.error;
            if (counted.error.empty()) cell.counters["instructions"] = counted.per_operation;
        }
        return o;
    }

    /// The cells of a group that the block is to measure: all at first, then those whose ratio is not known well enough
    /// yet, and with them what they are compared to.
    std::vector<place*> open_in(places& g, std::size_t block) const {
        const bool all = block < plan_.design.least_blocks;
        const auto wants_more = [&](const place& x) { return !x.settled && (all || !is_known(g.front(), x)); };
        const bool any = all || std::any_of(g.begin(), g.end(),
                                            [&](const place& x) { return !is_reference(g, x) && wants_more(x); });
        std::vector<place*> open;
        for (place& x : g)
            if (!x.settled && (is_reference(g, x) ? any : wants_more(x))) open.push_back(&x);
        return open;
    }

    static bool is_reference(const places& g, const place& x) { return &x == &g.front() || x.what->twin; }

    [[nodiscard]] bool is_known(const place& base, const place& x) const {
        if (base.settled) return true;  // no ratio will come of it
        const auto bounds = report::pair_up(*x.cell, *base.cell).bounds;
        return bounds && report::narrow_enough(*bounds, plan_.design.precision);
    }

    void take_block(std::size_t block, const std::vector<std::vector<place*>>& open) {
        const std::size_t later = plan_.design.most_blocks - block - 1;
        std::size_t left = 0;
        for (std::size_t g = 0; g < groups_.size(); ++g)
            left += open[g].size() * (1 + later) - (is_there(open[g], block) ? open[g].size() : 0);
        const std::size_t least = plan_.design.least_blocks, most = plan_.design.most_blocks;
        shown_.phase("block " + std::to_string(block + 1) + " of " +
                         (least < most ? std::to_string(least) + " to " : std::string()) + std::to_string(most),
                     left);
        in_random_order(block + 2, [&](std::size_t g, std::uint64_t draw) {
            const bool there = is_there(open[g], block);
            for (place& x : groups_[g])
                if (x.aside && x.aside->block == block) {
                    if (there) x.cell->samples.push_back(*x.aside);
                    x.aside.reset();
                }
            if (there) return;
            for (const std::size_t i : shuffled(open[g].size(), plan_.seed, draw)) {
                if (stopped()) return;
                place& x = *open[g][i];
                begin(x);
                take_sample(x, groups_[g], block);
            }
            keep_parts(open[g], block);
        });
    }

    /// Whether an earlier run has measured all of these in this block that did not fail.
    static bool is_there(const std::vector<place*>& open, std::size_t block) {
        const auto taken = [&](const place* x) { return x->aside && x->aside->block == block; };
        return std::any_of(open.begin(), open.end(), taken) &&
               std::all_of(open.begin(), open.end(), [&](const place* x) { return taken(x) || x->failed_before; });
    }

    /// Takes the parts of a block into the means once all these are through: one broken off is measured anew.
    static void keep_parts(const std::vector<place*>& open, std::size_t block) {
        const auto taken = [&](const place* x) {
            return !x->cell->samples.empty() && x->cell->samples.back().block == block;
        };
        if (!std::all_of(open.begin(), open.end(), [&](const place* x) { return x->settled || taken(x); })) return;
        for (place* x : open)
            for (const auto& [part, value] : std::exchange(x->parts, {})) {
                double& mean = x->cell->parts[part];
                mean += (value - mean) / static_cast<double>(x->cell->samples.size());
            }
    }

    void take_sample(place& x, const places& beside, std::size_t block) {
        outcome o = with_.measure(*x.what);
        std::size_t turn = ++turn_;
        if (o.timed && !stopped() && o.calibration > report::uneven_speed * best_calibration(beside, block)) {
            outcome again = with_.measure(*x.what);
            ++turn_;
            if (again.timed && again.calibration < o.calibration) {
                o = std::move(again);
                turn = turn_;
            }
        }
        if (stopped() && !o.timed) return;
        settle(x, o, plan_.design.most_blocks - block - 1);
        if (!o.timed) return;
        x.cell->samples.push_back({.block = block, .value = o.value, .calibration = o.calibration, .turn = turn});
        x.parts = std::move(o.parts);
    }

    /// Of a group, in this block and the one before: a machine that became slower for good is so for all that follows.
    static double best_calibration(const places& g, std::size_t block) {
        double best = std::numeric_limits<double>::infinity();
        for (const place& x : g)
            for (const report::sample& s : x.cell->samples)
                if (s.block + 1 >= block && s.calibration > 0) best = std::min(best, s.calibration);
        return best;
    }

    [[nodiscard]] std::vector<std::string> unmet(std::size_t blocks, bool time_up) const {
        const report::design& d = plan_.design;
        std::size_t ratios = 0, wide = 0, none = 0;
        std::optional<report::interval> widest;
        std::string where;
        for (const places& g : groups_)
            for (const place& x : g) {
                if (is_reference(g, x) || x.settled || g.front().settled) continue;
                ++ratios;
                const auto bounds = report::pair_up(*x.cell, *g.front().cell).bounds;
                none += bounds ? 0 : 1;
                if (!bounds || report::narrow_enough(*bounds, d.precision)) continue;
                ++wide;
                if (widest && bounds->high / bounds->low <= widest->high / widest->low) continue;
                widest = bounds;
                where = to_string(*x.cell);
            }
        std::vector<std::string> open;
        if (time_up && (blocks < d.least_blocks || wide + none > 0))
            open.push_back(in_words("time was up after block %zu of at %s %zu", blocks,
                                    blocks < d.least_blocks ? "least" : "most",
                                    blocks < d.least_blocks ? d.least_blocks : d.most_blocks));
        if (none > 0) open.push_back(in_words("%zu of %zu ratios have no interval: too few even pairs", none, ratios));
        if (wide > 0)
            open.push_back(
                in_words("%zu of %zu ratios are wider than ±%g %% or cross the margin; the widest: %s, %.3g to %.3g",
                         wide, ratios, d.precision * 100, where.c_str(), widest->low, widest->high));
        return open;
    }

    const plan& plan_;
    report::run& run_;
    const instruments& with_;
    double before_;  ///< seconds that an earlier run took
    std::vector<places> groups_;
    progress shown_;
    std::size_t turn_ = 0;
    std::size_t first_block_ = 0;  ///< the last one of an earlier run
    bool stopped_ = false;
};

}  // namespace

bool has_figures(const report::cell& c) {
    return !c.samples.empty() || !c.series.empty() || c.counters.contains("instructions");
}

void carry_out(const plan& p, const std::vector<group>& groups, report::run& r, const instruments& with,
               const std::function<void()>& save) {
    experiment(p, groups, r, with).carry_out(save);
    if (r.partial) return;
    std::set<std::string> twins;
    for (const report::strategy& s : r.strategies)
        if (!s.twin_of.empty()) twins.insert(s.name);
    // Where there is no time to take, a twin has nothing to show.
    std::erase_if(r.cells, [&](const report::cell& c) {
        return twins.contains(c.strategy) && c.samples.empty() && c.refusal.empty() && c.error.empty();
    });
}

}  // namespace alloclab::bench
