// claim_rules: the few ways in which a claim is put to a run. Each setting that was measured has one vote, cast by an
// interval and the margin, never by a median (gains_nothing alone also reckons with a share); a ruling counts the
// votes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"

namespace alloclab::report {

/// The cells of a run by workload and strategy: of equals the first, as in tables, and no A/A twin, which says nothing
/// of its strategy. Points into the run.
class roster {
public:
    explicit roster(const run& r);

    struct entry {
        const workload* on;
        const strategy* by;  ///< nullptr for one that the run does not describe
        const cell* of;
    };
    /// In the order of the run.
    [[nodiscard]] const std::vector<entry>& of(const std::string& workload) const;
    /// nullptr for none.
    [[nodiscard]] const cell* find(const std::string& workload, const std::string& strategy,
                                   const std::map<std::string, std::string>& parameters) const;
    /// The first of these that has cells; nullptr for none.
    [[nodiscard]] const workload* first_of(const std::vector<std::string>& workloads) const;

private:
    std::map<std::string, std::vector<entry>> entries_;
};

/// What a rule makes of a run.
struct answer {
    ruling ruled = ruling::unmeasured;
    std::vector<sentence> evidence = {};
    sentence flips = {};
    const workload* on = nullptr;
};
using rule = std::function<answer(const roster&)>;

/// What a claim says of a ratio. Its interval votes for that or against it; one that reaches over the line is
/// undecided.
enum class aim {
    faster,     ///< wholly below 1 - margin; against from there on
    no_slower,  ///< up to 1 + margin; against wholly above
    no_faster,  ///< from 1 - margin on; against wholly below
    no_more     ///< as no_slower, said of bytes
};

/// Two strategies, or every strategy but controls under two values of a parameter, in all settings that both were
/// measured in.
struct contest {
    std::vector<std::string> workloads = {};
    std::string parameter = {};  ///< "" where `first` and `second` are strategies, else they are its values
    std::string first = {};
    std::string second = {};
    aim expected = aim::faster;
    std::string counter = {};        ///< compared in place of the time; being exact, it needs no interval
    std::string per = {};            ///< counter of what the difference is told for, such as nodes; "" for none
    std::string apart = "workload";  ///< parameter by which the evidence is told apart
};
[[nodiscard]] rule contested(contest c);

/// A bounded strategy and the unbounded one that puts another in front of it.
struct spill {
    std::vector<std::string> workloads = {};
    std::string bounded = {}, spilling = {}, unbounded = {};
};
/// Wherever the bounded one refuses, the spilling one does not.
[[nodiscard]] rule never_refuses(spill s);
/// The spilling one is no slower than the bounded one where that has room, nor than the unbounded one where it has not.
[[nodiscard]] rule spills_at_no_cost(spill s);

/// Whole evals from any strategy but controls against those of the baseline. An eval that was not computed is none.
/// Where the interval does not tell, a part of at most a tenth of the margin does: all of it could be saved and not win
/// that.
struct whole_evals {
    std::string workload = {}, baseline = {};
    std::string part = {};      ///< that the strategies decide, whose share is told
    std::string computed = {};  ///< part that a whole eval has
};
[[nodiscard]] rule gains_nothing(whole_evals e);

/// How many of something a bounded strategy serves, by the values of a parameter.
struct reach {
    std::string workload = {}, strategy = {}, along = {}, parameter = {};
    std::vector<std::pair<std::string, std::size_t>> most = {};  ///< value of the parameter and what is claimed for it
};
[[nodiscard]] rule serves_up_to(reach r);

/// A series over evals by the lifetime of what was taken: temporary where the parameter is missing.
struct lifetimes {
    std::string workload = {}, series = {}, parameter = {}, temporary = {}, persistent = {};
    std::string left = {};  ///< counter of what outlives the model
};
/// What `control` leaks in temporaries, `strategy` does not.
[[nodiscard]] rule ends_leak(lifetimes l, std::string strategy, std::string control);
/// Whoever leaks at all leaks temporaries and nothing persistent.
[[nodiscard]] rule leaks_temporaries_alone(lifetimes l);

}  // namespace alloclab::report
