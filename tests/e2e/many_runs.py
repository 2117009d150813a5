# SPDX-License-Identifier: Apache-2.0
"""A sweep's folder with many finished runs: one is trained, the others are copies of it in their own names.

Measures, when it is started by itself, what looking at such a folder costs:
  PIPEWRIGHT_BINARY=build/pipewright python3 tests/e2e/many_runs.py 10000
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = os.environ["PIPEWRIGHT_BINARY"]
RATES = (0.05, 0.1, 0.15, 0.2)
SWEEP = {
    "name": "many",
    "dataset": {"name": "digits"},
    "loader": {"batch_size": 16, "limit_train": 96, "limit_test": 32},
    "model": {"name": "mlp"},
    "pipeline": {"stages": 2},
    "scheme": {"name": "pipedream"},
    "train": {"epochs": 2},
    "table": {"rows": "optimizer.lr"},
}


def pipewright(folder, *arguments):
    """Runs the program there. What it printed, processor seconds, largest resident set in bytes, seconds."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [BINARY, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if process.returncode != 0:
            raise AssertionError(f"exit code {process.returncode} of {arguments}:\n{err.read()}")
        return out.read(), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, time.monotonic() - begin


def make(folder, runs):
    """many.yaml and its finished runs in `sw`: seeds by learning rates."""
    experiment = SWEEP | {
        "sweep": {"grid": {"optimizer.lr": RATES, "train.seed": list(range(1, runs // len(RATES) + 1))}}
    }
    (folder / "many.yaml").write_text(json.dumps(experiment))
    only = ("--set", "sweep.grid.train.seed=[1]", "--set", f"sweep.grid.optimizer.lr=[{RATES[0]}]")
    pipewright(folder, "sweep", "many.yaml", *only, "--out", "one")
    trained = next(path.parent for path in (folder / "one").glob("*/run.json"))
    # Planning writes which run belongs where, as it would find out for a sweep.
    pipewright(folder, "sweep", "many.yaml", "--out", "sw", "--prune")
    with sqlite3.connect(folder / "sw/results.sqlite") as planned:
        rows = planned.execute("SELECT folder, label, varied, digest FROM runs").fetchall()
    text = (trained / "experiment.yaml").read_text()
    state = json.loads((trained / "run.json").read_text())
    for name, label, varied, digest in rows:
        values = json.loads(varied)
        run = folder / "sw" / name
        run.mkdir()
        for file in (".pipewright", "epochs.csv", "steps.csv", "traffic.csv", "log.txt"):
            if (trained / file).exists():
                shutil.copy(trained / file, run)
        resolved = text.replace("\n  seed: 1\n", f"\n  seed: {values['train.seed']}\n")
        resolved = resolved.replace(f"\n  lr: {RATES[0]}\n", f"\n  lr: {values['optimizer.lr']}\n")
        (run / "experiment.yaml").write_text(resolved)
        (run / "run.json").write_text(
            json.dumps(state | {"digest": digest, "seed": values["train.seed"]}, separators=(",", ":"))
        )
        (run / "point.json").write_text(json.dumps({"label": label, "varied": values}))
    return len(rows)


def main(runs):
    folder = Path(tempfile.mkdtemp(prefix="pipewright-many-"))
    try:
        print(f"{make(folder, runs)} finished runs")
        for command in (("table",), ("sweep", "--resume"), ("sweep", "--prune"), ("check",)):
            name, *flags = command
            where = () if name == "check" else ("--out", "sw")
            _, processor, memory, wall = pipewright(folder, name, "many.yaml", *where, *flags)
            used = f"{processor:6.2f} s of processor time, {wall:6.2f} s, {memory >> 20} MiB"
            print(f"{' '.join(command):15} {used}")
        print(f"results.sqlite: {(folder / 'sw/results.sqlite').stat().st_size / 1e6:.1f} MB")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]))
