"""What the workloads show beside their times, asked of the worker itself: workloads_test.py ALLOCLAB [CLASS...]."""

import functools
import json
import subprocess
import sys
import unittest

ALLOCLAB = sys.argv[1]
TENSORS = 1061


def alloclab(*arguments):
    return subprocess.run([ALLOCLAB, *arguments], capture_output=True, text=True, timeout=120)


def worker(workload, strategy, *options, **parameters):
    done = alloclab("worker", workload, strategy, *options, *(f"{name}={value}" for name, value in parameters.items()))
    if done.returncode != 0:
        raise AssertionError(f"{workload} {strategy} {parameters}: {done.stderr}")
    answer = json.loads(done.stdout)
    if answer["error"]:
        raise AssertionError(f"{workload} {strategy} {parameters}: {answer['error']}")
    return answer


def observed(workload, strategy, **parameters):
    return worker(workload, strategy, "--observe", **parameters)["seen"]


def counters(workload, strategy, **parameters):
    return observed(workload, strategy, **parameters)["counters"]


@functools.cache
def listed():
    all = json.loads(alloclab("list", "--json").stdout)["workloads"]
    return {w["name"]: w for w in all if w["kind"] != "peer"}


def strategies_of(workload):
    available = [s for s in listed()[workload]["strategies"] if "mimalloc" not in s]
    assert len(available) > 1
    return available


class counts(unittest.TestCase):
    def test_every_cell_with_a_time_has_its_bytes_and_what_it_leaks(self):
        for workload, about in listed().items():
            where = {name: values[0] for name, values in about["parameters"].items()}
            for strategy in strategies_of(workload):
                with self.subTest(workload=workload, strategy=strategy):
                    answer = worker(workload, strategy, "--observe", **where)
                    if not answer["has_time"]:
                        continue
                    seen = answer["seen"]["counters"]
                    self.assertGreater(seen["peak_bytes"], 0)
                    self.assertGreaterEqual(seen["reserved_bytes"], seen["peak_bytes"])
                    if workload == "source/buffer":
                        self.assertEqual(seen["peak_bytes"], 384)
                    elif strategy == "leaky":
                        self.assertGreater(seen["leaked"], 0)
                    else:
                        self.assertEqual(seen["leaked"], 0)

    def test_a_leak_is_counted_to_the_object(self):
        for workload, where, each in [("extra/eval", {"heap": "aged", "clear": "all", "tensors": 64}, 64),
                                      ("extra/cold", {"cache": "warm"}, 64),
                                      ("extra/scope", {"scope": "thread_local"}, TENSORS),
                                      ("extra/first_eval", {"heap": "bare", "tensors": 100}, 100),
                                      ("extra/growth", {"lifetime": "temporary"}, 200)]:
            self.assertEqual(counters(workload, "leaky", **where)["leaked"], each, workload)
        seen = counters("eval/extras", "leaky", model="llama-2-7b")
        self.assertEqual(seen["leaked"], seen["offloaded"])

    def test_the_bytes_of_slots_are_those_of_the_live_ones_and_the_one_more(self):
        for strategy in ["heap_malloc", "static_pool", "hybrid"]:
            one = counters("context/slots", strategy, live=0)["peak_bytes"]
            self.assertEqual(counters("context/slots", strategy, live=9)["peak_bytes"], 10 * one)
        pool = counters("context/slots", "static_pool", live=9)["reserved_bytes"]
        self.assertEqual(pool, counters("context/slots", "static_pool", live=0)["reserved_bytes"])
        self.assertGreaterEqual(pool, 64 * one)

    def test_a_source_is_called_for_each_slot_that_no_pool_holds(self):
        for strategy, live, calls in [("heap_malloc", 3, 64), ("first_call_heap", 3, 64), ("static_pool", 3, 0),
                                      ("hybrid", 3, 0), ("hybrid", 70, 64), ("locked_hybrid", 70, 64)]:
            seen = counters("context/slots", strategy, live=live)
            self.assertEqual(seen["source_calls_per_round"], calls, (strategy, live))

    def test_an_owned_buffer_is_a_call_more_for_each_context(self):
        where = {"contexts": 4, "states": 1}
        self.assertEqual(counters("context/whisper_states", "static_pool", **where)["source_calls_per_round"], 5)
        self.assertEqual(counters("context/whisper_states", "heap_malloc", **where)["source_calls_per_round"], 10)
        for strategy in ["hybrid", "bump_arena"]:
            workload = "eval/contexts" if strategy == "hybrid" else "eval/extras"
            seen = counters(workload, strategy, model="llama-2-7b", **({"context": "reset"} if strategy == "hybrid" else {}))
            self.assertEqual(seen["source_calls_per_eval"], 0, "a reset context and arena need no more memory")

    def test_all_threads_are_in_the_peak(self):
        for strategy in ["heap_malloc", "locked_hybrid", "scan_pool_lock_over_buffer"]:
            one = counters("context/threads", strategy, threads=1)["peak_bytes"]
            self.assertGreaterEqual(one, 16384)
            self.assertEqual(counters("context/threads", strategy, threads=4)["peak_bytes"], 4 * one)

    def test_a_bounded_strategy_that_is_full_is_refused_and_not_observed(self):
        for workload, where in [("context/slots", {"live": 64}), ("context/init_free", {"live": 64, "heap": "aged"}),
                                ("context/replace", {"live": 65})]:
            answer = worker(workload, "static_pool", "--observe", **where)
            self.assertIn("full at 64", answer["refusal"])
            self.assertEqual(answer["seen"]["counters"], {})

    def test_the_first_eval_faults_its_memory_in_and_a_later_one_does_not(self):
        pages = TENSORS * 1152 / 4096
        for strategy in ["per_tensor", "free_list", "bump_arena"]:
            first = counters("extra/first_eval", strategy, heap="bare", tensors=TENSORS)["faults_first"]
            later = counters("extra/eval", strategy, tensors=TENSORS, clear="all", heap="aged")["faults_per_eval"]
            self.assertGreater(first, later, strategy)  # by how much depends on the size of pages
            self.assertLess(later, 0.1 * pages, strategy)


class timelines(unittest.TestCase):
    def test_a_load_rises_context_by_context_to_its_peak_and_falls_to_nothing(self):
        for strategy in ["heap_malloc", "static_pool", "hybrid"]:
            seen = observed("context/whisper_states", strategy, contexts=7, states=9)
            live, reserved = seen["timeline"]["live_bytes"], seen["timeline"]["reserved_bytes"]
            made = int(seen["counters"]["contexts"])
            self.assertEqual(made, 64)
            self.assertEqual(len(live), 2 * made + 1)
            self.assertEqual((live[0], live[-1]), (0, 0))
            self.assertEqual(live[: made + 1], sorted(live[: made + 1]))
            self.assertEqual(live[made:], sorted(live[made:], reverse=True))
            self.assertEqual(live[made], seen["counters"]["peak_bytes"])
            # A buffer takes a few bytes more, to be aligned.
            self.assertTrue(0.99 * live[made] < seen["counters"]["requested_bytes"] <= live[made])
            self.assertTrue(all(r >= l for r, l in zip(reserved, live)))
            self.assertEqual(reserved[-1] > 0, strategy != "heap_malloc", "a pool keeps its slots")

    def test_long_ones_are_thinned_without_losing_the_peak_or_the_end(self):
        seen = observed("extra/eval", "bump_arena", heap="aged", clear="all", tensors=8192)
        live = seen["timeline"]["live_bytes"]
        self.assertEqual(len(live), 200)
        self.assertEqual(max(live), 8192 * 1152)
        self.assertEqual(live[-1], 0)
        left = observed("extra/eval", "leaky", heap="aged", clear="all", tensors=300)["timeline"]["live_bytes"][-1]
        self.assertEqual(left, (5 + 20 + 1) * 300 * 1152)

    def test_a_short_one_shows_every_step(self):
        live = observed("extra/eval", "free_list", heap="aged", clear="all", tensors=16)["timeline"]["live_bytes"]
        self.assertEqual(live, [1152 * i for i in range(17)] + [0])


class plans(unittest.TestCase):
    def check(self, plan):
        places = plan["placements"]
        self.assertTrue(all(p["tensor"] for p in places))
        self.assertTrue(all(p["first"] <= p["last"] < plan["steps"] for p in places))
        self.assertEqual(max(p["offset"] + p["bytes"] for p in places), plan["bytes"])
        live = [0] * plan["steps"]
        for p in places:
            for step in range(p["first"], p["last"] + 1):
                live[step] += p["bytes"]
        self.assertEqual(max(live), plan["lower_bound"])
        for i, a in enumerate(places):
            for b in places[:i]:
                apart = (a["last"] < b["first"] or b["last"] < a["first"] or a["offset"] + a["bytes"] <= b["offset"]
                         or b["offset"] + b["bytes"] <= a["offset"])
                self.assertTrue(apart, (a, b))

    def test_the_baseline_alone_shows_where_the_results_of_an_eval_lie_and_no_two_overlap(self):
        maps = observed("eval/contexts", "heap_malloc", model="llama-2-7b-small", context="reset")["maps"]
        self.assertEqual([m["name"] for m in maps], ["llama-2-7b-small decode"])
        self.check(maps[0])
        self.assertEqual(observed("eval/contexts", "hybrid", model="llama-2-7b-small", context="reset")["maps"], [])

    def test_whisper_has_one_of_its_encoder_too(self):
        maps = observed("eval/contexts", "heap_malloc", model="whisper-tiny", context="fresh")["maps"]
        self.assertEqual([m["name"] for m in maps], ["whisper-tiny decode", "whisper-tiny encode"])
        for plan in maps:
            self.check(plan)
        self.assertGreater(maps[1]["bytes"], maps[0]["bytes"])

    def test_the_height_is_that_of_the_engine_that_is_measured(self):
        seen = observed("eval/contexts", "heap_malloc", model="llama-2-7b", context="reset")
        self.assertEqual(seen["maps"][0]["bytes"], seen["counters"]["plan_bytes"])
        self.assertEqual(seen["maps"][0]["lower_bound"], seen["counters"]["plan_lower_bound_bytes"])


class lifetimes(unittest.TestCase):
    def test_temporaries_leak_from_leaky_alone_and_stay_when_the_model_is_gone(self):
        for strategy in strategies_of("extra/growth"):
            seen = observed("extra/growth", strategy, lifetime="temporary")
            each = 200 if strategy == "leaky" else 0
            self.assertEqual(seen["series"]["live_extras"], [each * (i + 1) for i in range(1000)], strategy)
            self.assertEqual(seen["counters"]["left_after_model"], 1000 * each, strategy)

    def test_persistent_ones_stay_with_the_model_and_go_with_it(self):
        for strategy in strategies_of("extra/growth"):
            seen = observed("extra/growth", strategy, lifetime="persistent")
            self.assertEqual(seen["series"]["live_extras"], [200] * 1000, strategy)
            self.assertEqual((seen["counters"]["leaked"], seen["counters"]["left_after_model"]), (0, 0), strategy)


class times(unittest.TestCase):
    def test_every_setting_that_is_listed_can_be_timed_or_is_refused(self):
        for workload, about in listed().items():
            for axis, values in about["parameters"].items():
                if axis == "model":
                    continue
                for value in {values[0], values[-1]}:
                    where = {name: others[0] for name, others in about["parameters"].items()} | {axis: value}
                    with self.subTest(workload=workload, **where):
                        answer = worker(workload, about["baseline"], "--min-time", "0.0002", **where)
                        self.assertEqual(answer["timed"], answer["has_time"])
                        self.assertEqual(answer["refusal"], "")

    def test_single_operations_can_be_timed_one_by_one(self):
        for workload, where in [("context/slots", {"live": 8}), ("context/replace", {"live": 16}),
                                ("context/init_free", {"live": 4, "heap": "aged"}),
                                ("extra/eval", {"tensors": 100, "clear": "all", "heap": "aged"}), ("source/buffer", {"bytes": 384})]:
            for strategy in strategies_of(workload):
                curve = worker(workload, strategy, "--latency", "1000", **where)["latency"]
                self.assertEqual((curve["count"], curve["ecdf"][-1][1]), (1000, 1), (workload, strategy))

    def test_a_heap_is_one_of_three(self):
        self.assertEqual(set(listed()["extra/eval"]["parameters"]["heap"]), {"aged", "bare", "littered"})
        done = alloclab("run", "-w", "extra/eval", "-p", "heap=tidy", "-o", "/dev/null")
        self.assertEqual(done.returncode, 2)
        self.assertIn("one of aged, bare, littered", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
