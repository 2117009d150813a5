# SPDX-License-Identifier: Apache-2.0
"""The program's commands: what trains, and what says something of an experiment without a training."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .program import Experiment, Origin, Settings, call, experiment_file, options
from .results import Results, Table, load


def _name(experiment: Experiment) -> str:
    if isinstance(experiment, Mapping):
        return str(experiment.get("name", "experiment"))
    return Path(experiment).stem


def _train(
    command: str,
    experiment: Experiment,
    out: str | os.PathLike[str] | None,
    how: Sequence[str],
    settings: Settings | None,
    profile: str | None,
    plugins: Sequence[str],
    progress: bool,
) -> Results:
    folder = Path("runs") / _name(experiment) if out is None else Path(out)
    with experiment_file(experiment) as file:
        call([command, file, "--out", str(folder), *how, *options(settings, profile, plugins)], progress=progress)
    return load(folder, experiment, settings=settings, profile=profile, plugins=plugins)


def run(
    experiment: Experiment,
    *,
    out: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    profile: str | None = None,
    plugins: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Results:
    """Trains one experiment and returns its results.

    `out` is the run's folder; without one it is runs/ and the experiment's name, of a file its name without the ending.
    `resume` goes on at the last checkpoint, `overwrite` begins anew. Raises PipewrightError.
    """
    how = [flag for flag, given in (("--resume", resume), ("--overwrite", overwrite)) if given]
    return _train("run", experiment, out, how, settings, profile, plugins, progress)


def sweep(
    experiment: Experiment,
    *,
    out: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    profile: str | None = None,
    plugins: Sequence[str] = (),
    jobs: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Results:
    """Trains all points of an experiment's sweep, `jobs` at once, and returns their results; see run()."""
    how = [flag for flag, given in (("--resume", resume), ("--overwrite", overwrite)) if given]
    if jobs is not None:
        how += ["--jobs", str(jobs)]
    return _train("sweep", experiment, out, how, settings, profile, plugins, progress)


def check(
    experiment: Experiment,
    *,
    settings: Settings | None = None,
    profile: str | None = None,
    plugins: Sequence[str] = (),
) -> str:
    """Does everything short of training and returns what the program says of the experiment. Raises PipewrightError."""
    return Origin(experiment, settings, profile, plugins).ask("check")


def claims(*tables: Table, only: Sequence[str] = ()) -> dict[str, Any]:
    """The claims of several tables, decided together as one family; as `pipewright claims` prints it.

    `only` takes the claims whose sentences begin with one of these words and a colon.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(tables))]
        for file, table in zip(files, tables):
            file.write_text(json.dumps(table.content), encoding="utf-8")
        how = ["--only", ",".join(only)] if only else []
        answer: dict[str, Any] = json.loads(call(["claims", *map(str, files), *how]))
        return answer


def stability(
    experiment: Experiment,
    *,
    sweep: bool = False,
    run: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    profile: str | None = None,
    plugins: Sequence[str] = (),
) -> dict[str, Any]:
    """The largest learning rate that each stage tolerates, or with `sweep` each point; as `stability --format json` says it.

    It has `stages`, or with optimizer.groups the `groups`, each with its stages. `run` is the folder of a run of the
    experiment, whose probe `sharpness` has measured. Raises PipewrightError.
    """
    how = (["--sweep"] if sweep else []) + ([] if run is None else ["--run", os.fspath(run)])
    answer: dict[str, Any] = json.loads(Origin(experiment, settings, profile, plugins).ask("stability", "--format", "json", *how))
    return answer


def simulate(
    experiment: Experiment,
    hardware: Experiment | None = None,
    *,
    sweep: bool = False,
    settings: Settings | None = None,
    profile: str | None = None,
    plugins: Sequence[str] = (),
) -> dict[str, Any]:
    """The training in virtual time, or with `sweep` that of each point; as `simulate --json` says it.

    `hardware` is a file, a name of `pipewright list hardware`, or a mapping. Raises PipewrightError.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        figures = Path(folder) / "figures.json"
        how = ["--sweep"] if sweep else []
        if hardware is not None:
            how += ["--hardware", stack.enter_context(experiment_file(hardware))]
        Origin(experiment, settings, profile, plugins).ask("simulate", "--json", str(figures), *how)
        answer: dict[str, Any] = json.loads(figures.read_text(encoding="utf-8"))
        return answer
