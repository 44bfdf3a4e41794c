// Writes the made run, or one that is given, as every format into a folder: what the browser test opens, and a quick
// look while working on a page.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "alloclab/report/writers.hpp"
#include "sample_run.hpp"

int main(int count, char** arguments) try {
    if (count != 2 && count != 3) return std::fputs("usage: write_sample FOLDER [RUN]\n", stderr), 2;
    using namespace alloclab::report;
    const std::filesystem::path folder = arguments[1];
    std::filesystem::create_directories(folder);
    const run r = count == 3 ? read_run(arguments[2]) : made_run();
    write_run(r, folder / "run.json");
    write_file(folder / "report.html", to_html(r));
    write_file(folder / "report.md", to_markdown(r));
    write_file(folder / "report.csv", to_csv(r));
    write_file(folder / "report.txt", to_terminal(r, false));
} catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
}
