# SPDX-License-Identifier: Apache-2.0
"""Experiment files: where values come from, and of wrong files what no case of ../cases can hold.

What is said of wrong files stands there, word for word.
"""

import re
import sys

import harness
from harness import EXPERIMENT, FINE, changed

sys.path.insert(0, str(harness.SOURCE_DIR / "tests" / "cases"))

import cases  # noqa: E402

SMALL = {"loader": {"batch_size": 16, "limit_train": 32, "limit_test": 16}, "train": {"epochs": 0}}
REFUSALS = [cases.HERE / folder for folder in ("wrong_options", "wrong_yaml", "wrong_files")]
OF_OTHER_COMMANDS = re.compile(r"(?m)^(sweep|table|plot|claims):")  # sections that `run` does not need


def refused_checks(case):
    """The steps of a case that check an experiment of one run and find it wrong."""
    refused = [
        step
        for step in case.steps
        if step.run.subject.startswith("pipewright check ") and step.outcomes["exit"].subject == str(EXPERIMENT)
    ]
    return [step for step in refused if not OF_OTHER_COMMANDS.search(case.files[step.run.subject.split()[2]].text())]


class Refusals(harness.EndToEnd):
    def test_run_refuses_what_check_refuses_in_the_same_words_and_leaves_nothing(self):
        machine, refused = cases.Machine(harness.BINARY, harness.SOURCE_DIR), 0
        for case in map(cases.Case, cases.case_files(REFUSALS)):
            steps = refused_checks(case)
            for step in steps:
                step.run.subject = step.run.subject.replace(" check ", " run ", 1) + " --quiet --out out"
            outcomes = machine.outcomes(case) if steps else []
            for step, outcome in zip(case.steps, outcomes):
                if step in steps:
                    with self.subTest(f"{case.name()}: {step.run.subject}"):
                        self.assertEqual(outcome["exit"], EXPERIMENT)
                        self.assertEqual(outcome["stderr"], step.outcomes["stderr"].text())
                        self.assertEqual(outcome["leaves"], "")
                    refused += 1
        self.assertGreater(refused, 150)

    def test_a_file_name_cannot_begin_a_line_of_its_own(self):
        """Else a file that somebody was sent could say in our name what it likes."""
        done = self.pipewright("check", "a\nb.yaml:1:1: c.yaml", code=EXPERIMENT)
        self.assert_errors(done, r"^a\\nb\.yaml:1:1: c\.yaml: cannot open")

    def test_a_file_without_a_byte_is_empty(self):
        self.write("x.yaml", b"")
        self.assert_errors(self.pipewright("check", "x.yaml", code=EXPERIMENT), r"^x\.yaml:1:1: the file is empty")

    def test_bytes_that_are_no_text_are_one_fault(self):
        self.write("x.yaml", bytes(range(256)))
        self.assert_errors(self.pipewright("check", "x.yaml", code=EXPERIMENT), r"^x\.yaml:")

    def test_a_device_that_is_not_there_is_refused_with_how_many_there_are(self):
        self.write("x.yaml", "pipeline: {device: cuda:9}\n")
        for arguments in (("check", "x.yaml"), ("run", "x.yaml", "--out", "out")):
            self.assert_errors(
                self.pipewright(*arguments, code=EXPERIMENT),
                r"^x\.yaml:1:20: pipeline\.device is 'cuda:9'; this machine has \d+ CUDA device",
            )
        self.assertFalse((self.folder / "out").exists())


class Values(harness.EndToEnd):
    def resolved(self, file, *flags):
        """The lines of the resolved experiment, as {dotted key: text}."""
        self.pipewright("run", file, "--quiet", "--out", "out", "--overwrite", *flags)
        values, path = {}, []
        for line in (self.folder / "out/experiment.yaml").read_text().splitlines():
            depth = (len(line) - len(line.lstrip())) // 2
            key, _, value = line.strip().partition(":")
            path = path[:depth] + [key]
            if value:
                values[".".join(path)] = value.strip()
        return values

    def test_set_changes_one_value_or_a_whole_section(self):
        self.write("x.yaml", changed(SMALL, {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}}))
        values = self.resolved(
            "x.yaml",
            "--set",
            "optimizer.lr=1e-3",
            "--set",
            "train.seed=7",
            "--set",
            "scheme={name: spectrain, version: 2}",
        )
        self.assertEqual((values["optimizer.lr"], values["train.seed"]), ("0.001", "7"))
        self.assertEqual((values["scheme.name"], values["scheme.version"]), ("spectrain", "2"))
        self.assertEqual(values["optimizer.momentum"], "0.9")

    def test_a_mapping_with_a_name_replaces_the_old_one(self):
        self.write("base.yaml", changed(SMALL, {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}}))
        self.write("x.yaml", "extends: base.yaml\noptimizer: {name: adam}\nloader: {batch_size: 8}\n")
        values = self.resolved("x.yaml")
        self.assertEqual((values["optimizer.name"], values["optimizer.lr"]), ("adam", "0.001"))
        self.assertNotIn("optimizer.momentum", values)
        self.assertEqual((values["loader.batch_size"], values["loader.limit_train"]), ("8", "32"))

    def test_a_chain_of_files_in_other_folders(self):
        self.write("a/top.yaml", SMALL)
        self.write("a/b/middle.yaml", "extends: ../top.yaml\ntrain: {seed: 2}\noptimizer: {lr: 0.25}\n")
        self.write("x.yaml", "extends: a/b/middle.yaml\ntrain: {seed: 3}\n")
        values = self.resolved("x.yaml")
        self.assertEqual(
            (values["train.seed"], values["optimizer.lr"], values["train.epochs"], values["name"]),
            ("3", "0.25", "0", "x"),
        )

    def test_profiles_stand_above_the_file_and_below_set(self):
        self.write(
            "base.yaml", changed(SMALL, {"profiles": {"laptop": {"train.seed": 5, "optimizer.lr": 0.5}}})
        )
        self.write(
            "x.yaml", "extends: base.yaml\ntrain: {seed: 4}\nprofiles: {laptop: {optimizer.lr: 0.75}}\n"
        )
        self.assertEqual(self.resolved("x.yaml")["train.seed"], "4")
        values = self.resolved("x.yaml", "--profile", "laptop")
        self.assertEqual((values["train.seed"], values["optimizer.lr"]), ("5", "0.75"))
        self.assertEqual(
            self.resolved("x.yaml", "--profile", "laptop", "--set", "train.seed=6")["train.seed"], "6"
        )

    def test_json_is_yaml_and_quoted_words_are_texts(self):
        self.write("x.yaml", SMALL | {"name": "yes"})
        self.assertEqual(self.resolved("x.yaml")["name"], '"yes"')
        self.pipewright("check", "out/experiment.yaml", code=FINE)

    def test_numbers_with_exponents_are_numbers(self):
        self.write(
            "x.yaml",
            "loader: {batch_size: 16, limit_train: 32, limit_test: 16}\noptimizer: {lr: 1e-3}\ntrain: {epochs: 0, seed: 12}\n",
        )
        self.assertEqual(self.resolved("x.yaml")["optimizer.lr"], "0.001")


if __name__ == "__main__":
    harness.main()
