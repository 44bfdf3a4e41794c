// claims: what was said in the discussions that this project came from, each put to the figures of a run. A ruling is
// computed from the cells of the run that was asked, never written down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "findings.hpp"

namespace alloclab::report {

enum class ruling {
    holds,      ///< in most settings, and no setting says otherwise
    fails,      ///< likewise; a claim of several parts fails with one of them
    depends,    ///< on the setting; `flips` says where
    undecided,  ///< measured, but the intervals do not tell, or a part of the claim was not run
    unmeasured  ///< the run has no two cells that the claim could be put to
};
[[nodiscard]] std::string_view to_string(ruling r) noexcept;

struct claim {
    std::string id;      ///< "scan-against-malloc", stable: a link's target and a gate's name
    std::string says;    ///< "malloc is faster than scanning a pool for a free slot"
    std::string source;  ///< "whisper.cpp#2525"
    ruling ruled = ruling::unmeasured;
    std::vector<sentence> evidence = {};  ///< the figures, one sentence each; for unmeasured, which run would tell
    sentence flips = {};                  ///< "malloc: faster from live = 16 on ..."; empty unless it depends
    const workload* on = nullptr;         ///< whose chapter shows it, nullptr for none
};

/// All of them, slots first, then whole contexts, then extras. Points into the book's run. Cost: a pairing for each
/// setting of each claim.
[[nodiscard]] std::vector<claim> claims_of(const book& b);

}  // namespace alloclab::report
