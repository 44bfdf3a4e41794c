"""The alloclab command as its user runs it: command_test.py ALLOCLAB [CLASS...]."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ALLOCLAB = sys.argv[1]
SHORT = ["--blocks", "2", "--min-time", "1"]


def alloclab(*arguments, **options):
    return subprocess.run([ALLOCLAB, *arguments], capture_output=True, text=True, timeout=240, **options)


class in_folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def measure(self, *arguments):
        output = self.path / "run.json"
        done = alloclab("run", *SHORT, "-o", str(output), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(output.read_text())

    def refused(self, code, expected, *arguments):
        done = alloclab(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("warning:")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn(expected, lines[0])


class list(unittest.TestCase):
    def test_names_every_strategy_with_its_traits(self):
        listed = json.loads(alloclab("list", "--json").stdout)
        by_name = {s["name"]: s for s in listed["strategies"]}
        for name in ["heap_malloc", "heap_aligned_malloc", "heap_mimalloc", "static_pool", "hybrid", "scan_pool",
                     "scan_pool_lock_over_buffer", "first_call_heap", "per_tensor", "free_list", "bump_arena", "ring",
                     "inline_extra", "leaky", "malloc", "aligned_malloc", "mimalloc", "pages", "buffer"]:
            self.assertIn(name, by_name)
        self.assertEqual(len(by_name), len(listed["strategies"]))
        for s in listed["strategies"]:
            self.assertIn(s["kind"], {"context", "extra", "source"})
            self.assertIn(s["threads"], {"single", "shared"})
            self.assertEqual(s["bounded"], s["capacity"] is not None)
            self.assertTrue(s["when_full"])
        self.assertEqual(by_name["static_pool"]["capacity"], 64)
        self.assertEqual(by_name["ring"]["capacity"], 4096)
        self.assertEqual(by_name["hybrid"]["when_full"], "the back serves")
        self.assertTrue(by_name["leaky"]["control"] and not by_name["hybrid"]["control"])

    def test_names_every_model_with_its_nodes(self):
        models = {m["name"]: m for m in json.loads(alloclab("list", "--json").stdout)["models"]}
        self.assertTrue(900 <= models["llama-2-7b"]["decode_nodes"] <= 1300)
        for name in ["llama-2-13b", "llama-2-70b", "llama-3-8b", "whisper-tiny", "whisper-base", "whisper-small",
                     "whisper-medium", "whisper-large-v3"]:
            self.assertTrue(models[name]["full"])
            self.assertFalse(models[name + "-small"]["full"])


class run(in_folder):
    def test_measures_what_was_asked_for_and_the_baseline_beside_it(self):
        seen = self.measure("-w", "context/slots", "-s", "hybrid", "--live", "3,70")
        cells = {(c["strategy"], c["parameters"]["live"]): c for c in seen["cells"]}
        self.assertEqual(set(cells), {(s, n) for s in ["heap_malloc", "hybrid"] for n in ["3", "70"]})
        for cell in cells.values():
            self.assertEqual([s["block"] for s in cell["samples"]], [0, 1])
            self.assertTrue(all(0.1 < s["value"] < 1e6 for s in cell["samples"]))
        self.assertFalse(seen["partial"])
        self.assertIn("--live 3,70", seen["command"])

    def test_says_that_the_c_library_serves_malloc_while_mimalloc_is_measured(self):
        seen = self.measure("-w", "context/slots", "-s", "heap_mimalloc", "--live", "1")
        facts = {fact["name"]: fact["value"] for fact in seen["environment"]}
        self.assertIn("(the C library)", facts["malloc served by"])
        mimalloc = next(c for c in seen["cells"] if c["strategy"] == "heap_mimalloc")
        if facts["mimalloc"] == "absent":
            self.assertIn("not available", mimalloc["refusal"])
        else:
            self.assertEqual(len(mimalloc["samples"]), 2)

    def test_shows_the_leak_of_200_extras_per_eval_and_no_other(self):
        seen = self.measure("-w", "extra/growth")
        for cell in seen["cells"]:
            live = cell["series"]["live_extras"]
            self.assertEqual(len(live), 1000)
            each = 200 if cell["strategy"] == "leaky" else 0
            self.assertEqual(live, [each * (i + 1) for i in range(1000)], cell["strategy"])

    def test_fits_9_states_of_7_contexts_or_15_of_4_into_64_slots(self):
        seen = self.measure("-w", "context/whisper_states", "-s", "static_pool,hybrid", "-p", "states=9,10,15,16")
        cells = {(c["strategy"], c["parameters"]["contexts"], c["parameters"]["states"]): c for c in seen["cells"]}
        for contexts, fits, refuses in [("7", "9", "10"), ("4", "15", "16")]:
            self.assertEqual(cells["static_pool", contexts, fits]["refusal"], "")
            self.assertIn("refused context 65", cells["static_pool", contexts, refuses]["refusal"])
            self.assertEqual(cells["static_pool", contexts, refuses]["error"], "")
            self.assertEqual(cells["hybrid", contexts, refuses]["refusal"], "")
        spilled = cells["hybrid", "7", "16"]["counters"]
        self.assertEqual((spilled["contexts_in_front"], spilled["contexts_in_back"]), (64, 16 * 7 + 1 - 64))

    def test_splits_an_eval_into_its_parts(self):
        seen = self.measure("-w", "eval/contexts,eval/extras", "-s", "hybrid,bump_arena", "--model", "llama-2-7b,llama-3-8b-small")
        for cell in seen["cells"]:
            parts = {"context", "build", "plan", "extras"}
            if cell["parameters"]["model"].endswith("-small"):
                parts.add("compute")
            self.assertEqual(set(cell["parts"]), parts)
            # The whole may be longer by what a busy machine takes between its clock and the parts' first.
            self.assertLess(sum(cell["parts"].values()), 1.05 * max(s["value"] for s in cell["samples"]))
            self.assertTrue(all(1 < part < 1e9 for part in cell["parts"].values()), cell["parts"])
            self.assertGreater(cell["parts"]["build"], cell["parts"]["context"])

    def test_quick_covers_every_workload(self):
        listed = json.loads(alloclab("list", "--json").stdout)
        seen = self.measure("--quick", "--blocks", "1")
        self.assertEqual({c["workload"] for c in seen["cells"]}, {w["name"] for w in listed["workloads"]})


class bad_input(in_folder):
    def test_unknown_names_and_values_are_refused_with_what_there_is(self):
        output = self.path / "run.json"
        for expected, arguments in [
            ("heap_malloc", ["-s", "heap_mallok"]),
            ("context/slots", ["-w", "context/slot"]),
            ("llama-2-7b", ["--model", "llama-7b"]),
            ("whole number from 0", ["--live", "many"]),
            ("whole number from 1", ["--threads", "0"]),
            ("one of 7, 4", ["-p", "contexts=5"]),
            ("stands twice", ["--live", "8,8"]),
            ("no value", ["-p", "live="]),
            ("no chosen workload", ["-w", "context/slots", "--model", "llama-2-7b"]),
            ("--seed", ["--seed", "-1"]),
            ("???", ["-w", "\x1b\n\x07"]),
            ("no parameter", ["-p", "colour=red"]),
            ("name=value", ["-p", "live"]),
            ("--blocks", ["--blocks", "0"]),
            ("--frobnicate", ["--frobnicate"]),
        ]:
            with self.subTest(arguments=arguments):
                self.refused(2, expected, "run", "-o", str(output), *arguments)
                self.assertFalse(output.exists())

    def test_a_selection_of_nothing_is_said(self):
        self.refused(3, "no workload", "run", "-w", "extra/*", "-s", "static_pool", "-o", str(self.path / "run.json"))
        self.refused(3, "no workload", "run", "-w", "nothing*", "-o", str(self.path / "run.json"))

    def test_a_pattern_that_matches_nothing_is_said_when_others_match(self):
        done = alloclab("run", *SHORT, "-w", "context/slots,contxt/*", "-s", "hybrid", "--live", "1", "-o",
                        str(self.path / "run.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('no workload matches "contxt/*"', done.stderr)

    def test_output_that_is_lost_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([ALLOCLAB, "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output", done.stderr)

    def test_output_that_cannot_be_written_is_refused_before_measuring(self):
        start = time.monotonic()
        self.refused(2, "folder", "run", "-o", str(self.path))
        self.refused(2, "/proc", "run", "-o", "/proc/run.json")
        self.refused(2, "no name", "run", "-o", "")
        self.assertLess(time.monotonic() - start, 5)

    def test_no_command_is_said(self):
        self.refused(2, "subcommand", )

    def test_a_bad_file_leaves_an_old_report_alone(self):
        good = self.path / "run.json"
        self.measure("-w", "context/slots", "-s", "hybrid", "--live", "1")
        whole = good.read_text()
        old = self.path / "index.html"
        old.write_text("old")
        foreign = {"context": {"date": "2024"}, "benchmarks": []}
        for name, text, expected in [("truncated.json", whole[: len(whole) // 2], "truncated.json"),
                                     ("foreign.json", json.dumps(foreign), "foreign.json"),
                                     ("empty.json", "", "empty.json"),
                                     ("text.json", "hello", "text.json")]:
            bad = self.path / name
            bad.write_text(text)
            self.refused(2, expected, "report", str(bad))
            self.assertEqual(old.read_text(), "old")
        self.refused(2, "absent.json", "report", str(self.path / "absent.json"))


class report(in_folder):
    def test_writes_html_markdown_and_csv_that_agree_with_the_run(self):
        seen = self.measure("-w", "context/slots,extra/growth", "-s", "hybrid,leaky,bump_arena", "--live", "1")
        done = alloclab("report", str(self.path / "run.json"), "-o", str(self.path / "out"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("hybrid", done.stdout)
        html = (self.path / "out" / "index.html").read_text()
        self.assertIn("leaky", html)
        self.assertIn("200", html)
        self.assertNotIn("http-equiv=\"refresh\"", html)
        self.assertIn("hybrid", (self.path / "out" / "report.md").read_text())
        rows = (self.path / "out" / "report.csv").read_text().splitlines()
        self.assertGreaterEqual(len(rows) - 1, sum(len(c["samples"]) for c in seen["cells"]))


class interrupt(in_folder):
    def test_leaves_a_valid_file_marked_partial(self):
        output = self.path / "run.json"
        running = subprocess.Popen([ALLOCLAB, "run", "-w", "context/slots", "-s", "hybrid", "--live", "1", "--min-time",
                                    "1", "--blocks", "1000", "-o", str(output)], stderr=subprocess.PIPE)
        while not running.stderr.readline().startswith(b"block 3 "):
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 3, errors)
        self.assertIn(b"partial", errors)
        seen = json.loads(output.read_text())
        self.assertTrue(seen["partial"])
        self.assertGreater(sum(len(c["samples"]) for c in seen["cells"]), 0)
        self.assertEqual([c["error"] for c in seen["cells"] if c["error"].startswith("ended by")], [])
        self.assertEqual(alloclab("report", "-q", str(output)).returncode, 0)


    def test_keeps_an_old_file_when_nothing_was_measured(self):
        output = self.path / "run.json"
        self.measure("-w", "context/slots", "-s", "hybrid", "--live", "1")
        old = output.read_text()
        running = subprocess.Popen([ALLOCLAB, "run", "-w", "context/slots", "--min-time", "5000", "-o", str(output)],
                                   stderr=subprocess.PIPE)
        time.sleep(1.5)
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=20)
        self.assertEqual(running.returncode, 3, errors)
        self.assertIn(b"as it was", errors)
        self.assertEqual(output.read_text(), old)


if __name__ == "__main__":
    chosen = sys.argv[2:]
    unittest.main(argv=[sys.argv[0], *chosen], verbosity=2)
