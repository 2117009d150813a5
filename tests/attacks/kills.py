# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments: of runs of every execution, of two in one folder, of a sweep's parent.

After every kill each file with a final name can be read; --resume, itself killed in every other chain, ends
with the bits of the run that nobody killed.

    PIPEWRIGHT_BINARY=build/pipewright PIPEWRIGHT_SOURCE_DIR=. python3 -B tests/attacks/kills.py 200 [SEED]
"""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import harness  # noqa: E402
import safetensors  # noqa: E402
import skips  # noqa: E402
from harness import BINARY, CNN, changed  # noqa: E402

# Ten mini-batches with a checkpoint after each, in which most of the time is spent.
EXPERIMENT = changed(
    CNN,
    {
        "pipeline": {"stages": 2},
        "scheme": {"name": "pipedream"},
        "optimizer": {"name": "adam", "lr": 0.002},
        "loader.limit_train": 80,
        "train.checkpoint": {"every": 1, "unit": "minibatch"},
    },
)
SWEEP = changed(EXPERIMENT, {"sweep": {"grid": {"train.seed": [1, 2]}}})
EXECUTIONS = skips.with_mpi(["serial", "threads"], "kills")
STATES = {"running", "done", "interrupted", "failed"}
PATIENCE = 300  # seconds for anything to end, on a busy machine


class Broken(Exception):
    """What may never happen."""


def expect(condition, *what):
    if not condition:
        raise Broken(" ".join(map(str, what)))


def descendants(pid):
    """The process and all that it has started, directly or not."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


class Attack:
    def __init__(self, folder, seed):
        self.folder = folder
        self.random = random.Random(seed)
        self.kills = Counter()
        self.outcomes = Counter()
        self.chains = 0
        for name, experiment in (("run", EXPERIMENT), ("sweep", SWEEP)):
            (folder / f"{name}.yaml").write_text(json.dumps(experiment))
        begin = time.monotonic()
        self.must_end(self.start("run", "run.yaml", "--out", "whole1"))
        self.seconds = time.monotonic() - begin
        self.must_end(self.start("run", "run.yaml", "--out", "whole2", "--set", "train.seed=2"))

    def start(self, *arguments):
        return subprocess.Popen(
            [BINARY, *map(str, arguments)], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def end(self, process):
        err = process.communicate(timeout=PATIENCE)[1]
        return process.returncode, err

    def must_end(self, process):
        code, err = self.end(process)
        expect(code == 0, process.args, "ends with", code, err)

    def sleep(self, seconds):
        """A moment in the life of a program that takes about so long."""
        time.sleep(self.random.uniform(0.0, 1.2 * seconds))

    def wait_until_free(self, out):
        """What a killed process has started may live on for a moment; never for ever."""
        marker = self.folder / out / ".pipewright"
        if not marker.exists():
            return
        begin = time.monotonic()
        with open(marker, "r+b") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    expect(time.monotonic() - begin < PATIENCE, out, "is held for ever")
                    time.sleep(0.01)

    def check_readable(self, out):
        """Whatever stands under a final name is whole."""
        for path in (self.folder / out).rglob("*"):
            if path.suffix == ".json":
                value = json.loads(path.read_text())
                expect(path.name != "run.json" or value["state"] in STATES, path, value)
            elif path.suffix == ".safetensors":
                safetensors.read(path)
            elif path.suffix == ".csv" and path.parent.name == "checkpoint":
                self.check_log(path)
            elif path.suffix == ".csv":
                expect(path.read_bytes().endswith(b"\n"), path, "is cut")

    def check_log(self, path):
        """A log grows; the rows that the manifest counts are whole, and only those after them may be cut by a kill."""
        manifest = path.with_name("manifest.json")
        parts = json.loads(manifest.read_text()).values() if manifest.exists() else ()
        promised = sum(part["bytes"] for part in parts if isinstance(part, dict) and part.get("name") == path.name)
        rows = path.read_bytes()[:promised]
        expect(len(rows) == promised and (not rows or rows.endswith(b"\n")), path, "is cut")

    def check_same(self, whole, out):
        whole, run = harness.Run(self.folder / whole), harness.Run(self.folder / out)
        expect(run.state() == "done", out, run.state())
        for file in ("final.safetensors", "steps.csv"):
            expect(whole.bytes(file) == run.bytes(file), out, file, "differs")
        parts = [str(path) for path in run.path.rglob("*.part")]
        expect(not parts, parts)

    def kill(self, process, kind):
        if process.poll() is None:
            process.kill()
            self.kills[kind] += 1

    def kill_one_of(self, process, kind):
        """Any process of the run: the one we have started, mpirun or a worker."""
        victims = descendants(process.pid)
        if process.poll() is None and len(victims) > 1 and self.random.random() < 0.7:
            try:
                os.kill(self.random.choice(victims), signal.SIGKILL)
                self.kills[kind] += 1
                return
            except ProcessLookupError:
                pass
        self.kill(process, kind)

    def resumed(self, out):
        return ("run", "run.yaml", "--out", out, "--resume", "--set", f"pipeline.execution={self.execution}")

    def run_alone(self, out):
        execution = self.execution
        process = self.start(*self.resumed(out))
        self.sleep(self.seconds * (2 if execution == "mpi" else 1))
        self.kill_one_of(process, execution)
        code, err = self.end(process)
        self.outcomes[code] += 1
        # Workers whose mpirun was killed are told to stop, and save their state as after Ctrl-C.
        expect(code in (0, -9) or (execution == "mpi" and code in (3, 5, 130)), execution, code, err)

    def run_twice(self, out):
        both = [self.start(*self.resumed(out)) for _ in range(2)]
        for process in self.random.sample(both, self.random.choice([1, 2])):
            self.sleep(self.seconds / 2)
            self.kill(process, "two at once")
        for process in both:
            code, err = self.end(process)
            self.outcomes[code] += 1
            refused = code == 2 and ("is being worked in by " in err)
            expect(code in (0, -9) or refused, code, err)

    def run_sweep(self, out):
        process = self.start("sweep", "sweep.yaml", "--out", out, "--jobs", "2", "--resume")
        self.sleep(1.5 * self.seconds)
        self.kill(process, "sweep")
        code, err = self.end(process)
        self.outcomes[code] += 1
        expect(code in (0, -9), code, err)
        code, err = self.end(self.start("sweep", "sweep.yaml", "--out", out, "--jobs", "2", "--resume"))
        self.outcomes[f"second sweep {code}"] += 1
        expect(code == 0 or (code == 2 and "is being worked in by" in err), code, err)

    def chain(self, kind, out):
        """Killed once or more, then left alone to the end."""
        self.chains += 1
        self.execution = self.random.choice(EXECUTIONS if kind == "alone" else EXECUTIONS[:2])
        for _ in range(self.random.choice([1, 1, 2, 3])):
            {"alone": self.run_alone, "twice": self.run_twice, "sweep": self.run_sweep}[kind](out)
            self.wait_until_free(out)
            if kind == "sweep":
                for run in (self.folder / out).glob("*-*"):
                    self.wait_until_free(run)
            self.check_readable(out)
        if kind == "sweep":
            self.must_end(self.start("sweep", "sweep.yaml", "--out", out, "--resume"))
            for seed in (1, 2):
                run = next((self.folder / out).glob(f"{seed}-*"))
                self.check_same(f"whole{seed}", run.relative_to(self.folder))
        else:
            self.must_end(self.start(*self.resumed(out)))
            self.check_same("whole1", out)
        shutil.rmtree(self.folder / out)

    def attack(self, kills):
        kinds = ["alone", "alone", "alone", "twice", "sweep"]
        while self.kills.total() < kills:
            self.chain(kinds[self.chains % len(kinds)], f"chain{self.chains}")
            if self.chains % 10 == 0:
                self.report()

    def report(self):
        kills = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kills.items()))
        print(f"{self.kills.total()} kills in {self.chains} chains ({kills}); exit codes {dict(self.outcomes)}", flush=True)


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = sys.argv[2] if len(sys.argv) > 2 else "kills"
    folder = Path(tempfile.mkdtemp(prefix="pipewright-kills-"))
    attack = Attack(folder, seed)
    try:
        attack.attack(kills)
    except Broken as broken:
        attack.report()
        print(f"BROKEN after that, see {folder}: {broken}")
        return 1
    attack.report()
    shutil.rmtree(folder)
    return skips.exit_code(False)


if __name__ == "__main__":
    sys.exit(main())
