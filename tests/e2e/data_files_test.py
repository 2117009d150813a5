# SPDX-License-Identifier: Apache-2.0
"""Data sets of files: what is missing, truncated, of another format or contradictory is exit 3."""

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
