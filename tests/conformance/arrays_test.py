# SPDX-License-Identifier: Apache-2.0
"""Files that NumPy writes, trained on: the same bits as from a safetensors file of the same numbers."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy
import skips
from safetensors.numpy import save_file

EXPERIMENT = """\
dataset: {{name: tensors, {dataset}}}
loader: {{batch_size: 8}}
model: {{name: mlp, widths: [12, 8, 3]}}
loss: {{name: {loss}}}
optimizer: {{name: sgd, lr: 0.05}}
train: {{epochs: 2, precision: float64}}
"""
DATA = 3


class Arrays(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-arrays-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.runs = 0
        draw = numpy.random.default_rng(7)
        self.x = draw.standard_normal((60, 3, 4))
        self.classes = draw.integers(0, 3, 60)
        self.numbers = draw.standard_normal((60, 3))

    def program(self, dataset, out, loss="cross_entropy", code=0):
        (self.folder / "x.yaml").write_text(EXPERIMENT.format(dataset=dataset, loss=loss))
        command = [os.environ["PIPEWRIGHT_BINARY"], "run", "x.yaml", "--out", out]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def trained(self, dataset, out, loss="cross_entropy"):
        """What a training leaves: weights and losses."""
        self.program(dataset, out, loss)
        return tuple((self.folder / out / name).read_bytes() for name in ("final.safetensors", "steps.csv"))

    def expected(self, x, y, loss="cross_entropy"):
        save_file({"x": x, "y": y}, self.folder / "same.safetensors")
        self.runs += 1
        return self.trained("file: same.safetensors, split: 12", f"same-{self.runs}", loss)

    def test_npz_of_savez_plain_and_compressed(self):
        expected = self.expected(self.x, self.classes)
        numpy.savez(self.folder / "plain.npz", x=self.x, y=self.classes)
        numpy.savez_compressed(self.folder / "packed.npz", x=self.x, y=self.classes)
        for name in ("plain", "packed"):
            self.assertEqual(self.trained(f"file: {name}.npz, split: 12", name), expected)

    def test_npz_with_a_training_and_a_test_part(self):
        parts = {"x_train": self.x[:48], "y_train": self.classes[:48], "x_test": self.x[48:], "y_test": self.classes[48:]}
        numpy.savez(self.folder / "parts.npz", **parts)
        save_file({f"{name[2:]}.{name[0]}": value.copy() for name, value in parts.items()}, self.folder / "same.safetensors")
        self.assertEqual(self.trained("file: parts.npz", "parts"), self.trained("file: same.safetensors", "same"))

    def test_npy_of_every_type_and_order(self):
        for kind in ("<f2", "<f4", "<f8", "|u1", "|i1", "<i2", "|b1"):
            x = (self.x * 3).astype(kind)
            exact = x if kind[1] == "f" else x.astype("<f4")
            expected = self.expected(exact, self.classes)
            for order in ("C", "F"):
                for of_classes in ("<i8", "<i4", "<i2", "|i1", "|u1"):
                    numpy.save(self.folder / "x.npy", numpy.asarray(x, order=order))
                    numpy.save(self.folder / "y.npy", self.classes.astype(of_classes))
                    out = f"{kind[1:]}{order}{of_classes[1:]}"
                    with self.subTest(out):
                        self.assertEqual(self.trained("file: x.npy, target_file: y.npy, split: 12", out), expected)
                    if kind != "<f8":
                        break  # types of classes once

    def test_npy_of_every_version(self):
        expected = self.expected(self.x, self.classes)
        numpy.save(self.folder / "y.npy", self.classes)
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.folder / "x.npy", "wb") as file:
                numpy.lib.format.write_array(file, self.x, version=version)
            out = f"v{version[0]}"
            self.assertEqual(self.trained("file: x.npy, target_file: y.npy, split: 12", out), expected)

    def test_csv_of_savetxt_to_the_last_bit(self):
        flat = self.x.reshape(60, 12)
        expected = self.expected(flat, self.numbers, "mse")
        names = ",".join([f"x{i}" for i in range(12)] + ["a", "b", "c"])
        table = numpy.hstack([flat, self.numbers])
        numpy.savetxt(self.folder / "t.csv", table, fmt="%.17g", delimiter=",", header=names, comments="")
        dataset = "file: t.csv, target: [a, b, c], split: 12"
        self.assertEqual(self.trained(dataset, "csv", "mse"), expected)
        numpy.savetxt(self.folder / "t.csv", table, fmt="%.17e", delimiter=";")
        dataset = "file: t.csv, target: [13, 14, 15], separator: semicolon, split: 12"
        self.assertEqual(self.trained(dataset, "bare", "mse"), expected)

    def test_mean_squared_and_absolute_errors_are_numpys(self):
        """A learning rate of 0 and identity weights: the loss is a mean that NumPy computes, too."""
        target = self.numbers
        x = target + self.x[:, 0, :3]
        save_file({"x": x, "y": target}, self.folder / "same.safetensors")
        save_file({"0.weight": numpy.eye(3), "0.bias": numpy.zeros(3)}, self.folder / "eye.safetensors")
        for loss, mean in (("mse", lambda d: (d * d).mean()), ("l1", lambda d: abs(d).mean())):
            (self.folder / "x.yaml").write_text(
                EXPERIMENT.format(dataset="file: same.safetensors, split: 12", loss=loss)
                .replace("[12, 8, 3]", "[3, 3], weights: eye.safetensors").replace("lr: 0.05", "lr: 0")
                .replace("{batch_size: 8}", "{batch_size: 48, drop_last: false}"))
            done = subprocess.run([os.environ["PIPEWRIGHT_BINARY"], "run", "x.yaml", "--out", loss], cwd=self.folder,
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            names, row = [line.split(",") for line in (self.folder / loss / "epochs.csv").read_text().splitlines()[:2]]
            found = dict(zip(names, row))
            difference = self.x[:, 0, :3]
            whole = 48 * float(found["train_loss"]) + 12 * float(found["test_loss"])
            # 180 sums of float64, in another order
            self.assertAlmostEqual(whole / 60, mean(difference), delta=180 * 2**-52 * mean(difference))
            self.assertEqual(found["test_accuracy"], "")
            self.assertIn("test mae ", done.stderr)
            self.assertNotIn("accuracy", done.stderr)

    def test_what_is_never_loaded(self):
        numpy.save(self.folder / "y.npy", self.classes)
        for array, message in (
            (numpy.array([{"a": 1}] * 60, dtype=object), "Python objects"),
            (self.x.astype(">f8"), "big-endian"),
            (numpy.zeros(60, dtype=[("a", "<f8"), ("b", "<i4")]), "several fields"),
            (self.x.astype("<c16"), "'<c16'"),
            (numpy.array(["a"] * 60), "'<U1'"),
        ):
            numpy.save(self.folder / "x.npy", array, allow_pickle=True)
            error = self.program("file: x.npy, target_file: y.npy, split: 12", "wrong", code=DATA)
            self.assertIn(message, error)
            self.assertIn("x.npy: ", error)


if __name__ == "__main__":
    skips.main()
