"""The alloclab command as its user runs it: command_test.py ALLOCLAB [CLASS...]."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ALLOCLAB = sys.argv[1]
SHORT = ["--blocks", "2", "--min-time", "1"]
TWIN = "heap_malloc (A/A)"
SLOTS = ["-w", "context/slots", "-s", "hybrid,static_pool", "--live", "3"]


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

    def refused(self, code, expected, *arguments, environment=None):
        done = alloclab(*arguments, env=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("warning:")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn(expected, lines[0])


class list(unittest.TestCase):
    def test_names_every_strategy_with_its_traits(self):
        listed = json.loads(alloclab("list", "--json").stdout)
        strategies = [s for s in listed["strategies"] if s["kind"] != "peer"]
        by_name = {s["name"]: s for s in strategies}
        for name in ["heap_malloc", "heap_aligned_malloc", "heap_mimalloc", "static_pool", "hybrid", "scan_pool",
                     "scan_pool_lock_over_buffer", "first_call_heap", "per_tensor", "free_list", "bump_arena", "ring",
                     "inline_extra", "leaky", "malloc", "aligned_malloc", "mimalloc", "pages", "buffer"]:
            self.assertIn(name, by_name)
        self.assertEqual(len(by_name), len(strategies))
        self.assertEqual(len({(s["kind"], s["name"]) for s in listed["strategies"]}), len(listed["strategies"]))
        for s in listed["strategies"]:
            self.assertIn(s["kind"], {"context", "extra", "source", "peer"})
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
        self.assertEqual(set(cells), {(s, n) for s in ["heap_malloc", TWIN, "hybrid"] for n in ["3", "70"]})
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
        seen = self.measure("-w", "extra/growth", "-p", "lifetime=temporary")
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

    def test_quick_covers_every_workload_but_those_of_peers(self):
        listed = json.loads(alloclab("list", "--json").stdout)
        seen = self.measure("--quick", "--blocks", "1")
        self.assertEqual({c["workload"] for c in seen["cells"]},
                         {w["name"] for w in listed["workloads"] if w["kind"] != "peer"})


class design(in_folder):
    def test_each_sample_tells_the_speed_of_the_machine_and_its_turn(self):
        seen = self.measure("-w", "context/slots", "-s", "hybrid", "--live", "3,70")
        samples = [s for c in seen["cells"] for s in c["samples"]]
        self.assertTrue(all(0.01 < s["calibration"] < 1000 for s in samples))
        turns = sorted(s["turn"] for s in samples)
        self.assertEqual(len(set(turns)), 12)
        self.assertTrue(1 <= turns[0] and turns[-1] <= 2 * 12)
        for block in [0, 1]:  # the cells of a group stand side by side
            by_group = [[s["turn"] for c in seen["cells"] if c["parameters"]["live"] == live
                         for s in c["samples"] if s["block"] == block] for live in ["3", "70"]]
            first, second = sorted(by_group)
            self.assertLess(max(first), min(second))

    def test_the_baseline_is_measured_once_more_under_a_name_of_its_own(self):
        seen = self.measure(*SLOTS)
        twin = next(s for s in seen["strategies"] if s["name"] == TWIN)
        original = next(s for s in seen["strategies"] if s["name"] == "heap_malloc")
        self.assertEqual(twin, {**original, "name": TWIN, "control": True, "twin_of": "heap_malloc"})
        self.assertEqual([c["strategy"] for c in seen["cells"]], ["heap_malloc", TWIN, "static_pool", "hybrid"])
        self.assertEqual({len(c["samples"]) for c in seen["cells"]}, {2})

    def test_a_twin_is_left_out_where_asked_and_where_nothing_is_timed(self):
        self.assertNotIn(TWIN, json.dumps(self.measure(*SLOTS, "--no-twin")))
        seen = self.measure("-w", "extra/growth", "-s", "bump_arena")
        self.assertEqual([c["strategy"] for c in seen["cells"] if c["strategy"].endswith("(A/A)")], [])
        self.assertGreater(len(seen["cells"]), 1)

    def test_the_order_follows_from_the_seed(self):
        def order(seed):
            cells = self.measure("-w", "context/slots", "-s", "hybrid,ring,static_pool,scan_pool", "--live", "1,3,5",
                                 "--blocks", "1", "--seed", seed)["cells"]
            return [(c["strategy"], c["parameters"]["live"]) for c in sorted(cells, key=lambda c: c["samples"][0]["turn"])]
        first = order("7")
        self.assertEqual(first, order("7"))
        self.assertNotEqual(first, order("8"))

    def test_blocks_run_from_the_least_to_the_most_and_the_baseline_goes_with_the_longest(self):
        seen = self.measure(*SLOTS, "--blocks", "6..8", "--precision", "0.5%")
        self.assertEqual({key: seen["design"][key] for key in ["least_blocks", "most_blocks", "precision"]},
                         {"least_blocks": 6, "most_blocks": 8, "precision": 0.005})
        blocks = [[s["block"] for s in c["samples"]] for c in seen["cells"]]
        for each in blocks:
            self.assertTrue(6 <= len(each) <= 8)
            self.assertEqual(each, [*range(len(each))])
        self.assertEqual([len(blocks[0]), len(blocks[1])], [max(map(len, blocks[2:]))] * 2)

    def test_what_stayed_open_is_said_in_the_file_and_on_stderr(self):
        output = self.path / "run.json"
        for arguments, expected in [(["--blocks", "2"], "2 of 2 ratios have no interval"),
                                    (["--max-time", "0.001"], "time was up after block 1 of at least 7")]:
            done = alloclab("run", *SLOTS, "--min-time", "1", *arguments, "-o", str(output))
            self.assertIn(expected, done.stderr)
            if done.returncode == 0:
                self.assertTrue(any(expected in each for each in json.loads(output.read_text())["design"]["unmet"]))

    def test_progress_counts_to_its_own_total(self):
        done = alloclab("run", "-w", "context/slots,extra/growth", "-s", "hybrid,static_pool,bump_arena", "--live",
                        "1,100", "--blocks", "3", "--min-time", "1", "-o", str(self.path / "run.json"))
        cells = [c for c in json.loads((self.path / "run.json").read_text())["cells"] if c["samples"]]
        counts = {line.split(":")[0]: [int(w) for w in line.split(":")[1].split() if w.isdigit()] for line in
                  done.stderr.splitlines() if " measurements, " in line}
        self.assertEqual([*counts], ["counts", "block 1 of 3", "block 2 of 3", "block 3 of 3"], done.stderr)
        for block in [1, 2, 3]:
            before, total = counts[f"block {block} of 3"][:2]
            self.assertEqual(total - before, (4 - block) * len(cells))

    def test_another_baseline_may_be_named(self):
        seen = self.measure("-w", "context/slots,extra/eval_72", "-s", "heap_malloc,free_list", "--live", "1",
                            "-p", "tensors=64", "--baseline", "static_pool", "--baseline", "free_list")
        self.assertEqual({w["name"]: w["baseline"] for w in seen["workloads"]},
                         {"context/slots": "static_pool", "extra/eval_72": "free_list"})
        self.assertEqual([c["strategy"] for c in seen["cells"] if c["workload"] == "context/slots"],
                         ["static_pool", "static_pool (A/A)", "heap_malloc"])

    def test_shards_are_the_whole_run_each_row_along_an_axis_in_one_of_them(self):
        chosen = ["-w", "context/slots,context/replace,context/whisper_states", "-s", "hybrid", "--live", "8,16",
                  "-p", "states=1,2", "--blocks", "1"]
        keys = lambda seen: [(c["workload"], c["strategy"], *sorted(c["parameters"].items())) for c in seen["cells"]]
        whole = keys(self.measure(*chosen))
        parts = [self.measure(*chosen, "--shard", f"{i}/4") for i in [1, 2, 3, 4]]
        self.assertEqual([p["design"]["shard"] for p in parts], ["1/4", "2/4", "3/4", "4/4"])
        self.assertCountEqual([key for part in parts for key in keys(part)], whole)
        rows = [{(w, dict(where).get("contexts")) for w, _, *where in keys(part)} for part in parts]
        self.assertEqual([len(r) for r in rows], [1, 1, 1, 1])

    def test_latency_of_single_operations_has_its_floor_and_its_tail(self):
        seen = self.measure("-w", "context/slots", "-s", "hybrid", "--live", "3", "--quick", "--blocks", "1")
        for cell in seen["cells"]:
            curve = cell["latency"]
            self.assertTrue(0 < curve["floor"] < 1e6)
            self.assertTrue(1000 <= curve["count"] <= 10000)
            points = [(p["ns"], p["share"]) for p in curve["ecdf"]]
            self.assertTrue(1 <= len(points) <= 200)
            self.assertEqual(points, sorted(set(points)))
            self.assertEqual(points[-1][1], 1)
            # Every point lies on the whole curve: a share is so many of the operations.
            for _, share in points:
                self.assertAlmostEqual(share * curve["count"], round(share * curve["count"]), places=6)
            for share in [0.5, 0.9, 0.99, 0.999]:
                at = next(i for i, p in enumerate(points) if p[1] >= share)
                self.assertTrue(at == 0 or points[at - 1][1] < share)

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind on PATH")
    def test_instructions_are_the_same_in_every_run(self):
        counted = []
        for _ in range(3):
            seen = self.measure("-w", "context/slots", "-s", "static_pool,hybrid", "--live", "3", "--blocks", "1",
                                "--no-twin", "--instructions")
            counted.append({c["strategy"]: c["counters"]["instructions"] for c in seen["cells"]})
        self.assertEqual(counted[0], counted[1])
        self.assertEqual(counted[0], counted[2])
        self.assertEqual(set(counted[0]), {"heap_malloc", "static_pool", "hybrid"})
        self.assertTrue(all(3 < n < 10000 for n in counted[0].values()), counted[0])

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind on PATH")
    def test_instructions_of_several_threads_are_not_counted(self):
        seen = self.measure("-w", "context/threads", "-s", "heap_malloc", "--threads", "2", "--blocks", "1", "--no-twin",
                            "--instructions")
        self.assertNotIn("instructions", seen["cells"][0]["counters"])

    def test_instructions_need_valgrind(self):
        self.refused(2, "expected valgrind", "run", "--instructions", "-o", str(self.path / "run.json"),
                     environment={**os.environ, "PATH": self.folder.name})

    def test_a_strategy_that_no_workload_measures_is_known_all_the_same(self):
        self.refused(3, "no workload has a strategy that matches", "run", "-s", "buffer", "-o",
                     str(self.path / "run.json"))

    def test_options_that_cannot_be_are_refused_with_what_was_expected(self):
        for expected, arguments in [
            ("7..15", ["--blocks", "9..3"]),
            ("7..15", ["--blocks", "1001"]),
            ("3%", ["--precision", "fine"]),
            ("3%", ["--precision", "nan"]),
            ("5m", ["--max-time", "5x"]),
            ("5m", ["--max-time", "0"]),
            ("i/n", ["--shard", "3/2"]),
            ("i/n", ["--shard", "0/2"]),
            ("2/8", ["--shard", "2"]),
            ("at most 1", ["-w", "context/slots", "--live", "1,8", "--shard", "2/2"]),
            ("a baseline", ["-w", "context/slots", "--baseline", "leaky"]),
            ("both", ["-w", "context/slots", "--baseline", "hybrid,static_pool"]),
            ("--full", ["--quick", "--full"]),
        ]:
            with self.subTest(arguments=arguments):
                self.refused(2, expected, "run", "-o", str(self.path / "run.json"), *arguments)


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
        # Progress would be a second line.
        self.refused(2, "folder", "run", "-o", str(self.path))
        self.refused(2, "/proc", "run", "-o", "/proc/run.json")
        self.refused(2, "no name", "run", "-o", "")

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

    def test_a_kill_loses_no_block_that_was_through(self):
        output = self.path / "run.json"
        running = subprocess.Popen([ALLOCLAB, "run", *SLOTS, "--min-time", "1", "--blocks", "1000", "-o", str(output)],
                                   stderr=subprocess.PIPE)
        self.addCleanup(running.stderr.close)
        while not running.stderr.readline().startswith(b"block 4 "):
            self.assertIsNone(running.poll())
        running.kill()
        running.wait(timeout=20)
        seen = json.loads(output.read_text())
        self.assertTrue(seen["partial"])
        for cell in seen["cells"]:
            self.assertEqual([s["block"] for s in cell["samples"]][:3], [0, 1, 2])

    def test_a_signal_that_was_ignored_stays_so(self):
        output = self.path / "run.json"
        running = subprocess.Popen([ALLOCLAB, "run", *SLOTS, "--min-time", "1", "--blocks", "4", "-o", str(output)],
                                   stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while not running.stderr.readline().startswith(b"block 2 "):
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGHUP)
        _, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 0, errors)

    def test_a_complete_file_with_failures_or_without_what_is_asked_is_not_called_good(self):
        chosen = ["-w", "context/slots", "-s", "hybrid", "--live", "3", "--resume"]
        output = self.path / "run.json"
        seen = self.measure(*chosen)
        self.refused(2, "no instructions", "run", *SHORT, *chosen, "--instructions", "-o", str(output))
        seen["cells"][2].update(samples=[], error="ended by signal 9")
        output.write_text(json.dumps(seen))
        self.refused(3, "1 of its cells failed", "run", *SHORT, *chosen, "-o", str(output))

    def broken_off(self):
        """A run of 3 blocks whose last one reached only one of two groups whole, as it stands in its file."""
        arguments = ["-w", "context/slots", "-s", "hybrid,static_pool", "--live", "3,7", "--blocks", "3"]
        seen = self.measure(*arguments)
        seen["partial"] = True
        for cell in seen["cells"]:
            if cell["parameters"]["live"] == "7" and cell["strategy"] in ["hybrid", TWIN]:
                del cell["samples"][2]
        (self.path / "run.json").write_text(json.dumps(seen))
        return arguments, seen

    def test_resume_measures_what_is_missing_and_nothing_else(self):
        arguments, before = self.broken_off()
        after = self.measure(*arguments, "--resume")
        self.assertFalse(after["partial"])
        self.assertEqual((after["started"], after["command"]), (before["started"], before["command"]))
        self.assertGreater(after["seconds"], before["seconds"])
        last_turn = max(s["turn"] for c in before["cells"] for s in c["samples"])
        for old, new in zip(before["cells"], after["cells"], strict=True):
            self.assertEqual([s["block"] for s in new["samples"]], [0, 1, 2])
            self.assertEqual(new["samples"][:2], old["samples"][:2])
            if old["parameters"]["live"] == "3":
                self.assertEqual(new["samples"], old["samples"])
            else:  # what is paired is measured side by side, so the whole group is measured again
                self.assertGreater(new["samples"][2]["turn"], last_turn)

    def test_resume_refuses_another_run_and_names_what_differs(self):
        arguments, _ = self.broken_off()
        output = self.path / "run.json"
        old = output.read_text()
        run = ["run", *arguments[:-2], "--resume", "-o", str(output)]
        same = ["--blocks", "3", "--min-time", "1"]
        for expected, others in [("seed", [*same, "--seed", "2"]), ("--blocks", ["--blocks", "4", "--min-time", "1"]),
                                 ("--min-time", ["--blocks", "3", "--min-time", "2"]),
                                 ("--precision", [*same, "--precision", "1%"]),
                                 ("--shard", [*same, "--shard", "1/2"]),
                                 ("strategies", [*same, "--no-twin"]),
                                 ("baseline", [*same, "--baseline", "hybrid"]),
                                 ("cell ", [*same, "-s", "scan_pool"])]:
            with self.subTest(expected):
                self.refused(2, expected, *run, *others)
                self.assertEqual(output.read_text(), old)
        output.write_text(old[:200])
        self.refused(2, "run.json", *run, *same)

    def test_resume_leaves_a_complete_file_alone_and_begins_without_one(self):
        output = self.path / "run.json"
        chosen = ["-w", "context/slots,extra/growth", "-s", "hybrid,bump_arena", "--live", "3", "--resume"]
        self.measure(*chosen)
        old = output.read_text()
        self.measure(*chosen)
        self.refused(2, "seed", "run", *SHORT, *chosen, "--seed", "2", "-o", str(output))
        self.assertEqual(output.read_text(), old)

    def test_keeps_an_old_file_when_nothing_was_measured(self):
        output = self.path / "run.json"
        self.measure("-w", "context/slots", "-s", "hybrid", "--live", "1")
        old = output.read_text()
        running = subprocess.Popen([ALLOCLAB, "run", "-w", "context/slots", "--min-time", "5000", "-o", str(output)],
                                   stderr=subprocess.PIPE)
        for line in running.stderr:
            if line.startswith(b"counts:"):
                break
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=20)
        self.assertEqual(running.returncode, 3, errors)
        self.assertIn(b"as it was", errors)
        self.assertEqual(output.read_text(), old)


if __name__ == "__main__":
    chosen = sys.argv[2:]
    unittest.main(argv=[sys.argv[0], *chosen], verbosity=2)
