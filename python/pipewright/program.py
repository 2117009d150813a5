# SPDX-License-Identifier: Apache-2.0
"""The program: where it is, and how it is called."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Union

from .results import Results, load

Experiment = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""An experiment file, or its content as a mapping."""

Settings = Mapping[str, Any]
"""Dotted keys and their values, as after --set: {"optimizer.lr": 0.1}."""


class PipewrightError(RuntimeError):
    """The program ended with an error. `code` is its exit code, `args[0]` what it said."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def find_program() -> str:
    """The program's path: PIPEWRIGHT_BINARY, else `pipewright` on the PATH, else that of a checkout's build folder.

    Raises FileNotFoundError if there is none.
    """
    named = os.environ.get("PIPEWRIGHT_BINARY")
    if named:
        return named
    found = shutil.which("pipewright")
    if found:
        return found
    built = Path(__file__).resolve().parents[2] / "build" / "pipewright"
    if built.is_file():
        return str(built)
    raise FileNotFoundError(
        "the program pipewright is not on the PATH; install it, or set PIPEWRIGHT_BINARY to its path"
    )


def call(arguments: Sequence[str], *, progress: bool = False) -> str:
    """Calls the program and returns its standard output.

    `progress` passes its messages on while it works. Raises PipewrightError with what it said if its exit code is not 0.
    """
    process = subprocess.Popen(
        [find_program(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        output, said = _both(process, progress)
    except BaseException:  # Ctrl-C: the program saves its state and ends by itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        raise
    if process.returncode != 0:
        raise PipewrightError(process.returncode, said.strip() or output.strip())
    return output


def _both(process: subprocess.Popen[str], progress: bool) -> tuple[str, str]:
    if not progress:
        return process.communicate()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        copier = subprocess.Popen(["cat"], stdin=process.stdout, stdout=output)
        said = []
        errors: IO[str] = process.stderr  # type: ignore[assignment]
        for line in errors:
            said.append(line)
            sys.stderr.write(line)
        process.wait()
        copier.wait()
        output.seek(0)
        return output.read(), "".join(said)


@contextlib.contextmanager
def experiment_file(experiment: Experiment) -> Iterator[str]:
    """The path of an experiment file; of a mapping, a file in the working directory for as long as it is needed."""
    if not isinstance(experiment, Mapping):
        yield os.fspath(experiment)
        return
    with tempfile.NamedTemporaryFile(
        "w", dir=".", prefix="experiment-", suffix=".yaml", encoding="utf-8", delete=False
    ) as file:
        json.dump(experiment, file, indent=2)  # JSON is YAML, too
    try:
        yield file.name
    finally:
        os.unlink(file.name)


def options(settings: Settings | None, profile: str | None, plugins: Sequence[str]) -> list[str]:
    """Settings, profile and plugins as arguments of the program."""
    arguments = []
    for key, value in (settings or {}).items():
        arguments += ["--set", f"{key}={json.dumps(value)}"]
    if profile is not None:
        arguments += ["--profile", profile]
    for plugin in plugins:
        arguments += ["--plugin", os.fspath(plugin)]
    return arguments


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
    return load(folder)


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
    with experiment_file(experiment) as file:
        return call(["check", file, *options(settings, profile, plugins)])


def version() -> str:
    """The versions of the program and of its LibTorch."""
    return call(["--version"]).strip()
