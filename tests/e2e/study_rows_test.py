# SPDX-License-Identifier: Apache-2.0
"""Committed rows of the study: a run that begins anew has the losses of the stored run, to the last digit.

Of each task one run is begun, which is not the reference's, and stopped after its first epoch. Bits depend on the
kernels that LibTorch chooses, so a row is compared only on a processor with the same instruction set.
"""

import csv
import json
import signal

import harness
import skips
from harness import DATA_DIR, SOURCE_DIR


def csv_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class StudyRows(harness.EndToEnd):
    def instruction_set(self):
        """As a run of ours records it."""
        return json.loads((self.train(harness.MLP, "any").path / "run.json").read_text())["instruction_set"]

    def first_loss(self, task, row):
        """Begins the run of that row and returns the loss of its first epoch."""
        point = f"{row['label']} stages {row['pipeline.stages']} seed {row['train.seed']}"
        out = f"task-{task['task']}"
        process = self.start("run", SOURCE_DIR / task["file"], "--profile", task["profile"], "--point", point,
                             "--set", "train.checkpoint.every=1", "--out", out, "--quiet",  # it writes epochs.csv, too
                             environment={"PIPEWRIGHT_DATA": str(DATA_DIR), "OMP_NUM_THREADS": "1"})
        epochs = self.folder / out / "epochs.csv"
        self.wait_until(lambda: epochs.exists() and csv_rows(epochs), process)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        return csv_rows(epochs)[0]["train_loss"]

    def test_the_first_epoch_of_a_run_of_each_task_has_the_stored_loss(self):
        if not DATA_DIR.is_dir():
            skips.lacks("real-data", f"there is no folder {DATA_DIR}")
        here, compared = self.instruction_set(), 0
        for task in csv_rows(SOURCE_DIR / "docs/study/tasks.csv"):
            file = SOURCE_DIR / task["rows"]
            rows = csv_rows(file) if file.exists() else []
            rows = [row for row in rows if row["state"] == "done" and row["label"] != task["reference"]]
            if not rows or rows[0]["instruction_set"] != here:
                continue
            with self.subTest(task=task["task"], row=rows[0]["label"]):
                self.assertEqual(self.first_loss(task, rows[0]), rows[0]["each.train_loss"].split()[0])
            compared += 1
        if compared == 0:
            skips.lacks("processor-of-rows", f"no row of experiments/results was made with {here}")


if __name__ == "__main__":
    harness.main()
