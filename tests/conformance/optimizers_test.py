# SPDX-License-Identifier: Apache-2.0
"""Ten steps of every optimizer in float64, beside torch.optim and beside the definitions of Lion, Adan and SOAP."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import skips

PROBE = os.environ["PIPEWRIGHT_OPTIMIZER_PROBE"]
STEPS = 10
SHAPES = {"a.weight": (5, 5), "a.bias": (5,), "b.weight": (4, 6), "c.weight": (6, 4)}
RATES = [0.01 * (1 - step / 20) for step in range(STEPS)]  # a learning rate that changes

# How far two right programs may be apart. Most optimizers treat each number by itself, with at most 20 operations in a
# step; weights, means of gradients and steps are below 4, and each operation is off by at most 2^-53 here and there.
OPERATIONS = 20 * STEPS
ELEMENTWISE = 2 * 4 * OPERATIONS * 2**-53
# What multiplies matrices enlarges what it rounds: an iteration of Newton and Schulz up to 3.4 times, a basis of eigenvectors
# by how near the eigenvalues are. These may be so many times as far apart as the definition's own result moves when each
# gradient is one unit in its last place away: rounded operations one after another, with sums of at most 6 products.
MUON = OPERATIONS + 5 * 3 * 6 * STEPS  # 5 iterations of 3 products
SOAP = OPERATIONS + (4 + 2 + 3) * 5 * STEPS  # 4 products turn a step, 2 make the sides, 3 go through a basis


class Training:
    """Weights and gradients that are drawn, and what the probe makes of them."""

    def __init__(self, shapes=SHAPES):
        random = np.random.default_rng(3)
        self.weights = {name: random.normal(size=shape) for name, shape in shapes.items()}
        self.gradients = [{name: random.normal(size=shape) for name, shape in shapes.items()} for _ in range(STEPS)]

    def ours(self, name, options):
        given = {
            "name": name,
            "options": options,
            "parameters": [[key, list(value.shape), value.ravel().tolist()] for key, value in self.weights.items()],
            "rates": RATES,
            "gradients": [[each[key].ravel().tolist() for key in self.weights] for each in self.gradients],
        }
        done = subprocess.run([PROBE], input=json.dumps(given), capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return [
            {key: np.array(numbers).reshape(self.weights[key].shape) for key, numbers in zip(self.weights, step)}
            for step in json.loads(done.stdout)
        ]

    def of_torch(self, make):
        """`make` takes the named parameters and returns optimizers; each rate is a factor of their first one."""
        parameters = {key: torch.nn.Parameter(torch.tensor(value)) for key, value in self.weights.items()}
        optimizers = make(parameters)
        first = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
        after = []
        for step, rate in enumerate(RATES):
            for key, parameter in parameters.items():
                parameter.grad = torch.tensor(self.gradients[step][key])
            groups = [group for optimizer in optimizers for group in optimizer.param_groups]
            for group, lr in zip(groups, first):
                group["lr"] = lr * rate
            for optimizer in optimizers:
                optimizer.step()
            after.append({key: parameter.detach().numpy().copy() for key, parameter in parameters.items()})
        return after

    def response(self, definition):
        """What the results of `definition()` change by when each gradient is one unit in its last place away."""
        given, first, random = self.gradients, definition(), np.random.default_rng(7)
        self.gradients = [{key: g * (1 + 2**-52 * random.choice([-1, 1], g.shape)) for key, g in each.items()} for each in given]
        moved, self.gradients = definition(), given
        return max(np.abs(a[key] - b[key]).max() for a, b in zip(first, moved) for key in a)

    def by(self, rule):
        """`rule(name)` makes a function (weights, gradient, rate) → weights."""
        rules = {key: rule(key) for key in self.weights}
        weights, after = dict(self.weights), []
        for step, rate in enumerate(RATES):
            weights = {key: rules[key](weights[key], self.gradients[step][key], rate) for key in weights}
            after.append(weights)
        return after


def lion(betas, decay):
    state = {"m": 0}

    def step(w, g, lr):
        direction = np.sign(betas[0] * state["m"] + (1 - betas[0]) * g)
        state["m"] = betas[1] * state["m"] + (1 - betas[1]) * g
        return w - lr * decay * w - lr * direction

    return step


def adan(betas, eps, decay, proximal):
    state = {"m": 0, "v": 0, "n": 0, "t": 0, "before": None}

    def step(w, g, lr):
        state["t"] += 1
        d = np.zeros_like(g) if state["before"] is None else g - state["before"]
        state["before"] = g
        for key, beta, of in zip("mvn", betas, (g, d, (g + betas[1] * d) ** 2)):
            state[key] = beta * state[key] + (1 - beta) * of
        m, v, n = (state[key] / (1 - beta ** state["t"]) for key, beta in zip("mvn", betas))
        rates = lr / (np.sqrt(n) + eps)
        if proximal:
            return (w - rates * (m + betas[1] * v)) / (1 + lr * decay)
        return (1 - lr * decay) * w - rates * (m + betas[1] * v)

    return step


def soap(betas, eps, decay, every):
    """Algorithm 3 of the paper, with the first gradient left out and the decay last, as in the authors' code."""
    state = {"t": -1}

    def basis(matrix):
        return np.linalg.eigh(matrix)[1][:, ::-1]

    def step(w, g, lr):
        state["t"] += 1
        t, wide = state["t"], g if g.ndim == 2 else g[:, None]
        if t == 0:
            state.update(m=np.zeros_like(wide), n=np.zeros_like(wide))
            state.update(sides=[(1 - betas[1]) * wide @ wide.T, (1 - betas[1]) * wide.T @ wide])
            state.update(q=[basis(side) for side in state["sides"]] if g.ndim == 2 else [np.eye(len(g)), np.eye(1)])
            return w
        left, right = state["q"]
        turned = left.T @ wide @ right
        # The mean is kept in the original coordinates and turned each time, as the paper writes it.
        state["m"] = betas[0] * state["m"] + (1 - betas[0]) * wide
        state["n"] = betas[1] * state["n"] + (1 - betas[1]) * turned**2
        mean = left.T @ state["m"] @ right / (1 - betas[0] ** t)
        size = np.sqrt(1 - betas[1] ** t)
        move = left @ (mean * size / (np.sqrt(state["n"]) + eps)) @ right.T
        new = (w - lr * move.reshape(w.shape)) * (1 - lr * decay)
        if g.ndim == 2:
            for axis, outer in enumerate((wide @ wide.T, wide.T @ wide)):
                state["sides"][axis] = betas[1] * state["sides"][axis] + (1 - betas[1]) * outer
            if t % every == 0:
                for axis in range(2):
                    side, q = state["sides"][axis], state["q"][axis]
                    order = np.argsort(-np.einsum("ij,ik,kj->j", q, side, q))
                    state["n"] = np.take(state["n"], order, axis)
                    state["q"][axis] = np.linalg.qr((side @ q)[:, order])[0]
        return new

    return step


class Optimizers(unittest.TestCase):
    def near(self, ours, theirs, what, tolerance=ELEMENTWISE):
        far = max(np.abs(one[key] - other[key]).max() for one, other in zip(ours, theirs) for key in one)
        print(f"{what:20} {far:.1e} of {tolerance:.1e}", flush=True)
        self.assertFalse(np.array_equal(ours[0]["a.bias"], ours[-1]["a.bias"]), what)
        for step, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            for key in one:
                np.testing.assert_allclose(one[key], other[key], rtol=0, atol=tolerance, err_msg=f"{what}: {key}, {step}")

    def setUp(self):
        torch.set_default_dtype(torch.float64)  # NAdam's product of momenta has it
        self.training = Training()

    def torch_is_near(self, name, options, make):
        self.near(self.training.ours(name, options), self.training.of_torch(make), name)

    def is_near(self, name, options, definition, operations):
        """`definition` returns the results; it enlarges what is rounded."""
        limit = operations * max(self.training.response(definition), 2**-52)
        self.near(self.training.ours(name, options), definition(), name, limit)

    def test_sgd(self):
        self.torch_is_near(
            "sgd",
            "{momentum: 0.9, dampening: 0.3, weight_decay: 0.1}",
            lambda p: [torch.optim.SGD(p.values(), lr=1, momentum=0.9, dampening=0.3, weight_decay=0.1)],
        )
        self.torch_is_near(
            "sgd",
            "{momentum: 0.8, nesterov: true}",
            lambda p: [torch.optim.SGD(p.values(), lr=1, momentum=0.8, nesterov=True)],
        )

    def test_adam_and_adamw(self):
        for name, theirs in (("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
            self.torch_is_near(
                name,
                "{betas: [0.8, 0.9], eps: 0.001, weight_decay: 0.5}",
                lambda p: [theirs(p.values(), lr=1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.5)],
            )
            self.torch_is_near(name, "{}", lambda p: [theirs(p.values(), lr=1)])

    def test_rmsprop(self):
        self.torch_is_near(
            "rmsprop",
            "{alpha: 0.8, eps: 0.001, momentum: 0.7, weight_decay: 0.1}",
            lambda p: [torch.optim.RMSprop(p.values(), lr=1, alpha=0.8, eps=1e-3, momentum=0.7, weight_decay=0.1)],
        )

    def test_nadamw(self):
        def nadam(p, **more):
            return [torch.optim.NAdam(p.values(), lr=1, decoupled_weight_decay=True, **more)]

        self.torch_is_near("nadamw", "{}", nadam)
        self.torch_is_near(
            "nadamw",
            "{betas: [0.99, 0.9], eps: 0.001, weight_decay: 0.5, momentum_decay: 0.2}",
            lambda p: nadam(p, betas=(0.99, 0.9), eps=1e-3, weight_decay=0.5, momentum_decay=0.2),
        )

    def test_muon(self):
        """PyTorch's own code, in float64: where it would round to bfloat16, it copies."""
        rounding, torch.Tensor.bfloat16 = torch.Tensor.bfloat16, lambda tensor: tensor.clone()
        self.addCleanup(setattr, torch.Tensor, "bfloat16", rounding)

        def muon(p, matrices, vectors=None, **more):
            return [
                torch.optim.Muon([p[key] for key in p if p[key].ndim == 2 and key != "c.weight"], lr=1, **more, **matrices),
                torch.optim.AdamW([p["a.bias"], p["c.weight"]], **(vectors or {"lr": 1, "weight_decay": 0.1})),
            ]

        self.is_near("muon", "{adamw: {layers: [c]}}", lambda: self.training.of_torch(lambda p: muon(p, {})), MUON)
        self.is_near(
            "muon",
            "{momentum: 0.8, nesterov: false, weight_decay: 0.5, adjust_lr: match_rms_adamw, ns_steps: 3, "
            "adamw: {betas: [0.8, 0.9], eps: 0.001, lr_factor: 0.25, layers: [c]}}",
            lambda: self.training.of_torch(
                lambda p: muon(
                    p,
                    {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
                    {"lr": 0.25, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 2},
                    momentum=0.8,
                    nesterov=False,
                    weight_decay=0.5,
                )
            ),
            MUON,
        )

    def test_decay_leaves_out_what_no_decay_names(self):
        """Groups of torch.optim's parameters, beside biases, norms or both; the gain of a norm has one dimension."""
        self.training = Training(SHAPES | {"n.weight": (6,), "n.bias": (6,)})

        def grouped(make, spared):
            return lambda p: [
                make([{"params": [p[key] for key in p if key in spared], "weight_decay": 0}, {"params": [p[key] for key in p if key not in spared]}])
            ]

        biases, gains = ("a.bias", "n.bias"), ("n.weight",)
        for kinds, spared in (("[biases]", biases), ("[norms]", gains), ("[biases, norms]", biases + gains)):
            for name, options, make in (
                ("sgd", "momentum: 0.9, ", lambda groups: torch.optim.SGD(groups, lr=1, momentum=0.9, weight_decay=0.5)),
                ("adam", "", lambda groups: torch.optim.Adam(groups, lr=1, weight_decay=0.5)),
                ("adamw", "", lambda groups: torch.optim.AdamW(groups, lr=1, weight_decay=0.5)),
                ("rmsprop", "", lambda groups: torch.optim.RMSprop(groups, lr=1, weight_decay=0.5)),
                ("nadamw", "", lambda groups: torch.optim.NAdam(groups, lr=1, weight_decay=0.5, decoupled_weight_decay=True)),
            ):
                self.torch_is_near(name, "{%sweight_decay: 0.5, no_decay: %s}" % (options, kinds), grouped(make, spared))
            for name, options, rule in (
                ("lion", "", lambda decay: lion((0.9, 0.99), decay)),
                ("adan", "", lambda decay: adan((0.98, 0.92, 0.99), 1e-8, decay, True)),
            ):
                self.near(
                    self.training.ours(name, "{%sweight_decay: 0.5, no_decay: %s}" % (options, kinds)),
                    self.training.by(lambda key: rule(0 if key in spared else 0.5)),
                    name,
                )

    def test_decay_of_matrix_optimizers_leaves_out_biases(self):
        """A step with decay λ shrinks by 1 − lr·λ what the same step without leaves alone, before it (Muon) or after (SOAP)."""
        self.training = Training({"a.weight": (5, 5), "a.bias": (5,), "b.weight": (3, 3)})
        for name in ("muon", "soap"):
            (all_decay, *_), (some, *_), (none, *_) = (
                self.training.ours(name, "{weight_decay: %s, no_decay: %s}" % each)
                for each in ((0.5, "[]"), (0.5, "[biases]"), (0, "[]"))
            )
            np.testing.assert_array_equal(some["a.bias"], none["a.bias"], name)
            np.testing.assert_array_equal(some["a.weight"], all_decay["a.weight"], name)

    def test_lion(self):
        self.near(self.training.ours("lion", "{}"), self.training.by(lambda _: lion((0.9, 0.99), 0)), "lion")
        self.near(
            self.training.ours("lion", "{betas: [0.7, 0.95], weight_decay: 0.5}"),
            self.training.by(lambda _: lion((0.7, 0.95), 0.5)),
            "lion",
        )

    def test_adan(self):
        for proximal in (True, False):
            self.near(
                self.training.ours(
                    "adan",
                    "{betas: [0.9, 0.8, 0.95], eps: 0.001, weight_decay: 0.5, proximal: %s}" % str(proximal).lower(),
                ),
                self.training.by(lambda _: adan((0.9, 0.8, 0.95), 1e-3, 0.5, proximal)),
                "adan",
            )

    def test_soap(self):
        """Square matrices: the first gradient of another has no unique basis on its longer side."""
        self.training = Training({"a.weight": (5, 5), "a.bias": (5,), "b.weight": (3, 3)})
        for every in (1, 3):
            self.is_near(
                "soap",
                "{betas: [0.8, 0.9], eps: 0.001, weight_decay: 0.5, precondition_frequency: %d}" % every,
                lambda: self.training.by(lambda _: soap((0.8, 0.9), 1e-3, 0.5, every)),
                SOAP,
            )


if __name__ == "__main__":
    skips.main()
