# SPDX-License-Identifier: Apache-2.0
"""tools/study: pages say what the rows of results show, and which runs are still to be made."""

import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import harness
from harness import MLP, SOURCE_DIR, changed

sys.path.insert(0, str(SOURCE_DIR / "tools"))

from study_pages import front, front_figure, verdicts
from study_pages import pooled as pooling
from study_pages.task import Cell

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
TASKS = """task,title,file,profile,rows,reference,chance,whole_samples
A,digits,experiments/s.yaml,,experiments/results/s.csv,reference,0.1,1000000
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

    def keep(self, rows):
        path = self.folder / "experiments/results/s.csv"
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
        self.assertRegex(text, r"\| P1 \| A \|.* not run yet \|")
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
        self.assert_errors(self.study(code=2), r"page\.md:1: task A, of claim P1, has no repetition: `again` in tasks\.csv")
        header, row = TASKS.splitlines()
        self.write("docs/study/tasks.csv", f"{header},again\n{row},experiments/results/again.csv\n")
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
        self.assertIn(f"| prediction helps | {100 * test['effect']:+.2f} |".replace("-", "−"), self.page.read_text())

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


class Decisions(unittest.TestCase):
    """Rules 5 and 6 of the protocol."""

    def test_holm_corrects_as_by_hand(self):
        # Sorted: 0.01 × 4 = 0.04; 0.0125 × 3 = 0.0375, which may not be less than 0.04; 0.03 × 2 = 0.06; 0.4 × 1 = 0.4.
        adjusted = verdicts.holm([0.03, 0.01, 0.4, 0.0125])
        for got, by_hand in zip(adjusted, [0.06, 0.04, 0.4, 0.04], strict=True):
            self.assertAlmostEqual(got, by_hand, delta=1e-15)  # a product and two comparisons of doubles below 1
        self.assertEqual([1.0, 1.0], verdicts.holm([0.7, 1.0]))
        self.assertEqual([], verdicts.holm([]))

    def test_holm_goes_over_the_primary_claims_of_all_files_run_or_not(self):
        def task(file, **ps):
            claims = [(f"{id}: so", [{"kind": "less", "p": p, "p_holm": p}]) for id, p in ps.items()]
            return SimpleNamespace(file=file, claims=claims)

        tasks = [task("a.yaml", P1=0.02, S1=0.001), task("b.yaml", P2=None, P3=0.01)]
        adjusted = {claim.id: claim.adjusted for claim in verdicts.claims_of(tasks, ["P1", "P2", "P3"])}
        # Three primary claims, of which one has not run: 0.01 × 3 and 0.02 × 2; the secondary one is corrected in its file alone.
        self.assertEqual(0.001, adjusted.pop("S1"))
        for id, by_hand in (("P1", 0.04), ("P2", 1.0), ("P3", 0.03)):
            self.assertAlmostEqual(adjusted[id], by_hand, delta=1e-15)

    def decided(self, adjusted, primary=True, **test):
        test = {"kind": "less", "verdict": "not shown", "p": 0.001, "effect": 0.01, "p_sign_flips": 0.002} | test
        return verdicts.Claim("P1", None, "", test, primary, adjusted).verdict

    def test_a_claim_holds_where_both_tests_say_so(self):
        self.assertEqual("holds", self.decided(0.05))
        self.assertEqual("cannot be told", self.decided(0.051))
        self.assertEqual("cannot be told", self.decided(0.05, p_sign_flips=0.0625))
        self.assertEqual("does not hold", self.decided(0.05, effect=-0.01))
        self.assertEqual("cannot be told", self.decided(0.051, effect=-0.01))
        self.assertEqual("not run yet", self.decided(None, p=None))

    def test_no_loss_is_decided_by_its_own_test(self):
        self.assertEqual("holds", self.decided(0.05, kind="close", p_sign_flips=1.0))
        self.assertEqual("cannot be told", self.decided(0.051, kind="close", verdict="held"))
        self.assertEqual("does not hold", self.decided(1.0, kind="close", verdict="not held"))

    def test_secondary_claims_are_decided_by_the_program(self):
        for verdict, decided in (("held", "holds"), ("not held", "does not hold"), ("not shown", "cannot be told")):
            self.assertEqual(decided, self.decided(None, primary=False, verdict=verdict))

MACHINE = {
    "name": "a pair",
    "devices": {"count": 2, "teraflops": 0.001, "memory_gb_per_s": 1},
    "within": {"latency_us": 1, "bandwidth_gb_per_s": 1},
}


def cell(label, stages, mean, std=0.01, values=None):
    return Cell(label, f"stages {stages}", values or {"1": mean}, mean, std, 1)


class Machines(StudyTest):
    def test_hours_are_those_of_the_whole_recipe_at_the_simulated_pace(self):
        self.write("pair.yaml", MACHINE)
        self.keep(self.rows())
        self.page.write_text("<!-- front: A pair.yaml -->\n<!-- end -->\n<!-- advice: pair.yaml -->\n<!-- end -->\n")
        self.study()
        text = self.page.read_text()
        printed = self.pipewright("simulate", "experiments/s.yaml", "--sweep", "--set", "sweep.grid.train.seed=[1]",
                                  "--hardware", "pair.yaml").out
        for label, stages, title in (("reference", 1, "reference"), ("stale", 2, "stale stages 2")):
            pace = int(re.search(rf"(?m)^ {title} +(\d+) ", printed)[1])
            (hours,) = re.findall(rf"(?m)^\| {label} \| {stages} \| ([\d.]+) \|", text)
            # The pace is printed as a whole number, the hours with three digits, of which the last is off by a half.
            off = 1_000_000 / 3600 / pace * (0.5 / pace) + 0.5 * 10 ** -len(hours.partition(".")[2])
            self.assertAlmostEqual(float(hours), 1_000_000 / 3600 / pace, delta=off)
        self.assertEqual(2, text.count("| 3 | more devices needed |"))
        self.assertRegex(text, r"- \*\*digits\*\*: (take|stay with) \w+ in ")

    def test_the_front_is_what_no_other_beats(self):
        points = [front.Point(cell(name, 2, accuracy), "2", hours) for name, hours, accuracy in (
            ("a little faster, worse", 0.995, 0.69), ("fast", 1, 0.7), ("as fast, worse", 1, 0.6), ("good", 2, 0.9),
            ("slow", 3, 0.9), ("best", 4, 0.91), ("faster by 2 %, worse", 0.98, 0.65))]
        refused = front.Point(cell("refused", 8, 0.99), "8", reason="too few devices")
        shown = [point.cell.row for point in points if front.on_front(point, [*points, refused])]
        self.assertEqual(["fast", "good", "best", "faster by 2 %, worse"], shown)
        self.assertFalse(front.on_front(refused, points))

    def test_advice_is_the_fastest_that_loses_no_more_than_the_margin(self):
        reference = front.Point(cell("reference", 1, 0.9), "1", 4.0)
        task = SimpleNamespace(reference="reference")
        fast, close = front.Point(cell("fast", 8, 0.85), "8", 1.0), front.Point(cell("close", 4, 0.896), "4", 2.0)
        self.assertEqual(
            "take close in 4 stages: 2.00 hours where reference in 1 stage takes 4.00 hours, and −0.40 points from it. The "
            "fastest, fast in 8 stages: 1.00 hours where reference in 1 stage takes 4.00 hours, and −5.00 points from it.",
            front.sentence(task, [fast, close, reference]))
        self.assertEqual(
            "stay with reference in 1 stage: 4.00 hours; whatever is faster loses more than 0.5 points. The "
            "fastest, fast in 8 stages: 1.00 hours where reference in 1 stage takes 4.00 hours, and −5.00 points from it.",
            front.sentence(task, [fast, reference]))
        self.assertEqual("not run yet", front.sentence(task, [fast]))
        self.assertEqual(["1.00 hours", "59.4 minutes", "36.0 seconds"], [front.duration(hours) for hours in (1, 0.99, 0.01)])
        better = front.Point(cell("as fast", 4, 0.898), "4", 2.01)  # hours within 1 % count as equal
        self.assertTrue(front.sentence(task, [close, better, reference]).startswith("take as fast in 4 stages: 2.01 "))

    def test_a_task_without_a_whole_recipe_gives_no_advice(self):
        self.write("docs/study/tasks.csv", TASKS + TASKS.splitlines()[1].replace("1000000", "").replace("A,digits", "B,one rate"))
        self.write("experiments/s.yaml", changed(EXPERIMENT, {"claims": []}))
        self.write("docs/study/protocol.md", "No claims.\n")
        self.write("pair.yaml", MACHINE)
        self.keep(self.rows())
        self.page.write_text("<!-- advice: pair.yaml -->\n<!-- end -->\n")
        self.study()
        self.assertEqual(["- **digits**:"], re.findall(r"(?m)^- .*?:", self.page.read_text()))

    def test_a_simulated_point_belongs_to_the_cell_of_its_label_and_stages(self):
        two, four, any_stages = cell("a", 2, 0.5), cell("a", 4, 0.6), Cell("b", "vgg16", {}, None, None, 1)
        task = SimpleNamespace(id="A", cells=[two, four, any_stages])
        for label, stages, its in (("a", "4", four), ("b", None, any_stages), ("c", "4", None), ("a", "8", None)):
            self.assertEqual(its, front.cell_of(task, {"label": label, "pipeline.stages": stages}))
        task.cells.append(cell("a", 4, 0.7))
        with self.assertRaisesRegex(Exception, "2 cells of the table are of the simulated point 'a', stages 4"):
            front.cell_of(task, {"label": "a", "pipeline.stages": "4"})

    def test_a_point_of_which_runs_are_missing_is_not_on_the_front(self):
        half = front.Point(Cell("half", "stages 2", {"1": 0.99}, 0.99, None, 2), "2", 1.0)
        whole = front.Point(cell("whole", 2, 0.7), "2", 2.0)
        self.assertEqual([False, True], [front.on_front(point, [half, whole]) for point in (half, whole)])


SVG = "{http://www.w3.org/2000/svg}"


class Figures(StudyTest):
    def drawn(self, name):
        return ElementTree.parse(self.folder / "docs/study" / name).getroot()

    def shown(self, drawn):
        """The accuracies of its dots by the axis, in order, and how many points a pixel is."""
        ticks = {float(text.text): float(text.get("y")) - 4 for text in drawn.iter(f"{SVG}text")
                 if text.get("text-anchor") == "end"}
        (low, bottom), (high, top) = min(ticks.items()), max(ticks.items())
        points = (high - low) / (bottom - top)  # of accuracy for a pixel
        return sorted(low + (bottom - float(dot.get("cy"))) * points for dot in drawn.iter(f"{SVG}circle")), points

    def assert_dots(self, drawn, *schemes):
        shown, points = self.shown(drawn)
        for dot in drawn.iter(f"{SVG}circle"):
            self.assertTrue(20 <= float(dot.get("cy")) <= 340 and 64 <= float(dot.get("cx")) <= 540, "out of the plot")
        means = sorted(statistics.mean(self.accuracies(*scheme)) for scheme in schemes)
        for dot, mean in zip(shown, means, strict=True):
            self.assertAlmostEqual(dot, mean, delta=3 * 0.05 * points + 1e-9)  # the dot and both ticks are rounded

    def test_are_drawn_to_scale(self):
        self.write("pair.yaml", MACHINE)
        markers = ("<!-- figure: A a.svg -->", "<!-- hours: A pair.yaml h.svg -->")
        self.page.write_text("".join(f"{marker}\n<!-- end -->\n" for marker in markers))
        self.study()
        self.assertEqual(2, self.page.read_text().count("Not run yet."))
        self.keep(self.rows())
        self.study()
        for name in ("a.svg", "h.svg"):
            self.assertIn(f"![Accuracy of digits]({name})", self.page.read_text())
        self.assert_dots(self.drawn("a.svg"), ("stale", 2), ("stale", 3), ("predicted", 2), ("predicted", 3))
        # A pair of devices has no room for three stages.
        self.assert_dots(self.drawn("h.svg"), ("reference", 1), ("stale", 2), ("predicted", 2))

    def test_are_kept_up_to_date(self):
        self.page.write_text("<!-- figure: A a.svg -->\n<!-- end -->\n")
        self.keep(self.rows())
        self.study()
        self.study("--check")
        self.write("docs/study/a.svg", "<svg/>")
        self.assert_errors(self.study("--check", code=1), r"^docs/study/a\.svg is not what the rows of results show")

    def test_the_front_is_a_stair(self):
        self.assertEqual([(1, 9), (3, 9), (3, 7), (4, 7), (4, 2)], front_figure.stairs([(1, 9), (3, 7), (4, 2)]))


class Pooling(unittest.TestCase):
    """Rule 10 of the protocol."""

    def claims(self, *effects):
        return [self.claim(number, effect) for number, effect in enumerate(effects)]

    def claim(self, number, effect, deviation=0.02):
        seeds = ("1", "2", "3", "4")
        cells = {"new": cell("new", 4, 0.5, values=dict.fromkeys(seeds, 0.5 + effect)),
                 "old": cell("old", 4, 0.5, values=dict.fromkeys(seeds, 0.5)),
                 "reference": cell("reference", 1, 0.5, deviation)}
        task = SimpleNamespace(id=str(number), title=f"task {number}", reference="reference", cell_named=cells.get)
        test = {"kind": "less", "of": "new", "minus": "old", "p": 0.1, "effect": effect, "interval": [effect, effect],
                "level": 0.95}
        return verdicts.Claim(f"P{number}", task, "", test, True, 0.1)

    def test_is_of_four_tasks_or_more_of_one_sign(self):
        self.assertIn("No statement over tasks: 3 tasks have run, and the protocol asks for 4.",
                      pooling.pooled(self.claims(0.01, 0.02, 0.03)))
        self.assertIn("No statement over tasks: the signs of their effects differ.",
                      pooling.pooled(self.claims(0.01, 0.02, 0.03, -0.01)))
        # The same in all pairs, so every draw is their mean: (0.5 + 1 + 1.5 + 3) / 4 = 1.5 deviations of 0.02.
        self.assertIn("Over 4 tasks: +1.50 deviations of the reference, +1.50 … +1.50",
                      pooling.pooled(self.claims(0.01, 0.02, 0.03, 0.06)))

        self.assertIn("No statement over tasks: the runs of a reference do not vary.",
                      pooling.pooled([*self.claims(0.01, 0.02, 0.03), self.claim(3, 0.06, deviation=0.0)]))

    def test_is_of_different_tasks(self):
        with self.assertRaisesRegex(Exception, "two of the claims are of one task"):
            pooling.pooled([self.claim(1, 0.01), self.claim(1, 0.01)])

    def test_compares_runs_of_equal_seeds(self):
        values = {"new": {"1": 5, "2": 7, "4": 100}, "old": {"2": 3, "1": 4, "3": 50}}
        task = SimpleNamespace(cell_named=lambda name: SimpleNamespace(values=values[name]))
        claim = verdicts.Claim("P1", task, "", {"of": "new", "minus": "old"}, True)
        self.assertEqual([1, 4], pooling.differences(claim))

    def test_draws_seeds_within_tasks(self):
        # A draw is the mean of 16 signs. Of those, P(at most 3 are +) = 0.011 and P(at most 4) = 0.038, so the 2.5th
        # percentile is 4 of 16, a mean of -0.5, unless 2,000 draws miss 2.5 % by three of their standard deviations.
        self.assertEqual((-0.5, 0.5), pooling.bootstrap_interval([[-1, -1, 1, 1]] * 4, [1] * 4))
        # A task whose pairs agree keeps its effect: drawn across tasks, it would not.
        low, high = pooling.bootstrap_interval([[4, 4], [0, 0]], [1, 1])
        self.assertEqual((2, 2), (low, high))


class OurPages(StudyTest):
    def test_are_what_the_committed_rows_show(self):
        self.assertEqual("", self.study("--check", root=SOURCE_DIR).err)


if __name__ == "__main__":
    harness.main()
