# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: within an epoch, taken up under another layout, damaged."""

import json

import harness
import skips
from harness import CNN, DATA, EXPERIMENT, changed


@skips.needs("test-programs", harness.FAILING_FILES)
class Checkpoint(harness.EndToEnd):
    def manifest(self, run):
        return json.loads(run.bytes("checkpoint/manifest.json"))

    # Within an epoch

    def test_within_an_epoch_goes_on_with_the_same_bytes(self):
        cases = {
            "sgd": {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 2},
            "adam": {"scheme": {"name": "pipedream"}, "optimizer": {"name": "adam", "lr": 0.002}},
            "predicting": {"scheme": {"name": "spectrain", "velocity": "lookahead"}},
            "replicas": {"scheme": {"name": "pipeoptim"}, "pipeline.replicas": 2},
            "heads": {"scheme": {"name": "interlocking"}},
            "undrained": {"scheme": {"name": "pipedream"}, "train.drain": "never"},
            "steps": {"scheme": {"name": "pipedream"}, "train.steps": 15, "train.epochs": 0},
        }
        for name, changes in cases.items():
            with self.subTest(name):
                experiment = changed(
                    CNN, {"train.epochs": 3} | changes | {"train.checkpoint": {"every": 4, "unit": "minibatch"}}
                )
                whole = self.train(experiment, "whole", "--overwrite")
                run = self.killed_in_a_checkpoint(experiment, name, 2)
                self.assertEqual(self.manifest(run)["minibatches"], 8)
                done = self.resume(name)
                self.assertIn("going on after mini-batch 2 of epoch 2", done.err)
                self.assert_same_result(whole, run)

    def test_a_training_by_steps_is_the_beginning_of_a_longer_one(self):
        experiment = changed(CNN, {"scheme": {"name": "pipedream"}, "train.epochs": 0, "train.steps": 15})
        whole = self.train(experiment, "whole")
        self.assertEqual([row["epoch"] for row in whole.rows("epochs.csv")], ["0", "1", "2"])
        self.assertEqual(len(whole.rows("steps.csv")), 15)
        losses = [float(row["loss"]) for row in whole.rows("steps.csv")]
        # the last epoch has 3 of its 6 mini-batches, which are of equal size
        self.assertAlmostEqual(float(whole.rows("epochs.csv")[2]["train_loss"]), sum(losses[12:]) / 3, places=12)
        epochs = self.train(changed(experiment, {"train.epochs": 3, "train.steps": 0}), "epochs")
        longer = self.pipewright("run", "whole/experiment.yaml", "--out", "whole", "--resume", "--set", "train.steps=18")
        self.assertIn("going on after epoch 2", longer.err)
        self.assert_same_weights(epochs, harness.Run(self.folder / "whole"))
        fewer = self.pipewright(
            "run", "whole/experiment.yaml", "--out", "whole", "--resume", "--set", "train.steps=9", code=2
        )
        self.assertIn("the run is done after 18 steps, train.steps 9 asks for fewer", fewer.err)
        both = self.pipewright("check", "whole/experiment.yaml", "--set", "train.epochs=3", code=2)
        self.assertIn("train.steps is 18, and epochs is 3; expected one of the two", both.err)

    def test_changes_nothing_where_the_pipe_is_empty_anyway(self):
        whole = self.train(CNN, "whole")
        cut = self.train(CNN, "cut", "--set", "train.checkpoint={every: 4, unit: minibatch}")
        self.assert_same_result(whole, cut)

    def test_says_that_it_drains_in_spite_of_drain_never(self):
        experiment = changed(CNN, {"scheme": {"name": "pipedream"}, "train.drain": "never"})
        self.write("x.yaml", experiment)
        never = self.pipewright("run", "x.yaml", "--out", "never")
        self.assertNotIn("drains", never.err)
        flags = ["--set", "train.checkpoint={every: 1}"]
        cut = self.pipewright("run", "x.yaml", "--out", "cut", *flags)
        self.assertIn("train.drain is never, but each checkpoint drains the pipeline: every 6 mini-batches", cut.err)
        self.assertIn("train.drain is never, but", self.pipewright("check", "x.yaml", *flags).out)
        drained = self.train(changed(experiment, {"train.drain": "epoch"}), "drained")
        self.assert_same_weights(drained, harness.Run(self.folder / "cut"))
        again = self.pipewright("run", "never/experiment.yaml", "--quiet", "--out", "again")
        self.assertEqual(again.err, "")
        self.assert_same_weights(harness.Run(self.folder / "never"), harness.Run(self.folder / "again"))

    # Under another layout

    def test_another_layout_of_a_synchronous_scheme_gives_the_same_bytes(self):
        layouts = {
            "another cut": {"pipeline.stages": 4},
            "one stage": {"pipeline.stages": 1},
            "another balance": {"pipeline.balance": "parameters"},
            "threads": {"pipeline.stages": 4, "pipeline.execution": "threads"},
            "one worker": {"pipeline.placement": [0, 0]},
        }
        schemes = {
            "model_parallel": {"scheme": {"name": "model_parallel"}},
            "gpipe": {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 2},
            "optimizers by part": {
                "scheme": {"name": "gpipe"},
                "optimizer": {"name": "adam", "lr": 0.002, "groups": [{"match": "conv?.weight", "name": "muon", "lr": 0.02}]},
            },
        }
        for scheme, changes in schemes.items():
            experiment = changed(
                CNN,
                {"pipeline": {"stages": 2, "balance": "layers"}}
                | changes
                | {"train.checkpoint": {"every": 4, "unit": "minibatch"}},
            )
            whole = self.train(experiment, "whole", "--overwrite")
            for title, layout in layouts.items():
                with self.subTest(scheme=scheme, layout=title):
                    out = f"{scheme}_{title}".replace(" ", "_")
                    run = self.killed_in_a_checkpoint(experiment, out, 1)
                    self.write(f"{out}.yaml", changed(experiment, layout))
                    done = self.resume(out)
                    self.assertIn("going on after mini-batch 4 of epoch 1", done.err)
                    self.assertEqual("resumed under another layout (pipeline." in done.err, True, done.err)
                    self.assert_same_result(whole, run)

    def test_another_execution_needs_no_remark(self):
        experiment = changed(CNN, {"scheme": {"name": "pipedream"}, "train.epochs": 3})
        whole = self.train(experiment, "whole")
        run = self.killed_in_a_checkpoint(experiment, "x", 1)
        done = self.resume("x", "--set", "pipeline.execution=threads")
        self.assertNotIn("layout", done.err)
        self.assert_same_result(whole, run)

    def test_another_number_of_replicas_or_of_stages_in_flight_loads(self):
        experiment = changed(
            CNN, {"pipeline": {"stages": 2, "replicas": 2}, "scheme": {"name": "interlocking"}, "train.epochs": 3}
        )
        for out, layout in {"more": (4, 3), "fewer": (3, 1)}.items():
            with self.subTest(out):
                run = self.killed_in_a_checkpoint(experiment, out, 1)
                stages, replicas = layout
                done = self.resume(
                    out, "--set", f"pipeline.stages={stages}", "--set", f"pipeline.replicas={replicas}"
                )
                self.assertIn(f"pipeline.stages 2 → {stages}, pipeline.replicas 2 → {replicas}", done.err)
                self.assertIn("auxiliary heads that follow another layer now", done.err)
                self.assertEqual(run.state(), "done")
                self.assertEqual(len(run.rows("steps.csv")), 18)

    def test_another_experiment_is_refused(self):
        for flag in ("optimizer.lr=0.5", "train.checkpoint.every=2"):
            with self.subTest(flag):
                self.killed_in_a_checkpoint(CNN | {"train": {"epochs": 3}}, "x", 1)
                done = self.resume("x", "--set", flag, code=EXPERIMENT)
                self.assert_errors(done, r"^x: .*another experiment.*--overwrite")
                (self.folder / "x").rename(self.folder / flag)

    def test_a_finished_run_is_not_passed_off_as_another_layout(self):
        run = self.train(CNN, "x")
        before = run.bytes("run.json")
        done = self.resume("x", "--set", "pipeline.stages=2", code=EXPERIMENT)
        self.assert_errors(done, r"^x: the run is done already, in another way \(pipeline\.stages 3 → 2\)")
        self.assertEqual(before, run.bytes("run.json"))

    # Damaged

    def test_a_damaged_or_missing_file_is_named(self):
        run = self.killed_in_a_checkpoint(changed(CNN, {"train.epochs": 3}), "x", 1)
        self.assertEqual(len(self.manifest(run)["files"]), 4)
        for name in (
            "000006/stage-1.safetensors",
            "000006/metrics.safetensors",
            "manifest.json",
        ):
            path = run.path / "checkpoint" / name
            whole = path.read_bytes()
            flipped = bytearray(whole)
            flipped[len(whole) * 2 // 3] ^= 4
            for content in (None, b"", whole[:-10], bytes(flipped)):
                with self.subTest(name=name, content=content and len(content)):
                    path.unlink() if content is None else path.write_bytes(content)
                    done = self.resume("x", "--quiet", code=DATA)
                    self.assert_errors(done, rf"^x/checkpoint/{name}: .*; give --overwrite to begin anew$")
                    path.write_bytes(whole)
        self.resume("x", "--quiet")


if __name__ == "__main__":
    harness.main()
