#!/usr/bin/env python3
"""house.py CHECK [ROOT]: one rule of the house, checked over the tree at ROOT (this one by default).

Prints a line `file:line: what is wrong` for each fault. Exit: 0 none, 1 some, 2 wrong call, 77 the tool is not here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Iterator, NamedTuple


class Fault(NamedTuple):
    file: str
    line: int
    text: str


class Skipped(Exception):
    pass


PARTS = ("allocators", "tensor", "cuda", "bench", "reports")
MAY_INCLUDE = {
    "allocators": {"allocators"},
    "tensor": {"allocators", "tensor"},
    "cuda": {"allocators", "tensor", "cuda"},
    "bench": {"allocators", "tensor", "cuda", "bench", "reports"},
    "reports": {"reports"},
}
PART_OF_FOLDER = {"tensor": "tensor", "device": "cuda", "bench": "bench", "report": "reports"}

# Inside allocators a header includes its own rank and lower ones. What lies beside concepts.hpp is base: rank 0.
RANK_OF_FOLDER = {"source": 1, "context": 1, "extra": 1, "layer": 1, "adapt": 3}
RANK_OF_FILE = {"presets.hpp": 2, "registry.hpp": 3}

LONGEST_FILE = 500
LONGER_FOR_A_REASON: dict[str, str] = {
    "tests/reports/page_test.mjs": "one browser is started for all checks of the page",
}
LONGEST_README = 150

SKIPPED_FOLDERS = {".git", "build", "node_modules", "out", "__pycache__"}
CODE = {".hpp", ".cpp", ".h", ".c", ".cu", ".cuh"}
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
LANGUAGES = {"c++": ["-std=c++20"], "c": ["-std=c11", "-pedantic"]}


def tree(root: Path) -> list[str]:
    """Files that are or could be committed; all but build products where there is no git."""
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                                capture_output=True, text=True)
        if listed.returncode == 0:
            return sorted(f for f in listed.stdout.split("\0") if f and (root / f).is_file())
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted(found)


def text_of(root: Path, file: str) -> str:
    """Empty for what is no UTF-8 text."""
    try:
        return (root / file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def is_code(file: str) -> bool:
    return Path(file).suffix in CODE


def is_public(file: str) -> bool:
    return re.match(r"(%s)/include/alloclab/" % "|".join(PARTS), file) is not None and is_code(file)


COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|.)\'', re.DOTALL)


def without_comments(text: str) -> str:
    """Lines keep their numbers."""
    return COMMENT_OR_STRING.sub(
        lambda m: m[0] if m[0][0] != "/" else "\n" * m[0].count("\n"), text)


def matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        for match in pattern.finditer(line):
            yield number, match[0]


# ---- include direction

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def included(root: Path, file: str) -> Iterator[tuple[int, str]]:
    """Line and path, from the root, of each include that lies in the tree."""
    for number, line in enumerate(without_comments(text_of(root, file)).split("\n"), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        beside = os.path.normpath(os.path.join(os.path.dirname(file), match[2]))
        if match[1] == '"' and (root / beside).is_file():
            yield number, beside
        elif match[2].startswith("alloclab/"):
            folder = match[2].split("/")[1]
            yield number, f"{PART_OF_FOLDER.get(folder, 'allocators')}/include/{match[2]}"


def rank_in_allocators(file: str) -> int | None:
    match = re.match(r"allocators/include/alloclab/(?:(\w+)/)?(.+)", file)
    if match is None:
        return None
    return RANK_OF_FOLDER.get(match[1], 0) if match[1] else RANK_OF_FILE.get(match[2], 0)


def includes(root: Path) -> Iterator[Fault]:
    """Includes run one way: allocators <- tensor <- cuda <- bench; only bench sees reports, which stands alone."""
    for file in filter(is_code, tree(root)):
        part = file.split("/")[0]
        if part not in PARTS:
            continue
        rank = rank_in_allocators(file)
        for number, target in included(root, file):
            other = target.split("/")[0]
            if other not in MAY_INCLUDE[part]:
                yield Fault(file, number, f"{part} must not include {target}")
            other_rank = rank_in_allocators(target)
            if rank is not None and other_rank is not None and other_rank > rank:
                yield Fault(file, number, f"{target} stands above this header")


DEVICE_WORDS = re.compile(r"\bdevice::\w*|\bsim_device\b|\bcuda\w*|\bcublas\w*")
PAUSING_WORDS = re.compile(r"\b(Pause|Resume)Timing\b")
MIMALLOC_WORDS = re.compile(r"\bmi_\w+|\blibmimalloc\w*|\bmimalloc(-\w+)?\.h\b")


def names(root: Path) -> Iterator[Fault]:
    """tensor names no device; of the public headers, source/mimalloc.hpp alone names mimalloc's symbols; no workload
    pauses its timing, which costs some fifty times what is measured (google/benchmark#179)."""
    for file in filter(is_code, tree(root)):
        code = without_comments(text_of(root, file))
        if file.startswith("tensor/"):
            for number, word in matches(DEVICE_WORDS, code):
                yield Fault(file, number, f"tensor names no device, but here is '{word}'")
        if is_public(file) and not file.endswith("alloclab/source/mimalloc.hpp"):
            for number, word in matches(MIMALLOC_WORDS, code):
                yield Fault(file, number, f"'{word}' belongs in source/mimalloc.hpp")
        if file.startswith("bench/"):
            for number, word in matches(PAUSING_WORDS, code):
                yield Fault(file, number, f"no workload pauses its timing, but here is '{word}'; time a batch")


# ---- public headers

def headers(root: Path) -> Iterator[Fault]:
    """A public header starts with a comment, has #pragma once and defines no macro."""
    for file in filter(is_public, tree(root)):
        text = text_of(root, file)
        if not text.startswith(("//", "/*")):
            yield Fault(file, 1, "starts with a comment: what it is and when to choose it")
        if not re.search(r"^#pragma once$", text, re.MULTILINE):
            yield Fault(file, 1, "has no #pragma once")
        for number, word in matches(re.compile(r"^\s*#\s*define\s+\w+"), without_comments(text)):
            yield Fault(file, number, f"a public header defines no macro, but here is '{word.strip()}'")


def compile_alone(root: Path, compiler: str, language: str, file: str) -> Fault | None:
    """The first thing that the compiler has to say."""
    include_paths = [f"-I{root / part / 'include'}" for part in PARTS]
    done = subprocess.run([compiler, *LANGUAGES[language], "-fsyntax-only", *WARNINGS, *include_paths,
                           "-include", root / file, "-x", language, os.devnull], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    match = re.search(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", done.stderr, re.MULTILINE)
    if match is None:
        return Fault(file, 1, f"{compiler}: {done.stderr.strip()}")
    return Fault(os.path.relpath(match[1], root), int(match[2]), f"{compiler}: {match[3]} (in {file} compiled alone)")


def standalone(root: Path) -> Iterator[Fault]:
    """Every public header compiles on its own, without a warning, with each compiler that is here; a .h is C too."""
    compilers = [c for c in ("g++", "clang++") if shutil.which(c)]
    if not compilers:
        raise Skipped("neither g++ nor clang++ is here")
    jobs = [(c, language, f) for f in filter(is_public, tree(root)) for c in compilers
            for language in (["c++", "c"] if f.endswith(".h") else ["c++"])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(lambda job: compile_alone(root, *job), jobs))


# ---- every file

def length(root: Path) -> Iterator[Fault]:
    """No file of code or prose is longer than 500 lines, save those with a reason above."""
    for file in tree(root):
        if Path(file).suffix in {".json", ".svg", ".txt", ".csv"} or "golden" in Path(file).parts:
            continue
        lines = text_of(root, file).count("\n")
        if lines > LONGEST_FILE and file not in LONGER_FOR_A_REASON:
            yield Fault(file, LONGEST_FILE + 1, f"{lines} lines; at most {LONGEST_FILE}, or a reason in house.py")
        if lines <= LONGEST_FILE and file in LONGER_FOR_A_REASON:
            yield Fault(file, 1, "needs no exception any more")


def built(root: Path) -> Iterator[Fault]:
    """Every source and every test is named in a CMakeLists.txt: none rots unseen."""
    files = tree(root)
    lists = " ".join(text_of(root, f) for f in files if f.endswith("CMakeLists.txt"))
    for file in files:
        if re.match(r"(%s)/src/.*\.cpp$|tests/.*_test\.c(pp)?$" % "|".join(PARTS), file):
            if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(Path(file).name), lists):
                yield Fault(file, 1, "no CMakeLists.txt names it")


# An account's folder or this project's place on somebody's disk; the host that packages were fetched from.
PRIVATE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|work)/\w[\w./-]*"
    r"|\bhttps?://[^\s/]*\b(?:registry|mirrors?|deb|pypi|proxy|artifactory)\b[^\s\"'<>)]*"
    r"|\bhttps?://(?!127\.)\d+\.\d+\.\d+\.\d+[^\s\"'<>)]*")


def private(root: Path) -> Iterator[Fault]:
    """No path of one machine and no host of a package registry."""
    for file in tree(root):
        for number, word in matches(PRIVATE, text_of(root, file)):
            yield Fault(file, number, f"'{word}' is true on one machine only")


def formatting(root: Path) -> Iterator[Fault]:
    """clang-format 14 would change nothing."""
    tool = next((t for t in ("clang-format-14", "clang-format") if shutil.which(t) and " 14." in subprocess.run(
        [t, "--version"], capture_output=True, text=True).stdout), None)
    if tool is None:
        raise Skipped("clang-format 14 is not here, and other versions format differently")
    files = [f for f in tree(root) if is_code(f)]
    if not files:
        return
    said = subprocess.run([tool, "--dry-run", "-Werror", *files], cwd=root, capture_output=True, text=True).stderr
    seen = set()
    for file, number in re.findall(r"^(.+?):(\d+):\d+: error:", said, re.MULTILINE):
        if file not in seen:
            yield Fault(file, int(number), "not formatted; run clang-format-14 -i")
        seen.add(file)


# ---- README.md and the other pages

class Block(NamedTuple):
    language: str
    first_line: int
    lines: list[str]


def blocks(text: str) -> Iterator[Block]:
    inside = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            if inside is None:
                inside = Block(line[3:].strip(), number, [])
            else:
                yield inside
                inside = None
        elif inside is not None:
            inside.lines.append(line)


BUILTINS = {"cd", "export", "source", "."}


def commands(block: Block) -> Iterator[tuple[int, list[str]]]:
    """Line and words of each simple command; a line that ends in a backslash goes on."""
    start, pending = 0, ""
    for number, line in enumerate(block.lines, block.first_line + 1):
        start = start if pending else number
        pending += re.sub(r"(^|\s)#.*", "", line)
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        for command in re.split(r"&&|\|\||[|;]", pending):
            words = command.split()
            while words and re.match(r"\w+=", words[0]):
                words.pop(0)
            if words:
                yield start, words
        pending = ""


def command_fault(root: Path, words: list[str]) -> str:
    name = words[0]
    built = re.fullmatch(r"(?:\./)?build/([\w-]+)/bin/([\w-]+)", name)
    presets = {p["name"] for p in json.loads(text_of(root, "CMakePresets.json") or "{}").get("configurePresets", [])}
    wanted = ([built[1]] if built else []) + [b for a, b in zip(words, words[1:]) if a == "--preset"]
    for preset in wanted:
        if preset not in presets:
            return f"CMakePresets.json has no preset '{preset}'"
    if built:
        target = re.compile(r"add_executable\(\s*%s\b|OUTPUT_NAME\s+%s\b" % (re.escape(built[2]), re.escape(built[2])))
        if not any(target.search(text_of(root, f)) for f in tree(root) if f.endswith("CMakeLists.txt")):
            return f"no CMakeLists.txt builds '{built[2]}'"
    elif "/" in name:
        if not os.access(root / name, os.X_OK):
            return f"no program '{name}'"
    elif name not in BUILTINS and not shutil.which(name):
        return f"no command '{name}'"
    return ""


def readme(root: Path) -> Iterator[Fault]:
    """README.md is short and its commands exist; links in every page lead somewhere."""
    text = text_of(root, "README.md") if (root / "README.md").is_file() else ""
    if not text:
        yield Fault("README.md", 1, "is missing or empty")
    if text.count("\n") >= LONGEST_README:
        yield Fault("README.md", LONGEST_README, f"{text.count(chr(10))} lines; fewer than {LONGEST_README}")
    for block in blocks(text):
        if block.language == "sh":
            for number, words in commands(block):
                if fault := command_fault(root, words):
                    yield Fault("README.md", number, fault)
    for page in (f for f in tree(root) if f.endswith(".md")):
        for number, link in matches(re.compile(r"(?<=\]\()[^)\s#]+"), text_of(root, page)):
            target = os.path.normpath(os.path.join(os.path.dirname(page), link))
            if not re.match(r"\w+:", link) and not (root / target).exists():
                yield Fault(page, number, f"link to '{link}', which is not here")


CHECKS: dict[str, Callable[[Path], Iterator[Fault]]] = {
    f.__name__: f for f in (includes, names, headers, standalone, length, built, private, formatting, readme)}


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2 or arguments[0] not in CHECKS:
        print(f"house.py: say one of {', '.join(CHECKS)}, then a folder or nothing", file=sys.stderr)
        return 2
    root = Path(arguments[1] if len(arguments) == 2 else Path(__file__).parents[2]).resolve()
    try:
        faults = list(CHECKS[arguments[0]](root))
    except Skipped as reason:
        print(f"skipped: {reason}")
        return 77
    for fault in faults:
        print(f"{fault.file}:{fault.line}: {fault.text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
