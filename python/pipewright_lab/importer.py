# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch, exported by the program's own tools/import_torch.py, and their weights by tools/to_pytorch.py."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Union

from .program import PipewrightError, find_program

if TYPE_CHECKING:
    import torch

    Example = Union[torch.Tensor, Mapping[str, torch.Tensor], Sequence[int]]

EXPERIMENT_IS_WRONG, DATA_ARE_WRONG = 2, 3  # exit codes


def _tools() -> Path:
    """The folder of import_torch.py: beside the build folder of a checkout, or in share/pipewright of an installation."""
    program = Path(find_program()).resolve()
    places = [program.parents[1] / "tools", program.parents[1] / "share" / "pipewright" / "tools"]
    places.append(Path(__file__).resolve().parents[2] / "tools")
    for place in places:
        if (place / "import_torch.py").is_file():
            return place
    raise FileNotFoundError(f"import_torch.py is in none of {', '.join(map(str, places))}; install Pipewright again")


def _loaded(name: str) -> ModuleType:
    tools = _tools()
    if str(tools) not in sys.path:
        sys.path.append(str(tools))  # for the modules that it consists of
    loaded = importlib.util.spec_from_file_location(f"pipewright_{name}", tools / f"{name}.py")
    assert loaded is not None and loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    return module


def _inputs(example: Example) -> list[Any]:
    """What import_torch.py is told of the tensors that the module takes."""
    import torch

    described = importlib.import_module("importing.inputs").Input
    if isinstance(example, torch.Tensor):
        return [described(tuple(example.shape[1:]), example.dtype)]
    if isinstance(example, Mapping):
        return [described(tuple(each.shape[1:]), each.dtype, name) for name, each in example.items()]
    return [described(tuple(example))]


def import_model(
    module: torch.nn.Module,
    example: Example,
    out: str | os.PathLike[str],
    *,
    output: str | int | None = None,
    untie: bool = False,
) -> dict[str, Any]:
    """Exports a PyTorch module into the folder `out` and returns the `model` section of experiments that train it.

    `example` is a batch as the module takes it, a mapping from names of its forward's parameters to such batches where it
    takes several, or the shape of one sample of floats. `output` chooses one of several
    outputs, by name or position; `untie` makes parameters that share memory parameters of their own. What a user should
    know of the import comes as warnings. Needs torch. Raises PipewrightError for what cannot be imported.
    """
    tool = _loaded("import_torch")
    folder = Path(out).resolve()
    try:
        remarks = tool.import_module(module, _inputs(example), folder, None if output is None else str(output), untie)[1:]
    except tool.Refusal as refusal:
        raise PipewrightError(EXPERIMENT_IS_WRONG, str(refusal)) from refusal
    for remark in remarks:
        warnings.warn(remark.removeprefix("remark: "), stacklevel=2)
    return {"name": "graph", "file": str(folder), "weights": str(folder / "weights.safetensors")}


def load_weights(module: torch.nn.Module, imported: Path, trained: Path, untied: bool) -> None:
    """Puts trained weights into the module that import_model() has exported into the folder `imported`.

    Raises PipewrightError as tools/to_pytorch.py refuses.
    """
    from safetensors.torch import load_file

    tool = _loaded("to_pytorch")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trained.safetensors"
        try:
            tool.write(file, tool.state(imported, trained, untied))
        except tool.Refused as refusal:
            raise PipewrightError(DATA_ARE_WRONG, str(refusal)) from refusal
        module.load_state_dict(load_file(str(file)))
