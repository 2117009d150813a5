# SPDX-License-Identifier: Apache-2.0
"""tools/study: pages say what the rows of results show, and which runs are still to be made."""

import csv
import itertools
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import harness
from harness import MLP, SOURCE_DIR, changed

sys.path.insert(0, str(SOURCE_DIR / "tools"))
from study_pages import law, law_shown, overhead


EXPERIMENT = changed(
    MLP,
    {
        "loader": {"batch_size": 16, "limit_train": 480, "limit_test": 100},
        "model.widths": [64, 32, 16, 10],
        "optimizer.lr": 0.05,
        "train.epochs": 2,
        "sweep": {
            "points": [
                {"label": "reference", "scheme.name": "model_parallel", "pipeline.stages": 1},
                {"label": "stale", "scheme.name": "pipedream", "pipeline.stages": 2},
                {"label": "stale", "scheme.name": "pipedream", "pipeline.stages": 3},
                {"label": "predicted", "scheme.name": "spectrain", "pipeline.stages": 2},
                {"label": "predicted", "scheme.name": "spectrain", "pipeline.stages": 3},
            ],
            "grid": {"train.seed": [1, 2, 3]},
        },
        "table": {"rows": "label", "columns": "pipeline.stages", "epoch": "best"},  # the study takes the last
        "claims": [
            {"say": "P1: prediction helps",
             "less": [{"label": "stale", "pipeline.stages": 3}, {"label": "predicted", "pipeline.stages": 3}]},
            {"say": "P2: nothing is lost", "within": 0.9,
             "close": [{"label": "predicted", "pipeline.stages": 3}, {"label": "reference"}]},
        ],
    },
)
TASKS = """task,title,file,profile,rows,reference,chance,settings,again_of,family,metric
A,digits,experiments/s.yaml,,experiments/results/s.csv,reference,0.1,,,,
"""
PROTOCOL = "| | claim |\n|---|---|\n| P1 | prediction helps |\n| P2 | nothing is lost |\n"
PAGE = """# Digits
<!-- runs: A -->
<!-- end -->
<!-- table: A -->
<!-- end -->
<!-- verdicts: all -->
<!-- end -->
The stale scheme reaches <!-- value: A | stale, stages 3 --><!-- end --> in three stages.
"""


@cache
def trained_rows():
    """The rows of the experiment's fifteen runs, which take half a second of a processor."""
    with tempfile.TemporaryDirectory(prefix="pipewright-e2e-") as folder:
        file = Path(folder) / "s.yaml"
        file.write_text(harness.json.dumps(EXPERIMENT))
        for words in (["sweep", "--jobs", "2"], ["table", "--keep", "s.csv"]):
            subprocess.run([harness.BINARY, words[0], "s.yaml", "--out", "sw", *words[1:]], cwd=folder, check=True,
                           capture_output=True)
        with open(Path(folder) / "s.csv", newline="") as rows:
            return list(csv.DictReader(rows))


class StudyTest(harness.EndToEnd):
    @classmethod
    def setUpClass(cls):
        cls.trained = trained_rows()

    def setUp(self):
        super().setUp()
        self.write("experiments/s.yaml", EXPERIMENT)
        self.write("docs/study/tasks.csv", TASKS)
        self.write("docs/study/protocol.md", PROTOCOL)
        self.page = self.write("docs/study/page.md", PAGE)

    def study(self, *flags, code=0, root=None):
        command = [sys.executable, "-B", SOURCE_DIR / "tools/study", "--root", root or self.folder, *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return harness.Finished(done.returncode, done.stdout, done.stderr)

    def keep(self, rows, name="s.csv"):
        path = self.folder / "experiments/results" / name
        path.parent.mkdir(exist_ok=True)
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def rows(self, change=lambda row: None):
        """Copies of the rows, each changed in place; those for which `change` returns False are left out."""
        return [row for row in map(dict, self.trained) if change(row) is not False]

    def accuracies(self, label, stages):
        return [100 * float(row["last.test_accuracy"]) for row in self.trained
                if (row["label"], row["pipeline.stages"]) == (label, str(stages))]


class Pages(StudyTest):
    def test_without_rows_a_page_says_how_to_make_them_and_no_number(self):
        self.study()
        text = self.page.read_text()
        self.assertIn("Not run yet. These commands run it, and keep its rows:\n\n```sh\nbuild/pipewright sweep "
                      "experiments/s.yaml --out runs/study-a\n", text)
        self.assertIn("<!-- table: A -->\nNot run yet.\n<!-- end -->", text)
        self.assertIn("reaches <!-- value: A | stale, stages 3 -->not run yet<!-- end --> in", text)
        self.assertEqual(2, text.count("| not run yet |"))
        self.assertNotRegex(text, r"\d\.\d")

    def test_a_table_has_the_means_of_the_rows(self):
        self.keep(self.rows())
        self.study()
        text = self.page.read_text()
        for label, stages in (("reference", 1), ("stale", 2), ("stale", 3), ("predicted", 2), ("predicted", 3)):
            values = self.accuracies(label, stages)
            shown = f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f} (3)"
            self.assertRegex(text, rf"(?m)^\| {label} \|.* {re.escape(shown)} \|")
        self.assertIn(f"-->{statistics.mean(self.accuracies('stale', 3)):.2f} %<!-- end --> in three", text)
        self.assertIn("15 of 15 runs; ", text)
        effect = statistics.mean(self.accuracies("predicted", 3)) - statistics.mean(self.accuracies("stale", 3))
        self.assertIn(f"| P1 | A | prediction helps | {effect:+.2f} |".replace("-", "−"), text)

    def test_of_claims_in_brief_those_that_have_not_run_are_last(self):
        self.keep(self.rows(lambda row: row["label"] != "stale" or row["train.seed"] != "3"))
        self.page.write_text("<!-- brief: primary -->\n<!-- end -->\n<!-- verdicts: secondary -->\n<!-- end -->\n")
        self.study()
        self.assertEqual(["P2", "P1"], re.findall(r"(?m)^\| ([PS]\d) \|", self.page.read_text()))
        self.assertRegex(self.page.read_text(), r"\| P2 \| nothing is lost \| digits \| .*, .* … .* \(90 %\) \| holds \|")

    def test_a_page_whose_rows_changed_is_stale(self):
        self.keep(self.rows())
        self.study("--check", code=1)
        self.study()
        self.assertEqual("", self.study("--check").err)
        self.assertEqual("", self.study().out)

        def better(row):
            if (row["label"], row["train.seed"], row["pipeline.stages"]) == ("stale", "1", "3"):
                row.update({f"{kind}.test_accuracy": value for kind, value in
                            (("last", "0.75"), ("best", "0.75"), ("each", "0.5 0.75"))})

        before = self.page.read_text()
        self.keep(self.rows(better))
        stale = self.study("--check", code=1)
        self.assert_errors(stale, r"^docs/study/page\.md is not what the rows of results show; run tools/study$")
        self.assertEqual(before, self.page.read_text())
        self.study()
        values = [75, *self.accuracies("stale", 3)[1:]]
        self.assertIn(f"-->{statistics.mean(values):.2f} %<!--", self.page.read_text())

        self.page.write_text(self.page.read_text().replace("reaches", "attains"))  # prose is the writer's
        self.study("--check")
        self.page.write_text(self.page.read_text().replace(" % <!--", "9 %<!--").replace(" %<!-- end", "1 %<!-- end"))
        self.study("--check", code=1)

    def test_missing_runs_are_counted_and_decide_nothing(self):
        self.keep(self.rows(lambda row: row["label"] != "stale" or row["train.seed"] != "3"))
        self.study()
        text = self.page.read_text()
        self.assertIn("13 of 15 runs; ", text)
        self.assertIn("(2), not run (1 seed) |", text)
        self.assertRegex(text, r"\| P1 \| A \|.* incomplete \|")
        self.assertRegex(text, r"\| P2 \| A \|.* holds \|")

    def test_a_diverged_run_counts_with_the_accuracy_of_chance_and_is_marked(self):
        def diverge(row):
            if (row["label"], row["train.seed"], row["pipeline.stages"]) == ("stale", "2", "3"):
                results = {key: "" for key in row if key.startswith(("last.", "best.", "each."))}
                row.update(results | {"state": "diverged", "why": "loss; not finite", "epochs": "0"})

        self.keep(self.rows(diverge))
        self.study()
        values = self.accuracies("stale", 3)
        values[1] = 10
        text = self.page.read_text()
        self.assertIn(f"| {statistics.mean(values):.2f} ± {statistics.stdev(values):.2f} (3); 1 diverged |", text)
        self.assertIn("Runs that diverged or failed count with 10 %, as by chance.", text)
        self.assertIn("15 of 15 runs, of which 1 diverged or failed; ", text)
        effect = statistics.mean(self.accuracies("predicted", 3)) - statistics.mean(values)
        self.assertIn(f"| prediction helps | {effect:+.2f} |", text)

    def test_of_a_claim_about_how_runs_end_it_says_how_many_do_so(self):
        stale = {"label": "stale", "pipeline.stages": 3}
        ends = [{"say": "S1: it ends", "finishes": [stale]}, {"say": "S2: it does not", "diverges": [stale]}]
        self.write("experiments/s.yaml", changed(EXPERIMENT, {"claims": EXPERIMENT["claims"] + ends}))
        rows = self.rows()
        self.page.write_text("<!-- verdicts: S1 S2 -->\n<!-- end -->\n")
        self.study()
        self.assertRegex(self.page.read_text(), r"\| S1 .* it ends: stale, stages 3 (\|  ){7}\| not run yet \|")
        self.keep(rows)
        self.study()
        # All of three: the share s with s^3 = 0.025 is 0.292.
        self.assertIn("| 3 finished | 29 … 100 % (95 %) |  |  |  |  | 3 | holds |", self.page.read_text())
        self.assertIn("| 0 diverged | 0 … 71 % (95 %) |  |  |  |  | 3 | does not hold |", self.page.read_text())
        of_cell = [row for row in rows if row["label"] == "stale" and row["pipeline.stages"] == "3"]
        of_cell[1].update(state="diverged", why="loss is not finite in mini-batch 3")
        self.keep(rows)
        self.study()
        # One of three, from (1 − s)^3 = 0.975 to that in which at most one does so with 2.5 %: 0.0084 and 0.906.
        self.assertIn("| 2 finished | 9 … 99 % (95 %) |  |  |  |  | 3 | does not hold |", self.page.read_text())
        self.assertIn("| 1 diverged | 1 … 91 % (95 %) |  |  |  |  | 3 | does not hold |", self.page.read_text())

    def test_a_repetition_is_decided_by_its_own_rows(self):
        self.keep(self.rows())
        self.page.write_text("<!-- again: P1 -->\n<!-- end -->\n")
        self.assert_errors(self.study(code=2), r"page\.md:1: task A, of claim P1, has no repetition: no `again_of` in tasks\.csv")
        again = "A2,digits,experiments/s.yaml,,experiments/results/again.csv,reference,0.1,{},A,{},\n".format
        self.write("docs/study/tasks.csv", TASKS + again("--set sweep.grid.train.seed=[101]", ""))
        self.study()
        self.assertRegex(self.page.read_text(), r"\| P1 \| A2 \| prediction helps (\|  ){7}\| not run yet \|")
        settings = '"--set sweep.grid.train.seed=[101,102,103]"'
        self.write("docs/study/tasks.csv", TASKS + again(settings, ""))
        seeds = ["--set", "sweep.grid.train.seed=[101,102,103]"]
        groups = [{"label": "stale", "pipeline.stages": 3}, {"label": "predicted", "pipeline.stages": 3}]
        points = [point for point in EXPERIMENT["sweep"]["points"] if point["pipeline.stages"] == 3]
        self.write("again.yaml", changed(EXPERIMENT, {"sweep.points": points, "claims": [{"say": "P1: so", "less": groups}]}))
        self.pipewright("sweep", "again.yaml", *seeds, "--jobs", "2", "--out", "again")
        self.pipewright("table", "again.yaml", *seeds, "--out", "again", "--keep", "experiments/results/again.csv")
        self.study()
        table = self.pipewright("table", "again.yaml", *seeds, "--out", "again", "--set", "table.epoch=last",
                                "--format", "json").out
        (test,) = harness.json.loads(table)["claims"][0]["tests"]
        effect = f"| prediction helps | {100 * test['effect']:+.2f} |".replace("-", "−")
        self.assertIn(effect, self.page.read_text())
        self.assertRegex(self.page.read_text(), rf"{re.escape(effect)} [^|]*\|[^|]*\| [^|–]+ \| – \|")  # corrected with none
        self.page.write_text("Again <!-- value: P1 effect A2 --><!-- end -->.\n<!-- again: P1 -->\n<!-- end -->\n")
        self.study()
        self.assertIn(f"-->{100 * test['effect']:+.2f} points<!--", self.page.read_text().replace("−", "-"))
        # As a family its p is corrected with that of P2, which has not run with these seeds.
        self.write("docs/study/tasks.csv", TASKS + again(settings, "second"))
        self.study()
        p = f"{min(1, 2 * test['p']):.2g}".replace("+", r"\+")
        self.assertRegex(self.page.read_text(), rf"{re.escape(effect)} [^|]*\|[^|]*\| [^|–]+ \| {p} \|")

    def test_of_learning_it_says_how_many_runs_come_to_the_floor(self):
        stale = {"label": "stale", "pipeline.stages": 3}
        self.write("experiments/s.yaml", changed(EXPERIMENT, {"table.floor": 0.3, "claims": EXPERIMENT["claims"] + [
            {"say": "S1: it learns", "learns": [stale], "floor": 0.3}]}))
        self.page.write_text("<!-- learned: A -->\n<!-- end -->\n<!-- verdicts: S1 -->\n<!-- end -->\n")
        self.study()
        self.assertIn("Not run yet.", self.page.read_text())
        rows = self.rows()
        self.keep(rows)
        self.study()
        learned = sum(accuracy >= 30 for accuracy in self.accuracies("stale", 3))
        self.assertRegex(self.page.read_text(), rf"(?m)^\| stale \|  \| \d \| {learned} \|$")
        self.assertIn(f"| {learned} learned | ", self.page.read_text())

    def test_a_task_may_be_about_losses(self):
        self.write("docs/study/tasks.csv", TASKS.replace("0.1,,,,", "2.3,,,,test_loss"))
        self.write("docs/study/protocol.md", "")
        groups = [{"label": "predicted", "pipeline.stages": 3}, {"label": "stale", "pipeline.stages": 3}]
        self.write("experiments/s.yaml", changed(EXPERIMENT, {"claims": [{"say": "S1: so", "less": groups}]}))
        self.page.write_text("<!-- table: A -->\n<!-- end -->\n<!-- verdicts: S1 -->\n<!-- end -->\n"
                             "It loses <!-- value: S1 effect --><!-- end --> to <!-- value: A | reference --><!-- end -->.\n")
        self.keep(self.rows())
        self.study()
        text = self.page.read_text()

        def losses(label, stages):
            return [float(row["last.test_loss"]) for row in self.trained
                    if (row["label"], row["pipeline.stages"]) == (label, str(stages))]

        effect = statistics.mean(losses("stale", 3)) - statistics.mean(losses("predicted", 3))
        shown = f"{effect:+.3f}".replace("-", "−")
        self.assertIn(f"| S1 | A | so | {shown} |", text)
        self.assertIn(f"loses <!-- value: S1 effect -->{shown} nats<!-- end --> to ", text)
        self.assertIn("| effect, nats |", text)
        reference = losses("reference", 1)
        self.assertIn(f"{statistics.mean(reference):.3f} ± {statistics.stdev(reference):.3f} (3)", text)
        self.assertIn(f"-->{statistics.mean(reference):.3f}<!-- end -->.", text)
        self.assertIn("Test loss in nats after the last epoch", text)

    def test_of_runs_made_twice_it_says_how_far_they_moved(self):
        self.page.write_text("<!-- rounding: A -->\n<!-- end -->\n")
        self.keep(self.rows())
        self.study()
        self.assertRegex(self.page.read_text(), r"(?m)^\| A \| digits \| not made again \|")

        def moved(row):
            if row["train.seed"] != "1":
                return False
            by = 0.03 if row["label"] == "predicted" and row["pipeline.stages"] == "3" else 0.01
            row.update({"last.test_accuracy": str(float(row["last.test_accuracy"]) - by), "instruction_set": "ours"})
            return True

        kernels = self.trained[0]["instruction_set"]
        self.keep(self.rows(moved), "rounding-s.csv")
        self.study()
        self.assertIn(f"| A | digits | {kernels}, then ours | 5 | 1.00 | 3.00 points | predicted |", self.page.read_text())

    def test_rows_of_other_settings_are_told(self):
        self.keep(self.rows(lambda row: row.update(digest=row["digest"][::-1]) if row["train.seed"] == "1" else None))
        told = r"^5 rows of experiments/results/s\.csv are of no run of this file .* left out$"
        self.assert_errors(self.study(), told)
        self.assertIn("- 5 rows of experiments/results/s.csv are of no run", self.page.read_text())

    def test_faults_of_pages_and_tables(self):
        for text, said in (
            ("\n<!-- tabel: A -->\n<!-- end -->\n", r"^docs/study/page\.md:2: there is no marker 'tabel'; known: "),
            ("<!-- table: B -->\n<!-- end -->\n", r"page\.md:1: there is no task 'B'; tasks\.csv has A$"),
            ("<!-- table: A -->\n", r"page\.md:1: '<!-- table: A -->' does not end; expected <!-- end -->"),
            ("<!-- table: A -->\n<!-- runs: A -->\n<!-- end -->\n", r"page\.md:2: .* begins before the marker above"),
            ("<!-- value: P1 effect --><!-- end -->", r"'<!-- value: P1 effect -->' begins a line; expected a word"),
            ("So <!-- table: A -->\n<!-- end -->", r"'<!-- table: A -->' stands within a line; expected one of"),
            ("So <!-- value: P7 effect --><!-- end -->", r"page\.md:1: there is no claim 'P7'; .* have P1, P2$"),
            ("So <!-- value: A | stale --><!-- end -->", r"task A has 2 cells 'stale'; expected one of: reference, "),
            ("So <!-- value: P1 effect B --><!-- end -->", r"page\.md:1: task 'B' has no claim 'P1'$"),
            ("So <!-- value: P1 p --><!-- end -->", r"there is no value 'P1 p'; expected 'A \| label, column', "),
        ):
            with self.subTest(said):
                self.page.write_text(text)
                self.assert_errors(self.study(code=2), said)

    def test_claims_of_the_protocol_are_those_of_the_files(self):
        for text, said in (
            (PROTOCOL + "| P3 | more |\n", r"claims of the protocol are not each one .*: lacking P3, several none"),
            (PROTOCOL.replace("P2", "P1"), r"protocol\.md: a primary claim is there twice: P1, P1$"),
        ):
            with self.subTest(said):
                self.write("docs/study/protocol.md", text)
                self.assert_errors(self.study(code=2), said)
        self.write("docs/study/protocol.md", PROTOCOL)
        for claim, said in (
            ({"say": "help", "less": [{"label": "reference"}] * 2}, r"s\.yaml: a claim says 'help'; expected its id"),
            ({"say": "P1: ends", "finishes": [{"label": "reference"}]}, r"s\.yaml: the claim P1 compares no means"),
        ):
            with self.subTest(said):
                self.write("experiments/s.yaml", changed(EXPERIMENT, {"claims": [claim]}))
                self.assert_errors(self.study(code=2), said)


class Overheads(StudyTest):
    """A row's loss against the lengths at which training without a delay has it."""

    CURVE = {length: 3 - 0.2 * math.log(length) for length in (700, 990, 1400, 1980, 2800)}

    def loss_at(self, length):
        return 3 - 0.2 * math.log(length)

    def test_a_loss_that_takes_a_quarter_fewer_samples_without_a_delay_is_an_overhead_of_a_third(self):
        self.assertEqual("+33.3 %", overhead.summary([self.loss_at(1050)], 1400, self.CURVE))
        self.assertEqual("−50.0 %", overhead.summary([self.loss_at(2800)], 1400, self.CURVE))

    def test_mean_and_interval_are_of_logarithms(self):
        ratios = [1.1, 1.2, 1.5]
        mean = statistics.mean(map(math.log, ratios))
        half = 4.303 * statistics.stdev(map(math.log, ratios)) / math.sqrt(3)
        ends = [f"{100 * math.exp(end) - 100:+.1f} %".replace("-", "−") for end in (mean, mean - half, mean + half)]
        self.assertEqual("{}, {} … {}".format(*ends), overhead.summary([self.loss_at(1400 / each) for each in ratios], 1400, self.CURVE))

    def test_runs_beyond_the_references_are_counted_and_enter_no_mean(self):
        losses = [self.loss_at(1400), self.loss_at(699), self.loss_at(2801)]
        self.assertEqual("1 of 3 above +100.0 %, 1 of 3 below −50.0 %", overhead.summary(losses, 1400, self.CURVE))

    def test_two_rows_of_one_label_and_seed_are_no_two_runs(self):
        self.keep(self.rows())
        self.write("docs/study/tasks.csv", TASKS.replace(",,,,\n", ",,,,test_loss\n"))
        self.page.write_text("<!-- overhead: A | A | 480 -->\n<!-- end -->\n")
        said = r"^docs/study/page\.md:1: experiments/results/s\.csv has two rows of '(stale|predicted)' with seed 1; expected those of one setting"
        self.assert_errors(self.study(code=2), said)

    def test_quantiles_are_those_of_student(self):
        for degrees, closed in ((1, math.tan(0.475 * math.pi)), (2, 0.95 * math.sqrt(2 / (1 - 0.95**2)))):
            self.assertAlmostEqual(closed, overhead.T_975[degrees], places=3)
        self.assertEqual(sorted(overhead.T_975.values(), reverse=True), list(overhead.T_975.values()))

    def test_a_page_has_them_when_all_references_have_run(self):
        def with_labels(points, rows, **sweep):
            file = changed(EXPERIMENT, {"sweep": {"points": points, **sweep, "grid": {"train.seed": [1, 2, 3]}}, "claims": [],
                                        "table": {"rows": "label", "columns": sweep and "loader.limit_train" or "pipeline.stages",
                                                  "metric": "test_loss"}})
            self.write(f"experiments/{rows}.yaml", file)
            for words in (["sweep", "--jobs", "2"], ["table", "--keep", f"experiments/results/{rows}.csv"]):
                self.pipewright(words[0], f"experiments/{rows}.yaml", "--out", f"sw-{rows}", *words[1:])

        (self.folder / "experiments/results").mkdir(exist_ok=True)
        plain = {"label": "sgd plain", "scheme.name": "model_parallel", "pipeline.stages": 1}
        with_labels([plain, {"label": "sgd stale", "scheme.name": "pipedream", "pipeline.stages": 3}], "s")
        with_labels([plain], "r", zip={"loader.limit_train": [240, 960], "optimizer.lr": [0.05, 0.05]})
        self.write("docs/study/tasks.csv", TASKS.replace(",,,,\n", ",,,,test_loss\n")
                   + "R,references,experiments/r.yaml,,experiments/results/r.csv,sgd plain,0.1,,,,test_loss\n")
        self.write("docs/study/protocol.md", "| | claim |\n")
        self.page.write_text("<!-- overhead: A | R | 480 -->\n<!-- end -->\n")
        self.study()
        losses, curve = {}, {}
        for name in "sr":
            with open(self.folder / f"experiments/results/{name}.csv", newline="") as file:
                for row in csv.DictReader(file):
                    losses.setdefault((row["label"], row.get("loader.limit_train", "480")), []).append(float(row["last.test_loss"]))
        curve = {int(length): statistics.mean(values) for (label, length), values in losses.items() if label == "sgd plain"}
        self.assertEqual({240, 480, 960}, set(curve))
        stale = losses["sgd stale", "480"]
        self.assertIn(f"| sgd stale | {statistics.mean(stale):.3f} | {overhead.summary(stale, 480, curve)} | 3 |", self.page.read_text())

        rows = self.folder / "experiments/results/r.csv"
        rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
        self.study()
        self.assertIn("The references have not all run.", self.page.read_text())


class Laws(StudyTest):
    """A power of the delay, fitted without the largest delay, and what the two rules decide."""

    @staticmethod
    def cost(excess, at_16, optimizer="AdamW", noise=(0, 0, 0, 0)):
        known = {delay: excess(delay) * math.exp(each) for delay, each in zip(law.FITTED, noise)}
        losses = {0: 1.5, **{delay: 1.5 + each for delay, each in known.items()}, 16: 1.5 + at_16}
        return law.Cost(optimizer, losses, {delay: 0.1 * delay for delay in losses})

    def test_a_power_is_found_and_the_largest_delay_is_in_no_fit(self):
        for at_16 in (0.1, 3):
            fit = self.cost(lambda delay: 0.3 * delay**0.4, at_16).fit
            self.assertAlmostEqual(0.3, math.exp(fit.a))
            self.assertAlmostEqual(0.4, fit.gamma)
            self.assertAlmostEqual(0, fit.residuals)

    def test_a_law_holds_if_both_predictions_do_and_are_better_than_no_growth(self):
        def power(delay):
            return 0.3 * delay**0.4

        predicted, known = power(16), power(8)
        for at_16, verdict in ((predicted * 1.19, law.HOLDS), (predicted / 1.1, law.HOLDS), (predicted * 1.21, law.CANNOT_BE_TOLD),
                               (known, law.CANNOT_BE_TOLD), (predicted * 2.01, law.DOES_NOT_HOLD), (predicted / 2.01, law.DOES_NOT_HOLD)):
            self.assertEqual(verdict, law.law_holds([self.cost(power, predicted), self.cost(power, at_16)]), at_16)

        def flat(delay):
            return 0.3 * delay**0.1

        # Within 1.2 of the prediction, but no growth at all predicts it better.
        self.assertEqual(law.CANNOT_BE_TOLD, law.law_holds([self.cost(flat, flat(8))] * 2))

    def test_a_delay_that_costs_nothing_follows_no_power(self):
        def power(delay):
            return 0.3 * delay**0.4

        for at_16 in (0, -0.1):
            costs = [self.cost(power, power(16)), self.cost(power, at_16)]
            self.assertEqual(law.DOES_NOT_HOLD, law.law_holds(costs))
            law_shown.table(costs)
        free = [self.cost(lambda delay: 0.3 - 0.1 * delay, 1)]
        self.assertEqual(law.DOES_NOT_HOLD, law.law_holds(free))
        self.assertIn("no power to be fitted", law_shown.table(free))

    def test_an_overhead_beyond_either_end_of_the_references_is_none(self):
        found = law.overheads({0: 1.5, 1: 1.7, 2: 2.5, 4: 1.3}, {240: 2, 960: 1.4}, 480)
        self.assertEqual([math.inf, math.inf], [found[2], found[4]])
        self.assertAlmostEqual(480 / (240 * 2**0.6) - 1, found[1])

    def test_powers_differ_beyond_the_error_of_both_fits(self):
        noise = (0.1, -0.1, -0.1, 0.1)  # orthogonal to a constant and to ln d, so the powers are as without it
        x = [math.log(delay) for delay in law.FITTED]
        # Two fits with residuals of 4 · 0.01 each; ln d = 0, 1, 2 and 3 times ln 2 spreads by 5 of its squares.
        error = math.sqrt(0.08 / 4 * 2 / (5 * math.log(2) ** 2))
        for difference, verdict in ((2.8 * error, law.HOLDS), (2.7 * error, law.CANNOT_BE_TOLD)):
            one, other = (self.cost(lambda delay: 0.3 * delay**gamma, 1, noise=noise).fit for gamma in (0.2 + difference, 0.2))
            found, of_difference = law.powers_differ(one, other)
            self.assertEqual(verdict, found)
            self.assertAlmostEqual(error, of_difference)

    def test_rows_are_read_by_their_delay(self):
        for label, delay in (("AdamW 1F1B", 0), ("Muon 2BW", 1), ("Muon delay 16", 16), ("AdamW PipeDream", None), ("AdamW delay", None)):
            self.assertEqual(delay, law.delay_of(label))

    def test_a_page_has_a_table_a_sentence_for_each_optimizer_and_a_drawing(self):
        losses = {"sgd 1F1B": 1.5, "sgd 2BW": 1.8, **{f"sgd delay {delay}": 1.5 + 0.3 * delay**0.4 for delay in (2, 4, 8, 16)}}
        row, digests = self.trained[0], itertools.count(1)

        def keep(name, labels, seeds, **more):
            rows = [row | more | {"digest": f"{next(digests):016x}", "label": label, "train.seed": str(seed), "last.test_loss": loss, "best.test_loss": loss,
                                  "each.test_loss": f"3 {loss}"}
                    for label in labels for seed in seeds for loss in [str(losses[label] + (seed - 1.5) / 100)]]
            with open(self.folder / f"experiments/results/{name}.csv", "a", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerows(rows)

        (self.folder / "experiments/results").mkdir()
        keep("l", [label for label in losses if "delay" in label], [1, 2])
        keep("n", ["sgd 1F1B", "sgd 2BW"], [1, 2])
        keep("n", ["sgd 1F1B"], [3, 30])  # seeds that the law does not have enter nothing
        losses_at = {"240": 1.9, "960": 1.4}
        for length, loss in losses_at.items():
            losses["sgd 1F1B"] = loss
            keep("r", ["sgd 1F1B"], [1, 2], **{"loader.limit_train": length})
        self.write("docs/study/protocol.md", "| | claim |\n")
        self.write("experiments/s.yaml", changed(EXPERIMENT, {"claims": []}))
        self.write("docs/study/tasks.csv", TASKS.replace(",,,,\n", ",,,,test_loss\n").partition("A,")[0] + "".join(
            f"{id},x,experiments/s.yaml,,experiments/results/{id.lower()}.csv,,2.3,,,,test_loss\n" for id in "LNR"))
        self.page.write_text("<!-- law: L N | R | 480 -->\n<!-- end -->\n")
        self.study()
        text = self.page.read_text()
        self.assertIn("| sgd | 0 | 1.500 |", text)
        # On a logarithmic axis 1.8 lies a quarter of the way from 1.9 at 240 to 1.5 at 480: 480 / (240 · 2^¼) − 1. The next is 1.896.
        self.assertIn("| sgd | 1 | 1.800 | 0.300 | 0.300 | +68 % |", text)
        self.assertIn("| sgd | 2 | 1.896 | 0.396 | 0.396 | +99 % |", text)
        self.assertIn("| sgd | 4 | 2.022 | 0.522 | 0.522 | beyond the references |", text)
        self.assertIn("the excess loss is 0.300 · d<sup>0.40</sup> by the delays of up to 8. For 16 that predicts 0.909 nats, and 0.909 were "
                      "measured: 1.00 times the prediction. It is 1.32 times that of 8.", text)
        self.assertIn("L1, there is such a law: **holds**.", text)
        drawing = self.folder / "docs/study/law.svg"
        self.assertEqual(5, drawing.read_text().count("<circle"))
        self.study("--check")
        whole = (self.folder / "experiments/results/r.csv").read_text()
        keep("r", ["sgd 1F1B"], [1], **{"loader.limit_train": "1920"})  # one of two seeds
        self.study()
        self.assertIn("| sgd | 1 | 1.800 | 0.300 | 0.300 | references not run |", self.page.read_text())
        (self.folder / "experiments/results/r.csv").write_text(whole)
        self.study()
        drawing.write_text(drawing.read_text().replace("sgd", "adam"))
        self.assertIn("docs/study/law.svg is not what the rows of results show", self.study("--check", code=1).err)
        (self.folder / "experiments/results/r.csv").unlink()
        self.study()
        self.assertIn("| sgd | 1 | 1.800 | 0.300 | 0.300 | references not run |", self.page.read_text())
        rows = self.folder / "experiments/results/l.csv"
        rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
        self.study()
        self.assertIn("Its runs have not all been made.", self.page.read_text())


class OurPages(StudyTest):
    def test_are_what_the_committed_rows_show(self):
        self.assertEqual("", self.study("--check", root=SOURCE_DIR).err)


if __name__ == "__main__":
    harness.main()
