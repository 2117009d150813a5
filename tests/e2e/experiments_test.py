"""The experiment files of published papers, each as a whole in its `ci` profile: every scheme and every cut on made-up data.

Their results mean nothing; that they come about, and that tables and pictures can be made of them, is what is tested.
"""

import csv
import io
import re
import shutil

import harness
from harness import DATA, SOURCE_DIR

FOLDER = SOURCE_DIR / "experiments"
# Those at the top are for users to start from and have no profile for tests.
FILES = sorted(file for file in FOLDER.glob("*/**/*.yaml"))


def has_key(text, key):
    return re.search(rf"(?m)^{key}:", text) is not None


class Experiments(harness.EndToEnd):
    def pipewright_at_home(self, *arguments, **more):
        """With a home that has no data, whatever the user's has."""
        return self.pipewright(*arguments, environment={"HOME": str(self.folder / "home")}, **more)

    def run_all_of(self, file):
        text = file.read_text()
        self.assertTrue(has_key(text, "sweep"), f"{file} has no sweep")
        self.assertTrue(has_key(text, "  ci"), f"{file} has no profile ci")

        recipe = self.pipewright_at_home("check", file, code=DATA)
        self.assertRegex(recipe.err, r"dataset\.root|to be had from")

        small = [file, "--profile", "ci", "--out", "sw"]
        done = self.pipewright_at_home("sweep", *small, "--jobs", "2")
        runs = [harness.Run(path) for path in (self.folder / "sw").glob("*-*") if path.is_dir()]
        self.assertGreater(len(runs), 1)
        self.assertEqual([run.state() for run in runs], ["done"] * len(runs))

        page = self.pipewright_at_home("table", *small).out
        self.assertIn(f"{len(runs)} of {len(runs)} runs stand behind it", page)
        cells = self.pipewright_at_home("table", *small, "--format", "csv").out
        for cell in csv.DictReader(io.StringIO(cells)):
            self.assertEqual((cell["n"], cell["failed"], cell["missing"]), ("1", "0", "0"), done.err)
        if has_key(text, "  published"):
            self.assertRegex(page, r"\d published")
        if shutil.which("gnuplot") is not None:
            self.pipewright_at_home("plot", *small)
            self.assertNotEqual(list((self.folder / "sw/plots").glob("*.svg")), [])


def test_of(file):
    return lambda self: self.run_all_of(file)


for experiment in FILES:
    setattr(Experiments, f"test_{experiment.parent.name}_{experiment.stem}", test_of(experiment))


class Folder(harness.EndToEnd):
    def test_every_paper_has_its_files(self):
        papers = {file.parent.name for file in FILES}
        self.assertLessEqual({"pipeoptim", "gpipe_test", "torchgpipe", "interlocking"}, papers)


if __name__ == "__main__":
    harness.main()
