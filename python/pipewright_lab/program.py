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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Union

from .start import own_program

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
    """The program's path: PIPEWRIGHT_BINARY, else that of this wheel, of this checkout's build folder, or of the PATH.

    Raises FileNotFoundError if there is none.
    """
    return _program()[0]


def _program() -> tuple[str, dict[str, str]]:
    """The program's path, and the variables that it needs in its environment."""
    named = os.environ.get("PIPEWRIGHT_BINARY")
    if named:
        return named, {}
    own = own_program()
    if own is not None:
        return str(own[0]), own[1]
    built = Path(__file__).resolve().parents[2] / "build" / "pipewright"
    if built.is_file():
        return str(built), {}
    found = shutil.which("pipewright")
    if found:
        return found, {}
    raise FileNotFoundError(
        "the program pipewright is not on the PATH; install it, or set PIPEWRIGHT_BINARY to its path"
    )


def call(arguments: Sequence[str], *, progress: bool = False) -> str:
    """Calls the program and returns its standard output.

    `progress` passes its messages on while it works. Raises PipewrightError with what it said if its exit code is not 0.
    """
    program, variables = _program()
    process = subprocess.Popen(
        [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env=os.environ | variables,
    )  # fmt: skip
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


def json_text(key: str, value: Any) -> str:
    """A value as the program reads it; NumPy's numbers are numbers."""
    try:
        return json.dumps(value, default=lambda other: other.item())
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"{key} is {value!r}; expected a number, a text, true or false, or a list or mapping of these") from error


def options(settings: Settings | None, profile: str | None, plugins: Sequence[str]) -> list[str]:
    """Settings, profile and plugins as arguments of the program."""
    arguments = []
    for key, value in (settings or {}).items():
        arguments += ["--set", f"{key}={json_text(key, value)}"]
    if profile is not None:
        arguments += ["--profile", profile]
    for plugin in plugins:
        arguments += ["--plugin", os.fspath(plugin)]
    return arguments


@dataclass(frozen=True)
class Origin:
    """The experiment that runs are of, as the program was told of it."""

    experiment: Experiment
    settings: Settings | None = None
    profile: str | None = None
    plugins: Sequence[str] = ()

    def ask(self, command: str, *arguments: str) -> str:
        """What the program prints when the command is given the experiment."""
        with experiment_file(self.experiment) as file:
            return call([command, file, *arguments, *options(self.settings, self.profile, self.plugins)])


def version() -> str:
    """The versions of the program and of its LibTorch."""
    return call(["--version"]).strip()
