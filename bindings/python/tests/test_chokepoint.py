# SPDX-License-Identifier: Apache-2.0
"""The package against the program: the same answers, errors that can be read, stubs that tell the truth."""
import ast
import copy
import doctest
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import chokepoint as cp

EXAMPLES = pathlib.Path(os.environ.get("CHOKEPOINT_EXAMPLES", pathlib.Path(__file__).parents[3] / "examples"))
PROGRAM = os.environ.get("CHOKEPOINT_PROGRAM", "chokepoint")
SMALL = cp.Job(model="llama-3-8b", cluster="dgx-a100", hosts=2, batch=64, sequence=4096)
STRATEGY = "fsdp microbatch=1"


def of_program(*words):
    done = subprocess.run([PROGRAM, *words, "--json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout), done.returncode


class SameAsTheProgram(unittest.TestCase):
    def test_predict(self):
        expected, code = of_program("predict", "--model", "llama-3-8b", "--cluster", "dgx-a100", "--hosts", "2", "--batch", "64",
                                    "--seq", "4096", "--strategy", STRATEGY)
        got = cp.predict(SMALL, STRATEGY)
        self.assertEqual(got.code, code)
        self.assertEqual(got.step_time_s, expected["step_time_s"])
        self.assertEqual(got.bill.to_dict(), expected["bill"])

    def test_plan_of_a_job_file(self):
        file = EXAMPLES / "jobs" / "llama-3-8b-heron-1.yaml"
        expected, _ = of_program("plan", str(file), "--top", "3")
        got = cp.plan(file, top=3)
        self.assertEqual([c.strategy for c in got.candidates], [c["strategy"] for c in expected["candidates"]])
        self.assertEqual(got.candidates[0].step_time_s, expected["candidates"][0]["step_time_s"])

    def test_whatif(self):
        expected, _ = of_program("whatif", str(EXAMPLES / "jobs" / "llama-3-8b-heron-1.yaml"), "--change", "hbm=x1.5", "--strategy",
                                 STRATEGY)
        got = cp.whatif(cp.Job.from_file(EXAMPLES / "jobs" / "llama-3-8b-heron-1.yaml"), "hbm=x1.5", strategy=STRATEGY)
        self.assertEqual(got.answers[0].to_dict(), expected["answers"][0])

    def test_wiring(self):
        file = EXAMPLES / "wiring" / "dunlin3.topo"
        expected, _ = of_program("wiring", str(file), "--accelerator", "a40")
        got = cp.wiring(file, accelerator="a40")
        self.assertEqual(len(got.hosts[0].gpus), 8)
        self.assertEqual(got.hosts[0].to_dict(), expected["hosts"][0])


class Answers(unittest.TestCase):
    def test_the_bill_sums_to_the_step(self):
        p = cp.predict(SMALL, STRATEGY)
        self.assertAlmostEqual(sum(p.bill.to_dict().values()), p.step_time_s, places=9)
        self.assertEqual(p.bill.data_reduce, p.bill["data-reduce"])

    def test_a_strategy_may_be_a_mapping(self):
        self.assertEqual(cp.predict(SMALL, {"tensor": 2, "zero": 1, "microbatch": 1}).step_time_s,
                         cp.predict(SMALL, "tensor=2 zero=1 microbatch=1").step_time_s)

    def test_what_does_not_fit_is_an_answer(self):
        p = cp.predict(cp.Job(model="llama-3-70b", cluster="dgx-a100", hosts=1, batch=64, sequence=4096), "ddp microbatch=1")
        self.assertFalse(p.memory.fits)
        self.assertEqual(p.code, 1)
        self.assertFalse(p.ok)

    def test_sensitivities(self):
        s = cp.whatif(SMALL, strategy=STRATEGY, sensitivities=True).sensitivities
        self.assertGreater(len(s.resources), 3)
        self.assertLessEqual(s.resources[0].step_time_infinite_s, s.step_time_s)

    def test_a_straggler_found_in_traces_and_taken_away(self):
        with tempfile.TemporaryDirectory() as folder:
            names = os.path.join(folder, "rank.{rank}.json.gz")
            job = cp.Job.from_file(EXAMPLES / "jobs" / "llama-3-8b-heron-1.yaml")
            cp.predict(job, STRATEGY, simulate=True, imperfection="slow-rank=3:1.5", timeline=names)
            traces = sorted(pathlib.Path(folder).glob("rank.*.json.gz"))
            self.assertEqual(len(traces), 8)
            found = cp.diagnose(*traces)
            self.assertEqual(found.causes[0].id, "slow-rank")
            self.assertEqual(found.causes[0].where, "rank 3")
            after = cp.whatif(job, "straggler=none", strategy=STRATEGY, traces=traces)
            self.assertAlmostEqual(after.now.prediction.step_time_s, found.measured_s, places=6)
            self.assertLess(after.answers[0].same_strategy.prediction.step_time_s, 0.8 * found.measured_s)

    def test_files_that_stand_in_memory(self):
        text = (EXAMPLES / "wiring" / "dunlin3.topo").read_text()
        self.assertEqual(len(cp.wiring(files={"node.topo": text}, accelerator="a40").hosts[0].gpus), 8)

    def test_settings_of_a_framework(self):
        settings = cp.export(EXAMPLES / "jobs" / "llama-3-8b-heron-1.yaml", "megatron")
        self.assertIn("--num-layers 32", settings.files[0].text)

    def test_catalogues(self):
        self.assertIn("llama-3-8b", [m.name for m in cp.models().models])
        self.assertIn("h100-sxm5-80gb", [a.name for a in cp.accelerators().accelerators])

    def test_threads_get_the_same_answer(self):
        # A plan also tells how long its search took, which no two runs share.
        def answer():
            return cp.plan(SMALL, top=1).to_dict()["candidates"]
        expected = answer()
        got = [None] * 4
        def ask(i):
            got[i] = answer()
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all(one == expected for one in got))


class Errors(unittest.TestCase):
    def test_a_misspelt_model_names_the_nearest(self):
        with self.assertRaises(cp.Error) as caught:
            cp.plan(SMALL.replace(model="llama-3-8c"))
        self.assertIn("llama-3-8b", str(caught.exception))

    def test_places_are_told(self):
        with self.assertRaises(cp.Error) as caught:
            cp.wiring(files={"c.yaml": "name: x\nhosts:\n  - {template: dgx-a100, cuont: 2}\n"})
        self.assertEqual((caught.exception.file, caught.exception.line), ("c.yaml", 3))
        self.assertIn("count", caught.exception.fix)

    def test_unknown_options_and_missing_files(self):
        for call in (lambda: cp.predict(SMALL, no_such_option=1), lambda: cp.predict(SMALL, "frobnicate=2"),
                     lambda: cp.wiring("no-such-file"), lambda: cp.whatif(SMALL, "nic=x0")):
            with self.assertRaises(cp.Error):
                call()

    def test_odd_values_raise_and_nothing_else(self):
        for value in (float("nan"), float("inf"), -1, 10**18, "", "\0", [], {}, object):
            try:
                cp.plan(SMALL.replace(batch=value), top=1)
            except (cp.Error, TypeError):
                pass


class Objects(unittest.TestCase):
    def test_results_are_plain(self):
        p = cp.predict(SMALL, STRATEGY)
        self.assertIn("step_time_s", dir(p))
        self.assertEqual(pickle.loads(pickle.dumps(p)), p)
        self.assertEqual(copy.deepcopy(p), p)
        self.assertIn("step_time_s=", repr(p))
        with self.assertRaises(AttributeError):
            p.step_time_s = 1
        with self.assertRaisesRegex(AttributeError, "step_time_s"):
            p.step_time
        self.assertEqual(SMALL.replace(batch=1).batch, 1)

    def test_frames(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("SKIPPED: pandas is not installed; frame() was not tried")
        plan = cp.plan(SMALL, top=4)
        frame = plan.frame()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(len(frame), 4)
        self.assertEqual(frame["bill.compute"][0], plan.candidates[0].bill.compute)
        scale = cp.whatif(SMALL, scale="16..64").frame("scale")
        self.assertEqual(list(scale["gpus"]), [16, 32, 64])
        self.assertIn("resource", cp.whatif(SMALL, sensitivities=True).frame("sensitivities"))

    def test_without_pandas_frames_say_so(self):
        hidden = sys.modules.get("pandas")
        sys.modules["pandas"] = None
        try:
            with self.assertRaisesRegex(ImportError, "python3-pandas"):
                cp.plan(SMALL, top=1).frame()
        finally:
            if hidden is None:
                del sys.modules["pandas"]
            else:
                sys.modules["pandas"] = hidden

    def test_examples_in_docstrings(self):
        self.assertEqual(doctest.testmod(cp).failed, 0)


class Stubs(unittest.TestCase):
    """Attributes that _results.pyi declares are there, of the type declared."""

    def setUp(self):
        tree = ast.parse((pathlib.Path(cp.__file__).parent / "_results.pyi").read_text())
        self.classes = {node.name: {line.target.id: ast.unparse(line.annotation) for line in node.body
                                    if isinstance(line, ast.AnnAssign)}
                        for node in tree.body if isinstance(node, ast.ClassDef)}

    def hold(self, value, declared, place):
        if declared.startswith("Optional["):
            if value is None:
                return
            declared = declared[9:-1]
        if declared.startswith("List["):
            self.assertIsInstance(value, list, place)
            for one in value[:2]:
                self.hold(one, declared[5:-1], place + "[]")
        elif declared in self.classes:
            self.assertIsInstance(value, cp.Result, place)
            for name, kind in self.classes[declared].items():
                if name == "code" or (declared == "Prediction" and name == "job"):
                    continue  # a prediction inside another result has no job of its own
                self.assertIn(name, dir(value), f"{place}.{name}")
                self.hold(getattr(value, name), kind, f"{place}.{name}")
        elif declared == "float":
            self.assertIsInstance(value, (int, float), place)
        elif declared in ("int", "str", "bool"):
            self.assertIsInstance(value, {"int": int, "str": str, "bool": bool}[declared], place)

    def test_real_results_have_what_the_stubs_declare(self):
        self.hold(cp.predict(SMALL, STRATEGY), "Prediction", "Prediction")
        self.hold(cp.plan(SMALL, top=2), "Plan", "Plan")
        self.hold(cp.whatif(SMALL, "nic=x2", strategy=STRATEGY, price=2), "WhatIf", "WhatIf")
        self.hold(cp.wiring(EXAMPLES / "wiring" / "heron01.topo", accelerator="a100-sxm4-80gb"), "Wiring", "Wiring")
        self.hold(cp.export(SMALL, "deepspeed"), "Settings", "Settings")


if __name__ == "__main__":
    unittest.main()
