"""alloclab merge as its user runs it, and bench/sweep under what is here: merge_test.py ALLOCLAB [CLASS...]."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ALLOCLAB = str(Path(sys.argv[1]).resolve())
SWEEP = Path(__file__).resolve().parents[2] / "bench" / "sweep"
# Three workloads, so that three shards have one each.
SMALL = ["-w", "context/slots,context/replace,source/buffer", "-s", "hybrid,pages", "--live", "8", "-p", "bytes=4096",
         "--blocks", "2", "--min-time", "1"]


def called(*command, **variables):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240,
                          env=os.environ | {"ALLOCLAB": ALLOCLAB} | variables)


def made(machine="m1", shard="", first=10.0, live="8"):
    return {"schema": "alloclab-run/1", "seed": 1, "design": {"shard": shard},
            "environment": [{"name": "machine", "value": machine}, {"name": "host", "value": machine}],
            "strategies": [{"name": "heap", "kind": "context"}],
            "workloads": [{"name": "slots", "kind": "context", "baseline": "heap"}],
            "cells": [{"workload": "slots", "strategy": "heap", "parameters": {"live": live},
                       "samples": [{"block": 0, "value": first}, {"block": 1, "value": first + 1}]}]}


class in_folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def put(self, name, run):
        file = self.path / name
        file.write_text(run if isinstance(run, str) else json.dumps(run))
        return file

    def refused(self, code, *parts, of):
        self.assertEqual(of.returncode, code, of.stderr)
        self.assertEqual(len(of.stderr.splitlines()), 1, of.stderr)
        for part in parts:
            self.assertIn(str(part), of.stderr)

    def check_sweep(self, folder):
        """What all three shards of SMALL make together."""
        seen = json.loads((folder / "run.json").read_text())
        self.assertEqual((seen["design"]["shard"], seen["partial"]), ("", False))
        chosen = [c["workload"] for c in seen["cells"] if c["strategy"] in ("hybrid", "pages")]
        self.assertCountEqual(chosen, ["context/slots", "context/replace", "source/buffer"])
        self.assertEqual({len(c["samples"]) for c in seen["cells"]}, {2})
        self.assertEqual([m["name"] for m in seen["machines"]], [os.uname().nodename])
        self.assertIn("hybrid", (folder / "index.html").read_text())
        for word in ["--shard", "shard-", "--resume"]:
            self.assertNotIn(word, seen["command"])


class merge(in_folder):
    def test_joins_runs_of_two_machines(self):
        out = self.path / "new" / "all.json"
        done = called(ALLOCLAB, "merge", out, self.put("a.json", made("m1")), self.put("b.json", made("m2", first=20.0)))
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(out.read_text())
        self.assertEqual([m["name"] for m in seen["machines"]], ["m1", "m2"])
        self.assertEqual([(s["machine"], s["block"], s["value"]) for s in seen["cells"][0]["samples"]],
                         [(0, 0, 10), (0, 1, 11), (1, 0, 20), (1, 1, 21)])
        self.assertEqual(called(ALLOCLAB, "report", "-q", out).returncode, 0)

    def test_a_shard_goes_with_shards_alone(self):
        out = self.path / "out.json"
        whole, shard = self.put("a.json", made()), self.put("b.json", made(shard="1/2", live="9"))
        self.refused(2, "b.json", "shard 1/2", of=called(ALLOCLAB, "merge", out, whole, shard))
        self.refused(2, "shard", of=called(ALLOCLAB, "merge", out, self.put("c.json", made(shard="1/300000000"))))

    def test_no_merge_hides_a_leak(self):
        runs = [made("m1"), made("m2")]
        for run, leaked in zip(runs, [0, 99]):
            run["cells"][0]["counters"] = {"leaked": leaked}
        files = [self.put(f"{i}.json", run) for i, run in enumerate(runs)]
        for i, order in enumerate([files, files[::-1]]):
            out = self.path / f"out{i}.json"
            self.assertEqual(called(ALLOCLAB, "merge", out, *order).returncode, 0)
            self.assertEqual(json.loads(out.read_text())["cells"][0]["counters"]["leaked"], 99)

    def test_names_missing_shards_and_still_succeeds(self):
        out = self.path / "all.json"
        done = called(ALLOCLAB, "merge", out, self.put("a.json", made(shard="1/3")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: 2 of 3 shards missing: 2, 3", done.stderr)
        self.assertEqual(json.loads(out.read_text())["design"]["unmet"], ["2 of 3 shards missing: 2, 3"])

    def test_refuses_a_run_given_twice_under_any_name(self):
        a, out = self.put("a.json", made()), self.path / "all.json"
        link = self.path / "link.json"
        link.symlink_to(a)
        copy = self.put("copy.json", a.read_text())
        for again in [a, self.path / "." / "a.json", link, copy]:
            self.refused(2, a, of=called(ALLOCLAB, "merge", out, a, again))
            self.assertFalse(out.exists())

    def test_refuses_to_write_over_what_it_reads(self):
        a, b = self.put("a.json", made()), self.put("b.json", made(first=20.0))
        before = b.read_text()
        self.refused(2, "b.json", "another file", of=called(ALLOCLAB, "merge", b, a, b))
        self.assertEqual(b.read_text(), before)

    def test_refuses_what_is_no_run_and_leaves_the_old_output(self):
        a, old = self.put("a.json", made()), self.put("all.json", "old")
        for name, text in [("truncated.json", json.dumps(made())[:99]), ("empty.json", ""), ("other.json", "{}")]:
            self.refused(2, name, of=called(ALLOCLAB, "merge", old, a, self.put(name, text)))
        self.refused(2, "absent.json", of=called(ALLOCLAB, "merge", old, a, self.path / "absent.json"))
        self.refused(2, "a.json", "shard", of=called(ALLOCLAB, "merge", old, self.put("a.json", made(shard="9/3"))))
        self.assertEqual(old.read_text(), "old")

    def test_refuses_runs_that_do_not_fit_naming_both(self):
        other = made("m2", first=20.0)
        other["workloads"][0]["baseline"] = "pool"
        self.refused(2, "a.json", "b.json", "slots",
                     of=called(ALLOCLAB, "merge", self.path / "all.json", self.put("a.json", made()),
                               self.put("b.json", other)))

    def test_joins_the_shards_that_alloclab_run_makes(self):
        shards = [self.path / f"shard-{i}.json" for i in (1, 2, 3)]
        for i, shard in enumerate(shards, 1):
            done = called(ALLOCLAB, "run", *SMALL, "--shard", f"{i}/3", "-o", shard)
            self.assertEqual(done.returncode, 0, done.stderr)
        out = self.path / "out" / "run.json"
        self.assertEqual(called(ALLOCLAB, "merge", out, *reversed(shards)).returncode, 0)
        self.assertEqual(called(ALLOCLAB, "report", "-q", out).returncode, 0)
        self.check_sweep(out.parent)


class sweep(in_folder):
    def parallel(self):
        if shutil.which("parallel") is None:
            self.skipTest("GNU parallel is not here")

    def fake(self, name, text):
        file = self.path / name
        file.write_text("#!/bin/bash\n" + text)
        file.chmod(0o755)
        return file

    def test_runs_all_shards_under_gnu_parallel_and_reports_them(self):
        self.parallel()
        out = self.path / "it's a folder"
        done = called(SWEEP, "-n", "3", "-o", out, "--", *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_sweep(out)

    def test_goes_over_ssh_to_the_hosts_it_is_given(self):
        self.parallel()
        ssh = self.fake("ssh", 'while [[ $1 == -* ]]; do [[ $1 == -[ol] ]] && shift; shift; done\n'
                               f'echo "$1" >>{shlex.quote(str(self.path))}/hosts\n'
                               'shift; [[ $1 == -- ]] && shift; exec bash -c "$*"\n')
        shell = os.environ.get("SHELL")
        self.addCleanup(lambda: os.environ.update({"SHELL": shell} if shell else {}))
        for case in ["/bin/sh", None]:  # a CI job or cron has none
            os.environ.pop("SHELL", None)
            os.environ.update({"SHELL": case} if case else {})
            with self.subTest(shell=case):
                out = self.path / f"out {case is None}"
                done = called(SWEEP, "-n", "3", "-j", "2", "--hosts", "alpha,beta", "-o", out, "--", *SMALL,
                              PARALLEL_SSH=str(ssh))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLessEqual({"alpha", "beta"}, set((self.path / "hosts").read_text().split()))
                self.assertIn("disturb", done.stderr)
                self.check_sweep(out)

    def test_reports_the_other_shards_when_one_fails_and_goes_on_with_it_later(self):
        self.parallel()
        broken = self.fake("alloclab", f'[[ " $* " == *" --shard 2/3 "* ]] && echo "no luck" >&2 && exit 3\n'
                                       f'exec {shlex.quote(ALLOCLAB)} "$@"\n')
        out = self.path / "out"
        done = called(SWEEP, "-n", "3", "-o", out, "--", *SMALL, ALLOCLAB=str(broken))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("1 of 3 shards missing: 2", done.stderr)
        self.assertEqual(json.loads((out / "run.json").read_text())["design"]["shard"], "1,3/3")
        kept = (out / "shard-1.json").read_text()
        broken.write_text(f'#!/bin/bash\nexec {shlex.quote(ALLOCLAB)} "$@"\n')
        done = called(SWEEP, "-n", "3", "-o", out, "--", *SMALL, ALLOCLAB=str(broken))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((out / "shard-1.json").read_text(), kept)
        self.check_sweep(out)

    def test_says_why_when_no_shard_could_be_measured(self):
        self.parallel()
        self.refused(3, "no shard was measured", "heap_mallok",
                     of=called(SWEEP, "-n", "2", "-o", self.path / "out", "--", "-s", "heap_mallok"))

    def test_does_not_take_the_shards_of_another_sweep_for_its_own(self):
        self.parallel()
        out = self.path / "out"
        self.assertEqual(called(SWEEP, "-n", "3", "-o", out, "--", *SMALL).returncode, 0)
        kept = (out / "run.json").read_text()
        for arguments in [["-n", "2", "-o", out, "--", *SMALL], ["-n", "3", "-o", out, "--", *SMALL, "--seed", "9"]]:
            self.refused(2, "another sweep", of=called(SWEEP, *arguments))
        self.assertEqual((out / "run.json").read_text(), kept)

    def test_wrong_calls_are_refused_in_one_line(self):
        out = self.path / "out"
        for expected, arguments in [
            ("-n", ["-o", out]),
            ("whole number", ["-n", "0", "-o", out]),
            ("whole number", ["-n", "2", "-j", "x", "-o", out]),
            ("-o", ["-n", "2"]),
            ("expected a value", ["-n"]),
            ("--fast", ["--fast"]),
            ("one of them", ["-n", "2", "-o", out, "--slurm", "--hosts", "a"]),
            ("--slurm", ["-n", "2", "-o", out, "--print"]),
        ]:
            with self.subTest(arguments=arguments):
                self.refused(2, expected, of=called(SWEEP, *arguments))
        self.refused(2, "not built", of=called(SWEEP, "-n", "2", "-o", out, ALLOCLAB="/nonexistent/alloclab"))
        self.assertFalse(out.exists())

    def test_says_which_tool_is_absent(self):
        tools = self.path / "tools"
        tools.mkdir()
        for tool in ["bash", "dirname", "realpath", "env"]:
            (tools / tool).symlink_to(shutil.which(tool))
        out = self.path / "out"
        self.refused(2, "parallel is not here", of=called(SWEEP, "-n", "2", "-o", out, PATH=str(tools)))
        self.refused(2, "sbatch is not here", of=called(SWEEP, "-n", "2", "-o", out, "--slurm", PATH=str(tools)))
        self.assertFalse(out.exists())

    def test_prints_the_jobs_for_slurm_without_submitting_them(self):
        out = self.path / "a b"
        done = called(SWEEP, "--slurm", "--print", "-n", "4", "-o", out, "--", "-w", "context/*")
        self.assertEqual(done.returncode, 0, done.stderr)
        array, report = done.stdout.split("\n\n")
        self.assertIn("--array=1-4", array)
        self.assertIn("#SBATCH --exclusive", array)
        self.assertEqual(shlex.split(array.splitlines()[-1])[:9],
                         ["exec", ALLOCLAB, "run", "-w", "context/*", "--resume", "--shard", "$SLURM_ARRAY_TASK_ID/4", "-o"])
        self.assertIn(f"--report {out}".replace(" b", "\\ b"), report)
        self.assertNotIn("--exclusive", called(SWEEP, "--slurm", "--print", "-j", "2", "-n", "4", "-o", out).stdout)
        self.assertFalse(out.exists())


class slurm(in_folder):
    def test_runs_a_job_array_and_reports_when_it_is_done(self):
        if shutil.which("sinfo") is None or called("timeout", "5", "sinfo", "-h").returncode != 0:
            self.skipTest("no Slurm answers here")
        out = self.path / "a b"
        done = called(SWEEP, "--slurm", "-n", "3", "-o", out, "--", *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        for _ in range(200):
            if (out / "report.log").exists() and called("squeue", "-h", "-n", "alloclab-report").stdout == "":
                break
            time.sleep(1)
        self.check_sweep(out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
