# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch, exported by the program's own tools/import_torch.py."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Union

from .program import PipewrightError, find_program

if TYPE_CHECKING:
    import torch

    Example = Union[torch.Tensor, Sequence[int]]

EXPERIMENT_IS_WRONG = 2  # exit code


def _tools() -> Path:
    """The folder of import_torch.py: beside the build folder of a checkout, or in share/pipewright of an installation."""
    program = Path(find_program()).resolve()
    places = [program.parents[1] / "tools", program.parents[1] / "share" / "pipewright" / "tools"]
    places.append(Path(__file__).resolve().parents[2] / "tools")
    for place in places:
        if (place / "import_torch.py").is_file():
            return place
    raise FileNotFoundError(f"import_torch.py is in none of {', '.join(map(str, places))}; install Pipewright again")


def _loaded() -> ModuleType:
    tools = _tools()
    if str(tools) not in sys.path:
        sys.path.append(str(tools))  # for the modules that it consists of
    loaded = importlib.util.spec_from_file_location("pipewright_import_torch", tools / "import_torch.py")
    assert loaded is not None and loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    return module


def import_model(
    module: torch.nn.Module,
    example: Example,
    out: str | os.PathLike[str],
    *,
    output: str | int | None = None,
    untie: bool = False,
) -> dict[str, Any]:
    """Exports a PyTorch module into the folder `out` and returns the `model` section of experiments that train it.

    `example` is a batch as the module takes it, or the shape of one sample of floats. `output` chooses one of several
    outputs, by name or position; `untie` makes parameters that share memory parameters of their own. What a user should
    know of the import comes as warnings. Needs torch. Raises PipewrightError for what cannot be imported.
    """
    import torch

    tool = _loaded()
    if isinstance(example, torch.Tensor):
        shape, dtype = list(example.shape[1:]), example.dtype
    else:
        shape, dtype = list(example), torch.float32
    folder = Path(out).resolve()
    try:
        remarks = tool.import_module(module, shape, dtype, folder, None if output is None else str(output), untie)[1:]
    except tool.Refusal as refusal:
        raise PipewrightError(EXPERIMENT_IS_WRONG, str(refusal)) from refusal
    for remark in remarks:
        warnings.warn(remark.removeprefix("remark: "), stacklevel=2)
    return {"name": "graph", "file": str(folder), "weights": str(folder / "weights.safetensors")}
