#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The k-th allocation of a command fails, for many k: nobody crashes, hangs or calls it a bug.

    malloc.py BUILD [-n N] [--seed S] [--only NAME]…

Each command is run once to count its allocations, then N times with one of them failing, k spread
evenly in log k. A command that fails must say so in one line with exit code 3 (5 in a process of
several, 7 of a sweep), and a run that failed must go on to the same bytes with --resume. It may also
end well: libraries try again, or do without. What libraries do to the process by themselves where
malloc fails is counted apart; the evidence is the stack of the allocation, whose innermost frame must
be the library's (FOREIGN).
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import skips  # noqa: E402

SECONDS_LIMIT = 120
# Who cannot bear that an allocation fails: the library that asked for it, a function it was called
# for, and what happens.
FOREIGN = [
    (r"libtorch_cpu\.so", r"mkldnn_|convolution", r"dies of signal 11", "oneDNN uses what malloc did not give"),
    (r"lib(pmix|open-rte|open-pal|mpi|event\w*)[-.]|/mca_", r"PMPI_Init", r"lines|signal|exit code", "MPI, while it starts"),
]

SMALL = {
    "dataset": {"name": "digits"},
    "loader": {"batch_size": 16, "limit_train": 64, "limit_test": 32},
    "model": {"name": "cnn", "channels": 1, "size": 8, "width": 0.25},
    "pipeline": {"stages": 2, "balance": "layers"},
    "scheme": {"name": "pipedream"},
    "optimizer": {"name": "adam", "lr": 0.01},
    "train": {"epochs": 2, "checkpoint": {"every": 1}},
}


def with_execution(name):
    return SMALL | {"pipeline": SMALL["pipeline"] | {"execution": name}}


SWEEP = SMALL | {"sweep": {"grid": {"optimizer.lr": [0.01, 0.02]}}, "train": {"epochs": 1}}

# name: (experiment, arguments, exit codes, whether a run's folder is left that must go on)
COMMANDS = {
    "serial": (SMALL, ["run", "e.yaml", "--quiet", "--out", "out"], {3}, True),
    "threads": (with_execution("threads"), ["run", "e.yaml", "--quiet", "--out", "out"], {3}, True),
    "mpi": (with_execution("mpi"), ["run", "e.yaml", "--quiet", "--out", "out"], {3, 5}, True),
    "check": (SMALL, ["check", "e.yaml"], {3}, False),
    "sweep": (SWEEP, ["sweep", "e.yaml", "--jobs", "1", "--out", "out"], {3, 7}, False),
    "table": (SWEEP, ["table", "e.yaml", "--out", "out"], {3}, False),
    "simulate": (SMALL, ["simulate", "e.yaml", "--costs", "c.yaml"], {3}, False),
}


class Attack:
    def __init__(self, build, name):
        self.binary, self.library = build / "pipewright", build / "tests" / "attacks" / "libfailing_malloc.so"
        self.name = name
        self.experiment, self.arguments, self.codes, self.leaves_run = COMMANDS[name]
        self.folder = Path(tempfile.mkdtemp(prefix=f"pipewright-malloc-{name}-"))
        (self.folder / "e.yaml").write_text(json.dumps(self.experiment))
        (self.folder / "c.yaml").write_text("{forward: 0.1, backward: 0.2}")
        self.outcomes, self.faults = Counter(), []
        if name == "table":
            self.run(["sweep", "e.yaml", "--jobs", "2", "--out", "out"], {})
        self.total = self.count()
        self.whole = self.weights()

    def run(self, arguments, environment):
        try:
            done = subprocess.run(
                [self.binary, *arguments], cwd=self.folder, env=os.environ | environment, text=True,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_LIMIT, errors="replace",
            )
        except subprocess.TimeoutExpired as late:
            return None, "", (late.stderr or b"").decode(errors="replace")
        return done.returncode, done.stdout, done.stderr

    def environment(self, k, **more):
        rank = {"FAILING_MALLOC_RANK": "1"} if self.name == "mpi" else {}
        return {
            "LD_PRELOAD": str(self.library),
            "FAILING_MALLOC_AT": str(k),
            "FAILING_MALLOC_NAME": "pipewright",
        } | rank | more

    def clean(self):
        if self.name != "table":
            shutil.rmtree(self.folder / "out", ignore_errors=True)

    def count(self):
        self.clean()
        file = self.folder / "count"
        # a sweep's runs are processes that inherit the environment: their counts are replaced by its own
        code, _, err = self.run(self.arguments, self.environment(0, FAILING_MALLOC_COUNT=str(file)))
        assert code == 0, f"{self.name} fails by itself: {code} {err}"
        return int(file.read_text())

    def weights(self):
        final = self.folder / "out" / "final.safetensors"
        return final.read_bytes() if final.exists() else None

    def fault(self, k, what, err):
        stack = (self.folder / "trace").read_text().splitlines() if (self.folder / "trace").exists() else []
        callers = [frame for frame in stack if not re.search(r"/(libstdc\+\+|libc)\.so|failing_malloc", frame)]
        for library, function, outcome, reason in FOREIGN:
            asked = callers and re.search(library, callers[0])
            if asked and re.search(function, "\n".join(stack)) and re.search(outcome, what):
                self.outcomes[f"by a library, {what}: {reason}"] += 1
                return
        self.outcomes[what] += 1
        self.faults.append((k, what, err.strip().splitlines()[-3:], stack[:14]))

    def one(self, k):
        self.clean()
        (self.folder / "trace").unlink(missing_ok=True)
        code, _, err = self.run(self.arguments, self.environment(k, FAILING_MALLOC_TRACE=str(self.folder / "trace")))
        lines = err.strip().splitlines()
        if code is None:
            return self.fault(k, "hangs", err)
        if code < 0 or code >= 128 and code != 130:
            return self.fault(k, f"dies of signal {-code if code < 0 else code - 128}", err)
        if "Signal: Segmentation fault (11)" in err:  # MPI's report of a worker
            return self.fault(k, "a worker dies of signal 11", err)
        if "bug" in err or code == 70:
            return self.fault(k, "is called a bug", err)
        if code == 0:
            self.outcomes["ends well"] += 1
            if self.leaves_run and self.weights() != self.whole:
                self.fault(k, "other weights", err)
            return None
        if code not in self.codes:
            return self.fault(k, f"exit code {code}", err)
        if not lines or len(lines) > 1 and 7 not in self.codes:
            return self.fault(k, f"{len(lines)} lines", err)
        self.outcomes[f"exit code {code}, one line"] += 1
        if self.leaves_run:
            code, _, err = self.run([*self.arguments, "--resume"], {})
            if code != 0 or self.weights() != self.whole:
                self.fault(k, f"does not go on ({code})", err)
        return None

    def report(self):
        print(f"{self.name}: {self.total} allocations")
        for outcome, count in sorted(self.outcomes.items()):
            print(f"  {count:5} {outcome}")
        for k, what, err, stack in self.faults:
            print(f"  k = {k}: {what}")
            for line in err + stack:
                print(f"      {line[:200]}")
        sys.stdout.flush()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("-n", type=int, default=5, help="failures of each command")
    parser.add_argument("--seed", default="malloc")
    parser.add_argument("--only", action="append", choices=COMMANDS)
    given = parser.parse_args()
    faults = 0
    for name in given.only or COMMANDS:
        if name == "mpi" and not skips.has("mpirun"):
            skips.left_out(name, "mpirun")
            continue
        attack = Attack(given.build.resolve(), name)
        numbers = random.Random(f"{given.seed} {name}")
        for i in range(given.n):
            share = (i + numbers.random()) / given.n
            attack.one(max(1, round(math.exp(share * math.log(attack.total)))))
        attack.report()
        faults += len(attack.faults)
    return skips.exit_code(faults)


if __name__ == "__main__":
    sys.exit(main())
