# SPDX-License-Identifier: Apache-2.0
"""A file with a sweep, given to a command that takes one experiment: the base, which it says, or one --point."""

import json

import harness
from harness import EXPERIMENT, FINE, MLP, SOURCE_DIR, changed

QUICKSTART = SOURCE_DIR / "experiments/quickstart.yaml"
SWEEP = changed(
    MLP,
    {
        "name": "two",
        "sweep": {
            "points": [
                {"label": "PD", "scheme": {"name": "pipedream"}},
                {"label": "GP", "scheme": {"name": "gpipe"}, "pipeline.microbatches": 4},
            ],
            "grid": {"optimizer.lr": [0.1, 0.02], "train.seed": [1, 2]},
        },
        "table": {"rows": "label", "columns": "optimizer.lr"},
    },
)
BASE = "the file has a sweep of 8 points; this is its base, --point chooses a point"


class Point(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("two.yaml", SWEEP)

    def test_every_command_that_takes_the_base_says_so(self):
        for command in (
            ("schedule", "two.yaml"),
            ("simulate", "two.yaml", "--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml"),
            ("profile", "two.yaml", "--repetitions", "1"),
            ("run", "two.yaml", "--out", "base"),
            ("run", "two.yaml", "--out", "threads", "--set", "pipeline.execution=threads"),
        ):
            with self.subTest(command=command[0]):
                self.assertEqual(self.pipewright(*command).lines.count(BASE), 1)
        self.write("plain.yaml", MLP)
        self.assertEqual(self.pipewright("schedule", "plain.yaml").err, "")
        self.assertEqual(self.pipewright("run", "two.yaml", "--out", "quiet", "--quiet").err, "")

    def chosen(self, name, file="two.yaml", *arguments):
        return self.pipewright("schedule", file, "--point", name, *arguments).lines

    def test_a_point_is_called_by_its_number_title_or_parts(self):
        for name in ("7", "GP lr 0.02 seed 1", "GP, lr 0.02, seed 1", "seed=1 GP optimizer.lr=0.02", "gpipe, lr 0.02, seed 1"):
            with self.subTest(name=name):
                self.assertEqual(self.chosen(name), ["point 7 of 8: GP lr 0.02 seed 1"])

    def test_of_points_that_differ_in_their_seed_the_first_is_meant(self):
        self.assertEqual(
            self.chosen("spectrain v1, stages 4", QUICKSTART)[0],
            "point 61 of 93: spectrain v1 stages 4 seed 1 (2 more with other seeds)",
        )

    def test_it_is_that_point(self):
        page = self.pipewright("schedule", QUICKSTART, "--point", "spectrain v1, stages 4").out
        self.assertRegex(page, r"(?m)^worker 3 ")
        self.assertEqual(self.chosen("gpipe, lr 0.02", "two.yaml", "--csv", "point.csv")[0][:9], "point 7 o")
        self.pipewright("schedule", "two.yaml", "--set", "scheme={name: gpipe}", "--set", "pipeline.microbatches=4",
                        "--csv", "same.csv")
        self.assertEqual((self.folder / "point.csv").read_text(), (self.folder / "same.csv").read_text())

    def test_check_takes_one_too(self):
        done = self.pipewright("check", "two.yaml", "--point", "PD, lr 0.1")
        self.assertEqual(done.lines, ["point 1 of 8: PD lr 0.1 seed 1 (1 more with other seeds)"])
        self.assertRegex(done.out, r"schedule +valid: 2 workers")
        for title in ("PD lr 0.1", "GP lr 0.02"):  # what `check` prints of all can be given to it
            self.assertIn(title, self.pipewright("check", "two.yaml").out)
            self.pipewright("check", "two.yaml", "--point", title)

    def test_a_name_that_fits_none_or_several_is_an_error_with_the_nearest(self):
        def refused(name, file="two.yaml"):
            return self.pipewright("schedule", file, "--point", name, code=EXPERIMENT)

        self.assert_errors(refused("PD, lr 0.3"), r"^--point: 'PD, lr 0\.3' is no point of the sweep: expected a number from 1 to 8 .*'PD lr 0\.1 seed 1'")
        self.assert_errors(refused("GP"), r"^--point: 'GP' fits 4 points of the sweep: 'GP lr 0\.1 seed 1', 'GP lr 0\.02 seed 1'")
        self.assert_errors(refused("GO"), r"a name such as 'GP lr 0\.1 seed 1', ")
        for name in ("0", "9", "seed"):
            self.assert_errors(refused(name), "is no point of the sweep: expected a number from 1 to 8 ")
        self.write("plain.yaml", MLP)
        self.assert_errors(refused("1", "plain.yaml"), "--point: '1' chooses nothing: the file has no sweep")

    def test_a_run_of_a_point_is_the_sweeps(self):
        done = self.pipewright("run", "two.yaml", "--point", "GP, lr 0.02, seed 2")
        self.assertEqual(done.lines[0], "point 8 of 8: GP lr 0.02 seed 2")
        (run,) = (harness.Run(path.parent) for path in (self.folder / "runs/two").glob("*/run.json"))
        self.assertTrue(run.path.name.startswith("GP-"))
        self.assertEqual(json.loads(run.bytes("point.json"))["varied"]["train.seed"], 2)
        weights, started = run.bytes(), json.loads(run.bytes("run.json"))["started"]
        swept = self.pipewright("sweep", "two.yaml", "--resume")
        self.assertIn("1 of 8 runs is done already", swept.err)
        self.assertEqual((weights, started), (run.bytes(), json.loads(run.bytes("run.json"))["started"]))
        self.assertEqual(len(list((self.folder / "runs/two").glob("*/run.json"))), 8)
        self.assertIn("; from 8 runs", self.pipewright("table", "two.yaml").out)

    def test_it_goes_on_where_it_was_and_elsewhere_if_told_so(self):
        self.pipewright("run", "two.yaml", "--point", "1", "--out", "one", "--quiet")
        self.assertEqual(harness.Run(self.folder / "one").state(), "done")
        self.pipewright("run", "two.yaml", "--point", "1", "--out", "one", "--resume", code=FINE)


if __name__ == "__main__":
    harness.main()
