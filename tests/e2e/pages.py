# SPDX-License-Identifier: Apache-2.0
"""The README and the pages of the manual, for the tests that do what they say.

A page is done from its top, in one folder. What a block is for stands behind its language:

    ```yaml           a file, if its first line is a comment with a name: "# first.yaml"; else a part of an experiment,
                      which is checked together with the README's, but for its sweep
    ```sh             commands, which are run
    ```sh minutes     commands that take too long, or need what WHY says; only their options and files are looked up
    ```text           lines that commands above have printed; "…" stands for others
    ```text measured  what a machine has measured: not compared
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import harness
import skips

SOURCE = harness.SOURCE_DIR
MANUAL = SOURCE / "docs/manual"
README = SOURCE / "README.md"
SCHEME = MANUAL / "howto/scheme.md"  # whose commands plugin_test.py runs
WHY = ("minutes", "network", "cluster", "torch", "installed")
FEWER = "sweep.points=[{label: gpipe, scheme: {name: gpipe}}]"  # of the quickstart, whose 93 runs are its own


@dataclass(frozen=True)
class Block:
    language: str
    about: str
    text: str

    @property
    def file(self):
        """The name in a first line such as "# first.yaml"; "" without."""
        named = re.match(r"(?:#|//) ([\w./-]+\.\w+)\n", self.text)
        return named[1] if named else ""


def blocks(page, language=None):
    found = re.findall(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [Block(*each) for each in found if language in (None, each[0])]


def commands(block):
    """Its lines as words, without comments."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def first_column(page):
    """What stands in backticks in the first cells of rows."""
    cells = re.findall(r"(?m)^\| ([^|]+) \|", page.read_text(encoding="utf-8"))
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def plain_line(line):
    return " ".join(line.split())


class PageTest(harness.EndToEnd):
    """Does what a page says."""

    def setUp(self):
        super().setUp()
        for name in ("experiments", "examples", "tools"):
            (self.folder / name).symlink_to(SOURCE / name)
        for block in blocks(README):
            if block.file:
                self.write(block.file, block.text)
                self.write("whole.yaml", re.sub(r"(?m)^sweep:.*\n", "", block.text))

    def do(self, page):
        self.printed = set()
        for block in blocks(page):
            if block.file:
                self.write(block.file, block.text)
            elif block.language == "yaml":
                self.check_part(block.text)
            elif block.language == "sh" and block.about:
                self.assertIn(block.about, WHY, page)
                self.look_up(block)
            elif block.language == "sh":
                for words in commands(block):
                    self.perform(words)
            elif block.language == "text" and block.about != "measured":
                self.compare(block.text, page)

    def check_part(self, text):
        self.write("part.yaml", f"extends: whole.yaml\n{text}")
        self.pipewright("check", "part.yaml")

    def perform(self, words):
        if words[0].startswith("tools/") and not words[0].endswith(".py"):
            self.assertTrue(os.access(SOURCE / words[0], os.X_OK), words)
        elif words[0] == "mpirun" or "pipeline.execution=mpi" in words:
            if skips.has("mpirun"):
                self.mpirun(words) if words[0] == "mpirun" else self.program(words)
            else:
                skips.left_out(words, "mpirun")
        elif words[0] == "python3":
            self.start_other([sys.executable, "-B", *words[1:]])
        else:
            self.program(words)

    def program(self, words):
        self.assertEqual("build/pipewright", words[0], words)
        arguments, to = (words[1 : words.index(">")], words[-1]) if ">" in words else (words[1:], None)
        if arguments[0] in ("sweep", "table", "plot") and arguments[1].endswith("quickstart.yaml"):
            arguments += ["--set", FEWER]
        done = self.pipewright(*arguments)
        if to:
            self.write(to, done.out)
        self.printed |= {plain_line(line) for line in (done.out + done.err).splitlines()}

    def mpirun(self, words):
        """As root, with fewer cores than processes: what a test machine has, and the page need not say."""
        allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"]
        self.start_other([harness.BINARY if word == "build/pipewright" else word for word in words],
                         dict.fromkeys(allowed, "1"))

    def start_other(self, words, environment=None):
        done = subprocess.run(words, cwd=self.folder, env=os.environ | (environment or {}), capture_output=True,
                              text=True, timeout=harness.SECONDS_LIMIT)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.printed |= {plain_line(line) for line in done.stdout.splitlines()}

    def look_up(self, block):
        """Whether the program has the command and its options, and the source tree its files."""
        for words in commands(block):
            for word in words:
                if word.startswith(("experiments/", "tools/", "examples/")):
                    self.assertTrue((SOURCE / word).exists(), words)
            if not words[0].endswith("/pipewright"):
                continue
            known = self.pipewright(words[1], "--help").out
            for option in (word.partition("=")[0] for word in words if word.startswith("--")):
                self.assertRegex(known, rf"{option}\b", words)

    def compare(self, text, page):
        for line in map(plain_line, text.splitlines()):
            self.assertTrue(line in self.printed or line in ("", "…"), f"{page}: no command has printed: {line}")
