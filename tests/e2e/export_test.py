# SPDX-License-Identifier: Apache-2.0
"""`pipewright export` and `output: {tensorboard: true}`: every number of the runs, and what is refused."""

import csv
import json
import shutil
import struct
import subprocess

import event_files
import harness
import skips
from harness import CNN, DATA, EXPERIMENT, MLP, SWEEP, changed
from report_pages import HOSTILE

EVENTS = "events.out.tfevents.pipewright"
SWEPT = changed(
    MLP,
    {
        "train.epochs": 2,
        "lr_schedule": {"name": "linear", "per": "step"},
        "probes": [{"name": "norms", "every": 5}],
        "sweep": {"grid": {"scheme.name": ["gpipe", "pipedream"], "train.seed": [1, 2]}},
    },
)


def float32(text):
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def numbers(run):
    """{(epoch, step, metric): text} of a run's files."""
    found = {}
    for row in run.rows("epochs.csv"):
        found |= {(row["epoch"], "", column): text for column, text in row.items() if column != "epoch" and text}
    for row in run.rows("steps.csv"):
        found[row["epoch"], row["minibatch"], "loss"] = row["loss"]
        if "lr" in row:
            found[row["epoch"], row["minibatch"], "lr_per_step"] = row["lr"]
    for row in run.rows("probes.csv"):
        stage = f"[{row['stage']}]" if row["stage"] else ""
        found[row["epoch"], row["minibatch"], f"probe.{row['probe']}.{row['quantity']}{stage}"] = row["value"]
    return {key: float(text) for key, text in found.items()}


class Export(harness.EndToEnd):
    def sweep(self, experiment=SWEPT, code=0):
        self.write("s.yaml", experiment)
        self.pipewright("sweep", "s.yaml", "--out", "runs/sw", "--jobs", "2", code=code)
        return [harness.Run(path.parent) for path in sorted((self.folder / "runs/sw").glob("*/run.json"))]

    def export(self, *arguments, code=0):
        return self.pipewright("export", *arguments, code=code)

    def csv_rows(self, path):
        with open(self.folder / path, newline="") as file:
            return list(csv.DictReader(file))


class LongRows(Export):
    def test_a_sweep_as_csv_and_as_json_lines(self):
        runs = self.sweep()
        done = self.export("runs/sw", "--output", "out.csv")
        rows = self.csv_rows("out.csv")
        self.assertIn(f"wrote out.csv: {len(rows):,} rows of 4 runs", done.out)
        self.assertEqual(
            list(rows[0]),
            ["run", "label", "state", "scheme.name", "train.seed", "epoch", "step", "metric", "value"],
        )
        traffic = {"sent_ratio", "sent_mib", "required_mib_per_s", "codec_share"}
        for run in runs:
            own = [row for row in rows if row["run"] == run.path.name]
            point = json.loads((run.path / "point.json").read_text())
            for row in own:
                self.assertEqual((row["label"], row["state"]), (point["label"], "done"))
                self.assertEqual({key: row[key] for key in ("scheme.name", "train.seed")}, {key: str(point["varied"][key]) for key in ("scheme.name", "train.seed")})
            told = {(row["epoch"], row["step"], row["metric"]): float(row["value"]) for row in own if row["metric"] not in traffic}
            self.assertEqual(told, numbers(run))
            self.assertEqual(len(told), len([row for row in own if row["metric"] not in traffic]), "a number stands there twice")
            self.assertEqual({row["metric"] for row in own} & traffic, traffic)

        self.export("runs/sw", "--format", "jsonl", "--output", "out.jsonl")
        objects = [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]
        as_texts = [{"step": ""} | {key: str(value) for key, value in each.items() if key != "value"} for each in objects]
        self.assertEqual(as_texts, [{"step": ""} | {key: text for key, text in row.items() if key != "value"} for row in rows])
        self.assertEqual([each["value"] for each in objects], [float(row["value"]) for row in rows])

        # From the file of the experiment, whose results lie in runs/<name> unless it says otherwise.
        self.write("sw.yaml", changed(SWEPT, {"name": "sw"}))
        self.export("s.yaml", "--out", "runs/sw", "-o", "file.csv")
        self.assertEqual(sorted((self.folder / "file.csv").read_text().splitlines()), sorted((self.folder / "out.csv").read_text().splitlines()))
        self.export("sw.yaml", "--output", "file.csv")
        self.assertEqual(sorted((self.folder / "file.csv").read_text().splitlines()), sorted((self.folder / "out.csv").read_text().splitlines()))

    def test_runs_from_several_places_say_what_they_differ_in(self):
        one = self.train(MLP, "one")
        self.train(changed(MLP, {"optimizer.lr": 0.05}), "other")
        self.export("one", "other", "--output", "out.csv")
        rows = self.csv_rows("out.csv")
        self.assertEqual({(row["run"], row["optimizer.lr"]) for row in rows}, {("one", "0.02"), ("other", "0.05")})
        self.assertEqual(list(rows[0]), ["run", "label", "state", "optimizer.lr", "epoch", "step", "metric", "value"])
        shutil.copytree(one.path, self.folder / "else/one")
        self.assert_errors(self.export("one", "else/one", "--output", "x.csv", code=EXPERIMENT), r"two of the exported runs are called one; ")

    def test_runs_that_have_failed_leave_what_they_have(self):
        runs = self.sweep(changed(MLP, {"train.epochs": 2, "sweep": {"grid": {"optimizer.lr": [0.01, 1e30]}}}), code=SWEEP)
        self.assertEqual(len(runs), 2)
        self.export("runs/sw", "--output", "out.csv")
        self.assertEqual({row["optimizer.lr"] for row in self.csv_rows("out.csv") if row["state"] == "done"}, {"0.01"})

    def test_texts_of_others_do_not_act(self):
        runs = self.sweep(changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}}))
        for text in [*HOSTILE, "=1+1", "../../out", "/etc"]:
            for run in runs:
                (run.path / "point.json").write_text(json.dumps({"label": text, "varied": {text: text, "value": 3}}))
            self.export("runs/sw", "--output", "out.csv")
            for row in self.csv_rows("out.csv"):
                for cell in [*row, *row.values()]:
                    self.assertFalse(cell.startswith(("=", "@", "\t", "\r")), cell)
                    self.assertTrue(cell.isprintable(), cell)
            self.export("runs/sw", "--format", "jsonl", "--output", "out.jsonl")
            for line in (self.folder / "out.jsonl").read_text().splitlines():
                self.assertEqual(json.loads(line)["label"], text)
            self.export("runs/sw", "--format", "tensorboard", "--output", "logs")
            self.assertEqual({path.name for path in (self.folder / "logs").iterdir()}, {run.path.name for run in runs})
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"s.yaml", "runs", "out.csv", "out.jsonl", "logs"})

    def test_refusals(self):
        run = self.train(MLP, "out")
        (self.folder / "empty").mkdir()
        self.write("s.yaml", SWEPT)
        for arguments, code, pattern in (
            (("empty", "--output", "x.csv"), DATA, r"^empty: holds no runs; expected the folder of a run or of a sweep"),
            (("s.yaml", "--output", "x.csv"), DATA, r"^runs/s: no run of s\.yaml has begun here; `pipewright sweep s\.yaml` makes them$"),
            (("out",), EXPERIMENT, r"^--output is missing"),
            (("out", "--out", "runs/s", "--output", "x.csv"), EXPERIMENT, r"^--out needs the experiment's file"),
            (("s.yaml", "out", "--out", "runs/s", "-o", "x.csv"), EXPERIMENT, r"^--out is the folder of one file's results; give that folder"),
            (("out", "--format", "xml", "--output", "x"), EXPERIMENT, r"^--format is 'xml'; expected csv, jsonl or tensorboard$"),
            (("out", "--set", "train.epochs=1", "--output", "x.csv"), EXPERIMENT, r"^--set needs the experiment's file"),
            (("out", "--output", "none/x.csv"), DATA, r"^none/x\.csv: cannot be written: there is no folder none$"),
            (("out", "--output", "out/steps.csv"), EXPERIMENT, r"^out/steps\.csv: "),
            (("s.yaml", "out", "--output", "s.yaml"), DATA, r"^runs/s: no run of s\.yaml"),
            (("out", "--output", "empty"), DATA, r"^empty: is a folder; only a regular file is replaced"),
            (("out", "--format", "tensorboard", "--output", "out"), DATA, r"^out: is a folder of runs, which exports leave as it is; give another --output$"),
            (("out", "--format", "tensorboard", "--output", "."), DATA, r"^\./out: is a folder of runs"),
            (("out", "--format", "tensorboard", "--output", "s.yaml"), DATA, r"^s\.yaml: is no folder; give another --output$"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_errors(self.export(*arguments, code=code), pattern)
        names = {path.name for path in self.folder.iterdir()}
        self.assertEqual(names, {"out", "out.yaml", "empty", "s.yaml"})
        for file, text, pattern in (
            ("epochs.csv", "epoch,lr\n0,x\n", r"^out/epochs\.csv:2:3: 'x' is not a number$"),
            ("steps.csv", "epoch,minibatch,loss\n0,0\n", r"^out/steps\.csv:2:1: has 2 fields, but the header has 3$"),
            ("run.json", "{", r"^out/run\.json: is no JSON at byte 2"),
        ):
            before = run.bytes(file)
            (run.path / file).write_text(text)
            for form in ("csv", "jsonl", "tensorboard"):
                self.assert_errors(self.export("out", "--format", form, "--output", "x", code=DATA), pattern)
            (run.path / file).write_bytes(before)
        self.assertEqual({path.name for path in self.folder.iterdir()}, names)


class Events(Export):
    def curves(self, run, minibatches=6):
        """What an event file of a run shall have."""
        curves = {}
        for (epoch, step, metric), value in numbers(run).items():
            kind, _, rest = metric.partition("_")
            if metric == "loss":
                tag = "loss_per_step/train"
            elif metric.startswith("probe."):
                _, probe, quantity = metric.split(".")
                tag = f"probe.{probe}/" + quantity.replace("[", "/stage_").rstrip("]")
            else:
                tag = f"{rest}/{kind}" if kind in ("train", "test") else metric
            place = int(epoch) * minibatches + int(step) if step else int(epoch)
            curves.setdefault(tag, []).append((place, float32(value)))
        return curves

    def test_each_run_has_a_folder_with_its_curves(self):
        runs = self.sweep()
        done = self.export("runs/sw", "--format", "tensorboard", "--output", "a/logs")
        self.assertIn("wrote the event files of 4 runs; `tensorboard --logdir a/logs` shows them", done.out)
        for run in runs:
            self.assertEqual(event_files.read(self.folder / "a/logs" / run.path.name / EVENTS), self.curves(run))
        written = {path: path.read_bytes() for path in (self.folder / "a").rglob("events*")}
        self.assertEqual(len(written), 4)
        self.export("runs/sw", "--format", "tensorboard", "--output", "a/logs")
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "a").rglob("events*")}, written)
        one = self.train(MLP, "one")
        self.export("runs/sw", "one", "--format", "tensorboard", "--output", "b")
        self.assertEqual(
            {path.parent.relative_to(self.folder / "b").as_posix() for path in (self.folder / "b").rglob(EVENTS)},
            {f"sw/{run.path.name}" for run in runs} | {one.path.name},
        )

    def test_a_run_shows_its_curves_while_it_goes_on(self):
        shown = changed(CNN, {"output.tensorboard": True, "probes": SWEPT["probes"], "train.epochs": 3})
        plain = self.train(changed(shown, {"output": {}}), "plain")
        for execution in ("serial", "threads"):
            run = self.train(shown, execution, "--set", f"pipeline.execution={execution}")
            self.assert_same_result(plain, run)
            self.assertEqual(event_files.read(run.path / EVENTS), self.curves(run))
        self.assertEqual(set(run.names()) - set(plain.names()), {EVENTS})
        process = self.start("run", "serial.yaml", "--out", "long", "--set", "train.epochs=100000")
        events = self.folder / "long" / EVENTS
        self.wait_until(lambda: events.exists() and events.stat().st_size > 10_000, process)
        self.assertFalse((self.folder / "long/final.safetensors").exists())
        process.kill()
        process.communicate()
        self.pipewright("run", "serial.yaml", "--out", "long", "--overwrite", "--set", "output.tensorboard=false")
        self.assertFalse(events.exists())

    @skips.needs("mpirun")
    def test_processes_and_replicas_show_the_same_once_the_pipeline_is_empty(self):
        shown = changed(MLP, {"output.tensorboard": True, "probes": SWEPT["probes"], "lr_schedule": SWEPT["lr_schedule"], "scheme": {"name": "gpipe"}})
        file = self.write("mpi.yaml", changed(shown, {"pipeline.execution": "mpi"}))
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", harness.BINARY, "run", file.name, "--out", "mpi"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for run in (harness.Run(self.folder / "mpi"), self.train(changed(shown, {"pipeline.replicas": 2}), "replicas")):
            self.assertEqual(event_files.read(run.path / EVENTS), self.curves(run))

    def test_auxiliary_losses_have_curves_of_their_own(self):
        run = self.train(changed(CNN, {"output.tensorboard": True, "scheme": {"name": "interlocking"}, "train.epochs": 1}), "out")
        curves = event_files.read(run.path / EVENTS)
        for column, tag in (("loss", "train"), ("loss_0", "stage_0"), ("loss_1", "stage_1")):
            told = [(step, float32(row[column])) for step, row in enumerate(run.rows("steps.csv"))]
            self.assertEqual(curves[f"loss_per_step/{tag}"], told)

    def test_a_resumed_run_has_each_step_once(self):
        shown = changed(
            CNN,
            {
                "output.tensorboard": True,
                "probes": SWEPT["probes"],
                "lr_schedule": {"name": "step", "per": "step", "size": 100, "gamma": 0.5},
                "train.epochs": 40,
                "train.checkpoint.every": 20,
            },
        )
        whole = self.train(shown, "whole")
        self.assertEqual(event_files.read(whole.path / EVENTS), self.curves(whole))
        file = self.write("out.yaml", changed(shown, {"train.epochs": 2000}))
        kept = self.killed_past_a_checkpoint(file.name, EVENTS)
        run = harness.Run(self.folder / "out")
        events = run.path / EVENTS
        with open(events, "ab") as file:  # as if the kill had come in the middle of a record
            file.write(b"\x10\0\0")
        self.resume("out", "--set", f"train.epochs={kept // 6 + 2}")
        self.assertEqual(event_files.read(events), self.curves(run))
        events.unlink()  # what a checkpoint lacks is missing, and nothing else
        self.resume("out", "--set", f"train.epochs={kept // 6 + 4}")
        curves = event_files.read(events)
        self.assertEqual(curves["loss_per_step/train"], self.curves(run)["loss_per_step/train"][kept:][-len(curves["loss_per_step/train"]) :])

    def test_event_files_of_others_stay_alone(self):
        self.train(MLP, "out")
        self.write("logs/out/events.out.tfevents.1700000000.host", "theirs")
        self.assert_errors(
            self.export("out", "--format", "tensorboard", "--output", "logs", code=DATA), r"^logs/out: has an event file of another program"
        )
        (self.folder / "elsewhere").mkdir()
        (self.folder / "links").mkdir()
        (self.folder / "links/out").symlink_to(self.folder / "elsewhere")
        self.assert_errors(self.export("out", "--format", "tensorboard", "--output", "links", code=DATA), r"^links/out: is a link")
        self.assertEqual(list((self.folder / "elsewhere").iterdir()), [])


if __name__ == "__main__":
    harness.main()
