# SPDX-License-Identifier: Apache-2.0
"""Simulated against measured time of a mini-batch, as a Markdown table and the median error.

  compare_simulation.py --pipewright build/pipewright

Every model is profiled once on this machine (`pipewright profile`), every schedule simulated with that profile, and the
same experiment trained on two workers. Both go over the same mini-batches from an empty pipeline to an empty one;
measured is the `seconds` of an epoch as the run folder has it, loading included, the fastest of several epochs after
the first. Links are as the benchmark of the wire measures them here; pass others with --latency and --bandwidth.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from compare_pipelining import CASES, ONE_THREAD

# One thing varies per line: the scheme, its micro-batches, the stages (two on each worker where there are four).
SCHEDULES = {
    "gpipe": {"scheme": {"name": "gpipe"}, "microbatches": 4},
    "one_f_one_b": {"scheme": {"name": "one_f_one_b"}, "microbatches": 8},
    "pipedream": {"scheme": {"name": "pipedream"}, "microbatches": 1},
    "spectrain": {"scheme": {"name": "spectrain"}, "microbatches": 1},
    "interleaved": {"scheme": {"name": "interleaved"}, "microbatches": 4, "stages": 4},
    "zb_h1": {"scheme": {"name": "zb_h1"}, "microbatches": 4},
}
MODELS = ["mlp", "vgg16_bn", "encoder_no_dropout"]
WORKERS = 2


def experiment(case, schedule, execution, steps, epochs):
    stages = schedule.get("stages", WORKERS)
    return {
        "dataset": {"name": "synthetic", "train": steps * case["batch"], "test": case["batch"]},
        "loader": {"batch_size": case["batch"]},
        "model": case["model"],
        "pipeline": {
            "stages": stages, "balance": case["balance"][stages],
            "microbatches": schedule["microbatches"], "execution": execution,
        },
        "scheme": schedule["scheme"],
        "optimizer": {"name": "sgd", "lr": 0.001, "momentum": 0.9},
        "train": {"epochs": epochs, "evaluate_every": epochs, "checkpoint": {"every": 0}},
        "output": {"steps": False, "weights": False},
    }


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, Path(folder)
        self.profiles = {}
        self.hardware = self.write("hardware.yaml", {
            "name": "this machine",
            "devices": {"count": WORKERS},
            "within": {"latency_us": arguments.latency, "bandwidth_gb_per_s": arguments.bandwidth},
        })

    def write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def pipewright(self, *command):
        done = subprocess.run(
            [self.arguments.pipewright, *map(str, command)], cwd=self.folder, env=ONE_THREAD,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        if done.returncode != 0:
            raise SystemExit(f"pipewright {command[0]}: {done.stderr}")

    def profile(self, model, file, microbatch):
        """Layers' times depend on the samples of a micro-batch and on nothing else of the schedule."""
        path = self.folder / f"{model}-{microbatch}.profile.yaml"
        if path not in self.profiles:
            self.pipewright("profile", file, "--device", "cpu", "--out", path, "--seconds", self.arguments.profile_seconds)
            self.profiles[path] = True
        return path

    def simulated(self, file, profile, steps):
        result = self.folder / "simulation.json"
        self.pipewright("simulate", file, "--profile-file", profile, "--hardware", self.hardware, "--minibatches", steps,
                        "--json", result)
        return json.loads(result.read_text())["makespan"]

    def measured(self, file):
        self.pipewright("run", file, "--out", "run", "--overwrite", "--quiet")
        with open(self.folder / "run/epochs.csv", encoding="utf-8") as rows:
            return [float(row["seconds"]) for row in csv.DictReader(rows)][1:]

    def compared(self, model, name, execution):
        """Seconds of an epoch: simulated, measured."""
        case, schedule = CASES[model], SCHEDULES[name]
        arguments = self.arguments
        file = self.write("x.yaml", experiment(case, schedule, execution, arguments.steps, 1 + arguments.epochs))
        profile = self.profile(model, file, case["batch"] // schedule["microbatches"])
        return self.simulated(file, profile, arguments.steps), min(self.measured(file))


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipewright", required=True, type=lambda path: Path(path).resolve(), help="the program")
    parser.add_argument("--models", nargs="+", choices=CASES, default=MODELS)
    parser.add_argument("--schedules", nargs="+", choices=SCHEDULES, default=list(SCHEDULES))
    parser.add_argument("--executions", nargs="+", choices=["threads", "mpi"], default=["threads", "mpi"])
    parser.add_argument("--steps", type=int, default=8, help="mini-batches of an epoch")
    parser.add_argument("--epochs", type=int, default=4, help="measured, after a first that is not")
    parser.add_argument("--profile-seconds", type=int, default=20)
    parser.add_argument("--latency", type=float, default=6, help="of a message, in µs")
    parser.add_argument("--bandwidth", type=float, default=5, help="of a link, in GB/s")
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    errors = []
    print("| model | schedule | execution | simulated ms | measured ms | error |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        for model in arguments.models:
            for schedule in arguments.schedules:
                for execution in arguments.executions:
                    simulated, measured = bench.compared(model, schedule, execution)
                    error = simulated / measured - 1
                    errors.append(abs(error))
                    times = f"{1e3 * simulated / arguments.steps:.1f} | {1e3 * measured / arguments.steps:.1f}"
                    print(f"| {model} | {schedule} | {execution} | {times} | {100 * error:+.1f} % |", flush=True)
    print(f"\nmedian error {100 * statistics.median(errors):.1f} % over {len(errors)} combinations")


if __name__ == "__main__":
    main()
