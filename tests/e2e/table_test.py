# SPDX-License-Identifier: Apache-2.0
"""Tables of sweeps: what failed or is missing is counted as such and never becomes a number."""

import csv
import io
import shutil

import harness
import tolerances
from harness import DATA, EXPERIMENT, MLP, SWEEP, changed
from sweep_test import MIXED

THREE_SEEDS = changed(
    MIXED, {"sweep.grid": {"train.seed": [1, 2, 3]}, "table": {"rows": "label", "metric": "train_loss"}}
)


class Table(harness.EndToEnd):
    def table(self, *flags, code=0):
        return self.pipewright("table", "s.yaml", "--out", "sw", *flags, code=code)

    def cells(self, *flags):
        rows = csv.DictReader(io.StringIO(self.table("--format", "csv", *flags).out))
        return {(row["row"], row["column"]): row for row in rows}

    def test_before_any_run_everything_is_missing(self):
        self.write("s.yaml", MIXED)
        self.assertEqual(self.table().out.count("1 missing"), 4)
        for cell in self.cells().values():
            self.assertEqual((cell["n"], cell["mean"], cell["missing"]), ("0", "", "1"))

    def test_failed_and_missing_runs_are_no_numbers(self):
        self.write("s.yaml", THREE_SEEDS)
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2", code=SWEEP)
        good, bad = self.cells().values()
        runs = [harness.Run(path) for path in sorted((self.folder / "sw").glob("good-*"))]
        losses = [float(run.rows("epochs.csv")[-1]["train_loss"]) for run in runs]
        mean = sum(losses) / 3
        self.assertEqual((good["n"], good["failed"], good["missing"]), ("3", "0", "0"))
        std = (sum((loss - mean) ** 2 for loss in losses) / 2) ** 0.5
        for key, value, rounding in (
            ("mean", mean, tolerances.mean_of(losses)),
            ("std", std, tolerances.deviation_of(losses)),
        ):
            written = tolerances.significant(value, tolerances.TABLE_DIGITS)
            self.assertAlmostEqual(float(good[key]), value, delta=written + rounding)
        self.assertEqual((bad["n"], bad["mean"], bad["std"], bad["failed"]), ("0", "", "", "3"))

        shutil.rmtree(runs[0].path)
        good, bad = self.cells().values()
        self.assertEqual((good["n"], good["missing"]), ("2", "1"))
        page = self.table().out
        self.assertRegex(page, r"\| good +\| +[\d.]+ ± [\d.]+ \(2\), 1 missing \|")
        self.assertRegex(page, r"\| bad +\| +3 failed \|")
        self.assertIn("; from 2 of 6 runs, 3 failed, 1 missing", page)

        self.assertRegex(self.table("--metric", "test_accuracy").out, r"test_accuracy in percent")
        self.assertRegex(self.table("--epoch", "best").out, r"at the best epoch")
        latex = self.table("--format", "latex").out
        for text in (r"\begin{tabular}{lr}", r"$\pm$", r"3 failed", r"\end{table}", r"train\_loss"):
            self.assertIn(text, latex)
        self.table("--format", "csv", "-o", "t.csv")
        self.assertEqual((self.folder / "t.csv").read_text(), self.table("--format", "csv").out)
        self.assert_errors(
            self.table("--metric", "train_los", code=EXPERIMENT),
            r"^--metric: .*'train_los'.*did you mean 'train_loss'\?",
        )

    def test_cells_that_mix_settings_say_so(self):
        rates = {"sweep": {"grid": {"optimizer.lr": [0.05, 0.1], "train.seed": [1, 2]}}}
        self.write("s.yaml", changed(MLP, rates | {"table": {"rows": "scheme.name"}}))
        note = r"Cells mix optimizer\.lr: ± is over all runs of a cell, not over seeds alone; table\.rows"
        self.assertRegex(self.table().out, note)
        self.assertRegex(self.table("--format", "latex").out, note.replace("±", r"\$\\pm\$"))
        csv_table = self.table("--format", "csv")
        self.assertNotIn("mix", csv_table.out)
        self.assert_errors(csv_table, note, r"^no run of s\.yaml has begun here; `pipewright sweep s\.yaml --out sw` makes them$")
        self.assertNotIn("mix", self.table("--set", "table.columns=optimizer.lr").out)

    def test_the_best_is_named_with_those_than_which_it_is_not_significantly_better(self):
        # The scheme makes no difference where there is one stage: equal runs are ties whatever the seeds.
        self.write(
            "s.yaml",
            changed(
                MLP,
                {
                    "pipeline": {"stages": 1},
                    "loader.limit_train": 960,
                    "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
                    "train.epochs": 5,
                    "sweep": {
                        "points": [
                            {"label": "a", "scheme": {"name": "model_parallel"}},
                            {"label": "b", "scheme": {"name": "gpipe"}},
                            {"label": "c", "scheme": {"name": "gpipe"}, "optimizer.lr": 1e-7},
                        ],
                        "grid": {"train.seed": [1, 2, 3]},
                    },
                    "table": {"rows": "label", "metric": "train_loss"},
                },
            ),
        )
        done = self.pipewright("sweep", "s.yaml", "--out", "sw")
        self.assertRegex(
            done.out,
            r"Best: a \([\d.]+\), not significantly better at the 5 % level than b; worst: c \([\d.]+\); `pipewright",
        )
        few = self.pipewright("sweep", "s.yaml", "--out", "few", "--set", "sweep.grid.train.seed=[1]")
        self.assertRegex(
            few.out,
            r"Best: a \([\d.]+\), equal to b, not compared with any of the 2 others: fewer than 3 runs each; worst: c",
        )

    def test_faults_of_the_table(self):
        for table, pattern in (
            ({"rows": "train.sed"}, r"^s\.yaml:\d+:\d+: .*'train\.sed'.*"),
            ({"metrik": "lr"}, r"^s\.yaml:\d+:\d+: unknown option 'table\.metrik'; did you mean 'metric'\?"),
            ({"epoch": "first"}, r"^s\.yaml:\d+:\d+: table\.epoch is 'first'; expected last or best"),
        ):
            with self.subTest(table=table):
                self.write("s.yaml", changed(MIXED, {"table": table}))
                self.assert_errors(self.table(code=EXPERIMENT), pattern)
                self.assert_errors(
                    self.pipewright("sweep", "s.yaml", "--out", "sw", code=EXPERIMENT), pattern
                )
                self.assertEqual(list((self.folder / "sw").glob("*-*")), [])
        self.write("s.yaml", MIXED)
        self.assert_errors(
            self.table("--format", "html", code=EXPERIMENT),
            r"^--format is 'html'; expected markdown, csv, latex or json",
        )


class BeforeTheRuns(harness.EndToEnd):
    """`check` and `sweep` refuse, before anything is trained, what `table`, `plot` and claims cannot make of the runs."""

    SWEEP = {"scheme.name": ["gpipe", "pipedream"], "train.seed": [1, 2, 3]}
    GROUPS = [{"scheme.name": "gpipe"}, {"scheme.name": "pipedream"}]
    FAULTS = (
        ({"table": {"metric": "nonsense"}}, r"table\.metric: no run has a metric 'nonsense'"),
        ({"table": {"metric": "test_acuracy"}}, r"did you mean 'test_accuracy'\?"),
        ({"table": {"beside": "sent_rate"}}, r"table\.beside: no run has a metric 'sent_rate'; did you mean 'sent_ratio'\?"),
        ({"table": {"columns": "pipeline.stagez"}}, r"table\.columns: no run has an option 'pipeline\.stagez'"),
        ({"table": {"published": {"file": "none.csv", "match": {"a": "label"}}}}, r"none\.csv"),
        ({"plot": {"y": "bla"}}, r"plot\.y: no run has a metric 'bla'"),
        ({"plot": {"y": "probe.norms.weight"}}, r"plot\.y: no run has a metric 'probe\.norms\.weight'"),
        ({"plot": {"kind": "map", "x": "train.seed", "y": "scheme.name", "color": "bla"}}, r"plot\.color: no run has"),
        ({"claims": [{"say": "x", "metric": "bla", "less": GROUPS}]}, r"claims\[0\]\.metric: no run has a metric 'bla'"),
        ({"claims": [{"say": "x", "less": [{"scheme.name": "gpipe"}, {"train.seed": 1}]}]}, r"differ in scheme\.name"),
        ({"claims": [{"say": "x", "less": [*GROUPS, {"scheme.name": "gpipe", "optimizer.lr": 7}]}]}, r"no run has optimizer\.lr 7"),
    )

    def file(self, changes):
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": self.SWEEP}, "pipeline.microbatches": 2} | changes))

    def test_both_say_the_same(self):
        for changes, pattern in self.FAULTS:
            with self.subTest(changes):
                self.file(changes)
                checked = self.finish(self.start("check", "s.yaml"))
                swept = self.finish(self.start("sweep", "s.yaml", "--out", "sw"))
                self.assertRegex(checked.err, pattern)
                self.assertEqual((checked.code, checked.err), (swept.code, swept.err))
                self.assertIn(checked.code, (EXPERIMENT, DATA))
                self.assertFalse((self.folder / "sw").exists())

    def test_what_the_runs_will_have_is_fine(self):
        for changes in (
            {"table": {"metric": "train_loss", "beside": ["sent_ratio", "test_top5"]}, "metrics": ["top5"]},
            {"plot": {"y": "probe.norms.weights[1]"}, "probes": [{"name": "norms"}]},
            {"table": {"metric": "modelled_hours"}},
            {"claims": [{"say": "x", "less": self.GROUPS}], "plot": {"y": "samples_per_second"}},
        ):
            with self.subTest(changes):
                self.file(changes)
                self.assertNotIn("note: claims", self.pipewright("check", "s.yaml").out)

    def test_one_run_is_judged_likewise(self):
        self.write("x.yaml", changed(MLP, {"table": {"metric": "nonsense"}}))
        self.assert_errors(self.pipewright("check", "x.yaml", code=EXPERIMENT), "no run has a metric 'nonsense'")

    def test_claims_with_too_few_runs_are_noted(self):
        said = "claims need at least 3 runs a group, such as 3 seeds, to be shown; gpipe has 2, pipedream has 2"
        self.file({"claims": [{"say": "x", "less": self.GROUPS}]})
        fewer = ("s.yaml", "--set", "sweep.grid.train.seed=[1, 2]")
        self.assertIn(f"note: {said}\n", self.pipewright("check", *fewer).out)
        self.assertEqual(self.pipewright("sweep", *fewer, "--out", "sw").lines[0], said)


if __name__ == "__main__":
    harness.main()
