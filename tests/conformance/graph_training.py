# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module trained by the program and by PyTorch, for the tests of the model `graph`.

A training takes four steps of SGD with momentum, so that weights and batch-norm statistics after it contain every
gradient of the steps. There are few of them, at a low rate, because batch norms over few values enlarge what one step
rounds by up to a hundred in each further step. Under PipeDream a checkpoint after the third step empties the pipeline;
until then each of four stages but the last has read stale weights.
"""

import contextlib
import csv
import importlib.util
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import skips
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

PIPEWRIGHT = os.environ["PIPEWRIGHT_BINARY"]
SOURCE = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"])
HERE = Path(__file__).resolve().parent
STEPS, DRAINED, RATE, MOMENTUM, STAGES = 4, 3, 0.001, 0.9, 4
FAR = 1e-8  # what dropping other elements changes at least; branches of ConvNeXt begin with the factor 10^-6

sys.path.insert(0, str(SOURCE / "tools"))
import import_torch  # noqa: E402
from importing.inputs import Input  # noqa: E402


@dataclass
class Case:
    """A module, and what it is given."""

    make: Callable  # the module, without anything that draws
    shape: tuple  # of a sample
    vocabulary: int = 0  # of tokens
    each: bool = False  # whether each token has a target
    depth: int = 2
    batch: int = 4
    classes: int = 10
    precision: str = "float64"
    inputs: dict | None = None  # of a forward of several tensors: name → (samples → tensor); `shape` is then of no use
    dropping: Callable | None = None  # the module as its authors made it, with what draws
    left_out: str = "no name"  # how names begin that only other outputs need

    def module(self, make=None):
        torch.manual_seed(3)
        return (make or self.make)()

    @property
    def dtype(self):
        return getattr(torch, self.precision)

    def data(self, samples):
        torch.manual_seed(1)
        shape = (samples, *self.shape)
        if self.inputs:
            x = {name: make(samples) for name, make in self.inputs.items()}
            x = {name: each.to(self.dtype) if each.is_floating_point() else each for name, each in x.items()}
        else:
            x = torch.randint(self.vocabulary, shape) if self.vocabulary else torch.randn(shape, dtype=self.dtype)
        y = torch.randint(self.classes, shape if self.each else shape[:1])
        return x, y

    def described(self):
        """The inputs as the importer takes them."""
        if self.inputs:
            given = self.data(1)[0].items()
            return [Input(tuple(each.shape[1:]), torch.float32 if each.is_floating_point() else each.dtype, name) for name, each in given]
        return [Input(self.shape, torch.int64 if self.vocabulary else torch.float32)]


def rows(x, begin, end):
    """Those samples of one input, or of several by name."""
    return {name: each[begin:end].clone() for name, each in x.items()} if isinstance(x, dict) else x[begin:end].clone()


def named(x):
    """Inputs by the names that the data set `tensors` wants."""
    return x if isinstance(x, dict) else {"x": x}


def called(x):
    """(positional, by name): how a module is called with one input, or with several."""
    return ((), x) if isinstance(x, dict) else ((x,), {})


def outputs(module, x):
    given, by_name = called(x)
    return logits(module(*given, **by_name))


def logits(returned):
    return returned if isinstance(returned, torch.Tensor) else returned.logits


def loss_of(output, y):
    return torch.nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())


def state(module):
    """Parameters and batch-norm statistics, each once."""
    named = dict(module.named_parameters())
    return named | {name: buffer for name, buffer in module.named_buffers() if "running_" in name}


def train(case, module, x, y, stage_of=None):
    """Trains the module in PyTorch. With `stage_of`, stage by name of a parameter, as PipeDream does: mini-batch i since
    the pipeline was empty reads at stage s of S the weights after max(0, i − (S − 1 − s)) updates since then, in its
    backward, too, and its gradient changes the newest. Returns the losses.
    """
    module.to(case.dtype).train()
    parameters = {name: each for name, each in module.named_parameters() if not name.startswith(case.left_out)}
    optimizer = torch.optim.SGD(parameters.values(), lr=RATE, momentum=MOMENTUM)
    delay = {name: STAGES - 1 - stage_of[name] if stage_of else 0 for name in parameters}
    versions, losses = [], []
    for step, y_i in enumerate(y.split(case.batch)):
        given, by_name = called(rows(x, step * case.batch, step * case.batch + len(y_i)))
        if step == DRAINED:
            versions.clear()
        i = len(versions)
        versions.append({name: each.detach().clone() for name, each in parameters.items()})
        read = {name: versions[max(0, i - delay[name])][name].clone().requires_grad_() for name in parameters}
        loss = loss_of(logits(torch.func.functional_call(module, read, given, by_name)), y_i)
        for name, gradient in zip(read, torch.autograd.grad(loss, list(read.values()))):
            parameters[name].grad = gradient
        optimizer.step()
        losses.append(loss.item())
    return losses


def difference(ours, theirs):
    """The largest, as a part of the largest number or of 1."""
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1)).item()


def roundings(module, elements, steps):
    """How many rounded operations apart two results are, where kernels add the same terms in another order.

    A sum of n terms moves by about √n roundings. A chain of L layers, there and back, has 2·L such sums, whose errors add
    up like independent ones: √(2·L·n). n is the largest number of terms: of a layer's inputs, or of the samples and places
    over which a weight's gradient is added up, which are fewer than the `elements` of a batch. Each step's update rounds
    three more times, here as there.
    """
    weights = [each for each in module.parameters() if each.dim() > 1]
    terms = max([elements, *(each.numel() // each.shape[0] for each in weights)])
    return math.sqrt(2 * len(weights) * terms) + 2 * 3 * steps


def nudge(module, dtype=None):
    """Moves each parameter by one unit in its last place or two, up or down; in the last place of `dtype`, if given."""
    torch.manual_seed(7)
    with torch.no_grad():
        for each in module.parameters():
            each.mul_(1 + torch.finfo(dtype or each.dtype).eps * (2.0 * torch.randint_like(each, 2) - 1))


def tolerance(case, x, y, theirs):
    """How far two right trainings may be apart: what PyTorch's own result changes by when each parameter begins one unit
    in its last place away, which is a rounding, times the number of roundings. Batch norms over few values enlarge each.
    """
    module = case.module().to(case.dtype)
    count = roundings(module, max(each[: case.batch].numel() for each in named(x).values()), STEPS)
    nudge(module)
    train(case, module, x, y)
    moved = state(module)
    response = max(difference(moved[name], theirs[name]) for name in moved)
    return count * max(response, torch.finfo(case.dtype).eps)


class GraphTraining(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-graph-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def do(self, *command, code=0):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def import_case(self, case, make=None):
        """Imports the module into net/. Returns what the importer says."""
        return import_torch.import_module(case.module(make), case.described(), self.folder / "net")

    def write_data(self, x, y, tests=0):
        tests = tests or len(y)
        train, test = named(x) | {"y": y}, named(rows(x, 0, tests)) | {"y": y[:tests].clone()}
        tensors = {f"train.{name}": each for name, each in train.items()} | {f"test.{name}": each for name, each in test.items()}
        save_file(tensors, self.folder / "data.safetensors")

    def experiment(self, case, **changes):
        made = {
            "dataset": {"name": "tensors", "file": "data.safetensors"},
            "loader": {"batch_size": case.batch, "shuffle": False},
            "model": {"name": "graph", "file": "net", "weights": "net/weights.safetensors", "depth": case.depth},
            "scheme": {"name": "model_parallel"},
            "optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM},
            "train": {"epochs": 1, "precision": case.precision, "checkpoint": {"every": 0}},
        }
        for section, options in changes.items():
            made[section] = made.get(section, {}) | options
        return made

    def trained(self, name, case, code=0, **changes):
        """final.safetensors of a training with sections changed; its output if it must fail."""
        (self.folder / f"{name}.yaml").write_text(json.dumps(self.experiment(case, **changes)))
        output = self.do(PIPEWRIGHT, "run", f"{name}.yaml", "--out", name, code=code)
        return output if code else load_file(self.folder / name / "final.safetensors")

    def column(self, run, table, name):
        with open(self.folder / run / table, newline="") as file:
            return [float(row[name]) for row in csv.DictReader(file)]

    def assert_close(self, limit, ours, theirs, label):
        """Of two mappings from names to tensors, those of ours."""
        self.assertEqual(set(ours) - set(theirs), set())
        far = {name: difference(ours[name], theirs[name]) for name in ours}
        worst = max(far, key=far.get)
        print(f"{label:40} {far[worst]:.1e} of {limit:.1e} {worst if far[worst] else ''}", flush=True)
        self.assertLessEqual(far[worst], limit, label)

    def same(self, ours, others):
        """The same to the bit."""
        self.assertEqual(sorted(ours), sorted(others))
        for name, tensor in ours.items():
            self.assertTrue(torch.equal(tensor, others[name]), name)

    def same_in_every_execution(self, case, cut):
        """Trains under two schemes in each execution, with the same bits."""
        for scheme, more in (("gpipe", {"microbatches": 2}), ("pipedream", {})):
            serial = self.trained(f"{scheme} serial", case, pipeline=cut | more, scheme={"name": scheme})
            for execution in skips.with_mpi(["threads"], self.id().partition(".")[2]):
                pipeline = cut | more | {"execution": execution}
                self.same(self.trained(f"{scheme} {execution}", case, pipeline=pipeline, scheme={"name": scheme}), serial)

    def stages(self, run):
        """The stage of each parameter, from the run's checkpoint."""
        found = {}
        for path in (self.folder / run / "checkpoint").glob("*/stage-*.safetensors"):
            with safe_open(path, framework="pt") as file:
                found |= {name: int(path.stem.split("-")[1]) for name in file.keys()}
        return found

    def assert_trained_like_pytorch(self, label, case):
        """Uncut, cut, cut and recomputed, and cut under PipeDream."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(case)
        x, y = case.data(case.batch * STEPS)
        self.write_data(x, y, case.batch)
        module = case.module()
        losses = train(case, module, x, y)
        theirs = state(module)
        limit = tolerance(case, x, y, theirs)
        cut = {"stages": STAGES, "balance": "layers"}
        uncut = self.trained("uncut", case, pipeline={"stages": 1})
        self.assertEqual({name for name in theirs if name not in uncut and not name.startswith(case.left_out)}, set())
        self.assert_close(limit, uncut, theirs, f"{label}, uncut")
        self.assert_outputs(label, limit, "uncut", module, losses, rows(x, 0, case.batch), y[: case.batch])
        # What crosses is contiguous, which may choose other kernels than an uncut module's permuted tensors do.
        in_stages = self.trained("cut", case, pipeline=cut)
        self.assert_close(limit, in_stages, uncut, f"{label}, cut and uncut")
        # So may a forward that records no graph; nn.MultiheadAttention's is one.
        again = self.trained("again", case, pipeline=cut | {"recompute": "always"}, scheme={"name": "gpipe"})
        self.assert_close(limit, again, in_stages, f"{label}, recomputed")
        drained = {"checkpoint": {"every": DRAINED, "unit": "minibatch"}}
        stashed = self.trained("stashed", case, pipeline=cut, scheme={"name": "pipedream"}, train=drained)
        self.assertFalse(all(torch.equal(stashed[name], uncut[name]) for name in uncut), "nothing was stale")
        module = case.module()
        train(case, module, x, y, self.stages("stashed"))
        self.assert_close(limit, stashed, state(module), f"{label}, PipeDream")

    def assert_outputs(self, label, limit, run, module, losses, x, y):
        """The outputs: losses of the training, and the loss of an evaluation."""
        with torch.no_grad():
            evaluated = loss_of(outputs(module.eval(), x), y).item()
        ours = self.column(run, "steps.csv", "loss") + self.column(run, "epochs.csv", "test_loss")[-1:]
        far = max(abs(a - b) for a, b in zip(ours, [*losses, evaluated], strict=True))
        print(f"{label + ', losses':40} {far:.1e} of {limit:.1e}", flush=True)
        self.assertLessEqual(far, limit, label)

    def assert_drops_by_seed(self, case):
        """What draws random numbers draws the same at every cut, and nothing in an evaluation, as PyTorch."""
        with contextlib.redirect_stdout(io.StringIO()):
            said = self.import_case(case, case.dropping)
        x, y = case.data(case.batch * 2)
        self.write_data(x, y, case.batch)

        def dropped(name, stages, **changes):
            return self.trained(name, case, pipeline={"stages": stages, "balance": "layers"} | changes, scheme={"name": "gpipe"})

        def other(seed):
            return self.trained("other", case, pipeline={"stages": 1}, train={"seed": seed})

        uncut = dropped("uncut", 1)
        module = case.module()
        train(case, module, x, y)
        limit = tolerance(case, x, y, state(module))  # dropout adds no sum
        parts = 1 if any("running_" in name for name in uncut) else 2  # batch norms normalise micro-batches
        cut = dropped("cut", STAGES, recompute="always", microbatches=parts)
        self.assert_close(limit, cut, uncut, "  dropped, cut and uncut")
        self.assertGreater(max(difference(each, uncut[name]) for name, each in other(2).items()), FAR, "nothing was dropped")
        module = case.module(case.dropping).to(case.dtype)
        module.load_state_dict(uncut, strict=False)
        with torch.no_grad():
            theirs = loss_of(outputs(module.eval(), rows(x, 0, case.batch)), y[: case.batch]).item()
        ours = self.column("uncut", "epochs.csv", "test_loss")[-1]
        print(f"{'  dropped, evaluated':40} {abs(ours - theirs):.1e} of {limit:.1e}", flush=True)
        self.assertLessEqual(abs(ours - theirs), limit)
        return said


def add_tests(to, cases):
    """Adds two tests for each case: what is trained, and what is dropped."""
    for name, case in cases.items():
        setattr(to, f"test_{name}", lambda self, name=name, case=case: self.assert_trained_like_pytorch(name, case))
        if case.dropping:
            setattr(to, f"test_{name}_drops_by_the_seed", lambda self, case=case: self.assert_drops_by_seed(case))
