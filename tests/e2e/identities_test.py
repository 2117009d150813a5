# SPDX-License-Identifier: Apache-2.0
"""Schemes that must be the same algorithm in some shape are, to the last byte."""

import harness
import safetensors
from harness import CNN, changed
from executions_test import CASES

SGD = {"name": "sgd", "lr": 0.02, "momentum": 0.9}
ADAM = {"name": "adam", "lr": 0.002}

# With one stage nothing is stale, nothing predicted and no loss auxiliary.
OF_ONE_STAGE = [
    {"name": "gpipe"},
    {"name": "one_f_one_b"},
    {"name": "data_parallel"},
    {"name": "pipedream"},
    {"name": "pipedream", "weight_stashing": False},
    {"name": "pipedream", "vertical_sync": True},
    {"name": "spectrain", "version": 1},
    {"name": "spectrain", "version": 2},
    {"name": "pipeoptim"},
    {"name": "xpipe"},
    {"name": "delayed_sgd", "delay": 0},
    {"name": "interlocking", "width": 1},
    {"name": "interlocking", "width": "all"},
    {"name": "interleaved"},
    {"name": "zb_h1"},
    {"name": "zb_h2"},
    {"name": "pipemare"},
]


class Identities(harness.EndToEnd):
    def test_one_stage_of_any_scheme_is_model_parallelism(self):
        for optimizer in (SGD, ADAM, {"name": "sgd", "lr": 0.02}):
            base = changed(CNN, {"pipeline.stages": 1, "optimizer": optimizer, "train.epochs": 1})
            plain = self.train(base, "plain", "--overwrite")
            for scheme in OF_ONE_STAGE:
                with self.subTest(scheme=scheme, optimizer=optimizer):
                    other = self.train(changed(base, {"scheme": scheme}), "other", "--overwrite")
                    self.assert_same_weights(plain, other)

    def test_one_micro_batch_with_flush_is_model_parallelism(self):
        plain = self.train(CNN, "plain")
        for name in ("gpipe", "one_f_one_b", "interleaved", "zb_h1", "zb_h2"):
            self.assert_same_weights(plain, self.train(changed(CNN, {"scheme": {"name": name}}), name))

    def test_interlocking_over_all_stages_is_model_parallelism(self):
        plain = self.train(CNN, "plain")
        for width in ("all", 3):
            for heads in (True, False):
                with self.subTest(width=width, train_unused_heads=heads):
                    scheme = {"name": "interlocking", "width": width, "train_unused_heads": heads}
                    other = self.train(changed(CNN, {"scheme": scheme}), "interlocking", "--overwrite")
                    self.assertEqual(any(name.startswith("heads.") for name in other.tensors()), heads)
                    body = {
                        name: tensor
                        for name, tensor in other.tensors().items()
                        if not name.startswith("heads.")
                    }
                    self.assertTrue(body == plain.tensors(), safetensors.difference(body, plain.tensors()))

    def test_delays_of_pipedream_are_pipedream(self):
        pipedream = self.train(changed(CNN, {"scheme": {"name": "pipedream"}}), "pipedream")
        delayed = self.train(changed(CNN, {"scheme": {"name": "delayed_sgd", "delay": [2, 1, 0]}}), "delayed")
        self.assert_same_weights(pipedream, delayed)

    def test_the_cut_of_a_model_changes_nothing_without_staleness(self):
        whole = self.train(changed(CNN, {"pipeline": {"stages": 1}}), "whole")
        for stages in (2, 8):
            self.assert_same_weights(
                whole, self.train(CNN, f"cut{stages}", "--set", f"pipeline.stages={stages}")
            )
        listed = self.train(CNN, "listed", "--set", "pipeline.balance=[1, 1, 6]")
        self.assert_same_weights(whole, listed)

    def test_a_learning_rate_of_zero_leaves_the_weights_alone(self):
        for name, changes in CASES.items():
            with self.subTest(name):
                experiment = changed(changed(CNN, changes), {"train.epochs": 0})
                before = self.train(experiment, "before", "--overwrite").parameters()
                after = self.train(
                    experiment, "after", "--overwrite", "--set", "train.epochs=1", "--set", "optimizer.lr=0"
                ).parameters()
                self.assertTrue(before == after, safetensors.difference(before, after))

    def test_draining_does_not_matter_to_one_epoch(self):
        for name, changes in CASES.items():
            with self.subTest(name):
                experiment = changed(changed(CNN, changes), {"train.epochs": 1})
                drained = self.train(experiment, "epoch", "--overwrite")
                never = self.train(experiment, "never", "--overwrite", "--set", "train.drain=never")
                self.assert_same_weights(drained, never)
                self.assertEqual(drained.bytes("steps.csv"), never.bytes("steps.csv"))

    def test_recomputing_activations_changes_nothing(self):
        for name, changes in CASES.items():
            with self.subTest(name):
                experiment = changed(changed(CNN, changes), {"train.epochs": 1})
                kept = self.train(experiment, "kept", "--overwrite")
                mode = "except_last" if "pipeline.microbatches" in changes else "always"
                again = self.train(experiment, "again", "--overwrite", "--set", f"pipeline.recompute={mode}")
                self.assert_same_weights(kept, again)
                self.assertEqual(kept.bytes("steps.csv"), again.bytes("steps.csv"))

    def test_staleness_does_matter(self):
        """The identities above are not there because nothing ever differs."""
        plain = self.train(CNN, "plain")
        for name in ("pipedream", "spectrain", "pipeoptim", "interlocking"):
            other = self.train(changed(CNN, {"scheme": {"name": name}}), name)
            self.assertFalse(plain.parameters() == other.parameters(), name)


if __name__ == "__main__":
    harness.main()
