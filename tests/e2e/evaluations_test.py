# SPDX-License-Identifier: Apache-2.0
"""Evaluations inside a training: they change no bit of it, and are those of a training that ends there."""

import csv
import shutil

import harness
import skips
from executions_test import CASES
from harness import CNN, changed

STEPS, EVERY = 14, 5
WITHIN = {"train.epochs": 0, "train.steps": STEPS, "train.drain": "never"}
EVALUATED = WITHIN | {"train.evaluate": {"every": EVERY, "unit": "minibatch"}}
TIED = {
    "dataset": {"name": "synthetic", "train": 96, "test": 32},
    "model": {"name": "gpt", "vocabulary": 16, "tokens": 8, "width": 16, "heads": 2, "layers": 2, "tie": "same"},
}
MEASURED = ("test_loss", "test_accuracy")
# Schemes in which a training of n mini-batches is not the beginning of a longer one, and why.
OTHER_BEGINNINGS = {
    "pipedream_2bw": "its last update takes the mini-batches that are left",
}


def found(run):
    """What each evaluation has measured, by mini-batches."""
    return {int(row["minibatches"]): [row[name] for name in MEASURED] for row in run.rows("evaluations.csv")}


TRANSLATED = {
    "dataset": {"name": "translation", "root": "texts", "merges": 0, "words": "blanks"},
    "loader": {"batch_size": 4},
    "model": {"name": "gnmt8", "width": 8, "dropout": 0.0},
    "loss": {"name": "cross_entropy", "tokens": "sum"},
    "pipeline": {"stages": 2, "balance": "layers"},
    "train": {"epochs": 1, "evaluate": {"every": 2, "unit": "minibatch"}},
}


class Evaluations(harness.EndToEnd):
    def check(self, name, changes, executions=("serial", "threads")):
        experiment = changed(CNN, changes | WITHIN)
        plain = self.train(experiment, f"{name}-plain")
        before = None
        for execution in executions:
            run = self.train(changed(experiment, EVALUATED | {"pipeline.execution": execution}), f"{name}-{execution}")
            self.assert_same_weights(plain, run)
            self.assertEqual(plain.bytes("steps.csv"), run.bytes("steps.csv"))
            self.assertEqual(sorted(found(run)), [5, 10, 14])
            self.assertEqual(found(run), before or found(run), execution)
            before = found(run)
        if name in OTHER_BEGINNINGS:
            return
        for steps in sorted(before)[:-1]:
            short = self.train(changed(experiment, {"train.steps": steps}), f"{name}-{steps}")
            last = short.rows("epochs.csv")[-1]
            self.assertEqual(before[steps], [last[column] for column in MEASURED], steps)

    def test_count_no_tokens_of_translations_which_batches_pad(self):
        for language in ("de", "en"):
            for part, lines in (("train", ["a b c", "c a b"] * 4), ("test", ["a b"])):
                self.write(f"texts/{part}.{language}", "\n".join(lines) + "\n")
        run = self.train(TRANSLATED, "x")
        self.assertEqual([row["tokens"] for row in run.rows("evaluations.csv")], [""])
        tied = self.train(changed(CNN, TIED | EVALUATED), "tied")
        self.assertEqual([float(row["tokens"]) for row in tied.rows("evaluations.csv")],
                         [8 * float(row["samples"]) for row in tied.rows("evaluations.csv")])

    def test_change_no_bit_under_any_scheme(self):
        for name, changes in CASES.items():
            with self.subTest(name):
                self.check(name, changes)

    def test_meet_what_else_a_training_has(self):
        stale = {"scheme": {"name": "pipedream"}, "pipeline.stages": 3}
        cases = {
            "clip": stale | {"gradient_rules": [{"name": "clip", "norm": 0.5, "over": "stage"}]},
            "clip-model": {
                "scheme": {"name": "gpipe"},
                "pipeline.microbatches": 4,
                "gradient_rules": [{"name": "clip", "norm": 0.5, "over": "model"}],
            },
            "recompute": stale | {"pipeline.recompute": "always"},
            "offload": stale | {"pipeline.offload": "always"},
            "deferred": stale | {"pipeline.microbatches": 2, "pipeline.batch_norm": "deferred"},
            "replicas": stale | {"pipeline.replicas": 2},
            "late": stale | {"perturb": {"gradient_delay": 2}},
            "noise": stale | {"perturb": {"weight_noise": 0.1}},
            "bfloat16": stale | {"train.precision": "bfloat16"},
            "quantized": stale | {"pipeline.compression": {"name": "uniform", "bits": 8}},
            "probed": stale | {"probes": [{"name": "weight_gap", "every": 2}]},
            "adam": stale | {"optimizer": {"name": "adam", "lr": 0.002}},
            "tied": stale | TIED,
        }
        for name, changes in cases.items():
            with self.subTest(name):
                self.check(name, changes)

    @skips.needs("mpirun")
    def test_change_no_bit_between_processes(self):
        cases = {
            "pipedream": {"scheme": {"name": "pipedream"}},
            "replicas": {"scheme": {"name": "pipedream"}, "pipeline.stages": 2, "pipeline.replicas": 2},
            "interleaved": CASES["interleaved"],
            "tied": TIED | {"scheme": {"name": "pipedream"}},
        }
        for name, changes in cases.items():
            with self.subTest(name):
                self.check(name, changes, ("serial", "mpi"))

    def test_fill_the_rows_of_epochs_that_they_meet(self):
        experiment = changed(CNN, {"scheme": {"name": "pipedream"}, "train.epochs": 3, "train.drain": "never"})
        within = self.train(changed(experiment, {"train.evaluate": {"every": 1, "unit": "epoch"}}), "within")
        self.assertEqual(sorted(found(within)), [6, 12, 18])
        rows = [[row[name] for name in MEASURED] for row in within.rows("epochs.csv")]
        self.assertEqual(rows, list(found(within).values()))
        self.assert_same_weights(within, self.train(experiment, "end"))
        drained = changed(experiment, {"train.drain": "epoch"})
        again = self.train(changed(drained, {"train.evaluate": {"every": 1}}), "drained")
        old = self.train(drained, "old")
        self.assertEqual(rows != [], True)
        self.assertEqual(
            [row["test_loss"] for row in again.rows("epochs.csv")], [row["test_loss"] for row in old.rows("epochs.csv")]
        )
        self.assert_same_weights(again, old)

    def test_go_on_after_a_checkpoint(self):
        experiment = changed(
            CNN,
            EVALUATED
            | {"scheme": {"name": "pipedream"}, "train.checkpoint": {"every": 4, "unit": "minibatch"}},
        )
        whole = self.train(experiment, "whole")
        self.pipewright("run", "whole/experiment.yaml", "--out", "longer", "--set", "train.steps=16")
        self.pipewright("run", "whole/experiment.yaml", "--out", "whole", "--resume", "--set", "train.steps=16")
        again, longer = harness.Run(self.folder / "whole"), harness.Run(self.folder / "longer")
        self.assert_same_weights(again, longer)
        self.assertEqual(found(again), found(longer))
        self.assertEqual(sorted(found(longer)), [5, 10, 15, 16])
        self.assertTrue(whole.path)

    def test_are_in_exports_and_in_kept_rows(self):
        experiment = changed(CNN, EVALUATED | {"scheme": {"name": "pipedream"}, "output.steps": False})
        self.write("e.yaml", experiment | {"table": {"metric": "steps_to", "loss": 1000}})
        self.pipewright("sweep", "e.yaml", "--out", "sw")
        (folder,) = (path.parent for path in (self.folder / "sw").glob("*/evaluations.csv"))
        run = harness.Run(folder)
        self.pipewright("export", "sw", "--output", "long.csv")
        with open(self.folder / "long.csv", newline="") as long:
            rows = [row for row in csv.DictReader(long) if row["metric"].startswith("evaluation.")]
        for name in MEASURED:
            values = {(r["epoch"], r["step"]): r["value"] for r in rows if r["metric"] == f"evaluation.{name}"}
            self.assertEqual(values, {(r["epoch"], r["minibatch"]): r[name] for r in run.rows("evaluations.csv")})
        whole = self.pipewright("table", "e.yaml", "--out", "sw", "--keep", "rows.csv").out
        over_hours = ("plot", "e.yaml", "--out", "sw", "--set", "plot={x: minibatch, y: test_loss}", "--hardware", "dgx1-v100")
        self.pipewright(*over_hours, "--output", "of-folders")
        shutil.rmtree(self.folder / "sw")
        self.pipewright(*over_hours, "--output", "of-rows", "--results", "rows.csv")
        picture = "test_loss-hours-dgx1-v100.svg"
        self.assertEqual((self.folder / "of-rows" / picture).read_text(), (self.folder / "of-folders" / picture).read_text())
        self.assertIn(" 5.000 (1) ", whole)
        self.assertEqual(self.pipewright("table", "e.yaml", "--out", "sw", "--results", "rows.csv").out, whole)

    def test_are_refused_where_they_would_be_others(self):
        stale = changed(CNN, EVALUATED | {"scheme": {"name": "pipedream"}})
        refused = {
            "power_iteration": {"pipeline.compression": {"name": "power_iteration"}},
            "stale_batch_norm": {"perturb": {"stale_batch_norm": 2}},
            "per_pass": {"pipeline.recompute": "always", "pipeline.batch_norm": "per_pass"},
        }
        for words, changes in refused.items():
            with self.subTest(words):
                self.write("x.yaml", changed(stale, changes))
                self.assertIn(words, self.pipewright("check", "x.yaml", code=2).err)
        self.write("x.yaml", changed(stale, {"train.evaluate_every": 2}))
        self.assertIn("expected one of the two", self.pipewright("check", "x.yaml", code=2).err)


if __name__ == "__main__":
    harness.main()
