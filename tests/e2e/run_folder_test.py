# SPDX-License-Identifier: Apache-2.0
"""What a run leaves in its folder, when it may be used again, and that it says the same again."""

import json
import re

import harness
import tolerances
from harness import CNN, DATA, EXPERIMENT, MLP, changed

FILES = [
    ".pipewright",
    "checkpoint/000006/metrics.safetensors",
    "checkpoint/000006/stage-0.safetensors",
    "checkpoint/000006/stage-1.safetensors",
    "checkpoint/000006/stage-2.safetensors",
    "checkpoint/manifest.json",
    "checkpoint/steps-000000.csv",
    "epochs.csv",
    "experiment.yaml",
    "final.safetensors",
    "run.json",
    "steps.csv",
    "traffic.csv",
]
DIGITS_17 = re.compile(r"^-?\d(\.\d{0,16})?(e[-+]\d+)?$|^-?\d+(\.\d+)?$")


class RunFolder(harness.EndToEnd):
    def test_the_files_and_nothing_else(self):
        run = self.train(CNN, "out")
        self.assertEqual(run.names(), FILES)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out", "out.yaml"])

    def test_steps_are_counted_from_zero_in_every_epoch_with_17_digits(self):
        run = self.train(CNN, "out")
        text = run.bytes("steps.csv").decode()
        self.assertTrue(text.startswith("epoch,minibatch,loss\n") and text.endswith("\n"))
        rows = run.rows("steps.csv")
        self.assertEqual(
            [(int(row["epoch"]), int(row["minibatch"])) for row in rows],
            [(epoch, minibatch) for epoch in range(2) for minibatch in range(6)],
        )
        for row in rows:
            self.assertRegex(row["loss"], DIGITS_17)
            self.assertEqual(f"{float(row['loss']):.17g}", row["loss"])

    def test_auxiliary_losses_stand_in_later_columns(self):
        run = self.train(changed(CNN, {"scheme": {"name": "interlocking"}, "train.epochs": 1}), "out")
        self.assertEqual(list(run.rows("steps.csv")[0]), ["epoch", "minibatch", "loss", "loss_0", "loss_1"])

    def test_epochs_agree_with_steps(self):
        run = self.train(changed(CNN, {"train.evaluate_every": 2, "train.epochs": 3}), "out")
        epochs, steps = run.rows("epochs.csv"), run.rows("steps.csv")
        self.assertEqual(
            list(epochs[0]),
            ["epoch", "train_loss", "test_loss", "test_accuracy", "lr", "seconds", "samples_per_second"],
        )
        for epoch, row in enumerate(epochs):
            losses = [float(step["loss"]) for step in steps if int(step["epoch"]) == epoch]
            self.assertAlmostEqual(float(row["train_loss"]), sum(losses) / len(losses), delta=tolerances.mean_of(losses))
            self.assertEqual(float(row["lr"]), 0.02)
        self.assertEqual([row["test_accuracy"] == "" for row in epochs], [True, False, False])

    def test_what_is_not_asked_for_is_not_there(self):
        run = self.train(
            changed(
                MLP,
                {"output": {"steps": False, "weights": False, "trace": True}, "train.checkpoint.every": 0},
            ),
            "out",
        )
        self.assertEqual(run.names(), [".pipewright", "epochs.csv", "experiment.yaml", "run.json", "trace.json", "traffic.csv"])
        json.loads(run.bytes("trace.json"))

    def test_weights_stand_in_layer_order_whatever_the_cut(self):
        names = list(self.train(CNN, "out").tensors())
        layers = list(dict.fromkeys(name.split(".")[0] for name in names))
        self.assertEqual(layers, [f"conv{i}" for i in range(1, 8)] + ["fc"])
        whole = self.train(changed(CNN, {"pipeline.stages": 1}), "whole")
        self.assertEqual(list(whole.tensors()), names)

    def test_run_json_tells_what_ran(self):
        run = json.loads(self.train(MLP, "out").bytes("run.json"))
        self.assertEqual((run["state"], run["seed"], run["name"]), ("done", 1, "out"))
        for key in ("digest", "pipewright", "libtorch", "machine", "started", "finished", "wall_seconds"):
            self.assertIn(key, run)

    def test_the_resolved_experiment_runs_again_to_the_same_bytes(self):
        first = self.train(
            changed(
                CNN,
                {
                    "scheme": {"name": "spectrain"},
                    "pipeline.balance": "parameters",
                    "optimizer.weight_decay": 5e-4,
                    "lr_schedule": {"name": "poly", "power": 2},
                },
            ),
            "out",
        )
        for flags in ((), ("--set", "name=other")):
            self.pipewright("run", "out/experiment.yaml", "--quiet", "--out", "again", "--overwrite", *flags)
            again = harness.Run(self.folder / "again")
            self.assert_same_weights(first, again)
            self.assertEqual(first.bytes("steps.csv"), again.bytes("steps.csv"))
        self.pipewright("run", "out/experiment.yaml", "--quiet", "--out", "third")
        self.assertEqual(first.bytes("experiment.yaml"), (self.folder / "third/experiment.yaml").read_bytes())

    def test_paths_in_the_resolved_experiment_are_absolute(self):
        weights = self.train(changed(MLP, {"train.epochs": 0}), "init").path / "final.safetensors"
        self.write("sub/x.yaml", changed(MLP, {"model.weights": "../init/final.safetensors"}))
        self.pipewright("run", "sub/x.yaml", "--quiet", "--out", "out")
        self.assertIn(f"weights: {weights}\n", (self.folder / "out/experiment.yaml").read_text())
        self.pipewright("run", "out/experiment.yaml", "--quiet", "--out", "again")
        self.assert_same_weights(harness.Run(self.folder / "out"), harness.Run(self.folder / "again"))

    def test_the_folder_is_called_after_the_file(self):
        self.write("called.yaml", MLP)
        self.pipewright("run", "called.yaml", "--quiet")
        self.assertEqual(harness.Run(self.folder / "runs/called").state(), "done")

    def test_a_finished_folder_is_refused(self):
        run = self.train(MLP, "out")
        before = {name: run.bytes(name) for name in run.names()}
        done = self.pipewright("run", "out.yaml", "--out", "out", code=EXPERIMENT)
        self.assert_errors(done, r"^out: the folder holds a run already \(done\).*--resume.*--overwrite")
        self.assertEqual(before, {name: run.bytes(name) for name in run.names()})

    def test_resume_of_a_finished_run_does_nothing(self):
        run = self.train(MLP, "out")
        before = {name: (run.bytes(name), (run.path / name).stat().st_mtime_ns) for name in run.names()}
        self.pipewright("run", "out.yaml", "--out", "out", "--resume")
        self.assertEqual(
            before, {name: (run.bytes(name), (run.path / name).stat().st_mtime_ns) for name in run.names()}
        )

    def test_overwrite_begins_anew(self):
        first = self.train(changed(MLP, {"output.trace": True}), "out").bytes()
        again = self.train(MLP, "out", "--overwrite", "--set", "train.seed=2")
        self.assertFalse(again.bytes() == first)
        self.assertEqual(again.names(), [name for name in FILES if not name.startswith("checkpoint/")])

    def test_resume_of_another_experiment_is_refused(self):
        run = self.train(MLP, "out")
        weights = run.bytes()
        done = self.pipewright(
            "run", "out.yaml", "--out", "out", "--resume", "--set", "optimizer.lr=0.5", code=EXPERIMENT
        )
        self.assert_errors(done, r"^out: .*another experiment.*--overwrite")
        self.assertEqual(run.bytes(), weights)

    def test_a_folder_that_cannot_be_made(self):
        self.write("taken", "a file")
        self.write("x.yaml", MLP)
        done = self.pipewright("run", "x.yaml", "--quiet", "--out", "taken/out", code=harness.DATA)
        self.assert_errors(done, r"taken/out")

    def test_a_run_that_cannot_begin_leaves_everything_as_it_was(self):
        nowhere = ["--set", "dataset={name: tensors, file: nowhere.safetensors}"]
        run = self.train(MLP, "out")
        before = {name: run.bytes(name) for name in run.names() if name != ".pipewright"}
        self.pipewright("run", "out.yaml", "--out", "out", "--overwrite", *nowhere, code=DATA)
        self.assertEqual(before, {name: run.bytes(name) for name in run.names() if name != ".pipewright"})
        self.pipewright("run", "out.yaml", "--out", "new", *nowhere, code=DATA)
        self.assertFalse((self.folder / "new").exists())


if __name__ == "__main__":
    harness.main()
