# SPDX-License-Identifier: Apache-2.0
"""An imported module in every execution, precision and memory format, with probes, checkpoints and profiles."""

import contextlib
import csv
import io
import json
import math
import os

import graph_modules
import graph_training
import skips
import torch
import yaml
from graph_training import PIPEWRIGHT, Case, GraphTraining
from safetensors.torch import load_file
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Dropped(graph_modules.Residual):
    """A residual network with dropout of channels and of elements."""

    def __init__(self):
        super().__init__()
        self.layer1.append(nn.Dropout2d(0.2))
        self.layer2.append(nn.Dropout(0.1))


class Other(Dropped):
    """The same names and shapes."""

    def __init__(self):
        super().__init__()
        self.layer2[-1] = nn.Dropout(0.2)


class AddsOne(nn.Module):
    def forward(self, x):
        y = torch.exp(x)
        y += 1
        return y


class WritesOver(Dropped):
    def __init__(self):
        super().__init__()
        self.layer2[-1] = AddsOne()


class PreNorm(nn.Module):
    """A decoder of blocks that begin with a norm: at depth 2 a norm, which stays wide, and a product lie in one layer."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(66, 16)
        make = lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))  # noqa: E731
        self.blocks = nn.Sequential(make(), make())
        self.norm = nn.LayerNorm(16, bias=False)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x))


class FrozenEmbedding(PreNorm):
    """Its first layer has no parameter, and token ids as its input."""

    def __init__(self):
        super().__init__()
        self.embedding.requires_grad_(False)


class NormedEmbedding(PreNorm):
    """Its first layer has no parameters but those of a norm."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Sequential(nn.Embedding(66, 16), nn.LayerNorm(16))
        self.embedding[0].requires_grad_(False)


CASE = Case(Dropped, (3, 16, 16), batch=8, precision="float32")
CUT = {"stages": 4, "balance": "layers"}


# A narrow format rounds the weights, the inputs and the outputs of every layer, there and back, in each of four steps; sums
# are made in float32. Each of these roundings is at most as large as the one that response() makes, and they are independent:
# errors add up like the root of their number, and so does the same error of one step over the steps behind it.
ROUNDINGS = math.sqrt(3 * 2 * graph_training.STEPS)


def response(case, dtype):
    """What PyTorch's losses change by when each parameter begins one unit of the format in its last place away; at least
    by one unit in the last place of a loss.
    """

    def losses(begin):
        module = case.module().to(case.dtype)
        begin(module)
        torch.manual_seed(5)  # the same elements are dropped
        return graph_training.train(case, module, *case.data(case.batch * graph_training.STEPS))

    given, moved = losses(lambda module: None), losses(lambda module: graph_training.nudge(module, dtype))
    return max(torch.finfo(case.dtype).eps * max(given), *(abs(a - b) for a, b in zip(given, moved)))


class Runs(GraphTraining):
    def setUp(self):
        super().setUp()
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(CASE)
        self.write_data(*CASE.data(32), 16)

    def test_executions_give_the_same_bits(self):
        self.same_in_every_execution(CASE, CUT)

    def test_precisions_and_memory_formats_learn_the_same(self):
        """No loss of four steps moves by more than rounding lets it: see ROUNDINGS, and graph_training.roundings()."""
        wanted = self.trained("float32", CASE, pipeline=CUT)
        losses = self.column("float32", "steps.csv", "loss")
        sums = graph_training.roundings(CASE.module(), CASE.data(CASE.batch)[0].numel(), graph_training.STEPS)
        for name, near, changes in (
            ("bfloat16", ROUNDINGS * response(CASE, torch.bfloat16), {"train": {"precision": "bfloat16"}}),
            ("float16", ROUNDINGS * response(CASE, torch.float16), {"train": {"precision": "float16"}}),
            ("channels_last", sums * response(CASE, torch.float32), {"pipeline": CUT | {"memory_format": "channels_last"}}),
        ):
            with self.subTest(name):
                ours = self.trained(name, CASE, **({"pipeline": CUT} | changes))
                self.assertEqual(sorted(ours), sorted(wanted))
                far = max(abs(a - b) for a, b in zip(self.column(name, "steps.csv", "loss"), losses, strict=True))
                print(f"{name:20} {far:.1e} of {near:.1e}", flush=True)
                self.assertLessEqual(far, near)
                self.assertFalse(all(torch.equal(ours[each], wanted[each]) for each in ours), "another format changes bits")

    def test_layers_of_norms_and_of_constants_learn_the_same_in_narrow_formats(self):
        for make, depth in ((PreNorm, 2), (PreNorm, 1), (FrozenEmbedding, 1), (NormedEmbedding, 1)):
            case = Case(make, (6,), vocabulary=66, each=True, depth=depth, batch=8, precision="float32")
            with contextlib.redirect_stdout(io.StringIO()):
                self.import_case(case)
            self.write_data(*case.data(32), 16)
            wide = f"{make.__name__}-{depth}"
            self.trained(wide, case, pipeline={"stages": 2})
            losses = self.column(wide, "steps.csv", "loss")
            for narrow in ("bfloat16", "float16"):
                run = f"{wide}-{narrow}"
                with self.subTest(run):
                    near = ROUNDINGS * response(case, getattr(torch, narrow))
                    self.trained(run, case, pipeline={"stages": 2}, train={"precision": narrow})
                    self.do(PIPEWRIGHT, "check", f"{run}.yaml")
                    far = max(abs(a - b) for a, b in zip(self.column(run, "steps.csv", "loss"), losses, strict=True))
                    print(f"{run:28} {far:.1e} of {near:.1e}", flush=True)
                    self.assertLessEqual(far, near)

    def test_a_resumed_run_ends_with_the_same_bits(self):
        every = {"epochs": 3, "checkpoint": {"every": 1}}
        whole = self.trained("whole", CASE, pipeline=CUT, scheme={"name": "pipedream"}, train=every)
        self.trained("part", CASE, pipeline=CUT, scheme={"name": "pipedream"}, train=every | {"epochs": 2})
        self.do(PIPEWRIGHT, "run", "part", "--resume", "--set", "train.epochs=3")
        self.same(load_file(self.folder / "part" / "final.safetensors"), whole)

    def test_a_module_that_was_imported_anew_is_another_model(self):
        self.trained("part", CASE, pipeline=CUT, train={"epochs": 2, "checkpoint": {"every": 1}})
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(CASE, Other)
        self.assertIn("model.file", self.do(PIPEWRIGHT, "run", "part", "--resume", "--set", "train.epochs=3", code=2))

    def test_probes_measure_and_change_nothing(self):
        plain = self.trained("plain", CASE, pipeline=CUT, scheme={"name": "pipedream"})
        experiment = self.experiment(CASE, pipeline=CUT, scheme={"name": "pipedream"})
        names = ("weight_gap", "gradient_alignment", "sharpness")
        experiment["probes"] = [{"name": name, "every": 2} for name in names]
        (self.folder / "probed.yaml").write_text(json.dumps(experiment))
        self.do(PIPEWRIGHT, "run", "probed.yaml", "--out", "probed")
        self.same(load_file(self.folder / "probed" / "final.safetensors"), plain)
        with open(self.folder / "probed" / "probes.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["probe"] for row in rows}, set(names))
        gaps = [float(row["value"]) for row in rows if row["probe"] == "weight_gap" and row["stage"] == "0"]
        self.assertGreater(max(gaps), 0, "the first stage's weights are stale")

    def test_profiles_count_the_operations_that_pytorch_counts(self):
        (self.folder / "profiled.yaml").write_text(json.dumps(self.experiment(CASE, pipeline=CUT)))
        self.do(PIPEWRIGHT, "check", "profiled.yaml")
        x, _ = CASE.data(CASE.batch)
        with FlopCounterMode(display=False) as counter:
            CASE.module()(x)
        for device in ("cpu", "meta"):
            self.do(PIPEWRIGHT, "profile", "profiled.yaml", "--device", device, "--seconds", "1", "--out", f"{device}.yaml")
            profile = yaml.safe_load((self.folder / f"{device}.yaml").read_text())
            self.assertEqual(profile["samples"], CASE.batch)
            self.assertEqual(sum(layer["flops"] for layer in profile["layers"]), counter.get_total_flops())
            names = [layer["name"] for layer in profile["layers"]]
            self.assertEqual(names[0], "conv1")
            self.assertIn("layer1.0", names)
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(CASE, Other)
        old = ("--set", "pipeline.balance=memory", "--set", "pipeline.cut.profile=meta.yaml")
        said = self.do(PIPEWRIGHT, "check", "profiled.yaml", *old, code=2)
        self.assertIn("does not fit: it is of the same model with other options or an imported module that has changed", said)

    def test_a_layer_that_cannot_be_trained_is_named(self):
        """PyTorch cannot do it either: the exponential's result, which its gradient needs, is written over."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(CASE, WritesOver)
        (self.folder / "profiled.yaml").write_text(json.dumps(self.experiment(CASE, pipeline=CUT)))
        said = self.do(PIPEWRIGHT, "profile", "profiled.yaml", code=5)
        self.assertRegex(said, r"layer \d+, 'layer2\.\d+', cannot be trained: one of the variables needed for gradient")


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
