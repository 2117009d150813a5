# SPDX-License-Identifier: Apache-2.0
"""What the modules of this folder share: trainings as points of one sweep, which start in milliseconds, and comparisons
of what they leave. It stands on the base of the end-to-end tests."""

import csv
import io
import json
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import harness
import safetensors
import tolerances
from harness import changed

# Columns that depend on how fast the machine is.
MEASURED = {
    "seconds",
    "samples_per_second",
    "encode_seconds",
    "decode_seconds",
    "train_seconds",
    "required_bytes_per_second",
    "required_mib_per_s",
    "codec_share",
}

# Four smooth layers without batch norm or dropout, in float64. A mini-batch of 24 has 2, 3 or 4 equal parts.
MLP = {
    "dataset": {"name": "digits"},
    "loader": {"batch_size": 24, "limit_train": 96, "limit_test": 32},
    "model": {"name": "mlp", "widths": [64, 12, 12, 12, 10], "activation": "tanh"},
    "pipeline": {"stages": 3, "balance": [1, 1, 2]},
    "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.5},
    "metrics": ["top5", "perplexity"],
    "train": {"epochs": 2, "precision": "float64", "checkpoint": {"every": 0}},
    "output": {"trace": False},
}
# For the six workers of MLP in two replicas.
HARDWARE = {
    "name": "six",
    "devices": {"count": 6, "teraflops": 1, "memory_gb_per_s": 100},
    "within": {"latency_us": 3, "bandwidth_gb_per_s": 2},
    "links": [{"from": 0, "to": 1, "latency_us": 1, "bandwidth_gb_per_s": 0.5}],
}
# Of one training of MLP by any two orders of its sums: a sum has the 64 inputs or the samples of an epoch as its terms,
# at most 96; forwards, backwards and updates are at most 10 sums in turn; 8 updates follow each other. One of the steps
# enlarges what is off already by 1 + lr/(1 − momentum)·λ, with a sharpness λ below 1 in all of these trainings (the
# probe says 0.5 at most), 1.1^8 = 2.2 in all of them.
REORDERED = 2 * 10 * 8 * 2.2 * tolerances.rounded(96)


class Invariance(harness.EndToEnd):
    def sweep(self, base, points, name="sweep", code=harness.FINE, flags=()):
        """Trains the points, mappings of dotted keys by label, in the folder `name`. Returns a Run by label."""
        labelled = [{"label": label} | changes for label, changes in points.items()]
        self.write(f"{name}.yaml", base | {"sweep": {"points": labelled}})
        self.pipewright("sweep", f"{name}.yaml", "--out", name, "--jobs", 1, *flags, code=code)
        return self.runs(name)

    def runs(self, name):
        runs = {}
        for file in (self.folder / name).glob("*/point.json"):
            runs[json.loads(file.read_text())["label"]] = harness.Run(file.parent)
        return runs

    def simulated(self, base, points, *flags, name="planned"):
        """Simulates the points. Returns their figures by label."""
        labelled = [{"label": label} | changes for label, changes in points.items()]
        self.write(f"{name}.yaml", base | {"sweep": {"points": labelled}})
        self.pipewright("simulate", f"{name}.yaml", "--sweep", "--json", f"{name}.json", *flags)
        found = json.loads((self.folder / f"{name}.json").read_text())["points"]
        return {point["candidate"]: point for point in found}

    def assert_near(self, a, b, relative, what):
        self.assertLessEqual(abs(a - b), relative * max(abs(a), abs(b)), f"{what}: {a!r} and {b!r}")

    def assert_same_numbers(self, a, b, relative, what):
        """Compares tensors, losses, metrics and probes of two runs, each as a part of its size."""
        weights = a.tensors()
        self.assertEqual(list(weights), list(b.tensors()), what)
        for name, tensor in b.tensors().items():
            ours, theirs = numbers(weights[name]), numbers(tensor)
            apart = sum((x - y) ** 2 for x, y in zip(ours, theirs, strict=True)) ** 0.5
            self.assertLessEqual(apart, relative * sum(y * y for y in theirs) ** 0.5, f"{what}: {name}")
        for file in ("steps.csv", "epochs.csv", "probes.csv"):
            self.assert_same_table(a, b, file, relative, what)

    def assert_same_table(self, a, b, file, relative, what):
        ours, theirs = rows_of(a, file), rows_of(b, file)
        self.assertEqual(len(ours), len(theirs), f"{what}: rows of {file}")
        for left, right in zip(ours, theirs):
            self.assertEqual(list(left), list(right), f"{what}: columns of {file}")
            for column in set(left) - MEASURED:
                place = f"{what}: {file}, {column} of {left}"
                try:
                    x, y = float(left[column]), float(right[column])
                except ValueError:
                    self.assertEqual(left[column], right[column], place)
                else:
                    # An angle is known by its cosine, which near 1 loses nothing: errors count against 1.
                    least = 1.0 if left.get("quantity") == "cosine" else 0.0
                    self.assertLessEqual(abs(x - y), relative * max(abs(x), abs(y), least), place)

    def assert_same_bits(self, a, b, what):
        self.assertEqual(a.bytes(), b.bytes(), f"{what}: weights")
        for file in ("steps.csv", "epochs.csv", "probes.csv"):
            self.assertEqual(unmeasured(a, file), unmeasured(b, file), f"{what}: {file}")


def rows_of(run, file):
    return run.rows(file) if (run.path / file).exists() else []


def unmeasured(run, file):
    return [{key: row[key] for key in row if key not in MEASURED} for row in rows_of(run, file)]


def numbers(tensor):
    """The values of a tensor of float64."""
    assert tensor.dtype == "F64", tensor.dtype
    return struct.unpack(f"<{len(tensor.data) // 8}d", tensor.data)


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


main = harness.main
