# SPDX-License-Identifier: Apache-2.0
"""A task of the study: an experiment file, the rows of its runs, and what the program makes of them."""

import csv
import json
import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .markers import Wrong

ACCURACY = "test_accuracy"
PROGRAM = Path(__file__).resolve().parent.parent.parent / "build/pipewright"


def pipewright(root, *arguments):
    """Runs the program in `root`. Returns what it printed, and its remarks."""
    program = os.path.abspath(os.environ.get("PIPEWRIGHT_BINARY", PROGRAM))
    try:
        done = subprocess.run([program, *map(str, arguments)], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        raise Wrong(f"there is no {program}; build it (tools/setup --program) or set PIPEWRIGHT_BINARY") from None
    if done.returncode != 0:
        command = " ".join(map(str, arguments[:2]))
        raise Wrong(f"pipewright {command} ends with {done.returncode}: {done.stderr.strip()}")
    return done.stdout, done.stderr.splitlines()


@dataclass(frozen=True)
class Cell:
    """The runs of one row and column of a task's table."""

    row: str
    column: str
    n: int
    mean: float
    std: float
    planned: int
    failed: int = 0  # how many of the runs diverged or failed; they count with the accuracy of chance
    learned: int = None  # how many came to the floor of the file's table, if it has one

    @property
    def name(self):
        return f"{self.row}, {self.column}"


class Task:
    """A row of tasks.csv."""

    def __init__(self, root, row):
        self.root, self.id, self.title = root, row["task"], row["title"]
        self.file, self.profile, self.rows_file = row["file"], row["profile"], row["rows"]
        self.chance = float(row["chance"])
        self.metric = row["metric"] or ACCURACY
        self.again_of, self.family = row["again_of"], row["family"]
        self.changes = shlex.split(row["settings"])

    @property
    def settings(self):
        return [self.file, *(["--profile", self.profile] if self.profile else []), *self.changes]

    @property
    def as_in_protocol(self):
        """Of the table, and so of the claims: metric and epoch, and what a run counts with that diverged (rule 3)."""
        options = {"metric": self.metric, "epoch": "last", "failed_as": f"{self.chance:g}"}
        return [word for key, value in options.items() for word in ("--set", f"table.{key}={value}")]

    @property
    def sweep_command(self):
        return " ".join(["build/pipewright sweep", *self.settings, "--out", f"runs/study-{self.id.lower()}"])

    @property
    def keep_command(self):
        keep = ["--keep", self.rows_file]
        return " ".join(["build/pipewright table", *self.settings, "--out", f"runs/study-{self.id.lower()}", *keep])

    @property
    def table_command(self):
        return " ".join(["build/pipewright table", *self.settings, *self.as_in_protocol, "--results", self.rows_file])

    @cached_property
    def rows(self):
        """The committed rows; none where the task has not run."""
        path = self.root / self.rows_file
        if not path.exists():
            return []
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    @cached_property
    def printed(self):
        """What `table --format json` prints of the rows, and the program's remarks."""
        results = ["--results", self.rows_file] if self.rows else []
        with tempfile.TemporaryDirectory() as folder:
            return pipewright(self.root, "table", *self.settings, *self.as_in_protocol, "--format", "json", *results,
                              "--out", folder)

    @cached_property
    def results(self):
        return json.loads(self.printed[0])

    @property
    def remarks(self):
        """What the program says of rows that are of other settings."""
        return [line for line in self.printed[1] if "left out" in line]

    @cached_property
    def cells(self):
        return [self.cell(each) for each in self.results["cells"] if each["metric"] == self.metric]

    @staticmethod
    def cell(each):
        planned = each["n"] + each["missing"]
        return Cell(", ".join(each["row"]), each["column"], each["n"], each["mean"], each["std"], planned,
                    each["failed"], each.get("learned"))

    def cell_named(self, name):
        """The cell of "label, column", or of "label" where only one has that label."""
        exact = [cell for cell in self.cells if cell.name == name]
        found = exact or [cell for cell in self.cells if cell.row == name]
        if len(found) != 1:
            known = "; ".join(cell.name for cell in self.cells)
            raise Wrong(f"task {self.id} has {len(found) or 'no'} cells '{name}'; expected one of: {known}")
        return found[0]

    @property
    def has_run(self):
        return any(cell.n for cell in self.cells)
