# SPDX-License-Identifier: Apache-2.0
"""A task of the study: an experiment file, the rows of its runs, and what the program makes of them."""

import csv
import io
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .markers import Wrong

METRIC = "test_accuracy"
ENDS = ("diverges", "finishes")  # kinds of claims about how runs end
AS_IN_PROTOCOL = ("--set", f"table.metric={METRIC}", "--set", "table.epoch=last")  # of the table, and so of the claims
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


def as_csv(rows):
    """The rows as CSV; nothing where there are none."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


@dataclass(frozen=True)
class Cell:
    """The runs of one row and column of a task's table."""

    row: str
    column: str
    values: dict  # of seeds
    mean: float
    std: float
    planned: int
    by_chance: int = 0  # how many of the runs were not trained to their end

    @property
    def name(self):
        return f"{self.row}, {self.column}"

    @property
    def stages(self):
        return int(self.column.removeprefix("stages ")) if self.column.startswith("stages ") else None


class Task:
    """A row of tasks.csv."""

    def __init__(self, root, row, repeats=False):
        self.row, self.repeats = row, repeats
        self.root, self.id, self.title = root, row["task"], row["title"]
        self.file, self.profile, self.rows_file = row["file"], row["profile"], row["rows"]
        self.reference, self.chance = row["reference"], float(row["chance"])
        self.again_file = row.get("again")

    @cached_property
    def again(self):
        """The same task with the rows of its repetition, which has other seeds."""
        return Task(self.root, self.row | {"rows": self.again_file}, repeats=True)

    @property
    def seeds(self):
        return sorted({row["train.seed"] for row in self.rows}, key=int)

    @property
    def settings(self):
        seeds = ["--set", f"sweep.grid.train.seed=[{','.join(self.seeds)}]"] if self.repeats else []
        return [self.file, *(["--profile", self.profile] if self.profile else []), *seeds]

    @property
    def sweep_command(self):
        return " ".join(["build/pipewright sweep", *self.settings, "--out", f"runs/study-{self.id.lower()}"])

    @property
    def keep_command(self):
        keep = ["--keep", self.rows_file]
        return " ".join(["build/pipewright table", *self.settings, "--out", f"runs/study-{self.id.lower()}", *keep])

    @property
    def table_command(self):
        return " ".join(["build/pipewright table", *self.settings, *AS_IN_PROTOCOL, "--results", self.rows_file])

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
        """The table of the rows, with diverged and failed runs at the accuracy of chance, and the program's remarks."""
        return self.table(self.counted_rows())

    @property
    def results(self):
        return self.printed[0]

    @property
    def remarks(self):
        """What the program says of rows that are of other settings."""
        return [line for line in self.printed[1] if "left out" in line]

    def table(self, rows):
        """What `table --format json` prints of these rows."""
        command = ["table", *self.settings, *AS_IN_PROTOCOL, "--format", "json"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            if rows:
                path.write_text(rows, encoding="utf-8")
                command += ["--results", path]
            text, remarks = pipewright(self.root, *command, "--out", folder)
        return json.loads(text), [line.replace(str(path), self.rows_file) for line in remarks]

    def counted_rows(self):
        """The rows as CSV, each run that was not trained to its end as one of an epoch with the accuracy of chance."""
        return as_csv([row if row["state"] == "done" else self.by_chance(row) for row in self.rows])

    def by_chance(self, row):
        kept = {key: value for key, value in row.items() if not key.startswith(("last.", "best.", "each."))}
        metric = {f"{kind}.{METRIC}": repr(self.chance) for kind in ("last", "best", "each")}
        return dict.fromkeys(row, "") | kept | {"state": "done", "why": "", "epochs": "1"} | metric

    @cached_property
    def as_they_ended(self):
        """The table of the rows as they are, in which diverged and failed runs have no accuracy."""
        return self.table(as_csv(self.rows))[0]

    @property
    def claims(self):
        """Of each claim its id and sentence and the program's tests: those of how runs end are of the rows as they are."""
        for counted, ended in zip(self.results["claims"], self.as_they_ended["claims"], strict=True):
            tests = zip(counted["tests"], ended["tests"], strict=True)
            yield counted["say"], [of_end if of_end["kind"] in ENDS else test for test, of_end in tests]

    @cached_property
    def cells(self):
        failed = {self.key(each): each["failed"] for each in self.as_they_ended["cells"]}
        return [self.cell(each, failed[self.key(each)]) for each in self.results["cells"] if each["metric"] == METRIC]

    @staticmethod
    def key(each):
        return each["metric"], tuple(each["row"]), each["column"]

    @staticmethod
    def cell(each, by_chance):
        values = dict(zip(each["seeds"], each["values"], strict=True))
        planned = len(values) + each["missing"]
        return Cell(", ".join(each["row"]), each["column"], values, each["mean"], each["std"], planned, by_chance)

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
        return any(cell.values for cell in self.cells)
