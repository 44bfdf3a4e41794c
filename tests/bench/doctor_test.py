"""alloclab doctor on trees of fixtures, and the warnings of a run that come from it: doctor_test.py ALLOCLAB."""

import ctypes.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALLOCLAB = sys.argv[1]

# A machine of four cores on which nothing disturbs.
QUIET = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Example CPU\nflags\t\t: fpu sse2 tsc\n",
    "proc/loadavg": "0.10 0.20 0.30 1/200 4242\n",
    "proc/meminfo": "MemTotal:       16000000 kB\nMemFree:  1 kB\nSwapTotal:       4000000 kB\nSwapFree:        3999000 kB\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 total=1\n",
    "proc/self/cgroup": "0::/user.slice/job\n",
    "proc/self/personality": "00000000\n",
    "proc/self/status": "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n",
    "proc/stat": "cpu  1000 0 1000 90000 0 0 0 10 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
    "proc/sys/kernel/perf_event_paranoid": "1\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/devices/system/cpu/smt/active": "0\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/user.slice/job/cpu.max": "max 100000\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}
CPU = "sys/devices/system/cpu/"

# What makes one check warn, and a part of what it then found. None removes the file.
RED = [
    ("governor", "performance, powersave", {CPU + "cpu3/cpufreq/scaling_governor": "powersave\n"}),
    ("turbo", "on", {CPU + "intel_pstate/no_turbo": "0\n"}),
    ("turbo", "on", {CPU + "intel_pstate/no_turbo": None, CPU + "cpufreq/boost": "1\n"}),
    ("SMT", "on", {CPU + "smt/active": "1\n"}),
    ("SMT", "on", {CPU + "smt/active": None, CPU + "cpu0/topology/thread_siblings_list": "0,2\n"}),
    ("address randomisation", "0", {"proc/sys/kernel/randomize_va_space": "0\n"}),
    ("address randomisation", "off for this process", {"proc/self/personality": "00040000\n"}),
    ("transparent huge pages", "always", {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}),
    ("load at start", "2.10 on 4", {"proc/loadavg": "2.10 0.20 0.30 1/200 4242\n"}),
    ("other programs running", "2", {"proc/loadavg": "0.10 0.20 0.30 3/200 4242\n"}),
    ("swap in use", "1.95e+03 MiB", {"proc/meminfo": "MemTotal: 16000000 kB\nSwapTotal: 4000000 kB\nSwapFree: 2000000 kB\n"}),
    ("memory pressure", "3 %", {"proc/pressure/memory": "some avg10=9.00 avg60=3.00 avg300=1.00 total=7\n"}),
    ("CPU quota", "1.5 CPUs", {"sys/fs/cgroup/user.slice/job/cpu.max": "150000 100000\n"}),
    ("CPU quota", "0.5 CPUs", {"sys/fs/cgroup/cpu.max": "50000 100000\n"}),
    ("CPU quota", "2 CPUs", {"proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/docker/7\n0::/\n",
                             "sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_quota_us": "200000\n",
                             "sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_period_us": "100000\n",
                             "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                             "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}),
    ("CPU set", "3 of 4", {"proc/self/status": "Cpus_allowed_list:\t0-1,3\n"}),
    ("virtual machine", "yes", {"proc/cpuinfo": "model name\t: Example CPU\nflags\t\t: fpu hypervisor tsc\n"}),
    ("virtual machine", "xen", {"sys/hypervisor/type": "xen\n"}),
    ("stolen time", "10 %", {"proc/stat": "cpu  1000 0 1000 7000 0 0 0 1000 5000 0\n"}),
    ("clock source", "hpet", {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}),
    ("perf_event_paranoid", "4", {"proc/sys/kernel/perf_event_paranoid": "4\n"}),
]
# Those that read no file below the root.
OF_THE_PROCESS = {"malloc served by", "allocator variables", "build", "timer floor", "mimalloc", "valgrind"}
# Those of the doctor alone, since no run depends on them.
OF_CUDA = {"CUDA toolkit", "CUDA devices"}
OF_THE_PROCESS |= OF_CUDA


def clean_environment(**more):
    kept = {k: v for k, v in os.environ.items()
            if k not in ("LD_PRELOAD", "GLIBC_TUNABLES") and not k.startswith("MALLOC_")}
    return kept | more


def alloclab(*arguments, **more):
    return subprocess.run([ALLOCLAB, *arguments], capture_output=True, text=True, timeout=60,
                          env=clean_environment(**more))


class doctor(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name) / "root"

    def plant(self):
        for name, text in QUIET.items():
            self.put(name, text)

    def put(self, name, text):
        file = self.root / name
        if text is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def checks(self, **variables):
        done = alloclab("doctor", "--json", "--seconds", "0", "--root", str(self.root), **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {c["name"]: c for c in json.loads(done.stdout)["checks"]}

    def test_finds_nothing_wrong_with_a_quiet_machine(self):
        self.plant()
        for name, check in self.checks().items():
            if name not in OF_THE_PROCESS:
                self.assertEqual((check["state"], check["why"], check["mend"]), ("ok", "", ""), check)

    def test_warns_of_each_fault_alone_with_why_and_how_to_mend_it(self):
        seen = set()
        for name, found, changes in RED:
            with self.subTest(name=name, found=found):
                self.plant()
                before = self.checks()
                for file, text in changes.items():
                    self.put(file, text)
                after = self.checks()
                self.assertEqual(after[name]["state"], "warn")
                self.assertIn(found, after[name]["found"])
                self.assertTrue(after[name]["why"] and after[name]["mend"])
                changed = {n for n in after if n not in OF_THE_PROCESS and after[n]["state"] != before[n]["state"]}
                self.assertEqual(changed, {name})
                seen.add(name)
                for file in changes:
                    self.put(file, QUIET[file]) if file in QUIET else (self.root / file).unlink()
        self.assertEqual(seen, set(before) - OF_THE_PROCESS)

    def test_says_unknown_of_what_a_system_does_not_show(self):
        self.root.mkdir()
        for name, check in self.checks().items():
            if name not in OF_THE_PROCESS:
                self.assertEqual((check["state"], check["found"]), ("unknown", "not shown by this system"), name)

    def test_survives_files_of_another_form(self):
        for text in ["", "\n", "garbage", "\x00\x01", ":::", "0-", "-1", "9" * 400]:
            for name in QUIET:
                self.put(name, text)
            for check in self.checks().values():
                self.assertIn(check["state"], {"ok", "warn", "unknown"})

    def test_warns_of_variables_that_change_malloc(self):
        self.plant()
        self.assertEqual(self.checks()["allocator variables"]["state"], "ok")
        for name, value in [("MALLOC_ARENA_MAX", "1"), ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")]:
            check = self.checks(**{name: value})["allocator variables"]
            self.assertEqual((check["state"], check["found"]), ("warn", f"{name}={value}"))

    def test_warns_when_another_library_serves_malloc(self):
        self.plant()
        self.assertEqual(self.checks()["malloc served by"]["state"], "ok")
        library = ctypes.util.find_library("mimalloc")
        if library is None:
            self.skipTest("no libmimalloc to preload")
        seen = self.checks(LD_PRELOAD=library)
        self.assertEqual(seen["malloc served by"]["state"], "warn")
        self.assertIn("mimalloc", seen["malloc served by"]["found"])
        self.assertEqual(seen["allocator variables"]["found"], f"LD_PRELOAD={library}")

    def test_looks_for_valgrind_on_the_path(self):
        self.plant()
        tools = Path(self.folder.name) / "tools"
        tools.mkdir()
        check = self.checks(PATH=str(tools))["valgrind"]
        self.assertEqual((check["state"], check["spoils"]), ("warn", False))
        (tools / "valgrind").touch(mode=0o755)
        check = self.checks(PATH=f"/nonexistent:{tools}")["valgrind"]
        self.assertEqual((check["state"], check["found"]), ("ok", str(tools / "valgrind")))

    def test_says_what_there_is_of_cuda_and_never_warns_of_it(self):
        self.plant()
        seen = self.checks()
        for name in OF_CUDA:
            self.assertEqual((seen[name]["state"], seen[name]["why"]), ("ok", ""))
        found = seen["CUDA toolkit"]["found"]
        self.assertRegex(found, r"^(\d+\.\d+[.\d]*|none seen by this build)(; CUDA is off: \S.*)?$")
        # Where CUDA is off, no device is asked for; else the line says which there are, or why there is none.
        devices = seen["CUDA devices"]["found"]
        self.assertEqual(devices == "none: this build has no CUDA", "CUDA is off" in found, (found, devices))
        self.assertNotEqual(devices.removeprefix("none: "), "")

    def test_strict_fails_exactly_when_a_check_warns(self):
        self.plant()
        strict = ["doctor", "--strict", "--seconds", "0", "--root", str(self.root)]
        warned = any(c["state"] == "warn" for c in self.checks().values())  # by the build, say
        self.assertEqual(alloclab(*strict).returncode, 1 if warned else 0)
        self.put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
        self.assertEqual(alloclab(*strict).returncode, 1)
        self.assertEqual(alloclab(*[a for a in strict if a != "--strict"]).returncode, 0)

    def test_prints_state_check_and_what_was_found_and_for_a_warning_how_to_mend_it(self):
        self.plant()
        self.put(CPU + "intel_pstate/no_turbo", "0\n")
        lines = alloclab("doctor", "--seconds", "0", "--root", str(self.root)).stdout.splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["warn", "turbo"])
        self.assertEqual(lines[at].split()[2], "on")
        self.assertRegex(lines[at + 1], r"^ +why: +\S")
        self.assertRegex(lines[at + 2], r"^ +mend: echo 1 \| sudo tee /" + CPU + "intel_pstate/no_turbo$")
        self.assertTrue(any(line.split()[:3] == ["ok", "clock", "source"] for line in lines))

    def test_watches_the_speed_unless_told_not_to(self):
        self.plant()
        names = [c["name"] for c in json.loads(alloclab("doctor", "--json", "--seconds", "0.2").stdout)["checks"]]
        self.assertIn("speed", names)
        self.assertNotIn("speed", self.checks())

    def test_a_root_that_is_no_folder_is_refused(self):
        done = alloclab("doctor", "--root", str(self.root / "absent"))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
        self.assertIn("absent", done.stderr)


class run_environment(unittest.TestCase):
    def test_a_run_keeps_what_was_found_and_warns_of_what_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "run.json"
            done = alloclab("run", "--blocks", "1", "--min-time", "1", "-w", "context/slots", "-s", "hybrid", "--live",
                            "1", "-o", str(output), MALLOC_ARENA_MAX="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            seen = json.loads(output.read_text())
            facts = {f["name"]: f["value"] for f in seen["environment"]}
            checks = json.loads(alloclab("doctor", "--json", "--seconds", "0", MALLOC_ARENA_MAX="1").stdout)["checks"]
            self.assertLessEqual({c["name"] for c in checks} - OF_CUDA, set(facts))
            for name in ["host", "cpu", "cores", "caches", "memory", "C library", "compiler", "alloclab", "revision"]:
                self.assertTrue(facts[name])
            self.assertRegex(facts["machine"], "^[0-9a-f]{12}$")
            self.assertEqual(facts["allocator variables"], "MALLOC_ARENA_MAX=1")
            self.assertIn("MALLOC_ARENA_MAX=1", " ".join(seen["warnings"]))
            self.assertIn("warning: allocator variables: MALLOC_ARENA_MAX=1", done.stderr)
            for warning in seen["warnings"]:  # what a check of the doctor is called
                self.assertIn(warning.split(":")[0], {c["name"] for c in checks})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
