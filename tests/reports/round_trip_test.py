"""Unpleasant names through every writer and back, each read by a parser of its format: round_trip_test.py WRITE_SAMPLE."""

import csv
import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

WRITE_SAMPLE = sys.argv[1]

NAMES = ['say "x"', "Pool<int, 4>", "a newline\nb", "a return\r\nb", "</script><b>x</b>", "<!-- c -->", "λ µ Ł", "🧠", "=1+1",
         "+1", "-1", "@everyone", "#1", "a\\b", "a\\", "a\\|b", "a|b", "|", "`tick`", "``two", "\u2028line\u2029", " both ",
         "$x$ and $y$", "&amp;", "'one'", "tab\tx", "*bold* _it_ ~s~", "[l](u)", "\x1b[2J", "c1 \x9b31m", "\u202ereversed",
         "1. one", "under_score", "heap (A/A)"]


def visible(text):
    """What a reader is shown: control characters by their pictures, what a terminal may obey by its number."""
    return "".join(chr(0x2400 + ord(c)) if c < " " else f"<U+{ord(c):04X}>" if re.match("[\x80-\x9f\u202a-\u202e\u2066-\u2069]", c)
                   else c for c in text)


SHOWN = [visible(n) for n in NAMES]


def made_run():
    def cell(workload, strategy, parameters, value):
        return {"workload": workload, "strategy": strategy, "parameters": parameters,
                "samples": [{"block": b, "value": value, "calibration": 1, "machine": b % 2} for b in range(14)],
                "counters": {"peak_bytes": 10, "reserved_bytes": 20}, "parts": {}, "series": {}, "refusal": "", "error": ""}

    strategies = [{"name": n, "kind": "context", "threads": "single", "bounded": False, "capacity": 0, "when_full": n,
                   "control": False} for n in NAMES]
    workloads = [{"name": n, "kind": "context", "title": "", "question": n, "unit": n, "baseline": NAMES[0], "axis": ""}
                 for n in ["context/strategies", "context/parameters"] + NAMES]
    cells = [cell("context/strategies", n, {}, 10 + i) for i, n in enumerate(NAMES)]
    cells += [cell("context/parameters", NAMES[0], {n: n}, 10) for n in NAMES]
    cells += [cell(n, NAMES[0], {}, 10) for n in NAMES]
    return {"schema": "alloclab-run/1", "command": "\n".join(NAMES), "strategies": strategies, "workloads": workloads,
            "machines": [{"name": n, "environment": [], "warnings": []} for n in NAMES[:2]],
            "environment": [{"name": n, "value": n} for n in NAMES], "warnings": NAMES, "cells": cells,
            "maps": [{"name": n, "steps": 1, "bytes": 0, "lower_bound": 0, "placements": []} for n in NAMES]}


class page(HTMLParser):
    """The tables of a page, by caption: lists of rows of cell texts; and the JSON that stands in scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tables, self.json, self.open, self.into, self.script = [], [], [], None, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append({"caption": "", "rows": []})
        elif tag == "caption":
            self.into = "caption"
        elif tag == "tr":
            self.tables[-1]["rows"].append([])
        elif tag in ("td", "th"):
            self.tables[-1]["rows"][-1].append("")
            self.into = "cell"
        elif tag == "script":
            self.script = "" if dict(attributes).get("type") == "application/json" else None

    def handle_endtag(self, tag):
        if tag in ("caption", "td", "th"):
            self.into = None
        elif tag == "script" and self.script is not None:
            self.json.append(json.loads(self.script))
            self.script = None

    def handle_data(self, text):
        if self.script is not None:
            self.script += text
        elif self.into == "caption":
            self.tables[-1]["caption"] += text
        elif self.into == "cell":
            self.tables[-1]["rows"][-1][-1] += text

    def table(self, caption):
        return next(t["rows"] for t in self.tables if t["caption"].startswith(caption))


def of_markdown(text):
    """Inline Markdown of GitHub as text."""
    text = text.strip(" ")
    if match := re.fullmatch("`([^`]*)`", text):
        return match[1]
    if match := re.fullmatch("<code>(.*)</code>", text):
        return html.unescape(match[1])
    text = text.replace("<!-- -->", "").replace("<span>$</span>", "$")
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text))


def markdown_tables(text):
    """Caption and rows of cell texts, of each. A row that has not as many cells as its heading is a fault."""
    tables, inside, last = [], False, ""
    for line in text.split("\n"):
        if line.startswith("|"):
            cells = [of_markdown(c) for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not inside:
                tables.append((last, [cells]))
            elif len(cells) != len(tables[-1][1][0]):
                raise ValueError(line)
            elif not line.startswith("|:--"):
                tables[-1][1].append(cells)
        elif line:
            last = of_markdown(line)
        inside = line.startswith("|")
    return tables


class round_trip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_json = made_run()
        cls.text = cls.written("C")

    @classmethod
    def written(cls, locale):
        """Every format as bytes, by file name."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "in.json")
            source.write_text(json.dumps(cls.run_json), encoding="ascii")
            env = os.environ | {"LANG": locale, "LC_ALL": locale}
            subprocess.run([WRITE_SAMPLE, Path(folder, "out"), source], check=True, env=env, timeout=60)
            return {f.name: f.read_bytes() for f in Path(folder, "out").iterdir()}

    def read(self, name):
        return self.text[name].decode("utf-8")

    def test_the_locale_changes_nothing(self):
        self.assertEqual(self.text, self.written("C.UTF-8"))

    def test_json_gives_back_what_it_was_given(self):
        back = json.loads(self.read("run.json"))
        for key in ("strategies", "cells", "workloads", "warnings", "maps", "command"):
            given, found = self.run_json[key], back[key]
            if key in ("strategies", "cells"):
                found = [{k: v for k, v in f.items() if k in g} for g, f in zip(given, found, strict=True)]
                for cell in found:
                    cell.get("samples", []) and [s.pop("turn") for s in cell["samples"]]
            self.assertEqual(found, given)

    def test_csv_gives_back_every_name_exactly(self):
        rows = list(csv.DictReader(io.StringIO(self.read("report.csv"), newline="")))
        fixed = {"workload", "strategy", "measure", "block", "machine", "turn", "value", "calibration", "unit", "refusal",
                 "error"}
        self.assertEqual(set(rows[0]), fixed | set(NAMES))
        times = [r for r in rows if r["measure"] == "time"]
        self.assertEqual(list(dict.fromkeys(r["strategy"] for r in times if r["workload"] == "context/strategies")), NAMES)
        self.assertEqual({r["machine"] for r in times}, set(NAMES[:2]))
        self.assertEqual([w for w in dict.fromkeys(r["workload"] for r in times)][2:], NAMES)
        for name in NAMES:
            there = [r for r in times if r[name]]
            self.assertEqual({r[name] for r in there}, {name})
            self.assertEqual(len(there), 14)

    def test_markdown_tables_give_back_every_name_as_it_is_shown(self):
        text = self.read("report.md")
        tables = markdown_tables(text)

        def first_column(caption, rows_at_least=0):
            return next([row[0] for row in rows[1:]] for c, rows in tables if c.startswith(caption) and len(rows) > rows_at_least)

        self.assertEqual(first_column("Times", rows_at_least=2), SHOWN)
        self.assertEqual(first_column("Verdicts"), ["context/strategies", "context/parameters", *SHOWN])
        self.assertEqual(first_column("Activation plans"), [n.strip(" ") for n in SHOWN])
        panels = [of_markdown(line[2:-2]) for line in text.split("\n") if line.startswith("**") and line.endswith("**")]
        self.assertEqual(panels, [f"{n} = {n}".strip(" ") for n in SHOWN])

    def test_html_tables_give_back_every_name_as_it_is_shown(self):
        seen = page(self.read("report.html"))
        cells = seen.table("Every cell of context/strategies")
        self.assertEqual([row[0] for row in cells[1:]], SHOWN)
        parameters = seen.table("Every cell of context/parameters")
        self.assertEqual(sorted(parameters[0][1:1 + len(NAMES)]), sorted(SHOWN))
        for name in SHOWN:
            column = parameters[0].index(name)
            self.assertEqual([row[column] for row in parameters[1:]].count(name), 1)
            self.assertTrue(any(t["caption"] == f"Every cell of {name}" for t in seen.tables), name)
        if seen.json:
            texts = json.dumps(seen.json)
            for name in SHOWN:
                self.assertIn(json.dumps(name)[1:-1], texts)

    def test_the_terminal_shows_every_name_and_obeys_none(self):
        text = self.read("report.txt")
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        lines = text.split("\n")
        for name in SHOWN:
            self.assertTrue(any(line.startswith(f"  {name}  ") for line in lines), name)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
