# SPDX-License-Identifier: Apache-2.0
"""Folders of thousands of finished runs: what it costs to look at them grows as their number does."""

import json
import sqlite3

import harness
import many_runs

FEW, MANY = 800, 3200


class ManyRuns(harness.EndToEnd):
    def look(self, folder, *arguments):
        return many_runs.pipewright(self.folder / folder, *arguments, "--out", "sw")

    def make(self, name, runs):
        (self.folder / name).mkdir()
        self.assertEqual(many_runs.make(self.folder / name, runs), runs)

    def test_finished_runs_are_read_without_yaml(self):
        self.make("few", 40)
        table, *_ = self.look("few", "table", "many.yaml")
        self.assertIn("; from 40 runs", table)
        self.look("few", "sweep", "many.yaml", "--resume")
        with sqlite3.connect(self.folder / "few/sw/results.sqlite") as store:
            before = store.execute("SELECT * FROM runs").fetchall()
        seeds = {json.loads(row[6])["train"]["seed"] for row in before}
        self.assertEqual(seeds, set(range(1, 11)))
        # What the program plans itself it need not read.
        for run in (self.folder / "few/sw").glob("*/run.json"):
            (run.parent / "experiment.yaml").write_text("{train: {seed: 77}}")
            (run.parent / "point.json").write_text("[")
        self.assertEqual(self.look("few", "table", "many.yaml")[0], table)
        self.look("few", "sweep", "many.yaml", "--resume")
        with sqlite3.connect(self.folder / "few/sw/results.sqlite") as store:
            self.assertEqual(store.execute("SELECT * FROM runs").fetchall(), before)

    def test_cost_grows_as_the_number_of_runs(self):
        self.make("one", 4)
        self.make("few", FEW)
        self.make("many", MANY)
        for command in (("table", "many.yaml"), ("sweep", "many.yaml", "--resume")):
            with self.subTest(command=command):
                used = {name: self.look(name, *command) for name in ("one", "few", "many")}
                start, few, many = (used[name][1] for name in ("one", "few", "many"))
                # Four times as many: four times the cost, sixteen times if it were quadratic.
                self.assertLess(many - start, 8 * max(few - start, 0.05), (start, few, many))
                memory = (used["many"][2] - used["few"][2]) / (MANY - FEW)
                self.assertLess(memory, 24 << 10, "bytes of memory a run")


if __name__ == "__main__":
    harness.main()
