# SPDX-License-Identifier: Apache-2.0
"""The experiment files of published papers: whole, wanting nothing but their data; and in profile `ci`,
trained on made-up data with every scheme and every cut. Results mean nothing there; that they come
about, and that tables and pictures can be made of them, is what is tested.
"""

import csv
import io
import re

import harness
import skips
from harness import DATA, SOURCE_DIR, SWEEP

# Those at the top are to start from and have no profile for tests; those in deeper folders are extended.
FILES = sorted(
    file for file in (SOURCE_DIR / "experiments").glob("*/*.yaml") if file.parent.name != "hardware"
)


class Experiments(harness.EndToEnd):
    def command(self, *arguments, **more):
        """With a home that holds no data, whatever the user's does."""
        return self.pipewright(*arguments, environment={"HOME": str(self.folder / "home")}, **more)

    def runs(self, folder):
        runs = [harness.Run(path) for path in (self.folder / folder).glob("*-*") if path.is_dir()]
        self.assertGreater(len(runs), 1)
        return runs

    def as_published(self, file):
        """Options are checked before data are looked for, of all runs."""
        one_seed = ["--set", "sweep.grid.train.seed=[1]"]
        done = self.command("sweep", file, *one_seed, "--out", "whole", "--jobs", "2", code=SWEEP)
        count = len(self.runs("whole"))
        self.assertEqual(done.err.count(f": failed, exit code {DATA}: "), count, done.err)
        self.assertEqual(done.err.lower().count("set dataset.root"), 2 * count, done.err)

    def small(self, file):
        options = [file, "--profile", "ci", "--out", "small"]
        done = self.command("sweep", *options, "--jobs", "2")
        runs = self.runs("small")
        self.assertEqual([run.state() for run in runs], ["done"] * len(runs), done.err)

        page = self.command("table", *options).out
        self.assertRegex(page, rf"; from {len(runs)} runs?\b")
        if "; published: " in page.splitlines()[0]:
            self.assertRegex(page, r"\d published")
        for cell in csv.DictReader(io.StringIO(self.command("table", *options, "--format", "csv").out)):
            self.assertEqual((cell["failed"], cell["missing"]), ("0", "0"), page)
        if not skips.has("gnuplot"):
            return skips.left_out("plots", "gnuplot")
        self.command("plot", *options)
        self.assertNotEqual(list((self.folder / "small/plots").glob("*.svg")), [])

    def edges(self, file):
        """Losses inside and outside the edge; at the beginning they are 2."""
        self.command("sweep", file, "--out", "whole", "--jobs", "2")
        page = self.command("table", file, "--out", "whole", "--format", "csv").out
        cells = list(csv.DictReader(io.StringIO(page)))
        self.assertEqual(len(cells), 14, page)
        for cell in cells:
            loss = float(cell["mean"])
            self.assertTrue(loss < 1e-2 if cell["column"] == "inside" else loss > 1e2, cell)

    def simulated(self, file):
        """All points, which are 4, 8 and 16 workers of equal layers: what the papers say of their schedules."""
        self.command("simulate", file, "--sweep", "--csv", "points.csv")
        rows = list(csv.DictReader(io.StringIO((self.folder / "points.csv").read_text(encoding="utf-8"))))
        self.assertEqual({row["state"] for row in rows}, {"fits"})
        for workers in ("4", "8", "16"):
            of = {row["label"]: row for row in rows if row["workers"] == workers}
            bubbles = [float(of[scheme]["bubble"]) for scheme in ("ZB-V", "V-Half", "V-Min", "1F1B")]
            self.assertEqual(bubbles, sorted(bubbles), workers)
            held = [int(of[scheme]["peak_bytes"]) for scheme in ("V-Min", "V-Half", "ZB-V", "ZB-H2", "GPipe")]
            self.assertEqual(held, sorted(held), workers)
        self.assertEqual(self.printed_in_readme(), {row["label"]: self.of_workers(rows, row["label"]) for row in rows})

    @staticmethod
    def of_workers(rows, label):
        """Bubble, and memory of the fullest worker as a share of 1F1B's, on 4, 8 and 16 workers, as the README rounds them."""
        of_1f1b = {row["workers"]: int(row["peak_bytes"]) for row in rows if row["label"] == "1F1B"}
        return [
            f"{100 * float(row['bubble']):.1f} %, {int(row['peak_bytes']) / of_1f1b[row['workers']]:.2f}"
            for row in rows if row["label"] == label
        ]  # fmt: skip

    @staticmethod
    def printed_in_readme():
        """The cells of the table of bubble and memory, by schedule."""
        text = (SOURCE_DIR / "experiments/README.md").read_text(encoding="utf-8")
        table = text.partition("| schedule | 4 workers | 8 workers | 16 workers |")[2].partition("\n\n")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        return {row[0]: row[1:4] for row in rows}

    def both(self, file):
        """Benchmarks have made-up data: their whole runs would begin, and last for days."""
        if "\ntable:" not in file.read_text(encoding="utf-8") and "\nextends:" not in file.read_text(encoding="utf-8"):
            return self.simulated(file)
        if "dataset: {name: quadratic" in file.read_text(encoding="utf-8"):
            self.edges(file)
        elif "dataset: {name: synthetic" in file.read_text(encoding="utf-8").partition("profiles:")[0]:
            page = self.command("table", file, "--out", "whole").out
            self.assertRegex(page, r"modelled_\w+ on \S+, ")
            self.assertRegex(page, r"\d published, [+−]")
        else:
            self.as_published(file)
        self.small(file)


for experiment in FILES:
    setattr(
        Experiments,
        f"test_{experiment.parent.name}_{experiment.stem}",
        lambda self, file=experiment: self.both(file),
    )


class SlowLinks(harness.EndToEnd):
    def test_seconds_and_memory_of_a_step_are_those_of_the_page(self):
        """And the two that were published are within 1 and 3 %."""
        file = SOURCE_DIR / "experiments/slow_links/contest.yaml"
        self.pipewright("simulate", file, "--sweep", "--hardware", "wan-200mbps", "--csv", "points.csv")
        rows = csv.DictReader(io.StringIO((self.folder / "points.csv").read_text(encoding="utf-8")))
        simulated = {row["label"]: (float(row["seconds_per_minibatch"]), int(row["peak_bytes"]) / 2**30) for row in rows}
        page = (SOURCE_DIR / "docs/manual/understand/slow-links.md").read_text(encoding="utf-8")
        printed = re.findall(r"(?m)^\| ([^|]+?) \| \d+ \| ([\d.]+) \| ([\d.]*) ?\| ([\d.]+) \|$", page)
        names = {row[0].replace(",", "").replace("PipeDream-", ""): row[1:] for row in printed}
        self.assertEqual(names.keys(), simulated.keys())
        for label, (said, public, gib) in names.items():
            self.assertAlmostEqual(float(said), simulated[label][0], delta=0.00501, msg=label)
            self.assertAlmostEqual(float(gib), simulated[label][1], delta=0.0501, msg=label)
            if public:
                self.assertLess(abs(float(said) / float(public) - 1), 0.03 if "subspace" in label else 0.01)
        self.assertEqual(["1F1B", "1F1B subspace"], [label for label, (_, public, _) in names.items() if public])


class Modelled(harness.EndToEnd):
    """What the README prints of files that need no run."""

    def cells(self, file, column):
        """The means of a column, and what was published, from the top."""
        page = self.pipewright("table", SOURCE_DIR / "experiments" / file, "--out", "none", "--format", "csv").out
        return [
            (float(row["mean"]), float(row["published"] or 0)) for row in csv.DictReader(io.StringIO(page)) if row["column"] == column
        ]

    @staticmethod
    def rows(heading):
        text = (SOURCE_DIR / "experiments/README.md").read_text(encoding="utf-8")
        table = text[text.index(heading) :].partition("\n\n")[0]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]

    def same(self, printed, cells):
        self.assertEqual(len(printed), len(cells))
        for (ours, public), (mean, published) in zip(printed, cells):
            decimals = len(ours.partition(".")[2])
            self.assertLessEqual(abs(float(ours) - mean), 0.5001 * 10**-decimals)
            self.assertEqual(float(public), published)

    def test_speed_ups_of_torchgpipe(self):
        rows = self.rows("| ResNet-101 | modelled")
        for first, file, column in ((1, "resnet101", "resnet101"), (4, "unet", "unet"), (7, "amoebanet", "amoebanet_d")):
            printed = [(row[first], row[first + 1]) for row in rows if row[first]]
            self.same(printed, self.cells(f"torchgpipe/{file}_speed.yaml", column))

    def test_throughput_and_speed_ups_of_gpipe_test(self):
        rows = self.rows("| | samples a second, modelled")
        for model, of in (("mobilenet_v2", rows[:5]), ("roberta", rows[5:])):
            file = f"gpipe_test/{model}_speed.yaml"
            self.same([(row[3], row[4]) for row in of], self.cells(file, model))
            self.same([(row[1], "0") for row in of], self.cells(file, "modelled_samples_per_second"))


class Folder(harness.EndToEnd):
    def test_what_is_known_to_differ_is_said(self):
        experiments = SOURCE_DIR / "experiments"
        for file, label, text in (
            ("gpipe_test/compression_cifar10", "none", "published later than the other rows: in the README of 2022-11-20"),
            ("spectrain/transformer", "spectrain_v1", "with the learning rate of the epoch before in the first forwards"),
        ):
            page = self.pipewright("table", experiments / f"{file}.yaml", "--out", "none").out
            mark = re.search(rf"(?m)^(\[\d\]) .*{text}$", page)[1]
            self.assertRegex(page, rf"(?m)^\| {label} .* published \[1\] {re.escape(mark)} ")
        for model in ("vgg16", "densenet121", "googlenet"):
            head = (experiments / f"spectrain/{model}.yaml").read_text().partition("extends:")[0]
            self.assertIn("No data-parallel script exists", head)
        self.assertIn("each weighted by its samples", " ".join(self.pipewright("describe", "train").out.split()))

    def test_files_lose_nothing_of_those_that_they_extend(self):
        for file in FILES:
            environment = {"HOME": str(self.folder / "home")}
            done = self.finish(self.start("check", file, environment=environment))
            self.assertNotIn("a section that gives its name replaces", done.err)
            self.assertNotIn("no command can use the profile", done.err)

    def test_options_fit_the_data_that_are_here(self):
        """Of sets that are not there nothing is known; no option is wrong."""
        if not harness.DATA_DIR.is_dir():
            skips.lacks("real-data")
        few = ("--set", "loader.drop_last=false")  # of some sets there are less samples here than a mini-batch has
        for file in FILES:
            environment = {"PIPEWRIGHT_DATA": str(harness.DATA_DIR)}
            done = self.finish(self.start("check", file, "--point", "1", *few, environment=environment))
            self.assertIn(done.code, (0, DATA), f"{file}: {done.err}")

    def test_profiles_beside_published_numbers_say_what_is_ours(self):
        """But for `ci`, whose data are made up; with it, what is said of the whole would be false."""
        shown = 0
        for file in FILES:
            profiles = re.findall(r"(?m)^  (\w+):", file.read_text(encoding="utf-8").partition("\nprofiles:")[2])
            for profile in set(profiles) - {"ci"}:
                page = self.pipewright("table", file, "--profile", profile, "--out", "none").out
                if re.search(r"(?m)^\|.* published", page):
                    self.assertIn("] ours: ", page, f"{file} {profile}")
                    shown += 1
        self.assertGreater(shown, 20)

    def test_every_paper_has_its_files(self):
        papers = {file.parent.name for file in FILES}
        self.assertLessEqual({"spectrain", "pipeoptim", "gpipe_test", "torchgpipe", "interlocking"}, papers)


if __name__ == "__main__":
    harness.main()
