# SPDX-License-Identifier: Apache-2.0
"""One tiny run on the real files of CIFAR-10 and Fashion-MNIST, where they are at hand."""


import harness
import skips
from harness import CNN, DATA_DIR, changed


class RealData(harness.EndToEnd):
    def root(self, name):
        folder = DATA_DIR / name
        if not folder.is_dir():
            skips.lacks("real-data", f"there is no folder {folder}")
        return str(folder)

    def check(self, dataset, root, **model):
        experiment = changed(
            CNN,
            {
                "dataset": {"name": dataset, "root": self.root(root)},
                "model": {"name": "cnn", "width": 0.25} | model,
                "loader": {"batch_size": 16, "limit_train": 64, "limit_test": 64},
                "scheme": {"name": "spectrain"},
                "train.epochs": 1,
            },
        )
        serial = self.train(experiment, "serial")
        self.assertEqual(len(serial.rows("steps.csv")), 4)
        self.assertRegex(serial.rows("epochs.csv")[0]["test_accuracy"], r"^0(\.\d+)?$")
        self.assert_same_weights(
            serial, self.train(experiment, "threads", "--set", "pipeline.execution=threads")
        )

    def test_cifar10(self):
        self.check("cifar10", "cifar-10-batches-bin")

    def test_fashion_mnist(self):
        self.check("fashion_mnist", "fashion-mnist", channels=1, size=28)


if __name__ == "__main__":
    harness.main()
