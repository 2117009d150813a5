# SPDX-License-Identifier: Apache-2.0
"""What the manual says works: its files, commands and outputs, page by page; its tables name what the program has."""

import json
import os
import re
import subprocess

import harness
import pages


FILES = (".cpp", ".py", ".csv", ".json", ".yaml", ".safetensors")  # endings of names that are none of options


class Manual(pages.PageTest):
    """Has a test for each page, made below."""


def keys_of(schema, node, prefix=""):
    """The dotted keys of a schema, those of all its alternatives."""
    if not isinstance(node, dict):
        return
    for name, value in node.get("properties", {}).items():
        yield prefix + name
        yield from keys_of(schema, value, f"{prefix}{name}.")
    for branch in ("allOf", "anyOf", "oneOf"):
        for each in node.get(branch, []):
            yield from keys_of(schema, each, prefix)
    for branch in ("if", "then", "else", "items"):
        yield from keys_of(schema, node.get(branch), prefix)
    if "$ref" in node:
        yield from keys_of(schema, schema["$defs"][node["$ref"].split("/")[-1]], prefix)


class Tables(pages.PageTest):
    def listed(self, kind):
        return set(re.findall(r"(?m)^ +(\w+)  ", self.pipewright("list", kind).out))

    def test_name_all_commands(self):
        commands = set(re.findall(r"(?m)^  (\w+) +\w.*$", self.pipewright("--help").out)) - {"pipewright"}
        named = {name for name in pages.first_column(pages.MANUAL / "reference/commands.md") if name[0] != "-"}
        self.assertEqual(commands, named)

    def test_name_all_parts(self):
        for kind, page in (("schemes", "howto/choose-a-scheme.md"), ("probes", "reference/probes.md"),
                           ("codecs", "reference/compression.md"), ("optimizers", "reference/optimizers.md"),
                           ("gradient_rules", "reference/gradient-rules.md")):
            self.assertEqual(self.listed(kind), pages.first_column(pages.MANUAL / page), page)

    def test_name_only_options_that_there_are(self):
        """A key of a section in backticks, as in `pipeline.stages`, is one, or that of a part."""
        schema = json.loads(self.pipewright("schema").out)
        known = set(keys_of(schema, schema))
        data = {"train.x", "train.y", "train.input_ids", "train.attention_mask"}  # of the data set `tensors`
        key = re.compile(rf"`((?:{'|'.join(schema['properties'])})(?:\.[a-z_]+)+)(?:[:=][^`]*)?`")
        for page in sorted((pages.SOURCE / "docs").rglob("*.md")):
            named = {name for name in key.findall(page.read_text(encoding="utf-8")) if not (page.parent / name).exists()}
            self.assertEqual(set(), {name for name in named - known - data if not name.endswith(FILES)}, page)

    def test_name_all_sections(self):
        schema = json.loads(self.pipewright("schema").out)
        self.assertEqual(set(schema["properties"]), pages.first_column(pages.MANUAL / "reference/experiment-file.md"))

    def test_name_all_exit_codes(self):
        told = self.pipewright("--help").out.partition("Exit codes:")[2]
        page = (pages.MANUAL / "reference/exit-codes.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(\d+) [a-z]", told), re.findall(r"(?m)^\| (\d+) \|", page))


class WrongPages(pages.PageTest):
    """A page that says something else than the program is found."""

    def wrong(self, text, message):
        with self.assertRaisesRegex(AssertionError, message):
            self.do(self.write("page.md", text))

    def test_commands_that_fail(self):
        self.wrong("```sh\nbuild/pipewright check none.yaml\n```\n", "none.yaml")
        self.wrong("```sh\nls\n```\n", "ls")

    def test_lines_that_nobody_prints(self):
        self.wrong("```sh\nbuild/pipewright list optimizers\n```\n```text\n  signum  None.\n```\n", "signum None")
        self.wrong("```text\nbefore any command\n```\n", "before any command")

    def test_parts_of_experiments_with_unknown_options(self):
        self.wrong("```yaml\npipeline: {stagez: 2}\n```\n", "stagez")

    def test_commands_that_are_only_looked_up(self):
        self.wrong("```sh minutes\nbuild/pipewright sweep first.yaml --none\n```\n", "--none")
        self.wrong("```sh minutes\nbuild/pipewright none first.yaml\n```\n", "there is no command")
        self.wrong("```sh minutes\nbuild/pipewright sweep experiments/none.yaml\n```\n", "none.yaml")
        self.wrong("```sh because\nbuild/pipewright list\n```\n", "because")


class OwnScheme(pages.PageTest):
    """The C++ file of howto/scheme.md was compiled as it stands into a program."""

    def program(self, *arguments):
        return subprocess.run([os.environ["PIPEWRIGHT_MANUAL_BINARY"], *arguments], cwd=self.folder,
                              capture_output=True, text=True, timeout=harness.SECONDS_LIMIT)

    def test_trains(self):
        half = ["--set", "scheme={name: half_way, part: 0.7}", "--out", "half"]
        done = self.program("run", "whole.yaml", *half)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("half_way", self.program("list", "schemes").stdout)
        wrong = self.program("check", "whole.yaml", "--set", "scheme={name: half_way, part: 2}")
        self.assertEqual(2, wrong.returncode)


def named(page):
    return re.sub(r"\W+", "_", str(page.relative_to(pages.MANUAL).with_suffix("")))


for each in sorted(pages.MANUAL.rglob("*.md")):
    setattr(Manual, f"test_{named(each)}", lambda self, page=each: self.do(page))


if __name__ == "__main__":
    harness.main()
