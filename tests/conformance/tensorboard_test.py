# SPDX-License-Identifier: Apache-2.0
"""Event files as TensorBoard's own reader (EventAccumulator) has them, beside the CSV files of the runs: every value, nothing else.

TensorBoard's requirements besides NumPy and protobuf are those of its server, which is not started here.
"""

import calendar
import csv
import json
import os
import struct
import sys
import time
from pathlib import Path

ROOT = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).resolve()
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/e2e")]
import harness
import skips
from harness import CNN, changed
from tensorboard.backend.event_processing import event_accumulator

PROBES = [{"name": "norms", "every": 4}, {"name": "weight_gap", "every": 3}]
EXPERIMENT = changed(
    CNN,
    {
        "scheme": {"name": "interlocking"},  # which has auxiliary losses
        "train.epochs": 3,
        "train.evaluate_every": 2,
        "metrics": ["top5"],
    },
)


def float32(text):
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def rows(path):
    with open(path, newline="") as table:
        return list(csv.DictReader(table))


def expected(run, minibatches):
    """{tag: [(step, value)]} of the CSV files of a run, written down here once more."""
    curves = {}

    def add(tag, step, text):
        if text != "":
            curves.setdefault(tag, []).append((step, float32(text)))

    for row in rows(run / "epochs.csv"):
        for column, text in row.items():
            kind, _, metric = column.partition("_")
            if column != "epoch":
                add(f"{metric}/{kind}" if kind in ("train", "test") else column, int(row["epoch"]), text)
    for row in rows(run / "steps.csv"):
        for column, text in row.items():
            if column.startswith("loss"):
                name = column.replace("loss_", "stage_") if column != "loss" else "train"
                add(f"loss_per_step/{name}", int(row["epoch"]) * minibatches + int(row["minibatch"]), text)
    if (run / "evaluations.csv").exists():
        for row in rows(run / "evaluations.csv"):
            for column, text in row.items():
                if column.startswith("test_"):
                    add(f"{column.removeprefix('test_')}_per_step/test", int(row["minibatches"]) - 1, text)
    if (run / "probes.csv").exists():
        for row in rows(run / "probes.csv"):
            stage = f"/stage_{row['stage']}" if row["stage"] else ""
            step = int(row["epoch"]) * minibatches + int(row["minibatch"])
            add(f"probe.{row['probe']}/{row['quantity']}{stage}", step, row["value"])
    return curves


def read(folder):
    """The same of an event file, and the times of all events."""
    accumulator = event_accumulator.EventAccumulator(str(folder), size_guidance={event_accumulator.SCALARS: 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    assert not any(tags[kind] for kind in tags if kind != "scalars"), tags
    events = {tag: accumulator.Scalars(tag) for tag in tags["scalars"]}
    times = [event.wall_time for curve in events.values() for event in curve]
    return {tag: [(event.step, event.value) for event in curve] for tag, curve in events.items()}, times


class TensorBoard(harness.EndToEnd):
    def check(self, folder, run, minibatches=6):
        curves, times = read(folder)
        self.assertEqual(expected(run, minibatches), curves)
        return times

    def test_an_export_has_every_value_of_a_sweep(self):
        self.write("s.yaml", changed(EXPERIMENT, {"probes": PROBES, "sweep": {"grid": {"train.seed": [1, 2]}}}))
        self.pipewright("sweep", "s.yaml", "--out", "sw")
        self.pipewright("export", "sw", "--format", "tensorboard", "--output", "logs")
        runs = [path.parent for path in (self.folder / "sw").glob("*/run.json")]
        self.assertEqual(len(runs), 2)
        self.assertEqual({path.name for path in (self.folder / "logs").iterdir()}, {run.name for run in runs})
        for run in runs:
            times = self.check(self.folder / "logs" / run.name, run)
            started = json.loads((run / "run.json").read_text())["started"]
            begin = calendar.timegm(time.strptime(started, "%Y-%m-%dT%H:%M:%SZ"))
            seconds = sum(float(row["seconds"]) for row in rows(run / "epochs.csv"))
            self.assertLess(begin, min(times))
            self.assertAlmostEqual(begin + seconds, max(times), delta=1e-5)
        curves, _ = read(self.folder / "logs" / runs[0].name)
        self.assertEqual(len(curves["loss_per_step/train"]), 18)
        self.assertEqual(len(curves["accuracy/test"]), 2)
        self.assertIn("loss_per_step/stage_0", curves)
        self.assertIn("probe.norms/gradient/stage_0", curves)

    def test_a_run_writes_the_same_curves_while_it_goes_on(self):
        shown = changed(EXPERIMENT, {"output.tensorboard": True, "probes": PROBES})
        for execution in ("serial", "threads"):
            run = self.train(shown, execution, "--set", f"pipeline.execution={execution}")
            times = self.check(run.path, run.path)
            self.assertLess(max(times) - min(times), 600)
        within = {"train.drain": "never", "train.evaluate": {"every": 4, "unit": "minibatch"}}
        evaluated = self.train(changed(shown, within | {"train.evaluate_every": 1}), "evaluated")
        self.check(evaluated.path, evaluated.path)
        self.pipewright("export", "evaluated", "--format", "tensorboard", "--output", "logs")
        self.check(self.folder / "logs/evaluated", evaluated.path)
        self.assertEqual([step for step, _ in read(evaluated.path)[0]["loss_per_step/test"]], [3, 7, 11, 15, 17])
        replicas = changed(shown, {"scheme": {"name": "gpipe"}, "pipeline": {"stages": 2, "replicas": 2}, "probes": []})
        run = self.train(replicas, "replicas")
        self.check(run.path, run.path)

    def test_a_resumed_run_has_each_step_once(self):
        """Killed between checkpoints, its file has epochs and mini-batches that its checkpoint has not."""
        long = changed(CNN, {"train.epochs": 400, "output.tensorboard": True, "train.checkpoint.every": 40})
        self.write("x.yaml", long)
        kept = self.killed_past_a_checkpoint("x.yaml", "events.out.tfevents.pipewright")
        before, _ = read(self.folder / "out")
        self.assertGreater(len(before["loss_per_step/train"]), kept)
        self.pipewright("run", "x.yaml", "--out", "out", "--resume", "--set", f"train.epochs={kept // 6 + 2}")
        self.check(self.folder / "out", self.folder / "out")
        self.assertEqual(len(read(self.folder / "out")[0]["loss_per_step/train"]), kept + 12)


if __name__ == "__main__":
    skips.main()
