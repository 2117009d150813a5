# SPDX-License-Identifier: Apache-2.0
"""Files that earlier versions left are read, and mean what they meant. `formats/VERSION` has what that version's program
wrote on its own; a later version is added beside it and none is changed."""

import shutil
from pathlib import Path

import harness
from harness import EndToEnd, Run

FORMATS = Path(__file__).parent / "formats"
# Processors add up in other orders. That moves a weight by some units of its last place (2e-16), and 440 further steps of
# a training that is stable add as many such moves at most: 1e-13. The shortest difference of another training is 1e-4.
ROUNDING = 1e-11


class Formats(EndToEnd):
    def versions(self):
        for kept in sorted(FORMATS.iterdir()):
            shutil.copytree(kept, self.folder, dirs_exist_ok=True)
            yield kept

    def test_tables_and_claims_are_those_of_the_version_that_trained(self):
        for kept in self.versions():
            table = (kept / "table.txt").read_text()
            self.assertEqual(self.pipewright("table", "study.yaml").out, table)
            self.assertEqual(self.pipewright("table", "study.yaml", "--results", "rows.csv", "--out", "none").out, table)

    def test_a_sweep_is_done_and_is_shown_by_every_command(self):
        for _ in self.versions():
            self.assertIn("6 of 6 runs are done already", self.pipewright("sweep", "study.yaml", "--resume").err)
            for command, file in (("report", "page.html"), ("export", "rows.csv"), ("plot", "plot.svg")):
                self.pipewright(command, "study.yaml", "--output", file)
            runs = [f"runs/study/{run.name}" for run in sorted((self.folder / "runs/study").glob("pipedream-*"))]
            self.assertIn("train.seed", self.pipewright("compare", *runs[:2]).out)

    def test_a_training_is_resumed_and_ends_with_the_weights_of_a_whole_one(self):
        for kept in self.versions():
            self.pipewright("run", "runs/long", "--resume", "--quiet")
            self.pipewright("run", "long.yaml", "--out", "whole", "--quiet")
            resumed, whole = Run(self.folder / "runs/long"), Run(self.folder / "whole")
            first = [row["train_loss"] for row in Run(kept / "runs/long").rows("epochs.csv")]
            self.assertEqual([row["train_loss"] for row in resumed.rows("epochs.csv")][: len(first)], first)
            self.assertEqual(len(resumed.rows("epochs.csv")), 12)
            self.assertLess(len(first), 12)
            for name, tensor in whole.tensors().items():
                for a, b in zip(harness.safetensors.values(tensor), harness.safetensors.values(resumed.tensors()[name]), strict=True):
                    self.assertAlmostEqual(a, b, delta=ROUNDING, msg=name)

    def test_a_schedule_and_a_profile_are_read(self):
        for kept in self.versions():
            self.pipewright("schedule", "long.yaml", "--minibatches", "44", "--csv", "again.csv")
            self.assertEqual((self.folder / "again.csv").read_text(), (kept / "schedule.csv").read_text())
            self.pipewright("check", "long.yaml", "--set", "scheme={name: csv_schedule, file: schedule.csv}")
            self.pipewright("simulate", "long.yaml", "--profile-file", "layers.yaml")


if __name__ == "__main__":
    harness.main()
