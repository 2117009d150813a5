# SPDX-License-Identifier: Apache-2.0
"""One tensor for the token embedding and the output (`model.tie: same`), against a loop in PyTorch that has one, too, and
goes through the mini-batches in order, each stage with the version of its weights that the scheme's formula names."""

import csv
import itertools
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import decoder_modules
import graph_cases
import graph_training
import skips
import torch
from decoder_modules import SMALL
from safetensors.torch import load_file, save_file

PIPEWRIGHT = os.environ["PIPEWRIGHT_BINARY"]
STEPS, BATCH, RATE, MOMENTUM = 12, 8, 0.01, 0.9
EPSILON = 1e-4  # of Adam: with a small one the rounding of a small gradient is a large step
LIMIT = 1e-12  # as in decoder_test.py
# Of how far the tensor has moved: some ten roundings lie between a gradient and the loss, each of a unit in the last place.
ROUNDED = {"bfloat16": 10 * 2.0**-8, "float16": 10 * 2.0**-11}
EMBEDDING, OUTPUT = "embeddings.tokens.weight", "lm_head.weight"
BALANCE = [1, 1, 2, 2]  # of: embeddings, three blocks, norm, lm_head
N = len(BALANCE)


def stage_of(name, balance):
    layers = ["embeddings.", "layers.0.", "layers.1.", "layers.2.", "norm.", "lm_head."]
    layer = next(i for i, each in enumerate(layers) if name.startswith(each))
    return next(k for k in range(len(balance)) if layer < sum(balance[: k + 1]))


class Place:
    """Micro-batch j of M of mini-batch t at stage k of N, as in tests/oracle/schemes.h: `forward` and `backward` are the
    version that a pass reads and the steps that it is predicted ahead."""

    def __init__(self, k, t, j, m):
        self.k, self.t, self.j, self.depth, self.f = k, t, j, N - 1 - k, t * m + j
        self.read = max(0, self.f - self.depth) // m
        self.steps = t - (self.f - self.depth) // m  # as if the pipe had always been full
        self.first = max(0, self.f - N + 1) // m


def lag(m):
    """By how many updates the last stage of 1F1B applies the first one's gradients later than its own, with `tie: late`: the
    first stage forwards micro-batch f + N behind its backward of f, and what the last one does with that one comes then."""
    return -(-N // m)


def both(version, ahead=0):
    return (version, ahead), (version, ahead)


def xpipe(p):
    first = Place(p.k, p.t, 0, XPIPE)
    ahead = [(XPIPE + N - p.k / 2 - 2) / XPIPE, (XPIPE + p.k // 2 - 1) / XPIPE]
    return (first.read, int(ahead[0] + 0.5)), (p.t, int(ahead[1] + 0.5))


XPIPE = 2  # micro-batches


SCHEMES = {
    "pipedream": ({"name": "pipedream"}, 1, lambda p: both(p.read)),
    "pipedream of micro-batches": ({"name": "pipedream"}, 2, lambda p: both(p.read)),
    "pipedream with vertical sync": ({"name": "pipedream", "vertical_sync": True}, 1, lambda p: both(p.first)),
    "pipedream without stashing": ({"name": "pipedream", "weight_stashing": False}, 1, lambda p: ((p.read, 0), (p.t, 0))),
    "pipedream_2bw": ({"name": "pipedream_2bw"}, 4, lambda p: both(max(0, p.t - 1))),
    "paci": ({"name": "paci"}, 2, lambda p: ((p.read, 0), (p.t, 0))),
    "spectrain 1": ({"name": "spectrain"}, 1, lambda p: ((p.read, p.steps + p.k // 2), (p.t, p.k // 2))),
    "spectrain 2": ({"name": "spectrain", "version": 2}, 1, lambda p: both(p.read, p.steps)),
    "spectrain 2, exact": ({"name": "spectrain", "version": 2, "s_mode": "exact"}, 1, lambda p: both(p.read, p.t - p.read)),
    "lwp": ({"name": "lwp", "horizon": 2}, 1, lambda p: both(p.read, 2 * (p.t - p.read))),
    "xpipe": ({"name": "xpipe"}, XPIPE, xpipe),
    "pipeoptim": ({"name": "pipeoptim"}, 1, lambda p: ((p.read, p.steps), (p.t, 0))),
    "pipeoptim of micro-batches": ({"name": "pipeoptim"}, 2, lambda p: ((p.read, p.steps), (p.t, 0))),
    "pipemare": ({"name": "pipemare", "annealing": 0, "correction": False}, 1, lambda p: ((p.read, 0), (p.t, 0))),
    "delayed_sgd": ({"name": "delayed_sgd", "delay": [3, 2, 1, 0]}, 1, lambda p: both(max(0, p.t - 3 + p.k))),
}

# What no scheme's formula knows of, so that it shall change no number.
WAYS = {
    "two replicas": {"replicas": 2},
    "recomputed": {"recompute": "always"},
    "offloaded": {"offload": "always"},
    "on one worker": {"placement": [0, 1, 1, 0]},
    "threads": {"execution": "threads", "replicas": 2, "recompute": "except_last"},
    "mpi": {"execution": "mpi", "offload": "always"},
}
LATE = {"pipemare of micro-batches": ({"name": "pipemare", "annealing": 0, "correction": False}, 2, lambda p: ((p.read, 0), (p.t, 0)))}
IN_ALL_WAYS = ("pipedream of micro-batches", "pipedream_2bw", "spectrain 1", "pipeoptim of micro-batches", "pipemare")

FLUSHED = {
    "uncut": ({"name": "model_parallel"}, {"stages": 1}),
    "model_parallel": ({"name": "model_parallel"}, {"balance": BALANCE}),
    "two stages": ({"name": "gpipe"}, {"balance": [3, 3], "microbatches": 4}),
    "gpipe": ({"name": "gpipe"}, {"balance": BALANCE, "microbatches": 4}),
    "gpipe, recomputed": ({"name": "gpipe"}, {"balance": BALANCE, "microbatches": 4, "recompute": "always"}),
    "one_f_one_b": ({"name": "one_f_one_b"}, {"balance": BALANCE, "microbatches": 4}),
    "interleaved": ({"name": "interleaved"}, {"balance": BALANCE, "microbatches": 4, "placement": [0, 1, 0, 1]}),
    "zb_h1": ({"name": "zb_h1"}, {"balance": BALANCE, "microbatches": 4}),
    "zb_h2": ({"name": "zb_h2"}, {"balance": BALANCE, "microbatches": 8}),
    "zb_v": ({"name": "zb_v"}, {"balance": BALANCE, "microbatches": 4}),
    "hanayo": ({"name": "hanayo"}, {"balance": BALANCE, "microbatches": 4}),
    "v_half": ({"name": "v_half"}, {"balance": BALANCE, "microbatches": 4}),
    "dualpipe_v": ({"name": "dualpipe_v"}, {"balance": BALANCE, "microbatches": 4}),
    "chimera": ({"name": "chimera"}, {"balance": BALANCE, "microbatches": 2, "replicas": 2}),
    "seq1f1b": ({"name": "seq1f1b"}, {"balance": BALANCE, "microbatches": 4, "slices": 3}),
    "two replicas": ({"name": "one_f_one_b"}, {"balance": BALANCE, "microbatches": 2, "replicas": 2}),
    "two replicas of one stage": ({"name": "data_parallel"}, {"stages": 1, "replicas": 2}),
}


# How far weights move in `s` steps that are predicted, negative: back, for a pass (0: forward, 1: backward) that reads the
# weights `name` of version v.
def buffer(loop, name, v, s, which):
    return -s * RATE * loop.moved[v][name]


def geometric(loop, name, v, s, which):
    return -sum(MOMENTUM**j for j in range(1, s + 1)) * RATE * loop.moved[v][name]


def lookahead(loop, name, v, s, which):
    return -s * RATE * (MOMENTUM * loop.moved[v][name] + (loop.last[v][name] if which == 0 else 0))


def of_adam(loop, name, v, s, which):
    return -s * RATE * loop.adam(name, loop.moved[v][name], loop.squares[v][name], v)


def drift(loop, name, v, s, which):
    """PipeMare's δ, the running average of how the version changes."""
    moved = 0
    decay = 0.135 ** (1 / max(1, N - 1 - loop.stage[name]))
    for new, old in zip(loop.weights[1 : v + 1], loop.weights):
        moved = decay * moved + (1 - decay) * (new[name] - old[name])
    return s * moved


def annealed(loop, name, t):
    return max(1, N - 1 - loop.stage[name]) ** -(1 - t / STEPS)


class Loop:
    """A training with momentum, or with Adam, in PyTorch, with one tensor for both places."""

    def __init__(self, module, decay=0.0, most=torch.inf, balance=BALANCE, adam=False, moves=buffer, rate=lambda *_: 1, late=None, over="model"):
        """`late`: each place has a copy, and that of the output applies the embedding's gradient so many updates after its own.
        `over`: of whose gradients the norm is at most `most`."""
        self.module, self.named, self.decay, self.most, self.late, self.over = module, module.named(), decay, most, late, over
        self.own = [name for name in self.named if name != OUTPUT or late is not None]
        self.stage = {name: stage_of(name, balance) for name in self.own}
        zeros = {name: torch.zeros_like(self.named[name]) for name in self.own}
        self.weights = [{name: self.named[name].detach().clone() for name in self.own}]  # [version]
        self.moved, self.squares, self.last = [zeros], [zeros], [zeros]  # [version] momentum, Adam's second, gradient
        self.by_adam, self.moves, self.rate = adam, moves, rate

    @staticmethod
    def adam(name, first, second, t):
        return first / (1 - 0.9**t) / ((second / (1 - 0.999**t)).sqrt() + EPSILON) if t > 0 else first

    def install(self, readings, which):
        """The weights that a pass reads. The output reads what the embedding's forward reads, in both passes."""
        for name in self.own:
            version, ahead = readings[self.stage[name]][which]
            self.named[name].data.copy_(self.weights[version][name])
            if ahead != 0:
                self.named[name].data += self.moves(self, name, version, ahead, which)
            if name == EMBEDDING and which == 0 and self.late is None:
                self.named[OUTPUT].data.copy_(self.named[name].data)

    def step(self, t, x, y, m, reading, replicas):
        gradients = {name: torch.zeros_like(each) for name, each in self.weights[0].items()}
        whole, parts, of_embedding = 0.0, m * replicas, torch.zeros_like(self.named[EMBEDDING])
        for j, (x_j, y_j) in enumerate(zip(x.chunk(parts), y.chunk(parts))):
            readings = [reading(Place(k, t, j % m, m)) for k in range(N)]
            for each in self.named.values():
                each.grad = None
            self.install(readings, 0)
            loss = torch.nn.functional.cross_entropy(self.module(x_j).flatten(0, 1), y_j.flatten()) / parts
            self.install(readings, 1)
            loss.backward()
            whole += loss.item()
            for name in self.own:
                gradients[name] += self.named[name].grad
            of_embedding += self.named[EMBEDDING].grad
            gradients[EMBEDDING] += self.named[OUTPUT].grad
        self.of_embedding.append(of_embedding)
        if self.late is not None and t >= self.late:
            gradients[OUTPUT] += self.of_embedding[t - self.late]
        part = {name: self.stage[name] if self.over == "stage" else 0 for name in gradients}
        norms = {k: torch.cat([each.flatten() for name, each in gradients.items() if part[name] == k]).norm().item() for k in part.values()}
        gradients = {
            name: each * min(1, self.most / (norms[part[name]] + 1e-6)) + self.decay * self.weights[-1][name]
            for name, each in gradients.items()
        }
        self.update(t, gradients)
        return whole

    def update(self, t, gradients):
        moved = {n: MOMENTUM * self.moved[-1][n] + (0.1 if self.by_adam else 1) * each for n, each in gradients.items()}
        squares = {n: 0.999 * self.squares[-1][n] + 0.001 * each**2 for n, each in gradients.items()}
        steps = {n: self.adam(n, each, squares[n], t + 1) if self.by_adam else each for n, each in moved.items()}
        self.weights.append({n: each - RATE * self.rate(self, n, t) * steps[n] for n, each in self.weights[-1].items()})
        self.moved.append(moved)
        self.squares.append(squares)
        self.last.append(gradients)

    def train(self, x, y, m, reading, replicas=1):
        """An epoch, from an empty pipeline to an empty pipeline. Returns its last weights, and its losses."""
        for kept in (self.weights, self.moved, self.squares, self.last):
            del kept[:-1]
        self.of_embedding = []
        batches = zip(x.split(BATCH), y.split(BATCH))
        losses = [self.step(t, x_t, y_t, m, reading, replicas) for t, (x_t, y_t) in enumerate(batches)]
        if self.late is not None:
            self.weights[-1][OUTPUT] = self.weights[-1][EMBEDDING]
        return self.weights[-1], losses


def far(ours, theirs):
    return max(((ours[name] - each).abs().max() / each.abs().max().clamp_min(1)).item() for name, each in theirs.items())


class Tie(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory(prefix="pipewright-tie-")
        cls.folder = Path(cls.kept.name)
        torch.manual_seed(3)
        cls.start = {n: each.detach().clone() for n, each in decoder_modules.randomised(decoder_modules.Contest()).named().items()}
        cls.start[OUTPUT] = cls.start[EMBEDDING] = cls.start[EMBEDDING] / 4
        save_file({n: each.contiguous() for n, each in cls.start.items() if n != OUTPUT}, cls.folder / "start.safetensors")
        cls.x, cls.y = (torch.randint(SMALL["vocabulary"], (BATCH * STEPS, SMALL["tokens"])) for _ in "xy")
        save_file({n: each.clone() for n, each in cls.start.items()}, cls.folder / "both.safetensors")
        cls.late = {"model": cls.experiment(cls, {}, {"stages": 1})["model"] | {"tie": "late", "weights": "both.safetensors"}}
        test = {"test.x": cls.x[:1].clone(), "test.y": cls.y[:1].clone()}
        save_file({"train.x": cls.x, "train.y": cls.y} | test, cls.folder / "data.safetensors")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def loop(self, m, reading, replicas=1, epochs=1, **options):
        module = decoder_modules.Contest()
        for name, each in module.named().items():
            each.data.copy_(self.start[name])
        loop = Loop(module, **options)
        losses = []
        for _ in range(epochs):
            weights, more = loop.train(self.x, self.y, m, reading, replicas)
            losses += more
        return weights, losses

    def experiment(self, scheme, pipeline, **changes):
        return {
            "dataset": {"name": "tensors", "file": "data.safetensors"},
            "loader": {"batch_size": BATCH, "shuffle": False},
            "model": {"name": "decoder", "weights": "start.safetensors", "tie": "same"} | SMALL | decoder_modules.Contest.options,
            "pipeline": pipeline if "stages" in pipeline else {"stages": len(pipeline["balance"])} | pipeline,
            "scheme": scheme,
            "optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM},
            "train": {"epochs": 1, "precision": "float64", "checkpoint": {"every": 0}},
        } | changes

    def trained(self, label, scheme, pipeline, **changes):
        label = label.replace(" ", "_").replace(",", "")
        (self.folder / f"{label}.yaml").write_text(json.dumps(self.experiment(scheme, pipeline, **changes)))
        done = subprocess.run([PIPEWRIGHT, "run", f"{label}.yaml", "--out", label], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.folder / label / "steps.csv", newline="") as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        return load_file(self.folder / label / "final.safetensors"), losses

    def compare(self, label, ours, theirs):
        self.assertEqual(sorted(ours[0]), sorted(theirs[0]), "each tensor stands in the file as often as there are copies")
        weights, losses = far(ours[0], theirs[0]), max(abs(a - b) for a, b in zip(ours[1], theirs[1], strict=True))
        print(f"{label:32} weights {weights:.1e}, losses {losses:.1e}", flush=True)
        self.assertLessEqual(max(weights, losses), LIMIT, label)

    def test_with_a_flush_it_is_the_tied_model(self):
        theirs = self.loop(1, lambda p: both(p.t))
        self.assertGreater(far(theirs[0], {n: self.start[n] for n in theirs[0]}), 1e-3, "nothing was learned")
        for label, (scheme, pipeline) in FLUSHED.items():
            with self.subTest(label):
                self.compare(label, self.trained(label, scheme, pipeline), theirs)

    def test_decay_and_the_norm_of_the_whole_gradient_count_it_once(self):
        theirs = self.loop(1, lambda p: both(p.t), decay=0.02, most=0.3)
        self.assertGreater(far(theirs[0], self.loop(1, lambda p: both(p.t))[0]), 1e-4, "neither did anything")
        changes = {
            "optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM, "weight_decay": 0.02},
            "gradient_rules": [{"name": "clip", "norm": 0.3, "over": "model"}],
        }
        for label in ("uncut", "gpipe", "two replicas", "zb_h1"):
            with self.subTest(label):
                self.compare(label, self.trained("clipped " + label, *FLUSHED[label], **changes), theirs)

    def test_a_resumed_training_has_the_bits_of_one_that_was_not_stopped(self):
        cut = {"balance": BALANCE}
        changes = {
            "optimizer": {"name": "adam", "lr": RATE},
            "train": {"epochs": 2, "precision": "float32", "checkpoint": {"every": 5, "unit": "minibatch"}},
        }
        for scheme, m in (("spectrain", 2), ("pipedream_2bw", 4), ("pipemare", 1), ("zb_h1", 4), ("pipeoptim", 2)):
            with self.subTest(scheme):
                cut["microbatches"] = m
                changes |= self.late if scheme == "pipeoptim" else {}
                whole, _ = self.trained("whole " + scheme, {"name": scheme}, cut | {"execution": "threads"}, **changes)
                self.trained("parts " + scheme, {"name": scheme}, cut, **changes | {"train": changes["train"] | {"epochs": 1}})
                resume = [PIPEWRIGHT, "run", "parts_" + scheme, "--resume", "--set", "train.epochs=2"]
                done = subprocess.run(resume, cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                parts = load_file(self.folder / f"parts_{scheme}" / "final.safetensors")
                self.assertEqual(sorted(parts), sorted(whole))
                for name, each in whole.items():
                    self.assertTrue(torch.equal(parts[name], each), name)

    def test_a_module_of_transformers_is_cut_between_its_embedding_and_its_output(self):
        torch.manual_seed(5)
        module, vocabulary = graph_cases.gpt2(0.0, tied=True).double(), graph_cases.VOCABULARY
        graph_training.import_torch.import_module(module, [graph_training.Input((12,), torch.int64)], self.folder / "net")
        x, y = (torch.randint(vocabulary, (BATCH * 3, 12)) for _ in "xy")
        save_file({"train.x": x, "train.y": y, "test.x": x.clone(), "test.y": y.clone()}, self.folder / "tokens.safetensors")
        changes = {
            "dataset": {"name": "tensors", "file": "tokens.safetensors"},
            "model": {"name": "graph", "file": "net", "weights": "net/weights.safetensors", "tie": "same"},
        }
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
        for x_t, y_t in zip(x.split(BATCH), y.split(BATCH)):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(x_t).logits.flatten(0, 1), y_t.flatten()).backward()
            optimizer.step()
        cut = {"stages": 4, "balance": "layers"}
        for label, scheme, pipeline in (
            ("whole module", "model_parallel", {"stages": 1}),
            ("cut module", "model_parallel", cut),
            ("cut module, gpipe", "gpipe", cut | {"microbatches": 4, "recompute": "always", "execution": "threads"}),
            ("cut module, zb_h1", "zb_h1", cut | {"microbatches": 4}),
        ):
            with self.subTest(label):
                ours, _ = self.trained(label, {"name": scheme}, pipeline, **changes)
                self.assertNotIn("lm_head.weight", ours)
                theirs = {name: each for name, each in module.state_dict().items() if name in ours}
                print(f"{label:32} weights {far(ours, theirs):.1e}", flush=True)
                self.assertLessEqual(far(ours, theirs), LIMIT)

    def test_without_a_flush_it_is_one_tensor_of_the_first_stage(self):
        exact = self.loop(1, lambda p: both(p.t))
        for label, (scheme, m, reading) in SCHEMES.items():
            with self.subTest(label):
                theirs = self.loop(m, reading)
                self.assertGreater(far(theirs[0], exact[0]), 1e-6, "as with a flush")
                self.compare(label, self.trained(label, scheme, {"balance": BALANCE, "microbatches": m}), theirs)

    def test_no_way_of_running_it_changes_a_number(self):
        for label in IN_ALL_WAYS:
            scheme, m, reading = SCHEMES[label]
            theirs = {replicas: self.loop(m, reading, replicas) for replicas in (1, 2)}
            for way, changes in WAYS.items():
                if changes.get("execution") == "mpi" and not skips.has("mpirun"):
                    skips.left_out("shared weights in mpi", "mpirun")
                    continue
                with self.subTest(f"{label}, {way}"):
                    ours = self.trained(f"{label} {way}", scheme, {"balance": BALANCE, "microbatches": m} | changes)
                    self.compare(f"{label}, {way}", ours, theirs[changes.get("replicas", 1)])

    def test_late_copies_apply_each_others_gradients_when_the_schedule_has_brought_them(self):
        for label in (*IN_ALL_WAYS, "pipedream", "pipemare of micro-batches"):
            scheme, m, reading = LATE.get(label) or SCHEMES[label]
            options = {"late": lag(m), "epochs": 2}
            changes = {"train": {"epochs": 2, "precision": "float64", "checkpoint": {"every": 0}}} | self.late
            ways = dict(WAYS) if label in ("pipedream of micro-batches", "spectrain 1") else {}
            ways.pop("on one worker", None)  # its order brings gradients at other updates
            for way, more in ({"alone": {}} | ways).items():
                if more.get("execution") == "mpi" and not skips.has("mpirun"):
                    continue
                with self.subTest(f"{label}, {way}"):
                    theirs = self.loop(m, reading, more.get("replicas", 1), **options)
                    self.assertGreater(far(theirs[0], self.loop(m, reading, **options | {"late": 99})[0]), 1e-5, "nothing comes late")
                    ours = self.trained(f"late {label} {way}", scheme, {"balance": BALANCE, "microbatches": m} | more, **changes)
                    self.compare(f"late {label}, {way}", ours, theirs)
                    self.assertTrue(torch.equal(ours[0][OUTPUT], ours[0][EMBEDDING]), "the pipeline is empty")
                    if way == "alone":
                        alone = ours[0]
                    elif "replicas" not in more:
                        for name, each in alone.items():
                            self.assertTrue(torch.equal(ours[0][name], each), name)

    def test_copies_are_clipped_by_a_norm_with_both_gradients_in_it(self):
        for over, name, late in (("stage", "pipedream of micro-batches", lag(2)), ("model", "delayed_sgd", 1)):
            with self.subTest(over):
                scheme, m, reading = SCHEMES[name]
                theirs = self.loop(m, reading, late=late, most=0.3, over=over)
                self.assertGreater(far(theirs[0], self.loop(m, reading, late=late)[0]), 1e-4, "it clips nothing")
                changes = self.late | {"gradient_rules": [{"name": "clip", "norm": 0.3, "over": over}]}
                ours = self.trained(f"late clipped {over}", scheme, {"balance": BALANCE, "microbatches": m}, **changes)
                self.compare(f"late, clipped over the {over}", ours, theirs)

    def test_copies_begin_as_the_one_tensor_of_a_file(self):
        for tie in ("late", "start"):
            one, two = (
                self.trained(f"{tie} from {file}", {"name": "pipedream"}, {"balance": BALANCE}, model=self.late["model"] | {"tie": tie, "weights": file})[0]
                for file in ("start.safetensors", "both.safetensors")
            )
            self.assertEqual(sorted(one), sorted(two))
            for name, each in one.items():
                self.assertTrue(torch.equal(two[name], each), f"{tie}, {name}")

    def test_a_group_of_parameters_has_all_copies(self):
        scheme, m, reading = SCHEMES["pipedream of micro-batches"]
        options = {"late": lag(m), "rate": lambda loop, name, t: 2 if name in (EMBEDDING, OUTPUT) else 1}
        groups = [{"match": [EMBEDDING, OUTPUT], "name": "sgd", "lr": 2 * RATE, "momentum": MOMENTUM}]
        changes = self.late | {"optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM, "groups": groups}}
        ours = self.trained("late grouped", scheme, {"balance": BALANCE, "microbatches": m}, **changes)
        self.compare("late, in a group", ours, self.loop(m, reading, **options))

    def test_an_evaluation_inside_a_training_is_of_both_copies_as_they_are(self):
        scheme, m, reading = SCHEMES["pipedream of micro-batches"]
        module = decoder_modules.Contest()
        for name, each in module.named().items():
            each.data.copy_(self.start[name])
        loop = Loop(module, late=lag(m))
        loop.train(self.x, self.y, m, reading)
        train = {"epochs": 1, "precision": "float64", "checkpoint": {"every": 0}, "drain": "never"}
        cut, alone = {"balance": BALANCE, "microbatches": m}, None
        for evaluate in ({}, {"evaluate": {"every": 5, "unit": "minibatch"}}):
            ours, _ = self.trained(f"late evaluated {bool(evaluate)}", scheme, cut, **self.late | {"train": train | evaluate})
            alone = alone or ours
            for name, each in alone.items():
                self.assertTrue(torch.equal(ours[name], each), name)
        with open(self.folder / "late_evaluated_True" / "evaluations.csv", newline="") as file:
            found = {int(row["minibatches"]): float(row["test_loss"]) for row in csv.DictReader(file)}
        for steps in (5, 10):
            self.assertFalse(torch.equal(loop.weights[steps][OUTPUT], loop.weights[steps][EMBEDDING]))
            for name, each in loop.weights[steps].items():
                loop.named[name].data.copy_(each)
            loss = torch.nn.functional.cross_entropy(module(self.x[:1]).flatten(0, 1), self.y[:1].flatten()).item()
            self.assertLessEqual(abs(found[steps] - loss), LIMIT)

    def test_a_long_training_of_copies_applies_what_a_traced_one_does(self):
        """Of a long training a short schedule with a loop is kept, but not of one whose gradients come updates later."""
        many = {"dataset": {"name": "synthetic", "train": 96 * BATCH, "test": BATCH}, "loader": {"batch_size": BATCH}}
        model = {"name": "gpt", "vocabulary": 16, "tokens": 6, "width": 8, "heads": 2, "layers": 2, "tie": "late"}
        cut = {"balance": [1, 1, 1, 2], "microbatches": 2, "execution": "threads"}
        long, traced = (
            self.trained(f"long {trace}", {"name": "pipedream"}, cut, **many, model=model, output={"trace": trace})[0] for trace in (False, True)
        )
        for name, each in traced.items():
            self.assertTrue(torch.equal(long[name], each), name)

    def test_halves_of_a_backward_count_both_uses(self):
        """PipeDream's schedule with every backward cut in two, its second half behind the next pass."""
        cut = {"balance": BALANCE, "microbatches": 2}
        (self.folder / "whole.yaml").write_text(json.dumps(self.experiment({"name": "pipedream"}, cut)))
        subprocess.run([PIPEWRIGHT, "schedule", "whole.yaml", "--minibatches", str(STEPS), "--csv", "whole.csv"], cwd=self.folder, check=True, capture_output=True)
        rows, waiting = [], {}
        with open(self.folder / "whole.csv", newline="") as file:
            for row in csv.DictReader(file):
                if row["kind"] == "update" and row["worker"] in waiting:
                    rows.append(waiting.pop(row["worker"]))
                rows.append(row)
                if row["kind"] != "update" and row["worker"] in waiting:
                    rows.append(waiting.pop(row["worker"]))
                if row["kind"] == "backward":
                    row["kind"] = "input-only backward"
                    waiting[row["worker"]] = row | {"kind": "weight-only backward"}
        with open(self.folder / "halves.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        ours = self.trained("halves", {"name": "csv_schedule", "file": "halves.csv"}, cut)
        self.compare("halves of backwards", ours, self.loop(*SCHEMES["pipedream of micro-batches"][1:]))

    def test_mixed_precision_rounds_and_no_more(self):
        for label in IN_ALL_WAYS:
            scheme, m, reading = SCHEMES[label]
            for (precision, most), late in itertools.product(ROUNDED.items(), (None, lag(m))):
                tie = "same" if late is None else "late"
                with self.subTest(f"{label}, {precision}, {tie}"):
                    theirs = self.loop(m, reading, late=late)[0]
                    train = {"train": {"epochs": 1, "precision": precision, "checkpoint": {"every": 0}}}
                    changes = train if late is None else train | self.late
                    ours = self.trained(f"{label} {precision} {tie}", scheme, {"balance": BALANCE, "microbatches": m}, **changes)[0]
                    moved = theirs[EMBEDDING] - self.start[EMBEDDING]
                    error = ((ours[EMBEDDING] - theirs[EMBEDDING]).norm() / moved.norm()).item()
                    print(f"{label}, {precision}, {tie}: {error:.1e} of how far it has moved", flush=True)
                    self.assertLessEqual(error, most)

    def test_a_prediction_is_that_of_the_one_tensor(self):
        adam = {"optimizer": {"name": "adam", "lr": RATE, "eps": EPSILON}}
        for label, scheme, changes, options in (
            ("geometric", {"name": "spectrain", "velocity": "geometric"}, {}, {"moves": geometric}),
            ("lookahead", {"name": "spectrain", "velocity": "lookahead"}, {}, {"moves": lookahead}),
            ("pipeoptim", {"name": "pipeoptim"}, adam, {"adam": True, "moves": of_adam}),
            ("spectrain 1", {"name": "spectrain"}, adam, {"adam": True, "moves": of_adam}),
            ("corrected", {"name": "pipemare", "annealing": STEPS}, {}, {"moves": drift, "rate": annealed}),
        ):
            with self.subTest(label):
                reading = {
                    "pipeoptim": SCHEMES["pipeoptim"][2],
                    "corrected": lambda p: ((p.read, 0), (p.t, p.read - p.t)),
                }.get(label, SCHEMES["spectrain 1"][2])
                ours = self.trained("predicted " + label, scheme, {"balance": BALANCE}, **changes)
                self.compare("predicted, " + label, ours, self.loop(1, reading, **options))


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
