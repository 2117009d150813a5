# SPDX-License-Identifier: Apache-2.0
"""Rows of results: what runs have come to stays in a file, and no result is made twice."""

import csv
import json
import shutil

import harness
from harness import DATA, EXPERIMENT, FINE, MLP, SWEEP, changed
from sweep_test import MIXED

# Three schemes of which two learn and one, at its rate, cannot; three seeds each.
STUDY = changed(
    MLP,
    {
        "train.epochs": 3,
        "train.evaluate_every": 2,
        "sweep": {
            "points": [
                {"label": "calm", "optimizer.lr": 0.05},
                {"label": "brisk", "optimizer.lr": 0.1},
                {"label": "wild", "optimizer.lr": 1e30},
            ],
            "grid": {"train.seed": [1, 2, 3]},
        },
        "table": {"rows": "label", "metric": "test_accuracy", "beside": ["train_loss", "seconds"]},
        "plot": {"y": "train_loss"},
        "claims": [
            {"say": "Calm is worse", "less": [{"label": "calm"}, {"label": "brisk"}], "metric": "train_loss"},
            {"say": "Wild diverges", "diverges": [{"label": "wild"}]},
        ],
    },
)
FORMATS = ("markdown", "csv", "latex", "json")


class Results(harness.EndToEnd):
    def sweep(self, *flags, out="sw", code=SWEEP):
        return self.pipewright("sweep", "s.yaml", "--out", out, "--jobs", "2", *flags, code=code)

    def table(self, *flags, out="sw", code=FINE):
        return self.pipewright("table", "s.yaml", "--out", out, *flags, code=code)

    def rows(self, name="kept/x.csv"):
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def change_rows(self, change, name="kept/x.csv"):
        """Writes the rows anew, each changed in place by `change`; those for which it returns False are left out."""
        rows = [row for row in self.rows(name) if change(row) is not False]
        with open(self.folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def test_figures_of_rows_are_those_of_run_folders(self):
        self.write("s.yaml", STUDY)
        self.sweep()
        kept = self.table("--keep", "kept/x.csv")
        self.assert_errors(kept, r"^kept/x\.csv has 9 rows: 9 new, 0 replaced$")
        self.assertEqual(kept.out, self.table().out)
        for format in FORMATS:
            whole = self.table("--format", format)
            alone = self.table("--format", format, "--results", "kept/x.csv", out="none")
            self.assertEqual(alone.out, whole.out, format)
            self.assertEqual(alone.lines[0], "results of 9 runs are rows of kept/x.csv")
            self.assertEqual(alone.lines[1:], whole.lines)
        best = ("--metric", "train_loss", "--epoch", "best", "--format", "json")
        self.assertEqual(self.table(*best, "--results", "kept/x.csv", out="none").out, self.table(*best).out)

        hours = ("--hardware", "dgx-a100", "--metric", "modelled_hours", "--format", "json")
        self.assertEqual(self.table(*hours, "--results", "kept/x.csv", out="none").out, self.table(*hours).out)

        self.pipewright("plot", "s.yaml", "--out", "sw", "--output", "whole")
        self.pipewright("plot", "s.yaml", "--out", "none", "--output", "alone", "--results", "kept/x.csv")
        drawn = sorted(path.name for path in (self.folder / "whole").glob("*.svg"))
        self.assertTrue(drawn)
        for name in drawn:
            self.assertEqual(*((self.folder / of / name).read_bytes() for of in ("whole", "alone")), name)

    def test_a_row_says_what_a_run_was_and_came_to(self):
        self.write("s.yaml", STUDY)
        self.sweep()
        self.table("--keep", "kept/x.csv")
        for row in self.rows():
            (path,) = (self.folder / "sw").glob(f"*-{row['digest']}")
            run, state = harness.Run(path), json.loads((path / "run.json").read_text())
            epochs = run.rows("epochs.csv") if row["label"] != "wild" else []
            self.assertEqual(row["label"], path.name.rsplit("-", 1)[0])
            self.assertEqual(row["train.seed"], str(state["seed"]))
            self.assertEqual(float(row["optimizer.lr"]), {"calm": 0.05, "brisk": 0.1, "wild": 1e30}[row["label"]])
            self.assertEqual(row["epochs"], str(len(epochs)))
            self.assertEqual(float(row["wall_seconds"]), state["wall_seconds"])
            self.assertEqual(float(row["processor_seconds"]), state["processor_seconds"])
            for key in ("processor", "instruction_set", "pipewright", "commit"):
                self.assertEqual(row[key], state[key], key)
            self.assertEqual(row["precision"], "float32")
            if row["label"] == "wild":
                self.assertEqual((row["state"], epochs), ("diverged", []))
                self.assertEqual(row["why"], state["error"])
                continue
            self.assertEqual((row["state"], row["why"]), ("done", ""))
            measured = [epoch["test_accuracy"] for epoch in epochs if epoch["test_accuracy"]]
            self.assertEqual(len(measured), 2)  # after epochs 1 and 2, the last
            self.assertEqual(row["last.test_accuracy"], measured[-1])
            self.assertEqual(row["best.test_accuracy"], max(measured, key=float))
            self.assertEqual(row["each.test_accuracy"].split()[0], "_")
            self.assertEqual(row["each.train_loss"], " ".join(epoch["train_loss"] for epoch in epochs))
            self.assertEqual(row["each.lr"], f"{epochs[0]['lr']}*3")
        labels = [(row["label"], row["train.seed"]) for row in self.rows()]
        self.assertEqual(labels, sorted(labels))

    def test_sittings_add_to_the_rows_and_make_no_result_twice(self):
        self.write("s.yaml", STUDY)
        self.sweep("--set", "sweep.grid.train.seed=[2]", out="first")
        self.table("--set", "sweep.grid.train.seed=[2]", "--keep", "kept/x.csv", out="first")
        before = (self.folder / "kept/x.csv").read_text()
        self.assert_errors(
            self.table("--set", "sweep.grid.train.seed=[2]", "--keep", "kept/x.csv", out="first"),
            r"has 3 rows: 0 new, 0 replaced$",
        )
        self.assertEqual((self.folder / "kept/x.csv").read_text(), before)

        done = self.sweep("--results", "kept/x.csv", "--resume")
        self.assertIn("3 of 9 runs have a row in kept/x.csv\n", done.err)
        self.assertIn("results of 3 runs are rows of kept/x.csv\n", done.err)
        self.assertIn("; from 6 of 9 runs, 3 failed", done.out)
        self.assertEqual(len(list((self.folder / "sw").glob("*-*/run.json"))), 6)
        both = self.table("--keep", "kept/x.csv")
        self.assertRegex(both.err, r"^kept/x\.csv has 9 rows: 6 new, 0 replaced\n$")
        rows = (self.folder / "kept/x.csv").read_text().splitlines()
        self.assertTrue(set(before.splitlines()) <= set(rows))  # the rows that were there stay as they are
        again = self.sweep("--results", "kept/x.csv", "--resume", out="third", code=FINE)
        self.assertIn("9 of 9 runs have a row in kept/x.csv\n", again.err)
        self.assertEqual(list((self.folder / "third").glob("*-*/run.json")), [])
        self.assertEqual(again.out.split("Best:")[0], both.out.split("\nClaims")[0] + "\n")
        self.assert_errors(
            self.sweep("--results", "kept/x.csv", out="third", code=EXPERIMENT), r"^--results .*needs --resume$"
        )

    def test_rows_of_other_settings_are_left_out_and_counted(self):
        self.write("s.yaml", STUDY)
        self.sweep()
        self.table("--keep", "kept/x.csv")
        other = ("--set", "train.epochs=2", "--results", "kept/x.csv")
        self.assert_errors(
            self.table(*other, out="none"),
            r"^results of 0 runs are rows",
            r"^9 rows of kept/x\.csv are of no run of this file \(its settings are others\) and left out$",
            r"^no run of s\.yaml has begun here; `pipewright sweep s\.yaml --set train\.epochs=2 --out none` makes them$",
        )
        self.assertIn("9 missing", self.table(*other, out="none").out)
        self.change_rows(lambda row: row.update(pipewright="0.5.0"))
        told = self.table("--results", "kept/x.csv").lines
        self.assertRegex(told[1], r"^9 rows were made by version 0\.5\.0, and this is ")

    def test_other_results_of_the_same_run_are_an_error_unless_the_processor_is_another(self):
        self.write("s.yaml", STUDY)
        self.sweep()
        self.table("--keep", "kept/x.csv")

        def forge(row):
            if row["label"] == "calm" and row["train.seed"] == "1":
                losses = row["each.train_loss"].split()
                row["each.train_loss"] = " ".join(["0.5", *losses[1:]])

        self.change_rows(forge)
        forged = (self.folder / "kept/x.csv").read_bytes()
        message = r"^kept/x\.csv: the row of calm seed 1 \([0-9a-f]{16}\) has other results than the run: train_loss of "
        for flag in ("--keep", "--results"):
            refused = self.table(flag, "kept/x.csv", code=DATA)
            self.assert_errors(refused, message + r"epoch 0 is [\d.]+ and was 0\.5, .*on the same processor; take the ")
        self.assertEqual((self.folder / "kept/x.csv").read_bytes(), forged)
        self.change_rows(lambda row: row.update(processor="An Abacus"))
        told = self.table("--keep", "kept/x.csv").lines
        self.assertRegex(told[1], r"^1 run has other results here .*another processor.* stay: calm seed 1 \(train_loss of")
        self.assertEqual(self.rows()[3]["processor"], "An Abacus")

    def test_failed_runs_are_tried_again_and_their_rows_replaced(self):
        self.write("s.yaml", MIXED)
        self.sweep("--set", "sweep.grid.train.seed=[1]")

        def fail(row):
            row.update(state="failed", why="killed by signal 9", epochs="0")
            row.update({key: "" for key in row if key.startswith(("last.", "best.", "each."))})

        self.table("--set", "sweep.grid.train.seed=[1]", "--keep", "kept/x.csv")
        self.change_rows(fail)
        shutil.rmtree(self.folder / "sw")
        self.assertEqual(self.table("--results", "kept/x.csv").out.count("1 failed |"), 2)
        done = self.sweep("--results", "kept/x.csv", "--resume")
        self.assertIn("0 of 4 runs have a row in kept/x.csv\n", done.err)
        self.assertRegex(self.table("--keep", "kept/x.csv").err, r"has 4 rows: 2 new, 2 replaced\n")
        self.assertEqual([row["state"] for row in self.rows()], ["diverged", "diverged", "done", "done"])

    def test_what_a_probe_measured_is_kept_where_it_is_named(self):
        probing = changed(
            STUDY,
            {
                "probes": [{"name": "weight_gap", "every": 2}],
                "scheme": {"name": "pipedream"},
                "table": {"rows": "label", "metric": "probe.weight_gap.forward_relative"},
            },
        )
        self.write("s.yaml", probing)
        self.sweep()
        whole = self.table("--keep", "kept/x.csv", "--format", "json").out
        self.assertEqual(self.table("--results", "kept/x.csv", "--format", "json", out="none").out, whole)
        self.assertEqual([cell["n"] for cell in json.loads(whole)["cells"]], [3, 3, 0])
        single = ("--set", "plot.y=probe.weight_gap.forward_relative", "--set", "plot.x=minibatch")
        self.assert_errors(
            self.pipewright("plot", "s.yaml", "--results", "kept/x.csv", *single, code=EXPERIMENT),
            r"the plot draws single measurements of a probe, and rows of results have none; leave --results out",
        )

    def test_a_damaged_file_is_refused_with_line_and_column(self):
        self.write("s.yaml", MIXED)
        self.sweep("--set", "sweep.grid.train.seed=[1]")
        only = ("--set", "sweep.grid.train.seed=[1]")
        self.table(*only, "--keep", "kept/x.csv")
        good = (self.folder / "kept/x.csv").read_text()
        lines = good.splitlines(keepends=True)
        for damaged, message in (
            ("", r"^kept/x\.csv: is empty; expected rows of results"),
            ("root:x:0:0\n", r"^kept/x\.csv:1:1: the header has no column 'digest'; expected rows of results"),
            (good[:-1], r"^kept/x\.csv:3:\d+: the line is cut off"),
            (good + lines[1], r"^kept/x\.csv:4:1: the digest [0-9a-f]{16} has a row already$"),
            (good.replace(",done,", ",great,"), r"^kept/x\.csv:3:\d+: state is 'great'; expected done, diverged or"),
            (good + "a,b\n", r"^kept/x\.csv:4:1: has 2 fields, but the header has \d+$"),
            (good.replace(",done,", ',"done,'), r"^kept/x\.csv:3:\d+: a quote is not closed$"),
        ):
            with self.subTest(message):
                self.write("kept/x.csv", damaged)
                for flag in ("--results", "--keep"):
                    self.assert_errors(self.table(*only, flag, "kept/x.csv", code=DATA), message)
                self.assertEqual((self.folder / "kept/x.csv").read_text(), damaged)
        self.assert_errors(
            self.table("--results", "none.csv", code=DATA), r"^none\.csv: .*No such file or directory"
        )
        self.assert_errors(
            self.table("--results", "a.csv", "--keep", "b.csv", code=EXPERIMENT), r"^--results and --keep exclude"
        )


if __name__ == "__main__":
    harness.main()
