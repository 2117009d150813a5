# SPDX-License-Identifier: Apache-2.0
"""`pipewright report`: what its page says, that nothing in it acts, and what is said where there is little to show."""

import csv
import io
import json
import re
import shutil

import harness
import many_runs
from harness import DATA, EXPERIMENT, MLP, SWEEP, changed
from report_pages import CLAIM, HOSTILE, QUESTION, Page, experiment, with_a_hole

MOST_BYTES = 5_000_000  # of a page about 100 runs
SECTIONS = [
    "results", "verdicts", "curves", "against", "front", "schedules", "strips", "memory", "settings", "failures",
    "machine", "commands", "cite",
]  # fmt: skip


class Report(harness.EndToEnd):
    def page(self, name="sw/report.html"):
        page = Page((self.folder / name).read_text())
        self.assertEqual(page.faults, [])
        self.assertEqual(len(page.ids), len(set(page.ids)), "two elements have one name")
        for link in page.links:
            self.assertTrue(link.startswith("#") and link[1:] in page.ids, link)
        return page

    def sweep_and_report(self, *flags, code=SWEEP, **settings):
        self.write("s.yaml", experiment(**settings))
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2", code=code)
        done = self.pipewright("report", "s.yaml", "--out", "sw", *flags)
        self.assertIn("wrote sw/report.html", done.out)
        self.assertEqual(done.err, "")
        return self.page()


    def swept(self, changes, *flags):
        """The page of a sweep of small experiments."""
        self.write("s.yaml", changed(MLP, changes))
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2")
        self.pipewright("report", "s.yaml", "--out", "sw", *flags)
        return self.page()


class Whole(Report):
    def test_the_page_of_a_sweep_has_all_sections(self):
        page = self.sweep_and_report()
        self.assertEqual([each for each in page.ids if each in SECTIONS], SECTIONS)
        said = page.said()
        for words in (
            QUESTION, CLAIM, "12 runs: 9 done, 3 diverged", "PipeDream", "commit", "processor",
            "pipewright sweep s.yaml --out sw", "@software{pipewright", "narayanan2019pipedream", "huang2019gpipe",
            "planned, with the medians of its own times", "Weight gap of the forward", "optimizer.lr",
            "Settings that all runs share", "versions of a stage’s weights",
        ):  # fmt: skip
            self.assertIn(words, said)
        self.assertNotIn("yaml-language-server", said)
        digests = {json.loads(path.read_text())["digest"] for path in (self.folder / "sw").glob("*/run.json")}
        self.assertEqual(len(digests), 12)
        for digest in digests:
            self.assertIn(digest, said)
        reason = json.loads(next((self.folder / "sw").glob("diverges-*/run.json")).read_text())["error"]
        self.assertIn(reason, said)
        # Cells are those of the table.
        table = self.pipewright("table", "s.yaml", "--out", "sw").out
        for row in [line for line in table.splitlines() if line.startswith("| PipeDream ")]:
            for cell in row.strip("| ").split(" | "):
                self.assertIn(cell.strip(), said)
        # Schedules say the version of the weights, also of what was measured.
        titles = [text for text in page.words if "; weights " in text]
        self.assertTrue(any("slots" in text for text in titles))
        self.assertTrue(any(" to " in text and "s; weights " in text for text in titles))
        self.assertLess(len(page.text), MOST_BYTES)

    def test_the_page_of_a_folder_has_the_same_runs(self):
        self.sweep_and_report(seeds=(1,))
        self.pipewright("report", "sw", "--output", "folder.html")
        said = self.page("folder.html").said()
        for words in ("4 runs: 3 done, 1 diverged", "PipeDream", "GPipe", "pipewright report sw"):
            self.assertIn(words, said)
        run = next((self.folder / "sw").glob("PipeDream-*"))
        self.pipewright("report", str(run.relative_to(self.folder)), "-o", "run.html")
        self.assertIn("1 run: 1 done", self.page("run.html").said())
        self.assert_errors(
            self.pipewright("report", "sw", "--set", "train.epochs=1", code=EXPERIMENT),
            r"^--set needs the experiment's file in the place of a folder of its runs$",
        )

    def test_runs_of_another_version_of_the_file_are_told_and_no_others(self):
        self.swept({"train.epochs": 1, "sweep": {"grid": {"train.seed": [1, 2]}}})
        done = self.pipewright("report", "s.yaml", "--out", "sw", "--set", "sweep.grid.train.seed=[1]")
        self.assertEqual(
            done.err.split("; `")[0], "1 run of another version of this file, or of other --set or --profile, is here", done.err
        )

    def test_a_training_that_a_folder_has_twice_counts_once(self):
        for label in ("one", "other"):
            self.swept({"train.epochs": 1, "sweep": {"points": [{"label": label}], "grid": {"train.seed": [1, 2]}}})
        self.assertEqual(4, len(list((self.folder / "sw").glob("*/run.json"))))
        self.pipewright("report", "sw", "--output", "folder.html")
        said = self.page("folder.html").said()
        self.assertIn("2 runs: 2 done", said)
        self.assertIn("2 runs are left out, because the folder has the same training twice.", said)

    def test_curves_do_not_pool_what_the_table_tells_apart(self):
        grid = {
            "scheme.name": ["gpipe", "pipedream"], "pipeline.stages": [2, 3], "optimizer.lr": [0.01, 0.02],
            "train.seed": [1, 2],
        }  # fmt: skip
        page = self.swept({"train.epochs": 2, "sweep": {"grid": grid}})
        said = page.said()
        for metric in ("test_accuracy", "train_loss"):
            for stages in (2, 3):
                self.assertIn(f"{metric}, stages {stages}", said)
        charts = {chart["title"]: chart for chart in page.charts() if chart["axes"].startswith(("test_acc", "train_loss"))}
        for axis in ("workers", "optimizer.lr"):
            names = [line["name"] for line in charts[f"test_accuracy against {axis}"]["lines"]]
            self.assertEqual(len(" = ".join(names).split(" = ")), 4, names)  # equal lines are one
        for title, chart in charts.items():
            for line in chart["lines"]:
                self.assertEqual({point[3] for point in line["points"]}, {2}, f"{title}: {line['name']}")
        self.assertNotIn("Means mix", said)

    def test_one_scheme_has_one_colour(self):
        grid = {"scheme.name": ["gpipe", "pipedream"], "optimizer.lr": [0.01, 0.02], "pipeline.stages": [2, 3]}
        looks = {}
        for chart in self.swept({"sweep": {"grid": grid}, "table": {"rows": "scheme.name"}}).charts():
            for line in chart["lines"]:
                name = line["name"].split(",")[0]
                if name in grid["scheme.name"]:
                    looks.setdefault(name, set()).add(line["look"])
        self.assertEqual(looks.keys(), set(grid["scheme.name"]))
        self.assertEqual([len(each) for each in looks.values()], [1, 1], looks)

    def test_curves_say_what_they_pool(self):
        grid = {"scheme.name": ["gpipe", "pipedream"], "optimizer.lr": [0.01, 0.02]}
        page = self.swept({"sweep": {"grid": grid}, "table": {"rows": "scheme.name"}})
        curves = page.text[page.text.index('id="curves"') : page.text.index('id="against"')]
        self.assertEqual(curves.count("Means mix optimizer.lr: ± is over all their runs"), 2)

    def test_where_the_table_chooses_a_rate_its_runs_alone_are_drawn(self):
        grid = {
            "scheme.name": ["gpipe", "pipedream"], "optimizer.lr": [0.001, 0.05], "loader.validation": [32, 0],
            "train.seed": [1, 2],
        }  # fmt: skip
        table = {"rows": "scheme.name", "best_over": "optimizer.lr"}
        page = self.swept({"train.epochs": 2, "sweep": {"grid": grid}, "table": table})
        said = page.said()
        chosen = dict(re.findall(r"(gpipe|pipedream): ([\d.]+) \([\d.]+, 2 runs\)", said))
        self.assertEqual(chosen.keys(), {"gpipe", "pipedream"}, said)
        self.assertIn("optimizer.lr chosen on held-out samples", said)
        self.assertNotIn("Means mix", said)
        charts = {chart["title"]: chart for chart in page.charts()}
        self.assertNotIn("test_accuracy against loader.validation", charts)
        losses = {}
        for path in (self.folder / "sw").glob("*/point.json"):
            varied = json.loads(path.read_text())["varied"]
            if varied["loader.validation"] == 0 and str(varied["optimizer.lr"]) == chosen[varied["scheme.name"]]:
                last = harness.Run(path.parent).rows("epochs.csv")[-1]
                losses.setdefault(varied["scheme.name"], []).append(float(last["train_loss"]))
        for line in charts["train_loss"]["lines"]:
            x, mean, _, runs = line["points"][-1]
            self.assertEqual((x, runs), ("2", 2))
            own = losses[line["name"].split(" = ")[0]]
            self.assertEqual(f"{mean:.4g}", f"{sum(own) / len(own):.4g}")
        for line in charts["test_accuracy against optimizer.lr"]["lines"]:
            self.assertEqual([(point[0], point[3]) for point in line["points"]], [("0.001", 2), ("0.05", 2)])

    def test_no_line_crosses_a_place_where_all_runs_diverged(self):
        self.write("s.yaml", with_a_hole())
        self.pipewright("sweep", "s.yaml", "--out", "sw", code=SWEEP)
        self.pipewright("report", "s.yaml", "--out", "sw")
        page = self.page()
        charts = {chart["title"]: chart for chart in page.charts()}
        (line,) = charts["test_accuracy against loader.batch_size"]["lines"]
        self.assertEqual([point[0] for point in line["points"]], ["8", "32"])
        self.assertEqual((line["crosses"], line["parts"]), (1, 2))
        self.assertIn("a (2 of 4 diverged)", page.said())

    def test_edges_of_other_optimizers_have_names_of_their_own(self):
        sgd = {"name": "sgd", "lr": 0.01}
        points = [
            {"label": name, "optimizer": optimizer}
            for name, optimizer in (
                ("plain", sgd), ("heavy", sgd | {"momentum": 0.9}), ("lion", {"name": "lion", "lr": 0.001}),
                ("adam", {"name": "adam", "lr": 0.01}), ("slower", sgd | {"lr": 0.005}),
            )
        ]  # fmt: skip
        page = self.swept({"scheme": {"name": "pipedream"}, "sweep": {"points": points}})
        (edges,) = (chart for chart in page.charts() if "edge of stability" in chart["title"])
        self.assertEqual(
            [line["name"] for line in edges["lines"]],
            [
                "pipedream, 2 stages, sgd, optimizer.momentum 0",
                "pipedream, 2 stages, sgd, optimizer.momentum 0.9",
                "pipedream, 2 stages, adam",
            ],
        )
        self.assertEqual(len({line["look"] for line in edges["lines"]}), 3)
        self.assertIn("No edge of stability is known of 1 setting: ", page.said())

    def test_maps_sharpness_and_modelled_memory_are_shown(self):
        grid = {"scheme.name": ["gpipe", "pipedream"], "optimizer.lr": [0.01, 0.02], "train.seed": [1, 2]}
        changes = {
            "probes": [{"name": "sharpness", "every": 4, "samples": 8, "products": 6}],
            "lr_schedule": {"name": "step", "size": 1, "gamma": 0.5}, "train.epochs": 2, "sweep": {"grid": grid},
            "plot": {"kind": "map", "x": "optimizer.lr", "y": "scheme.name", "color": "test_accuracy"},
        }  # fmt: skip
        page = self.swept(changes, "--hardware", "dgx1-v100")
        maps = page.text[page.text.index('id="maps"') : page.text.index('id="against"')]
        self.assertEqual(len(re.findall(r'class="heat h\d">[\d.]+ \(2\)<', maps)), 4)
        # The limit of the second epoch, at half the rate, is twice that of the first.
        limits = re.findall(r"\(limit ([\d.e+]+)–([\d.e+]+)\)", page.text)
        self.assertEqual(len(limits), 8, "two stages of each of four settings")
        for low, high in limits:
            self.assertAlmostEqual(float(high) / float(low), 2, delta=0.02)
        (memory,) = (chart for chart in page.charts() if "as modelled on" in chart["title"])
        self.assertEqual([line["name"] for line in memory["lines"]], ["gpipe, 2 stages", "pipedream, 2 stages"])
        for line in memory["lines"]:
            self.assertGreater(max(point[1] for point in line["points"]), 0)

    def test_labels_are_shown_and_do_not_act(self):
        self.write("s.yaml", experiment(seeds=(1,)))
        self.pipewright("sweep", "s.yaml", "--out", "sw", code=SWEEP)
        runs = sorted((self.folder / "sw").glob("*/run.json"))
        for text in HOSTILE:
            with self.subTest(text=text):
                for path in runs:
                    run = json.loads(path.read_text())
                    path.write_text(
                        json.dumps(run | {"error": text, "machine": text, "processor": text, "started": text})
                    )
                    point = json.loads((path.parent / "point.json").read_text())
                    varied = {text: text, "label": text, "pipeline.stages": 2}
                    (path.parent / "point.json").write_text(json.dumps(point | {"label": text, "varied": varied}))
                self.pipewright("report", "sw", "--output", "hostile.html")
                page = self.page("hostile.html")
                for forbidden in ("\u202e", "\u0007", "\u001b"):
                    self.assertNotIn(forbidden, page.text)
                scripts = page.all("script")
                self.assertLessEqual(len(scripts), 3)
                if "<" in text:
                    self.assertIn(text.split("window")[0].strip()[:8], page.said())

    def test_the_policy_allows_no_network_and_no_other_script(self):
        page = self.sweep_and_report(seeds=(1,))
        policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
        self.assertTrue(policy.startswith("default-src 'none'; "), policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("http", policy)

    def test_a_file_that_is_read_is_not_replaced(self):
        self.sweep_and_report(seeds=(1,))
        before = (self.folder / "s.yaml").read_text()
        done = self.pipewright("report", "s.yaml", "--out", "sw", "--output", "s.yaml", code=EXPERIMENT)
        self.assertEqual((self.folder / "s.yaml").read_text(), before)
        self.assertRegex(done.err, "s.yaml")
        # The page itself may be written again.
        self.pipewright("report", "s.yaml", "--out", "sw")

    def test_a_page_of_somebody_else_is_not_replaced(self):
        self.sweep_and_report(seeds=(1,))
        page = self.folder / "sw/report.html"
        ours = page.read_text()
        for theirs in ("<!DOCTYPE html>\n<title>My thesis</title>\n", "", "x" * 10_000):
            page.write_text(theirs)
            for source in ("s.yaml", "sw"):
                out = ("--out", "sw") if source == "s.yaml" else ()
                self.assert_errors(
                    self.pipewright("report", source, *out, code=DATA),
                    r"^sw/report\.html: is no page of `pipewright report` and stays; --output FILE writes",
                )
            self.assertEqual(page.read_text(), theirs)
        self.pipewright("report", "sw", "--output", "sw/report.html")
        self.assertIn("4 runs: 3 done", self.page().said())
        page.write_text(ours)
        self.pipewright("report", "sw")


class Little(Report):
    def test_runs_that_are_not_there(self):
        self.write("s.yaml", experiment())
        self.assert_errors(
            self.pipewright("report", "s.yaml", "--out", "sw", code=DATA),
            r"no run of s\.yaml has begun here; `pipewright sweep s\.yaml --out sw` makes them$",
        )
        (self.folder / "empty").mkdir()
        self.assert_errors(
            self.pipewright("report", "empty", code=DATA), r"^empty: holds no runs; expected the folder of a run"
        )
        self.assertEqual(list(self.folder.rglob("*.html")), [])
        self.pipewright("report", "nowhere.yaml", code=EXPERIMENT)

    def test_sweeps_beside_the_runs_of_a_folder_are_named(self):
        """As `run` and `sweep` lay them into runs/: a run each, and a folder of runs."""
        short = {"train": {"epochs": 1}, "loader": {"limit_train": 32}}
        self.write("s.yaml", short | {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.pipewright("sweep", "s.yaml")
        of_sweep = r"runs/s \(2 runs\)"
        for command in (("report", "runs", "--output", "x.html"), ("list", "runs"), ("export", "runs", "--output", "x.csv")):
            self.assert_errors(
                self.pipewright(*command, code=DATA), rf"^runs: holds no runs itself; expected one of its folders that do: {of_sweep}$"
            )
        self.write("one.yaml", short)
        self.pipewright("run", "one.yaml", "--quiet")
        done = self.pipewright("list", "runs")
        self.assertRegex(done.out, r"^  runs/one +done *\n$")
        self.assertRegex(done.err, rf"^note: runs of sweeps in folders of their own are left out: {of_sweep}\n$")

    def test_runs_beside_those_of_a_sweep_are_named(self):
        """One point in a folder makes it that of a sweep, so that other runs in it are left out."""
        short = {"train": {"epochs": 1}, "loader": {"limit_train": 32}}
        self.write("one.yaml", short)
        self.write("s.yaml", short | {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.pipewright("run", "one.yaml", "--quiet")
        self.assertEqual(self.pipewright("list", "runs").err, "")
        self.pipewright("run", "s.yaml", "--point", "2", "--out", "runs/two", "--quiet")
        done = self.pipewright("list", "runs")
        self.assertRegex(done.out, r"^  runs/two +done .*\n$")
        self.assertEqual(done.err, "note: runs that are not known to be of the sweep are left out: runs/one\n")

    def test_a_folder_that_cannot_be_read_is_not_called_empty(self):
        (self.folder / "sw").mkdir()
        self.assert_errors(
            self.pipewright("report", "sw", code=DATA, environment=self.failing("/sw", "list", 1)),
            r"^sw: cannot be read: Input/output error$",
        )

    def test_runs_that_failed_or_go_on_are_shown(self):
        self.write("s.yaml", changed(MLP, {"optimizer.lr": 1e30, "sweep": {"grid": {"train.seed": [1, 2, 3]}}}))
        self.pipewright("sweep", "s.yaml", "--out", "sw", code=SWEEP)
        killed, broken, _ = sorted((self.folder / "sw").glob("*/run.json"))
        killed.write_text(json.dumps(json.loads(killed.read_text()) | {"state": "running", "error": ""}))
        broken.write_text("{")
        self.pipewright("report", "s.yaml", "--out", "sw")
        said = self.page().said()
        self.assertIn("it was interrupted, or killed", said)
        self.assertIn("No run is done yet", said)
        self.assertIn("is no JSON at byte 2", said)
        shutil.rmtree(killed.parent)
        self.pipewright("report", "s.yaml", "--out", "sw")
        self.assertIn("it has not begun", self.page().said())
        self.pipewright("report", "sw")
        self.assertIn("2 runs: 1 diverged, 1 failed", self.page().said())

    def test_rows_of_another_version_are_told(self):
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}}))
        self.pipewright("sweep", "s.yaml", "--out", "sw")
        self.pipewright("table", "s.yaml", "--out", "sw", "--keep", "rows.csv")
        shutil.rmtree(self.folder / "sw")
        rows = list(csv.DictReader(io.StringIO((self.folder / "rows.csv").read_text())))
        self.write_rows([row | {"pipewright": "0.1.0"} for row in rows])
        self.pipewright("report", "s.yaml", "--out", "sw", "--results", "rows.csv")
        said = self.page().said()
        self.assertIn("2 runs: 2 done", said)
        self.assertIn("2 rows of rows.csv were made by version 0.1.0, and this is ", said)
        self.write_rows([{"digests" if key == "digest" else key: text for key, text in row.items()} for row in rows])
        done = self.pipewright("report", "s.yaml", "--out", "sw", "--results", "rows.csv", code=DATA)
        self.assertRegex(done.err, r"rows\.csv:1")

    def write_rows(self, rows):
        out = io.StringIO()
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self.write("rows.csv", out.getvalue())


class Many(Report):
    def test_a_hundred_runs_make_a_small_page_soon(self):
        self.assertEqual(many_runs.make(self.folder, 100), 100)
        _, seconds, _, _ = many_runs.pipewright(self.folder, "report", "many.yaml", "--out", "sw")
        self.assertLess(seconds, 5)
        page = self.page()
        self.assertIn("100 runs: 100 done", page.said())
        self.assertLess(len(page.text), MOST_BYTES)


if __name__ == "__main__":
    harness.main()
