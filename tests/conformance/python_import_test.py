# SPDX-License-Identifier: Apache-2.0
"""import_model of the Python package: a live module is exported as tools/import_torch.py exports it, and is trained."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import skips
import torch
from safetensors.torch import save_file
from torch import nn

SOURCE = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).resolve()
sys.path.insert(0, str(SOURCE / "python"))

import pipewright_lab as pw

MODULE = """
import torch
from torch import nn

def make_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
"""
FILES = ("graph.json", "weights.safetensors")


def make_model():
    space = {}
    exec(MODULE, space)
    return space["make_model"]()


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, a, b):
        return self.last(a + b)


class ImportModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-import-")
        self.addCleanup(folder.cleanup)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.environ["PIPEWRIGHT_BINARY"] = str(Path(os.environ["PIPEWRIGHT_BINARY"]).resolve())
        os.chdir(folder.name)

    def test_it_writes_what_the_tool_writes(self):
        Path("net.py").write_text(MODULE)
        tool = [sys.executable, "-B", SOURCE / "tools/import_torch.py", "net.py:make_model", "--input", "1,8,8", "--out", "theirs"]
        subprocess.run(tool, check=True, capture_output=True)
        for name, example in (("tensor", torch.zeros(1, 1, 8, 8)), ("shape", (1, 8, 8))):
            pw.import_model(make_model(), example, name)
            for file in FILES:
                self.assertEqual((Path("theirs") / file).read_bytes(), (Path(name) / file).read_bytes())

    def test_what_it_returns_is_trained(self):
        section = pw.import_model(make_model(), torch.zeros(1, 1, 8, 8), "net")
        experiment = {"dataset": {"name": "digits"}, "model": section, "pipeline": {"stages": 2}}
        results = pw.run(experiment | {"optimizer": {"lr": 0.1}, "train": {"epochs": 3}}, out="r")
        (last,) = results.rows("runs")
        self.assertEqual("done", last["state"])
        self.assertGreater(last["test_accuracy"], 0.5)  # chance is a tenth

    def test_trained_weights_go_back_into_the_module(self):
        """Its loss on the test samples is then that of the run, but for rounding in float32."""
        module = make_model()
        section = pw.import_model(module, torch.zeros(1, 1, 8, 8), "net")
        data = {"x": torch.randn(24, 1, 8, 8), "y": torch.arange(24) % 10}
        save_file({f"{part}.{name}": tensor.clone() for part in ("train", "test") for name, tensor in data.items()}, "data.safetensors")
        experiment = {"dataset": {"name": "tensors", "file": "data.safetensors"}, "model": section, "pipeline": {"stages": 2}}
        run = pw.run(experiment | {"loader": {"batch_size": 8}, "optimizer": {"lr": 0.1}}, out="r")
        before = nn.functional.cross_entropy(module.eval()(data["x"]), data["y"]).item()
        run.load_weights(module)
        after = nn.functional.cross_entropy(module(data["x"]), data["y"]).item()
        (epoch,) = run.rows("epochs")[-1:]
        self.assertAlmostEqual(after, epoch["test_loss"], delta=1e-5)
        self.assertNotAlmostEqual(before, after, delta=1e-3)
        other = pw.run({"dataset": {"name": "digits"}, "train": {"epochs": 1}}, out="other")
        with self.assertRaisesRegex(ValueError, "is none that import_model"):
            other.load_weights(module)

    def test_types_and_outputs_are_those_of_the_module(self):
        section = pw.import_model(nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 2)), torch.zeros(2, 3, dtype=torch.int64), "net")
        self.assertIn('"vocabulary": 7', (Path(section["file"]) / "graph.json").read_text())

    def test_several_inputs_have_the_names_of_the_forward(self):
        section = pw.import_model(Two(), {"a": torch.zeros(2, 4), "b": torch.zeros(2, 4)}, "net")
        graph = json.loads((Path(section["file"]) / "graph.json").read_text())
        self.assertEqual((["b"], [[4]]), tuple([each[key] for each in graph["further_inputs"]] for key in ("name", "shape")))

    def test_what_cannot_be_imported_is_an_error_in_one_line(self):
        with self.assertRaisesRegex(pw.PipewrightError, "^the module's forward takes a, b; expected .* also for b") as caught:
            pw.import_model(Two(), (4,), "net")
        self.assertEqual(2, caught.exception.code)
        self.assertFalse(Path("net").exists())

    def test_remarks_are_warnings(self):
        module = make_model()
        module[1].weight.requires_grad_(False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pw.import_model(module, (1, 8, 8), "net")
        self.assertIn("require no gradient are left as they are: 1", "".join(str(each.message) for each in caught if each.filename == __file__))


if __name__ == "__main__":
    skips.main()
