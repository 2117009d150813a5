# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost or replaced by a fault of the system or a slip of the user, and output that is lost is an error."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import harness
import skips
from harness import BINARY, DATA, EXPERIMENT, FINE, INTERRUPTED, MLP, NOT_FINITE, SOURCE_DIR, changed

HARDWARE = SOURCE_DIR / "experiments" / "hardware" / "dgx1-v100.yaml"
CHECKPOINTS = {"train.epochs": 3, "train.checkpoint": {"every": 1}}


class GivenFiles(harness.EndToEnd):
    """No command replaces a file that it was given to read."""

    def refuse(self, file, *arguments):
        before = (self.folder / file).read_bytes()
        done = self.pipewright(*arguments, code=EXPERIMENT)
        self.assertIn(f"{file}: is ", done.err)
        self.assertIn("give another name", done.err)
        self.assertEqual((self.folder / file).read_bytes(), before)

    def test_a_description_of_hardware(self):
        shutil.copy(HARDWARE, self.folder / "hardware.yaml")
        self.write("x.yaml", MLP)
        self.refuse("hardware.yaml", "simulate", "x.yaml", "--hardware", "hardware.yaml", "--json", "hardware.yaml")
        self.write("y.yaml", changed(MLP, {"hardware": {"file": "hardware.yaml"}}))
        self.refuse("hardware.yaml", "simulate", "y.yaml", "--svg", "hardware.yaml")
        os.symlink("hardware.yaml", self.folder / "other.yaml")
        self.refuse("other.yaml", "simulate", "y.yaml", "--svg", "other.yaml")

    def test_costs_and_schedules(self):
        self.write("costs.yaml", "forward: 1\nbackward: 2\n")
        self.write("x.yaml", MLP)
        self.refuse("costs.yaml", "simulate", "x.yaml", "--costs", "costs.yaml", "--json", "costs.yaml")
        self.write("s.csv", "0F0,0B0\n")
        self.write("y.yaml", {"scheme": {"name": "csv_schedule", "file": "s.csv"}})
        self.refuse("s.csv", "schedule", "y.yaml", "--svg", "s.csv")

    def test_what_a_run_has_left(self):
        self.train(changed(MLP, {"output": {"trace": True}, "probes": [{"name": "sharpness", "every": 4}]}), "r")
        for name in ("run.json", "final.safetensors", "trace.json", ".pipewright"):
            self.refuse(f"r/{name}", "timeline", "r", "--svg", f"r/{name}")
        self.refuse("r/probes.csv", "schedule", "r.yaml", "--svg", "r/probes.csv")
        self.pipewright("timeline", "r", "--svg", "r/timeline.svg")


class NamedData(harness.EndToEnd):
    """No command replaces the data that an experiment names, whether the command opens it or not."""

    def refuse(self, *arguments, file):
        before = (self.folder / file).read_bytes()
        done = self.pipewright(*arguments, file, code=EXPERIMENT)
        self.assertIn(f"{file}: is ", done.err)
        self.assertIn("so it is not replaced; give another name", done.err)
        self.assertEqual((self.folder / file).read_bytes(), before)

    def test_a_file_that_the_data_set_names(self):
        self.write("corpus.txt", "to be or not to be\n" * 100)
        gpt = {"name": "gpt", "vocabulary": 256, "layers": 1, "width": 8, "heads": 1, "tokens": 8}
        text = {"name": "text", "train": "corpus.txt", "test": "corpus.txt", "tokenizer": "bytes", "tokens": 8}
        self.write("x.yaml", {"dataset": text, "model": gpt, "scheme": {"name": "gpipe"}})
        self.refuse("profile", "x.yaml", "--device", "meta", "--out", file="corpus.txt")
        self.refuse("schedule", "x.yaml", "--svg", file="corpus.txt")

    def test_a_file_in_the_folder_of_the_data_set(self):
        self.write("data/cifar/data_batch_1.bin", "images")
        cifar = {"dataset": {"name": "cifar10", "root": "data/cifar"}, "model": {"name": "cnn", "width": 0.1}}
        self.write("x.yaml", cifar)
        self.refuse("profile", "x.yaml", "--device", "meta", "--out", file="data/cifar/data_batch_1.bin")
        self.pipewright("profile", "x.yaml", "--device", "meta", "--out", "data/cifar/new.yaml")
        self.pipewright("profile", "x.yaml", "--device", "meta", "--out", "data/beside.yaml")
        self.pipewright("profile", "x.yaml", "--device", "meta", "--out", "data/beside.yaml")


class EveryInputOfEveryCommand(harness.EndToEnd):
    """All outputs of all commands, over each file that the command reads, also by a link's name."""

    OUTPUTS = {
        "schedule x.yaml": ("--svg", "--csv", "--pytorch-csv", "--trace"),
        "simulate x.yaml --costs costs.yaml": ("--svg", "--json", "--trace"),
        "simulate x.yaml --hardware hardware.yaml": ("--svg", "--json", "--trace"),
        "simulate s.yaml --hardware hardware.yaml --sweep": ("--svg", "--json", "--csv"),
        "stability x.yaml --hessian hessian.json": ("--json",),
        "stability r.yaml --run r": ("--json",),
        "timeline r": ("--svg", "--json"),
        "table t.yaml --out sw": ("--output",),
        "profile x.yaml": ("--out",),
    }
    # What each of them reads besides.
    INPUTS = {
        "schedule x.yaml": ("x.yaml", "base.yaml", "s.csv"),
        "simulate x.yaml --costs costs.yaml": ("x.yaml", "base.yaml", "costs.yaml", "s.csv"),
        "simulate x.yaml --hardware hardware.yaml": ("x.yaml", "base.yaml", "hardware.yaml", "s.csv"),
        "simulate s.yaml --hardware hardware.yaml --sweep": ("s.yaml", "base.yaml", "hardware.yaml"),
        "stability x.yaml --hessian hessian.json": ("x.yaml", "base.yaml", "hessian.json", "s.csv"),
        "stability r.yaml --run r": ("r.yaml", "r/probes.csv", "r/run.json", "r/experiment.yaml", "r/epochs.csv"),
        "timeline r": ("r/trace.json",),
        "table t.yaml --out sw": ("t.yaml", "published.csv", "hardware.yaml"),
        "profile x.yaml": ("x.yaml", "base.yaml", "s.csv"),
    }

    def setUp(self):
        super().setUp()
        shutil.copy(HARDWARE, self.folder / "hardware.yaml")
        small = changed(MLP, {"pipeline.stages": 1, "optimizer.momentum": 0, "loader.limit_train": 32})
        self.write("base.yaml", small)
        self.write("s.csv", "0F0,0B0\n")
        scheme = {"name": "csv_schedule", "file": "s.csv"}
        self.write("x.yaml", {"extends": "base.yaml", "scheme": scheme})
        self.write("s.yaml", {"extends": "base.yaml", "sweep": {"grid": {"pipeline.stages": [1, 2]}}})
        published = {"file": "published.csv", "match": {"scheme": "scheme.name"}}
        table = {"rows": "scheme.name", "metric": "modelled_samples_per_second", "published": published, "hardware": "hardware.yaml"}
        self.write("t.yaml", changed(small, {"sweep": {"grid": {"train.seed": [1]}}, "table": table}))
        self.write("published.csv", "scheme,value\nmodel_parallel,7\n")
        self.write("costs.yaml", "forward: 1\nbackward: 2\n")
        self.write("hessian.json", {"matrix": [[1]]})
        run = {"output.trace": True, "train.epochs": 2, "probes": [{"name": "sharpness", "every": 1}]}
        self.train(changed(small, run), "r")

    def test_nothing_that_is_read_is_replaced(self):
        for command, outputs in self.OUTPUTS.items():
            for output in outputs:
                fine = self.finish(self.start(*command.split(), output, "fine"))
                self.assertEqual(fine.code, FINE, f"{command} {output}: {fine.err}")
                for file in self.INPUTS[command]:
                    for name in (file, "link"):
                        with self.subTest(command=command, output=output, file=name):
                            self.refuse(command, output, file, name)

    def refuse(self, command, output, file, name):
        link = self.folder / "link"
        if name == "link":
            os.link(self.folder / file, link)
        before = (self.folder / file).read_bytes()
        done = self.finish(self.start(*command.split(), output, name))
        after = (self.folder / file).read_bytes()
        link.unlink(missing_ok=True)
        self.assertNotEqual(done.code, FINE, done.out)
        self.assertIn(f"{name}: is ", done.err)
        self.assertEqual(after, before)


class Places(harness.EndToEnd):
    """A slip in a path makes no folders, and a folder that is gone is said to be."""

    def test_a_folder_that_does_not_exist_is_not_made_for_an_output(self):
        self.write("x.yaml", MLP)
        done = self.pipewright("schedule", "x.yaml", "--svg", "nope/x.svg", code=DATA)
        self.assert_errors(done, "^nope/x.svg: cannot be written: there is no folder nope$")
        self.assertFalse((self.folder / "nope").exists())

    def test_the_current_folder_has_been_removed(self):
        self.write("x.yaml", MLP)
        for command in ("check", "run", "schedule"):
            (self.folder / "gone").mkdir()
            script = f'cd gone && rmdir ../gone && exec "{BINARY}" {command} "{self.folder}/x.yaml"'
            done = subprocess.run(["sh", "-c", script], cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, DATA, done.stderr)
            self.assertRegex(done.stderr, "^the current folder is not there any more .*\\n$")


class ResultsOfOthers(harness.EndToEnd):
    """Outputs replace neither the database of a sweep nor a file of another program."""

    def test_the_database_of_a_sweep_stays(self):
        self.write("s.yaml", MLP | {"sweep": {"grid": {"optimizer.lr": [0.01, 0.02]}}})
        self.pipewright("sweep", "s.yaml", "--out", "o")
        database = self.folder / "o" / "results.sqlite"
        before = database.read_bytes()
        for command in (
            ("export", "o"), ("report", "o"), ("table", "s.yaml", "--out", "o"),
        ):
            done = self.pipewright(*command, "--output", "o/results.sqlite", code=EXPERIMENT)
            self.assertIn("is the name of a file of the results in this folder", done.err)
        self.pipewright("schedule", "s.yaml", "--point", "1", "--csv", "o/results.sqlite", code=EXPERIMENT)
        self.assertEqual(database.read_bytes(), before)

    def test_a_trace_replaces_only_traces_and_makes_one_folder(self):
        self.write("x.yaml", MLP | {"name": "x"})
        command = ("simulate", "x.yaml", "--hardware", "dgx1-v100", "--chakra")
        self.pipewright(*command, "traces")
        self.pipewright(*command, "traces")  # its own
        for name in ("x.0.et", "x.1.et"):
            with self.subTest(name):
                (self.folder / "other").mkdir()
                self.write(f"other/{name}", "mine")
                self.assertIn(f"other/{name}: is no file of `simulate --chakra`", self.pipewright(*command, "other", code=DATA).err)
                self.assertEqual([each.name for each in (self.folder / "other").iterdir()], [name])
                self.assertEqual((self.folder / "other" / name).read_text(), "mine")
                shutil.rmtree(self.folder / "other")
        self.assertIn("there is no folder", self.pipewright(*command, "a/b", code=DATA).err)
        self.assertFalse((self.folder / "a").exists())


class RunsOfOthers(harness.EndToEnd):
    def test_a_page_that_is_a_fifo_is_refused(self):
        self.write("x.yaml", MLP)
        self.pipewright("run", "x.yaml", "--out", "r", "--quiet")
        os.mkfifo(self.folder / "r" / "report.html")
        self.assertIn("r/report.html: is no page", self.pipewright("report", "r", code=DATA).err)

    def test_a_run_that_has_lost_its_weights_is_not_done(self):
        self.write("x.yaml", MLP)
        self.pipewright("run", "x.yaml", "--out", "r", "--quiet")
        self.pipewright("run", "r", "--resume")
        (self.folder / "r" / "final.safetensors").unlink()
        refused = self.pipewright("run", "r", "--resume", code=EXPERIMENT)
        self.assertIn("its final.safetensors is gone", refused.err)

    def test_a_number_that_no_tensor_holds_is_a_diverged_training(self):
        self.write("x.yaml", changed(MLP, {"optimizer": {"name": "soap", "lr": 1e308}}))
        refused = self.pipewright("run", "x.yaml", "--out", "r", "--quiet", code=NOT_FINITE)
        self.assertIn("too large", refused.err)


class FoldersOfOnesOwn(harness.EndToEnd):
    def test_new_leaves_nothing_where_the_disk_is_full(self):
        failing = self.failing("experiment.yaml", "write", 1)
        self.pipewright("new", "scheme", "mine", code=DATA, environment=failing)
        self.assertFalse((self.folder / "mine").exists())
        self.pipewright("new", "scheme", "mine")


class Searches(harness.EndToEnd):
    """Searches keep to their time, and an interruption leaves what was found."""

    LARGE = {"model": {"name": "mlp", "widths": [64] + [8] * 600 + [10]}, "pipeline": {"stages": 600, "microbatches": 4}}

    def setUp(self):
        super().setUp()
        model = {"name": "mlp", "widths": [64, 8, 8, 8, 8, 8, 8, 10]}
        self.write("x.yaml", changed(MLP, {"model": model, "pipeline": {"stages": 6, "microbatches": 24}, "loader.batch_size": 24}))
        self.write("uneven.yaml", "forward: [1, 1.3, 0.9, 1.7, 1.1, 1]\nbackward: [2.1, 2, 2.4, 3, 2, 1.9]\nupdate: 0.1\n")
        self.write("large.yaml", changed(MLP, self.LARGE))
        self.write("c.yaml", "forward: 1\nbackward: 2.1\nupdate: 0.1\n")

    def test_a_search_of_a_large_pipeline_keeps_to_its_time(self):
        begin = time.monotonic()
        self.pipewright("synthesize", "large.yaml", "--costs", "c.yaml", "--within", "1s")
        self.assertLess(time.monotonic() - begin, 25)  # without the limit more than 100 s

    def test_staleness_beyond_all_pipelines_makes_no_rows(self):
        self.pipewright(
            "synthesize", "x.yaml", "--costs", "c.yaml", "--staleness", "100000", "--tries", "1", "--minibatches", "24", "--curve", "c.csv"
        )
        rows = (self.folder / "c.csv").read_text().splitlines()[1:]
        self.assertEqual(max(int(row.split(",")[0]) for row in rows), 12)  # twice the stages

    def test_an_interruption_leaves_the_best_order(self):
        process = self.start("synthesize", "x.yaml", "--costs", "uneven.yaml", "--live", "3", "--within", "100s", "--csv", "order.csv")
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        done = self.finish(process)
        self.assertEqual(done.code, INTERRUPTED, done.err)
        self.assertIn("interrupted; the order above", done.err)
        self.assertTrue((self.folder / "order.csv").is_file())


class OtherFiles(harness.EndToEnd):
    """Messages do not show what stands in a file that is not of the kind that was expected."""

    def test_hardware_costs_and_profiles_that_are_none(self):
        # A line of a passwd file, broken YAML, and a file with sections of its own.
        for text in ("root:*:20228:0:99999\n", "root: [1\n", "root:\n  shell: 1\nname: root\n"):
            self.write("passwords", text)
            self.write("x.yaml", changed(MLP, {"table.metric": "modelled_bubble", "plot.y": "modelled_bubble"}))
            by_time = ["--set", "pipeline.balance=time", "--set", f"pipeline.cut.profile={self.folder}/passwords"]
            file = ["--set", f"hardware.file={self.folder}/passwords"]
            for arguments in (
                ["simulate", "x.yaml", "--hardware", "passwords"],
                ["simulate", "x.yaml", "--costs", "passwords"],
                ["simulate", "x.yaml", "--profile-file", "passwords"],
                ["simulate", "x.yaml", *file],
                ["check", "x.yaml", *file],
                ["run", "x.yaml", *file],
                ["sweep", "x.yaml", *file, "--set", "sweep={grid: {train.seed: [1]}}"],
                ["table", "x.yaml", "--hardware", "passwords"],
                ["plot", "x.yaml", "--hardware", "passwords"],
                ["check", "x.yaml", *by_time],
            ):
                done = self.pipewright(*arguments, code=EXPERIMENT)
                self.assertRegex(done.err, r"passwords: is no (description of hardware|table of costs|profile), which")
                self.assertNotIn("root", done.out + done.err)

    def test_a_missing_description_is_refused_by_all_and_hides_nothing(self):
        self.write("x.yaml", changed(MLP, {"hardware": {"file": "absent.yaml", "hots": 2}}))
        for command in (["check"], ["run"], ["simulate"], ["sweep", "--set", "sweep={grid: {train.seed: [1]}}"]):
            done = self.pipewright(command[0], "x.yaml", *command[1:], code=EXPERIMENT)
            self.assertRegex(done.err, r"(?m)^x\.yaml:\d+:\d+: hardware\.file: .*absent\.yaml: cannot open: No such file")
            self.assertIn("unknown option 'hardware.hots'; did you mean 'hosts'?", done.err)
            self.assertEqual(len(done.lines), 2, done.err)

    def test_a_schedule_that_is_none(self):
        self.write("passwords", "root:*:20228:0:99999\n")
        self.write("x.yaml", {"scheme": {"name": "csv_schedule", "file": "passwords"}})
        done = self.pipewright("check", "x.yaml", code=DATA)
        self.assertNotIn("root", done.err)
        self.assertIn("passwords:1:1: this is no schedule", done.err)


@skips.needs("test-programs", harness.FAILING_FILES)
class Listings(harness.EndToEnd):
    def test_a_folder_that_cannot_be_listed_costs_no_checkpoint(self):
        self.train(changed(MLP, CHECKPOINTS), "whole")
        self.write("r.yaml", changed(MLP, CHECKPOINTS))
        killed = self.failing("r/checkpoint/manifest.json", "rename", 3, kill=True)
        self.pipewright("run", "r.yaml", "--quiet", "--out", "r", code=-signal.SIGKILL, environment=killed)
        refused = 0
        for at in range(1, 12):
            shutil.copytree(self.folder / "r", self.folder / f"r{at}")
            shutil.copy(self.folder / "r.yaml", self.folder / f"r{at}.yaml")
            environment = self.failing(f"/r{at}", "list", at)
            arguments = ["run", "r.yaml", "--quiet", "--out", f"r{at}", "--resume"]
            done = self.finish(self.start(*arguments, environment=environment))
            if done.code != FINE:
                refused += 1
                self.assertEqual(done.code, DATA, done.err)
                self.assertIn("cannot list the folder", done.err)
                self.pipewright(*arguments)
            self.assert_same_result(harness.Run(self.folder / "whole"), harness.Run(self.folder / f"r{at}"))
        self.assertGreater(refused, 1)
        shutil.rmtree(self.folder / "r")  # has what the kill left

    def test_a_write_that_takes_half_of_the_bytes_is_continued(self):
        whole = self.train(MLP, "whole")
        for at in (1, 2, 3, 4, 5):
            self.write("r.yaml", MLP)
            self.pipewright("run", "r.yaml", "--quiet", "--out", f"r{at}", environment=self.failing(f"r{at}/", "short", at))
            self.assert_same_result(whole, harness.Run(self.folder / f"r{at}"))


class StandardFiles(harness.EndToEnd):
    def shell(self, command):
        return subprocess.run(
            ["/bin/sh", "-c", f'exec "{BINARY}" {command}'], cwd=self.folder, capture_output=True, text=True, check=False,
            timeout=60,
        )

    def test_output_that_cannot_be_written_is_an_error(self):
        self.write("x.yaml", MLP)
        for command in ("schema", "list", "describe scheme gpipe", "schedule x.yaml", "check x.yaml"):
            done = self.shell(f"{command} >/dev/full")
            self.assertEqual(done.returncode, DATA, command)
            self.assertRegex(done.stderr, r"^cannot write to standard output(: No space left on device)?\n$")

    def test_closed_files_are_nobodys(self):
        whole = self.train(MLP, "whole")
        self.write("x.yaml", MLP)
        for number, closed in enumerate((">&-", "2>&-", "<&-", "<&- >&- 2>&-")):
            done = self.shell(f"run x.yaml --out o{number} {closed}")
            self.assertEqual(done.returncode, FINE, closed)
            self.assert_same_result(whole, harness.Run(self.folder / f"o{number}"))

    @skips.needs("mpirun")
    def test_closed_files_of_processes(self):
        self.write("x.yaml", changed(MLP, {"pipeline.execution": "mpi", "pipeline.stages": 2}))
        self.assertEqual(self.shell("run x.yaml --out o --quiet >&- 2>&-").returncode, FINE)


class NamesThatAreNotUtf8(harness.EndToEnd):
    """No record could hold such a name: it is refused before anything is trained."""

    def test_a_folder_of_results(self):
        self.write("x.yaml", MLP)
        for command in ("run", "sweep"):
            done = self.pipewright(command, "x.yaml", "--out", "o\udcff", code=EXPERIMENT)
            self.assert_errors(done, r"^--out is 'o\\xff', which is not UTF-8$")
        self.assertEqual(list(self.folder.iterdir()), [self.folder / "x.yaml"])

    def test_a_working_folder(self):
        folder = self.folder / "d\udcff"
        for name, dataset in (("a.yaml", {"name": "tensors", "file": "t.csv"}), ("b.yaml", MLP["dataset"])):
            self.write(f"d\udcff/{name}", MLP | {"dataset": dataset})
        run = {"cwd": folder, "capture_output": True, "text": True, "timeout": 60, "check": False}
        done = subprocess.run([BINARY, "run", "a.yaml", "--out", "a"], **run)
        self.assertEqual(done.returncode, EXPERIMENT, done.stderr)
        self.assertRegex(done.stderr, r"dataset\.file is \S+/d\\xff/t\.csv, which is not UTF-8")
        done = subprocess.run([BINARY, "run", "b.yaml", "--quiet", "--out", "b"], **run)
        self.assertEqual((done.returncode, done.stderr), (FINE, ""))
        self.assertEqual(harness.Run(folder / "b").state(), "done")


class Limits(harness.EndToEnd):
    def test_a_limit_of_file_sizes_is_an_error_and_leaves_no_part(self):
        self.write("x.yaml", MLP)
        command = f'ulimit -f 1; exec "{BINARY}" schedule x.yaml --minibatches 300 --csv s.csv'
        done = subprocess.run(["/bin/sh", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, DATA, done.stderr)
        self.assertRegex(done.stderr, r"^s\.csv\S*: cannot write: File too large\n$")
        self.assertEqual(list(self.folder.iterdir()), [self.folder / "x.yaml"])


class DamagedRuns(harness.EndToEnd):
    def test_a_run_whose_numbers_cannot_be_read_is_named(self):
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": {"train.seed": [1]}}}))
        self.pipewright("sweep", "s.yaml", "--out", "sw")
        epochs = next((self.folder / "sw").glob("*/epochs.csv"))
        head, row = epochs.read_text().splitlines()
        epochs.write_text(f"{head}\n{','.join(row.split(',')[:3])}\n")
        done = self.pipewright("table", "s.yaml", "--out", "sw")
        self.assertRegex(done.lines[0], r"^sw/1-\w+/epochs\.csv\b")


class Sweeps(harness.EndToEnd):
    def test_a_stopped_run_ends_with_the_second_interruption(self):
        self.write("x.yaml", changed(MLP, {"train.epochs": 100000, "sweep": {"grid": {"train.seed": [1]}}}))
        sweep = subprocess.Popen([BINARY, "sweep", "x.yaml", "--out", "o"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(sweep.kill)
        children = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children")
        self.wait_until(lambda: list((self.folder / "o").glob("*/steps.csv*")), sweep)
        child = int(children.read_text().split()[0])
        os.kill(child, signal.SIGSTOP)
        sweep.send_signal(signal.SIGINT)
        self.wait_until(lambda: "interrupted;" in sweep.stderr.readline(), sweep)
        sweep.send_signal(signal.SIGINT)
        self.assertEqual(sweep.wait(timeout=60), 130)
        self.assertFalse(Path(f"/proc/{child}").exists())


if __name__ == "__main__":
    harness.main()
