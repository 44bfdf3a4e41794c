// chapters: the comparisons of a run laid out for a reader, one chapter a workload. Shared by the writers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloclab/report/verdicts.hpp"

namespace alloclab::report {

/// The cells of one workload that differ only in strategy and in the parameter on the x axis.
struct panel {
    std::map<std::string, std::string> parameters;  ///< the others
    std::vector<std::string> at;          ///< values on the axis in rising order; one "" where there is no axis
    std::vector<std::string> strategies;  ///< in the order to be shown in
    std::map<std::pair<std::string, std::string>, const comparison*> cells;  ///< by strategy and place on the axis

    [[nodiscard]] const comparison* find(const std::string& strategy, const std::string& place) const;
};

/// What the growth of one strategy's series amounts to over all settings: the worst of them.
enum class steadiness { unknown, flat, varies, leaks };

/// One strategy over all settings of one workload, against the baseline or another strategy.
struct standing {
    std::string strategy;
    bool control = false;
    bool twin = false;  ///< A/A: the baseline once more, which shows the noise and cannot win or lose
    steadiness growth = steadiness::unknown;  ///< of the chapter's first series
    std::map<verdict, std::size_t> verdicts;
    std::size_t settings = 0;
    std::optional<double> ratio;  ///< geometric mean over the settings where there is one
    double least = 0, most = 0;   ///< of those ratios

    void add(verdict v, std::optional<double> ratio_there);
    /// Whether it may be named fastest or slowest.
    [[nodiscard]] bool candidate() const noexcept { return !control && !twin; }
    [[nodiscard]] bool leaks() const noexcept { return growth == steadiness::leaks; }
    [[nodiscard]] std::size_t count(verdict v) const;
    /// Settings with a time.
    [[nodiscard]] std::size_t timed() const;
    /// Faster in one setting and slower in another, so that no mean says what it is.
    [[nodiscard]] bool mixed() const { return count(verdict::faster) > 0 && count(verdict::slower) > 0; }
    /// What most of the timed settings say, unless some say the opposite; else inconclusive. Without a timed setting,
    /// what most say at all.
    [[nodiscard]] verdict overall() const;
    /// "9 faster, 2 same", "all slower"
    [[nodiscard]] std::string tally() const;

private:
    double logs_ = 0;
    std::size_t ratios_ = 0;
};

/// Settings that some strategies were not measured in, all for one reason.
struct outage {
    verdict as = verdict::failed;  ///< full, refused or failed
    std::string reason;            ///< "refused context 65 of 65, 71 or 113"
    std::string where;             ///< as in whereabouts
    std::string where_in_full;
    bool everywhere = false;
    std::vector<std::string> strategies;  ///< in registered order
};

struct chapter {
    const workload* on = nullptr;
    std::vector<panel> panels;
    std::vector<standing> standings;    ///< in registered order
    std::vector<std::string> counters;  ///< names of all counters of its cells
    std::vector<std::string> parts;     ///< in the order of an eval
    std::vector<std::string> series;    ///< that of live extras first
    std::vector<outage> refusals;
    std::vector<outage> failures;
    std::size_t repeated = 0;  ///< cells with another's strategy and parameters, which no table shows

    [[nodiscard]] const standing& of(const std::string& strategy) const;
    /// The most settings that a strategy has.
    [[nodiscard]] std::size_t settings() const;
    /// Whether growth is all that it shows.
    [[nodiscard]] bool only_series() const;
};

/// `strategies` in the order to be shown in; `twins` names those among them that are A/A.
[[nodiscard]] chapter chapter_of(const workload& on, const std::vector<const comparison*>& cells,
                                 const std::vector<std::string>& strategies, const std::set<std::string>& twins);
/// The strategy over the settings where the rival has a time too, each pair judged by pair_up; no growth.
[[nodiscard]] standing against(const chapter& ch, const std::string& strategy, const std::string& rival);

/// A panel and a value on its axis.
using setting_list = std::vector<std::pair<const panel*, std::string>>;
/// Such settings of one strategy in words.
struct whereabouts {
    std::string text;         ///< "at states = 10, 16 (contexts = 7) and 16 (contexts = 4)"; "" for the only setting
    std::string in_full;      ///< with the values behind a "from live = 64 on": "(measured: 64, 128, 256)"
    bool everywhere = false;  ///< every setting that the strategy has
};
[[nodiscard]] whereabouts locate(const chapter& ch, const setting_list& at, const std::string& strategy);
/// Who was not measured where, by one reason a settings list; `reason` is "" for a cell that was.
[[nodiscard]] std::vector<outage> outages_of(const chapter& ch, const std::vector<std::string>& strategies,
                                             const std::function<std::string(const comparison&)>& reason);

/// Numbers by value, before words.
[[nodiscard]] bool before_on_axis(const std::string& a, const std::string& b);

/// The least and the most that the compared part of an eval takes of all its parts.
struct share {
    double least = 1;
    double most = 0;
};
/// The part that the workload's strategies decide: "context", "extras", "" for none.
[[nodiscard]] std::string compared_part(const workload& w);
/// nullopt where no cell has that part.
[[nodiscard]] std::optional<share> share_of(const chapter& ch, const panel& p);
/// The chapter's parts that no cell of the panel has: those were not run.
[[nodiscard]] std::vector<std::string> left_out(const chapter& ch, const panel& p);
/// "0.14 % to 0.30 %"
[[nodiscard]] std::string in_words(const share& s);

/// "live = 64, threads = 2"; "" for none.
[[nodiscard]] std::string describe(const std::map<std::string, std::string>& parameters);
/// "live_extras" as "live extras", "reserved_bytes" as "reserved": the unit of byte counts is left to the caller.
[[nodiscard]] std::string label(std::string_view key);
/// "live extras", "reserved bytes"
[[nodiscard]] std::string full_label(std::string_view key);
[[nodiscard]] bool counts_bytes(std::string_view key);
/// The counter that stands beside the times of evals: virtual nanoseconds that a simulated device takes for one.
inline constexpr const char* device_time = "device_ns_per_eval";
[[nodiscard]] inline bool has_device_time(const cell& c) { return c.counters.contains(device_time); }
[[nodiscard]] const std::string& title_of(const workload& w);
/// The name without its kind: "slots" for "context/slots" among context strategies, for "peers/slots" among peers.
[[nodiscard]] std::string short_name(const workload& w);

}  // namespace alloclab::report
