# SPDX-License-Identifier: Apache-2.0
"""Which folders are those of runs, and what their files say, read as the program reads them (core/records/run_record.cpp)."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARKER, RUN_FILE, POINT_FILE = ".pipewright", "run.json", "point.json"
HOLDER = re.compile(
    rb"Pipewright made this folder\. It deletes and replaces only files of its own names here\.\n"
    rb"Last at work: pid (\d+) on host ([!-~]+)[ -~]*\n"
)
"""The beginning of a marker, with the process that worked in its folder last."""

Row = dict[str, Any]


def run_folders(folder: Path) -> list[Path]:
    """The folders of the runs that a folder stands for, which `pipewright list` names.

    They are those of a sweep that lie in it; else its own run; else the runs that lie in it. A link to a folder is none.
    """
    inner = sorted(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink() and _is_run(each))
    of_sweep = [each for each in inner if _is_there(each / POINT_FILE)]
    if not of_sweep:
        return [folder] if _is_run(folder) else inner
    others = [each.name for each in inner if each not in of_sweep]
    if others:
        said = f"{folder}: runs without {POINT_FILE} are left out, because they are not known to be of the sweep: "
        warnings.warn(said + ", ".join(others), stacklevel=3)
    return of_sweep


def sweeps_in(folder: Path) -> list[Path]:
    """The folders in this one that hold runs but are no runs themselves."""
    inner = sorted(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink() and os.access(each, os.R_OK | os.X_OK))
    return [each for each in inner if not _is_run(each) and any(_is_run(run) for run in each.iterdir() if run.is_dir())]


def read_record(folder: Path) -> tuple[Row, Row]:
    """The contents of run.json, with the state that the run is really in, and of point.json.

    The state is `missing` without run.json. A file that cannot be read makes the run `failed`, with an `error` that names
    the file. A run that was killed is `failed` if its sweep has recorded that, else `interrupted`.
    """
    record = _recorded(folder)  # before point.json, whose error a sweep removes before it starts the run again
    try:
        point = _mapping_in(folder / POINT_FILE) or {}
    except ValueError as fault:
        errors = [str(each) for each in (record.get("error"), fault) if each]
        return {**record, "state": "failed", "error": "; ".join(errors)}, {}
    error = point.get("error")
    if record["state"] in ("missing", "running") and isinstance(error, str) and error:
        record = {**record, "state": "failed", "error": error}
    elif record["state"] == "running" and is_free(folder):
        record = _recorded(folder)  # again: it may have ended in the meantime
        if record["state"] == "running":
            record["state"] = "interrupted"
    return record, point


def is_free(folder: Path) -> bool:
    """Whether certainly no process works in the folder, as core/system/folder_lock.cpp decides it: it has no marker, or the
    marker can be locked and names a process of this host, because some file systems show a lock to one host only.
    """
    try:
        marker = os.open(folder / MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    try:
        fcntl.flock(marker, fcntl.LOCK_SH | fcntl.LOCK_NB)
        holder = HOLDER.match(os.read(marker, 512))
        fcntl.flock(marker, fcntl.LOCK_UN)  # here, because a process that was forked meanwhile has the file open, too
    except OSError:
        return False
    finally:
        os.close(marker)
    return holder is not None and int(holder[1]) > 0 and holder[2] == os.fsencode(os.uname().nodename)


def rows_of(file: Path) -> Iterator[Row]:
    """The rows of a CSV file; none if there is no such file. A last line that has no line feed yet is left out.

    Raises ValueError, which names the file, if it is no text.
    """
    if not file.is_file():
        return
    try:
        with open(file, newline="\n", encoding="utf-8") as opened:
            reader = csv.reader(line for line in opened if line.endswith("\n"))
            header = next(reader, [])
            for fields in reader:
                if len(fields) == len(header):
                    yield {name: value_of(text) for name, text in zip(header, fields)}
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{file}: {error}") from error


def recorded_options(folder: Path) -> dict[str, str]:
    """The options of a run's experiment.yaml by their dotted keys: those that stand in one line, texts without quotes.

    There are none before the run has begun.
    """
    try:
        lines = (folder / "experiment.yaml").read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return {}
    path: list[str] = []
    options = {}
    for line in lines:
        found = re.match(r"((?:  )*)(\w+):(?: (.+))?$", line)
        depth = len(found[1]) // 2 if found else 0
        if found is None or depth > len(path):  # within a list
            continue
        path = [*path[:depth], found[2]]
        if found[3] is not None:
            options[".".join(path)] = _without_quotes(found[3])
    return options


def _without_quotes(text: str) -> str:
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text


def _is_run(folder: Path) -> bool:
    return _is_there(folder / RUN_FILE) or _is_there(folder / POINT_FILE)


def _is_there(path: Path) -> bool:
    """Whether a path exists. One that cannot be examined counts as existing, so that reading it says why."""
    try:
        path.stat()
    except OSError as error:
        return not isinstance(error, (FileNotFoundError, NotADirectoryError))
    return True


def _recorded(folder: Path) -> Row:
    file = folder / RUN_FILE
    try:
        record = _mapping_in(file)
    except ValueError as fault:
        return {"state": "failed", "error": str(fault)}
    if record is None:
        return {"state": "missing"}
    if isinstance(record.get("state"), str) and record["state"]:
        return record
    return {**record, "state": "failed", "error": f"{file}: has no state"}


def _mapping_in(file: Path) -> Row | None:
    """The mapping in a JSON file, empty if there is something else in it; None if there is no such file.

    Raises ValueError, which names the file, if it cannot be read.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe would block
            raise ValueError(f"{file}: cannot be read: it is no plain file")
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from error
    try:
        content = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: is no JSON: {error}") from error
    return content if isinstance(content, dict) else {}


def value_of(text: str) -> Any:
    """A field of a CSV file, or an option, as a number if it is one; None if it is empty."""
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
