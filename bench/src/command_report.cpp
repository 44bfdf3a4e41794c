// alloclab report: one run.json as index.html, report.md, report.csv and a table on the terminal.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "alloclab/report/results.hpp"
#include "alloclab/report/writers.hpp"
#include "command.hpp"

namespace alloclab::bench {
namespace {

namespace fs = std::filesystem;

struct report_options {
    std::string input, folder;
    std::vector<std::string> only;
    bool to_stdout = false;
    bool quiet = false;
};

struct format {
    const char* name;
    const char* file;
    std::string (*text)(const report::run&);
};
constexpr std::array formats{
    format{"html", "index.html", [](const report::run& r) { return report::to_html(r); }},
    format{"md", "report.md", [](const report::run& r) { return report::to_markdown(r); }},
    format{"csv", "report.csv", [](const report::run& r) { return report::to_csv(r); }},
};

bool wanted(const report_options& o, const std::string& name) {
    return o.only.empty() || std::find(o.only.begin(), o.only.end(), name) != o.only.end();
}

std::string terminal_text(const report::run& r) {
    return report::to_terminal(r, ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr);
}

/// Makes the folder; one that is a link stays one.
void prepare(const fs::path& folder) {
    const auto complain_of = [&](const std::string& why) {
        throw std::runtime_error("cannot write to " + folder.string() + ": " + why);
    };
    std::error_code error;
    const auto kind = fs::status(folder, error).type();
    if (kind == fs::file_type::directory) return;
    if (kind != fs::file_type::not_found) complain_of("expected a folder, found a file");
    if (fs::is_symlink(folder, error)) complain_of("expected a folder, found a link that leads nowhere");
    if (fs::create_directories(folder, error); error) complain_of(error.message());
}

/// Where a file that is to be replaced really lies, so that a link to it stays a link.
fs::path behind_links(fs::path file) {
    std::error_code none;
    for (int links = 0; links < 40 && fs::is_symlink(file, none); ++links) {
        const fs::path to = fs::read_symlink(file, none);
        file = to.is_absolute() ? to : file.parent_path() / to;
    }
    return file;
}

std::string content(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return std::move(text).str();
}

/// All of the files or, where that cannot be, none: every text is written beside its file before the first is renamed,
/// and what was there is put back when a rename fails.
class file_set {
public:
    file_set() = default;
    file_set(const file_set&) = delete;
    file_set& operator=(const file_set&) = delete;
    ~file_set() {
        std::error_code none;
        for (const staged& s : files_) fs::remove(s.beside, none);
    }

    void add(const fs::path& file, const std::string& text) {
        const fs::path target = behind_links(file);
        if (fs::is_directory(target))
            throw std::runtime_error("cannot write " + file.string() + ": expected a file, found a folder");
        staged s{target, target, fs::exists(target), ""};
        s.beside += "." + std::to_string(::getpid()) + ".new";
        if (s.existed) s.before = content(target);
        files_.push_back(std::move(s));
        report::write_file(files_.back().beside, text);
    }
    void commit() {
        for (auto s = files_.begin(); s != files_.end(); ++s) {
            std::error_code error;
            fs::rename(s->beside, s->target, error);
            if (!error) continue;
            while (s != files_.begin()) {
                --s;
                if (s->existed) report::write_file(s->target, s->before);
                else fs::remove(s->target);
            }
            throw std::runtime_error("the report is as it was: " + error.message());
        }
    }

private:
    struct staged {
        fs::path target, beside;
        bool existed;
        std::string before;
    };
    std::vector<staged> files_;
};

int report_on(const report_options& o) {
    if (o.to_stdout && o.only.size() != 1)
        return complain(usage_error, "--stdout writes one format; expected --only md, html, csv or terminal with it");
    fs::path folder = o.folder.empty() ? fs::path(o.input).parent_path() : fs::path(o.folder);
    if (folder.empty()) folder = ".";
    try {
        const report::run r = report::read_run(o.input);
        if (o.to_stdout && o.only.front() != "terminal") {
            const auto* f =
                std::find_if(formats.begin(), formats.end(), [&](const format& x) { return x.name == o.only.front(); });
            std::cout << f->text(r);
            return ok;
        }
        if (!o.to_stdout) {
            file_set files;
            for (const format& f : formats) {
                if (!wanted(o, f.name)) continue;
                prepare(folder);
                std::error_code none;
                if (fs::equivalent(folder / f.file, o.input, none))
                    throw std::runtime_error(o.input + " is what would be written to; expected another folder with -o");
                files.add(folder / f.file, f.text(r));
            }
            files.commit();
        }
        if (wanted(o, "terminal") && !o.quiet) std::cout << terminal_text(r);
    } catch (const fs::filesystem_error& e) {
        return complain(usage_error, e.path1().string() + ": " + e.code().message());
    } catch (const std::exception& e) {
        return complain(usage_error, e.what());
    }
    return ok;
}

}  // namespace

command add_report(CLI::App& app) {
    const auto o = std::make_shared<report_options>();
    auto* parser = app.add_subcommand("report", "Write index.html, report.md and report.csv from run.json");
    parser->add_option("run", o->input, "A run.json")->required();
    parser->add_option("-o,--output", o->folder, "Folder to write to; that of the run by default");
    parser->add_option("--only", o->only, "Formats: md, html, csv, terminal; all by default")
        ->delimiter(',')
        ->check(CLI::IsMember({"md", "html", "csv", "terminal"}));
    parser->add_flag("--stdout", o->to_stdout, "The one format of --only on standard output, and no file");
    parser->add_flag("-q,--quiet", o->quiet, "No table on the terminal");
    return {parser, [o] { return report_on(*o); }};
}

}  // namespace alloclab::bench
