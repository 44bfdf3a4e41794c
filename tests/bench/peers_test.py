"""Other people's allocators beside ours: peers_test.py ALLOCLAB [CLASS...]."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALLOCLAB = sys.argv[1]
FAMILIES = {"peers/slots", "peers/random", "peers/foreign", "peers/threads", "peers/contexts", "peers/extras",
            "peers/graph", "peers/nodes"}
SHORT = ["--blocks", "1", "--min-time", "1", "--no-twin"]


def alloclab(*arguments, **variables):
    return subprocess.run([ALLOCLAB, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **variables})


def listed():
    return json.loads(alloclab("list", "--json").stdout)


def counters(workload, strategy, **parameters):
    done = alloclab("worker", workload, strategy, "--observe", *(f"{n}={v}" for n, v in parameters.items()))
    answer = json.loads(done.stdout)
    if answer["error"] or answer["refusal"]:
        raise AssertionError(f"{workload} {strategy}: {answer['error']}{answer['refusal']}")
    return answer["seen"]["counters"]


def counters_undisturbed(workload, strategy, **parameters):
    """Of the first of up to eight processes that has no page fault, else of the last: the system takes a page away now and
    then and has it faulted in again, but what the code itself faults in, each process does."""
    for _ in range(8):
        seen = counters(workload, strategy, **parameters)
        if seen["faults_per_eval"] == 0:
            break
    return seen


class in_folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = Path(folder.name) / "run.json"

    def measure(self, *arguments, said="", **variables):
        done = alloclab("run", *SHORT, "-o", str(self.output), *arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(said, done.stderr)
        seen = json.loads(self.output.read_text())
        return seen, {(c["workload"], c["strategy"], *c["parameters"].values()): c for c in seen["cells"]}

    def refused(self, code, expected, *arguments):
        done = alloclab("run", *SHORT, "-o", str(self.output), *arguments)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
        self.assertIn(expected, done.stderr)


class preset(in_folder):
    def test_an_unknown_one_is_named_with_those_there_are(self):
        self.refused(2, 'no preset "peer"; there is peers', "--preset", "peer")

    def test_workloads_and_strategies_choose_from_it(self):
        self.refused(3, "no workload has a strategy that matches", "--preset", "peers", "-w", "context/slots")
        _, cells = self.measure("--preset", "peers", "-w", "peers/random,context/slots", "-s", "no_allocator")
        self.assertEqual(cells.keys(), {("peers/random", "malloc", "48"), ("peers/random", "no_allocator", "48")})

    def test_has_every_family_of_peers_and_an_eval_that_computes(self):
        seen, cells = self.measure("--preset", "peers", "-s", "no_allocator,static_pool,bump_arena,growing", "--quick", "-p", "nodes=99",
                                   "--live", "1", said="no valgrind", PATH="")
        self.assertEqual({w["name"] for w in seen["workloads"]}, FAMILIES | {"eval/extras"})
        self.assertIn("compute", cells["eval/extras", "bump_arena", "llama-2-7b-small"]["parts"])
        kinds = {s["kind"] for s in seen["strategies"] if s["name"] == "no_allocator"}
        self.assertEqual(kinds, {"peer"})

    def test_is_resumed_and_complete(self):
        arguments = ["--preset", "peers", "-w", "peers/random", "-s", "no_allocator"]
        self.measure(*arguments)
        self.measure(*arguments, "--resume", said="nothing to resume")

    def test_counts_the_instructions_of_pairs_with_nothing_live_and_no_others(self):
        if shutil.which("valgrind") is None:
            self.skipTest("no valgrind")
        _, cells = self.measure("--preset", "peers", "-w", "peers/slots", "-s", "no_allocator", "--live", "0,1")
        counted = {name: "instructions" in c["counters"] for name, c in cells.items()}
        self.assertEqual(counted, {("peers/slots", s, live): live == "0" for s in ["malloc", "no_allocator"]
                                   for live in ["0", "1"]})
        few = cells["peers/slots", "no_allocator", "0"]["counters"]["instructions"]
        self.assertTrue(2 < few < 20, few)  # both words and the loop cannot be less, nor does no allocator take more


class families(in_folder):
    def test_are_no_part_of_a_run_that_does_not_name_them(self):
        seen, _ = self.measure("-s", "no_allocator,bump_arena", "-p", "lifetime=temporary", "-w", "extra/growth")
        self.assertNotIn("peer", {s["kind"] for s in seen["strategies"]})
        self.refused(3, "no workload", "-s", "no_allocator")

    def test_have_ours_that_may_be_chosen_and_a_control_with_no_allocator(self):
        by_name = {w["name"]: w for w in listed()["workloads"]}
        ours = {s["name"] for s in listed()["strategies"]
                if s["kind"] == "context" and not s["control"] and not s["name"].startswith("heap_")}
        self.assertIn("static_pool", ours)
        for name in ["peers/slots", "peers/random"]:
            self.assertLessEqual(ours | {"malloc", "no_allocator"}, set(by_name[name]["strategies"]))
        self.assertLessEqual(ours, set(by_name["peers/contexts"]["strategies"]))
        self.assertTrue({"ggml_heap", "ggml_pool", "fixed", "growing"} <= set(by_name["peers/graph"]["strategies"]))
        self.assertEqual({n: w["baseline"] for n, w in by_name.items() if w["kind"] == "peer"},
                         {**dict.fromkeys(FAMILIES, "malloc"), "peers/contexts": "ggml_heap",
                          "peers/extras": "new_delete", "peers/graph": "ggml_heap", "peers/nodes": "fixed"})

    def test_refuse_an_absent_peer_with_the_reason_and_go_on(self):
        # Without room for its thread-local state jemalloc is absent here even where it is installed.
        _, cells = self.measure("-w", "peers/random", "-s", "jemalloc,tcmalloc",
                                GLIBC_TUNABLES="glibc.rtld.optional_static_tls=0")
        absent = cells["peers/random", "jemalloc", "48"]
        self.assertEqual((absent["error"], absent["samples"]), ("", []))
        self.assertRegex(absent["refusal"], "not available on this system: .*libjemalloc.*(TLS|No such file)")
        self.assertEqual(len(cells["peers/random", "malloc", "48"]["samples"]), 1)

    def test_measure_what_is_installed(self):
        _, cells = self.measure("-w", "peers/random", "-s", "mimalloc,jemalloc,tcmalloc,boost_*,pmr_*,c_*")
        self.assertEqual(len(cells), 9)
        for name, cell in cells.items():
            self.assertEqual(cell["samples"] == [], cell["refusal"].startswith("not available on this system: "), name)
            if cell["samples"]:
                self.assertEqual(cell["counters"]["leaked"], 0, name)
                self.assertGreaterEqual(cell["counters"]["peak_bytes"], 48 * 96, name)
                # What a malloc family holds and asks the system for, nobody here has counted.
                counts = name[1].startswith(("pmr_", "c_"))
                for counter in ["reserved_bytes", "source_calls_per_round"]:
                    self.assertEqual(counter in cell["counters"], counts, (name, counter))
        self.assertTrue(cells["peers/random", "pmr_unsynchronized_pool", "48"]["samples"])

    def test_several_threads_take_strategies_that_they_may_share(self):
        shared = {s["name"] for s in listed()["strategies"] if s["kind"] == "peer" and s["threads"] == "shared"}
        by_name = {w["name"]: w for w in listed()["workloads"]}
        for name in ["peers/threads", "peers/foreign"]:
            self.assertLessEqual(set(by_name[name]["strategies"]), shared)
        _, cells = self.measure("-w", "peers/threads,peers/foreign", "-s", "locked_static_pool,no_allocator")
        self.assertEqual({len(c["samples"]) for c in cells.values()}, {1})

    def test_a_pool_that_is_full_says_so(self):
        _, cells = self.measure("-w", "peers/slots", "-s", "static_pool,hybrid", "--live", "63,64")
        self.assertEqual(cells["peers/slots", "static_pool", "64"]["refusal"], "full at 64 of 64 slots")
        self.assertEqual(cells["peers/slots", "static_pool", "63"]["refusal"], "")
        self.assertEqual(cells["peers/slots", "hybrid", "64"]["refusal"], "")


class counts(unittest.TestCase):
    def test_an_eval_of_extras_faults_in_nothing_where_memory_is_kept(self):
        where = {"heap": "bare", "tensors": 1061}
        for strategy in ["bump_arena", "free_list", "pmr_monotonic", "no_allocator"]:
            seen = counters_undisturbed("peers/extras", strategy, **where)
            self.assertEqual((seen["faults_per_eval"], seen["source_calls_per_eval"]), (0, 0), strategy)
            self.assertGreaterEqual(seen["reserved_bytes"], 1061 * 1152, strategy)
        for strategy in ["new_delete", "malloc"]:
            seen = counters("peers/extras", strategy, **where)
            self.assertEqual(seen["source_calls_per_eval"], 1061)
            self.assertGreater(seen["faults_per_eval"], 10, "a bare heap gives its memory back after each eval")

    def test_graphs_are_those_of_the_model_and_take_nothing_from_the_source(self):
        nodes = next(m["decode_nodes"] for m in listed()["models"] if m["name"] == "llama-2-7b")
        for strategy in ["fixed", "growing"]:
            seen = counters_undisturbed("peers/graph", strategy, model="llama-2-7b")
            self.assertEqual((seen["nodes"], seen["faults_per_eval"], seen["source_calls_per_eval"]), (nodes, 0, 0))
            self.assertTrue(0 < seen["peak_bytes"] <= seen["reserved_bytes"])

    def test_graphs_come_in_the_size_that_was_asked_for(self):
        for wanted in [1000, 20000]:
            self.assertLess(abs(counters("peers/nodes", "fixed", nodes=wanted)["nodes"] - wanted), 20)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
