# SPDX-License-Identifier: Apache-2.0
"""What two runs differ in: settings, the first loss and tensor, and schedules action by action."""

import json
import re

import harness
import safetensors
from harness import DATA, EXPERIMENT, MLP, changed

BASE = changed(MLP, {"train.epochs": 2, "train.checkpoint": {"every": 1}, "scheme": {"name": "pipedream"}})


class Compare(harness.EndToEnd):
    def compare(self, *arguments, code=0):
        return self.pipewright("compare", *arguments, code=code)

    def test_two_runs_of_one_experiment_are_equal_in_all_respects(self):
        named = changed(BASE, {"name": "same"})
        self.train(named, "a")
        self.train(changed(named, {"pipeline.execution": "threads"}), "b")
        said = self.compare("a", "b").out
        self.assertIn('setting     pipeline.execution "serial" → "threads"\n', said)
        self.assertIn("losses      equal in 12 mini-batches\n", said)
        self.assertRegex(said, r"\ntensors     at the end: equal in all \d+ that both have\n")
        self.assertRegex(said, r"\nworker 0    the same \d+ actions\n")
        self.assertTrue(
            said.endswith("In short: 1 setting differs; losses are equal; tensors are equal; schedules are equal.\n"), said
        )

    def test_the_first_loss_and_tensor_that_differ_are_those_in_the_files(self):
        a = self.train(BASE, "a")
        b = self.train(changed(BASE, {"lr_schedule": {"name": "step", "gamma": 0.5, "size": 1}}), "b")
        rows = [run.rows("steps.csv") for run in (a, b)]
        first = next(i for i, (one, other) in enumerate(zip(*rows)) if one != other)
        self.assertGreater(first, 0, "the learning rates of the first epoch are equal")
        one, other = rows[0][first], rows[1][first]
        said = self.compare("a", "b").out
        self.assertIn(
            f"first in mini-batch {one['minibatch']} of epoch {one['epoch']} (counted from 0): "
            f"loss {one['loss']} and {other['loss']}\n",
            said,
        )
        tensors = [safetensors.read(run.path / "final.safetensors") for run in (a, b)]
        self.assertEqual(*map(set, tensors))
        differing = [name for name in tensors[0] if tensors[0][name] != tensors[1][name]]
        self.assertIn(f"at the end: {len(differing)} of {len(tensors[0])} differ, first {differing[0]}, by at most ", said)

    def test_in_short_a_longer_run_agrees_as_far_as_both_have_trained(self):
        self.train(BASE, "a")
        self.train(changed(BASE, {"train.epochs": 3}), "b")
        said = self.compare("a", "b").out
        self.assertIn("losses are equal in the 12 mini-batches that both have trained; ", said)

    def test_schedules_are_compared_action_by_action(self):
        sweep = {"grid": {"scheme.name": ["model_parallel", "pipedream", "spectrain"]}}
        self.write("s.yaml", changed(BASE, {"sweep": sweep, "pipeline.stages": 2}))
        said = self.compare("s.yaml", "--point", "pipedream", "--point", "spectrain", "--minibatches", "4").out
        self.assertIn('setting     scheme.name "pipedream" → "spectrain"\n', said)
        self.assertNotIn("losses", said)
        # The order of both is 1F1B's; SpecTrain's first stage reads predictions.
        self.assertRegex(said, r"worker 0    12 actions, \d+ the same, \d+ with other weights; first at place \d+: ")
        self.assertRegex(said, r"in all      \d+ of 24 places the same, \d+ with other weights, 0 with another action\n")
        # Model parallelism: F0 B0 U; PipeDream: F0 F1 B0. Both begin with F0.
        said = self.compare("s.yaml", "--point", "1", "--point", "2", "--minibatches", "4").out
        self.assertRegex(said, r"worker 0    12 actions, 2 the same, 1 with other weights; first at place 1: B0 with weights 0 \| F1 with weights 0\n")

    def test_what_cannot_be_compared_is_said(self):
        file = self.write("x.yaml", BASE)
        self.assert_errors(self.compare("x.yaml", code=EXPERIMENT), r"one of two is missing: give another run or file")
        self.folder.joinpath("empty").mkdir()
        self.assert_errors(self.compare("empty", "x.yaml", code=EXPERIMENT), r"^empty: holds no run: expected a folder")
        self.train(BASE, "a")
        self.train(changed(BASE, {"output.steps": False, "output.weights": False, "train.checkpoint.every": 0}), "b")
        said = self.compare("a", "b").out
        self.assertIn("losses      not compared: not both have steps.csv", said)
        self.assertIn("tensors     not compared: ", said)
        self.assertEqual(self.compare(file.name, file.name).out.splitlines()[3], "settings    the same")
        (self.folder / "a/final.safetensors").write_bytes(b"damaged")
        self.train(BASE, "c")
        self.assertRegex(self.compare("a", "c", code=DATA).err, r"a/final.safetensors")


if __name__ == "__main__":
    harness.main()
