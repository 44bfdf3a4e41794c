"""cuda/gpu_check.sh where there is no GPU, and on stand-ins: gpu_check_test.py SOURCE [FOLDER].

Stand-ins for the tools "find" a GPU and "build" the programs; FOLDER has these on the fake of the CUDA runtime.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
ON_FAKE = Path(sys.argv[2]) if sys.argv[2:] and sys.argv[2] else None

CALLS = ("cudaMalloc cudaFree_idle cudaMallocAsync_parked cudaMallocAsync_new cudaFreeAsync cudaHostAlloc cudaFreeHost "
         "cudaHostRegister cudaHostUnregister cudaEventCreate cudaEventDestroy cudaEventRecord cudaStreamWaitEvent "
         "cudaEventQuery cudaStreamSynchronize_idle copy_call copy_to_device copy_to_host copy_on_device kernel_launch "
         "memory flops cudaMalloc_busy cudaFree_busy cuMemAddressReserve cuMemCreate cuMemMap cuMemSetAccess "
         "cuMemUnmap cuMemRelease").split()
STRATEGIES = "per_tensor free_list bump_arena ring inline_extra leaky".split()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class in_folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.out = self.path / "out"
        self.tools = self.path / "tools"
        self.tools.mkdir()
        self.environment = {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}",
                            "CUDACXX": str(self.tools / "nvcc"), "ALLOCLAB_GPU_BUILD": str(self.path / "build")}

    def tool(self, name, script):
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_script(self, *arguments):
        return subprocess.run([SOURCE / "cuda/gpu_check.sh", *arguments], capture_output=True, text=True, timeout=300,
                              env=self.environment)

    def skipped(self, why):
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        self.assertIn(why, done.stdout)
        self.assertEqual(done.stderr, "")


class without_a_gpu(in_folder):
    def test_a_machine_without_a_toolkit_is_skipped_with_one_line(self):
        self.skipped("skipped: no CUDA toolkit: nvcc is not found")

    def test_a_machine_without_a_device_is_skipped_with_the_reason_of_the_runtime(self):
        self.tool("probe", "echo 'no CUDA device: forbidden'; exit 77")
        self.tool("nvcc", f'cp "{self.tools}/probe" "$2"')
        self.skipped("skipped: no CUDA device: forbidden")

    @unittest.skipIf(shutil.which("nvcc") is None or Path("/dev/nvidia0").exists(), "a toolkit, and no GPU, is needed")
    def test_a_machine_with_a_toolkit_alone_is_skipped_with_the_reason_of_the_runtime(self):
        del self.environment["CUDACXX"]
        self.skipped("skipped: no CUDA device: ")

    def test_a_compiler_that_does_not_work_is_told(self):
        self.tool("nvcc", "echo 'unsupported GNU version!' >&2; exit 1")
        self.skipped("skipped: nvcc does not work: unsupported GNU version!")

    def test_a_wrong_call_is_told(self):
        for arguments in (["--help"], ["a", "b"]):
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, "usage: gpu_check.sh [OUT]\n")


class stand_ins(in_folder):
    """Two GPUs are found; the programs are scripts."""

    def setUp(self):
        super().setUp()
        self.tool("probe", "echo '90 Some GPU'; echo '75 Another GPU'")
        self.tool("nvcc", f'cp "{self.tools}/probe" "$2"')
        self.tool("cmake", f'''echo "$@" >>"{self.path}/calls"
            [ "$1" = --build ] || exit 0
            mkdir -p "$2/bin"
            for p in gpu_check gpu_bench calibrate; do cp "{self.tools}/$p" "$2/bin"; done''')
        self.tool("gpu_check", "echo 'device: Some GPU'; echo '3 passed, 0 failed, 0 skipped'")
        self.tool("calibrate", """echo '{"device":"Some \\\\"GPU\\\\"","total":1,"driver":13000,"runtime":13000}'
            echo '{"op":"cudaMalloc","bytes":512,"n":9,"min_ns":1,"p50_ns":2,"p99_ns":3}'; echo '{"done":true}'""")
        self.tool("gpu_bench", """echo '{"done":true}'""")


class with_stand_ins(stand_ins):
    def test_the_build_is_for_all_gpus_that_are_there_and_without_tests_and_benchmarks(self):
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        configure, build = (self.path / "calls").read_text().splitlines()
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=75;90 -DALLOCLAB_CUDA=ON -DALLOCLAB_TESTS=OFF -DALLOCLAB_BENCH=OFF",
                      configure)
        self.assertTrue(build.endswith("--target gpu_check gpu_bench calibrate"), build)

    def test_a_failed_check_fails_the_whole_after_all_else_was_measured(self):
        self.tool("gpu_check", "echo 'FAILED  order: a stream sees'; echo '2 passed, 1 failed, 0 skipped'; exit 1")
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 1, done.stdout)
        summary = (self.out / "summary.md").read_text()
        self.assertIn("FAILED  order: a stream sees", summary)
        self.assertIn("| cudaMalloc | 512 | 9 | 1 | 2 | 3 | - |", summary)

    def test_a_program_that_hangs_is_ended_and_fails_the_whole(self):
        self.tool("calibrate", "sleep 600")
        self.tool("timeout", 'shift 2; exec /usr/bin/timeout 2 "$@"')
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("calibration took longer than it may", done.stdout)
        self.assertIn("calibration.jsonl is not complete", (self.out / "summary.md").read_text())

    def test_a_build_that_fails_is_told_with_the_log(self):
        self.tool("cmake", "echo broken; [ \"$1\" != --build ]")
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 1)
        self.assertIn("the build failed", done.stdout)
        self.assertIn("broken", (self.out / "build.log").read_text())

    def test_a_toolkit_without_cublas_is_skipped_with_the_reason(self):
        self.tool("cmake", """echo 'CMake Error at cmake/cuda.cmake:42 (message):'
            echo '  alloclab: ALLOCLAB_CUDA is ON, but the CUDA toolkit 13.0.88 has no'; echo '  cuBLAS'
            echo 'Call Stack (most recent call first):'; exit 1""")
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("skipped: the CUDA toolkit 13.0.88 has no cuBLAS\n", done.stdout)


@unittest.skipIf(ON_FAKE is None, "there is no CUDA toolkit")
class on_the_fake(stand_ins):
    def test_all_of_it_runs_and_leaves_what_it_promises(self):
        for program, arguments in {"gpu_check": "", "calibrate": "1", "gpu_bench": "0.1"}.items():
            self.tool(program, f'exec "{ON_FAKE}/{program}_on_fake" {arguments}')
        done = self.run_script(str(self.out))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        calibration = lines_of(self.out / "calibration.jsonl")
        self.assertEqual(sorted(calibration[0]), ["capability", "device", "driver", "runtime", "total"])
        self.assertEqual(calibration[-1], {"done": True})
        measured = calibration[1:-1]
        self.assertEqual({line.get("op") for line in measured}, set(CALLS))
        for line in measured:
            self.assertLessEqual(line["min_ns"], line["p50_ns"], line)
            self.assertLessEqual(line["p50_ns"], line["p99_ns"], line)
            self.assertEqual("per_second" in line, line["op"] in
                             ("copy_to_device", "copy_to_host", "copy_on_device", "memory", "flops"), line)

        bench = lines_of(self.out / "bench.jsonl")
        self.assertEqual(bench[-1], {"done": True})
        evals = {(line["strategy"], line["frames"]) for line in bench if line.get("bench") == "evals"}
        self.assertEqual(evals, {(s, f) for s in STRATEGIES for f in (1, 2, 4)})
        ways = {line["strategy"] for line in bench if line.get("bench") == "memory"}
        self.assertEqual(ways, {"cudaMalloc", "cudaMallocAsync", "stream_pool"})

        summary = (self.out / "summary.md").read_text()
        for text in [*CALLS, *STRATEGIES, *ways]:
            self.assertIn(f"| {text} |", summary)
        self.assertNotIn("not complete", summary)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
