"""run.json against its schema: schema_test.py WRITE_SAMPLE SCHEMA."""

import copy
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WRITE_SAMPLE, SCHEMA = sys.argv[1:3]

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
ANNOTATIONS = {"$schema", "$defs", "title", "description"}


class schema_of_a_run:
    """The keywords of JSON Schema that the schema uses; any other is refused, lest it be thought checked."""

    def __init__(self, root):
        self.root = root

    def faults(self, value, schema=None, place=""):
        schema = self.root if schema is None else schema
        for keyword, wanted in schema.items():
            if keyword == "$ref":
                target = self.root
                for step in wanted.removeprefix("#/").split("/"):
                    target = target[step]
                yield from self.faults(value, target, place)
            elif keyword == "type":
                if not any(TYPES[t](value) for t in ([wanted] if isinstance(wanted, str) else wanted)):
                    yield f"{place or '/'}: not {wanted}"
            elif keyword == "const":
                if value != wanted:
                    yield f"{place}: not {wanted}"
            elif keyword == "minimum":
                if TYPES["number"](value) and value < wanted:
                    yield f"{place}: below {wanted}"
            elif keyword == "required":
                yield from (f"{place}/{k}: missing" for k in wanted if isinstance(value, dict) and k not in value)
            elif keyword == "properties":
                for key in wanted.keys() & (value.keys() if isinstance(value, dict) else set()):
                    yield from self.faults(value[key], wanted[key], f"{place}/{key}")
            elif keyword == "additionalProperties":
                for key in (value.keys() if isinstance(value, dict) else set()) - schema.get("properties", {}).keys():
                    yield from self.faults(value[key], wanted, f"{place}/{key}")
            elif keyword == "items":
                for i, item in enumerate(value if isinstance(value, list) else []):
                    yield from self.faults(item, wanted, f"{place}/{i}")
            elif keyword not in ANNOTATIONS:
                yield f"{place}: the schema has a keyword that this test does not know: {keyword}"


def objects(value, place=""):
    """Every object of a document with its place, array indices left out."""
    if isinstance(value, dict):
        yield place, value
        for key, inner in value.items():
            yield from objects(inner, f"{place}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner, place)


class schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([WRITE_SAMPLE, folder], check=True)
            cls.run_json = json.loads((Path(folder) / "run.json").read_text(encoding="utf-8"))
        cls.schema = json.loads(Path(SCHEMA).read_text(encoding="utf-8"))

    def faults(self, document):
        return list(schema_of_a_run(self.schema).faults(document))

    def test_a_written_run_conforms(self):
        self.assertEqual(self.faults(self.run_json), [])

    def test_every_field_that_is_written_is_described_and_the_other_way_round(self):
        defs = self.schema["$defs"]
        of_cell, of_map = defs["cell"]["properties"], defs["memory_map"]
        latency = of_cell["latency"]
        described = {"": self.schema, "/environment": self.schema["properties"]["environment"]["items"],
                     "/machines": defs["machine"], "/design": defs["design"],
                     "/strategies": defs["strategy"], "/workloads": defs["workload"], "/cells": defs["cell"],
                     "/cells/samples": of_cell["samples"]["items"], "/cells/latency": latency,
                     "/cells/latency/ecdf": latency["properties"]["ecdf"]["items"],
                     "/maps": of_map, "/maps/placements": of_map["properties"]["placements"]["items"]}
        written = {}
        for place, value in objects(self.run_json):
            written.setdefault(place, set()).update(value)
        for place, part in described.items():
            with self.subTest(place=place):
                self.assertEqual(set(part["properties"]), written[place])

    def test_what_is_no_run_does_not_conform(self):
        def broken(change):
            document = copy.deepcopy(self.run_json)
            change(document)
            return self.faults(document)

        cell = self.run_json["cells"][0]
        self.assertTrue(cell["samples"] and cell["counters"])
        for expected, change in [
            ("/schema: not alloclab-run/1", lambda r: r.update(schema="alloclab-run/2")),
            ("/cells: missing", lambda r: r.pop("cells")),
            ("/seed: below 0", lambda r: r.update(seed=-1)),
            ("/partial: not boolean", lambda r: r.update(partial=0)),
            ("/strategies/0/bounded: not boolean", lambda r: r["strategies"][0].update(bounded="yes")),
            ("/cells/0/workload: missing", lambda r: r["cells"][0].pop("workload")),
            ("/cells/0/parameters/live: not string", lambda r: r["cells"][0]["parameters"].update(live=64)),
            ("/cells/0/samples/0/block: not integer", lambda r: r["cells"][0]["samples"][0].update(block=0.5)),
            ("/cells/0/counters/peak_bytes: not ['number', 'null']",
             lambda r: r["cells"][0]["counters"].update(peak_bytes=True)),
            ("/cells/0/series/live_extras/1: not ['number', 'null']",
             lambda r: r["cells"][0]["series"].update(live_extras=[1, "2"])),
            ("/cells/0/timeline/live_bytes: not array", lambda r: r["cells"][0].update(timeline={"live_bytes": 1})),
            ("/cells/0/samples/0/value: below 0", lambda r: r["cells"][0]["samples"][0].update(value=-0.5)),
            ("/cells/0/samples/0/machine: below 0", lambda r: r["cells"][0]["samples"][0].update(machine=-1)),
            ("/cells/0/latency/ecdf: missing", lambda r: r["cells"][0].update(latency={"floor": 1, "count": 1})),
            ("/machines/0/name: missing", lambda r: r["machines"][0].pop("name")),
            ("/design/unmet: not array", lambda r: r["design"].update(unmet="none")),
            ("/maps/0/placements/0/bytes: not integer", lambda r: r["maps"][0]["placements"][0].update(bytes=0.5)),
            ("/strategies/0/twin_of: not string", lambda r: r["strategies"][0].update(twin_of=None)),
            ("/cells/0/refusal: not string", lambda r: r["cells"][0].update(refusal=None)),
        ]:
            with self.subTest(expected=expected):
                self.assertEqual(broken(change), [expected])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
