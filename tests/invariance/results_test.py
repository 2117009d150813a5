# SPDX-License-Identifier: Apache-2.0
"""One sweep, and everything that says something of it: the same numbers in every command and every format."""

import datetime
import json
import math
import os
import platform
import re
import shutil
import sqlite3
import statistics
import tempfile
from pathlib import Path

import invariance
from invariance import HARDWARE, MLP, Invariance, changed, csv_rows, harness, rows_of, tolerances

SCHEMES, SEEDS = ("gpipe", "pipedream", "spectrain"), (1, 2)
# Two replicas of a compressed pipeline: every column that there is has a number.
SWEEP = changed(
    MLP,
    {
        "name": "two",
        "pipeline.microbatches": 2,
        "pipeline.replicas": 2,
        "pipeline.compression": {"name": "uniform", "bits": 8},
        "pipeline.gradient_compression": {"name": "powersgd", "rank": 1},
        "probes": [{"name": "norms", "every": 1}, {"name": "weight_gap", "every": 1}, {"name": "sharpness", "every": 4}],
        "sweep": {"grid": {"scheme.name": list(SCHEMES), "train.seed": list(SEEDS)}},
        "table": {"rows": "scheme.name", "metric": "train_loss"},
        "plot": {"y": "train_loss", "lines": "scheme.name"},
    },
)
MIB, GIB = 2.0**20, 2.0**30
# Two ways to one number in few operations: quotients, sums of at most 12 terms, and a mean of as many.
FEW = 4 * tolerances.rounded(12)


class OneSweep(Invariance):
    @classmethod
    def setUpClass(cls):
        cls.common = Path(tempfile.mkdtemp(prefix="pipewright-invariance-"))
        cls.addClassCleanup(shutil.rmtree, cls.common, ignore_errors=True)
        cls.trained = False

    def setUp(self):
        self.folder = self.common
        if not type(self).trained:
            self.write("s.yaml", SWEEP)
            self.write("h.yaml", HARDWARE)
            self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", 1)
            type(self).trained = True
        self.by_point = {}
        for path in (self.folder / "sw").glob("*/point.json"):
            varied = json.loads(path.read_text())["varied"]
            self.by_point[varied["scheme.name"], varied["train.seed"]] = harness.Run(path.parent)
        self.assertEqual(len(self.by_point), 6)

    def metrics_of(self, run):
        """Every number of a finished run at each epoch, from epochs.csv and traffic.csv."""
        columns = {}
        for row in rows_of(run, "epochs.csv"):
            for name, text in row.items():
                columns.setdefault(name, []).append(float(text))
        for name, value in derived(rows_of(run, "traffic.csv")).items():
            columns[name] = [value] * len(columns["epoch"])
        return columns

    def table(self, *flags):
        return self.pipewright("table", "s.yaml", "--out", "sw", *flags).out


def derived(traffic):
    """What docs/formats/traffic-csv.md says that tables derive."""

    def total(rows, *columns):
        return math.fsum(float(row[column]) for row in rows for column in columns)

    sums = [row for row in traffic if row["kind"] == "reduce"]
    edges = [row for row in traffic if row["kind"] != "reduce" and row["from_worker"] != row["to_worker"]]
    minibatches, seconds = (float(traffic[0][name]) for name in ("minibatches", "train_seconds"))
    return {
        "sent_ratio": total(edges, "sent_bytes") / total(edges, "value_bytes"),
        "sent_mib": total(edges, "sent_bytes") / minibatches / MIB,
        "required_mib_per_s": total(edges, "sent_bytes") / seconds / MIB,
        "codec_share": total(edges, "encode_seconds", "decode_seconds") / seconds,
        "reduced_ratio": total(sums, "sent_bytes") / total(sums, "value_bytes"),
        "reduced_mib": total(sums, "sent_bytes") / minibatches / MIB,
    }


class Records(OneSweep):
    def test_a_run_knows_the_file_of_its_sweep(self):
        for run in self.by_point.values():
            point = json.loads((run.path / "point.json").read_text())
            self.assertEqual(point["file"], str((self.folder / "s.yaml").resolve()))

    def test_the_database_has_the_numbers_of_the_folders(self):
        database = sqlite3.connect(self.folder / "sw/results.sqlite")
        database.row_factory = sqlite3.Row
        results = {(row["scheme.name"], row["train.seed"]): row for row in database.execute("SELECT * FROM results")}
        self.assertEqual(set(results), set(self.by_point))
        for key, run in self.by_point.items():
            columns = self.metrics_of(run)
            row = results[key]
            self.assertEqual((row["state"], row["folder"], row["epochs"]), ("done", run.path.name, len(columns["epoch"])))
            metrics = [name for name in row.keys() if name not in ("point", "folder", "label", "state", "epochs", *self.varied())]
            self.assertEqual(set(metrics), set(columns) - {"epoch"})
            for name in metrics:
                self.assert_near(row[name], columns[name][-1], FEW, name)
            stored = database.execute("SELECT epoch, metric, value FROM epochs WHERE folder = ?", [run.path.name]).fetchall()
            self.assertEqual(len(stored), 2 * len(metrics))
            for each in stored:
                self.assert_near(each["value"], columns[each["metric"]][each["epoch"]], FEW, each["metric"])
            for curve in database.execute("SELECT * FROM curves WHERE folder = ?", [run.path.name]):
                for name in metrics:
                    self.assert_near(curve[name], columns[name][curve["epoch"]], FEW, name)
            about = json.loads((run.path / "run.json").read_text())
            known = database.execute("SELECT * FROM runs WHERE folder = ?", [run.path.name]).fetchone()
            self.assertEqual((known["state"], known["digest"]), (about["state"], about["digest"]))
        database.close()

    def varied(self):
        return SWEEP["sweep"]["grid"]

    def test_losses_of_an_epoch_are_the_means_of_its_steps(self):
        for run in self.by_point.values():
            steps = rows_of(run, "steps.csv")
            for row in rows_of(run, "epochs.csv"):
                losses = [float(step["loss"]) for step in steps if step["epoch"] == row["epoch"]]
                self.assertEqual(len(losses), 4)
                self.assert_near(float(row["train_loss"]), statistics.fmean(losses), FEW, row)
                self.assert_near(float(row["samples_per_second"]) * float(row["seconds"]), 96, FEW, row)
                self.assertEqual(float(row["lr"]), SWEEP["optimizer"]["lr"])
                # The perplexity of a classifier is that of its cross-entropy.
                self.assert_near(math.log(float(row["test_perplexity"])), float(row["test_loss"]), FEW, row)

    def test_rates_of_traffic_are_quotients_of_what_stands_beside_them(self):
        for run in self.by_point.values():
            seconds = math.fsum(float(row["seconds"]) for row in rows_of(run, "epochs.csv"))
            for row in rows_of(run, "traffic.csv"):
                self.assertEqual(int(row["minibatches"]), 8)
                self.assert_near(float(row["ratio"]) * float(row["value_bytes"]), float(row["sent_bytes"]), FEW, row)
                self.assert_near(float(row["train_seconds"]), seconds, FEW, row)
                self.assert_near(
                    float(row["required_bytes_per_second"]) * seconds, float(row["sent_bytes"]), FEW, row
                )


    def test_run_json_says_what_ran_where_and_for_how_long(self):
        doctor = self.pipewright("doctor").out
        for (scheme, seed), run in self.by_point.items():
            about = json.loads((run.path / "run.json").read_text())
            self.assertEqual((about["seed"], about["name"], about["processes"]), (seed, "two", 1), scheme)
            self.assertEqual(about["machine"], platform.node())
            self.assertEqual(about["cores"], len(os.sched_getaffinity(0)))
            self.assertIn(f"model name\t: {about['processor']}", Path("/proc/cpuinfo").read_text())
            for key in ("pipewright", "libtorch"):
                self.assertRegex(doctor, rf"(?im)^{key} +ok +{re.escape(about[key])}\b", key)
            self.assertIn(about["instruction_set"], ("DEFAULT", "AVX2", "AVX512"))
            self.assertEqual((about["plugins"], about["contents"], about["remarks"]), ([], {}, []))
            self.assertEqual(about["numerics"], {"matmul": "ieee", "convolution": "ieee"})
            started, finished = (datetime.datetime.fromisoformat(about[key]) for key in ("started", "finished"))
            self.assertAlmostEqual((finished - started).total_seconds(), about["wall_seconds"], delta=1)  # whole seconds
            trained = math.fsum(float(row["seconds"]) for row in rows_of(run, "epochs.csv"))
            self.assertGreater(about["wall_seconds"], trained)
            # Two processors at most work for a run in one thread whose next mini-batch is assembled beside it.
            self.assertGreater(about["processor_seconds"], 0)
            self.assertLess(about["processor_seconds"], 2 * about["wall_seconds"] + 1)
            self.assertEqual(about["command"][:2], ["pipewright", "run"])
            self.assertEqual(Path(about["command"][about["command"].index("--out") + 1]).name, run.path.name)
            last = rows_of(run, "epochs.csv")[-1]
            for key in ("train_loss", "test_loss", "test_accuracy"):
                self.assertEqual(about["final"][key], float(last[key]), key)
            # A process that has loaded LibTorch has dozens of MiB, and no test here needs 16 GiB.
            self.assertTrue(2**24 < about["peak_memory_bytes"] < 2**34, about["peak_memory_bytes"])
            self.assertRegex(about["commit"], r"^([0-9a-f]{12}(-dirty)?)?$")
        digests = {json.loads((run.path / "run.json").read_text())["digest"] for run in self.by_point.values()}
        self.assertEqual(len(digests), 6)

    def test_a_run_whose_loss_is_not_finite_says_so(self):
        base = changed(MLP, {"model.activation": "relu", "optimizer.lr": 1e300})
        run = self.train(base, "burst", "--overwrite", code=harness.NOT_FINITE)
        about = json.loads((run.path / "run.json").read_text())
        self.assertEqual((about["state"], about["exit_code"]), ("failed", harness.NOT_FINITE))
        self.assertRegex(about["error"], "not finite|inf|nan")


class Tables(OneSweep):
    def test_every_metric_has_the_mean_and_deviation_of_its_runs_in_every_format(self):
        names = self.metrics_of(self.by_point["gpipe", 1]).keys() - {"epoch"}
        probes = ["probe.norms.gradient", "probe.weight_gap.forward_relative[0]", "probe.sharpness.largest"]
        beside = sorted(names) + probes
        flags = ("--set", f"table.beside={json.dumps(beside)}")
        # The CSV has one metric, so it is asked for each that is not merely read from epochs.csv.
        for metric in ["train_loss", "test_accuracy", "test_top5", "sent_mib", "reduced_ratio"] + probes:
            rows = csv_rows(self.table("--format", "csv", "--metric", metric))
            self.assertEqual([row["row"] for row in rows], list(SCHEMES))
            for row in rows:
                mean, deviation = self.expected(row["row"], metric)
                self.assertEqual(row["n"], "2")
                written = tolerances.significant(mean, tolerances.TABLE_DIGITS)
                scale = 100 if row["unit"] == "percent" else 1
                self.assertAlmostEqual(float(row["mean"]), scale * mean, delta=2 * scale * (written + FEW * abs(mean)))
                self.assertAlmostEqual(float(row["std"]), scale * deviation, delta=2 * scale * (written + FEW * abs(mean)))
        markdown = self.table("--format", "markdown", *flags)
        lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown.splitlines() if line.startswith("|")]
        latex = [
            [cell.strip() for cell in line.strip().removesuffix(r"\\").split("&")]
            for line in self.table("--format", "latex", *flags).splitlines()
            if line.strip().startswith(SCHEMES)
        ]
        heads = [head.replace("\\", "").removesuffix(", percent") for head in lines[0]]
        self.assertEqual(heads[2:], beside)
        for line, in_latex in zip(lines[2:], latex, strict=True):
            for metric, cell, of_latex in zip(heads[2:], line[2:], in_latex[2:], strict=True):
                shown = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", cell)][:2]
                self.assertEqual(cell, of_latex.replace(r"$\pm$", "±"), metric)
                decimals = len(cell.split(" ")[0].partition(".")[2])
                scale = 100 if metric in ("test_accuracy", "test_top5") else 1
                for number, exact in zip(shown, self.expected(line[0], metric)):
                    self.assertAlmostEqual(number, scale * exact, delta=0.5000001 * 10**-decimals, msg=f"{metric}: {cell}")

    def expected(self, scheme, metric):
        values = [self.last(self.by_point[scheme, seed], metric) for seed in SEEDS]
        return statistics.fmean(values), statistics.stdev(values)

    def last(self, run, metric):
        if not metric.startswith("probe."):
            return self.metrics_of(run)[metric][-1]
        name, stage = re.fullmatch(r"probe\.([\w.]+?)(?:\[(\d)\])?", metric).groups()
        rows = [row for row in rows_of(run, "probes.csv") if f"{row['probe']}.{row['quantity']}" == name]
        whole = [row for row in rows if row["stage"] == ""] or rows
        chosen = [row for row in rows if row["stage"] == stage] if stage else whole
        return statistics.fmean(float(row["value"]) for row in chosen if row["epoch"] == "1")

class Drawings(OneSweep):
    """A program in the place of gnuplot keeps what it is given."""

    def script(self, **section):
        """The script of one picture."""
        scripts = self.folder / "scripts"
        shutil.rmtree(scripts, ignore_errors=True)
        scripts.mkdir()
        fake = self.write("bin/gnuplot", f'#!/bin/sh\nexec cat > "{scripts}/$$"\n')
        fake.chmod(0o755)
        self.write("d.yaml", SWEEP | {"plot": section})
        path = {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
        self.pipewright("plot", "d.yaml", "--out", "sw", environment=path)
        svg, png = (file.read_text() for file in scripts.iterdir())
        self.assertEqual(*(re.sub(r"(?m)^set (terminal|output).*$", "", script) for script in (svg, png)))
        return svg

    def block(self, script, name):
        found = re.search(rf"\${name} << END\n(.*?)END\n", script, re.DOTALL)
        return [[float(number) for number in line.split()] for line in found[1].splitlines()]

    def curves(self, **section):
        """The points of each line by its name: {x: (mean, low, high)}."""
        script = self.script(**section)
        names = re.findall(r'\$ours(\d+) using 1:2 with .* title "([\w ]+?)(?: \(|")', script)
        return {name: {x: rest for x, *rest in self.block(script, f"ours{number}")} for number, name in names}

    def assert_drawn(self, drawn, values):
        mean, spread = statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0
        for found, exact in zip(drawn, (mean, mean - spread, mean + spread), strict=True):
            self.assertAlmostEqual(found, exact, delta=FEW * max(map(abs, values)))

    def probed(self, scheme, seed, *chosen):
        """The values of norms.gradient of the rows for which all conditions (column, text) hold."""
        rows = [row for row in rows_of(self.by_point[scheme, seed], "probes.csv") if row["probe"] == "norms"]
        return [
            float(row["value"])
            for row in rows
            if row["quantity"] == "gradient" and all(row[column] == text for column, text in chosen)
        ]

    def test_of_epochs_have_the_numbers_of_the_folders(self):
        curves = self.curves(y="train_loss", lines="scheme.name")
        self.assertEqual(list(curves), list(SCHEMES))
        for scheme, points in curves.items():
            self.assertEqual(list(points), [1, 2])
            for x, drawn in points.items():
                values = [self.metrics_of(self.by_point[scheme, seed])["train_loss"][int(x) - 1] for seed in SEEDS]
                self.assert_drawn(drawn, values)

    def test_over_a_key_and_as_a_map_have_the_numbers_of_the_folders(self):
        for scheme, points in self.curves(x="train.seed", y="test_loss", lines="scheme.name").items():
            self.assertEqual(list(points), list(SEEDS))
            for seed, drawn in points.items():
                self.assert_drawn(drawn, [self.metrics_of(self.by_point[scheme, int(seed)])["test_loss"][-1]])
        script = self.script(kind="map", x="train.seed", y="pipeline.replicas", color="test_top5")
        cells = {(x, y): value for x, y, *_, value in self.block(script, "cells")}
        self.assertEqual(set(cells), {(seed, 2) for seed in SEEDS})
        for (seed, _), value in cells.items():
            values = [self.metrics_of(self.by_point[scheme, int(seed)])["test_top5"][-1] for scheme in SCHEMES]
            self.assertAlmostEqual(value, 100 * statistics.fmean(values), delta=100 * FEW)

    def test_of_probes_have_the_numbers_of_the_folders(self):
        probe = {"y": "probe.norms.gradient"}
        for scheme, points in self.curves(x="minibatch", lines="scheme.name", **probe).items():
            self.assertEqual(list(points), list(range(8)))
            for x, drawn in points.items():
                place = (("epoch", str(int(x) // 4)), ("minibatch", str(int(x) % 4)))
                self.assert_drawn(drawn, [statistics.fmean(self.probed(scheme, seed, *place)) for seed in SEEDS])
        for scheme, points in self.curves(x="stage", lines="scheme.name", **probe).items():
            for stage, drawn in points.items():
                place = (("epoch", "1"), ("stage", str(int(stage))))
                self.assert_drawn(drawn, [statistics.fmean(self.probed(scheme, seed, *place)) for seed in SEEDS])
        for scheme, points in self.curves(x="epoch", lines="scheme.name", **probe).items():
            for epoch, drawn in points.items():
                place = ("epoch", str(int(epoch) - 1))
                self.assert_drawn(drawn, [statistics.fmean(self.probed(scheme, seed, place)) for seed in SEEDS])
        lines = self.curves(x="minibatch", lines="stage", **probe)
        self.assertEqual(list(lines), ["stage 0", "stage 1", "stage 2"])
        for name, points in lines.items():
            for x, drawn in points.items():
                place = (("epoch", str(int(x) // 4)), ("minibatch", str(int(x) % 4)), ("stage", name[-1]))
                self.assert_drawn(drawn, [self.probed(*point, *place)[0] for point in self.by_point])


class Simulations(OneSweep):
    """`simulate` of a point, `simulate --sweep` and the modelled metrics of `table`, on the same hardware."""

    def setUp(self):
        super().setUp()
        self.said = self.pipewright(
            "simulate", "s.yaml", "--sweep", "--hardware", "h.yaml", "--json", "p.json", "--csv", "p.csv"
        ).out
        self.points = json.loads((self.folder / "p.json").read_text())["points"]
        self.assertEqual(len(self.points), 6)

    def alone(self, point):
        """The point by itself, for as many mini-batches."""
        self.pipewright(
            "simulate", "s.yaml", "--point", point["title"], "--hardware", "h.yaml", "--minibatches", point["minibatches"],
            "--json", "one.json",
        )  # fmt: skip
        return json.loads((self.folder / "one.json").read_text())

    def test_a_point_is_simulated_alone_as_in_its_sweep(self):
        for point in self.points[::2]:  # the seed is no matter of hardware
            one = self.alone(point)
            for key in ("seconds_per_minibatch", "samples_per_second"):
                self.assertEqual(one[key], point[key], key)
            self.assertEqual([worker["peak"]["total"] for worker in one["workers"]], point["peak_bytes"])
            self.assertEqual(
                sum(link["bytes"] for link in one["links"]), point["bytes_per_minibatch"] * point["minibatches"]
            )
            self.assert_near(one["samples_per_second"] * one["seconds_per_minibatch"], 24, FEW, "samples")
            for worker in one["workers"]:
                parts = sum(worker[part] for part in ("computing", "communicating", "idle"))
                self.assert_near(parts, one["makespan"], FEW, "a worker's time")
                self.assert_near(worker["utilisation"] * one["makespan"], worker["computing"], FEW, "utilisation")
                self.assertEqual(worker["peak"]["total"], sum(worker["peak"].values()) - worker["peak"]["total"])
                self.assertEqual(worker["peak"]["total"], max(use for _, use in worker["memory"]))
                self.assertIn([worker["peak_at"], worker["peak"]["total"]], worker["memory"])
            idle = sum(worker["idle"] for worker in one["workers"])
            self.assert_near(one["bubble"] * one["makespan"] * len(one["workers"]), idle, FEW, "bubble")

    def test_the_text_rounds_the_numbers_of_the_json(self):
        point = self.points[2]
        text = self.pipewright(
            "simulate", "s.yaml", "--point", point["title"], "--hardware", "h.yaml", "--minibatches", 6, "--json", "one.json"
        ).out
        one = json.loads((self.folder / "one.json").read_text())
        micro = re.search(r"makespan +([\d.]+) (ms|µs); in the steady part ([\d.]+) (ms|µs) a mini-batch", text)
        for number, unit, key in ((micro[1], micro[2], "makespan"), (micro[3], micro[4], "seconds_per_minibatch")):
            self.assertAlmostEqual(float(number) * {"ms": 1e-3, "µs": 1e-6}[unit], one[key], delta=0.006 * one[key])
        self.assertAlmostEqual(float(re.search(r"throughput +([\d.]+)", text)[1]), one["samples_per_second"], delta=0.5)
        self.assertAlmostEqual(float(re.search(r"bubble +([\d.]+) %", text)[1]), 100 * one["bubble"], delta=0.0501)
        rows = re.findall(r"(?m)^ (\d): stage (\d), replica \d +([\d.]+) % +([\d.]+) % +([\d.]+) % +(.*)$", text)
        workers = {worker["worker"]: worker for worker in one["workers"]}
        for number, _, *shares, memory in rows:
            worker = workers[int(number)]
            for share, key in zip(shares, ("computing", "communicating", "idle"), strict=True):
                self.assertAlmostEqual(float(share), 100 * worker[key] / one["makespan"], delta=0.0501)
            parts = [float(size) * {"B": 1, "KiB": 1024}[unit] for size, unit in re.findall(r"([\d.]+) (B|KiB)", memory)]
            names = ("total", "weights", "gradients", "optimizer", "activations", "boundaries", "passing")
            for part, name in zip(parts, names, strict=True):
                self.assertAlmostEqual(part, worker["peak"][name], delta=0.0501 * 1024)
        folded = [int(left) for left in re.findall(r"(?m)^ … and (\d+) like these, of further replicas$", text)]
        self.assertEqual(folded[0], len(one["workers"]) - len(rows))
        self.assertEqual({int(row[1]) for row in rows}, {0, 1, 2})
        links = re.findall(r"(?m)^ (\d) → (\d) +(\d+) +([\d.]+) (B|KiB) +([\d.]+) %$", text)
        self.assertEqual(folded[1], len(one["links"]) - len(links))
        by_ends = {(link["from"], link["to"]): link for link in one["links"]}
        for a, b, messages, size, unit, busy in links:
            link = by_ends[int(a), int(b)]
            self.assertEqual(int(messages), link["messages"])
            self.assertAlmostEqual(float(size) * {"B": 1, "KiB": 1024}[unit], link["bytes"], delta=0.0501 * 1024)
            self.assertAlmostEqual(float(busy), 100 * link["busy"] / one["makespan"], delta=0.0501)

    def test_table_and_sweep_have_the_same_model(self):
        names = [
            "samples_per_second", "speedup", "bubble", "required_mib_per_s", "link_mib_per_s", "state_gib", "worker_state_gib",
            "activation_gib", "memory_gib", "worker_memory_gib", "parameters", "hours",
        ]  # fmt: skip
        rows = {}
        for name in names:
            metric = f"modelled_{name}"
            for row in csv_rows(self.table("--format", "csv", "--metric", metric, "--hardware", "h.yaml")):
                scale = 100 if row["unit"] == "percent" else 1
                rows.setdefault(row["row"], {})[name] = float(row["mean"]) / scale
        first = self.points[0]["samples_per_second"]
        for point in self.points[::2]:
            row = rows[point["candidate"]]
            state = [sum(worker["peak"][part] for part in ("weights", "gradients", "optimizer")) for worker in self.alone(point)["workers"]]
            peaks = point["peak_bytes"]
            expected = {
                "samples_per_second": point["samples_per_second"],
                "speedup": point["samples_per_second"] / first,
                "bubble": point["bubble"],
                "required_mib_per_s": point["bytes_per_minibatch"] / point["seconds_per_minibatch"] / MIB,
                "link_mib_per_s": 0.5e9 / MIB,
                "activation_gib": row["memory_gib"] - row["state_gib"],
                "memory_gib": sum(peaks) / GIB,
                "worker_memory_gib": max(peaks) / GIB,
                "parameters": 64 * 12 + 12 + 2 * (12 * 12 + 12) + 12 * 10 + 10,
                "hours": 2 * 96 / point["samples_per_second"] / 3600,
            }
            for name, value in expected.items():
                # activation_gib is a difference of two numbers with twelve digits each.
                digits = tolerances.TABLE_DIGITS - (3 if name == "activation_gib" else 0)
                self.assert_near(row[name], value, 2 * tolerances.significant(1, digits), f"{point['candidate']}: {name}")
            # Gradients are there between backward and update only, so what is held at the peak is no more than the most.
            self.assertGreaterEqual(row["state_gib"] * GIB * (1 + 1e-11), sum(state))
            self.assertGreaterEqual(row["worker_state_gib"] * GIB * (1 + 1e-11), max(state))
            self.assertLessEqual(row["state_gib"], row["memory_gib"])

    def test_csv_text_and_json_of_a_sweep_have_the_same_numbers(self):
        rows = csv_rows((self.folder / "p.csv").read_text())
        for row, point in zip(rows, self.points, strict=True):
            for key in ("seconds_per_minibatch", "samples_per_second", "bubble", "bytes_per_minibatch", "minibatches"):
                self.assertEqual(float(row[key]), point[key], key)
            self.assertEqual([int(peak) for peak in row["peak_bytes_of_workers"].split()], point["peak_bytes"])
            self.assertEqual(int(row["peak_bytes"]), max(point["peak_bytes"]))
            self.assertEqual((row["state"], row["mark"], row["steady"]), (point["state"], point["mark"], "yes" if point["steady"] else "no"))
            self.assertEqual(int(row["workers"]), point["workers"])
        for point in self.points:
            line = next(line for line in self.said.splitlines() if line.startswith(f" {point['title']}  "))
            pace, period, bubble, peak, sent = re.split(r"  +", line.removeprefix(f" {point['title']}").strip())[:5]
            self.assertAlmostEqual(float(pace), point["samples_per_second"], delta=0.5)
            self.assertEqual(bubble, f"{100 * point['bubble']:.1f} %")
            self.assertEqual(period, f"{1e6 * point['seconds_per_minibatch']:.1f} µs")
            self.assertEqual(peak, f"{max(point['peak_bytes']) / 1024:.1f} KiB")
            self.assertEqual(sent, f"{point['bytes_per_minibatch'] / 1024:.1f} KiB")

    def test_a_training_sends_what_its_simulation_sends(self):
        """Of two replicas a ring moves 2 (R − 1) / R = 1 times the bytes of a sum over each of its links, in every one of
        which a replica sends. Messages are counted with the headers of their frames, in both."""
        plain = changed(SWEEP, {"pipeline.compression": {"name": "none"}, "pipeline.gradient_compression": {"name": "none"}})
        base = {key: value for key, value in plain.items() if key not in ("sweep", "table", "plot", "probes")}
        for scheme in SCHEMES:
            run = self.train(changed(base, {"scheme": {"name": scheme}}), f"plain-{scheme}", "--overwrite")
            rows = rows_of(run, "traffic.csv")
            file = f"plain-{scheme}.yaml"
            self.pipewright("simulate", file, "--hardware", "h.yaml", "--minibatches", 8, "--json", "one.json")
            one = json.loads((self.folder / "one.json").read_text())
            links = {(link["from"], link["to"]): link for link in one["links"]}
            for row in rows:
                a, b = int(row["from_worker"]), int(row["to_worker"])
                if row["kind"] == "reduce":
                    ring = [links[a, a + 3], links[a + 3, a]]
                    self.assertEqual(sum(link["bytes"] for link in ring), float(row["sent_bytes"]), row)
                    continue
                replicas = [links[a + 3 * r, b + 3 * r] for r in (0, 1)]
                self.assertEqual(sum(link["bytes"] for link in replicas), float(row["sent_bytes"]), row)
                self.assertEqual(sum(link["messages"] for link in replicas), int(row["messages"]), row)


class States(Invariance):
    SCHEMES = (
        "gpipe", "one_f_one_b", "zb_h1", "model_parallel", "pipedream", "pipedream_2bw", "spectrain", "pipeoptim", "pipemare",
        "xpipe", "delayed_sgd",
    )  # fmt: skip

    def test_what_a_stage_holds_is_the_same_to_check_and_to_table(self):
        """`check` counts versions of weights, gradients and the optimizer's state from the options, `table` simulates."""
        base = changed(
            MLP, {"pipeline.microbatches": 4, "optimizer": {"name": "adam"}, "model.widths": [64, 48, 32, 24, 10]}
        )
        self.write("h.yaml", HARDWARE)
        table = {"rows": "scheme.name", "metric": "modelled_worker_state_gib"}
        self.write("s.yaml", base | {"sweep": {"grid": {"scheme.name": list(self.SCHEMES)}}, "table": table})
        rows = csv_rows(self.pipewright("table", "s.yaml", "--out", "none", "--hardware", "h.yaml", "--format", "csv").out)
        said = self.pipewright("check", "s.yaml").out
        for row in rows:
            held = re.search(rf"(?m)^ {row['row']} .* ([\d.]+) KiB$", said)
            self.assertAlmostEqual(float(row["mean"]) * GIB / 1024, float(held[1]), delta=0.0501, msg=row["row"])
        self.assertEqual(len(rows), len(self.SCHEMES))


class Stability(OneSweep):
    def test_formats_have_the_same_numbers(self):
        self.write("hessian.json", {"matrix": [[2, 1, 0], [1, 2, 1], [0, 1, 2]]})
        run = self.by_point["spectrain", 1].path
        point = ("--point", "spectrain seed 1", "--run", run, "--hessian", "hessian.json")

        def said(form):
            return self.pipewright("stability", "s.yaml", *point, "--format", form).out

        figures = json.loads(said("json"))
        measured = {}
        for row in rows_of(self.by_point["spectrain", 1], "probes.csv"):
            if (row["probe"], row["quantity"]) == ("sharpness", "largest"):
                measured[row["stage"]] = float(row["value"])
        self.assertEqual(figures["model_curvature"], measured[""])
        self.assertEqual((figures["lr"], figures["optimizer"]["lr"]), (0.05, 0.05))
        text = said("text")
        number = r"(\S+)"
        for stage, row in zip(figures["stages"], csv_rows(said("csv")), strict=True):
            for key in ("forward_delay", "backward_delay", "edge", "curvature"):
                self.assertEqual(float(row[key]), stage[key], key)
            self.assertEqual((int(row["stage"]), row["rule"]), (stage["stage"], stage["rule"]))
            self.assertEqual(stage["curvature"], measured[str(stage["stage"])])
            line = re.search(rf"^ +{stage['stage']} +(\d+) +(\d+) +.*?  +{number} +{number} +{number} +{number}$", text, re.MULTILINE)
            shown = [stage["edge"], stage["edge"] / 0.05, stage["curvature"], stage["edge"] / stage["curvature"]]
            self.assertEqual([int(line[1]), int(line[2])], [stage["forward_delay"], stage["backward_delay"]])
            self.assertEqual(list(line.groups()[2:]), [f"{value:.4g}" for value in shown])
        self.assertIn(f"{figures['effective_delay']:.4g}", text)
        self.assertIn(f"stable up to lr {figures['coupled_edge']:.4g}; at lr 0.05", text)
        self.assertIn(f"multiplied by {figures['spectral_radius']:.4g} every", text)


if __name__ == "__main__":
    invariance.main()
