# SPDX-License-Identifier: Apache-2.0
"""A scheme that produces an invalid schedule: exit 4, the culprit is shown, nothing is trained.

No scheme that comes with the program does so; $PIPEWRIGHT_BROKEN_BINARY is the program with one more.
"""

import os
import subprocess

import harness
import skips
from harness import EXPERIMENT, FINE, MLP, SCHEDULE, changed
from executions_test import CASES

BROKEN_BINARY = os.environ.get("PIPEWRIGHT_BROKEN_BINARY")


class InvalidSchedule(harness.EndToEnd):
    def broken(self, *arguments):
        done = subprocess.run(
            [BROKEN_BINARY, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=60
        )
        return harness.Finished(done.returncode, done.stdout, done.stderr)

    @skips.needs("test-programs", BROKEN_BINARY)
    def test_every_fault_is_found_before_anything_runs(self):
        faults = {
            "no_update": r"0B\d makes a gradient that no update applies",
            "twice": r"0F0 happens twice",
            "deadlock": r"deadlock: 0B0 can never start, because it waits for 1B0 of worker 1 and so for 0F0, which comes later",
            "old_version": r"0B0 asks for version 1 .*0 updates have run by then",
            "no_backward": r"no backward of stage 0, replica 0, mini-batch 0, .*for the loss of stage 1",
        }
        for how, culprit in faults.items():
            self.write(
                "x.yaml",
                "loader: {limit_train: 96}\nmodel: {name: mlp}\npipeline: {stages: 2}\n"
                f"scheme: {{name: broken, how: {how}}}\n",
            )
            for command in (("check", "x.yaml"), ("schedule", "x.yaml"), ("run", "x.yaml", "--out", "out")):
                with self.subTest(how=how, command=command[0]):
                    done = self.broken(*command)
                    self.assertEqual(done.code, SCHEDULE, done.err)
                    self.assertRegex(done.lines[0], culprit)
                    if how != "old_version":  # there is a place to point at
                        self.assertRegex(done.err, r"(?m)^worker 0 .*▶[FB]\d.*◀")
        self.assertFalse((self.folder / "out").exists())

    @skips.needs("test-programs", BROKEN_BINARY)
    def test_a_stage_that_misses_an_update_is_named(self):
        """It is valid, because gradients may be summed over mini-batches, but hardly what was meant."""
        self.write(
            "x.yaml",
            "loader: {limit_train: 96}\nmodel: {name: mlp}\npipeline: {stages: 2}\ntrain: {epochs: 1}\n"
            "scheme: {name: broken, how: fewer_updates}\n",
        )
        said = "stage 0 updates its weights 2 times in 3 mini-batches; the gradients of a mini-batch without an"
        self.assertIn(f"note: {said}", self.broken("check", "x.yaml").out)
        self.assertIn(f"note: {said}", self.broken("schedule", "x.yaml", "--minibatches", "3").out)
        done = self.broken("run", "x.yaml", "--out", "out")
        self.assertEqual(done.code, FINE, done.err)
        self.assertIn(f"warning: {said}", done.err)

    def test_the_schemes_of_the_program_are_valid_or_refuse_the_shape(self):
        """Never exit 4, whatever is asked for."""
        shapes = [
            {},
            {"pipeline.stages": 4, "pipeline.microbatches": 3},
            {"pipeline.stages": 4, "pipeline.placement": [0, 1, 1, 0]},
            {"pipeline.stages": 3, "pipeline.placement": [0, 0, 0], "pipeline.replicas": 2},
        ]
        for name in CASES:
            for shape in shapes:
                with self.subTest(scheme=name, shape=shape):
                    self.write("x.yaml", changed(changed(MLP, {"scheme": {"name": name}}), shape))
                    done = self.finish(self.start("schedule", "x.yaml", "--minibatches", "5"))
                    self.assertIn(done.code, (FINE, EXPERIMENT), done.err)


if __name__ == "__main__":
    harness.main()
