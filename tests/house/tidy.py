#!/usr/bin/env python3
"""tidy.py BUILD [FILE...]: clang-tidy 14 over what the build tree compiles of this project, or over the files named, on
all cores. Skipped is what lies in the build tree itself, other people's sources, fetched there; and what nvcc compiles,
whose options clang-tidy does not take.

Exit: 0 nothing found, 1 something found, 2 no compile_commands.json, 77 clang-tidy 14 is not here.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOOL = "clang-tidy-14"


def tidy(build: Path, file: str) -> str:
    done = subprocess.run([TOOL, "-p", str(build), "--quiet", "--warnings-as-errors=*",
                           "--extra-arg=-Wno-unknown-warning-option", file],  # the compiler there may be g++
                          capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def main(build: Path, files: list[str]) -> int:
    if shutil.which(TOOL) is None:
        print(f"skipped: {TOOL} is not here")
        return 77
    try:
        commands = json.loads((build / "compile_commands.json").read_text())
    except OSError as error:
        print(f"tidy.py: {error}", file=sys.stderr)
        return 2
    fetched = str(build.resolve()) + os.sep
    files = files or sorted({c["file"] for c in commands
                              if not c["file"].startswith(fetched) and not c["file"].endswith(".cu")})
    found = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(lambda file: tidy(build, file), files):
            if said:
                found += 1
                print(said, flush=True)
    print(f"{TOOL}: {len(files)} files, something found in {found}")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
