# SPDX-License-Identifier: Apache-2.0
"""The Python package: it starts the program, and its rows are what the program's files hold."""

import csv
import fcntl
import json
import os
import socket
import sys
import warnings
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

    def test_runs_of_an_earlier_version_of_the_file_are_not_mixed_with_those_of_today(self):
        pw.sweep(SWEEP, jobs=1)
        other = changed(SWEEP, {"optimizer.lr": 0.5})
        with self.assertWarnsRegex(UserWarning, r"runs/two: 4 run\(s\) of another version of the experiment, .* are left out"):
            today = pw.sweep(other, jobs=1)
        self.assertEqual({row["optimizer.lr"] for row in pw.load("runs/two").rows("runs")}, {MLP["optimizer"]["lr"], 0.5})
        self.assertEqual(len(today.list), 4)
        with self.assertWarns(UserWarning):
            earlier = pw.load("runs/two", SWEEP)
        self.assertEqual({run.folder for run in today.list} & {run.folder for run in earlier.list}, set())
        self.assertEqual(len(earlier.list), 4)

        everything = pw.load("runs/two").rows("epochs")
        lines = [line.split(maxsplit=2) for line in self.pipewright("list", "runs/two").out.splitlines()]
        self.assertEqual(len({settings for _, _, settings in lines}), 8, "each run has words of its own")
        self.pipewright("export", "runs/two", "--output", "out.csv")
        with open(self.folder / "out.csv", newline="") as file:
            exported = list(csv.DictReader(file))
        keys = ["label", "scheme.name", "train.seed", "optimizer.lr"]
        told = [{tuple(str(row[key]) for key in ("run", *keys)) for row in rows} for rows in (everything, exported)]
        self.assertEqual(told[0], told[1])
        self.assertEqual(list(exported[0]), ["run", *keys[:1], "state", *keys[1:], "epoch", "step", "metric", "value"])
        self.pipewright("report", "runs/two", "--output", "page.html")
        page = (self.folder / "page.html").read_text()
        self.assertIn("optimizer.lr", page)
        self.assertNotIn("(4)", page, "no cell has runs of both")

    def test_a_run_under_way_is_read_up_to_its_last_whole_line(self):
        results = pw.run(MLP, out="out")
        whole = results.rows("steps")
        steps = self.folder / "out" / "steps.csv"
        text = steps.read_text()
        for begun in ("1", "1,0", "1,0,2.25967"):  # the last has all fields, but not all digits
            with self.subTest(begun):
                steps.write_text(text + begun)
                self.assertEqual(pw.load("out").rows("steps"), whole)
        steps.write_text("epoch,minibatch,lo")
        self.assertEqual(pw.load("out").rows("steps"), [])
        steps.write_bytes(text.encode() + b"\xff\n")
        with self.assertRaisesRegex(ValueError, "out/steps.csv: .*can't decode"):
            pw.load("out").rows("steps")

    def test_a_run_is_found_by_the_values_of_its_row_and_by_those_that_it_records(self):
        """A sweep over files has relative paths, and the runs record absolute ones."""
        os.mkdir("data")
        for name in ("a", "b"):
            rows = [f"{i / 50},{i * len(name) % 3 / 2}" for i in range(50)]
            self.write(f"data/{name}.csv", "\n".join(["x,y", *rows, ""]))
        regression = {
            "dataset": {"name": "tensors", "columns": ["x"], "target": "y", "split": 0.2},
            "loader": {"batch_size": 8},
            "model": {"name": "mlp", "widths": [1, 4, 1]},
            "loss": {"name": "mse"},
            "sweep": {"grid": {"dataset.file": ["data/a.csv", "data/b.csv"], "train.seed": [1, 2]}},
        }
        results = pw.sweep(changed(regression, {"pipeline.stages": 2, "train.epochs": 1}), out="out", jobs=1)
        rows = results.rows("runs")
        self.assertEqual([row["dataset.file"] for row in rows], ["data/a.csv"] * 2 + ["data/b.csv"] * 2)
        for row in rows:
            whole = str(self.folder.resolve() / row["dataset.file"])
            self.assertIn(f"file: {whole}", (self.folder / "out" / row["run"] / "experiment.yaml").read_text())
            for key, file in (("dataset.file", row["dataset.file"]), ("file", row["dataset.file"]), ("file", whole)):
                found = results.where({key: file, "seed": row["train.seed"]})
                self.assertEqual(found.folder.name, row["run"])
        with self.assertRaisesRegex(pw.PipewrightError, r"2 runs have dataset.file=.*/data/a.csv; they differ in train.seed \(1, 2\)"):
            results.where({"dataset.file": "data/a.csv"})

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


class StatesOfRuns(harness.EndToEnd):
    """Runs have the states that `pipewright list` says, and none is lost for a damaged file of another."""

    def setUp(self):
        super().setUp()
        self.here = f"pid {os.getpid()} on host {socket.gethostname()} since 2026-01-31T12:00:00Z"

    def run_folder(self, name, record, point=None, holder=None):
        """A run's folder, whose files are given as values or as bytes."""
        folder = self.folder / name
        for file, content in (("run.json", record), ("point.json", point)):
            if content is not None:
                self.write(f"{name}/{file}", content)
        if holder is not None:
            ours = "Pipewright made this folder. It deletes and replaces only files of its own names here.\n"
            self.write(f"{name}/.pipewright", f"{ours}Last at work: {holder}\n".ljust(511) + "\n")
        return folder

    def listed(self, folder):
        """The states that the program says, by the names of the folders."""
        lines = self.pipewright("list", folder).out.splitlines()
        return {os.path.basename(line.split()[0]): line.split()[1] for line in lines}

    def loaded(self, folder):
        """The runs that Python says, by the names of their folders. It says the states that the program does."""
        runs = {run.folder.name: run for run in pw.load(self.folder / folder).list}
        self.assertEqual({name: run.record["state"] for name, run in runs.items()}, self.listed(folder))
        return runs

    def test_a_run_whose_record_cannot_be_read_is_failed_and_nothing_else_is_lost(self):
        self.run_folder("sw", None, holder=self.here)
        self.run_folder("sw/b", {"state": "done"}, {"point": 2, "label": "b"}, self.here)
        self.write("sw/a/epochs.csv", "epoch,train_loss\n0,0.5\n")
        damages = {
            b'{"state":"do': "is no JSON: .*char",
            b"": "is no JSON",
            b"\xff": "is no JSON: .*can't decode",
            b"[" * 100_000: "is no JSON",
            b"[]": "has no state",
            b'{"seed":1}': "has no state",
        }
        for damaged, said in damages.items():
            with self.subTest(damaged[:20]):
                self.run_folder("sw/a", damaged, {"point": 1, "label": "a", "varied": {"train.seed": 7}}, self.here)
                runs = self.loaded("sw")
                self.assertEqual([run.record["state"] for run in runs.values()], ["failed", "done"])
                self.assertRegex(runs["a"].record["error"], rf"^\S+/sw/a/run.json: {said}")
                (row, _) = pw.load(self.folder / "sw").rows("runs")
                self.assertEqual((row["train.seed"], row["train_loss"]), (7, 0.5))
        (self.folder / "sw/a/run.json").unlink()
        os.mkfifo(self.folder / "sw/a/run.json")
        self.assertRegex(self.loaded("sw")["a"].record["error"], "/sw/a/run.json: cannot be read: it is no plain file")

    def test_so_is_one_whose_point_cannot_be_read(self):
        self.run_folder("sw", None, holder=self.here)
        self.run_folder("sw/b", {"state": "done"}, {"point": 2, "label": "b"}, self.here)
        self.run_folder("sw/a", {"state": "failed", "error": "too hot", "seed": 3}, b'{"point":1,"lab', self.here)
        failed = self.loaded("sw")["a"].record
        self.assertRegex(failed["error"], r"^too hot; \S+/sw/a/point.json: is no JSON")
        self.assertEqual(failed["seed"], 3)

    def test_a_killed_run_is_interrupted_and_one_at_work_running(self):
        self.write("e.yaml", changed(MLP, {"train.epochs": 1_000_000, "train.checkpoint.every": 0}))
        process = self.start("run", "e.yaml", "--quiet", "--out", "out")
        self.wait_until((self.folder / "out/run.json").exists, process)
        self.assertEqual(self.loaded("out")["out"].record["state"], "running")
        process.kill()
        self.finish(process)
        names = harness.Run(self.folder / "out").names()
        run = self.loaded("out")["out"]
        self.assertEqual((run.record["state"], run.record["seed"]), ("interrupted", 1))
        self.assertEqual(harness.Run(self.folder / "out").names(), names)

    def test_a_run_is_interrupted_only_if_certainly_nobody_is_at_work(self):
        state = {"state": "running"}
        self.run_folder("runs/without-marker", state)
        self.run_folder("runs/free", state, holder=self.here)
        held = self.run_folder("runs/held", state, holder=self.here)
        self.run_folder("runs/elsewhere", state, holder=self.here.replace("on host ", "on host not-"))
        self.run_folder("runs/nobody", state, holder="0.3")
        os.symlink("nowhere", self.run_folder("runs/link", state) / ".pipewright")
        self.run_folder("runs/ended", {"state": "done"}, holder=self.here)
        with open(held / ".pipewright", "rb") as marker:
            fcntl.flock(marker, fcntl.LOCK_EX)
            states = {name: run.record["state"] for name, run in self.loaded("runs").items()}
        expected = {name: "running" for name in ("held", "elsewhere", "nobody", "link")}
        expected |= {"without-marker": "interrupted", "free": "interrupted", "ended": "done"}
        self.assertEqual(states, expected)
        self.assertEqual(os.listdir(self.folder / "runs/without-marker"), ["run.json"])
        self.run_folder("sw/killed", state, {"point": 1, "error": "killed by signal 9"}, self.here)
        self.assertEqual(self.loaded("sw")["killed"].record, {"state": "failed", "error": "killed by signal 9"})

    def test_a_run_that_ends_while_it_is_read_has_ended(self):
        folder = self.run_folder("out", {"state": "running"}, holder=self.here)

        def ends(_):
            self.run_folder("out", {"state": "done", "seed": 5})
            return True

        with mock.patch("pipewright_lab.run_folder.is_free", ends):
            (run,) = pw.load(folder).list
        self.assertEqual(run.record, {"state": "done", "seed": 5})

    def test_the_runs_of_a_folder_are_those_that_the_program_lists(self):
        self.run_folder("runs/swept/begun", {"state": "done"}, {"point": 2})
        self.run_folder("runs/swept/waiting", None, {"point": 1})
        self.run_folder("runs/swept", {"state": "done"})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(list(self.loaded("runs/swept")), ["waiting", "begun"], "without markers; not its own run")
            self.assertEqual(list(self.loaded("runs/swept/waiting")), ["waiting"])
            self.run_folder("runs/one", {"state": "done"})
            self.run_folder("runs/other", {"state": "failed"})
            os.symlink("one", self.folder / "runs/link")
            self.assertEqual(list(self.loaded("runs")), ["one", "other", "swept"])
        self.run_folder("runs/swept/lost", {"state": "done"})
        with self.assertWarnsRegex(UserWarning, r"runs/swept: runs without point.json are left out, .*: lost$"):
            self.loaded("runs/swept")
        for path in ("runs/swept/begun/run.json", "nowhere"):
            with self.assertRaisesRegex(FileNotFoundError, "no folder of a run or of a sweep"):
                pw.load(self.folder / path)


if __name__ == "__main__":
    harness.main()
