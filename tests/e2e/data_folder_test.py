# SPDX-License-Identifier: Apache-2.0
"""PIPEWRIGHT_DATA stands for ~/data wherever that is written or meant."""


import fetch_test
import harness
import skips
from harness import CNN, DATA, DATA_DIR, EXPERIMENT, changed

TEXT = {
    "dataset": {"name": "text", "tokens": 8},
    "loader": {"batch_size": 8},
    "model": {"name": "gpt", "layers": 1, "width": 8, "heads": 1},
    "pipeline": {"balance": "layers"},
    "train": {"epochs": 1},
}


class DataFolder(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        (self.folder / "home").mkdir()
        self.environment = {"HOME": str(self.folder / "home"), "PIPEWRIGHT_DATA": str(self.folder / "sets")}

    def here(self, *arguments, **more):
        return self.pipewright(*arguments, environment=self.environment, **more)

    def test_a_data_set_is_looked_for_there(self):
        self.write("x.yaml", TEXT)
        self.assertIn(f"{self.folder}/sets/text", self.here("check", "x.yaml", code=DATA).err)
        self.write("sets/text/input.txt", "to be or not to be, that is the question. " * 40)
        self.assertRegex(self.here("check", "x.yaml").out, r"data +\d+ training and \d+ test samples")
        self.here("run", "x.yaml", "--quiet", "--out", "run")
        self.assertIn(f"root: {self.folder}/sets/text\n", (self.folder / "run/experiment.yaml").read_text())

    def test_so_it_is_where_a_file_writes_the_home_folder(self):
        self.write("sets/mine/input.txt", "to be or not to be, that is the question. " * 40)
        self.write("x.yaml", changed(TEXT, {"dataset.root": "~/data/mine"}))
        self.here("check", "x.yaml")
        del self.environment["PIPEWRIGHT_DATA"]
        self.assertIn(f"{self.folder}/home/data/mine", self.here("check", "x.yaml", code=DATA).err)

    def test_doctor_and_describe_say_where_it_is(self):
        self.write("sets/fashion-mnist/x", "")
        line = rf"(?m)^data +ok +{self.folder}/sets \(\$PIPEWRIGHT_DATA, instead of ~/data\): fashion-mnist$"
        self.assertRegex(self.here("doctor").out, line)
        page = self.here("describe", "dataset", "fashion_mnist").out
        self.assertIn(f"~/data is {self.folder}/sets, as PIPEWRIGHT_DATA says.", page)
        del self.environment["PIPEWRIGHT_DATA"]
        self.assertRegex(self.here("doctor").out, rf"(?m)^data +absent +{self.folder}/home/data is not there")
        page = self.here("describe", "dataset", "fashion_mnist").out
        self.assertIn(f"~/data is {self.folder}/home/data; the variable PIPEWRIGHT_DATA names another", page)

    def test_what_is_to_be_got_by_hand_goes_there(self):
        self.assertIn(f"into {self.folder}/sets/imagenet", self.here("fetch", "imagenet_folder", code=EXPERIMENT).err)

    def test_real_files_are_found(self):
        if not (DATA_DIR / "fashion-mnist").is_dir():
            skips.lacks("real-data", f"there is no folder {DATA_DIR}/fashion-mnist")
        (self.folder / "sets").symlink_to(DATA_DIR)
        small = {"channels": 1, "size": 28, "width": 0.25}
        self.write("x.yaml", changed(CNN, {"dataset": {"name": "fashion_mnist"}, "model": {"name": "cnn"} | small}))
        self.assertIn("96 training and 32 test samples", self.here("check", "x.yaml").out)


class Fetched(fetch_test.Fetch):
    def test_a_download_goes_there(self):
        server = self.serve({"/small.bin": fetch_test.SMALL})
        sets = {"PIPEWRIGHT_DATA": str(self.folder / "sets")}
        self.fetch("small", "--address", f"{server.address}/small.bin", environment=sets)
        self.assertEqual((self.folder / "sets/small/small.bin").read_bytes(), fetch_test.SMALL)


if __name__ == "__main__":
    harness.main()
