// claim_words: the sentences of claims, built from settings.
#pragma once

#include <string>
#include <vector>

#include "claim_votes.hpp"

namespace alloclab::report {

void add(sentence& to, const sentence& more);
/// Joins a plain piece at the end.
void add(sentence& to, std::string text);
void add(sentence& to, const piece& more);
[[nodiscard]] piece figure_of(std::string text);
[[nodiscard]] piece name_of(const std::string& strategy);
/// "`a`, `b`"
void add_names(sentence& to, const std::vector<std::string>& strategies);

/// "`alloclab run -w context/slots -s a,b` would tell."
[[nodiscard]] sentence would_tell(const std::vector<std::string>& workloads, const std::string& rest);

/// "`scan_pool` refuses 3 more", "" where nobody is absent.
[[nodiscard]] sentence absences(const settings& out, const char* after);

/// "`a` against `b` in context/slots: faster in 5 of 9 settings, ..." for one value of `apart`.
[[nodiscard]] sentence evidence_of(const settings& counted, const settings& out, aim expected,
                                   const std::string& apart);

/// "`a`: faster from live = 16 on ..., not faster up to live = 8 ...": by the attribute that tells the votes apart in
/// the fewest pieces, else workload by workload, else by a list of the fewer.
[[nodiscard]] sentence flips_of(const settings& counted, aim expected);

}  // namespace alloclab::report
