// google_benchmark: result files of either kind, alloclab's own or the JSON of Google Benchmark, read into one model.
// Repetitions become samples in nanoseconds of real time, user counters become counters, an error row becomes a cell's
// error. Aggregates are left aside where there are repetitions; alone, the median (or else the mean) is the only
// sample, so that no interval is made up. A coefficient of variation is a ratio whatever time unit stands beside it,
// and a complexity fit is no measurement.
#pragma once

#include <filesystem>

#include "alloclab/report/results.hpp"

namespace alloclab::report {

/// Which program wrote a result file.
enum class origin { alloclab, google_benchmark };

struct result_file {
    run results;
    origin from = origin::alloclab;
};

/// Two files, or a file and this program, that do not speak of the same thing.
class not_comparable : public bad_results {
public:
    using bad_results::bad_results;
};

/// Tells the two kinds apart by what is in the file. Google Benchmark writes numbers that are not finite as no JSON
/// would have them (google/benchmark#784): NaN, Infinity and their like, bare or as strings, are read as missing.
/// Throws not_comparable for an alloclab file of another schema, bad_results for all else that cannot be read, with
/// line and column where it is no JSON. Linear in the file's size.
[[nodiscard]] result_file read_results(const std::filesystem::path& file);

}  // namespace alloclab::report
