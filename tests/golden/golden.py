#!/usr/bin/env python3
"""golden.py ALLOCLAB FILE [--update]: whether the cells of FILE count what they did when it was written.

instructions.csv  instructions of one operation in this program itself, and its calls into libraries, under valgrind:
                  the same on every CPU of the architecture. What a library then spends is not in it, since that changes
                  with its version and, where it chooses by what the CPU can do, with the CPU.
counts.csv        page faults and source calls of one round (an eval, a load, a batch of pairs; in extra/first_eval the
                  first), the objects that it leaves behind, those left after the model too, and the most bytes held.

A field is empty where the count depends on more than the code, and is then not compared. All other differences fail,
the better ones too: run tests/golden/update, and commit the file with the change that made them.
Exit: 0 all as in the file, 1 not, 2 wrong call, 3 measuring failed, 77 cannot be compared here.
"""

import csv
import json
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Callable, NamedTuple


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


Cell = tuple[str, str, str]  # workload, parameters, strategy
Figures = dict[str, float]
NAMES_OF_CELL = ["workload", "parameters", "strategy"]


class Choice(NamedTuple):
    workload: str
    parameters: dict[str, str]  # the values of each, between blanks
    strategies: Callable[[dict], bool] = lambda strategy: True


def named(*names: str) -> Callable[[dict], bool]:
    return lambda strategy: strategy["name"] in names


def pools(strategy: dict) -> bool:
    """Those that could cost more the more slots are live."""
    return not strategy["control"] and not strategy["name"].startswith("heap_")


INSTRUCTIONS = [
    Choice("context/slots", {"live": "8"}),
    Choice("context/slots", {"live": "0 63 256"}, pools),
    Choice("context/replace", {"live": "48"}, pools),
    Choice("context/init_free", {"live": "8", "heap": "aged"}, named("heap_malloc", "static_pool", "hybrid")),
    Choice("context/renew", {"context": "reset"}, named("hybrid")),
    Choice("extra/eval", {"tensors": "1061", "heap": "aged", "clear": "used"}),
    Choice("extra/eval", {"tensors": "1061", "heap": "aged", "clear": "all"}, named("free_list", "bump_arena")),
    Choice("extra/eval_72", {"tensors": "1061", "clear": "all"}, named("free_list", "bump_arena")),
    Choice("extra/scope", {"scope": "thread_local"}, named("bump_arena")),
    Choice("eval/buffers", {"buffer": "fixed growing", "context": "reset"}, named("hybrid")),
    Choice("eval/extras", {"model": "llama-2-7b"}, named("bump_arena")),
    Choice("peers/graph", {"model": "llama-2-7b"}, named("fixed", "growing", "last_order")),
]
COUNTS = [
    Choice("context/slots", {"live": "8 256"}),
    Choice("context/replace", {"live": "48"}),
    Choice("context/renew", {"context": "fresh"}),
    Choice("context/whisper_states", {"contexts": "7", "states": "16"}),
    Choice("context/multi_gpu_load", {"devices": "8"}),
    Choice("eval/contexts", {"model": "llama-2-7b", "context": "fresh"}),
    Choice("eval/buffers", {"buffer": "fixed growing", "context": "reset fresh"}, named("hybrid")),
    Choice("extra/eval", {"tensors": "1061", "heap": "aged bare", "clear": "all used"}),
    Choice("extra/eval_256", {"tensors": "1061", "clear": "all"}),
    Choice("extra/eval_72", {"tensors": "1061", "clear": "all"}),
    Choice("extra/first_eval", {"tensors": "1061", "heap": "bare"}),
    Choice("extra/growth", {"lifetime": "temporary persistent"}),
    Choice("eval/extras", {"model": "llama-2-7b"}),
    Choice("peers/graph", {"model": "llama-2-7b"}, named("fixed", "growing", "last_order")),
]


def alloclab(*words: str) -> str:
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        said = done.stderr.strip() or f"ended with {done.returncode}"
        raise Failed(f"alloclab {' '.join(words)}: {said}")
    return done.stdout


def cells(choices: list[Choice]) -> list[Cell]:
    listed = json.loads(alloclab("list", "--json"))
    strategies = {(s["kind"], s["name"]): s for s in listed["strategies"]}
    workloads = {w["name"]: w for w in listed["workloads"]}
    return [(c.workload, " ".join(values), name)
            for c in choices
            for values in product(*([f"{axis}={v}" for v in of.split()] for axis, of in c.parameters.items()))
            for name in workloads[c.workload]["strategies"]
            if c.strategies(strategies[workloads[c.workload]["kind"], name])
            and "mimalloc" not in name]  # a library that not all machines have


def counters(cell: Cell, option: str) -> Figures | None:
    """None where the strategy refuses."""
    workload, parameters, strategy = cell
    answer = json.loads(alloclab("worker", workload, strategy, option, *parameters.split()))
    if answer["error"]:
        raise Failed(f"{' '.join(cell)}: {answer['error']}")
    return None if answer["refusal"] else answer["seen"]["counters"]


def instructions(cell: Cell) -> Figures | None:
    seen = counters(cell, "--instructions")
    return seen and {"instructions": seen["own_instructions"], "library_calls": seen["library_calls"]}


def counts(cell: Cell) -> Figures | None:
    """The least faults of three processes, and of up to eight while all have some, since the system takes a page away now
    and then and has it faulted in again; of all else the most, so that what one process alone leaves behind is seen."""
    tries = [counters(cell, "--observe") for _ in range(3)]
    if tries[0] is None:
        return None
    faults = [name for name in tries[0] if name.startswith("faults_per_")]
    while faults and len(tries) < 8 and min(seen[faults[0]] for seen in tries) > 0:
        tries.append(counters(cell, "--observe"))
    columns = {"faults": "faults_per_", "source_calls": "source_calls_", "leaked": "leaked",
               "left_after_model": "left_after_model", "reserved_bytes": "reserved_bytes"}
    return {column: (min if column == "faults" else max)(seen[name] for seen in tries)
            for column, start in columns.items() for name in tries[0] if name.startswith(start)}


class Golden(NamedTuple):
    choices: list[Choice]
    measure: Callable[[Cell], Figures | None]
    columns: list[str]

    def all(self) -> dict[Cell, Figures]:
        wanted = cells(self.choices)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return {cell: seen for cell, seen in zip(wanted, pool.map(self.measure, wanted)) if seen is not None}


GOLDEN = {
    "instructions.csv": Golden(INSTRUCTIONS, instructions, ["instructions", "library_calls"]),
    "counts.csv": Golden(COUNTS, counts, ["faults", "source_calls", "leaked", "left_after_model", "reserved_bytes"]),
}


def maker(file: Path) -> str:
    """What its figures depend on beside the code."""
    if file.name == "counts.csv":
        return platform.machine()
    if shutil.which("valgrind") is None:
        raise Skipped("no valgrind on PATH, so no instructions can be counted")
    return f"{alloclab('--version').strip().split(', ', 1)[1]}, {platform.machine()}"


def text(value: float) -> str:
    return f"{value:.10g}"


def is_exact(column: str, value: float) -> bool:
    """How many new pages a round touches depends on the state of the heap; that it touches none does not."""
    return column != "faults" or value == 0


def write(file: Path, made_with: str, seen: dict[Cell, Figures]) -> None:
    columns = GOLDEN[file.name].columns
    with open(file, "w", newline="") as out:
        print(f"# {made_with}", file=out)
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(NAMES_OF_CELL + columns)
        for cell, figures in seen.items():
            rows.writerow([*cell, *(text(figures[c]) if c in figures and is_exact(c, figures[c]) else "" for c in columns)])


def read(file: Path) -> tuple[str, dict[Cell, dict[str, str]]]:
    with open(file, newline="") as lines:
        made_with = next(lines).removeprefix("# ").strip()
        return made_with, {tuple(row.pop(name) for name in NAMES_OF_CELL): row for row in csv.DictReader(lines)}


def differences(golden: dict[Cell, dict[str, str]], now: dict[Cell, Figures]) -> list[tuple[str, str, str, str, str]]:
    rows = []
    for cell in golden | now:
        if cell not in golden or cell not in now:
            there, gone = ("", "new") if cell not in golden else ("there", "")
            rows.append((" ".join(cell), "cell", there, gone, ""))
            continue
        for column, before in golden[cell].items():
            after = text(now[cell][column]) if column in now[cell] else ""
            if before and after != before:
                change = f"{(float(after) / float(before) - 1) * 100:+.2f} %" if after and float(before) else ""
                rows.append((" ".join(cell), column, before, after, change))
    return rows


def main(arguments: list[str]) -> int:
    if not 2 <= len(arguments) <= 3 or Path(arguments[1]).name not in GOLDEN or arguments[2:] not in ([], ["--update"]):
        print(f"golden.py: expected ALLOCLAB, a path to {' or '.join(GOLDEN)}, and --update or nothing", file=sys.stderr)
        return 2
    file = Path(arguments[1])
    here = maker(file)
    if arguments[2:]:
        write(file, here, GOLDEN[file.name].all())
        return 0
    made_with, golden = read(file)
    if made_with != here:
        raise Skipped(f"{file.name} was made with {made_with}; this is {here}")
    rows = differences(golden, GOLDEN[file.name].all())
    if not rows:
        return 0
    table = [("cell", "count", "golden", "now", "change"), *rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        print("  ".join(field.ljust(width) for field, width in zip(row, widths)).rstrip())
    print(f"\n{len(rows)} differences. Where they are meant: tests/golden/update, and {file.name} into the same commit.")
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Skipped as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    except Failed as what:
        print(what, file=sys.stderr)
        sys.exit(3)
