# SPDX-License-Identifier: Apache-2.0
"""How much the resident memory of a training grows while it trains.

    PIPEWRIGHT_BINARY=build/pipewright python3 tests/attacks/memory_growth.py [STEPS [EXECUTION…]]

Trains a small model for so many mini-batches (20,000 by default) in serial, threads and mpi, with a
checkpoint after each epoch, and reads the resident memory of every process at each. Prints MiB per
1,000 mini-batches between a third and the end; exit code 1 if any process grows by 0.1 or more.

An allocator adds noise, which weighs less the longer the training is. A leak keeps its slope. So what
grows by 0.1 or more is measured again over four times as many mini-batches, and that measure counts.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import skips  # noqa: E402

BINARY = os.environ["PIPEWRIGHT_BINARY"]
LIMIT = 0.1  # MiB per 1,000 mini-batches
LONGER = 4  # times as many mini-batches, where the limit is reached
PER_EPOCH = 100
MODELS = {"mlp": {"name": "mlp"}, "cnn": {"name": "cnn", "channels": 1, "size": 8, "width": 0.25}}


def experiment(model, execution, steps):
    return {
        "name": "growth",
        "dataset": {"name": "digits"},
        "loader": {"batch_size": 8, "limit_train": 8 * PER_EPOCH, "limit_test": 8},
        "model": MODELS[model],
        "pipeline": {"stages": 2, "balance": "layers", "execution": execution},
        "scheme": {"name": "pipedream"},
        "train": {"epochs": steps // PER_EPOCH, "evaluate_every": 1000000},
    }


def descendants(pid):
    """The process and all below it."""
    found = [pid]
    for process in found:
        try:
            found += map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
        except OSError:
            pass
    return found


def resident(pid):
    """MiB that belong to a process that trains; nothing for others."""
    try:
        if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].rpartition(b"/")[2] != b"pipewright":
            return None
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def trained(run):
    try:
        return json.loads((run / "checkpoint/manifest.json").read_text())["minibatches"]
    except (OSError, ValueError):
        return 0


def growth(samples, steps):
    """By least squares over what comes after the first third, MiB per 1,000 mini-batches."""
    points = [(step, mib) for step, mib in samples if step >= steps / 3]
    if len(points) < 3:
        return float("nan")
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return 1000 * slope


def measure(model, execution, steps):
    folder = Path(tempfile.mkdtemp(prefix="pipewright-growth-"))
    try:
        (folder / "x.yaml").write_text(json.dumps(experiment(model, execution, steps)))
        process = subprocess.Popen(
            [BINARY, "run", "x.yaml", "--quiet", "--out", "x"], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        samples, last = {}, 0
        while process.poll() is None:
            time.sleep(0.01)
            step = trained(folder / "x")
            if step == last:
                continue
            last = step
            for pid in descendants(process.pid):
                mib = resident(pid)
                if mib is not None:
                    samples.setdefault(pid, []).append((step, mib))
        if process.returncode != 0:
            raise AssertionError(process.stderr.read())
        slopes = [growth(of, steps) for of in samples.values()]
        slopes = [slope for slope in slopes if slope == slope]
        last = max(of[-1][1] for of in samples.values())
        print(
            f"{model}, {execution}: {max(slopes):+.4f} MiB per 1,000 mini-batches, the most of {len(slopes)} "
            f"processes; {last:.1f} MiB at the end of {steps}",
            flush=True,
        )
        return max(slopes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def leaks(model, execution, steps):
    if measure(model, execution, steps) < LIMIT:
        return False
    print(f"{model}, {execution}: {LIMIT} or more; {LONGER} times as long, noise weighs less", flush=True)
    return measure(model, execution, LONGER * steps) >= LIMIT


def main(steps, executions):
    leaking = [leaks(model, execution, steps) for model in MODELS for execution in executions]
    return skips.exit_code(any(leaking))


if __name__ == "__main__":
    asked = sys.argv[2:] or skips.with_mpi(["serial", "threads"], "growth")
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20000, asked))
