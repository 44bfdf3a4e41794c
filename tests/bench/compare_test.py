"""alloclab compare as a CI step runs it: compare_test.py ALLOCLAB [CLASS...]. Result files are made, never measured."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALLOCLAB = sys.argv[1]
ODD = 'pool<int, 4> "λ"\n</script>|`🧠`=1'


def compare(*arguments, **options):
    return subprocess.run([ALLOCLAB, "compare", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          **options)


def made(blocks=9, slower=1.0, machine="m1"):
    """Two strategies and the A/A twin of the first; times drift from block to block, their ratios do not."""
    def cell(strategy, ns):
        drift = [1 + 0.2 * (i % 4) for i in range(blocks)]
        return {"workload": "context/slots", "strategy": strategy, "parameters": {"live": "64"},
                "samples": [{"block": i, "value": ns * d * (1 + 0.001 * (i % 3)), "calibration": d}
                            for i, d in enumerate(drift)],
                "counters": {"peak_bytes": 1000, "leaked": 0, "instructions": 40}}
    return {"schema": "alloclab-run/1",
            "environment": [{"name": "machine", "value": machine}, {"name": "build", "value": "Release: -O3"}],
            "strategies": [{"name": "heap", "kind": "context"}, {"name": "pool", "kind": "context"},
                           {"name": "heap (A/A)", "kind": "context", "twin_of": "heap"}],
            "workloads": [{"name": "context/slots", "kind": "context", "unit": "ns/op", "baseline": "heap"}],
            "cells": [cell("heap", 20), cell("heap (A/A)", 20), cell("pool", 5 * slower)]}


def google(times, **more):
    return {"context": {"host_name": "h", "num_cpus": 2},
            "benchmarks": [{"name": "BM_a", "run_type": "iteration", "real_time": t, "time_unit": "ns", **more}
                           for t in times]}


class with_files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def file(self, name, content):
        path = self.path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def compared(self, code, base, new, *arguments):
        """Compares two made runs; whatever does not end with 0 says why in one line."""
        done = compare(self.file("base.json", base), self.file("new.json", new), *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 0 if code == 0 else 1, done.stderr)
        return done


class gates(with_files):
    def test_a_run_against_itself_passes_and_without_gates_is_only_shown(self):
        every = ["--fail-if", "time>3%", "--fail-if", "peak_bytes>0", "--fail-if", "instructions>0", "--fail-if", "leaked>0"]
        self.assertIn("passed", self.compared(0, made(), made(), *every).stdout)
        self.assertIn("no gate asked for", self.compared(0, made(), made(slower=2)).stdout)

    def test_each_kind_of_regression_fails_naming_gate_and_strategy(self):
        for metric, worse in [("instructions", 42), ("peak_bytes", 1001), ("leaked", 1)]:
            new = made()
            new["cells"][2]["counters"][metric] = worse
            done = self.compared(1, made(), new, "--fail-if", f"{metric}>0", "--fail-if", "time>3%")
            self.assertIn(f"{metric}>0 by pool", done.stderr)
            self.assertIn("failed", done.stdout)
        done = self.compared(1, made(), made(slower=1.1), "--fail-if", "time>3%")
        self.assertIn("time>3% by pool", done.stderr)
        self.assertIn("+10.0 %", done.stdout)
        self.compared(0, made(slower=1.1), made(), "--fail-if", "time>3%")

    def test_what_is_missing_never_passes(self):
        for metric, spoil in [("leaked", lambda c: c["counters"].pop("leaked")),
                              ("leaked", lambda c: c["counters"].update(leaked=None)),
                              ("time", lambda c: c.update(samples=[])),
                              ("time", lambda c: c.update(samples=[{"block": 0, "value": None}])),
                              ("time", lambda c: c.update(error="ended by signal 11")),
                              ("leaked", lambda c: c.update(refusal="full at 64 of 64"))]:
            new = made()
            spoil(new["cells"][2])
            gate = f"{metric}>0%"
            self.assertIn("NEW", self.compared(1, made(), new, "--fail-if", gate, "--lenient").stdout)
        less = made()
        less["cells"].pop()
        self.assertIn("missing in NEW", self.compared(1, made(), less, "--fail-if", "leaked>0").stdout)
        self.compared(0, made(), less, "--fail-if", "leaked>0", "--lenient")
        self.assertIn("only in NEW", self.compared(0, less, made(), "--fail-if", "leaked>0", "--lenient").stdout)
        self.assertIn("nothing to hold", self.compared(1, less, made(), "--fail-if", "leaked>0").stdout)

    def test_what_only_one_file_can_show_fails(self):
        bare = made()
        bare["cells"][2]["counters"].pop("leaked")
        self.assertIn("BASE", self.compared(1, bare, made(), "--fail-if", "leaked>0").stdout)
        broken = made()
        broken["cells"][2].update(samples=[], counters={}, error="ended by signal 9")
        self.assertIn("failed in BASE", self.compared(1, broken, made(), "--fail-if", "leaked>0").stdout)
        self.compared(0, broken, made(), "--fail-if", "leaked>0", "--lenient")
        lost = made()
        for sample in lost["cells"][2]["samples"][:2]:
            sample["value"] = None
        self.assertIn("no number in NEW", self.compared(1, made(), lost, "--fail-if", "time>3%").stdout)
        self.assertIn("by 1 cell of pool", self.compared(1, {**made(), "cells": made()["cells"][:2]}, made(),
                                                         "--fail-if", "leaked>0").stderr)

    def test_a_rise_to_the_limit_itself_passes(self):
        for before, after, limit in [(100, 103, "3%"), (100, 110, "10%"), (10, 10.5, "5%")]:
            self.compared(0, google([before] * 9), google([after] * 9), "--fail-if", f"time>{limit}")

    def test_cells_of_a_sweep_that_changed_machines_have_no_common_time(self):
        def merged(machine):
            r = made()
            r["machines"] = [{"name": m, "environment": [{"name": "machine", "value": m}]} for m in "ab"]
            for cell in r["cells"]:
                for sample in cell["samples"]:
                    sample["machine"] = machine
            return r
        self.compared(0, merged(0), merged(0), "--fail-if", "time>3%")
        self.assertIn("another machine", self.compared(4, merged(0), merged(1), "--fail-if", "time>3%").stderr)
        lost = merged(0)
        lost["cells"][2]["samples"] = []
        self.assertIn("NEW", self.compared(1, merged(0), lost, "--fail-if", "time>3%").stdout)

    def test_a_full_output_hides_no_failure(self):
        new = made()
        new["cells"][2]["counters"]["leaked"] = 1
        with open("/dev/full", "w") as full:
            done = subprocess.run([ALLOCLAB, "compare", self.file("base.json", made()), self.file("new.json", new),
                                   "--fail-if", "leaked>0"], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 1)

    def test_dev_stdout_is_appended_to(self):
        base, log = self.file("base.json", made()), self.path / "log"
        log.write_text("before\n")
        with open(log, "a") as appended:
            subprocess.run([ALLOCLAB, "compare", base, base, "--fail-if", "leaked>0", "--markdown", "-o", "/dev/stdout"],
                           stdout=appended, timeout=60, check=True)
        self.assertTrue(log.read_text().startswith("before\n"))
        self.assertIn("gates passed", log.read_text())

    def test_nothing_to_gate_is_3_and_names_the_metrics_that_exist(self):
        done = self.compared(3, made(), made(), "--fail-if", "page_faults>0")
        self.assertIn("page_faults", done.stderr)
        self.assertIn("time, instructions, leaked, peak_bytes", done.stderr)
        self.compared(3, made(), {**made(), "cells": []}, "--fail-if", "leaked>0", "--lenient")
        self.compared(3, {**made(), "cells": []}, made())

    def test_an_uncertain_time_passes_or_fails_as_asked(self):
        few = made(blocks=5)
        self.assertIn("5 block", self.compared(0, few, few, "--fail-if", "time>3%").stdout)
        self.compared(5, few, few, "--fail-if", "time>3%", "--on-inconclusive", "fail")
        self.compared(0, made(), made(), "--fail-if", "time>3%", "--on-inconclusive", "fail")

    def test_times_of_other_machines_are_refused_and_counts_are_not(self):
        other, nameless = made(machine="m2"), made(machine="")
        self.assertIn("different machines", self.compared(4, made(), other, "--fail-if", "time>3%").stderr)
        self.assertIn("BASE does not say", self.compared(4, nameless, made(), "--fail-if", "time>3%").stderr)
        self.compared(0, made(), other, "--fail-if", "leaked>0")
        other["cells"][2]["counters"]["leaked"] = 1
        self.compared(1, made(), other, "--fail-if", "leaked>0", "--fail-if", "time>3%")


class files(with_files):
    def test_bad_gates_and_options_are_refused_in_one_line(self):
        for gate, expected in [("time", "METRIC>NUMBER"), ("time>3", "percentage"), ("leaked>x", "number from 0"),
                               (">1", "name of a metric"), ("a\n\x1b>", "number from 0")]:
            done = self.compared(2, made(), made(), "--fail-if", gate)
            self.assertIn(expected, done.stderr)
            self.assertIn("metrics of BASE: time, instructions, leaked, peak_bytes", done.stderr)
        self.compared(2, made(), made(), "--on-inconclusive", "maybe")
        self.compared(2, made(), made(), "--json", "--markdown")

    def test_unreadable_files_are_named_with_their_place(self):
        good = self.file("good.json", made())
        whole = good.read_text()
        for name, text, expected in [("truncated.json", whole[: len(whole) // 2], "truncated"),
                                     ("text.json", "{\n  hello\n}", "line 2, column 3"), ("empty.json", "", "empty file"),
                                     ("table.csv", "name,iterations,real_time,cpu_time,time_unit\n", "--benchmark_out_format=json")]:
            bad = self.file(name, text)
            for pair in [(bad, good), (good, bad)]:
                done = compare(*pair, "--fail-if", "leaked>0")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(name, done.stderr)
                self.assertIn(expected, done.stderr)
        self.assertIn("absent.json", compare(good, self.path / "absent.json").stderr)
        self.assertEqual(compare(good).returncode, 2)

    def test_another_schema_or_program_is_not_comparable(self):
        self.assertIn("alloclab-run/2", self.compared(4, made(), {**made(), "schema": "alloclab-run/2"}).stderr)
        self.compared(4, made(), google([1]), "--fail-if", "time>3%")
        self.compared(4, google([1]), made())

    def test_a_pipe_is_read_once(self):
        base = self.file("base.json", made())
        read, write = os.pipe()
        os.write(write, json.dumps(made()).encode())  # less than a pipe holds
        os.close(write)
        done = compare(base, f"/dev/fd/{read}", "--fail-if", "leaked>0", pass_fds=[read])
        os.close(read)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_output_never_overwrites_what_is_compared(self):
        base = self.file("base.json", made())
        link = self.path / "link.json"
        link.symlink_to(base)
        before = base.read_text()
        for output in [base, link]:
            done = compare(base, self.file("new.json", made()), "-o", output)
            self.assertEqual(done.returncode, 2)
            self.assertIn("overwrite", done.stderr)
        self.assertEqual(base.read_text(), before)
        self.assertEqual(compare(base, base, "-o", self.path / "none" / ".." / "").returncode, 2)


class outputs(with_files):
    def setUp(self):
        super().setUp()
        self.base, self.new = made(), made()
        for run in (self.base, self.new):
            run["strategies"][1]["name"] = run["cells"][2]["strategy"] = ODD
        self.new["cells"][2]["counters"]["leaked"] = 3

    def test_json_holds_every_change_and_names_exactly(self):
        seen = json.loads(self.compared(1, self.base, self.new, "--fail-if", "leaked>0", "--json").stdout)
        self.assertEqual((seen["schema"], seen["outcome"]), ("alloclab-compare/1", "failed"))
        self.assertEqual(len(seen["changes"]), 3)
        first = seen["changes"][0]
        self.assertEqual((first["strategy"], first["parameters"], first["metric"]), (ODD, {"live": "64"}, "leaked"))
        self.assertEqual((first["base"], first["new"], first["share"], first["state"]), (0, 3, None, "failed"))

    def test_markdown_is_one_table_in_which_no_name_breaks_out(self):
        text = self.compared(1, self.base, self.new, "--fail-if", "leaked>0", "--markdown").stdout
        self.assertIn(":x:", text)
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len(rows), 3, text)
        self.assertNotIn("</script>", text.replace("`", "").replace("&lt;", ""))

    def test_the_terminal_shows_no_control_character_and_no_colour_in_a_pipe(self):
        for run in (self.base, self.new):
            run["strategies"][1]["name"] = run["cells"][2]["strategy"] = "\x1b[31mred"
        text = self.compared(1, self.base, self.new, "--fail-if", "leaked>0").stdout
        self.assertNotIn("\x1b", text)

    def test_a_file_takes_the_format_and_the_terminal_the_table(self):
        output = self.path / "folder" / "changes.md"
        done = self.compared(1, self.base, self.new, "--fail-if", "leaked>0", "--markdown", "-o", output)
        self.assertIn(":x:", output.read_text())
        self.assertNotIn(":x:", done.stdout)
        self.assertIn("failed", done.stdout)


class google_benchmark(with_files):
    def test_repetitions_are_gated_like_blocks(self):
        base, slow = google([10 + 0.01 * i for i in range(9)]), google([11 + 0.01 * i for i in range(9)])
        self.compared(0, base, base, "--fail-if", "time>3%", "--on-inconclusive", "fail")
        self.assertIn("BM_a", self.compared(1, base, slow, "--fail-if", "time>3%").stderr)
        self.compared(5, google([10] * 5), base, "--fail-if", "time>3%", "--on-inconclusive", "fail")

    def test_errors_and_numbers_that_are_not_finite_fail(self):
        base = google([10] * 6, peak_bytes=5)
        broken = google([10], error_occurred=True, error_message="no\ndevice")
        self.assertIn("failed in NEW", self.compared(1, base, broken, "--fail-if", "peak_bytes>0").stdout)
        bare = json.dumps(google([10] * 6, peak_bytes=float("nan")))
        self.assertIn("NaN", bare)
        self.assertIn("no number in NEW", self.compared(1, base, bare, "--fail-if", "peak_bytes>0").stdout)
        self.assertIn("no number in BASE", self.compared(1, bare, base, "--fail-if", "peak_bytes>0").stdout)

    def test_a_host_that_is_not_named_is_none(self):
        nameless = google([10] * 9)
        del nameless["context"]["host_name"]
        self.compared(4, nameless, nameless, "--fail-if", "time>3%")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
