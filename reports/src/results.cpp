// A reader that walks the document with its place at hand, so that every error
// names the file, the place as a JSON pointer and what was expected there.
#include "alloclab/report/results.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "consistency.hpp"
#include "json_file.hpp"
#include "text.hpp"

namespace alloclab::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A value and where it stands. Cheap to copy; lives while the document does.
class node {
public:
    node(const fs::path& file, const json& value, std::string place)
        : file_{file}, value_{value}, place_{std::move(place)} {}

    [[noreturn]] void expected(std::string_view what) const {
        refuse(file_, place_.empty() ? "/" : place_, fmt::format("expected {}, found {}", what, found(value_)));
    }

    [[nodiscard]] node at(const char* key) const {
        const auto field = members().find(key);
        if (field == value_.end()) refuse(file_, place_ + '/' + key, "missing");
        return {file_, *field, place_ + '/' + key};
    }

    /// Reads a field into `to`, which keeps its value when the field is absent.
    template <class T>
    void optional(const char* key, T& to) const {
        if (members().contains(key)) at(key).read(to);
    }

    void read(std::string& to) const {
        if (!value_.is_string()) expected("a string");
        to = value_.get<std::string>();
    }
    void read(bool& to) const {
        if (!value_.is_boolean()) expected("true or false");
        to = value_.get<bool>();
    }
    void read(double& to) const {
        if (!value_.is_number() && !value_.is_null()) expected("a number or null");
        to = value_.is_null() ? std::numeric_limits<double>::quiet_NaN() : value_.get<double>();
    }
    void read(std::uint64_t& to) const {
        if (!value_.is_number_unsigned()) expected("a whole number from 0");
        to = value_.get<std::uint64_t>();
    }
    void read(sample& to) const {
        at("block").read(to.block);
        at("value").read(to.value);
        optional("calibration", to.calibration);
        optional("machine", to.machine);
        optional("turn", to.turn);
    }
    void read(std::pair<double, double>& to) const {
        at("ns").read(to.first);
        at("share").read(to.second);
    }
    void read(std::optional<latency_curve>& to) const {
        to.emplace();
        at("floor").read(to->floor);
        at("count").read(to->count);
        at("ecdf").read(to->ecdf);
    }
    void read(placement& to) const {
        optional("tensor", to.tensor);
        at("first").read(to.first);
        at("last").read(to.last);
        at("offset").read(to.offset);
        at("bytes").read(to.bytes);
    }
    void read(memory_map& to) const {
        at("name").read(to.name);
        at("steps").read(to.steps);
        at("bytes").read(to.bytes);
        at("lower_bound").read(to.lower_bound);
        at("placements").read(to.placements);
    }
    void read(machine& to) const {
        at("name").read(to.name);
        optional("environment", to.environment);
        optional("warnings", to.warnings);
    }
    void read(design& to) const {
        optional("min_seconds", to.min_seconds);
        optional("least_blocks", to.least_blocks);
        optional("most_blocks", to.most_blocks);
        optional("precision", to.precision);
        optional("max_seconds", to.max_seconds);
        optional("shard", to.shard);
        optional("unmet", to.unmet);
    }
    void read(std::pair<std::string, std::string>& to) const {
        at("name").read(to.first);
        at("value").read(to.second);
    }
    void read(strategy& to) const {
        at("name").read(to.name);
        optional("kind", to.kind);
        optional("threads", to.threads);
        optional("bounded", to.bounded);
        optional("capacity", to.capacity);
        optional("when_full", to.when_full);
        optional("control", to.control);
        optional("twin_of", to.twin_of);
    }
    void read(workload& to) const {
        at("name").read(to.name);
        optional("kind", to.kind);
        optional("title", to.title);
        optional("question", to.question);
        optional("unit", to.unit);
        optional("baseline", to.baseline);
        optional("axis", to.axis);
    }
    void read(cell& to) const {
        at("workload").read(to.workload);
        at("strategy").read(to.strategy);
        optional("parameters", to.parameters);
        optional("samples", to.samples);
        optional("counters", to.counters);
        optional("parts", to.parts);
        optional("series", to.series);
        optional("timeline", to.timeline);
        optional("latency", to.latency);
        optional("refusal", to.refusal);
        optional("error", to.error);
    }
    template <class T>
    void read(std::vector<T>& to) const {
        if (!value_.is_array()) expected("an array");
        to.assign(value_.size(), T{});
        for (std::size_t i = 0; i < to.size(); ++i) node{file_, value_[i], fmt::format("{}/{}", place_, i)}.read(to[i]);
    }
    template <class T>
    void read(std::map<std::string, T>& to) const {
        to.clear();
        for (const auto& [key, value] : members().items())
            node{file_, value, place_ + '/' + visible(key)}.read(to[key]);
    }

    [[nodiscard]] const json& members() const {
        if (!value_.is_object()) expected("an object");
        return value_;
    }

private:
    const fs::path& file_;
    const json& value_;
    std::string place_;
};

template <class T>
json from(const std::vector<T>& values);
template <class T>
json from(const std::map<std::string, T>& values);

json from(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
json from(const std::string& text) { return text; }
json from(const std::pair<std::string, std::string>& entry) { return {{"name", entry.first}, {"value", entry.second}}; }
json from(const sample& s) {
    return {{"block", s.block},
            {"value", from(s.value)},
            {"calibration", from(s.calibration)},
            {"machine", s.machine},
            {"turn", s.turn}};
}
json from(const std::pair<double, double>& point) { return {{"ns", from(point.first)}, {"share", from(point.second)}}; }
json from(const latency_curve& l) { return {{"floor", from(l.floor)}, {"count", l.count}, {"ecdf", from(l.ecdf)}}; }
json from(const placement& p) {
    return {{"tensor", p.tensor}, {"first", p.first}, {"last", p.last}, {"offset", p.offset}, {"bytes", p.bytes}};
}
json from(const memory_map& m) {
    return {{"name", m.name},
            {"steps", m.steps},
            {"bytes", m.bytes},
            {"lower_bound", m.lower_bound},
            {"placements", from(m.placements)}};
}
json from(const machine& m) {
    return {{"name", m.name}, {"environment", from(m.environment)}, {"warnings", from(m.warnings)}};
}
json from(const design& d) {
    return {{"min_seconds", from(d.min_seconds)},
            {"least_blocks", d.least_blocks},
            {"most_blocks", d.most_blocks},
            {"precision", from(d.precision)},
            {"max_seconds", from(d.max_seconds)},
            {"shard", d.shard},
            {"unmet", from(d.unmet)}};
}
json from(const strategy& s) {
    return {{"name", s.name},         {"kind", s.kind},           {"threads", s.threads}, {"bounded", s.bounded},
            {"capacity", s.capacity}, {"when_full", s.when_full}, {"control", s.control}, {"twin_of", s.twin_of}};
}
json from(const workload& w) {
    return {{"name", w.name}, {"kind", w.kind},         {"title", w.title}, {"question", w.question},
            {"unit", w.unit}, {"baseline", w.baseline}, {"axis", w.axis}};
}
json from(const cell& c) {
    json object{{"workload", c.workload},
                {"strategy", c.strategy},
                {"parameters", from(c.parameters)},
                {"samples", from(c.samples)},
                {"counters", from(c.counters)},
                {"parts", from(c.parts)},
                {"series", from(c.series)},
                {"timeline", from(c.timeline)},
                {"refusal", c.refusal},
                {"error", c.error}};
    if (c.latency) object["latency"] = from(*c.latency);
    return object;
}

template <class T>
json from(const std::vector<T>& values) {
    json array = json::array();
    for (const T& value : values) array.push_back(from(value));
    return array;
}
template <class T>
json from(const std::map<std::string, T>& values) {
    json object = json::object();
    for (const auto& [key, value] : values) object[key] = from(value);
    return object;
}

void check_schema(const fs::path& file, const json& document, const node& root) {
    if (!root.members().contains("schema")) {
        const bool google = document.contains("benchmarks") && document.contains("context");
        refuse(file, "/schema",
               fmt::format("expected \"{}\", found none{}", run::schema,
                           google ? ": this is Google Benchmark's output" : ""));
    }
    const node id = root.at("schema");
    std::string schema;
    id.read(schema);
    if (schema != run::schema) id.expected(fmt::format("\"{}\"", run::schema));
}

}  // namespace

run read_run(const fs::path& file) { return run_from(file, parse(file, slurp(file))); }

run run_from(const fs::path& file, const json& document) {
    const node root{file, document, ""};
    check_schema(file, document, root);

    run r;
    root.optional("started", r.started);
    root.optional("seconds", r.seconds);
    root.optional("command", r.command);
    root.optional("seed", r.seed);
    root.optional("partial", r.partial);
    root.optional("environment", r.environment);
    root.optional("warnings", r.warnings);
    root.optional("machines", r.machines);
    root.optional("design", r.plan);
    root.at("strategies").read(r.strategies);
    root.at("workloads").read(r.workloads);
    root.at("cells").read(r.cells);
    root.optional("maps", r.maps);
    if (const auto wrong = fault_of(r)) refuse(file, wrong->place, wrong->what);
    return r;
}

void write_run(const run& r, const fs::path& file) {
    const json document = {{"schema", run::schema},
                           {"started", r.started},
                           {"seconds", from(r.seconds)},
                           {"command", r.command},
                           {"seed", r.seed},
                           {"partial", r.partial},
                           {"environment", from(r.environment)},
                           {"warnings", from(r.warnings)},
                           {"machines", from(r.machines)},
                           {"design", from(r.plan)},
                           {"strategies", from(r.strategies)},
                           {"workloads", from(r.workloads)},
                           {"cells", from(r.cells)},
                           {"maps", from(r.maps)}};
    write_file(file, document.dump(1, ' ', false, json::error_handler_t::replace) + '\n');
}

std::optional<int> open_descriptor(const fs::path& file) {
    const std::string name = file.lexically_normal().string();
    if (name == "/dev/stdout") return STDOUT_FILENO;
    if (name == "/dev/stderr") return STDERR_FILENO;
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!name.starts_with(folder)) continue;
        int n = 0;
        const char *begin = name.data() + folder.size(), *end = name.data() + name.size();
        const auto [stop, error] = std::from_chars(begin, end, n);
        if (error == std::errc{} && stop == end && n >= 0) return n;
    }
    return std::nullopt;
}

std::string to_string(const cell& c) {
    std::string text = c.workload + ' ' + c.strategy;
    for (const auto& [name, value] : c.parameters) text += ' ' + name + '=' + value;
    return text;
}

std::string fact_of(const std::vector<std::pair<std::string, std::string>>& environment, std::string_view name) {
    const auto at =
        std::find_if(environment.begin(), environment.end(), [&](const auto& f) { return f.first == name; });
    return at == environment.end() ? "" : at->second;
}

void write_file(const fs::path& file, const std::string& text) {
    const auto fail = [&](int error) {
        throw std::system_error(error != 0 ? error : EIO, std::generic_category(),
                                "cannot write " + visible(file.string()));
    };
    if (const auto descriptor = open_descriptor(file)) {
        for (std::size_t done = 0; done < text.size();) {
            const auto n = ::write(*descriptor, text.data() + done, text.size() - done);
            if (n < 0 && errno != EINTR) fail(errno);
            done += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
        return;
    }
    const auto put = [&](const fs::path& to) {
        errno = 0;
        std::ofstream out(to, std::ios::binary | std::ios::trunc);
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
        out.close();
        return out ? 0 : errno != 0 ? errno : EIO;
    };

    // A pipe or a device is written to, never replaced by a file; a link keeps pointing where it did.
    std::error_code none;
    const auto kind = fs::status(file, none).type();
    if (kind == fs::file_type::directory) fail(EISDIR);
    if (kind != fs::file_type::regular && kind != fs::file_type::not_found && kind != fs::file_type::none) {
        if (const int error = put(file); error != 0) fail(error);
        return;
    }
    const fs::path target = fs::is_symlink(file, none) ? fs::weakly_canonical(file) : file;

    fs::path beside = target;
    beside += fmt::format(".{}.partial", ::getpid());
    int error = put(beside);
    if (error == 0) {
        if (kind == fs::file_type::regular) fs::permissions(beside, fs::status(target, none).permissions(), none);
        std::error_code renamed;
        fs::rename(beside, target, renamed);
        error = renamed.value();
    }
    if (error != 0) {
        fs::remove(beside, none);
        fail(error);
    }
}

}  // namespace alloclab::report
