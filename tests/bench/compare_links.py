# SPDX-License-Identifier: Apache-2.0
"""Simulated against measured time of a mini-batch over slow links between hosts, as a Markdown table.

  compare_links.py --pipewright build/pipewright

Root makes four hosts on this machine (tests/e2e/hosts.py), each with a link of its own rate, both ways. A model is
profiled once on this machine; each scheme is simulated with the profile and with hardware that has such links, and trained
by processes on the hosts. Messages of the pipelines are 8 MiB, or 2 MiB for GPipe's four micro-batches, and the gradients
of data parallelism 16 MiB, so that links take most of the time. Measured are the `seconds` of an epoch: the median, the
lowest and the highest of several after the first.
"""

import argparse
import contextlib
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / folder) for folder in (".", "e2e")]

import hosts

PAYLOAD = 1448 / 1514  # of an Ethernet frame with TCP's time stamps
WIDE_BATCH = {"model": {"name": "mlp", "widths": [64, 64, 64, 64, 10]}, "batch": 32768}
PIPELINE = {"stages": 4, "balance": [1, 1, 1, 1], "microbatches": 1}
SCHEMES = {
    "gpipe": {**WIDE_BATCH, "scheme": {"name": "gpipe"}, "pipeline": {**PIPELINE, "microbatches": 4}},
    "pipedream": {**WIDE_BATCH, "scheme": {"name": "pipedream"}, "pipeline": PIPELINE},
    "spectrain 2": {**WIDE_BATCH, "scheme": {"name": "spectrain", "version": 2}, "pipeline": PIPELINE},
    "data_parallel": {
        "model": {"name": "mlp", "widths": [2048, 2048, 10]}, "batch": 64, "scheme": {"name": "data_parallel"},
        "pipeline": {"stages": 1, "replicas": 4},
    },
}  # fmt: skip


class Place:
    """What hosts.py wants of a test."""

    def __init__(self, folder, stack):
        self.folder = Path(folder)
        self.addCleanup = stack.callback


def experiment(case, steps, epochs):
    return {
        "dataset": {"name": "synthetic", "train": steps * case["batch"], "test": case["batch"], "distinct": case["batch"]},
        "loader": {"batch_size": case["batch"]},
        "model": case["model"],
        "pipeline": {**case["pipeline"], "execution": "mpi"},
        "scheme": case["scheme"],
        "optimizer": {"name": "sgd", "lr": 0.001, "momentum": 0.9},
        "train": {"epochs": epochs, "evaluate_every": epochs, "checkpoint": {"every": 0}},
        "output": {"steps": False, "weights": False},
    }


def hardware(megabits, latency):
    return {
        "hosts": 4,
        "between": {"latency_us": latency, "bandwidth_gb_per_s": megabits / 8000 * PAYLOAD},
    }


def run(folder, *words):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"{words}: {done.stdout}{done.stderr}")


def compared(arguments, folder, cluster, megabits, name):
    """Seconds of an epoch: simulated, and measured in each of several."""
    case, program = SCHEMES[name], arguments.pipewright
    file = folder / "x.yaml"
    file.write_text(json.dumps(experiment(case, arguments.steps, 1 + arguments.epochs)))
    (folder / "links.yaml").write_text(json.dumps(hardware(megabits, arguments.latency)))
    profile = folder / f"{name.split()[0]}.profile.yaml"
    if not profile.exists():
        run(folder, program, "profile", file, "--device", "cpu", "--out", profile, "--seconds", arguments.profile_seconds)
    run(folder, program, "simulate", file, "--profile-file", profile, "--hardware", "links.yaml", "--minibatches", arguments.steps,
        "--json", "simulated.json")  # fmt: skip
    run(folder, *cluster.ssh("a", cluster.mpirun(program, "run", file, "--out", "run", "--overwrite", "--quiet")))
    with open(folder / "run/epochs.csv", encoding="utf-8") as rows:
        measured = [float(row["seconds"]) for row in csv.DictReader(rows)][1:]
    return json.loads((folder / "simulated.json").read_text())["makespan"], measured


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipewright", required=True, type=lambda path: Path(path).resolve(), help="the program")
    parser.add_argument("--schemes", nargs="+", choices=SCHEMES, default=list(SCHEMES))
    parser.add_argument("--megabits", nargs="+", type=int, default=[1000, 200], help="a second, of each host's link")
    parser.add_argument("--steps", type=int, default=8, help="mini-batches of an epoch")
    parser.add_argument("--epochs", type=int, default=5, help="measured, after a first that is not")
    parser.add_argument("--profile-seconds", type=int, default=20)
    parser.add_argument("--latency", type=float, default=50, help="of a message, in µs")
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    print("| link | scheme | simulated ms | measured ms (lowest – highest) | error | load |")
    print("|---|---|---|---|---|---|", flush=True)
    for megabits in arguments.megabits:
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            cluster = hosts.Hosts(Place(folder, stack), 4, f"{megabits}mbit")
            for name in arguments.schemes:
                simulated, measured = compared(arguments, Path(folder), cluster, megabits, name)
                low, median, high = (1e3 * f(measured) / arguments.steps for f in (min, statistics.median, max))
                simulated *= 1e3 / arguments.steps
                print(f"| {megabits} Mb/s | {name} | {simulated:.0f} | {median:.0f} ({low:.0f} – {high:.0f}) | "
                      f"{100 * (simulated / median - 1):+.1f} % | {os.getloadavg()[0]:.0f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
