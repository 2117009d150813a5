# SPDX-License-Identifier: Apache-2.0
"""One process per worker: how they are started and counted, and that one of them speaks for all.

`executions_test.py` compares their bytes with those of one process.
"""

import json
import subprocess

import harness
import skips
from harness import BINARY, CNN, EXPERIMENT, MLP, changed, plain

MPI = ("--set", "pipeline.execution=mpi")


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


if __name__ == "__main__":
    harness.main()
