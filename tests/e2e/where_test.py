# SPDX-License-Identifier: Apache-2.0
"""A run in the folder of a sweep is named by its settings, for every command that takes the folder of a run."""

import json

import harness
from harness import EXPERIMENT, FINE, MLP

SWEEP = MLP | {
    "name": "two",
    "output": {"steps": True, "trace": True},
    "pipeline": {"stages": 2, "execution": "threads"},
    "train": {"epochs": 2},
    "probes": [{"name": "sharpness", "every": 4}],
    "sweep": {"grid": {"scheme.name": ["gpipe", "pipedream"], "train.seed": [1, 2]}},
}
ONE = "scheme.name=pipedream,seed=2"


class Where(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("two.yaml", SWEEP)
        self.pipewright("sweep", "two.yaml", "--out", "x")

    def said(self, *arguments, code=FINE):
        done = self.pipewright(*arguments, code=code)
        return done.out if code == FINE else done.err

    def folder_of(self, settings):
        return self.said("list", "x", "--where", settings).strip()

    def settings_in(self, folder):
        run = json.loads((self.folder / folder / "point.json").read_text())["varied"]
        return run["scheme.name"], run["train.seed"]

    def test_a_run_is_found_by_these_settings_or_by_what_list_says(self):
        for settings in (ONE, "seed=2,scheme=pipedream", "train.seed=2.0,scheme.name=pipedream,state=done"):
            self.assertEqual(("pipedream", 2), self.settings_in(self.folder_of(settings)), settings)
        lines = [line.split() for line in self.said("list", "x").splitlines()]
        self.assertEqual(4, len(lines))
        for folder, state, settings in lines:
            self.assertEqual("done", state)
            self.assertEqual(folder, self.folder_of(settings))

    def test_runs_of_a_sweep_are_found_beside_a_run_of_its_file(self):
        self.pipewright("run", "two.yaml", "--out", "x")
        beside = self.pipewright("list", "x")
        self.assertEqual(4, len(beside.out.splitlines()))
        self.assertEqual("note: the run x itself is left out; it lies beside 4 runs of a sweep\n", beside.err)
        self.assertEqual(("pipedream", 2), self.settings_in(self.folder_of(ONE)))
        self.assertIn("4 runs: 4 done", self.said("watch", "x"))
        self.pipewright("export", "x", "--output", "all.csv")
        self.assertEqual(4, len({line.split(",")[0] for line in (self.folder / "all.csv").read_text().splitlines()[1:]}))

    def test_what_is_not_one_run_is_refused_in_one_line(self):
        for settings, why in (
            ("scheme=gpipe", "2 runs have scheme.name=gpipe; they differ in train.seed (1, 2)"),
            ("seed=3", "no run has train.seed=3; its values are 1, 2"),
            ("sed=3", "no run has an option 'sed'"),
        ):
            self.assertEqual(f"--where: {why}\n", self.said("list", "x", "--where", settings, code=EXPERIMENT))
        self.assertIn("two.yaml: is no folder", self.said("report", "two.yaml", "--where", ONE, code=EXPERIMENT))
        self.assertIn("--where is given 2 times", self.said("timeline", "x", "--where", ONE, "--where", ONE, code=EXPERIMENT))

    def test_commands_that_take_a_run_do_so_of_this_one(self):
        run = self.folder_of(ONE)
        both = ("compare", "x", "--where", "scheme=gpipe,seed=2", "--where", ONE)
        self.assertIn('scheme.name "gpipe" → "pipedream"', self.said(*both))
        self.assertIn(run, self.said(*both))
        self.assertEqual(self.said("timeline", run), self.said("timeline", "x", "--where", ONE))
        self.assertIn("1 run: 1 done", self.said("watch", "x", "--where", ONE))
        self.said("report", "x", "--where", ONE, "--output", "one.html")
        self.assertNotIn("gpipe-", (self.folder / "one.html").read_text())
        self.said("export", "x", "--where", ONE, "--output", "one.csv")
        self.assertEqual({"pipedream-2"}, {line[:11] for line in (self.folder / "one.csv").read_text().splitlines()[1:]})
        point = ("two.yaml", "--point", "pipedream, seed 2")
        self.assertEqual(self.said("stability", *point, "--run", run), self.said("stability", *point, "--run", "x", "--where", ONE))
        self.said("run", "x", "--where", ONE, "--resume", "--set", "train.epochs=3")
        self.assertEqual(4, len((self.folder / run / "epochs.csv").read_text().splitlines()))


if __name__ == "__main__":
    harness.main()
