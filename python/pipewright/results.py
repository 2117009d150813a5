# SPDX-License-Identifier: Apache-2.0
"""What runs leave, as tidy frames. The files are described in docs/formats/run-folder.md."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

MARKER = ".pipewright"
Row = dict[str, Any]


def _number(text: str) -> Any:
    """A CSV field as a number if it is one; None if it is empty."""
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _rows_of(file: Path) -> Iterator[Row]:
    """The rows of a CSV file; none if there is no such file. A last line that is not complete yet is left out."""
    if not file.is_file():
        return
    with open(file, newline="", encoding="utf-8") as opened:
        reader = csv.reader(opened)
        header = next(reader, [])
        for fields in reader:
            if len(fields) == len(header):
                yield {name: _number(text) for name, text in zip(header, fields)}


def _json(file: Path) -> Row:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True)
class Run:
    """One run's folder."""

    folder: Path
    record: Row = field(repr=False)
    varied: Row = field(repr=False)
    """Label and dotted keys that the sweep varies, with this run's values."""
    point: int = 0
    """Its number in the sweep's file, from 1; 0: not known."""

    @staticmethod
    def read(folder: Path) -> Run:
        point = _json(folder / "point.json")
        varied = point.get("varied", {})
        label = {"label": point["label"]} if "label" in point else {}
        record = _json(folder / "run.json")
        killed = point.get("error") if record.get("state", "running") == "running" else None
        record = {"state": "missing", **record, **({"state": "failed", "error": killed} if killed else {})}
        number = point.get("point")
        return Run(
            folder,
            record,
            {**label, **(varied if isinstance(varied, Mapping) else {})},
            number if isinstance(number, int) else 0,
        )

    def rows(self, table: str) -> Iterator[Row]:
        """Rows of one of the run's CSV files, with the run's folder, state and settings before its own columns."""
        for row in _rows_of(self.folder / f"{table}.csv"):
            yield {"run": self.folder.name, "state": self.record["state"], **self.varied, **row}

    def summary(self) -> Row:
        """State, settings, and the metrics of the last epoch."""
        last: Row = {}
        for row in _rows_of(self.folder / "epochs.csv"):
            last.update({name: value for name, value in row.items() if value is not None})
        kept = ("state", "seed", "wall_seconds", "error", "started", "finished", "digest", "pipewright")
        record = {name: self.record[name] for name in kept if name in self.record}
        return {"run": self.folder.name, **self.varied, **record, **last}


class Results:
    """The runs of a folder, which is that of a run or of a sweep.

    `runs`, `epochs`, `steps` and `probes` are pandas DataFrames; `rows()` gives the same without pandas.
    """

    def __init__(self, folder: Path, runs: list[Run]) -> None:
        self.folder = folder
        self.list = runs

    def __repr__(self) -> str:
        states: dict[str, int] = {}
        for run in self.list:
            state = str(run.record["state"])
            states[state] = states.get(state, 0) + 1
        return f"<{len(self.list)} run(s) in {self.folder}: {', '.join(f'{n} {s}' for s, n in states.items())}>"

    def rows(self, table: str) -> list[Row]:
        """The rows of `runs`, `epochs`, `steps` or `probes`, as dictionaries. Raises ValueError for other names."""
        if table == "runs":
            return [run.summary() for run in self.list]
        if table not in ("epochs", "steps", "probes"):
            raise ValueError(f"there is no table '{table}'; expected runs, epochs, steps or probes")
        return [row for run in self.list for row in run.rows(table)]

    def _frame(self, table: str) -> pandas.DataFrame:
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                f"frames need pandas: pip install pandas; rows({table!r}) needs nothing"
            ) from error
        return pandas.DataFrame(self.rows(table))

    @property
    def runs(self) -> pandas.DataFrame:
        """A row a run: its settings that vary, its state, and the metrics of its last epoch."""
        return self._frame("runs")

    @property
    def epochs(self) -> pandas.DataFrame:
        """A row for each epoch of each run. Epochs count from 0, accuracies are parts of 1."""
        return self._frame("epochs")

    @property
    def steps(self) -> pandas.DataFrame:
        """A row for each mini-batch of each run, with its loss."""
        return self._frame("steps")

    @property
    def probes(self) -> pandas.DataFrame:
        """A row for each number that a probe measured: epoch, minibatch, stage, probe, quantity, value."""
        return self._frame("probes")


def load(folder: str | os.PathLike[str]) -> Results:
    """Reads the folder of a run or of a sweep, also while it works. Raises FileNotFoundError if it is neither."""
    path = Path(folder)
    if (path / "run.json").is_file():
        return Results(path, [Run.read(path)])
    if not (path / MARKER).is_file():
        raise FileNotFoundError(f"{path} is no folder of a run or of a sweep")
    inner = sorted(each for each in path.iterdir() if (each / MARKER).is_file() and (each / "point.json").is_file())
    runs = [Run.read(each) for each in inner]
    return Results(path, sorted(runs, key=lambda run: run.point or math.inf))
