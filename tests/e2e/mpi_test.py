# SPDX-License-Identifier: Apache-2.0
"""One process per worker gives the same bytes as one process.

`Mpi` is about the processes, and `executions_test.py` has a scheme of each kind in them. `EveryScheme` has all schemes in
one to four workers, which the unit tests of the runtime have in one process, too.
"""

import json
import subprocess

import harness
import skips
from executions_test import CASES, SameBytes
from harness import BINARY, CNN, EXPERIMENT, MLP, changed, plain

MPI = ("--set", "pipeline.execution=mpi")
ONE_EPOCH = changed(CNN, {"train.epochs": 1, "loader.limit_train": 80, "loader.batch_size": 16})
# (stages, replicas): one to four workers.
SHAPES = [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2)]
OTHERS = {
    "placement, as a client has it": {
        "scheme": {"name": "spectrain"},
        "pipeline.stages": 4,
        "pipeline.placement": [0, 1, 2, 0],
    },
    "two stages on each worker": {
        "scheme": {"name": "gpipe"},
        "pipeline.stages": 4,
        "pipeline.microbatches": 2,
        "pipeline.placement": [0, 1, 0, 1],
    },
    "a smaller last mini-batch": {
        "scheme": {"name": "pipedream"},
        "loader.drop_last": False,
        "loader.limit_train": 90,
    },
    "three replicas of uneven shares": {
        "scheme": {"name": "data_parallel"},
        "pipeline.stages": 1,
        "pipeline.replicas": 3,
    },
    "never drained, float64": {
        "scheme": {"name": "pipeoptim"},
        "optimizer": {"name": "adamw", "lr": 0.001},
        "train.drain": "never",
        "train.epochs": 2,
        "train.precision": "float64",
    },
    "replicas in bfloat16": {
        "scheme": {"name": "pipedream"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
        "train.precision": "bfloat16",
    },
    "replicas in float16": {
        "scheme": {"name": "spectrain"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
        "train.precision": "float16",
    },
    "channels last, stashed and never drained": {
        "scheme": {"name": "pipedream"},
        "pipeline.memory_format": "channels_last",
        "train.drain": "never",
        "train.epochs": 2,
    },
    "channels last, predicted in bfloat16": {
        "scheme": {"name": "spectrain", "version": 2},
        "pipeline.memory_format": "channels_last",
        "train.precision": "bfloat16",
    },
    "channels last, recomputed": {
        "scheme": {"name": "gpipe"},
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 2,
        "pipeline.recompute": "always",
    },
    "channels last, split": {
        "scheme": {"name": "zb_h1"},
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 2,
    },
    "replicas in channels last": {
        "scheme": {"name": "pipedream"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 2,
    },
    "trained summing gradients": {
        "scheme": {"name": "pipedream_2bw"},
        "pipeline.microbatches": 4,
        "train.gradient": "sum",
    },
}


@skips.needs("mpirun")
class Mpi(harness.EndToEnd):
    def test_mpirun_started_by_the_user(self):
        self.write("mine.yaml", changed(MLP, {"pipeline.execution": "mpi"}))
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        done = subprocess.run(
            [*mpirun, BINARY, "run", "mine.yaml", "--out", "mine"],
            cwd=self.folder, text=True, capture_output=True, timeout=harness.SECONDS_LIMIT, check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("epoch 1/1"), 1, "only one process speaks")
        self.assert_same_weights(harness.Run(self.folder / "mine"), self.train(MLP, "serial"))

    def test_a_wrong_number_of_processes(self):
        for execution, message in (
            ("mpi", "needs 2 processes, one per worker, but 3 were started; use mpirun -n 2"),
            ("serial", "3 processes were started, but this execution is one process"),
        ):
            self.write("wrong.yaml", changed(MLP, {"pipeline.execution": execution}))
            done = subprocess.run(
                ["mpirun", "--quiet", "--allow-run-as-root", "--oversubscribe", "-n", "3", BINARY, "run", "wrong.yaml"],
                cwd=self.folder, text=True, capture_output=True, timeout=harness.SECONDS_LIMIT, check=False,
            )
            self.assertEqual(done.returncode, EXPERIMENT, done.stderr)
            self.assertEqual(done.stderr.count(message), 1, done.stderr)
            self.assertFalse((self.folder / "runs").exists())

    def test_a_folder_with_a_run_is_refused_once(self):
        self.train(MLP, "taken", *MPI)
        again = self.pipewright("run", "taken.yaml", "--out", "taken", *MPI, code=EXPERIMENT)
        self.assert_errors(again, plain("the folder holds a run already (done)"))

    def test_a_trace_has_every_worker(self):
        run = self.train(changed(MLP, {"output": {"trace": True}}), "traced", *MPI)
        events = json.loads(run.bytes("trace.json"))["traceEvents"]
        for worker in (0, 1):
            kinds = ("forward", "backward", "update")
            names = [event["name"] for event in events if event["tid"] == worker and event.get("cat") in kinds]
            self.assertEqual(len(names), 18, "6 mini-batches: forward, backward, update")
            self.assertTrue(all(event.get("dur", 1) > 0 for event in events))

    def test_weights_to_start_from(self):
        first = self.train(MLP, "first")
        again = changed(MLP, {"model.weights": str(first.path / "final.safetensors")})
        self.assert_same_weights(self.train(again, "serial"), self.train(again, "mpi", *MPI))


@skips.needs("mpirun")
class EveryScheme(SameBytes):
    def test_other_shapes(self):
        for title, changes in OTHERS.items():
            self.check(title, changed(ONE_EPOCH, changes), ["mpi", "threads"])


def shape_of(scheme, stages, replicas):
    """The changes for a scheme in so many stages and replicas, or what it has of them."""
    shape = {"pipeline.stages": stages, "pipeline.replicas": replicas}
    if scheme == "data_parallel":
        shape = {"pipeline.stages": 1, "pipeline.replicas": stages * replicas}
    if scheme == "csv_schedule":
        shape["pipeline.stages"] = 4
    changes = CASES[scheme] | shape
    if scheme == "delayed_sgd":
        changes["scheme"] = {"name": scheme, "delay": [3, 1, 2, 0][:stages]}
    if scheme == "interlocking":
        changes["scheme"] = changes["scheme"] | {"width": min(2, stages)}
    return changes


def add_scheme(scheme):
    def test(self):
        for stages, replicas in SHAPES:
            changes = shape_of(scheme, stages, replicas)
            self.check(f"{scheme} {stages} x {replicas}", changed(ONE_EPOCH, changes), ["mpi"])

    setattr(EveryScheme, f"test_{scheme}", test)


for each in CASES:
    add_scheme(each)

if __name__ == "__main__":
    harness.main()
