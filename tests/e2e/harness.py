# SPDX-License-Identifier: Apache-2.0
"""Base of all end-to-end tests: a folder for each test, the program, and its results.

The program is $PIPEWRIGHT_BINARY and is started as by a user; tests read only its output and its files.
A test's folder is removed afterwards, and must have no temporary files then.
"""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import safetensors
import skips

BINARY = os.path.abspath(os.environ["PIPEWRIGHT_BINARY"])  # commands run in folders of their own
FAILING_FILES = os.environ.get("PIPEWRIGHT_FAILING_FILES", "")  # see failing_files.cpp
SOURCE_DIR = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).absolute()
DATA_DIR = SOURCE_DIR.parent / "shared" / "data"
SECONDS_LIMIT = 120  # limit for one command and for one wait; anything longer counts as hanging
os.environ.pop("PIPEWRIGHT_DATA", None)  # tests must not depend on a developer's own data

# Exit codes of the program.
FINE, EXPERIMENT, DATA, SCHEDULE, WORKER, NOT_FINITE, SWEEP, INTERRUPTED = 0, 2, 3, 4, 5, 6, 7, 130

# A small experiment with all that makes pipelines hard: batch norm, dropout, momentum.
CNN = {
    "dataset": {"name": "digits"},
    "loader": {"batch_size": 16, "limit_train": 96, "limit_test": 32},
    "model": {"name": "cnn", "channels": 1, "size": 8, "width": 0.25},
    "pipeline": {"stages": 3, "balance": "layers"},
    "scheme": {"name": "model_parallel"},
    "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9},
    "train": {"epochs": 2},
}
MLP = CNN | {"model": {"name": "mlp"}, "pipeline": {"stages": 2}, "train": {"epochs": 1}}


def changed(experiment, changes):
    """Returns a copy with dotted keys set to new values."""
    copy = json.loads(json.dumps(experiment))
    for dotted, value in changes.items():
        *sections, key = dotted.split(".")
        target = copy
        for section in sections:
            target = target.setdefault(section, {})
        target[key] = value
    return copy


class Finished:
    """A command that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        # mpirun's event library may complain when a process dies while it is being read from.
        self.lines = [line for line in err.splitlines() if not line.startswith("[warn] Epoll ")]


class Run:
    """The folder of a run."""

    def __init__(self, path):
        self.path = Path(path)

    def state(self):
        return json.loads((self.path / "run.json").read_text())["state"]

    def bytes(self, file="final.safetensors"):
        return (self.path / file).read_bytes()

    def tensors(self):
        return safetensors.read(self.path / "final.safetensors")

    def parameters(self):
        """Returns the tensors without buffers of batch norm and without auxiliary heads."""
        buffers = ("running_mean", "running_var", "num_batches_tracked")
        return {
            name: tensor
            for name, tensor in self.tensors().items()
            if not name.endswith(buffers) and not name.startswith("heads.")
        }

    def rows(self, file):
        with open(self.path / file, newline="") as table:
            return list(csv.DictReader(table))

    def names(self):
        return sorted(str(file.relative_to(self.path)) for file in self.path.rglob("*") if file.is_file())


class EndToEnd(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="pipewright-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def tearDown(self):
        self.assert_tidy()

    def assert_tidy(self):
        litter = [
            str(file.relative_to(self.folder))
            for file in self.folder.rglob("*")
            if file.name.endswith((".part", ".tmp", "~"))
        ]
        self.assertEqual(litter, [], "temporary files are left")

    def write(self, name, content):
        """Writes a file in the test's folder: text, bytes, or a value as JSON (which is YAML)."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    def start(self, *arguments, environment=None):
        """Starts the program without waiting; it is killed when the test ends. `environment` is added to ours."""
        process = subprocess.Popen(
            [BINARY, *map(str, arguments)],
            cwd=self.folder,
            env=os.environ | (environment or {}),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, happens, process=None, may_end=False):
        """Polls until happens() is true. The process, if given, must live until then, unless it may end."""
        begin = time.monotonic()
        while not happens():
            if process is not None and process.poll() is not None:
                if may_end:
                    return
                self.fail(f"it ended before: {process.stderr.read() if process.stderr else ''}")
            self.assertLess(time.monotonic() - begin, SECONDS_LIMIT, "it hangs")
            time.sleep(0.002)

    def finish(self, process):
        out, err = process.communicate(timeout=SECONDS_LIMIT)
        return Finished(process.returncode, out, err)

    def pipewright(self, *arguments, code=FINE, environment=None):
        done = self.finish(self.start(*arguments, environment=environment))
        self.assertEqual(done.code, code, f"pipewright {' '.join(map(str, arguments))}\n{done.out}{done.err}")
        return done

    def train(self, experiment, out, *arguments, code=FINE):
        """Runs an experiment, given as a value, in the folder `out`."""
        file = self.write(f"{out}.yaml", experiment)
        self.pipewright("run", file.name, "--quiet", "--out", out, *arguments, code=code)
        return Run(self.folder / out)

    def resume(self, out, *arguments, code=FINE, environment=None):
        """Resumes in the folder `out` with the experiment that train() has written beside it."""
        return self.pipewright(
            "run", f"{out}.yaml", "--out", out, "--resume", *arguments, code=code, environment=environment
        )

    def failing(self, path, call, at, kill=False):
        """Returns an environment in which the at-th such call on a path that contains `path` fails, or kills."""
        if not FAILING_FILES:
            skips.lacks("test-programs")
        return {
            "LD_PRELOAD": FAILING_FILES,
            "FAILING_FILES_PATH": path,
            "FAILING_FILES_CALL": call,
            "FAILING_FILES_AT": str(at),
        } | ({"FAILING_FILES_KILL": "1"} if kill else {})

    def killed_in_a_checkpoint(self, experiment, out, checkpoints=1):
        """A run that died with so many checkpoints behind it, in the middle of writing the next one."""
        self.write(f"{out}.yaml", experiment)
        # The first manifest says that there is none yet.
        environment = self.failing(f"{out}/checkpoint/manifest.json", "rename", checkpoints + 2, kill=True)
        self.pipewright(
            "run", f"{out}.yaml", "--quiet", "--out", out, code=-signal.SIGKILL, environment=environment
        )
        return Run(self.folder / out)

    def killed_past_a_checkpoint(self, experiment, growing):
        """Runs this file into the folder `out`, and kills it when `growing`, a file of the run, has grown since a
        checkpoint. Returns how many mini-batches that checkpoint has trained."""
        process = self.start("run", experiment, "--out", "out", "--quiet")
        manifest, growing = self.folder / "out/checkpoint/manifest.json", self.folder / "out" / growing

        def trained():
            return json.loads(manifest.read_text())["minibatches"] if manifest.exists() else 0

        self.wait_until(trained, process)
        size = growing.stat().st_size
        self.wait_until(lambda: growing.stat().st_size > size, process)
        process.kill()
        process.communicate()
        return trained()

    def assert_errors(self, finished, *patterns):
        """Expects one line on stderr for each pattern, in that order."""
        self.assertEqual(len(finished.lines), len(patterns), finished.err)
        for line, pattern in zip(finished.lines, patterns):
            self.assertRegex(line, pattern)

    def assert_same_weights(self, a, b):
        self.assertTrue(
            a.bytes() == b.bytes(),
            f"{a.path.name} and {b.path.name} differ: " f"{safetensors.difference(a.tensors(), b.tensors())}",
        )

    def assert_same_result(self, whole, run):
        """Expects the same weights, losses and metrics, to the last bit; only times may differ."""
        self.assertEqual(run.state(), "done")
        self.assert_same_weights(whole, run)
        self.assertEqual(whole.bytes("steps.csv"), run.bytes("steps.csv"))
        for a, b in zip(whole.rows("epochs.csv"), run.rows("epochs.csv"), strict=True):
            for column in ("epoch", "train_loss", "test_loss", "test_accuracy", "lr"):
                self.assertEqual(a[column], b[column], column)


main = skips.main


def plain(text):
    """Returns a pattern that matches only this text."""
    return re.escape(text)
