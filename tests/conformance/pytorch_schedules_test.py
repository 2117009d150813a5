# SPDX-License-Identifier: Apache-2.0
"""Orders written with `--pytorch-csv`, and one that `synthesize` found, as PyTorch's pipeline schedules take them.

PyTorch reads the cells, checks that each stage has every pass in order, adds sends and receives, and runs the whole dry,
which would end in an error at a deadlock. Its dry run knows no forward beside a backward, so these run in turn there.
"""

import csv
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from torch.distributed.pipelining.schedules import (
    _Action,
    _add_send_recv,
    _format_pipeline_order,
    _simulate_comms_compute,
    _validate_schedule,
)

BINARY = os.environ["PIPEWRIGHT_BINARY"]
WORKERS, MICROBATCHES = 4, 8
MODEL = "model: {name: mlp, widths: [4, 4, 4, 4, 4, 4, 4, 4, 4]}\n"
SCHEMES = {"gpipe": 4, "one_f_one_b": 4, "interleaved": 8, "zb_h1": 4, "zb_v": 8, "dualpipe_v": 8}  # with their stages


class PyTorchSchedules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def command(self, *arguments):
        done = subprocess.run([BINARY, *arguments], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def experiment(self, scheme, stages):
        self.folder.joinpath("experiment.yaml").write_text(
            f"{MODEL}scheme: {scheme}\npipeline: {{stages: {stages}, microbatches: {MICROBATCHES}}}\n", encoding="utf-8")

    def written(self):
        """The actions of each worker in the file, as PyTorch's own reader makes them of its cells."""
        self.command("schedule", "experiment.yaml", "--pytorch-csv", "order.csv")
        with open(self.folder / "order.csv", newline="", encoding="utf-8") as file:
            return {rank: [_Action.from_str(cell) for cell in row] for rank, row in enumerate(csv.reader(file))}

    def taken(self, actions, stages):
        """Fails where PyTorch refuses the order."""
        rank_of = _validate_schedule(actions, WORKERS, stages, MICROBATCHES)
        computed = {rank: [each for each in row if each is not None] for rank, row in actions.items()}
        whole = _add_send_recv(computed, lambda stage: rank_of[stage], stages)
        whole = {rank: [part for each in row for part in each.sub_actions or [each]] for rank, row in whole.items()}
        steps = _simulate_comms_compute(whole, lambda stage: rank_of[stage], stages)
        self.assertTrue(_format_pipeline_order(steps))
        self.assertEqual(sum(len(row) for row in whole.values()),
                         sum(sum(each is not None for each in row) for row in steps.values()))

    def test_orders_of_schemes(self):
        for scheme, stages in SCHEMES.items():
            with self.subTest(scheme):
                self.experiment(f"{{name: {scheme}}}", stages)
                self.taken(self.written(), stages)

    def test_an_order_that_synthesize_found(self):
        self.experiment("{name: gpipe}", 4)
        self.folder.joinpath("costs.yaml").write_text("forward: [3, 5, 2, 4]\n", encoding="utf-8")
        self.command("synthesize", "experiment.yaml", "--costs", "costs.yaml", "--live", "4", "--csv", "found.csv")
        self.experiment("{name: csv_schedule, file: found.csv}", 4)
        self.taken(self.written(), 4)

    def test_an_order_with_a_pass_too_few_is_refused(self):
        self.experiment("{name: one_f_one_b}", 4)
        actions = self.written()
        actions[3] = actions[3][:-1]
        with self.assertRaises(AssertionError):
            self.taken(actions, 4)


if __name__ == "__main__":
    unittest.main()
