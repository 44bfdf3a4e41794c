"""Simulated devices in the alloclab command as its user meets them: device_test.py ALLOCLAB."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALLOCLAB = sys.argv[1]
EVALS = ["-w", "device/evals", "-s", "bump_arena", "-p", "frames=1,2", "--blocks", "1",
         "--min-time", "1", "--no-twin"]
CALIBRATION = [{"device": "Example GPU", "total": 24_000_000_000, "driver": 13000, "runtime": 13000},
               {"op": "kernel_launch", "bytes": 0, "n": 100, "min_ns": 1, "p50_ns": 9000, "p99_ns": 20000},
               {"done": True}]


def alloclab(*arguments):
    return subprocess.run([ALLOCLAB, *map(str, arguments)], capture_output=True, text=True, timeout=240)


class device(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def measured(self, name, *arguments, model="llama-2-7b-small"):
        file = self.path / name
        done = alloclab("run", *EVALS, "--model", model, *arguments, "-o", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return file, json.loads(file.read_text())

    def refused(self, code, *expected, of):
        self.assertEqual(of.returncode, code, of.stderr)
        lines = [line for line in of.stderr.splitlines() if not line.startswith("warning:")]
        self.assertEqual(len(lines), 1, of.stderr)
        for text in expected:
            self.assertIn(text, lines[0])

    def calibration(self, *lines):
        file = self.path / "calibration.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    @staticmethod
    def facts(run):
        return {fact["name"]: fact["value"] for fact in run["environment"]}

    def test_list_names_the_devices(self):
        listed = {d["name"]: d for d in json.loads(alloclab("list", "--json").stdout)["devices"]}
        self.assertLessEqual({"sim:default", "sim:h200"}, set(listed))
        self.assertEqual(listed["sim:h200"]["capacity"], 141_000_000_000)
        text = alloclab("list").stdout
        for name in [*listed, "sim:FILE"]:
            self.assertIn(f"  {name} ", text)

    def test_shows_virtual_device_time_beside_the_hosts_for_each_number_of_evals_in_flight(self):
        file, seen = self.measured("run.json", "--device", "sim:h200", model="llama-2-7b")
        self.assertIn("h200", self.facts(seen)["device"])
        self.assertRegex(self.facts(seen)["device figures"], r"launch \d+ ns")
        cells = {(c["strategy"], c["parameters"]["frames"]): c for c in seen["cells"]}
        self.assertEqual(set(cells), {(s, f) for s in ["per_tensor", "bump_arena"] for f in "12"})
        for (_, frames), cell in cells.items():
            n = cell["counters"]
            self.assertEqual((n["races"], n["leaked"]), (0, 0))
            self.assertEqual(n["device_launches_per_eval"], n["offloaded"])
            self.assertEqual(n["device_live_events"] > 0, frames == "2")
            self.assertEqual(set(cell["parts"]), {"context", "build", "plan", "extras", "submit"})
            self.assertEqual(len(cell["samples"]), 1)
        # Evals of a large model overlap on the device, and the strategy of the host's extras does not change that.
        times = {k: c["counters"]["device_ns_per_eval"] for k, c in cells.items()}
        self.assertLess(times["bump_arena", "2"], times["bump_arena", "1"])
        self.assertEqual(times["bump_arena", "1"], times["per_tensor", "1"])
        out = self.path / "report"
        done = alloclab("report", file, "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in [done.stdout, *(f.read_text() for f in out.iterdir() if f.suffix in (".html", ".md"))]:
            self.assertIn("device at 2", text)
            self.assertIn("virtual ns/eval", text)
        self.assertIn("simulated: h200", (out / "index.html").read_text())

    def test_a_calibration_is_taken_and_what_it_lacks_is_said(self):
        file = self.calibration(*CALIBRATION)
        _, default = self.measured("default.json")
        _, seen = self.measured("run.json", "--device", f"sim:{file}")
        self.assertEqual(self.facts(seen)["device"], "simulated: Example GPU, as calibrated")
        self.assertIn("launch 9000 ns", self.facts(seen)["device figures"])
        lacking = self.facts(seen)["device figures of the default profile"].split(", ")
        self.assertIn("record", lacking)
        self.assertNotIn("launch", lacking)
        self.assertNotIn("device figures of the default profile", self.facts(default))
        for slow, fast in zip(seen["cells"], default["cells"], strict=True):
            self.assertGreater(slow["counters"]["device_ns_per_eval"], 2 * fast["counters"]["device_ns_per_eval"])

    def test_every_eval_that_computes_is_on_the_device_of_the_run(self):
        file = self.calibration(*CALIBRATION)
        where = ["worker", "eval/extras", "bump_arena", "--observe", "model=llama-2-7b-small"]
        times = [json.loads(alloclab(*where, *more).stdout)["seen"]["counters"]["device_ns_per_eval"]
                 for more in [[], ["--device", f"sim:{file}"]]]
        self.assertGreater(times[1], 2 * times[0])

    def test_what_does_not_fit_on_the_device_is_refused(self):
        file = self.calibration(CALIBRATION[0] | {"total": 8_000_000_000}, *CALIBRATION[1:])
        answer = json.loads(alloclab("worker", "device/evals", "bump_arena", "--observe", "--device", f"sim:{file}",
                                     "model=llama-2-7b", "frames=1").stdout)
        self.assertIn("the device has 8.0 GB", answer["refusal"])
        self.assertEqual(answer["error"], "")

    def test_what_is_no_device_is_refused_with_what_was_expected(self):
        output = self.path / "run.json"
        run = ["run", *EVALS, "-o", output, "--device"]
        self.refused(2, "sim:nonsense", "h200", "sim:FILE", of=alloclab(*run, "sim:nonsense"))
        self.refused(2, "simulated", "cuda/gpu_check.sh", of=alloclab(*run, "cuda"))
        file = self.calibration(*CALIBRATION[:-1])
        self.refused(2, f"{file}:3: expected", "done", of=alloclab(*run, f"sim:{file}"))
        file = self.calibration(CALIBRATION[0], {"op": "kernel_launch"}, CALIBRATION[-1])
        self.refused(2, f"{file}:2: expected", "p50_ns", of=alloclab(*run, f"sim:{file}"))
        self.assertFalse(output.exists())

    def test_runs_on_two_devices_are_neither_compared_nor_merged_nor_resumed(self):
        one, _ = self.measured("one.json", "--device", "sim:h200")
        two, _ = self.measured("two.json")
        for gate in [[], ["--fail-if", "peak_bytes>0"]]:
            self.refused(4, "h200", "default", of=alloclab("compare", one, two, *gate))
        self.assertEqual(alloclab("compare", one, one, "--fail-if", "peak_bytes>0").returncode, 0)
        self.refused(2, "h200", "default", of=alloclab("merge", self.path / "all.json", one, two))
        self.refused(2, "device", "h200", of=alloclab("run", *EVALS, "--model", "llama-2-7b-small", "--resume", "-o", one))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
