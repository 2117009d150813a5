# SPDX-License-Identifier: Apache-2.0
"""Comparisons of runs: none mixes in what is unfinished, and rows have the file's order wherever they stand."""

import csv
import json
import re
import sys
import xml.etree.ElementTree

import harness
import skips
from harness import MLP, SOURCE_DIR, changed

sys.path.insert(0, str(SOURCE_DIR / "python"))

import pipewright_lab as pw

# Neither the names of folders nor the alphabet nor the size of numbers gives this order.
GRID = {"scheme.name": ["pipedream", "gpipe"], "pipeline.stages": [4, 2], "train.seed": [1, 2]}
SWEEP = changed(MLP, {"train.epochs": 2, "sweep": {"grid": GRID}})
IN_ORDER = [["pipedream", 4], ["pipedream", 2], ["gpipe", 4], ["gpipe", 2]]


class Comparisons(harness.EndToEnd):
    def sweep(self, experiment):
        self.write("s.yaml", experiment)
        return self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2")

    def run_of(self, **varied):
        for point in sorted((self.folder / "sw").glob("*/point.json")):
            if json.loads(point.read_text())["varied"].items() >= varied.items():
                return point.parent
        self.fail(f"no run of {varied}")

    def interrupt(self, folder):
        """Makes of a finished run what Ctrl-C leaves, with an epoch that no mean may contain."""
        record = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(record | {"state": "interrupted"}))
        header, first = (folder / "epochs.csv").read_text().splitlines()[:2]
        values = first.split(",")
        values[header.split(",").index("test_accuracy")] = "0.9875"
        (folder / "epochs.csv").write_text(f"{header}\n{','.join(values)}\n")

    def test_unfinished_runs_are_in_no_mean_and_marked_wherever_they_stand(self):
        one_size = changed(SWEEP, {"sweep": {"grid": {"scheme.name": ["pipedream", "gpipe"], "train.seed": [1, 2]}}})
        self.sweep(one_size)
        cut, whole = (self.run_of(**{"scheme.name": "pipedream", "train.seed": seed}) for seed in (2, 1))
        self.interrupt(cut)
        with self.subTest("table"):
            table = self.pipewright("table", "s.yaml", "--out", "sw").out
            self.assertRegex(table, r"\| pipedream +\| +\d+\.\d\d \(1\), 1 interrupted \|")
        for how in ("s.yaml", "sw"):
            with self.subTest("report", how=how):
                flags = ("--out", "sw") if how == "s.yaml" else ()
                self.pipewright("report", how, *flags, "-o", "page.html")
                page = (self.folder / "page.html").read_text()
                self.assertEqual(page.count("(left out: 1 interrupted)"), 2, "curves of accuracy and of loss")
                self.assertNotIn("98.75", page)
        with self.subTest("compare"):
            said = self.pipewright("compare", whole, cut).out
            self.assertIn("second is interrupted", said)
            self.assertIn("the second is not done but interrupted", said)
        with self.subTest("export"):
            self.pipewright("export", "sw", "-o", "all.csv")
            with open(self.folder / "all.csv", newline="") as file:
                states = {(row["run"], row["state"]) for row in csv.DictReader(file)}
            self.assertEqual(sorted(state for _, state in states), ["done"] * 3 + ["interrupted"])
            self.assertIn((cut.name, "interrupted"), states)
            said = self.pipewright("export", "sw", "-o", "logs", "--format", "tensorboard").err
            self.assertIn(f"{cut.name} is interrupted", said)
        with self.subTest("Python"):
            results = pw.load(self.folder / "sw")
            for name in ("runs", "epochs", "steps"):
                states = {(row["run"], row["state"]) for row in results.rows(name)}
                self.assertEqual(sorted(state for _, state in states), ["done"] * 3 + ["interrupted"], name)
        if not skips.has("gnuplot"):
            return skips.left_out("the picture of an unfinished run", "gnuplot")
        with self.subTest("plot"):
            self.pipewright("plot", "s.yaml", "--out", "sw")
            drawing = xml.etree.ElementTree.parse(self.folder / "sw/plots/test_accuracy.svg").getroot()
            self.assertIn("left out: 1 interrupted", " ".join(drawing.itertext()))

    def test_a_sweep_prints_its_table_without_a_section_too(self):
        printed = self.sweep(SWEEP).out
        table = self.pipewright("table", "s.yaml", "--out", "sw").out
        self.assertEqual(printed[: len(table)], table)
        self.assertRegex(table, r"\| scheme.name +\| +stages 4 \| +stages 2 \|")

    def test_rows_have_the_order_of_the_file_wherever_they_stand(self):
        self.sweep(SWEEP)
        keys = ("scheme.name", "pipeline.stages")
        for how, flags in (("s.yaml", ("--out", "sw")), ("sw", ())):
            with self.subTest("report", how=how):
                self.pipewright("report", how, *flags, "-o", "page.html")
                page = (self.folder / "page.html").read_text()
                results = page[page.index('id="results"') :]
                self.assertLess(results.index("pipedream"), results.index("gpipe"))
                heads = re.findall(r"stages [24]", results[: results.index("</table>")])
                self.assertEqual(list(dict.fromkeys(heads)), ["stages 4", "stages 2"])
            with self.subTest("export", how=how):
                self.pipewright("export", how, *flags, "-o", "all.csv")
                with open(self.folder / "all.csv", newline="") as file:
                    rows = dict.fromkeys(tuple(row[key] for key in keys) for row in csv.DictReader(file))
                self.assertEqual([[scheme, int(stages)] for scheme, stages in rows], IN_ORDER)
        with self.subTest("Python"):
            rows = pw.load(self.folder / "sw").rows("runs")
            self.assertEqual([[row[key] for key in keys] for row in rows[::2]], IN_ORDER)

    def test_a_scheme_has_one_colour_on_the_page_whatever_its_label(self):
        points = [
            {"label": "Second", "scheme": {"name": "pipedream"}},
            {"label": "First", "scheme": {"name": "one_f_one_b"}},
        ]
        self.sweep(changed(MLP, {"train.epochs": 2, "pipeline.stages": 4, "sweep": {"points": points}}))
        self.pipewright("report", "s.yaml", "--out", "sw", "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        colours = {}
        for figure in re.findall(r"<figure class=\"chart\">.*?</figure>", page, re.DOTALL):
            legend = figure[figure.index('<ul class="legend">') :]
            for colour, name in re.findall(r'class="mark (c\d)".*?<span>([^<]*)</span>', legend):
                scheme = "pipedream" if name.startswith(("Second", "pipedream")) else "one_f_one_b"
                colours.setdefault(scheme, set()).add(colour)
        self.assertEqual({scheme: len(all) for scheme, all in colours.items()}, {"pipedream": 1, "one_f_one_b": 1})
        self.assertNotEqual(colours["pipedream"], colours["one_f_one_b"])
        self.assertGreater(page.count('<figure class="chart">'), 3)

    def test_seconds_of_a_serial_execution_are_in_no_chart(self):
        points = [{"label": label, "scheme": {"name": name}} for label, name in (("A", "gpipe"), ("B", "pipedream"))]
        self.write("s.yaml", changed(MLP, {"train.epochs": 1, "sweep": {"points": points}}))
        for execution, there in (("serial", False), ("threads", True)):
            flags = ("--out", execution, "--set", f"pipeline.execution={execution}")
            self.pipewright("sweep", "s.yaml", *flags)
            self.pipewright("report", "s.yaml", *flags, "-o", "page.html")
            page = (self.folder / "page.html").read_text()
            self.assertEqual('id="front"' in page, there, execution)


if __name__ == "__main__":
    harness.main()
