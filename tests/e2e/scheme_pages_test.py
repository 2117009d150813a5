# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/manual/schemes: each scheme has one, and what they say is what the program does.

Drawings, numbers and published values are those that tools/scheme-pages writes. Formulas are evaluated in pipelines of
several lengths and compared with the versions that passes read, with copies, activations, idle time and edges.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import equations
import harness
import pages
from harness import SOURCE_DIR

FOLDER = SOURCE_DIR / "docs/manual/schemes"
HEADINGS = ["Weights", "Costs", "What the program says", "Published", "The authors' code", "Cite"]
OF_A_FILE = {"csv_schedule"}  # whose weights and costs a file decides
SHARE_TOLERANCE = 1e-9  # seconds are sums of whole numbers, exact in double; a share is one division of two of them
EDGE_TOLERANCE = 1e-6  # relative; the program searches an edge by halving to less, and prints four digits
STAGES_OF = {"amdp": (4, 8)}  # of a scheme that does not run in any number of stages
MANY = 12  # micro-batches: twice the most stages, and a multiple of one, two and three workers


def names():
    return sorted(page.stem for page in FOLDER.glob("*.md") if page.stem != "README")


def text_of(name):
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def versions(printed):
    """(stage, staleness of the forward, of the backward, copies) of each stage, of what `schedule` prints."""
    return re.findall(r"(?m)^(\d+) +-?\d+ +(-?\d+) +(-?\d+) +(\d+) ", printed)


def idle(worker, simulated):
    """The share of a worker's time, without fill and drain."""
    return 1 - worker["computing"] / (simulated["minibatches"] * simulated["seconds_per_minibatch"])


def scheme_pages(*arguments):
    return subprocess.run([sys.executable, "-B", SOURCE_DIR / "tools/scheme-pages", *map(str, arguments)], capture_output=True,
                          text=True, timeout=harness.SECONDS_LIMIT, check=False,
                          env=os.environ | {"PIPEWRIGHT_BINARY": harness.BINARY})


class SchemePages(harness.EndToEnd):
    def listed(self):
        return re.findall(r"(?m)^  (\w+)  ", self.pipewright("list", "schemes").out)

    def test_are_of_every_scheme_and_of_no_other(self):
        self.assertEqual(sorted(self.listed()), names())
        self.assertEqual(set(self.listed()), pages.first_column(FOLDER / "README.md"))
        self.assertEqual({f"{name}.svg" for name in names()}, {file.name for file in FOLDER.glob("*.svg")})

    def test_have_the_same_sections(self):
        for name in names():
            text = text_of(name)
            self.assertEqual(HEADINGS, re.findall(r"(?m)^## (.+)$", text), name)
            self.assertNotIn("…\n", re.sub(r"(?s)```.*?```", "", text), f"{name}: something is still to be written")
            self.assertIn(f"<!-- published: {name} -->", text, name)

    def test_say_how_to_cite(self):
        for name in names():
            cited = equations.section(text_of(name), "Cite")
            entries = re.findall(r"(?ms)^@\w+\{\w+,\n.*?^\}$", cited)
            if not entries:
                self.assertEqual("There is no paper to cite for it.", cited.strip(), name)
            for entry in entries:
                self.assertEqual(entry.count("{"), entry.count("}"), name)
                unverified = "title and authors were not;" in cited
                for field in ("eprint", "year") if unverified else ("title", "author", "year"):
                    self.assertRegex(entry, rf"\b{field} *= \{{", name)

    def test_are_up_to_date(self):
        done = scheme_pages("--check")
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_name_options_that_the_program_has(self):
        for name in names():
            for scheme in re.findall(r"`(?:scheme: )?(\{name: [^`]+\})`", text_of(name)):
                self.pipewright("schedule", self.experiment(name), "--set", f"scheme={scheme}")

    # Formulas

    def experiment(self, name):
        """The page's own experiment."""
        for block in pages.blocks(FOLDER / f"{name}.md", "yaml"):
            self.write(block.file, block.text)
        return f"{name}.yaml"

    def shape(self, name):
        """Stages and micro-batches of the page's experiment."""
        pipeline = re.search(r"(?m)^pipeline: \{stages: (\d+)(?:, microbatches: (\d+))?", text_of(name))
        return int(pipeline[1]), int(pipeline[2] or 1)

    def slices(self, name):
        """Slices of a micro-batch in the page's experiment."""
        found = re.search(r"(?m)^pipeline: \{.*\bslices: (\d+)", text_of(name))
        return int(found[1]) if found else 1

    def settings(self, name, options, stages, microbatches):
        """For the command line: the page's experiment in another shape, with these options of its scheme."""
        scheme = f"{{name: {name}{', ' + options if options else ''}}}"
        widths = [64, *[16] * (stages - 1), 10]
        sizes = {"model.layers": stages} if self.slices(name) > 1 else {"model.widths": widths}  # of a gpt, of a mlp
        changes = {"scheme": scheme, "pipeline.stages": stages, "pipeline.microbatches": microbatches,
                   "loader.batch_size": 4 * MANY} | sizes
        if name == "amdp":
            changes["pipeline.replicas"] = stages // 2
        return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]

    def with_formulas(self):
        return [name for name in names() if name not in OF_A_FILE]

    def test_versions_that_passes_read_are_those_of_the_formulas(self):
        for name in self.with_formulas():
            own, micro = self.shape(name)
            table = equations.rows(text_of(name), "Weights")
            self.assertEqual("", table[0][0] if table else None, f"{name}: the first row is not of the defaults")
            for options, row in table:
                for stages in STAGES_OF.get(name, (2, 4, 6)) if own > 1 else (1,):
                    for microbatches in {micro, MANY}:
                        if name != "pipedream_2bw" or microbatches >= stages:
                            with self.subTest(name, options=options, stages=stages, microbatches=microbatches):
                                self.compare_versions(name, options, [cell for _, cell in row], stages, microbatches)

    def compare_versions(self, name, options, row, stages, microbatches):
        forward = list(map(equations.formula_of, row[:2]))
        backward = forward if row[2] == "as the forward" else list(map(equations.formula_of, row[2:]))
        self.pipewright("schedule", self.experiment(name), *self.settings(name, options, stages, microbatches),
                        "--minibatches", 7, "--csv", "order.csv")
        read = [each for each in harness.Run(self.folder).rows("order.csv") if each["version"]]
        self.assertGreater(len(read), 7)
        for each in read:
            k, m, j = (int(each[key]) for key in ("stage", "minibatch", "microbatch"))
            symbols = {"N": stages, "k": k, "D": stages - 1 - k, "M": microbatches, "m": m, "f": m * microbatches + j}
            formulas = forward if each["kind"] in ("forward", "head") else backward
            said = [equations.evaluate(formula, symbols) for formula in formulas]
            self.assertEqual(said, [int(each["version"]), int(each["ahead"])], f"{each['kind']} {symbols}")

    def test_costs_are_those_of_the_formulas(self):
        for name in self.with_formulas():
            own, micro = self.shape(name)
            shapes = [(own, micro)]
            if own > 1:
                shapes += [(stages, 1 if micro == 1 else MANY) for stages in STAGES_OF.get(name, (2, 6))]
            table = equations.rows(text_of(name), "Costs")
            self.assertEqual("", table[0][0] if table else None, f"{name}: the first row is not of the defaults")
            for options, row in table:
                for shape in shapes:
                    with self.subTest(name, options=options, shape=shape):
                        self.compare_costs(name, options, dict(row), *shape)

    def compare_costs(self, name, options, row, stages, microbatches):
        settings = [self.experiment(name), *self.settings(name, options, stages, microbatches)]
        self.write("costs.yaml", (SOURCE_DIR / "examples/unit-costs.yaml").read_text(encoding="utf-8"))
        self.pipewright("simulate", *settings, "--costs", "costs.yaml", "--json", "simulated.json")
        simulated = json.loads((self.folder / "simulated.json").read_text(encoding="utf-8"))
        workers = simulated["workers"]
        symbols = {"N": stages, "M": microbatches, "s": self.slices(name), "p": len(workers), "c": stages // len(workers)}
        for worker in workers:
            here = symbols | {"w": worker["worker"]}
            share = equations.evaluate(equations.formula_of(row["idle in the steady state"]), here)
            self.assertAlmostEqual(float(share), idle(worker, simulated), delta=SHARE_TOLERANCE, msg=here)
            held = equations.evaluate(equations.formula_of(row["micro-batches that worker w holds"]), here)
            self.assertEqual(held, worker["peak"]["activations"], here)
        table = versions(self.pipewright("schedule", *settings, "--minibatches", 2 * stages + 6).out)
        for stage, copies in ((int(each[0]), int(each[3])) for each in table):
            here = symbols | {"k": stage, "D": stages - 1 - stage}
            self.assertEqual(equations.evaluate(equations.formula_of(row["copies of W on stage k"]), here), copies, here)
        if "edge without momentum" in row:
            self.compare_edges(settings, row["edge without momentum"], symbols)

    def compare_edges(self, settings, cell, symbols):
        self.pipewright("stability", *settings, "--set", "optimizer.momentum=0", "--json", "edges.json")
        for each in json.loads((self.folder / "edges.json").read_text(encoding="utf-8"))["stages"]:
            here = symbols | {"k": each["stage"], "D": symbols["N"] - 1 - each["stage"]}
            edge = float(equations.evaluate(equations.formula_of(cell), here))
            self.assertAlmostEqual(edge, each["edge"], delta=EDGE_TOLERANCE * edge, msg=here)


class WrongPages(harness.EndToEnd):
    """In a copy of the pages."""

    def setUp(self):
        super().setUp()
        self.pages = self.folder / "docs/manual/schemes"
        shutil.copytree(FOLDER, self.pages)
        for name in ("examples", "experiments"):
            (self.folder / name).symlink_to(SOURCE_DIR.resolve() / name)
        for page in self.pages.glob("*.md"):
            if page.stem not in ("gpipe", "README"):
                page.unlink()

    def test_numbers_and_drawings_that_are_others_are_found_and_written_anew(self):
        page, drawing = self.pages / "gpipe.md", self.pages / "gpipe.svg"
        right = page.read_text(encoding="utf-8"), drawing.read_text(encoding="utf-8")
        page.write_text(right[0].replace("0      3  0        0        1 ", "0      3  0        0        2 "), encoding="utf-8")
        drawing.write_text(right[1].replace("forward", "backward"), encoding="utf-8")
        done = scheme_pages("--check", "--root", self.folder)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertEqual({"gpipe.md", "gpipe.svg"}, set(re.findall(r"schemes/(\S+) is not what the program says", done.stderr)))
        self.assertEqual(0, scheme_pages("--root", self.folder).returncode)
        self.assertEqual(right, (page.read_text(encoding="utf-8"), drawing.read_text(encoding="utf-8")))

    def test_a_page_is_begun_and_then_filled(self):
        self.assertEqual(0, scheme_pages("--new", "one_f_one_b", "--root", self.folder).returncode)
        self.assertEqual(0, scheme_pages("--root", self.folder).returncode)
        text = (self.pages / "one_f_one_b.md").read_text(encoding="utf-8")
        self.assertEqual(HEADINGS, re.findall(r"(?m)^## (.+)$", text))
        self.assertIn("none                          3.8", text)
        for name, said in (("none", "`list schemes` prints no none"), ("gpipe", "exists")):
            done = scheme_pages("--new", name, "--root", self.folder)
            self.assertEqual(2, done.returncode)
            self.assertIn(said, done.stderr)

    def test_a_page_without_its_experiment_is_named(self):
        page = self.pages / "gpipe.md"
        page.write_text(page.read_text(encoding="utf-8").replace("# gpipe.yaml", "# other.yaml"), encoding="utf-8")
        done = scheme_pages("--root", self.folder)
        self.assertEqual(2, done.returncode)
        self.assertRegex(done.stderr, r"gpipe\.md:\d+: the page has no block with the experiment; expected .* '# gpipe\.yaml'")


class Formulas(unittest.TestCase):
    def test_are_evaluated_as_on_paper(self):
        for formula, symbols, value in (("⌊(f − D) / M⌋", {"f": 1, "D": 3, "M": 4}, -1), ("⌈D / M⌉", {"D": 5, "M": 4}, 2),
                                        ("round(k / 2)", {"k": 5}, 3), ("round((k − 6) / 2)", {"k": 1}, -3),
                                        ("min(M, N − w)", {"M": 4, "N": 8, "w": 6}, 2), ("2·sin(π / (4·D + 2))", {"D": 0}, 2.0)):
            self.assertEqual(value, equations.evaluate(formula, symbols), formula)

    def test_of_unknown_symbols_or_no_sense_are_refused(self):
        for formula in ("q + 1", "1 +", "__import__", "k.real", "k[0]"):
            with self.assertRaises(equations.WrongFormula, msg=formula):
                equations.evaluate(formula, {"k": 1})


if __name__ == "__main__":
    harness.main()
