# SPDX-License-Identifier: Apache-2.0
"""The Python package: it starts the program, and its rows are what the program's files hold."""

import csv
import os
import sys
from unittest import mock

import harness
from harness import MLP, SOURCE_DIR, changed

sys.path.insert(0, str(SOURCE_DIR / "python"))

import pipewright_lab as pw

SWEEP = MLP | {
    "name": "two",
    "sweep": {
        "points": [{"label": "a", "scheme": {"name": "gpipe"}}, {"label": "b", "scheme": {"name": "pipedream"}}],
        "grid": {"train.seed": [1, 2]},
    },
}


class PythonPackage(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)

    def test_rows_are_those_of_the_files(self):
        experiment = MLP | {"probes": [{"name": "weight_gap", "every": 2}], "train": {"evaluate": {"every": 5, "unit": "minibatch"}}}
        results = pw.run(experiment, out="out", settings={"train.epochs": 2, "scheme.name": "pipedream"})
        for table in ("epochs", "evaluations", "steps", "probes"):
            with self.subTest(table=table), open(self.folder / "out" / f"{table}.csv", newline="") as file:
                written = list(csv.DictReader(file))
                rows = results.rows(table)
                self.assertEqual(len(rows), len(written))
                for row, texts in zip(rows, written):
                    self.assertEqual((row.pop("run"), row.pop("state")), ("out", "done"))
                    self.assertEqual(list(row), list(texts))
                    for name, text in texts.items():
                        self.assertEqual(text, "" if row[name] is None else text)
                        if isinstance(row[name], float):
                            self.assertEqual(row[name], float(text))
        (summary,) = results.rows("runs")
        self.assertEqual((summary["state"], summary["epoch"]), ("done", 1))
        self.assertEqual(summary["test_accuracy"], results.rows("epochs")[-1]["test_accuracy"])
        with self.assertRaisesRegex(ValueError, "expected runs, epochs, evaluations, steps or probes"):
            results.rows("epoch")

    def test_a_table_says_when_runs_come_to_a_loss(self):
        evaluated = changed(SWEEP, {"train": {"epochs": 6, "evaluate": {"every": 6, "unit": "minibatch"}}})
        results = pw.sweep(evaluated, jobs=1)
        points = {}
        for row in results.rows("evaluations"):
            points.setdefault((row["label"], row["train.seed"]), []).append((row["minibatches"], row["test_loss"]))
        found = points["a", 1]
        lowest = min(range(len(found)), key=lambda index: found[index][1])
        self.assertGreater(lowest, 0, "it learns")
        loss = (found[lowest - 1][1] + found[lowest][1]) / 2  # between two evaluations, maybe reached before
        first = next(index for index, (_, value) in enumerate(found) if value <= loss)
        expected = found[first][0]
        if first > 0:
            before, after = found[first - 1 : first + 1]
            expected = before[0] + (after[0] - before[0]) * (before[1] - loss) / (before[1] - after[1])
        (cell, _) = results.table(metric="steps_to", loss=loss).cells
        self.assertEqual(cell["row"], ["a"])
        self.assertAlmostEqual(cell["values"][0], expected, places=9)
        never = results.table(metric="steps_to", loss=1e-9).cells
        self.assertEqual([(cell["n"], cell["not_reached"], cell["mean"]) for cell in never], [(2, 2, None)] * 2)

    def test_a_sweep_has_a_row_for_each_run_with_what_varies(self):
        results = pw.sweep(SWEEP, jobs=1)
        self.assertEqual(results.folder.name, "two")
        rows = {(row["label"], row["train.seed"]): row for row in results.rows("runs")}
        self.assertEqual(set(rows), {("a", 1), ("a", 2), ("b", 1), ("b", 2)})
        self.assertEqual(rows["b", 2]["scheme.name"], "pipedream")
        again = pw.load("runs/two")
        self.assertEqual(again.rows("epochs"), results.rows("epochs"))
        self.assertEqual(repr(again), f"<4 run(s) in {again.folder}: 4 done>")
        self.assertEqual(len(pw.sweep(SWEEP, resume=True).list), 4)

    def test_a_run_under_way_is_read_up_to_its_last_whole_line(self):
        results = pw.run(MLP, out="out")
        whole = results.rows("steps")
        steps = self.folder / "out" / "steps.csv"
        steps.write_text(steps.read_text() + "1,0")
        self.assertEqual(pw.load("out").rows("steps"), whole)

    def test_errors_say_what_the_program_says(self):
        with self.assertRaises(pw.PipewrightError) as caught:
            pw.check(changed(MLP, {"model.name": "mlq"}))
        self.assertEqual(caught.exception.code, harness.EXPERIMENT)
        self.assertIn("did you mean 'mlp'?", str(caught.exception))
        self.assertEqual(list(self.folder.iterdir()), [], "the experiment's file was left behind")
        self.assertIn("valid", pw.check(MLP))
        with self.assertRaisesRegex(FileNotFoundError, "no folder of a run or of a sweep"):
            pw.load(".")
        with mock.patch.dict(os.environ, PIPEWRIGHT_BINARY="", PATH=""), mock.patch("pathlib.Path.is_file", lambda _: False):
            with self.assertRaisesRegex(FileNotFoundError, "set PIPEWRIGHT_BINARY"):
                pw.find_program()

    def test_progress_is_passed_on(self):
        said = []
        with mock.patch("sys.stderr.write", said.append):
            pw.sweep(SWEEP, out="out", progress=True)
        self.assertIn("4 of 4 runs done", "".join(said))

    def test_frames_without_pandas_say_how_to_get_it(self):
        results = pw.run(MLP, out="out")
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                results.epochs  # pylint: disable=pointless-statement

    def test_a_schedule_is_stepped_through(self):
        """What it says of each slot is what the program draws in it."""
        experiment = changed(MLP, {"scheme.name": "gpipe", "pipeline.microbatches": 2})
        schedule = pw.Schedule.of(experiment, minibatches=1)
        self.assertEqual(schedule.makespan, 9)
        kinds = [[action.kind[0] if action else "." for action in slot] for slot in schedule.steps()]
        self.assertEqual(["".join(worker) for worker in zip(*kinds)], ["ff...bbbb", ".ffbbbb.."])
        self.assertEqual([action.kind for action in schedule.workers[0]][-1], "update")
        self.assertTrue(schedule._repr_svg_().startswith("<svg"))
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        with self.assertRaisesRegex(ValueError, "other.csv is no schedule: it has no column"):
            pw.Schedule.read("other.csv")


if __name__ == "__main__":
    harness.main()
