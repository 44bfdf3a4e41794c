// claim_votes: settings with a vote each, counted to a ruling and told in sentences.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "claim_rules.hpp"

namespace alloclab::report {

enum class vote {
    yes,
    no,
    open,  ///< the interval reaches over the line, or there is none
    out    ///< one of the two has no time here; not counted
};
[[nodiscard]] vote vote_of(const pairing& p, aim expected) noexcept;

/// Two cells that differ in nothing but what is compared.
struct setting {
    const workload* on = nullptr;
    piece first, second;                         ///< what is compared
    std::map<std::string, std::string> at = {};  ///< "workload", the parameters, and "strategy" or "against" if told
    pairing ratio = {};
    vote cast = vote::out;
    std::optional<piece> absent = {};  ///< who is out
    std::string absence = {};          ///< "refuses", "failed in"
};
using settings = std::vector<const setting*>;
[[nodiscard]] settings those(const settings& all, vote v);

/// The settings' ruling, with one sentence of evidence for each value of `apart`; `hint` stands for itself where
/// nothing could be compared.
[[nodiscard]] answer judged(const std::vector<setting>& settings, aim expected, const std::string& apart,
                            const sentence& hint);

/// Votes for and against decide as long as they do not contradict each other and are most of the counted ones.
[[nodiscard]] ruling ruled_by(std::size_t yes, std::size_t no, std::size_t open) noexcept;

}  // namespace alloclab::report
