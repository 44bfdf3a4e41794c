#!/usr/bin/env python3
"""Shows each check of house.py to pass on a small sound tree and to fail on a fault planted in it."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import house

CONCEPTS = "allocators/include/alloclab/concepts.hpp"
GRAPH = "tensor/include/alloclab/tensor/graph.hpp"
RESULTS = "reports/include/alloclab/report/results.hpp"
SOURCE = "allocators/include/alloclab/source/one.hpp"
HEADER = "// one: a header.\n#pragma once\n\nnamespace alloclab {}\n"

SOUND = {
    CONCEPTS: HEADER,
    "allocators/include/alloclab/registry.hpp": HEADER + '#include "alloclab/source/one.hpp"\n',
    SOURCE: HEADER + '#include "alloclab/concepts.hpp"\n',
    "allocators/include/alloclab/source/mimalloc.hpp": HEADER + 'inline const char* symbol = "mi_malloc";\n',
    GRAPH: HEADER + "// filled by device::sim_device\n#include <alloclab/concepts.hpp>\n",
    "cuda/src/device.cpp": '#include "alloclab/tensor/graph.hpp"\n',
    RESULTS: HEADER,
    "bench/CMakeLists.txt": "add_executable(alloclab src/main.cpp ../cuda/src/device.cpp)\n",
    "bench/src/main.cpp": '#include "alloclab/registry.hpp"\n#include "alloclab/report/results.hpp"\n',
    "bench/run": "#!/bin/sh\n",
    "CMakePresets.json": '{"configurePresets": [{"name": "release"}]}\n',
    "README.md": "# sound\n[licence](LICENSE)\n```sh\ngit clone URL && cd sound  # here\n./bench/run --quick\n"
                 "cmake --preset release\nbuild/release/bin/alloclab list \\\n  --json\n```\n",
    "LICENSE": "MIT\n",
    ".clang-format": "BasedOnStyle: Google\n",
}


class Plant(NamedTuple):
    check: str
    file: str
    text: str  # put after the file's sound text
    line: int
    message: str


PLANTS = [
    Plant("includes", CONCEPTS, '#include "alloclab/source/one.hpp"\n', 5, "stands above"),
    Plant("includes", SOURCE, '#include <alloclab/registry.hpp>\n', 6, "stands above"),
    Plant("includes", SOURCE, '#include "../tensor/graph.hpp"\n#include "alloclab/tensor/graph.hpp"\n', 7, "allocators must not"),
    Plant("includes", GRAPH, '#include "alloclab/device/sim.hpp"\n', 7, "tensor must not"),
    Plant("includes", "cuda/src/device.cpp", '#include "alloclab/bench/cell.hpp"\n', 2, "cuda must not"),
    Plant("includes", "cuda/src/device.cpp", '#include "../../bench/src/main.cpp"\n', 2, "cuda must not"),
    Plant("includes", "cuda/src/device.cpp", '#include "alloclab/report/results.hpp"\n', 2, "cuda must not"),
    Plant("includes", RESULTS, '#include "alloclab/concepts.hpp"\n', 5, "reports must not"),
    Plant("names", GRAPH, "inline int on(device::sim_device&);\n", 7, "names no device"),
    Plant("names", "tensor/src/graph.cpp", "const char quote = '\"'; // '\ncudaFree(p);\n", 2, "'cudaFree'"),
    Plant("names", SOURCE, "void mi_free(void*);\n", 6, "'mi_free' belongs"),
    Plant("names", "bench/src/main.cpp", "void pair(state& s) { s.PauseTiming(); }\n", 3, "time a batch"),
    Plant("headers", SOURCE, "/* no\n */ \n# define MACRO 1\n", 8, "'# define MACRO'"),
    Plant("headers", "tensor/include/alloclab/tensor/new.hpp", "// new\n#ifndef NEW\n#endif\n", 1, "no #pragma once"),
    Plant("headers", "tensor/include/alloclab/tensor/new.hpp", "#pragma once\n", 1, "starts with a comment"),
    Plant("standalone", SOURCE, "inline std::size_t n = 0;\n", 6, "std"),
    Plant("standalone", SOURCE, "inline int narrow(long n) { return n; }\n", 6, "compiled alone"),
    Plant("standalone", "allocators/include/alloclab/one.h", "// one: C.\n#pragma once\nint f(int = 0);\n", 3, "(in "),
    Plant("length", "bench/src/main.cpp", "\n" * 500, 501, "502 lines"),
    Plant("built", "tests/tensor/main_test.cpp", "\n", 1, "names it"),
    Plant("built", "tests/tensor/main_test.c", "\n", 1, "names it"),
    Plant("built", "tensor/src/main-2.cpp", "\n", 1, "names it"),
    Plant("private", "LICENSE", "see " + "/".join(["", "home", "me", "x"]), 2, "one machine"),
    Plant("private", "LICENSE", "https:" + "//registry.example.org/x", 2, "one machine"),
    Plant("private", "LICENSE", "http:" + "//10.0.0.1/x", 2, "one machine"),
    Plant("formatting", SOURCE, "int  x;\n", 6, "not formatted"),
    Plant("readme", "README.md", "\n" * 150, 150, "fewer than 150"),
    Plant("readme", "README.md", "```sh\nno-such-command-here\n```\n", 11, "no command"),
    Plant("readme", "README.md", "```sh\n./tests/run\n```\n", 11, "no program"),
    Plant("readme", "README.md", "```sh\nX=1 cmake --preset fast\n```\n", 11, "no preset 'fast'"),
    Plant("readme", "README.md", "```sh\nls | build/release/bin/other\n```\n", 11, "builds 'other'"),
    Plant("readme", "README.md", "[there](docs/none.md)\n", 10, "link to 'docs/none.md'"),
]


def run(check: str, files: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files.items():
            path = Path(folder, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        Path(folder, "bench/run").chmod(0o755)
        done = subprocess.run([sys.executable, house.__file__, check, folder], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def main() -> int:
    wrong = 0
    skipped = set()
    for check in house.CHECKS:
        if all(plant.check != check for plant in PLANTS):
            wrong += 1
            print(f"{check}: no fault is planted for it")
        status, said = run(check, SOUND)
        if status == 77:
            skipped.add(check)
        elif status != 0:
            wrong += 1
            print(f"{check}: finds fault with a sound tree:\n{said}")
    for plant in PLANTS:
        if plant.check in skipped:
            continue
        status, said = run(plant.check, SOUND | {plant.file: SOUND.get(plant.file, "") + plant.text})
        here = f"{plant.file}:{plant.line}: "
        if status != 1 or not any(line.startswith(here) and plant.message in line for line in said.splitlines()):
            wrong += 1
            print(f"{plant.check}: exit {status} and no '{here}... {plant.message}' for the planted\n"
                  f"{plant.text.strip()}\n{said}")
    print(f"{len(PLANTS)} faults planted, {wrong} wrong answers", *(f"skipped: {check}" for check in skipped), sep=", ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
