# SPDX-License-Identifier: Apache-2.0
"""The model `decoder`, trained ten steps by the program and by PyTorch, against transformers' Llama and GPT-2 and a plain
module: cut and uncut, in slices, with split backwards, recomputed."""

import csv
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import decoder_modules
import skips
import torch
from decoder_modules import SMALL
from safetensors.torch import load_file, save_file

PIPEWRIGHT = os.environ["PIPEWRIGHT_BINARY"]
STEPS, BATCH, RATE, MOMENTUM = 10, 4, 0.02, 0.9
# A step is a chain of some 30 sums, there and back, of at most 160 terms; ten of them, and an update of three roundings
# each: √(2·30·160) + 30 roundings of 2⁻⁵³, and attention and norms enlarge each less than tenfold here: 1.4e-13.
LIMIT = 1e-12


def data(samples):
    torch.manual_seed(1)
    return (torch.randint(SMALL["vocabulary"], (samples, SMALL["tokens"])) for _ in "xy")


class Sgd:
    ours = {"optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM}}

    @staticmethod
    def theirs(named):
        return [torch.optim.SGD(named.values(), lr=RATE, momentum=MOMENTUM)]

    @staticmethod
    def factor(_):
        return 1


class OfTheContest:
    """Muon for the matrices of blocks, AdamW with a rate each for the embedding, the output and vectors. All rates fall after 30 %
    of the steps."""

    ours = {
        "optimizer": {
            "name": "adamw",
            "lr": 0.015,
            "betas": [0.8, 0.95],
            "eps": 1e-10,
            "weight_decay": 0.001,
            "groups": [
                {"match": "layers.*_proj.weight", "name": "muon", "lr": 0.025, "momentum": 0.95, "weight_decay": 0.05},
                {"match": "embeddings.tokens.weight", "lr": 0.7},
                {"match": "lm_head.weight", "lr": 0.004},
            ],
        },
        "lr_schedule": {"name": "constant_then_linear", "per": "step", "constant": 0.3},
    }

    @staticmethod
    def theirs(named):
        named = dict(named)
        matrices = [named.pop(name) for name in list(named) if name.startswith("layers.") and name.endswith("_proj.weight")]
        rest = [
            {"params": [named.pop("embeddings.tokens.weight")], "lr": 0.7},
            {"params": [named.pop("lm_head.weight")], "lr": 0.004},
            {"params": list(named.values()), "lr": 0.015},
        ]
        return [
            torch.optim.Muon(matrices, lr=0.025, momentum=0.95, nesterov=True, weight_decay=0.05),
            torch.optim.AdamW(rest, betas=(0.8, 0.95), eps=1e-10, weight_decay=0.001),
        ]

    @staticmethod
    def factor(step):
        return min(1, (1 - step / STEPS) / 0.7)


def train(module, x, y, by):
    """Ten steps in PyTorch: the losses; module has the weights."""
    optimizers = by.theirs(module.named())
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    rates = [group["lr"] for group in groups]
    losses = []
    for step, (x_i, y_i) in enumerate(zip(x.split(BATCH), y.split(BATCH))):
        for group, rate in zip(groups, rates):
            group["lr"] = rate * by.factor(step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x_i).flatten(0, 1), y_i.flatten())
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses


def difference(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1)).item()


class Decoder(unittest.TestCase):
    def trained(self, label, module, **changes):
        """(weights, losses) of a training by the program that begins with start.safetensors."""
        made = {
            "dataset": {"name": "tensors", "file": "data.safetensors"},
            "loader": {"batch_size": BATCH, "shuffle": False},
            "model": {"name": "decoder", "weights": "start.safetensors"} | SMALL | module.options,
            "scheme": {"name": "model_parallel"},
            "train": {"epochs": 1, "precision": "float64", "checkpoint": {"every": 0}},
        } | changes
        (self.folder / f"{label}.yaml").write_text(json.dumps(made))
        command = [PIPEWRIGHT, "run", f"{label}.yaml", "--out", label]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.folder / label / "steps.csv", newline="") as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        return load_file(self.folder / label / "final.safetensors"), losses

    def from_transformers(self, module):
        """The model that begins with weights under transformers' names, where there are such."""
        model = {"name": "decoder", "weights": "start.safetensors"} | SMALL | module.options
        if not isinstance(module, decoder_modules.Llama):
            return model
        save_file(module.theirs.state_dict(), self.folder / "theirs.safetensors")
        return model | {"weights": "theirs.safetensors", "weights_format": "huggingface"}

    def compare(self, label, ours, theirs):
        self.assertEqual(sorted(ours[0]), sorted(theirs[0]))
        far = max(difference(each, theirs[0][name]) for name, each in ours[0].items())
        losses = max(abs(a - b) for a, b in zip(ours[1], theirs[1], strict=True))
        print(f"{label:40} weights {far:.1e}, losses {losses:.1e}", flush=True)
        self.assertLessEqual(max(far, losses), LIMIT, label)

    def check(self, make, by=Sgd):
        with tempfile.TemporaryDirectory(prefix="pipewright-decoder-") as folder:
            self.folder = Path(folder)
            torch.manual_seed(3)
            module = decoder_modules.randomised(make())
            start = {name: each.detach().clone().contiguous() for name, each in module.named().items()}
            save_file(start, self.folder / "start.safetensors")
            beginning = self.from_transformers(module)
            x, y = data(BATCH * STEPS)
            save_file({"train.x": x, "train.y": y, "test.x": x[:1].clone(), "test.y": y[:1].clone()}, self.folder / "data.safetensors")
            losses = train(module, x, y, by)
            theirs = ({name: each.detach() for name, each in module.named().items()}, losses)
            moved = max(difference(theirs[0][name], each) for name, each in start.items())
            self.assertGreater(moved, 1e-3, "nothing was learned")
            cut = {"stages": 4, "balance": "layers", "microbatches": 2}
            for label, changes in {
                "uncut": {"model": beginning},
                "cut": {"pipeline": cut, "scheme": {"name": "gpipe"}},
                "recomputed": {"pipeline": cut | {"recompute": "always"}, "scheme": {"name": "one_f_one_b"}},
                "in slices": {"pipeline": cut | {"slices": 3}, "scheme": {"name": "seq1f1b"}},
                "with split backwards": {"pipeline": cut, "scheme": {"name": "zb_h1"}},
            }.items():
                self.compare(f"{make.__name__}, {label}", self.trained(label, module, **by.ours, **changes), theirs)

    def test_llama(self):
        self.check(decoder_modules.Llama)

    def test_gpt2(self):
        self.check(decoder_modules.Gpt2)

    def test_contest(self):
        self.check(decoder_modules.Contest)

    def test_contest_with_its_optimizers(self):
        """PyTorch's Muon in float64: where it would round to bfloat16, it copies."""
        rounding, torch.Tensor.bfloat16 = torch.Tensor.bfloat16, lambda tensor: tensor.clone()
        self.addCleanup(setattr, torch.Tensor, "bfloat16", rounding)
        self.check(decoder_modules.Contest, OfTheContest)


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
