#include "alloclab/report/google_benchmark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "alloclab/report/verdicts.hpp"
#include "json_file.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// Length of a number that is not finite, as printf or JavaScript spell it, at the start of `text`; 0 for none.
std::size_t unbounded_at(std::string_view text) {
    const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    for (const std::string_view word : {"infinity", "nan(ind)", "nan", "inf"}) {
        if (text.size() < sign + word.size()) continue;
        const std::string_view here = text.substr(sign, word.size());
        const bool same = std::equal(here.begin(), here.end(), word.begin(),
                                     [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
        const std::string_view rest = text.substr(sign + word.size());
        if (same && (rest.empty() || std::string_view(",]} \t\r\n").find(rest[0]) != std::string_view::npos))
            return sign + word.size();
    }
    return 0;
}

/// Bare ones become empty strings of the same length, so that every other place keeps its line and column.
std::string with_bare_numbers_quoted(std::string text) {
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (in_string && text[i] == '\\') ++i;
        else if (text[i] == '"') in_string = !in_string;
        else if (!in_string && (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0)) {
            const std::size_t length = unbounded_at(std::string_view(text).substr(i));
            if (length == 0) continue;
            text.replace(i, length, "\"\"" + std::string(length - 2, ' '));
            i += length - 1;
        }
    }
    return text;
}

/// One row of "benchmarks", whose fields are all optional but the name.
class row {
public:
    row(const fs::path& file, const json& fields, std::size_t index) : file_{file}, fields_{fields}, index_{index} {
        if (!fields.is_object()) refuse(file, place(), fmt::format("expected an object, found {}", found(fields)));
        if (!fields.contains("name")) refuse(file, place() + "/name", "missing");
        name_ = text("name", "");
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] bool has(const char* key) const { return fields_.contains(key); }
    [[nodiscard]] std::string text(const char* key, const std::string& otherwise) const {
        const auto field = fields_.find(key);
        if (field == fields_.end()) return otherwise;
        if (!field->is_string()) expected(key, "a string", *field);
        return field->get<std::string>();
    }
    [[nodiscard]] bool flag(const char* key) const {
        const auto field = fields_.find(key);
        if (field != fields_.end() && !field->is_boolean()) expected(key, "true or false", *field);
        return field != fields_.end() && field->get<bool>();
    }
    [[nodiscard]] double nanoseconds(const char* key) const {
        const auto field = fields_.find(key);
        if (field == fields_.end()) refuse(file_, place() + '/' + key, "missing");
        const auto value = number(*field);
        if (!value) expected(key, "a number", *field);
        const std::string unit = text("time_unit", "ns");
        for (const auto& [name, scale] : {std::pair{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}})
            if (unit == name) return *value * scale;
        expected("time_unit", "\"ns\", \"us\", \"ms\" or \"s\"", fields_.at("time_unit"));
    }
    /// Numbers under names that Google Benchmark does not use itself, and those of its memory and rate figures.
    [[nodiscard]] std::map<std::string, double> counters() const {
        static const std::set<std::string> own{"family_index",
                                               "per_family_instance_index",
                                               "repetitions",
                                               "repetition_index",
                                               "threads",
                                               "iterations",
                                               "real_time",
                                               "cpu_time",
                                               "cpu_coefficient",
                                               "real_coefficient",
                                               "rms",
                                               "name",
                                               "run_name",
                                               "run_type",
                                               "time_unit",
                                               "label",
                                               "error_message",
                                               "skip_message",
                                               "aggregate_name",
                                               "aggregate_unit",
                                               "big_o"};
        std::map<std::string, double> all;
        for (const auto& [key, field] : fields_.items()) {
            const auto value = own.contains(key) ? std::nullopt : number(field);
            if (value) all[key] = *value;
        }
        return all;
    }

private:
    /// A number, NaN for what stands for none; nullopt for anything else.
    static std::optional<double> number(const json& value) {
        if (value.is_number()) return value.get<double>();
        if (value.is_null()) return missing;
        if (!value.is_string()) return std::nullopt;
        const auto& spelt = value.get_ref<const std::string&>();
        return spelt.empty() || unbounded_at(spelt) == spelt.size() ? std::optional{missing} : std::nullopt;
    }
    [[nodiscard]] std::string place() const { return fmt::format("/benchmarks/{}", index_); }
    [[noreturn]] void expected(const char* key, std::string_view what, const json& value) const {
        refuse(file_, place() + '/' + key, fmt::format("expected {}, found {}", what, found(value)));
    }

    const fs::path& file_;
    const json& fields_;
    std::size_t index_;
    std::string name_;
};

/// What an aggregate row aggregates, "" for a row that is none. Files from before 1.5 say it by the name alone; a
/// benchmark that only happens to be called so has no sisters.
struct aggregation {
    std::string of;
    std::string by;
    bool is = false;
};
aggregation aggregation_of(const row& r, const std::set<std::string>& names) {
    const std::string& name = r.name();
    const auto cut = name.rfind('_');
    const std::string stem = cut == std::string::npos ? "" : name.substr(0, cut),
                      suffix = cut == std::string::npos ? "" : name.substr(cut + 1);
    if (r.has("run_type") || r.has("aggregate_name")) {
        if (r.text("run_type", "aggregate") != "aggregate") return {};
        const std::string of = r.text("run_name", "");
        const std::string by = r.text("aggregate_name", stem == of && !of.empty() ? suffix : "");
        return {!of.empty() ? of : suffix == by && !by.empty() ? stem : name, by, true};
    }
    constexpr std::array known{"mean", "median", "stddev", "cv", "BigO", "RMS"};
    if (std::find(known.begin(), known.end(), suffix) == known.end()) return {};
    const bool fit = suffix == "BigO" || suffix == "RMS";
    for (const char* sister : {"mean", "median", "stddev"})
        if (!fit && !names.contains(stem + '_' + sister)) return {};
    if (fit && (!names.contains(stem + "_BigO") || !names.contains(stem + "_RMS"))) return {};
    return {stem, suffix, true};
}

/// All rows of one benchmark.
struct gathered {
    std::vector<double> repetitions;                      ///< ns
    std::map<std::string, std::vector<double>> counters;  ///< a value for each repetition
    std::map<std::string, double> centres;                ///< by "median" and "mean", ns
    std::map<std::string, std::map<std::string, double>> centre_counters;
    std::string refusal, error;
};

double middle_of(const std::vector<double>& values) {
    const bool whole = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    return whole ? median(values).value_or(missing) : missing;
}

cell cell_of(const std::string& name, const gathered& g) {
    cell c{};
    c.workload = "google benchmark";
    c.strategy = name;
    c.refusal = g.refusal;
    c.error = g.error;
    for (std::size_t i = 0; i < g.repetitions.size(); ++i) c.samples.push_back({i, g.repetitions[i]});
    for (const auto& [counter, values] : g.counters) c.counters[counter] = middle_of(values);
    for (const char* by : {"median", "mean"}) {
        if (!c.samples.empty() || !g.centres.contains(by)) continue;
        c.samples.push_back({0, g.centres.at(by)});
        c.counters = g.centre_counters.at(by);
    }
    return c;
}

void describe_machine(const json& context, run& r) {
    const auto fact = [&](const char* name, const char* key) {
        const auto field = context.find(key);
        if (field == context.end() || field->is_structured()) return;
        r.environment.emplace_back(name, field->is_string() ? field->get<std::string>() : field->dump());
    };
    fact("host", "host_name");
    fact("cores", "num_cpus");
    // Runners of one service may all have one name.
    const std::string host = fact_of(r.environment, "host"), cores = fact_of(r.environment, "cores");
    if (!host.empty() && !cores.empty())
        r.environment.emplace_back("machine", fmt::format("{}, {} cores", host, cores));
    fact("executable", "executable");
    fact("Google Benchmark", "library_version");
    fact("library build", "library_build_type");
    if (const auto date = context.find("date"); date != context.end() && date->is_string()) r.started = *date;
}

run run_of(const fs::path& file, const json& document) {
    const json& rows = document.at("benchmarks");
    if (!rows.is_array()) refuse(file, "/benchmarks", fmt::format("expected an array, found {}", found(rows)));
    std::vector<row> all;
    std::set<std::string> names;
    for (std::size_t i = 0; i < rows.size(); ++i) names.insert(all.emplace_back(file, rows[i], i).name());

    std::vector<std::string> order;
    std::map<std::string, gathered> benchmarks;
    std::size_t nameless = 0;
    for (const row& r : all) {
        const aggregation a = aggregation_of(r, names);
        if (a.by == "BigO" || a.by == "RMS") continue;
        const std::string name = a.is ? a.of : r.text("run_name", r.name());
        if (!benchmarks.contains(name)) order.push_back(name);
        gathered& g = benchmarks[name];
        if (r.flag("error_occurred")) {
            g.error = r.text("error_message", "");
            if (g.error.empty()) g.error = "an error without a message";
        } else if (r.flag("skipped")) {
            g.refusal = "skipped: " + r.text("skip_message", "");
        } else if (!a.is) {
            g.repetitions.push_back(r.nanoseconds("real_time"));
            for (const auto& [counter, value] : r.counters()) g.counters[counter].push_back(value);
        } else if (a.by == "median" || a.by == "mean") {
            g.centres[a.by] = r.nanoseconds("real_time");
            g.centre_counters[a.by] = r.counters();
        } else {
            nameless += a.by.empty() ? 1 : 0;
        }
    }

    run r;
    describe_machine(document.at("context"), r);
    r.workloads.push_back({"google benchmark", "", "Google Benchmark", "", "ns", "", ""});
    std::size_t centres_only = 0;
    for (const std::string& name : order) {
        const gathered& g = benchmarks.at(name);
        centres_only += g.repetitions.empty() && !g.centres.empty() ? 1 : 0;
        r.cells.push_back(cell_of(name, g));
    }
    if (centres_only > 0)
        r.warnings.push_back(
            fmt::format("{} of {} benchmarks have aggregates alone, and so no interval; write the "
                        "repetitions too (--benchmark_report_aggregates_only=false)",
                        centres_only, order.size()));
    if (nameless > 0)
        r.warnings.push_back(fmt::format("{} aggregate rows do not say what they are and were left out", nameless));
    return r;
}

bool is_google_benchmark(const json& document) {
    return document.is_object() && !document.contains("schema") && document.contains("benchmarks") &&
           document.contains("context");
}

}  // namespace

result_file read_results(const fs::path& file) {
    const std::string text = slurp(file);
    if (text.find("name,iterations,real_time,cpu_time,time_unit") != std::string::npos && text.find('{') != 0)
        refuse(file, "line 1, column 1",
               "expected JSON, found the CSV of Google Benchmark: --benchmark_out_format=json");
    const std::string quoted = with_bare_numbers_quoted(text);
    json document = parse(file, quoted);
    if (is_google_benchmark(document)) return {run_of(file, document), origin::google_benchmark};

    if (quoted != text) document = parse(file, text);
    if (document.is_object() && document.contains("schema") && document.at("schema").is_string()) {
        const auto& schema = document.at("schema").get_ref<const std::string&>();
        if (schema != run::schema && schema.starts_with("alloclab-"))
            throw not_comparable(fmt::format("{}: /schema: expected \"{}\", found \"{}\"", visible(file.string()),
                                             run::schema, visible(schema)));
    }
    return {run_from(file, document), origin::alloclab};
}

}  // namespace alloclab::report
