# SPDX-License-Identifier: Apache-2.0
"""Schedules that `synthesize` finds beside those that OR-tools' CP-SAT proves to be the fastest.

The solver minimises the longest time of a worker from its first pass of a mini-batch to its last, with times
that are whole numbers. For given orders that is the pace of the pipeline, rounded up to a whole number. So the
fastest schedule is more than the solver's optimum − 1, and at most the optimum. The pipelines are so small that
`synthesize` looks at all orders where nothing simpler proves the optimum, so its bound is as near.
"""

import json
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from ortools.sat.python import cp_model

BINARY = os.environ["PIPEWRIGHT_BINARY"]
ROUNDING = 1e-9  # of sums of some hundred seconds


def proved_optimum(costs, microbatches, live):
    """The least possible longest span. costs: (forward, input half, weight half) of each stage."""
    stages = len(costs)
    horizon = microbatches * sum(map(sum, costs))
    model = cp_model.CpModel()
    span = model.new_int_var(0, horizon, "span")
    begins = {}
    for stage, seconds in enumerate(costs):
        intervals = []
        for part, length in enumerate(seconds):
            for i in range(microbatches):
                begin = model.new_int_var(0, horizon, "")
                begins[stage, part, i] = begin
                intervals.append(model.new_interval_var(begin, length, begin + length, ""))
                if i > 0:
                    model.add(begin >= begins[stage, part, i - 1] + length)
        model.add_no_overlap(intervals)
    for (stage, part, i), begin in begins.items():
        ended = lambda s, p: begins[s, p, i] + costs[s][p]
        if part > 0:
            model.add(begin >= ended(stage, part - 1))
        if part == 0 and stage > 0:
            model.add(begin >= ended(stage - 1, 0))
        if part == 1 and stage + 1 < stages:
            model.add(begin >= ended(stage + 1, 1))
        if part == 0 and i >= live:
            model.add(begin >= begins[stage, 2, i - live] + costs[stage][2])
        if part == 2:
            model.add(span >= begin + costs[stage][2] - begins[stage, 0, 0])
    model.minimize(span)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 200
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


def synthesized(costs, microbatches, live, tries):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        forward, half, weight = ([c[i] for c in costs] for i in range(3))
        table = {"forward": forward, "backward_input": half, "backward_weight": weight,
                 "backward": [a + b for a, b in zip(half, weight)]}
        (folder / "costs.yaml").write_text(json.dumps(table))
        experiment = {"model": {"name": "mlp", "widths": [64] * len(costs) + [10]},
                      "pipeline": {"stages": len(costs), "microbatches": microbatches}}
        (folder / "experiment.yaml").write_text(json.dumps(experiment))
        subprocess.run([BINARY, "synthesize", "experiment.yaml", "--costs", "costs.yaml", "--live", str(live),
                        "--tries", str(tries), "--within", "500s", "--json", "found.json"],
                       cwd=folder, check=True, capture_output=True, text=True)
        return json.loads((folder / "found.json").read_text())


class Synthesis(unittest.TestCase):
    def compare(self, costs, microbatches, live, tries=200000):
        theirs = proved_optimum(costs, microbatches, live)
        ours = synthesized(costs, microbatches, live, tries)
        case = f"{costs}, {microbatches} micro-batches, {live} live: {ours}"
        self.assertLessEqual(ours["bound"], ours["seconds"] * (1 + ROUNDING), case)
        self.assertGreater(ours["seconds"], theirs - 1, case)
        self.assertLessEqual(ours["seconds"], theirs * (1 + ROUNDING), case)
        self.assertGreater(ours["bound"], theirs - 1, f"the bound proves too little: {case}")

    def test_equal_stages(self):
        for stages, microbatches, live in ((4, 8, 2), (4, 8, 4), (4, 8, 6), (4, 8, 7), (3, 4, 3), (3, 6, 1)):
            self.compare([(1, 1, 1)] * stages, microbatches, live)

    def test_unequal_passes(self):
        self.compare([(10, 12, 8)] * 4, 8, 4)

    def test_random_stages(self):
        numbers = random.Random(1)
        for _ in range(8):
            stages = numbers.randint(2, 3)
            costs = [tuple(numbers.randint(1, 6) for _ in range(3)) for _ in range(stages)]
            self.compare(costs, numbers.randint(3, 5), numbers.randint(1, 4))


if __name__ == "__main__":
    unittest.main()
