"""alloclab report as its user runs it: report_test.py ALLOCLAB WRITE_SAMPLE."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALLOCLAB, WRITE_SAMPLE = sys.argv[1:3]
FILES = {"index.html", "report.md", "report.csv"}


class report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.made)
        subprocess.run([WRITE_SAMPLE, cls.made], check=True, timeout=60)

    def setUp(self):
        self.path = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.path)
        shutil.copy(self.made / "run.json", self.path)
        self.run_json = self.path / "run.json"

    def report(self, *arguments):
        return subprocess.run([ALLOCLAB, "report", *map(str, arguments)], capture_output=True, timeout=60)

    def refused(self, *arguments):
        """The one line of a call that had to fail, and nothing on standard output."""
        done = self.report(*arguments)
        text = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (2, b""), text)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertNotIn("filesystem error", text)
        return text

    def names(self, folder):
        return {f.name for f in folder.iterdir()}

    def test_writes_every_file_and_shows_the_table(self):
        done = self.report(self.run_json, "-o", self.path / "new" / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.names(self.path / "new" / "out"), FILES)
        self.assertIn("static_pool", done.stdout.decode())
        self.assertEqual(self.report(self.run_json, "-q").stdout, b"")
        self.assertEqual(self.names(self.path), FILES | {"run.json", "new"})

    def test_its_input_is_never_what_it_writes_to(self):
        for name in sorted(FILES):
            source = self.path / name
            shutil.copy(self.run_json, source)
            self.assertIn(name, self.refused(source))
            self.assertEqual(source.read_bytes(), self.run_json.read_bytes())
            source.unlink()

    def test_only_writes_what_was_asked_for(self):
        self.assertEqual(self.report(self.run_json, "--only", "md,csv").stdout, b"")
        self.assertEqual(self.names(self.path), {"run.json", "report.md", "report.csv"})
        done = self.report(self.run_json, "-o", self.path / "none", "--only", "terminal")
        self.assertIn("static_pool", done.stdout.decode())
        self.assertFalse((self.path / "none").exists())

    def test_stdout_has_one_format_and_nothing_else(self):
        self.report(self.run_json, "-q", "-o", self.path / "out")
        for name, file in [("md", "report.md"), ("csv", "report.csv"), ("html", "index.html")]:
            done = self.report(self.run_json, "--only", name, "--stdout")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(done.stdout, (self.path / "out" / file).read_bytes())
        rows = csv.reader(io.StringIO(self.report(self.run_json, "--only", "csv", "--stdout").stdout.decode(), newline=""))
        self.assertEqual(next(rows)[0], "workload")
        self.assertIn(b"static_pool", self.report(self.run_json, "--only", "terminal", "--stdout").stdout)
        self.assertEqual(self.names(self.path), {"run.json", "out"})

    def test_stdout_needs_exactly_one_format(self):
        self.assertIn("--only", self.refused(self.run_json, "--stdout"))
        self.assertIn("--only", self.refused(self.run_json, "--stdout", "--only", "md,csv"))
        self.assertIn("pdf", self.refused(self.run_json, "--only", "pdf"))

    def test_that_fails_leaves_the_old_set_whole(self):
        out = self.path / "out"
        out.mkdir()
        for name in ["index.html", "report.md"]:
            (out / name).write_text("old")
        (out / "report.csv").mkdir()
        text = self.refused(self.run_json, "-o", out)
        self.assertIn("report.csv: expected a file, found a folder", text)
        self.assertEqual(self.names(out), FILES)
        for name in ["index.html", "report.md"]:
            self.assertEqual((out / name).read_text(), "old")

    def test_of_what_is_no_run_leaves_the_old_set_whole(self):
        self.report(self.run_json, "-q")
        before = {name: (self.path / name).read_bytes() for name in FILES}
        self.run_json.write_text(self.run_json.read_text()[:2000])
        self.assertIn("truncated", self.refused(self.run_json, "-q"))
        self.assertEqual({name: (self.path / name).read_bytes() for name in FILES}, before)

    def test_shows_a_missed_bar_in_every_file_and_still_succeeds(self):
        run = json.loads(self.run_json.read_text())
        run["strategies"] += [{"name": name, "kind": "peer", "threads": "shared"} for name in ["magazine_pool", "malloc"]]
        run["workloads"].append({"name": "peers/slots", "kind": "peer", "unit": "ns/pair", "baseline": "malloc", "axis": "live"})
        for name, ns in [("magazine_pool", 20.0), ("malloc", 100.0)]:
            run["cells"].append({"workload": "peers/slots", "strategy": name, "parameters": {"live": "0"},
                                 "samples": [{"block": block, "value": ns} for block in range(7)]})
        self.assertNotIn("Bars", self.report(self.run_json).stdout.decode())
        self.run_json.write_text(json.dumps(run))
        done = self.report(self.run_json)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        shown = [done.stdout.decode(), (self.path / "report.md").read_text(), (self.path / "index.html").read_text()]
        for text in shown:
            self.assertRegex(text, "slot pair, inlined, to malloc.*missed")
            self.assertIn("where the bar is at most 0.15", text)

    def test_into_links_keeps_the_links(self):
        real, elsewhere = self.path / "real", self.path / "elsewhere"
        real.mkdir()
        elsewhere.mkdir()
        (self.path / "link").symlink_to("real")
        (real / "report.md").symlink_to("../elsewhere/kept.md")
        (elsewhere / "kept.md").write_text("old")
        (real / "report.csv").symlink_to("../elsewhere/made.csv")
        self.assertEqual(self.report(self.run_json, "-q", "-o", self.path / "link").returncode, 0)
        self.assertTrue((self.path / "link").is_symlink() and (real / "report.md").is_symlink())
        self.assertIn("alloclab", (elsewhere / "kept.md").read_text())
        self.assertTrue((elsewhere / "made.csv").read_text().startswith("workload,"))
        self.assertEqual(self.names(real), FILES)
        self.assertEqual(self.names(elsewhere), {"kept.md", "made.csv"})

    def test_names_the_folder_that_is_none(self):
        (self.path / "file").write_text("")
        (self.path / "nowhere").symlink_to("missing")
        self.assertIn("file: expected a folder, found a file", self.refused(self.run_json, "-o", self.path / "file"))
        self.assertIn("leads nowhere", self.refused(self.run_json, "-o", self.path / "nowhere"))
        self.assertIn("file", self.refused(self.run_json, "-o", self.path / "file" / "out"))
        self.assertIn("nothing.json", self.refused(self.path / "nothing.json"))
        self.assertEqual((self.path / "file").read_text(), "")

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_names_the_folder_that_must_not_be_written_to(self):
        out = self.path / "out"
        out.mkdir(mode=0o500)
        self.assertIn("out", self.refused(self.run_json, "-o", out))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
