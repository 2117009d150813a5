# SPDX-License-Identifier: Apache-2.0
"""Probes write the same rows in every execution, after a resume too, and change no byte of the weights."""

import subprocess

import harness
import skips
from harness import BINARY, CNN, changed

NAMES = ["weight_gap", "prediction_error", "gradient_alignment", "mismatch", "delay_alignment", "norms"]
PROBED = changed(
    CNN,
    {
        "scheme": {"name": "spectrain"},
        "pipeline.stages": 3,
        "pipeline.microbatches": 2,
        "pipeline.compression": {"name": "uniform", "bits": 6},
        "loader.limit_train": 160,
        "loader.batch_size": 16,
        "train.epochs": 3,
        "probes": [{"name": name, "every": 4} for name in NAMES + ["gradient_noise", "edge_error"]]
        + [{"name": "sharpness", "every": 4, "samples": 8, "products": 6}],
    },
)
HEADER = b"epoch,minibatch,stage,probe,quantity,value\n"


class Probes(harness.EndToEnd):
    def test_every_execution_finds_the_same_and_trains_the_same(self):
        plain = self.train(changed(PROBED, {"probes": []}), "plain")
        self.assertFalse((plain.path / "probes.csv").exists())
        serial = self.train(PROBED, "serial")
        self.assert_same_weights(plain, serial)
        found = serial.bytes("probes.csv")
        self.assertTrue(found.startswith(HEADER))
        rows = serial.rows("probes.csv")
        self.assertEqual({row["probe"] for row in rows}, {probe["name"] for probe in PROBED["probes"]})
        self.assertEqual({row["stage"] for row in rows}, {"", "0", "1", "2"})
        gaps = {(row["epoch"], row["minibatch"]) for row in rows if row["probe"] == "norms"}
        self.assertEqual(gaps, {("0", "0"), ("0", "4"), ("0", "8"), ("1", "2"), ("1", "6"), ("2", "0"), ("2", "4"), ("2", "8")})
        sharp = {(row["epoch"], row["minibatch"], row["stage"]) for row in rows if row["probe"] == "sharpness"}
        self.assertEqual(sharp, {(*at, stage) for at in gaps for stage in ("", "0", "1", "2")})
        threads = self.train(PROBED, "threads", "--set", "pipeline.execution=threads")
        self.assert_same_weights(plain, threads)
        self.assertEqual(found, threads.bytes("probes.csv"))

    def test_sharpness_does_not_depend_on_where_the_pipeline_is_drained(self):
        # GPipe is drained after each mini-batch anyway, so checkpoints at all of them change nothing.
        flush = changed(PROBED, {"scheme": {"name": "gpipe"}, "probes": [PROBED["probes"][-1]]})
        rarely = self.train(flush, "rarely", "--set", "train.checkpoint.every=0")
        always = self.train(flush, "always", "--set", "train.checkpoint={every: 1, unit: minibatch}")
        self.assertEqual(rarely.bytes("probes.csv"), always.bytes("probes.csv"))

    @skips.needs("mpirun")
    def test_processes_find_the_same(self):
        serial = self.train(PROBED, "serial")
        path = self.write("probed.yaml", PROBED)
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", BINARY, "run", str(path)]
        done = subprocess.run(
            [*command, "--out", str(self.folder / "mpi"), "--set", "pipeline.execution=mpi"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        run = harness.Run(self.folder / "mpi")
        self.assert_same_weights(serial, run)
        self.assertEqual(serial.bytes("probes.csv"), run.bytes("probes.csv"))
        self.assertIn("probe sharpness: ", done.stderr)

    def test_a_resumed_run_has_the_rows_of_one_that_was_not_interrupted(self):
        whole = self.train(PROBED, "whole")
        shorter = changed(PROBED, {"train.epochs": 2, "name": "x"})
        self.train(shorter, "x")
        self.resume("x", "--set", "train.epochs=3")
        run = harness.Run(self.folder / "x")
        self.assert_same_weights(whole, run)
        self.assertEqual(whole.bytes("probes.csv"), run.bytes("probes.csv"))


if __name__ == "__main__":
    skips.main()
