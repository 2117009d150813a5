# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of experiment files beside a standard validator (jsonschema, draft 2020-12), as editors have one."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).resolve()
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/e2e")]
import schema_test as ours
import skips

PLUGINS = ("examples/out-of-tree-scheme/", "examples/own-parts/")  # name parts that only their plugins have
OTHERS = ("experiments/hardware/", "examples/unit-costs.yaml", "tools/", "tests/", ".")  # YAML, but no experiments


class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, which editors and Pipewright read; PyYAML's own is 1.1: 1e-3 is a text there, and no a flag."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "str")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for tag, pattern, first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$"), list(first))


def experiments():
    """Every shipped YAML file that is one."""
    listed = subprocess.run(["git", "ls-files", "*.yaml"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = (name for name in listed.stdout.split() if not name.startswith(OTHERS) and (ROOT / name).exists())
    return {name: yaml.load((ROOT / name).read_text(encoding="utf-8"), Loader) for name in names}


def is_of_a_base(name, error, experiment):
    """Options of a section whose part is named by the files that extend this one: no file alone can be judged by these."""
    section = error.absolute_path[0] if error.absolute_path else ""
    return "/base/" in name and section in experiment and "name" not in experiment[section]


class JsonSchema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        binary = os.environ["PIPEWRIGHT_BINARY"]
        cls.schema = json.loads(subprocess.run([binary, "schema"], capture_output=True, text=True, check=True).stdout)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    def test_is_one(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.assertEqual(self.schema["$schema"], jsonschema.Draft202012Validator.META_SCHEMA["$schema"])

    def test_refers_to_all_its_definitions_and_to_no_others(self):
        used = set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', json.dumps(self.schema)))
        self.assertEqual(used, set(self.schema["$defs"]))

    def test_accepts_every_shipped_experiment(self):
        found = experiments()
        self.assertGreater(len(found), 50)
        for name, experiment in found.items():
            with self.subTest(name):
                errors = list(self.validator.iter_errors(experiment))
                if name.startswith(PLUGINS):
                    self.assertEqual([], [e.message for e in errors if not re.search(r"^'\w+' is not one of", e.message)])
                else:
                    self.assertEqual([], [e.message for e in errors if not is_of_a_base(name, e, experiment)])

    def test_marks_a_mistake_in_every_shipped_experiment(self):
        for name, experiment in experiments().items():
            if name.startswith(PLUGINS):
                continue
            for section in ("dataset", "model", "pipeline", "scheme", "optimizer", "train", "loader"):
                if section in experiment:
                    wrong = experiment | {section: experiment[section] | {"mistake": 1}}
                    self.assertIn("mistake", str([e.message for e in self.validator.iter_errors(wrong)]), f"{name}: {section}")

    def test_judges_as_the_validator_of_our_own_tests(self):
        """schema_test.py has a short one, for machines without this environment."""
        own = ours.Validator(self.schema)
        for value in [*ours.RIGHT, *ours.WRONG, *experiments().values()]:
            self.assertEqual(self.validator.is_valid(value), own.accepts(self.schema, value), value)


if __name__ == "__main__":
    skips.main()
