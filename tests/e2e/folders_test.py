# SPDX-License-Identifier: Apache-2.0
"""A folder is Pipewright's or it is not touched, and one process at a time works in it."""

import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import time
from pathlib import Path

import harness
import skips
from harness import DATA, EXPERIMENT, INTERRUPTED, MLP, changed

TINY = changed(MLP, {"loader.limit_train": 32, "train": {"epochs": 2}})
ENDLESS = changed(TINY, {"train.epochs": 1_000_000, "train.checkpoint": {"every": 1000}})
MARKER = ".pipewright"
WAYS = ((), ("--overwrite",), ("--resume",))


def snapshot(folder):
    """Everything below a folder that a program could change: bytes, times and links, of folders too."""
    entries = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        entries[str(path.relative_to(folder))] = (status.st_mode, status.st_ino, status.st_mtime_ns, content)
    return entries


def but_for_markers(snapshot):
    """Whoever has held a folder for a moment stands in its marker."""
    return {name: entry for name, entry in snapshot.items() if Path(name).name != MARKER}


class Foreign(harness.EndToEnd):
    """Ten attacks on what a user has lying about."""

    def refuse(self, pattern, *arguments, ways=WAYS, command="run", file="e.yaml", watched=None):
        """In every way: exit code 2, one line, and nothing below the watched folder has changed."""
        watched = watched or self.folder
        for way in ways:
            with self.subTest(way):
                before = snapshot(watched)
                done = self.pipewright(command, file, *arguments, *way, code=EXPERIMENT)
                self.assert_errors(done, pattern)
                self.assertEqual(snapshot(watched), before)

    def check_kept(self, files, run):
        """`run` leaves the files (by name, relative to the test's folder) as they are."""
        before = {name: entry for name, entry in snapshot(self.folder).items() if name in files}
        self.assertEqual(set(before), set(files))
        run()
        after = {name: entry for name, entry in snapshot(self.folder).items() if name in files}
        self.assertEqual(after, before)

    def ours(self, name="out"):
        """A folder with a finished run."""
        return self.train(TINY, name).path

    def test_01_the_folder_of_the_experiment_file(self):
        self.write("e.yaml", json.dumps(TINY) + "  # and a comment")
        self.write("experiment.yaml", json.dumps(TINY) + "  # by hand")
        self.refuse(r"^\.: the folder has 'e\.yaml' in it and no \.pipewright.*give another --out", "--out", ".")
        self.refuse(r"^\.: the folder has 'e\.yaml'", "--out", ".", file="experiment.yaml")

    def test_02_files_with_the_names_of_a_run(self):
        self.write("e.yaml", TINY)
        for name in ("checkpoint/best.pt", "checkpoint/000001/stage-0.safetensors", "steps.csv", "last-actions-0.txt"):
            self.write(f"mine/{name}", "of somebody else")
        self.refuse(r"^mine: the folder has 'checkpoint' in it", "--out", "mine")

    def test_03_an_unfinished_download(self):
        self.write("e.yaml", TINY)
        self.write("mine/film.mkv.part", "half")
        self.write("mine/steps.csv.4711.part", "half")
        self.refuse(r"^mine: the folder has 'film\.mkv\.part' in it", "--out", "mine")
        for name in ("film.mkv.part", "steps.csv.4711.part"):
            (self.folder / "mine" / name).unlink()

    def test_04_a_run_json_of_another_program(self):
        self.write("e.yaml", TINY)
        for content in ("not even YAML: [", '{"state": "done", "digest": 7}', '["state"]'):
            self.write("mine/run.json", content)
            self.refuse(r"^mine: the folder has 'run\.json' in it", "--out", "mine")

    def test_05_a_marker_that_is_not_ours(self):
        self.write("e.yaml", TINY)
        self.write("mine/.pipewright", "theme: dark\n")
        self.refuse(r"^mine: the folder has a \.pipewright of somebody else", "--out", "mine")
        shutil.copytree(self.ours(), self.folder / "other")
        (self.folder / "mine" / MARKER).unlink()
        (self.folder / "mine" / MARKER).symlink_to(self.folder / "other" / MARKER)
        self.refuse(r"^mine: the folder has a \.pipewright of somebody else", "--out", "mine", ways=WAYS[:1])

    def test_06_files_of_other_names_in_our_own_folder(self):
        out = self.ours()
        names = [
            "notes.txt", "film.mkv.part", "steps.csv.part", "last-actions-plan.txt", "experiment.yaml.orig",
            "checkpoint/best.pt", "checkpoint/000002/mine.safetensors", "checkpoint/0001", "checkpoint/000007x/a",
        ]  # fmt: skip
        for name in names:
            self.write(f"out/{name}", "of somebody else")
        self.write("out/steps.csv.4711.part", "of a run that was killed")
        files = [f"out/{name}" for name in names]
        self.check_kept(files, lambda: self.train(TINY, "out", "--overwrite", "--set", "train.seed=2"))
        self.check_kept(files, lambda: self.train(changed(TINY, {"train.seed": 2}), "out", "--resume"))
        self.assertFalse((out / "steps.csv.4711.part").exists())
        for name in ("film.mkv.part", "steps.csv.part"):
            (out / name).unlink()

    def test_07_a_link_called_checkpoint(self):
        for name in ("000002/stage-0.safetensors", "manifest.json", "best.pt"):
            self.write(f"mine/{name}", "of somebody else")
        out = self.ours()
        shutil.rmtree(out / "checkpoint")
        (out / "run.json").write_text((out / "run.json").read_text().replace("done", "running"))
        (out / "checkpoint").symlink_to(self.folder / "mine")
        self.refuse(
            r"^out/checkpoint: is a symbolic link, which a run does not follow",
            "--out", "out", ways=[("--resume",)], file="out.yaml", watched=self.folder / "mine",
        )  # fmt: skip
        before = snapshot(self.folder / "mine")
        self.train(TINY, "out", "--overwrite")
        self.assertEqual(snapshot(self.folder / "mine"), before)
        self.assertFalse((out / "checkpoint").is_symlink())

    def test_08_links_with_the_names_of_files(self):
        out = self.ours()
        names = ("steps.csv", "final.safetensors", "run.json", "last-actions-0.txt", "trace.json")
        for name in names:
            self.write(f"mine/{name}", "of somebody else")
            (out / name).unlink(missing_ok=True)
            (out / name).symlink_to(self.folder / "mine" / name)
        before = snapshot(self.folder / "mine")
        done = self.pipewright("run", "out.yaml", "--out", "out", "--resume", code=EXPERIMENT)
        self.assert_errors(done, r"^out/[a-z0-9.-]+: is a symbolic link")
        self.assertEqual(snapshot(self.folder / "mine"), before)
        self.train(TINY, "out", "--overwrite", "--set", "output.trace=true")
        self.assertEqual(snapshot(self.folder / "mine"), before)
        self.assertEqual([name for name in names if (out / name).is_symlink()], [])

    def test_09_a_link_within_checkpoint(self):
        out = self.ours()
        self.write("mine/stage-0.safetensors", "of somebody else")
        self.write("mine/metrics.safetensors", "of somebody else")
        (out / "checkpoint/000003").symlink_to(self.folder / "mine")
        before = snapshot(self.folder / "mine")
        self.train(TINY, "out", "--overwrite")
        self.assertEqual(snapshot(self.folder / "mine"), before)
        self.assertFalse((out / "checkpoint/000003").is_symlink())

    def test_10_the_folder_of_a_sweep(self):
        sweep = changed(TINY, {"sweep": {"grid": {"train.seed": [1, 2]}}})
        self.write("e.yaml", sweep)
        for name in (".lock", "results.sqlite", "slurm/1/array.sh", "thesis.tex"):
            self.write(f"mine/{name}", "of somebody else")
        self.refuse(r"^mine: the folder has '\.lock' in it", "--out", "mine", command="sweep")
        # Within a sweep of ours a link in the place of a log is not written through.
        self.pipewright("sweep", "e.yaml", "--out", "sw")
        run = next((self.folder / "sw").glob("*-*"))
        self.write("mine/log.txt", "of somebody else")
        (run / "log.txt").unlink()
        (run / "log.txt").symlink_to(self.folder / "mine/log.txt")
        before = snapshot(self.folder / "mine")
        self.pipewright("sweep", "e.yaml", "--out", "sw", "--overwrite", code=harness.SWEEP)
        self.assertEqual(snapshot(self.folder / "mine"), before)

    def test_a_sweep_takes_up_what_single_runs_have_made_and_nothing_else(self):
        self.write("e.yaml", changed(TINY, {"sweep": {"grid": {"train.seed": [1, 2]}}}))
        self.write("alone.yaml", TINY)
        self.pipewright("run", "alone.yaml", "--quiet", "--out", "sw/alone")
        self.write("sw/profile-0123456789abcdef.yaml", "measured: true")
        self.write("sw/thesis.tex", "of somebody else")
        self.refuse(r"^sw: the folder has 'alone' in it", "--out", "sw", command="sweep", ways=WAYS[:1])
        (self.folder / "sw/thesis.tex").unlink()
        self.pipewright("sweep", "e.yaml", "--out", "sw")
        self.assertEqual(harness.Run(self.folder / "sw/alone").state(), "done")

    def test_files_that_the_command_reads_are_never_written(self):
        out = self.ours()
        self.write("base.yaml", TINY)
        file = self.write("e.yaml", "extends: base.yaml\n")
        before = snapshot(self.folder)
        for arguments in (
            ("run", "out/experiment.yaml", "--out", "out", "--overwrite"),
            ("schedule", "e.yaml", "--svg", "e.yaml"),
            ("schedule", "e.yaml", "--svg", "base.yaml"),
        ):
            done = self.pipewright(*arguments, code=EXPERIMENT)
            self.assertRegex(done.err, r"(?m)^(out/experiment|e|base)\.yaml: is a file that this command reads")
            self.assertEqual(but_for_markers(snapshot(self.folder)), but_for_markers(before))
        # What somebody has written there by hand is not replaced by what is resolved.
        (out / "experiment.yaml").write_text(json.dumps(TINY | {"name": "out"}) + "\n# by hand\n")
        (out / "run.json").write_text((out / "run.json").read_text().replace("done", "interrupted"))
        text = (out / "experiment.yaml").read_bytes()
        done = self.pipewright("run", "out/experiment.yaml", "--out", "out", "--resume", code=EXPERIMENT)
        self.assert_errors(done, r"^out/experiment\.yaml: is the experiment file given")
        self.assertEqual((out / "experiment.yaml").read_bytes(), text)
        self.assertTrue(file.exists())

    def test_only_regular_files_are_replaced(self):
        self.write("e.yaml", TINY)
        self.write("mine.svg", "of somebody else")
        (self.folder / "link.svg").symlink_to("mine.svg")
        os.mkfifo(self.folder / "pipe.svg")
        before = snapshot(self.folder)
        for name, kind in (("link.svg", "a symbolic link"), ("pipe.svg", "a pipe")):
            done = self.pipewright("schedule", "e.yaml", "--svg", name, code=DATA)
            self.assertRegex(done.err, rf"(?m)^{name}: is {kind}; only a regular file is replaced")
        self.assertEqual(snapshot(self.folder), before)

    def test_resume_and_overwrite_exclude_each_other(self):
        self.ours()
        before = snapshot(self.folder)
        for command in ("run", "sweep"):
            done = self.pipewright(command, "out.yaml", "--out", "out", "--resume", "--overwrite", code=EXPERIMENT)
            self.assert_errors(done, "^--resume and --overwrite exclude each other")
        self.assertEqual(snapshot(self.folder), before)

    def test_a_run_of_before_the_marker_is_taken_where_it_is_asked_for(self):
        out = self.ours()
        (out / MARKER).unlink()
        before = snapshot(out)
        done = self.pipewright("run", "out.yaml", "--out", "out", code=EXPERIMENT)
        self.assert_errors(done, r"^out: the folder holds a run already \(done\)")
        self.train(TINY, "out", "--resume")  # it is done: nothing to do
        self.assertEqual(snapshot(out), before)
        self.train(TINY, "out", "--overwrite")
        self.assertTrue((out / MARKER).exists())

    def test_resume_does_not_write_the_experiment_anew(self):
        out = self.ours()
        (out / "run.json").write_text((out / "run.json").read_text().replace("done", "interrupted"))
        before = (out / "experiment.yaml").stat()
        self.train(TINY, "out", "--resume")
        after = (out / "experiment.yaml").stat()
        self.assertEqual((after.st_ino, after.st_mtime_ns), (before.st_ino, before.st_mtime_ns))

    def test_a_folder_may_be_a_link(self):
        (self.folder / "disk").mkdir()
        (self.folder / "out").symlink_to("disk")
        (self.folder / "new").symlink_to("disk2/run")
        for name in ("out", "new"):
            self.assertEqual(self.train(TINY, name).state(), "done")
        self.assertTrue((self.folder / "disk2/run/final.safetensors").exists())


class Names(harness.EndToEnd):
    def test_names_are_one_component_of_a_path(self):
        outside = self.folder.parent / "escaped"
        for name, shown in (
            ("../../escaped", "'/'"), (str(outside), "'/'"), ("..", r"is '\.\.'"), ("", "is empty"),
            ("\x1b[31mred", r"U\+001B"), ("größe", r"U\+00F6"), ("a\nb", r"U\+000A"), (" a", "begins or ends"),
            ("x" * 101, "is 101 bytes long"),
        ):  # fmt: skip
            with self.subTest(name):
                self.write("e.yaml", changed(TINY, {"name": name}))
                done = self.pipewright("run", "e.yaml", code=EXPERIMENT)
                self.assert_errors(done, rf"^e\.yaml:\d+:\d+: name .*{shown}.*; it names a folder")
                self.assertEqual([path.name for path in self.folder.iterdir()], ["e.yaml"])
        self.assertFalse(outside.exists())

    def test_of_command_lines_bases_and_sweeps_too(self):
        self.write("base.yaml", changed(TINY, {"name": "a/b"}))
        self.write("e.yaml", "extends: base.yaml\n")
        done = self.pipewright("check", "e.yaml", code=EXPERIMENT)
        self.assert_errors(done, r"^base\.yaml:\d+:\d+: name has '/' in it")
        done = self.pipewright("check", "e.yaml", "--set", "name=../x", code=EXPERIMENT)
        self.assert_errors(done, r"^--set: name has '/' in it")
        self.write("s.yaml", changed(TINY, {"sweep": {"points": [{"label": "a=b"}, {"label": "ok", "train.seed": 2}]}}))
        done = self.pipewright("sweep", "s.yaml", code=EXPERIMENT)
        self.assert_errors(done, r"^s\.yaml:\d+:\d+: sweep\.points\[0\]\.label has '=' in it")

    def test_a_file_s_own_name_is_made_one(self):
        self.write("größe (2).yaml", changed(TINY, {"train.epochs": 0}))
        self.pipewright("run", "größe (2).yaml", "--quiet")
        self.assertEqual([path.name for path in (self.folder / "runs").iterdir()], ["gr_e _2_"])


class Waiting(harness.EndToEnd):
    def is_running(self, out):
        def look():
            try:
                return json.loads((self.folder / out / "run.json").read_text())["state"] == "running"
            except FileNotFoundError:  # not yet there, or deleted by --overwrite at this moment
                return False

        return look

    def start_run(self, out, *arguments):
        self.write("e.yaml", ENDLESS)
        process = self.start("run", "e.yaml", "--quiet", "--out", out, *arguments)
        self.wait_until(self.is_running(out), process)
        return process

    def holder(self, folder):
        """The process that has last worked there, as the marker says."""
        text = (self.folder / folder / MARKER).read_text()
        return int(re.search(r"^Last at work: pid (\d+) on host ", text, re.MULTILINE)[1])

    def wait_for_lock(self, folder):
        """Until nobody works there."""
        with open(self.folder / folder / MARKER, "r+b") as marker:
            fcntl.flock(marker, fcntl.LOCK_EX)

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Locks(Waiting):
    def taken(self, pid, of=""):
        return (
            rf"^\S+: the folder is being worked in by {of}pid {pid} on host {re.escape(socket.gethostname())} "
            r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; wait until it has ended, or give another --out$"
        )

    def check_held(self, process, *arguments):
        for way in WAYS:
            with self.subTest(way):
                done = self.pipewright("run", "e.yaml", "--out", "out", *way, *arguments, code=EXPERIMENT)
                self.assert_errors(done, self.taken(self.holder("out")))
                self.assertIsNone(process.poll())
                self.assertTrue(self.is_running("out")())

    def test_a_second_run_is_refused_and_told_who_is_there(self):
        process = self.start_run("out")
        self.assertEqual(self.holder("out"), process.pid)
        self.check_held(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, INTERRUPTED)
        # Free again, though the marker still tells who was there; and so it is after a kill.
        process = self.start_run("out", "--overwrite")
        process.kill()
        self.finish(process)
        process = self.start_run("out", "--resume")
        self.wait_until(lambda: self.holder("out") == process.pid, process)  # the killed one is "running" still
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, INTERRUPTED)

    @skips.needs("mpirun")
    def test_of_several_processes_too(self):
        process = self.start_run("out", "--set", "pipeline.execution=mpi")
        self.check_held(process, "--set", "pipeline.execution=mpi")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, INTERRUPTED)

    def test_the_runs_of_a_sweep_that_was_killed_save_their_state_and_end(self):
        self.write("e.yaml", changed(ENDLESS, {"sweep": {"grid": {"train.seed": [1, 2]}}}))
        sweep = self.start("sweep", "e.yaml", "--out", "sw", "--jobs", "1")
        self.wait_until(lambda: list((self.folder / "sw").glob("1-*/run.json")), sweep)
        run = next((self.folder / "sw").glob("1-*")).relative_to(self.folder)
        self.wait_until(self.is_running(run), sweep)
        child = self.holder(run)
        self.addCleanup(self.kill, child)
        done = self.pipewright("sweep", "e.yaml", "--out", "sw", "--resume", code=EXPERIMENT)
        self.assert_errors(done, self.taken(sweep.pid))
        done = self.pipewright("run", run / ".experiment.yaml", "--out", run, "--resume", code=EXPERIMENT)
        self.assert_errors(done, self.taken(child))
        sweep.kill()
        self.finish(sweep)
        self.wait_for_lock(run)
        self.wait_for_lock("sw")
        self.assertEqual(harness.Run(self.folder / run).state(), "interrupted")

    def test_a_killed_run_is_listed_as_interrupted_and_one_at_work_as_running(self):
        process = self.start_run("out")
        self.assertRegex(self.pipewright("list", "out").out, r"^ +out +running\b")
        process.kill()
        self.finish(process)
        self.assertRegex(self.pipewright("list", "out").out, r"^ +out +interrupted\b")
        self.assertEqual(self.pipewright("watch", "out").out, "1 run: 1 interrupted\n  out: interrupted\n")


class Checkpoints(Waiting):
    """Ctrl-C says whether --resume has something to go on with."""

    def interrupted(self, *arguments):
        process = self.start_run("out", *arguments)
        process.send_signal(signal.SIGINT)
        return self.finish(process).err

    def test_one_without_a_step_is_none(self):
        self.assertIn("--resume` begins anew, because there is no checkpoint", self.interrupted("--set", "train.checkpoint.every=1000000"))

    def test_nor_is_one_that_never_comes(self):
        self.assertIn("--resume` begins anew, because there is no checkpoint", self.interrupted("--set", "train.checkpoint.every=0"))


class CtrlC(Waiting):
    """At any moment of a sweep it is an interruption, and --resume goes on."""

    SWEEP = changed(TINY, {"train.epochs": 40, "sweep": {"grid": {"train.seed": [1, 2, 3]}}})

    def states(self):
        runs = [path for path in (self.folder / "sw").glob("*-*") if path.is_dir()]
        return {harness.Run(path).state() for path in runs if (path / "run.json").exists()}

    def interrupt(self, moment, *arguments):
        """Once when the moment has come; says whether the sweep had ended before."""
        process = self.start("sweep", "e.yaml", "--out", "sw", "--jobs", "2", *arguments)
        self.wait_until(moment, process, may_end=True)
        process.send_signal(signal.SIGINT)
        done = self.finish(process)
        if done.code == 0:
            return True
        self.assertIn(done.code, (INTERRUPTED, -signal.SIGINT), done.err)
        self.assertNotIn("failed", done.err)
        self.assertLessEqual(self.states(), {"done", "interrupted"})
        for point in (self.folder / "sw").glob("*-*/point.json"):
            self.assertNotIn("error", json.loads(point.read_text()))
        return False

    def test_when_the_first_runs_have_just_been_started(self):
        self.write("e.yaml", self.SWEEP)
        started = lambda: list((self.folder / "sw").glob("*-*/log.txt"))
        self.assertFalse(self.interrupt(started))
        self.assertIn(self.states(), (set(), {"interrupted"}))

    def test_at_random_moments(self):
        self.write("e.yaml", self.SWEEP)
        moments = random.Random("Ctrl-C")
        for _ in range(8):
            at = time.monotonic() + moments.uniform(0.3, 1.5)
            if self.interrupt(lambda: time.monotonic() > at, "--resume"):
                shutil.rmtree(self.folder / "sw")
        self.pipewright("sweep", "e.yaml", "--out", "sw", "--resume")
        self.assertEqual(self.states(), {"done"})
        whole = self.train(self.SWEEP, "whole", "--set", "train.seed=1")
        run = next((self.folder / "sw").glob("1-*"))
        self.assert_same_weights(whole, harness.Run(run))


if __name__ == "__main__":
    harness.main()
