# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of experiment files: what an editor accepts, what it marks, and how long it is."""

import json
import re

import harness
from harness import CNN, MLP, SOURCE_DIR, changed

SHIPPED = SOURCE_DIR / "experiments/experiment.schema.json"
NAMES = "# yaml-language-server: $schema="
# Hardware and costs are no experiments, and a part of a plugin is unknown to the schema of a program without it.
WITHOUT = ("experiments/hardware/", "examples/unit-costs.yaml", "examples/out-of-tree-scheme/", "examples/own-parts/")
LARGEST = 300_000  # bytes; an editor reads the whole of it at every start

CODECS = {
    "name": "uniform",
    "bits": 4,
    "edges": [1],
    "forward": {"name": "top_k", "fraction": 0.1},
    "backward": {"name": "fp8", "format": "e5m2"},
    "otherwise": {"name": "fp16", "edges": [2], "backward": {"name": "none"}},
}
RIGHT = [
    MLP,
    CNN,
    {},
    changed(MLP, {"scheme": {"name": "spectrain", "version": 2}}),
    changed(MLP, {"optimizer": {"name": "adam", "lr": 0.001}}),
    changed(MLP, {"optimizer": {"lr": 1, "momentum": 0.5}}),
    changed(MLP, {"pipeline.compression": CODECS}),
    changed(MLP, {"pipeline.compression": {"name": "none", "forward": {"name": "none"}}}),
    {"extends": "base.yaml", "profiles": {"long": {"train.epochs": 100}}},
    {"sweep": {"points": [{"label": "a", "optimizer.lr": 1}], "grid": {"train.seed": [1, 2]}}},
    {"table": {"rows": "label"}, "plot": {"metric": "test_loss"}},
    {"plot": {"kind": "map", "x": "optimizer.lr", "y": "pipeline.stages", "log": ["x"], "over": {"file": "edge.csv"}}},
    {"claims": [{"say": "it learns", "less": [{"scheme.name": "pipedream"}, {"scheme.name": "gpipe"}]}]},
]
WRONG = [
    {"claims": [{"less": []}]},
    {"claims": [{"say": "it learns", "les": []}]},
    {"plot": {"kind": "heat map"}},
    {"modle": {"name": "mlp"}},
    {"model": "mlp"},
    {"model": {"name": "mpl"}},
    {"model": {"name": "mlp", "channels": 1}},
    {"scheme": {"name": "gpipe", "version": 2}},
    {"scheme": {"name": "spectrain", "version": 3}},
    {"scheme": {"version": 2}},
    {"optimizer": {"name": "adam", "momentum": 0.9}},
    {"optimizer": {"name": "sgd", "lr": "fast"}},
    {"train": {"epochs": "ten"}},
    {"train": {"epochs": 1.5}},
    {"pipeline": {"stages": 0}},
    {"pipeline": {"stages": [2]}},
    {"pipeline": {"balance": {}, "stage": 2}},
    {"pipeline": {"compression": {"name": "uniform", "ratio": 2}}},
    {"pipeline": {"compression": {"name": "none", "bits": 4}}},
    {"pipeline": {"compression": {"forward": {"name": "uniform", "edges": [1]}}}},
    {"pipeline": {"compression": {"backward": {"name": "fp8", "bits": 4}}}},
    {"pipeline": {"compression": {"otherwise": {"name": "fp16", "otherwise": {"name": "none"}}}}},
    {"pipeline": {"compression": {"otherwise": {"forward": {"name": "gzip"}}}}},
    {"sweep": {"grid": {"train.seed": []}}},
    {"sweep": {"gird": {"train.seed": [1]}}},
    {"sweep": {"points": [{"label": 3}]}},
    {"table": {"row": "label"}},
    {"dataset": {"name": "digits", "root": 3, "augmnet": True}},
]

TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
# Of draft 2020-12, all that the schema says; what it says beyond them would not be checked here.
REMARKS = {"$schema", "$id", "$defs", "title", "description", "default"}


class Validator:
    """As much of JSON Schema as ours has."""

    def __init__(self, schema):
        self.root = schema
        self.said = set()

    def accepts(self, schema, value):
        if isinstance(schema, bool):
            return schema
        self.said |= schema.keys()
        return all(self.holds(word, schema, value) for word in schema.keys() - REMARKS)

    def holds(self, word, schema, value):
        wanted = schema[word]
        match word:
            case "$ref":
                target = self.root
                for step in wanted.removeprefix("#/").split("/"):
                    target = target[step]
                return self.accepts(target, value)
            case "type":
                return TYPES[wanted](value)
            case "enum":
                return value in wanted
            case "const":
                return value == wanted
            case "allOf":
                return all(self.accepts(part, value) for part in wanted)
            case "if":
                return not self.accepts(wanted, value) or self.accepts(schema["then"], value)
            case "then":
                return True
            case "minimum":
                return not TYPES["number"](value) or value >= wanted
            case "maximum":
                return not TYPES["number"](value) or value <= wanted
            case "items":
                return not isinstance(value, list) or all(self.accepts(wanted, item) for item in value)
            case "minItems":
                return not isinstance(value, list) or len(value) >= wanted
            case "properties":
                return not isinstance(value, dict) or all(
                    self.accepts(part, value[key]) for key, part in wanted.items() if key in value
                )
            case "additionalProperties":
                known = schema.get("properties", {})
                return not isinstance(value, dict) or all(
                    self.accepts(wanted, value[key]) for key in value.keys() - known.keys()
                )
            case "required":
                return not isinstance(value, dict) or all(key in value for key in wanted)
        raise AssertionError(f"the schema says {word}, which this test cannot check")


class Schema(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.text = self.pipewright("schema").out
        self.validator = Validator(json.loads(self.text))

    def test_is_short_enough_for_an_editor(self):
        self.assertLess(len(self.text.encode()), LARGEST)

    def test_has_a_name_that_is_no_address(self):
        self.assertRegex(self.validator.root["$id"], r"^urn:pipewright:experiment:\d+\.\d+\.\d+(-rc\.\d+)?$")
        self.assertEqual(re.findall(r'"\$ref": "(?!#/\$defs/)', self.text), [], "nothing is to be fetched")

    def test_the_file_that_shipped_experiments_name_is_current(self):
        self.assertEqual(
            self.text, SHIPPED.read_text(), "write it anew: build/pipewright schema > experiments/experiment.schema.json"
        )

    def test_every_shipped_experiment_names_it(self):
        listed = [file for folder in ("experiments", "examples") for file in (SOURCE_DIR / folder).rglob("*.yaml")]
        files = [file for file in listed if not file.relative_to(SOURCE_DIR).as_posix().startswith(WITHOUT)]
        self.assertGreater(len(files), 50)
        for file in files:
            lines = file.read_text().splitlines()
            named = [line.removeprefix(NAMES) for line in lines[:2] if line.startswith(NAMES)]  # lessons: the second
            self.assertEqual([SHIPPED.resolve()], [(file.parent / name).resolve() for name in named], file)

    def test_accepts_what_check_accepts(self):
        for right in RIGHT:
            with self.subTest(right):
                self.assertTrue(self.validator.accepts(self.validator.root, right))

    def test_marks_what_check_refuses(self):
        for wrong in WRONG:
            with self.subTest(wrong):
                self.assertFalse(self.validator.accepts(self.validator.root, wrong))
                self.write("wrong.yaml", wrong)
                self.pipewright("check", "wrong.yaml", code=harness.EXPERIMENT)


if __name__ == "__main__":
    harness.main()
