# SPDX-License-Identifier: Apache-2.0
"""What the README says works: its experiment, its commands, what it says of their results, its picture."""

import re

import harness
import pages


class Readme(pages.PageTest):
    def test_every_command_runs(self):
        self.do(pages.README)
        self.assertTrue((self.folder / "schedule.svg").exists())

    def test_its_four_schemes_learn_as_it_says(self):
        """Model parallelism learns most and PipeDream least, by far more than rounding moves accuracies."""
        self.pipewright("sweep", "first.yaml", "--out", "four")
        said = dict(re.findall(r"(?m)^\| (\w+) +\| +(\d+\.\d+) \(1\) \|$", pages.README.read_text(encoding="utf-8")))
        learned = {}
        for folder in (self.folder / "four").glob("*-*"):
            run = harness.Run(folder)
            scheme = re.search(r"scheme:\s+name: \"?(\w+)", (folder / "experiment.yaml").read_text())[1]
            learned[scheme] = 100 * float(run.rows("epochs.csv")[-1]["test_accuracy"])
        self.assertEqual(said.keys(), learned.keys())
        self.assertEqual(4, len(said))
        for of in learned.values():
            self.assertLessEqual(of, learned["model_parallel"])
        for predicting in ("spectrain", "pipeoptim"):
            self.assertGreater(learned[predicting], learned["pipedream"] + 20)
        for scheme, accuracy in said.items():
            self.assertAlmostEqual(float(accuracy), learned[scheme], delta=5, msg=scheme)

    def test_it_counts_the_schemes(self):
        count = len(self.pipewright("list", "schemes").out.splitlines())
        ones = ["", "-one", "-two", "-three", "-four", "-five", "-six", "-seven", "-eight", "-nine"]
        words = {20: "twenty", 30: "thirty", 40: "forty"}[count - count % 10] + ones[count % 10]
        self.assertIn(f" {words} pipeline-parallel schemes", pages.README.read_text(encoding="utf-8"))

    def test_it_is_one_page(self):
        text = pages.README.read_text(encoding="utf-8")
        self.assertLessEqual(len(text.splitlines()), 120)
        self.assertLessEqual(len(text.split()), 700)

    def test_its_pictures_are_the_tools(self):
        self.pipewright("schedule", str(pages.SOURCE / "experiments/quickstart.yaml"), "--set",
                        "name=SpecTrain on four stages", "--set", "scheme={name: spectrain}", "--set",
                        "pipeline.stages=4", "--svg", "spectrain.svg")
        for name in ("spectrain.svg", "spectrain-weights.svg"):
            self.assertEqual((pages.SOURCE / "docs" / name).read_text(), (self.folder / name).read_text(), name)


if __name__ == "__main__":
    harness.main()
