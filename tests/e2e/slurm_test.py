# SPDX-License-Identifier: Apache-2.0
"""Sweeps on a real Slurm, which this module starts and stops. Where there can be none, it says so."""

import re
import subprocess
import unittest

import harness
import skips
import slurm_cluster
from harness import EXPERIMENT, FINE, MLP, SWEEP, changed

# Every second point cannot work.
MIXED = changed(
    MLP,
    {
        "scheme": {"name": "pipedream"},
        "sweep": {
            "points": [
                {"label": label, "optimizer.lr": lr, "train.seed": seed}
                for seed in (1, 2)
                for label, lr in (("bad", 1e30), ("good", 0.05))
            ]
        },
        "table": {"rows": "train.seed", "columns": "label"},
    },
)
# Until it is told to end.
ENDLESS = changed(
    MLP, {"loader.limit_train": 960, "train.epochs": 100000, "sweep": {"grid": {"train.seed": [1, 2]}}}
)
AWKWARD = "it's a \"sweep\" of 50%a $HOME #1"


def setUpModule():
    global cluster
    reason = slurm_cluster.why_not()
    if reason:
        skips.lacks("slurm", reason)
    cluster = slurm_cluster.Cluster()
    unittest.addModuleCleanup(cluster.stop)
    cluster.start()


def table(text):
    return [line for line in text.splitlines() if line.startswith("|")]


class Slurm(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.addCleanup(cluster.cancel)

    def sweep(self, experiment, out, *flags, code=FINE):
        self.write("s.yaml", experiment)
        return self.pipewright("sweep", "s.yaml", "--out", out, *flags, code=code)

    def runs(self, out):
        return {run.parent.name: harness.Run(run.parent) for run in (self.folder / out).glob("*/run.json")}

    def states(self, out):
        return sorted(run.state() for run in self.runs(out).values())

    def compare(self, *flags):
        """A sweep on the cluster leaves what a sweep on this machine leaves."""
        here = self.sweep(MIXED, "here", code=SWEEP)
        there = self.sweep(MIXED, AWKWARD, "--slurm", *flags)
        self.assertRegex(there.err, r"^job \d+: 4 runs in \d tasks, ")
        cluster.wait()
        self.assertEqual(self.states(AWKWARD), ["done", "done", "failed", "failed"])
        self.assertFalse((self.folder / AWKWARD / "results.sqlite").exists())
        done = {name: run for name, run in self.runs(AWKWARD).items() if run.state() == "done"}
        finished = {name: (run.path / "run.json").stat().st_mtime_ns for name, run in done.items()}

        collected = self.sweep(MIXED, AWKWARD, "--resume", code=SWEEP)
        self.assertRegex(collected.err, r"^4 runs: 2 done, 2 failed\n  bad seed \d failed: worker 1, stage 1")
        self.assertEqual(table(collected.out), table(here.out))
        self.assertEqual(len(table(here.out)), 4)
        self.assertTrue((self.folder / AWKWARD / "results.sqlite").exists())
        local = self.runs("here")
        for name, run in done.items():
            self.assert_same_weights(run, local[name])
            self.assertEqual(run.bytes("steps.csv"), local[name].bytes("steps.csv"))
            self.assertEqual((run.path / "run.json").stat().st_mtime_ns, finished[name])

    def test_a_task_for_each_point(self):
        self.compare()
        tasks = sorted((self.folder / AWKWARD / "slurm/1").glob("task-*.log"))
        self.assertEqual([task.name for task in tasks], [f"task-{n}.log" for n in (1, 2, 3, 4)])

    @skips.needs("mpirun")
    def test_processes_of_mpi(self):
        seeds = changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.sweep(seeds, "here")
        self.sweep(changed(seeds, {"pipeline.execution": "mpi"}), "there", "--slurm")
        cluster.wait()
        self.assertEqual(self.states("there"), ["done", "done"])
        weights = [sorted(run.bytes() for run in self.runs(out).values()) for out in ("here", "there")]
        self.assertEqual(*weights)

    def srun(self, *flags, execution="mpi"):
        """Two processes of one experiment; the return code, and what they say."""
        self.write("e.yaml", changed(MLP, {"pipeline.stages": 2, "pipeline.execution": execution}))
        command = [slurm_cluster.program("srun"), "--quiet", *flags, "--ntasks=2"]
        done = subprocess.run(
            [*command, harness.BINARY, "run", "e.yaml", "--quiet", "--out", "srun"],
            cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
        )
        return done.returncode, done.stderr

    def test_processes_that_srun_starts(self):
        if "pmix" not in cluster.ask("srun", "--mpi=list"):
            skips.lacks("pmix")
        code, said = self.srun("--mpi=pmix")
        self.assertEqual((code, said), (FINE, ""))
        here = self.train(changed(MLP, {"pipeline.stages": 2}), "here")
        self.assert_same_weights(harness.Run(self.folder / "srun"), here)

    def test_processes_of_srun_that_cannot_find_each_other(self):
        code, said = self.srun("--mpi=none")
        self.assertEqual(code, EXPERIMENT)
        self.assertRegex(said, r"(?m)^e.yaml:\d+:\d+: srun started 2 processes that cannot find each other; use srun --mpi")
        self.assertEqual(said.count("srun started"), 1)
        self.assertFalse((self.folder / "srun").exists())
        code, said = self.srun("--mpi=none", execution="serial")
        self.assertEqual(code, EXPERIMENT)
        self.assertRegex(said, r"(?m)^e.yaml:\d+:\d+: 2 processes were started, but this execution is one process")

    def test_a_failing_point_does_not_stop_the_others_of_its_task(self):
        self.compare("--points-per-task", "2")
        tasks = sorted((self.folder / AWKWARD / "slurm/1").glob("task-*.log"))
        self.assertEqual(
            [task.read_text() for task in tasks],
            [f"bad seed {seed}: exit code 6\ngood seed {seed}: exit code 0\n" for seed in (1, 2)],
        )

    def test_what_is_in_the_queue_is_not_started_twice(self):
        first = self.sweep(ENDLESS, "sw", "--slurm", "--jobs", "1")
        job = re.match(r"job (\d+): 2 runs in 2 tasks", first.err)[1]
        slurm_cluster.wait_until(
            lambda: any((run.path / "epochs.csv").exists() for run in self.runs("sw").values()), "the first run"
        )
        self.assertEqual(cluster.queue(), {1: "RUNNING", 2: "PENDING"})
        for flags in ((), ("--resume",), ("--slurm",), ("--slurm", "--resume")):
            again = self.sweep(ENDLESS, "sw", *flags)
            self.assertRegex(again.err, r"^2 runs: 1 running, 1 pending\n")
            self.assertIn(f"2 runs are in the queue, see squeue --jobs={job}", again.err)
        self.assert_errors(
            self.sweep(ENDLESS, "sw", "--slurm", "--overwrite", code=EXPERIMENT),
            rf"^sw: 2 runs are in the queue, see squeue --jobs={job}; scancel .*--overwrite",
        )
        self.assertEqual(cluster.queue(), {1: "RUNNING", 2: "PENDING"})

        cluster.cancel()
        self.assertEqual(self.states("sw"), ["interrupted"])
        left = self.sweep(ENDLESS, "sw", "--slurm", "--dry-run")
        self.assertEqual(left.lines, ["2 runs: 1 interrupted, 1 missing", "task 1: seed 1", "task 2: seed 2"])

    def test_what_the_cluster_has_left_undone_is_resubmitted(self):
        fine = changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.sweep(fine, "sw", "--slurm", "--sbatch=--hold --comment='never released'")
        cluster.cancel()
        again = self.sweep(fine, "sw", "--slurm", "--resume")
        self.assertRegex(again.err, r"^2 runs: 2 missing\njob \d+: 2 runs in 2 tasks")
        cluster.wait()
        collected = self.sweep(fine, "sw", "--slurm", "--resume")
        self.assertRegex(collected.err, r"^2 of 2 runs are done already\n2 of 2 runs done, see ")
        alone = self.train(fine, "alone", "--set", "train.seed=1")
        self.assertIn(alone.bytes(), [run.bytes() for run in self.runs("sw").values()])

    def test_a_task_has_the_gpus_that_its_workers_need(self):
        """Of a cluster that counts two, which is what Slurm looks at; the program would find none."""
        for execution in ("threads", "mpi"):
            two = changed(MLP, {"pipeline.device": "cuda", "pipeline.execution": execution})
            self.sweep(two, execution, "--slurm", "--sbatch=--hold")
            asked = cluster.ask("squeue", "--noheader", "--Format=tres-per-node:40,tres-per-job:40")
            self.assertRegex(asked, r"\bgpu:2\b")
            cluster.cancel()

    def test_what_slurm_refuses_is_said_and_leaves_nothing(self):
        refused = self.sweep(MIXED, "sw", "--slurm", "--sbatch", "--partition=none", code=EXPERIMENT)
        self.assert_errors(refused, r"^sbatch did not submit the sweep: sbatch: error: .*[Pp]artition")
        self.assertEqual(list((self.folder / "sw/slurm").iterdir()), [])


if __name__ == "__main__":
    harness.main()
