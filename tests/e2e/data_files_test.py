# SPDX-License-Identifier: Apache-2.0
"""Data sets of files: what is missing, truncated, of another format or contradictory is exit 3."""

import csv
import math
import struct
import zipfile

import harness
import safetensors
from harness import DATA, EXPERIMENT, changed
from safetensors import tensor

EXPERIMENT_OF_TENSORS = {
    "dataset": {"name": "tensors", "file": "data.safetensors"},
    "loader": {"batch_size": 4},
    "model": {"name": "mlp", "widths": [3, 4, 2]},
    "train": {"epochs": 1},
}


def samples():
    """12 training and 4 test samples of 3 numbers and 2 classes."""
    made = {}
    for name, count in (("train", 12), ("test", 4)):
        made[f"{name}.x"] = tensor("F32", [count, 3], [0.1 * i for i in range(3 * count)])
        made[f"{name}.y"] = tensor("I64", [count], [i % 2 for i in range(count)])
    return made


class Tensors(harness.EndToEnd):
    def refuse(self, content, pattern, code=DATA):
        """`check` and `run` name the file; nothing is left behind."""
        self.write(
            "data.safetensors", content if isinstance(content, bytes) else safetensors.encoded(content)
        )
        self.write("x.yaml", EXPERIMENT_OF_TENSORS)
        for command in (("check", "x.yaml"), ("run", "x.yaml", "--out", "out")):
            done = self.pipewright(*command, code=code)
            self.assert_errors(done, pattern)
            self.assertIn("data.safetensors: " if code == DATA else "x.yaml:", done.err)
        self.assertFalse((self.folder / "out").exists())

    def test_whole_data_are_trained_on(self):
        self.write("data.safetensors", safetensors.encoded(samples()))
        run = self.train(EXPERIMENT_OF_TENSORS, "out")
        self.assertEqual(len(run.rows("steps.csv")), 3)

    def test_floating_data_are_cast_to_the_precision_of_the_run(self):
        double = {
            name: tensor("F64" if name.endswith("x") else "I32", t.shape, safetensors.values(t))
            for name, t in samples().items()
        }
        self.write("data.safetensors", safetensors.encoded(double))
        for precision, dtype in (("float32", "F32"), ("float64", "F64")):
            run = self.train(changed(EXPERIMENT_OF_TENSORS, {"train.precision": precision}), precision)
            self.assertEqual({t.dtype for t in run.tensors().values()}, {dtype})

    def test_a_missing_tensor(self):
        for name in samples():
            with self.subTest(name):
                self.refuse(
                    {key: t for key, t in samples().items() if key != name},
                    rf"no tensor '{name}'.*train\.x, train\.y, test\.x and test\.y are needed",
                )

    def test_counts_that_differ(self):
        self.refuse(
            samples() | {"train.y": tensor("I64", [11], [0] * 11)},
            r"'train\.y' has shape \[11\], must be \[12\]",
        )
        self.refuse(
            samples() | {"test.x": tensor("F32", [4, 2], [0] * 8)},
            r"'test\.x' has samples of shape \[2\], train\.x of \[3\]",
        )

    def test_no_samples(self):
        self.refuse(
            samples() | {"test.x": tensor("F32", [0, 3], []), "test.y": tensor("I64", [0], [])},
            r"'test\.x' has shape \[0, 3\]",
        )

    def test_negative_labels(self):
        self.refuse(
            samples() | {"test.y": tensor("I64", [4], [0, 1, -1, 0])},
            r"'test\.y' record 2 .*negative label -1",
        )

    def test_labels_beyond_the_classes_of_the_model(self):
        self.refuse(
            samples() | {"test.y": tensor("I64", [4], [0, 1, 2, 0])},
            r"^x\.yaml:\d+:\d+: .*3 classes, the model only 2",
            EXPERIMENT,
        )

    def test_wrong_types(self):
        self.refuse(
            samples() | {"train.x": tensor("I32", [12, 3], [0] * 36)},
            r"'train\.x' has type Int, must be floating",
        )
        self.refuse(
            samples() | {"train.y": tensor("F32", [12], [0] * 12)},
            r"'train\.y' has type Float, must be integers",
        )

    def test_channels_that_are_last_are_named(self):
        for size, shape in ((3, "3×6×6"), (1, "1×6×6")):
            made = {}
            for name, count in (("train", 8), ("test", 4)):
                made[f"{name}.x"] = tensor("F32", [count, 6, 6, size], [0.5] * (count * 36 * size))
                made[f"{name}.y"] = tensor("I64", [count], [i % 2 for i in range(count)])
            self.write("data.safetensors", safetensors.encoded(made))
            for model in ({"name": "cnn"}, {"name": "cnn", "channels": size, "size": 6}):
                self.write("x.yaml", changed(EXPERIMENT_OF_TENSORS, {"model": model}))
                done = self.pipewright("check", "x.yaml", code=EXPERIMENT)
                self.assertIn(
                    f"whose channels seem to be last; expected {shape}, which x.transpose(0, 3, 1, 2) makes of them", done.err
                )

    def test_a_truncated_file(self):
        whole = safetensors.encoded(samples())
        for length in (0, 7, 8, 50, len(whole) - 1):
            with self.subTest(length):
                self.refuse(whole[:length], r"data\.safetensors: ")

    def test_a_file_of_another_format(self):
        for content in (
            b"\x1f\x8b" + bytes(100),
            b"epoch,minibatch,loss\n0,0,1\n",
            b"PK\x03\x04" + bytes(50),
            bytes(1000),
        ):
            with self.subTest(content[:8]):
                self.refuse(content, r"data\.safetensors: ")

    def test_a_file_that_is_not_there(self):
        self.write("x.yaml", EXPERIMENT_OF_TENSORS)
        self.assert_errors(
            self.pipewright("check", "x.yaml", code=DATA),
            rf"^{self.folder}/data\.safetensors: .*no such file",
        )


def npy(descr, shape, values):
    """A file of NumPy's, version 1."""
    code = {"<f8": "d", "<f4": "f", "<i8": "q"}[descr]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class Formats(harness.EndToEnd):
    """60 samples of 3 numbers, in four formats."""

    INPUTS = [math.sin(1.7 * i) for i in range(180)]
    CLASSES = [(7 * i) % 3 for i in range(60)]
    NUMBERS = [x - 2 * y for x, y in zip(INPUTS[::3], INPUTS[1::3])]

    def write_all(self, y, descr):
        code = {"<f8": "F64", "<i8": "I64"}[descr]
        made = {"x": tensor("F64", [60, 3], self.INPUTS), "y": tensor(code, [60], y)}
        self.write("data.safetensors", safetensors.encoded(made))
        self.write("x.npy", npy("<f8", (60, 3), self.INPUTS))
        self.write("y.npy", npy(descr, (60,), y))
        with zipfile.ZipFile(self.folder / "data.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.folder / "x.npy", "x.npy")
            archive.write(self.folder / "y.npy", "y.npy")
        rows = [[*self.INPUTS[3 * i : 3 * i + 3], y[i]] for i in range(60)]
        self.write("data.csv", "a,b,c,y\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows))

    def trained(self, dataset, out, loss):
        experiment = {
            "dataset": {"name": "tensors", "split": 0.2, "seed": 3, **dataset},
            "loader": {"batch_size": 8},
            "loss": {"name": loss},
            "optimizer": {"name": "sgd", "lr": 0.05},
            "train": {"epochs": 2, "precision": "float64"},
        }
        self.write("x.yaml", experiment)
        done = self.pipewright("run", "x.yaml", "--out", out)
        left = [(self.folder / out / name).read_bytes() for name in ("final.safetensors", "steps.csv")]
        return left, done.err

    def test_all_formats_give_the_same_bits(self):
        for y, descr, loss in (
            (self.CLASSES, "<i8", "cross_entropy"),
            (self.NUMBERS, "<f8", "mse"),
            (self.NUMBERS, "<f8", "l1"),
        ):
            self.write_all(y, descr)
            files = ({"file": "data.safetensors"}, {"file": "data.npz"}, {"file": "data.csv"})
            files += ({"file": "x.npy", "target_file": "y.npy"}, {"file": "data.csv", "columns": ["a", 2, 3], "target": "y"})
            found = [self.trained(file, f"{loss}-{i}", loss)[0] for i, file in enumerate(files)]
            for each in found[1:]:
                self.assertEqual(each, found[0])

    def test_real_targets_have_no_accuracy(self):
        self.write_all(self.NUMBERS, "<f8")
        _, said = self.trained({"file": "data.csv"}, "out", "mse")
        self.assertRegex(said, r"(?m)^epoch 2/2  loss [\d.]+  test loss [\d.]+  test mae [\d.]+  ")
        with (self.folder / "out/epochs.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["test_accuracy"] for row in rows], ["", ""])
        self.assertGreater(float(rows[0]["test_mae"]), float(rows[1]["test_mae"]))
        wrong = self.pipewright("check", "x.yaml", "--set", "metrics=[accuracy]", code=EXPERIMENT)
        self.assert_errors(wrong, "the metric accuracy rates classes, .* expected mae")
        wrong = self.pipewright("check", "x.yaml", "--set", "loss.name=cross_entropy", code=DATA)
        self.assert_errors(wrong, r"has the target .*; for real-valued targets set loss: \{name: mse\}")
        self.pipewright("profile", "x.yaml", "--device", "meta")
        self.write("s.yaml", "extends: x.yaml\nsweep: {grid: {scheme.name: [pipedream, spectrain]}}\n")
        swept = self.pipewright("sweep", "s.yaml").err
        self.assertRegex(swept, r"\[2/2\] \w+: test_loss [\d.]+ \(")
        table = self.pipewright("table", "s.yaml").out
        self.assertIn("test_loss", table)
        self.assertNotIn("accuracy", swept + table)

    def test_every_execution_and_replicas_compute_the_same(self):
        self.write_all(self.NUMBERS, "<f8")
        self.trained({"file": "data.npz"}, "serial", "mse")
        options = "pipeline={stages: 2, microbatches: 2, replicas: 2, execution: %s}"
        for name in ("serial", "threads"):
            self.pipewright("run", "x.yaml", "--out", f"2{name}", "--set", options % name, "--set", "scheme.name=gpipe")
        read = [(self.folder / f"2{name}/final.safetensors").read_bytes() for name in ("serial", "threads")]
        self.assertEqual(read[0], read[1])

    def test_damaged_files_are_exit_3(self):
        self.write_all(self.CLASSES, "<i8")
        whole = {name: (self.folder / name).read_bytes() for name in ("data.npz", "data.csv", "x.npy")}
        for name, dataset in (("data.npz", {}), ("data.csv", {}), ("x.npy", {"target_file": "y.npy"})):
            for content in (b"", whole[name][:-9], b"\0" * 300, b"x,y\n1,2,3\n"):
                with self.subTest(f"{name} {content[:8]}"):
                    self.write(name, content)
                    self.write("x.yaml", {"dataset": {"name": "tensors", "file": name, "split": 0.2, **dataset}})
                    self.assert_errors(self.pipewright("check", "x.yaml", code=DATA), rf"{name}")


class Downloads(harness.EndToEnd):
    """Data sets whose official files a user has to fetch."""

    CASES = {
        "cifar10": ("cnn", {}, "data_batch_1.bin", "cifar-10-binary.tar.gz", 30_730_000),
        "fashion_mnist": (
            "cnn",
            {"channels": 1, "size": 28},
            "train-images-idx3-ubyte",
            "fashion-mnist",
            47_040_016,
        ),
    }

    def test_a_missing_folder_names_the_file_and_where_to_get_it(self):
        for name, (model, options, file, origin, _) in self.CASES.items():
            with self.subTest(name):
                self.write(
                    "x.yaml",
                    {"dataset": {"name": name, "root": "nowhere"}, "model": {"name": model} | options},
                )
                done = self.pipewright("run", "x.yaml", "--out", "out", code=DATA)
                self.assert_errors(
                    done, rf"^{self.folder}/nowhere/{file}: no such file.*{origin}.*dataset\.root"
                )
                self.assertFalse((self.folder / "out").exists())

    def test_a_truncated_file(self):
        for name, (model, options, file, _, size) in self.CASES.items():
            for suffix, content in (("", bytes(1000)), (".gz", b"\x1f\x8b\x08" + bytes(20))):
                with self.subTest(name + suffix):
                    root = f"{name}{suffix}"
                    self.write(f"{root}/{file}{suffix}", content)
                    self.write(
                        "x.yaml",
                        {"dataset": {"name": name, "root": root}, "model": {"name": model} | options},
                    )
                    done = self.pipewright("check", "x.yaml", code=DATA)
                    self.assert_errors(done, rf"^{self.folder}/{root}/{file}{suffix}: ")


if __name__ == "__main__":
    harness.main()
