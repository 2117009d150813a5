# SPDX-License-Identifier: Apache-2.0
"""Interrupts trainings at random moments and takes them up under random executions, layouts and
processor counts that promise the same bits: the final weights and steps.csv must have the SHA-256 of
the training that was never stopped.

    PIPEWRIGHT_BINARY=build/pipewright PIPEWRIGHT_SOURCE_DIR=. python3 tests/attacks/resumes.py [RESUMES [SEED]]

Prints a line per training and, at the end, how many resumes there were and how many ended otherwise;
exit code 1 if any did.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness import BINARY, changed  # noqa: E402
import skips  # noqa: E402

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
BASE = {
    "dataset": {"name": "digits"},
    "loader": {"batch_size": 16, "limit_train": 160, "limit_test": 32},
    "model": {"name": "cnn", "channels": 1, "size": 8, "width": 0.25},
    "pipeline": {"stages": 2, "balance": "layers"},
    "train": {"epochs": 12},
}
EPOCHS, MINIBATCHES = 12, 10
# Each with the layouts under which its bits are the same; a synchronous scheme may be cut anywhere.
CASES = {
    "gpipe, momentum": (
        {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 2, "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9}},
        [{}, {"pipeline.stages": 3}, {"pipeline.stages": 1}, {"pipeline.balance": "parameters"}],
    ),
    "pipedream, Adam, within epochs": (
        {
            "scheme": {"name": "pipedream"},
            "optimizer": {"name": "adam", "lr": 0.002},
            "train.checkpoint": {"every": 4, "unit": "minibatch"},
        },
        [{}],
    ),
    "spectrain, replicas": (
        {"scheme": {"name": "spectrain"}, "pipeline.replicas": 2, "lr_schedule": {"name": "poly", "per": "step"}},
        [{}],
    ),
    "1F1B, 8 bits on the edges": (
        {"scheme": {"name": "one_f_one_b"}, "pipeline.microbatches": 2, "pipeline.compression": {"name": "uniform", "bits": 8}},
        [{}],
    ),
}
EVERYWHERE = [{"pipeline.recompute": "always"}, {"pipeline.recompute": "never"}, {"pipeline.offload": "always"}]


def executions():
    return skips.with_mpi(["serial", "threads"], "resumes")


def flags_of(changes):
    return [part for key, value in changes.items() for part in ("--set", f"{key}={json.dumps(value)}")]


def start(folder, *arguments):
    return subprocess.Popen(
        [BINARY, "run", *arguments, "--quiet"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )


def digests(run):
    return [hashlib.sha256((run / name).read_bytes()).hexdigest() for name in ("final.safetensors", "steps.csv")]


def trained(run):
    """Mini-batches of the newest checkpoint."""
    try:
        return json.loads((run / "checkpoint/manifest.json").read_text())["minibatches"]
    except (OSError, ValueError, KeyError):
        return 0


def interrupt(process, run, draw):
    """At a random mini-batch from here on, then a random time later. Whether it was still there."""
    until, begin = trained(run) + draw.randint(0, EPOCHS * MINIBATCHES // 2), time.monotonic()
    while process.poll() is None and trained(run) <= until and time.monotonic() - begin < 60:
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.02))
    if process.poll() is not None:
        return False
    stop = draw.choice(SIGNALS)
    if stop == signal.SIGKILL:
        os.killpg(process.pid, stop)
    else:
        process.send_signal(stop)
    process.communicate()
    return process.returncode != 0


def train_with_stops(folder, name, layouts, draw):
    """Resumes that it took."""
    run, resumes = folder / name, -1
    while True:
        layout = draw.choice(layouts) | draw.choice(EVERYWHERE) | {"pipeline.execution": draw.choice(executions())}
        arguments = [f"{name}.yaml", "--out", name, "--resume"]
        if resumes >= 0 and draw.random() < 0.3:
            arguments, layout = [name, "--resume"], {}  # as it was left
        process = start(folder, *arguments, *flags_of(layout))
        resumes += 1
        if draw.random() < 0.85 and interrupt(process, run, draw):
            continue
        _, error = process.communicate(timeout=300)
        if process.returncode != 0:
            raise AssertionError(f"{name}: exit code {process.returncode}: {error}")
        return resumes


def main(wanted, seed):
    folder = Path(tempfile.mkdtemp(prefix="pipewright-resumes-"))
    draw, done, wrong, number = random.Random(seed), 0, 0, 0
    try:
        whole = {}
        while done < wanted:
            name = list(CASES)[number % len(CASES)]
            changes, layouts = CASES[name]
            out = f"run{number}"
            (folder / f"{out}.yaml").write_text(json.dumps(changed(BASE, changes | {"name": out})))
            if name not in whole:
                error = start(folder, f"{out}.yaml", "--out", "whole").communicate()[1]
                assert (folder / "whole/final.safetensors").exists(), error
                whole[name] = digests(folder / "whole")
                shutil.rmtree(folder / "whole")
            resumes = train_with_stops(folder, out, layouts, draw)
            same = digests(folder / out) == whole[name]
            done, wrong, number = done + resumes, wrong + (not same), number + 1
            print(f"{name}: {resumes} resumes, {'the same bits' if same else 'OTHER BITS'}", flush=True)
        print(f"{done} resumes of {number} trainings (seed {seed}): {wrong} ended with other bits")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return skips.exit_code(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
