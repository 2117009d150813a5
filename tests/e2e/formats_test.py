# SPDX-License-Identifier: Apache-2.0
"""Files that earlier versions left are read, and mean what they meant. `formats/VERSION` has what that version's program
wrote on its own, and in promised.txt its commands, their options, and every key and value of an experiment file that its
schema knew; a later version is added beside it and none is changed.

    formats_test.py --promised    prints the promised.txt of $PIPEWRIGHT_BINARY
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness
from harness import EndToEnd, Run

FORMATS = Path(__file__).parent / "formats"
# Processors add up in other orders. That moves a weight by some units of its last place (2e-16), and 440 further steps of
# a training that is stable add as many such moves at most: 1e-13. The shortest difference of another training is 1e-4.
ROUNDING = 1e-11


# What went on purpose after it had been promised, as CHANGELOG says.
TAKEN_AWAY = {"simulate --markdown", "stability --markdown", "sweep --keep-going"}


def said_by(*arguments):
    return subprocess.run((harness.BINARY, *arguments), check=True, capture_output=True, text=True).stdout


def commands_and_options():
    for command in re.findall(r"^  (\w+)  ", said_by("--help"), re.MULTILINE):
        yield command
        for option in re.findall(r"^  (?:-\w \[ )?(--[\w-]+)", said_by(command, "--help"), re.MULTILINE):
            yield f"{command} {option}"


def keys_and_values(schema, root, path="", inside=()):
    """`train.epochs` for each key below a schema, and `optimizer.name=sgd` for each value it names."""
    if "$ref" in schema and schema["$ref"] not in inside:
        inside = (*inside, schema["$ref"])
        named = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            named = named[part]
        yield from keys_and_values(named, root, path, inside)
    for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])):
        yield f"{path}={value}"
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}".lstrip(".")
        if isinstance(below, dict):
            yield from keys_and_values(below, root, f"{path}.{name}".lstrip("."), inside)
    same = [schema.get(key) for key in ("if", "then", "else")]
    same += [each for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key, ())]
    for below, beyond in [(each, path) for each in same] + [(schema.get("items"), f"{path}[]"), (schema.get("additionalProperties"), f"{path}.*")]:
        if isinstance(below, dict):
            yield from keys_and_values(below, root, beyond, inside)


def promised():
    schema = json.loads(said_by("schema"))
    return {*commands_and_options(), *keys_and_values(schema, schema)}


class Formats(EndToEnd):
    def test_no_command_option_key_or_value_is_forgotten(self):
        known = promised()
        for kept in self.versions():
            had = set((kept / "promised.txt").read_text().splitlines())
            self.assertGreater(len(had), 1000)
            self.assertEqual(sorted(had - known - TAKEN_AWAY), [])

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
    if "--promised" in sys.argv:
        print("\n".join(sorted(promised())))
        sys.exit()
    harness.main()
