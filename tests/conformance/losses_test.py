# SPDX-License-Identifier: Apache-2.0
"""Losses beside PyTorch's, in float64: the mean over tokens, and binary cross-entropy of labels, with their metrics."""

import csv
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import skips
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

PIPEWRIGHT = os.environ["PIPEWRIGHT_BINARY"]
sys.path.insert(0, os.path.join(os.environ["PIPEWRIGHT_SOURCE_DIR"], "tools"))
import import_torch  # noqa: E402
from importing.inputs import Input  # noqa: E402

BATCH, SAMPLES, RATE = 10, 37, 0.5
# Eight steps at a rate of 0.5, of sums of at most 300 products of numbers below 4, each of which rounds by 2^-53.
TOLERANCE = 8 * 300 * 4 * 2**-53


class Losses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-losses-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        torch.manual_seed(0)

    def run_of(self, module, sample, x, y, options):
        """The last row of epochs.csv and the weights of a run of two epochs on these samples, tested on the last 29."""
        save_file({p + k: v[at].clone() for p, at in (("train.", slice(None)), ("test.", slice(8, None))) for k, v in (("x", x), ("y", y))}, self.folder / "data.safetensors")
        if not (self.folder / "net").exists():
            import_torch.import_module(module, [sample], self.folder / "net")
        for each in module.modules():
            each.__dict__.pop("forward", None)
        (self.folder / "e.yaml").write_text(
            "dataset: {name: tensors, file: data.safetensors}\n"
            f"loader: {{batch_size: {BATCH}, shuffle: false, drop_last: false}}\n"
            "model: {name: graph, file: net, weights: net/weights.safetensors, depth: 1}\n"
            f"optimizer: {{name: sgd, lr: {RATE}}}\ntrain: {{epochs: 2, precision: float64}}\n{options}\n"
        )
        done = subprocess.run([PIPEWRIGHT, "run", "e.yaml", "--out", "out", "--overwrite"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.folder / "out" / "epochs.csv", newline="") as file:
            *_, row = csv.DictReader(file)
        return {key: float(value or "nan") for key, value in row.items()}, load_file(self.folder / "out" / "final.safetensors")

    def trained(self, module, loss, x, y):
        """PyTorch's two epochs."""
        module = module.double()
        module.load_state_dict({key: value.double() for key, value in load_file(self.folder / "net" / "weights.safetensors").items()})
        for _ in range(2):
            for some, wanted in zip(x.split(BATCH), y.split(BATCH)):
                module.zero_grad()
                loss(module(some), wanted).backward()
                with torch.no_grad():
                    for parameter in module.parameters():
                        parameter -= RATE * parameter.grad
        return module

    def near(self, module, weights):
        for key, value in module.state_dict().items():
            np.testing.assert_allclose(weights[key].numpy(), value.numpy(), rtol=0, atol=TOLERANCE, err_msg=key)

    def test_a_mean_over_tokens_is_pytorchs_however_the_mini_batch_is_cut(self):
        vocabulary, tokens = 11, 6
        make = lambda: nn.Sequential(nn.Embedding(vocabulary, 8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, vocabulary))  # noqa: E731
        net = make()
        x, y = (torch.randint(vocabulary, (SAMPLES, tokens)) for _ in "xy")
        for i in range(SAMPLES):
            y[i, 1 + i % tokens :] = -100  # samples with one target to six
        y[5] = -100
        theirs = None
        for smoothing in (0, 0.1):
            loss = lambda z, t: functional.cross_entropy(z.flatten(0, 1), t.flatten(), label_smoothing=smoothing)  # noqa: E731,B023
            theirs = None
            for cut in ("stages: 2", "stages: 2, microbatches: 3", "stages: 2, microbatches: 2, replicas: 3, execution: threads"):
                row, weights = self.run_of(
                    net,
                    Input((tokens,), torch.int64),
                    x,
                    y,
                    f"loss: {{name: cross_entropy, average: tokens, label_smoothing: {smoothing}}}\nmetrics: [perplexity]\npipeline: {{{cut}}}\n",
                )
                theirs = theirs or self.trained(make(), loss, x, y)
                self.near(theirs, weights)
                with torch.no_grad():
                    tested = loss(theirs(x[8:]), y[8:]).item()
                self.assertAlmostEqual(row["test_loss"], tested, delta=TOLERANCE)
                if smoothing == 0:
                    self.assertAlmostEqual(math.exp(row["test_loss"]), row["test_perplexity"], delta=20 * TOLERANCE)

    def of_labels(self, make, sample, x, y, output):
        """Trains with labels y; `output`: what of y the outputs are compared with."""
        net = make()
        row, weights = self.run_of(
            net, Input(sample, torch.float32), x, y, "loss: {name: binary_cross_entropy}\nmetrics: [matthews]\npipeline: {stages: 2, microbatches: 3}\n"
        )
        loss = lambda z, t: functional.binary_cross_entropy_with_logits(z, output(t, z))  # noqa: E731
        theirs = self.trained(make(), loss, x.double(), y)
        self.near(theirs, weights)
        with torch.no_grad():
            logits = theirs(x[8:].double())
            self.assertAlmostEqual(row["test_loss"], loss(logits, y[8:]).item(), delta=TOLERANCE)
        said, wanted = (logits.sigmoid() > 0.5).double().numpy().ravel(), output(y[8:], logits).numpy().ravel()
        self.assertAlmostEqual(row["test_accuracy"], np.mean(said == wanted), delta=1e-12)
        # The correlation of two vectors of zeros and ones is Matthews'.
        self.assertAlmostEqual(row["test_matthews"], np.corrcoef(said, wanted)[0, 1], delta=1e-12)

    def test_binary_cross_entropy_of_one_logit_a_sample(self):
        x = torch.randn(SAMPLES, 4)
        y = (x.sum(1) + torch.randn(SAMPLES) > 0).long()
        self.of_labels(
            lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)), (4,), x, y, lambda t, z: t.double()[:, None]
        )

    def test_binary_cross_entropy_of_several_labels_a_sample(self):
        x = torch.randn(SAMPLES, 4)
        y = (x[:, :3] + torch.randn(SAMPLES, 3) > 0).float()
        self.of_labels(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), (4,), x, y, lambda t, z: t.double())

    def test_binary_cross_entropy_of_every_pixel_of_a_map(self):
        x = torch.randn(SAMPLES, 1, 6, 6)
        y = (x + torch.randn(SAMPLES, 1, 6, 6) > 0).to(torch.uint8)
        self.of_labels(
            lambda: nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.Tanh(), nn.Conv2d(3, 1, 3, padding=1)), (1, 6, 6), x, y, lambda t, z: t.double()
        )


if __name__ == "__main__":
    skips.main()
