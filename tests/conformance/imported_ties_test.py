# SPDX-License-Identifier: Apache-2.0
"""Parameters that several modules of an import share (`model.tie` of `graph`), against a loop in PyTorch in which every module has
a tensor of its own, and which says from each scheme's formula and from the stages alone what each of them reads and applies."""

import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import graph_training
import skips
import torch
from safetensors.torch import load_file, save_file
from tie_test import LIMIT, MOMENTUM, RATE, SCHEMES, Place, both, far

PIPEWRIGHT = os.environ["PIPEWRIGHT_BINARY"]
VOCABULARY, WIDTH, TOKENS, BATCH, STEPS = 11, 6, 5, 8, 10
MODULES = ["embedding", "one", "two", "middle", "three", "four", "head"]
N = 4  # stages
BALANCE = [2, 1, 2, 2]
HEAD = {"head.weight": "embedding.weight"}
TIES = {  # further name → first name
    "two": HEAD,
    "three and a pair inside": HEAD | {"middle.weight": "embedding.weight", "two.weight": "one.weight"},
}
CROSSING = {"middle.weight": "embedding.weight", "four.weight": "one.weight"}
LATE = {
    **TIES,
    "crossing": CROSSING,
    "three, two in one stage": HEAD | {"two.weight": "one.weight", "four.weight": "one.weight"},
}
ASYNCHRONOUS = ("pipedream", "pipedream of micro-batches", "pipedream_2bw", "spectrain 1")


class Net(torch.nn.Module):
    def __init__(self, ties):
        super().__init__()
        torch.manual_seed(4)
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.one, self.two, self.four = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.middle, self.three = torch.nn.Linear(WIDTH, VOCABULARY), torch.nn.Linear(VOCABULARY, WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)
        for name, first in ties.items():
            module, owner = (self.get_submodule(each.removesuffix(".weight")) for each in (name, first))
            module.weight = owner.weight
        self.double()

    def forward(self, x):
        for each in (self.embedding, self.one, self.two, self.middle, self.three, self.four):
            x = torch.tanh(each(x))
        return self.head(x)


def stages_of(balance):
    ends = list(itertools.accumulate(balance))
    return {module: next(k for k, end in enumerate(ends) if i < end) for i, module in enumerate(MODULES)}


class Loop:
    """`late`: every module has a copy; else what `ties` names is one tensor, which the stage of its first module reads and has.
    Without `exchanges` copies only start equal."""

    def __init__(self, ties, balance=BALANCE, late=False, replicas=1, exchanges=True):
        self.module, self.late, self.replicas, self.exchanges = Net(ties), late, replicas, exchanges
        names = [name for name, _ in self.module.named_parameters(remove_duplicate=False)]
        self.first = {name: ties.get(name, name) for name in names}
        self.stage = {name: stages_of(balance)[name.partition(".")[0]] for name in names}
        self.places = {name: self.module.get_parameter(name).detach().clone().requires_grad_() for name in names}
        self.own = names if late else [name for name in names if self.first[name] == name]
        self.weights = [{name: self.places[name].detach().clone() for name in self.own}]
        self.moved = [{name: torch.zeros_like(each) for name, each in self.weights[0].items()}]

    def lag(self, other, name, m):
        """A stage k from s has, behind its forward of what s forwards next, the backward of the micro-batch k − s + 1 later."""
        further = self.stage[name] - self.stage[other]
        return -(-(further + 1) // m) if further > 0 else 0

    def install(self, readings, which):
        for name, place in self.places.items():
            first = name if self.late else self.first[name]
            if which == 1 and first != name:
                continue  # a borrower's backward reads what its forward has read
            version, ahead = readings[self.stage[first]][which]
            place.data.copy_(self.weights[version][first] - ahead * RATE * self.moved[version][first])

    def step(self, t, x, y, m, reading):
        own = {name: torch.zeros_like(each) for name, each in self.places.items()}
        whole, parts = 0.0, m * self.replicas
        for j, (x_j, y_j) in enumerate(zip(x.chunk(parts), y.chunk(parts))):
            readings = [reading(Place(k, t, j % m, m)) for k in range(N)]
            self.install(readings, 0)
            scores = torch.func.functional_call(self.module, self.places, (x_j,), tie_weights=False)
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), y_j.flatten()) / parts
            self.install(readings, 1)
            for name, each in zip(self.places, torch.autograd.grad(loss, list(self.places.values()))):
                own[name] += each
            whole += loss.item()
        self.gradients.append(own)
        moved = {name: MOMENTUM * self.moved[-1][name] + self.applied(name, t, m) for name in self.own}
        self.moved.append(moved)
        self.weights.append({name: self.weights[-1][name] - RATE * each for name, each in moved.items()})
        return whole

    def applied(self, name, t, m):
        total = torch.zeros_like(self.places[name])
        for other, first in self.first.items():
            lag = self.lag(other, name, m) if self.late else 0
            news = (t - lag + 1) * m - 1 + N - self.stage[other] if lag > 0 else 0  # the micro-batch that brings it
            if first == self.first[name] and t >= lag and news < STEPS * m and (self.exchanges or other == name):
                total = total + self.gradients[t - lag][other]
        return total

    def train(self, x, y, m, reading):
        """An epoch, from an empty pipeline to an empty one."""
        self.gradients = []
        del self.weights[:-1], self.moved[:-1]
        losses = [self.step(t, x_t, y_t, m, reading) for t, (x_t, y_t) in enumerate(zip(x.split(BATCH), y.split(BATCH)))]
        for name in self.own if self.exchanges else []:
            self.weights[-1][name] = self.weights[-1][self.first[name]]
        return losses


def ours(loop):
    """The program's names: a copy has the first one's and a number."""
    users, named = {}, {}
    for name in (f"{module}.{part}" for module in MODULES for part in ("weight", "bias")):
        if name not in loop.own:
            continue
        count = users[loop.first[name]] = users.get(loop.first[name], 0) + 1
        named[loop.first[name] + (f"#{count}" if count > 1 else "")] = loop.weights[-1][name]
    return named


class ImportedTies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory(prefix="pipewright-ties-")
        cls.folder = Path(cls.kept.name)
        torch.manual_seed(3)
        cls.x, cls.y = (torch.randint(VOCABULARY, (BATCH * STEPS, TOKENS)) for _ in "xy")
        test = {"test.x": cls.x[:8].clone(), "test.y": cls.y[:8].clone()}
        save_file({"train.x": cls.x, "train.y": cls.y} | test, cls.folder / "data.safetensors")
        for label, ties in LATE.items():
            graph_training.import_torch.import_module(Net(ties), [graph_training.Input((TOKENS,), torch.int64)], cls.folder / cls.net(label))

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    @staticmethod
    def net(label):
        return "net_" + label.replace(" ", "_").replace(",", "")

    def loop(self, label, m, reading, epochs=1, **options):
        loop = Loop(LATE[label], **options)
        losses = [each for _ in range(epochs) for each in loop.train(self.x, self.y, m, reading)]
        return ours(loop), losses

    def run_experiment(self, label, tie, scheme, out, code=0, balance=BALANCE, epochs=1, train=None, **pipeline):
        net = self.net(label)
        experiment = {
            "dataset": {"name": "tensors", "file": "data.safetensors"},
            "loader": {"batch_size": BATCH, "shuffle": False},
            "model": {"name": "graph", "file": net, "weights": f"{net}/weights.safetensors", "tie": tie},
            "pipeline": {"stages": N, "balance": balance} | pipeline,
            "scheme": scheme,
            "optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM},
            "train": {"epochs": epochs, "precision": "float64", "checkpoint": {"every": 0}} | (train or {}),
        }
        (self.folder / f"{out}.yaml").write_text(json.dumps(experiment))
        done = subprocess.run([PIPEWRIGHT, "run", f"{out}.yaml", "--out", out], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def trained(self, *given, **options):
        self.last = out = f"run{len(list(self.folder.glob('*.yaml')))}"
        self.run_experiment(*given, out=out, **options)
        with open(self.folder / out / "steps.csv", newline="") as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        return load_file(self.folder / out / "final.safetensors"), losses

    def given_back(self, label):
        """What to_pytorch.py says, and the code that it ends with."""
        tool, weights = graph_training.SOURCE / "tools" / "to_pytorch.py", f"{self.last}/final.safetensors"
        command = [sys.executable, "-B", tool, self.net(label), weights, "--out", "back.safetensors"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        return done.stdout + done.stderr, done.returncode

    def compare(self, label, mine, theirs):
        self.assertEqual(sorted(mine[0]), sorted(theirs[0]))
        weights, losses = far(mine[0], theirs[0]), max(abs(a - b) for a, b in zip(mine[1], theirs[1], strict=True))
        print(f"{label:60} weights {weights:.1e}, losses {losses:.1e}", flush=True)
        self.assertLessEqual(max(weights, losses), LIMIT, label)

    def same_bits(self, a, b):
        self.assertEqual(sorted(a[0]), sorted(b[0]))
        for name, each in a[0].items():
            self.assertTrue(torch.equal(b[0][name], each), name)
        self.assertEqual(a[1], b[1])

    def test_one_tensor_with_a_flush_is_the_tied_module(self):
        for label, scheme in itertools.product(TIES, ("gpipe", "one_f_one_b", "zb_h1")):
            with self.subTest(f"{label}, {scheme}"):
                mine = self.trained(label, "same", {"name": scheme}, microbatches=4)
                self.compare(f"same, {label}, {scheme}", mine, self.loop(label, 1, lambda p: both(p.t)))
        mine = self.trained("three and a pair inside", "same", {"name": "gpipe"}, balance="time", microbatches=2)
        self.compare("same, cut by measured times", mine, self.loop("three and a pair inside", 1, lambda p: both(p.t)))

    def test_one_tensor_without_a_flush_is_the_owners(self):
        for label, name in itertools.product(TIES, ASYNCHRONOUS):
            with self.subTest(f"{label}, {name}"):
                scheme, m, reading = SCHEMES[name]
                mine = self.trained(label, "same", scheme, microbatches=m)
                self.compare(f"same, {label}, {name}", mine, self.loop(label, m, reading))
                self.same_bits(mine, self.trained(label, "same", scheme, microbatches=m, execution="threads", recompute="always"))

    def test_copies_apply_each_others_gradients_when_the_schedule_has_brought_them(self):
        for label, name in itertools.product(LATE, ASYNCHRONOUS):
            with self.subTest(f"{label}, {name}"):
                scheme, m, reading = SCHEMES[name]
                balance = [3, 1, 1, 2] if "in one stage" in label else BALANCE
                theirs = self.loop(label, m, reading, epochs=2, late=True, balance=balance)
                mine = self.trained(label, "late", scheme, microbatches=m, epochs=2, balance=balance)
                self.compare(f"late, {label}, {name}", mine, theirs)
                options = {"epochs": 2, "balance": balance, "microbatches": m}
                self.same_bits(mine, self.trained(label, "late", scheme, execution="threads", recompute="always", **options))
                if not skips.has("mpirun"):
                    skips.left_out("copies of parameters in mpi", "mpirun")
                elif name in ("pipedream of micro-batches", "spectrain 1"):
                    self.same_bits(mine, self.trained(label, "late", scheme, execution="mpi", offload="always", **options))

    def test_replicas_and_offload_change_no_number(self):
        label, (scheme, m, reading) = "three and a pair inside", SCHEMES["pipedream of micro-batches"]
        for tie in ("same", "late"):
            with self.subTest(tie):
                theirs = self.loop(label, m, reading, late=tie == "late", replicas=2)
                mine = self.trained(label, tie, scheme, microbatches=m, replicas=2, execution="threads", offload="always")
                self.compare(f"{tie}, two replicas", mine, theirs)

    def test_a_resumed_training_has_the_bits_of_one_that_was_not_stopped(self):
        often = {"train": {"checkpoint": {"every": 4, "unit": "minibatch"}}}
        for tie, label in (("late", "crossing"), ("late", "three and a pair inside"), ("same", "three and a pair inside")):
            with self.subTest(f"{tie}, {label}"):
                whole, _ = self.trained(label, tie, {"name": "pipedream"}, epochs=2, execution="threads", **often)
                out = f"parts_{tie}_{self.net(label)}"
                self.run_experiment(label, tie, {"name": "pipedream"}, out=out, **often)
                resume = [PIPEWRIGHT, "run", out, "--resume", "--set", "train.epochs=2"]
                done = subprocess.run(resume, cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                parts = load_file(self.folder / out / "final.safetensors")
                self.assertEqual(sorted(parts), sorted(whole))
                for name, each in whole.items():
                    self.assertTrue(torch.equal(parts[name], each), name)

    def test_copies_that_only_start_equal_are_parameters_of_their_own(self):
        scheme, m, reading = SCHEMES["pipedream"]
        mine = self.trained("crossing", "start", scheme)
        self.compare("start, crossing", mine, self.loop("crossing", m, reading, late=True, exchanges=False))
        self.assertFalse(torch.equal(mine[0]["one.weight"], mine[0]["one.weight#2"]))
        said, code = self.given_back("crossing")
        self.assertIn("'embedding.weight#2' and 'embedding.weight' are one parameter of the module, and model.tie: start trained them", said)
        self.assertEqual(code, 3)

    def test_copies_go_back_as_the_one_tensor_that_the_module_has(self):
        mine, _ = self.trained("crossing", "late", {"name": "pipedream"})
        self.assertEqual(self.given_back("crossing")[1], 0)
        net = Net(CROSSING)
        net.load_state_dict(load_file(self.folder / "back.safetensors"))
        self.assertTrue(torch.equal(net.middle.weight, mine["embedding.weight"]))
        self.assertTrue(torch.equal(net.four.weight, mine["one.weight"]))

    def test_what_does_not_nest_is_refused_with_its_name(self):
        """The embedding's uses and those of `one` begin and end in turns; the one whose uses lie farther apart is parted."""
        said = self.run_experiment("crossing", "same", {"name": "gpipe"}, "refused", code=2, balance="layers", stages=5)
        self.assertIn("what model.tie: same lends must nest like brackets, so no cut lies between the uses of 'embedding.weight'", said)


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
