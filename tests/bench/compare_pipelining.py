# SPDX-License-Identifier: Apache-2.0
"""Throughput of `execution: mpi` against torch.distributed.pipelining, as a Markdown table.

  compare_pipelining.py --pipewright build/pipewright --python PYTHON_WITH_TORCH

Both train the same model, cut into the same stages, with the same mini-batches and micro-batches, SGD with momentum and
one thread per process. The contenders take turns, block of steps by block of steps, for several rounds; start-up and a
first block are not counted, and the fastest block of each is compared (what disturbs a block only makes it slower).
Ours is timed as the run folder says it: `seconds` of an epoch, its loading included, without evaluation or files.
The peer trains on one mini-batch that it holds. A ratio above 1: Pipewright is faster.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ENCODER = {"name": "encoder", "layers": 6, "width": 256, "heads": 4, "feed_forward": 1024, "tokens": 128}
# The cuts are balanced by time, as measured layer by layer.
CASES = {
    "vgg16_bn": {
        "model": {"name": "vgg16"}, "batch": 32,
        "balance": {2: [9, 5], 4: [7, 2, 2, 3]},
    },
    "encoder": {
        "model": {**ENCODER, "dropout": 0.1}, "batch": 16,
        "balance": {2: [3, 4], 4: [2, 2, 1, 2]},
    },
    "encoder_no_dropout": {
        "model": {**ENCODER, "dropout": 0.0}, "batch": 16,
        "balance": {2: [3, 4], 4: [2, 2, 1, 2]},
    },
    "mlp": {
        "model": {"name": "mlp", "widths": [1024] * 9 + [10]}, "batch": 64,
        "balance": {2: [4, 5], 4: [2, 2, 2, 3]},
    },
}
DEFAULT_CASES = ["vgg16_bn", "encoder", "mlp"]
SCHEDULES = ["gpipe", "one_f_one_b"]
BLOCKS = 3  # timed in a round, after one that is not


class Peer:
    """The processes of torch.distributed.pipelining: one per stage, waiting for requests."""

    def __init__(self, python, case, processes):
        self.folder = tempfile.TemporaryDirectory()
        script = Path(__file__).with_name("pipelining_peer.py")
        described = json.dumps({**case, "balance": case["balance"][processes]})
        command = [python, script, "--case", described, "--store", f"{self.folder.name}/store"]
        self.stages = []
        for rank in range(processes):
            output = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            stage = subprocess.Popen(
                [*command, "--rank", str(rank)],
                env={**ONE_THREAD, "GLOO_SOCKET_IFNAME": "lo"}, stdin=subprocess.PIPE, stdout=output, text=True,
            )
            self.stages.append(stage)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for stage in self.stages:
            stage.stdin.close()
        for stage in self.stages:
            try:
                stage.wait(timeout=20)
            except subprocess.TimeoutExpired:
                stage.kill()
        self.folder.cleanup()

    def seconds(self, schedule, microbatches, steps, warm_up):
        """Of each block of `steps` steps."""
        wanted = {
            "schedule": schedule, "microbatches": microbatches,
            "steps": steps, "warm_up": warm_up, "blocks": BLOCKS,
        }
        for stage in self.stages:
            stage.stdin.write(json.dumps(wanted) + "\n")
            stage.stdin.flush()
        answer = self.stages[0].stdout.readline()
        if not answer:
            raise RuntimeError("a process of the peer ended; see its message above")
        return json.loads(answer)


def our_seconds(pipewright, case, stages, schedule, microbatches, steps, execution="mpi"):
    """Of each epoch of `steps` steps but the first."""
    experiment = {
        "dataset": {"name": "synthetic", "train": steps * case["batch"], "test": case["batch"]},
        "loader": {"batch_size": case["batch"]},
        "model": case["model"],
        "pipeline": {
            "stages": stages, "balance": case["balance"][stages],
            "microbatches": microbatches, "execution": execution,
        },
        "scheme": {"name": schedule},
        "optimizer": {"name": "sgd", "lr": 0.001, "momentum": 0.9},
        "train": {"epochs": 1 + BLOCKS, "evaluate_every": 1 + BLOCKS, "checkpoint": {"every": 0}},
        "output": {"steps": False, "weights": False},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.yaml"
        file.write_text(json.dumps(experiment), encoding="utf-8")
        run = Path(folder) / "run"
        subprocess.run(
            [pipewright, "run", file, "--out", run],
            env=ONE_THREAD, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        with open(run / "epochs.csv", encoding="utf-8") as rows:
            return [float(row["seconds"]) for row in csv.DictReader(rows)][1:]


def compared(arguments, peer, case, processes, schedule, microbatches):
    """Milliseconds per step of every block: ours, theirs."""
    step = min(peer.seconds(schedule, microbatches, steps=1, warm_up=1))
    steps = max(2, round(arguments.seconds / step))
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        ours += our_seconds(arguments.pipewright, case, processes, schedule, microbatches, steps)
        theirs += peer.seconds(schedule, microbatches, steps, warm_up=max(1, steps // 4))
    return [1e3 * s / steps for s in ours], [1e3 * s / steps for s in theirs]


def argument_parser(description, python, cases, rounds):
    """What every comparison with a peer in Python takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipewright", required=True, type=Path, help="the program")
    parser.add_argument("--python", default=sys.executable, help=python)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=cases)
    parser.add_argument("--rounds", type=int, default=rounds, help="turns of each contender")
    parser.add_argument("--seconds", type=float, default=1.2, help="length of a block of steps, about")
    return parser


def parsed_arguments():
    parser = argument_parser(__doc__, "a Python that has torch, of the version built with", DEFAULT_CASES, rounds=2)
    parser.add_argument("--schedules", nargs="+", choices=SCHEDULES, default=SCHEDULES)
    parser.add_argument("--microbatches", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--processes", nargs="+", type=int, choices=[2, 4], default=[2, 4])
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    print("| case | schedule | M | processes | ours ms/step | theirs ms/step | ratio | ratio of medians |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.cases:
        for processes in arguments.processes:
            case = CASES[name]
            with Peer(arguments.python, case, processes) as peer:
                for schedule in arguments.schedules:
                    for microbatches in arguments.microbatches:
                        ours, theirs = compared(arguments, peer, case, processes, schedule, microbatches)
                        best = f"{min(ours):.2f} | {min(theirs):.2f} | {min(theirs) / min(ours):.2f}"
                        medians = statistics.median(theirs) / statistics.median(ours)
                        print(
                            f"| {name} | {schedule} | {microbatches} | {processes} | {best} | {medians:.2f} |",
                            flush=True,
                        )


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} ended with {error.returncode}: {error.stderr.strip()}")
