# SPDX-License-Identifier: Apache-2.0
"""One step of a model in the program and in PyTorch, in float64, for zoo.py and zoo_test.py."""

import contextlib
import io
import json
import subprocess

import graph_training
import torch
import zoo_models
from graph_training import loss_of, outputs
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode

RATE = 2.0**-10  # a weight moves by this part of its gradient, which then has an error of 1,024 roundings of a weight
LEAST = 1e-10  # a part in float32, or another operator, is farther away; sums in another order are far nearer


class InFloat64(TorchDispatchMode):
    """Models that compute a part in float32 by name compute it in float64, as the laboratory does."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        def wide(value):
            return torch.float64 if value is torch.float32 else value

        return function(*map(wide, args), **{name: wide(value) for name, value in (kwargs or {}).items()})


class Trial(graph_training.GraphTraining):
    """One step of one model in the program, and in PyTorch."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def gradients(self, case, x, y, nudged=False):
        module = zoo_models.without_drawing(case.module()).double().train()
        if nudged:
            graph_training.nudge(module)
        with InFloat64():
            loss_of(outputs(module, x), y).backward()
        return {name: each.grad for name, each in module.named_parameters() if each.grad is not None}

    def imported(self, case):
        module = zoo_models.without_drawing(case.module())
        with contextlib.redirect_stdout(io.StringIO()):
            said = graph_training.import_torch.import_module(module, case.described(), self.folder / "net")
        self.remark = "; ".join(line for line in said if "backward of its own" in line)
        return module, int(said[0].split(": ")[1].split()[0])

    def compared(self, case):
        """(parameters, operators, how far gradients are apart, how far they may be)."""
        module, operators = self.imported(case)
        x, y = case.data(case.batch)
        self.write_data(x, y)
        options = {"optimizer": {"name": "sgd", "lr": RATE, "momentum": 0.0}, "pipeline": {"stages": 1}}
        experiment = self.experiment(case, **options)
        (self.folder / "one.yaml").write_text(json.dumps(experiment))
        self.program("check")
        self.program("run", "--out", "one")
        final = load_file(self.folder / "one" / "final.safetensors")
        theirs = self.gradients(case, x, y)
        moved = self.gradients(case, x, y, nudged=True)
        before = {name: each.detach().double() for name, each in module.named_parameters()}
        if missing := [name for name in theirs if name not in final and theirs[name].abs().max() > 0]:
            raise AssertionError(f"trains no {missing[0]}")
        names = [name for name in theirs if name in final]
        far = max(graph_training.difference((before[name] - final[name]) / RATE, theirs[name]) for name in names)
        response = max(graph_training.difference(moved[name], theirs[name]) for name in names)
        elements = max(each.numel() for each in graph_training.named(x).values())
        limit = max(LEAST, graph_training.roundings(module, elements, 1) * response)
        return sum(each.numel() for each in module.parameters()), operators, far, limit

    def program(self, command, *more):
        done = subprocess.run([graph_training.PIPEWRIGHT, command, "one.yaml", *more], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise AssertionError(f"{command}: {said[-1] if said else done.returncode}")
