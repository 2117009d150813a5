# SPDX-License-Identifier: Apache-2.0
"""What runs leave, as tidy frames. The files are described in docs/formats/run-folder.md."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .program import Experiment, Origin, Settings, call, json_text
from .run_folder import MARKER, Row, read_record, recorded_options, rows_of, run_folders, sweeps_in, value_of

if TYPE_CHECKING:
    import pandas
    import torch


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
        record, point = read_record(folder)
        varied = point.get("varied", {})
        label = {"label": point["label"]} if "label" in point else {}
        number = point.get("point")
        return Run(
            folder,
            record,
            {**label, **(varied if isinstance(varied, Mapping) else {})},
            number if isinstance(number, int) else 0,
        )

    def rows(self, table: str) -> Iterator[Row]:
        """Rows of one of the run's CSV files, with the run's folder, state and settings before its own columns."""
        for row in rows_of(self.folder / f"{table}.csv"):
            yield {"run": self.folder.name, "state": self.record["state"], **self.varied, **row}

    def summary(self) -> Row:
        """State, settings, and the metrics of the last epoch."""
        last: Row = {}
        for row in rows_of(self.folder / "epochs.csv"):
            last.update({name: value for name, value in row.items() if value is not None})
        kept = ("state", "seed", "wall_seconds", "error", "started", "finished", "digest", "pipewright")
        record = {name: self.record[name] for name in kept if name in self.record}
        return {"run": self.folder.name, **self.varied, **record, **last}


def _data_frame(rows: list[Row], otherwise: str) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"frames need pandas: pip install pandas; {otherwise} needs nothing") from error
    return pandas.DataFrame(rows)


class Table:
    """What `pipewright table` says of runs. A notebook shows it as the program prints it, as does str().

    `content` is what `table --format json` prints, which docs/formats/results.md describes; `cells` and `claims` are its
    lists, and `frame` has a row for each cell.
    """

    def __init__(self, content: Row, markdown: str) -> None:
        self.content = content
        self._markdown = markdown

    @property
    def cells(self) -> list[Row]:
        return list(self.content["cells"])

    @property
    def claims(self) -> list[Row]:
        """Each claim of the experiment with its `verdict`, why, and the numbers of its tests."""
        return list(self.content["claims"])

    @property
    def frame(self) -> pandas.DataFrame:
        keys: list[str] = self.content["row_keys"]
        rows = [{**dict(zip(keys, cell["row"])), **{name: value for name, value in cell.items() if name != "row"}} for cell in self.cells]
        return _data_frame(rows, "cells")

    def __str__(self) -> str:
        return self._markdown

    def _repr_markdown_(self) -> str:
        return self._markdown


class Results:
    """The runs of a folder, which is that of a run or of a sweep.

    `runs`, `epochs`, `evaluations`, `steps` and `probes` are pandas DataFrames; `rows()` gives the same without pandas.
    `table()` needs the experiment, which run() and sweep() know and load() can be told.
    """

    def __init__(self, folder: Path, runs: list[Run], origin: Origin | None = None) -> None:
        self.folder = folder
        self.list = runs
        self.origin = origin

    def __repr__(self) -> str:
        states: dict[str, int] = {}
        for run in self.list:
            state = str(run.record["state"])
            states[state] = states.get(state, 0) + 1
        return f"<{len(self.list)} run(s) in {self.folder}: {', '.join(f'{n} {s}' for s, n in states.items())}>"

    def rows(self, table: str) -> list[Row]:
        """The rows of `runs`, `epochs`, `evaluations`, `steps` or `probes`, as dictionaries. Raises ValueError for others."""
        if table == "runs":
            return [run.summary() for run in self.list]
        if table not in ("epochs", "evaluations", "steps", "probes"):
            raise ValueError(f"there is no table '{table}'; expected runs, epochs, evaluations, steps or probes")
        return [row for run in self.list for row in run.rows(table)]

    def where(self, settings: Settings) -> Results:
        """The only run with these settings, such as {"scheme.name": "pipedream", "seed": 2}, as `--where` finds it.

        A value may be that of `runs`, which has it as the sweep's file does, or that of `table()`: of a file, its whole path.
        Raises PipewrightError, which says what several runs differ in.
        """
        wanted = ",".join(f"{key}={self._recorded(key, value)}" for key, value in settings.items())
        return load(call(["list", str(self.folder), "--where", wanted]).strip())

    def _recorded(self, key: str, value: Any) -> str:
        """A setting's value as `--where` takes it. A text of the sweep's file becomes what its runs record, if that is one."""
        if not isinstance(value, str):
            return json_text(key, value)
        found = (
            recorded_options(run.folder).get(name)
            for run in self.list
            for name, written in run.varied.items()
            if written == value and (name == key or name.endswith(f".{key}"))
        )
        texts = {text for text in found if text is not None}
        return texts.pop() if len(texts) == 1 else value

    def table(
        self,
        *,
        metric: str | None = None,
        epoch: str | None = None,
        against: str | None = None,
        hardware: str | os.PathLike[str] | None = None,
        loss: float | None = None,
    ) -> Table:
        """The table of the experiment's runs and its claims, as `pipewright table` makes them.

        `loss` is that which the metrics steps_to, tokens_to and modelled_time_to ask for.
        """
        given = {"metric": metric, "epoch": epoch, "against": against, "hardware": hardware}
        how = [word for name, value in given.items() if value is not None for word in (f"--{name}", os.fspath(value))]
        how += [] if loss is None else ["--set", f"table.loss={loss}"]
        return Table(json.loads(self._ask("table", *how, "--format", "json")), self._ask("table", *how))

    def claims(self) -> list[Row]:
        """Each claim of the experiment with its `verdict`, why, and the numbers of its tests."""
        return self.table().claims

    def report(self, out: str | os.PathLike[str] | None = None, *, hardware: str | os.PathLike[str] | None = None) -> Path:
        """Writes the HTML page of `pipewright report` and returns its path; without `out` it is report.html in the folder."""
        page = self.folder / "report.html" if out is None else Path(out)
        how = ["--output", str(page)] if out is not None else []
        how += [] if hardware is None else ["--hardware", os.fspath(hardware)]
        if self.origin is None or self._is_run():
            call(["report", str(self.folder), *how])
        else:
            self._ask("report", *how)
        return page

    def load_weights(self, module: torch.nn.Module, *, untied: bool = False) -> None:
        """Puts the weights that this run has trained into the PyTorch module that import_model() has exported for it.

        `untied` says that the module has parameters of its own where `untie` made them. Needs torch and safetensors.
        Raises ValueError for several runs and for other models, PipewrightError for weights that do not fit.
        """
        from .importer import load_weights

        if len(self.list) != 1:
            raise ValueError(f"{self.folder} has {len(self.list)} runs; expected one, which where() chooses")
        folder = self.list[0].folder
        load_weights(module, _imported_model(folder), folder / "final.safetensors", untied)

    def _is_run(self) -> bool:
        return [run.folder for run in self.list] == [self.folder]

    def _ask(self, command: str, *arguments: str) -> str:
        if self.origin is None:
            raise ValueError(f"{command} needs the experiment of these runs; load(folder, experiment) says which it is")
        return self.origin.ask(command, "--out", str(self.folder), *arguments)

    def _frame(self, table: str) -> pandas.DataFrame:
        return _data_frame(self.rows(table), f"rows({table!r})")

    @property
    def runs(self) -> pandas.DataFrame:
        """A row a run: its settings that vary, its state, and the metrics of its last epoch."""
        return self._frame("runs")

    @property
    def epochs(self) -> pandas.DataFrame:
        """A row for each epoch of each run. Epochs count from 0, accuracies are parts of 1."""
        return self._frame("epochs")

    @property
    def evaluations(self) -> pandas.DataFrame:
        """A row for each evaluation inside a training (`train.evaluate`), by mini-batches, samples and tokens."""
        return self._frame("evaluations")

    @property
    def steps(self) -> pandas.DataFrame:
        """A row for each mini-batch of each run, with its loss, and `lr` where the rate changes per step."""
        return self._frame("steps")

    @property
    def probes(self) -> pandas.DataFrame:
        """A row for each number that a probe measured: epoch, minibatch, stage, probe, quantity, value."""
        return self._frame("probes")


def _imported_model(run: Path) -> Path:
    """The folder that a run's model `graph` was imported into, as its experiment.yaml says."""
    options = recorded_options(run)
    if options.get("model.name") != "graph" or "model.file" not in options:
        raise ValueError(f"the model of {run} is none that import_model() has exported")
    return Path(options["model.file"])


def _runs_of_today(origin: Origin, folder: Path, runs: list[Run]) -> list[Run]:
    """Those runs in the folder that the experiment has now, which `pipewright list` names."""
    listed = origin.ask("list", "--out", str(folder)).splitlines()
    kept = [run for run in runs if any(line.startswith(f"  {run.folder}  ") for line in listed)]
    if len(kept) < len(runs):
        left_out = f"{len(runs) - len(kept)} run(s) of another version of the experiment, or of other settings"
        warnings.warn(f"{folder}: {left_out}, are left out; load() without the experiment has them all", stacklevel=3)
    return kept


def with_differing_options(runs: list[Run]) -> list[Run]:
    """The runs with what they differ in although their sweep does not vary it, by the rule of the program
    (core/tables/differing_options.cpp): options that follow from those that vary are left out where equal runs agree in them.
    """
    varied = {key for run in runs for key in run.varied}
    if not varied:
        return runs
    options = [(run, _compared_options(run.folder)) for run in runs]
    known = [(run, of_run) for run, of_run in options if of_run]
    anywhere: set[str] = set()
    among_equals: set[str] = set()
    firsts: dict[str, Row] = {}
    for run, of_run in known:
        settings = str([pair for pair in run.varied.items() if pair[0] not in ("label", "train.seed")])
        anywhere |= _differences(known[0][1], of_run)
        among_equals |= _differences(firsts.setdefault(settings, of_run), of_run)
    keys = sorted(
        key for key in anywhere - varied if key in among_equals or not any(_follows(key, each) for each in varied)
    )
    return [
        dataclasses.replace(run, varied=run.varied | {key: of_run[key] for key in keys if key in of_run})
        for run, of_run in options
    ]


def _compared_options(folder: Path) -> Row:
    own = ("name", "pipeline.balance", "pipeline.memory_format")
    return {
        key: value_of(text)
        for key, text in recorded_options(folder).items()
        if key not in own and not key.startswith("output.")
    }


def _differences(a: Row, b: Row) -> set[str]:
    return {key for key in {**a, **b} if a.get(key) != b.get(key)}


def _follows(key: str, varied: str) -> bool:
    """Whether an option is the varied one, lies within its value, or follows from it."""
    part = varied[: -len(".name")] if varied.endswith(".name") else varied
    return key == varied or key.startswith(f"{part}.") or (varied.startswith("dataset.") and key.startswith("model."))


def load(
    folder: str | os.PathLike[str],
    experiment: Experiment | None = None,
    *,
    settings: Settings | None = None,
    profile: str | None = None,
    plugins: Sequence[str] = (),
) -> Results:
    """Reads the folder of a run or of a sweep, also while it works. Raises FileNotFoundError if it is neither.

    Runs that were killed are `interrupted`, and those whose record cannot be read `failed`, as `pipewright list` has them.
    `experiment`, `settings` and `profile` are those of the sweep, for `table()`, `claims()` and `report()`. With them, runs
    of another version of the experiment, which no table has, are left out; without, settings in which such runs differ are
    columns.
    """
    path = Path(folder)
    origin = None if experiment is None else Origin(experiment, settings, profile, plugins)
    runs = [Run.read(each) for each in run_folders(path)] if path.is_dir() else []
    sweeps = ", ".join(str(each) for each in sweeps_in(path)) if path.is_dir() else ""
    if not runs and not (path / MARKER).is_file():
        raise FileNotFoundError(f"{path} is no folder of a run or of a sweep" + (f"; these are: {sweeps}" if sweeps else ""))
    if sweeps and [run.folder for run in runs] != [path]:
        warnings.warn(f"{path}: runs of sweeps in folders of their own are left out: {sweeps}", stacklevel=2)
    if origin is not None and [run.folder for run in runs] != [path]:
        runs = _runs_of_today(origin, path, runs)
    runs = with_differing_options(runs)
    return Results(path, sorted(runs, key=lambda run: run.point if run.point > 0 else math.inf), origin)
