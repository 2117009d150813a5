# SPDX-License-Identifier: Apache-2.0
"""Sweeps: a run that fails does not stop the others, and nothing is done twice."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess

import harness
from harness import EXPERIMENT, FINE, INTERRUPTED, MLP, SWEEP, changed

# Two learning rates, of which one cannot work, with two seeds each.
MIXED = changed(
    MLP,
    {
        "scheme": {"name": "pipedream"},
        "sweep": {
            "points": [{"label": "good", "optimizer.lr": 0.05}, {"label": "bad", "optimizer.lr": 1e30}],
            "grid": {"train.seed": [1, 2]},
        },
        "table": {"rows": "train.seed", "columns": "label"},
    },
)
RUN_FILES = {
    ".pipewright",
    "epochs.csv",
    "experiment.yaml",
    "final.safetensors",
    "run.json",
    "steps.csv",
    "traffic.csv",
    "log.txt",
    "point.json",
    ".experiment.yaml",
}


@contextlib.contextmanager
def folder_held(folder):
    """As another process holds a folder while it has its turn there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Sweep(harness.EndToEnd):
    def sweep(self, experiment, *flags, code=FINE):
        self.write("s.yaml", experiment)
        return self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2", *flags, code=code)

    def runs(self, label=""):
        return [
            harness.Run(path) for path in sorted((self.folder / "sw").glob(f"{label}*-*")) if path.is_dir()
        ]

    def contents(self, runs):
        return {
            run.path.name: {
                name: (run.bytes(name), (run.path / name).stat().st_mtime_ns) for name in run.names()
            }
            for run in runs
        }

    def test_a_failing_point_does_not_stop_the_others(self):
        done = self.sweep(MIXED, code=SWEEP)
        self.assertRegex(done.err, r"2 of 4 runs failed:\n  bad seed \d: exit code 6: worker 1, stage 1")
        self.assertEqual([run.state() for run in self.runs("good")], ["done", "done"])
        self.assertEqual([run.state() for run in self.runs("bad")], ["failed", "failed"])
        for run in self.runs("good"):
            self.assertLessEqual(set(run.names()), RUN_FILES)
            self.assertRegex(run.path.name, r"^good-[0-9a-f]{16}$")
        for run in self.runs("bad"):
            self.assertNotIn("final.safetensors", run.names())
        self.assertTrue((self.folder / "sw/results.sqlite").exists())
        for line in [
            line for line in done.out.splitlines() if line.startswith("| 1 ") or line.startswith("| 2 ")
        ]:
            self.assertRegex(line, r"^\| [12] +\| +\d+\.\d\d \(1\) \| +1 failed \|$")

    def test_resume_repeats_nothing_that_is_done(self):
        self.sweep(MIXED, code=SWEEP)
        before = self.contents(self.runs("good"))
        done = self.sweep(MIXED, "--resume", "--keep-going", code=SWEEP)  # which changes nothing
        self.assertIn("2 of 4 runs are done already", done.err)
        self.assertNotIn("good", done.err)
        self.assertEqual(self.contents(self.runs("good")), before)
        self.assertEqual([run.state() for run in self.runs("bad")], ["failed", "failed"])

    def test_a_run_that_cannot_go_on_is_begun_anew_alone(self):
        """--overwrite, which the run itself asks for, would begin all runs of the sweep anew."""
        two = changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.sweep(two)
        kept, damaged = (run for seed in "12" for run in self.runs(seed))
        before = self.contents([kept])
        (damaged.path / "run.json").write_text("{")
        failed = self.sweep(two, "--resume", code=SWEEP)
        command = f"run s.yaml --out sw/{damaged.path.name} --point 2 --overwrite"
        self.assertEqual(2, failed.err.count(f"sw/{damaged.path.name}/run.json: is damaged: it is not JSON; `pipewright {command}` begins it anew"), failed.err)
        self.assertNotIn("give --overwrite", failed.err)
        self.pipewright(*command.split())
        self.assertEqual("done", damaged.state())
        self.sweep(two, "--resume")
        self.assertEqual(before, self.contents([kept]))

    def test_a_sweep_is_the_runs_it_consists_of(self):
        fine = changed(MLP, {"sweep": {"zip": {"train.seed": [1, 2], "optimizer.lr": [0.1, 0.2]}}})
        self.sweep(fine)
        alone = self.train(fine, "alone", "--set", "train.seed=2", "--set", "optimizer.lr=0.2")
        weights = [
            run.bytes()
            for run in self.runs()
            if json.loads(run.bytes("point.json"))["varied"]["train.seed"] == 2
        ]
        self.assertEqual(weights, [alone.bytes()])

    def test_a_finished_sweep_is_refused_and_resumed_in_no_time(self):
        fine = changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.sweep(fine)
        before = self.contents(self.runs())
        self.assert_errors(
            self.sweep(fine, code=EXPERIMENT), r"^sw: the folder holds 2 finished runs.*--resume.*--overwrite"
        )
        self.sweep(fine, "--resume")
        self.assertEqual(self.contents(self.runs()), before)
        self.sweep(fine, "--overwrite")
        self.assertNotEqual(self.contents(self.runs()), before)

    def test_an_interrupted_overwrite_leaves_no_run_of_before_as_done(self):
        long = changed(MLP, {"train.epochs": 600, "sweep": {"grid": {"train.seed": [1, 2]}}})
        self.sweep(long)
        old = {run.path / "run.json" for run in self.runs()}
        self.assertEqual([file.exists() for file in old], [True, True])
        began = {file: file.stat().st_mtime_ns for file in old}
        process = self.start("sweep", "s.yaml", "--out", "sw", "--overwrite", "--jobs", "1")
        self.wait_until(lambda: any(file.exists() and file.stat().st_mtime_ns != began[file] for file in old), process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertIn("interrupted with 0 of 2 runs done; the same command with --resume instead of --overwrite goes on, and `pipewright table ", said)
        self.assertNotIn("done", [run.state() for run in self.runs() if (run.path / "run.json").exists()])

    def test_more_points_may_be_added(self):
        self.sweep(changed(MLP, {"sweep": {"grid": {"train.seed": [1]}}}))
        before = self.contents(self.runs())
        self.sweep(changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}}), "--resume")
        after = self.contents(self.runs())
        self.assertEqual(len(after), 2)
        self.assertLessEqual(before.items(), after.items())

    def store(self, query):
        with sqlite3.connect(self.folder / "sw/results.sqlite") as store:
            return store.execute(query).fetchall()

    def test_runs_of_another_version_of_the_file_are_left_out_of_everything(self):
        grid = {"sweep": {"grid": {"train.seed": [1, 2]}}, "table": {"rows": "scheme.name"}}
        self.assertNotIn("another version", self.sweep(changed(MLP, grid)).err)
        now = changed(MLP, grid | {"optimizer.lr": 0.2})
        said = (
            "2 runs of another version of this file, or of other --set or --profile, are here; "
            "`pipewright sweep s.yaml --out sw --prune` removes them"
        )
        self.assertIn(said, self.sweep(now).err)
        table = self.pipewright("table", "s.yaml", "--out", "sw")
        self.assertIn("; from 2 runs", table.out)
        self.assert_errors(table, harness.plain(said))
        points = self.store('SELECT point, "train.seed", state FROM results')
        self.assertEqual(points, [(1, 1, "done"), (2, 2, "done")])
        self.assertEqual(self.store("SELECT count(*) FROM runs WHERE point IS NULL"), [(2,)])
        self.assertEqual(
            self.store("SELECT test_accuracy FROM results ORDER BY point"),
            self.store(
                "SELECT value FROM epochs JOIN runs USING (folder) "
                "WHERE metric = 'test_accuracy' AND point > 0 ORDER BY point"
            ),
        )

    def test_prune_removes_what_is_ours_and_of_another_version(self):
        grid = {"sweep": {"grid": {"train.seed": [1, 2, 3]}}}
        self.sweep(changed(MLP, grid))
        emptied, noted, linked = (run.path for run in self.runs())
        (noted / "notes.txt").write_text("mine")
        precious = self.write("precious/2/state.safetensors", "mine")
        shutil.rmtree(linked / "checkpoint", ignore_errors=True)
        (linked / "checkpoint").symlink_to(precious.parent.parent)
        self.write("sw/foreign/run.json", "{}")
        now = changed(MLP, grid | {"optimizer.lr": 0.2, "name": "other"})
        self.sweep(now)
        said = self.sweep(now, "--prune")
        self.assertNotIn("removed", said.out, "runs of the name 's' are no runs of 'other'")
        self.sweep(changed(now, {"name": "s"}), "--resume")
        today = [run for run in self.runs() if run.path not in (emptied, noted, linked)]
        before = self.contents(today)

        done = self.sweep(changed(now, {"name": "s"}), "--prune")
        removed = [f"removed {path.relative_to(self.folder)}" for path in (emptied, linked)]
        self.assertEqual(done.out.splitlines(), removed)
        self.assert_errors(done, rf"^kept {noted.relative_to(self.folder)}: it also holds notes\.txt$")
        self.assertEqual((self.folder / "sw/foreign/run.json").read_text(), "{}")
        self.assertEqual(sorted(path.name for path in noted.iterdir()), [".pipewright", "notes.txt"])
        self.assertFalse(emptied.exists() or linked.exists())
        self.assertEqual(precious.read_text(), "mine")
        self.assertEqual(self.contents(today), before)
        self.assertEqual(self.store("SELECT count(*) FROM runs WHERE point > 0"), [(3,)])
        self.assertEqual(self.pipewright("table", "s.yaml", "--out", "sw").err, "")

    def test_prune_leaves_the_runs_of_a_file_that_another_extends(self):
        self.sweep(changed(MLP, {"name": "s", "sweep": {"grid": {"train.seed": [1, 2]}}}))
        self.write("top.yaml", "extends: s.yaml\nsweep: {grid: {train.seed: [3]}}\n")
        of_top = ("top.yaml", "--out", "sw")
        self.assertNotIn("another version", self.pipewright("sweep", *of_top).err)
        self.assertIn("nothing to remove", self.pipewright("sweep", *of_top, "--prune").out)
        self.assertEqual([run.state() for run in self.runs()], ["done"] * 3)

    def test_runs_of_data_that_changed_are_told(self):
        numbers = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(40))
        self.write("x.csv", numbers)
        swept = {
            "dataset": {"name": "tensors", "file": "x.csv", "split": 0.2},
            "model": {"name": "mlp"}, "loader": {"batch_size": 4}, "train": {"epochs": 1},
            "sweep": {"grid": {"train.seed": [1]}},
        }  # fmt: skip
        self.assertNotIn("content", self.sweep(swept).err)
        self.write("x.csv", numbers + "3,2,1\n")
        told = "dataset.file is .*x.csv, which had another content when '2' was trained than when '1' was"
        swept["sweep"]["grid"]["train.seed"] = [1, 2]
        self.assertRegex(self.sweep(swept, "--resume").err, told)
        self.assertRegex(self.pipewright("table", "s.yaml", "--out", "sw").err, told)
        self.pipewright("report", "s.yaml", "--out", "sw")
        self.assertIn("which had another content when", (self.folder / "sw/report.html").read_text())

    def test_points_run_one_after_the_other_in_a_new_folder(self):
        self.write("s.yaml", changed(MLP, {"name": "s", "sweep": {"grid": {"train.seed": [1, 2]}}}))
        for point in ("1", "2"):
            self.pipewright("run", "s.yaml", "--point", point, "--quiet")
        table = self.pipewright("table", "s.yaml")
        self.assertIn("; from 2 runs", table.out)

    def test_two_tables_that_keep_rows_in_one_file_take_turns(self):
        self.sweep(changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}}))
        with folder_held(self.folder):
            process = self.start("table", "s.yaml", "--out", "sw", "--keep", "rows.csv")
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            self.assertFalse((self.folder / "rows.csv").exists())
        self.assertEqual(self.finish(process).code, FINE)
        self.assertEqual(len((self.folder / "rows.csv").read_text().splitlines()), 3)

    def test_prune_leaves_a_run_alone_that_is_under_way(self):
        slow = changed(MLP, {"loader.limit_train": 960, "train.epochs": 10000})
        self.write("s.yaml", changed(slow, {"sweep": {"grid": {"train.seed": [1]}}}))
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--prune")  # makes the folder ours
        process = self.start("run", "s.yaml", "--out", "sw/mine")
        self.wait_until((self.folder / "sw/mine/run.json").exists)
        done = self.pipewright("sweep", "s.yaml", "--out", "sw", "--prune")
        self.assertEqual(done.out, "")
        self.assertRegex(done.err, rf"^kept sw/mine: .*being worked in by pid {process.pid} ")
        self.assertTrue((self.folder / "sw/mine/run.json").exists())
        process.send_signal(signal.SIGINT)  # which leaves nothing half written, as a kill may
        process.wait(timeout=60)

    def test_all_points_are_checked_before_the_first_one_starts(self):
        wrong = changed(MLP, {"sweep": {"grid": {"pipeline.stages": [1, 2, 9], "train.seed": [1, -1]}}})
        done = self.sweep(wrong, code=EXPERIMENT)
        self.assertRegex(done.err, r"(?m)^s\.yaml:\d+:\d+: pipeline\.stages is 9;.*$")
        self.assertRegex(done.err, r"(?m)^s\.yaml:\d+:\d+: train\.seed is -1;.*$")
        self.assertEqual(self.runs(), [])

    def test_faults_of_the_sweep_itself(self):
        def refuse(sweep, pattern):
            self.write("s.yaml", "loader: {limit_train: 32}\n" + sweep)
            self.assert_errors(self.pipewright("sweep", "s.yaml", "--out", "sw", code=EXPERIMENT), pattern)

        refuse("sweep: {gird: {train.seed: [1]}}\n", r"^s\.yaml:2:9: unknown option 'sweep\.gird'; .*grid")
        refuse(
            "sweep: {zip: {train.seed: [1, 2], optimizer.lr: [1]}}\n",
            r"^s\.yaml:2:\d+: sweep\.zip\.optimizer\.lr has 1 value; expected 2",
        )
        refuse(
            "sweep: {grid: {train.seed: 3}}\n",
            r"^s\.yaml:2:\d+: sweep\.grid\.train\.seed is 3; expected a list.*\[3\]",
        )
        refuse("sweep: {grid: {train.seed: [1, 1]}}\n", r"^s\.yaml:2:\d+: runs 1 .*and 2 .*are the same")
        refuse(
            "sweep: {grid: {train.sed: [1]}}\n",
            r"^s\.yaml:2:\d+: unknown option 'train\.sed'; did you mean 'seed'\?",
        )
        self.assertEqual(self.runs(), [])

    def test_ctrl_c_saves_the_runs_under_way_and_resume_ends_them(self):
        # A second each, so that two are under way when the signal comes.
        slow = changed(
            MLP,
            {"loader.limit_train": 960, "train.epochs": 50, "sweep": {"grid": {"train.seed": [1, 2, 3, 4]}}},
        )
        self.write("s.yaml", slow)
        process = self.start("sweep", "s.yaml", "--out", "sw", "--jobs", "2")
        self.wait_until(lambda: sum((run.path / "epochs.csv").exists() for run in self.runs()) >= 2)
        process.send_signal(signal.SIGINT)
        done = self.finish(process)
        self.assertEqual(done.code, INTERRUPTED, done.err)
        self.assertRegex(
            done.err, r"interrupted with \d of 4 runs done; the same command with --resume goes on"
        )
        states = {run.state() for run in self.runs()}
        self.assertIn("interrupted", states)
        self.assertLessEqual(states, {"interrupted", "done"})
        finished = [run for run in self.runs() if run.state() == "done"]
        before = self.contents(finished)
        self.sweep(slow, "--resume")
        self.assertEqual([run.state() for run in self.runs()], ["done"] * 4)
        self.assertEqual(self.contents(finished), before)
        alone = self.train(slow, "alone", "--set", "train.seed=1")
        self.assertIn(alone.bytes(), [run.bytes() for run in self.runs()])


if __name__ == "__main__":
    harness.main()
