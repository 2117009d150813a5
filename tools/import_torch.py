#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a PyTorch module into a folder that the model `graph` trains. The training itself needs no Python.

    tools/import_torch.py FILE.py:make_model --input 3,32,32 --out net/

calls make_model() of FILE.py, which returns an nn.Module, and exports its training with torch.export (tested with torch
2.11). net/ then has

    graph.json               the operators of the module's forward, in order
    weights.safetensors      parameters and batch-norm statistics under the module's own names
    constants.safetensors    other tensors that the module reads, if there are any
    rest.safetensors         what the module's state has beside these, if there is any

docs/formats/graph.md describes them. Whatever this program cannot express is refused in one line. Of a module with
several outputs the one called logits is trained; --output chooses another. tools/to_pytorch.py gives trained weights
back to the module.
"""

import argparse
import importlib.util
import inspect
import json
import os
import sys
from pathlib import Path

import torch
from importing.evaluation import remark_on_evaluation
from importing.export import FORMAT, Export
from importing.files import write, write_safetensors
from importing.outputs import OneOutput, return_only
from importing.refusal import Refusal
from importing.ties import ties_of, untie
from importing.transformers_models import exportable

OURS = f'{{"format": {FORMAT}, '.encode()  # how a graph.json of this program begins
NAMES = ("graph.json", "weights.safetensors", "constants.safetensors", "rest.safetensors")
SAMPLE_BATCH = 4  # not 1, which torch.export would take for a constant


def made_by(spec):
    """Calls make_model of "FILE.py:make_model"."""
    file, _, function = spec.rpartition(":")
    path = Path(file)
    if not function or not path.is_file():
        raise Refusal(f"'{spec}' names no file and function; expected FILE.py:make_model")
    sys.path.insert(0, str(path.resolve().parent))
    loaded = importlib.util.spec_from_file_location(path.stem, path)
    python = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(python)
    if not hasattr(python, function):
        raise Refusal(f"{file} has no function '{function}'")
    module = getattr(python, function)()
    if not isinstance(module, torch.nn.Module):
        raise Refusal(f"{function}() returns {type(module).__name__}; expected an nn.Module")
    return module


def check_arguments(module):
    """Refuses a forward that takes more than one tensor."""
    empty = inspect.Parameter.empty
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(module.forward).parameters.values()
    needed = [each.name for each in parameters if each.kind in positional and each.default is empty]
    if len(needed) > 1:
        raise Refusal(
            f"the module's forward takes {', '.join(needed)}; expected one tensor, from which a wrapper may make the others "
            "(mask = tokens != 0)"
        )


def prepare(module, choose):
    """Makes a module ready to be exported in training."""
    check_arguments(module)
    if not module.training:  # as from_pretrained() leaves it; a training module may have parts that are not
        module.train()
    return_only(module, choose)


def exported(module, shape, dtype):
    size = (SAMPLE_BATCH, *shape)
    sample = torch.zeros(size, dtype=dtype) if dtype == torch.int64 else torch.randn(size, dtype=dtype)
    batch = torch.export.Dim("batch", min=2)
    try:
        with exportable(module):
            return torch.export.export(module, (sample,), dynamic_shapes=({0: batch},), strict=False)
    except Refusal:
        raise
    except Exception as error:  # torch.export has no common class of them
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        raise Refusal(f"torch.export cannot export the module: {type(error).__name__}: {lines[0]}") from error


def sample_of(document):
    size = (SAMPLE_BATCH, *document["input"]["shape"])
    if document["input"]["vocabulary"]:
        return torch.randint(document["input"]["vocabulary"], size)
    return torch.randn(size, dtype=getattr(torch, document["input"]["type"]))


def remarks(export, document, module, choose):
    """What a user should know about an import."""
    if choose.remark:
        yield choose.remark
    for name, known in export.ties.items():
        yield f"'{known}' and '{name}' are one parameter, so no cut lies between their uses (--untie makes two of them)"
    frozen = [name for name in export.constants if name in dict(module.named_parameters())]
    if frozen:
        yield f"parameters that require no gradient are left as they are: {len(frozen)}, the first '{frozen[0]}'"
    if remark := remark_on_evaluation(export.program, module, sample_of(document)):
        yield remark


def refuse_foreign(out):
    """A folder may be written again if this program has written it, which its graph.json shows."""
    try:
        with open(out / "graph.json", "rb") as graph:
            ours = graph.read(len(OURS)) == OURS
    except FileNotFoundError:
        ours = False
    found = [name for name in NAMES if os.path.lexists(out / name)]
    if found and not ours:
        raise Refusal(f"{out} has a file {found[0]}, but no graph.json of an import; give another --out")


def write_or_remove(path, tensors):
    if tensors:
        write_safetensors(path, tensors)
    else:  # that of an earlier import
        path.unlink(missing_ok=True)


def import_module(module, shape, dtype, out, output=None, separate=False):
    """Writes the folder. Returns what there is to say of it, a line each."""
    refuse_foreign(out)
    choose = OneOutput(output)
    prepare(module, choose)
    if separate:
        untie(module)
    export = Export(exported(module, shape, dtype), ties_of(module))
    document = export.document()
    document["state"], rest = export.state(module)
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(out / "weights.safetensors", export.weights | export.buffers)
    write_or_remove(out / "constants.safetensors", export.constants)
    write_or_remove(out / "rest.safetensors", rest)
    nodes = ",\n".join(json.dumps(node, allow_nan=False) for node in document.pop("nodes"))
    head = json.dumps(document, allow_nan=False)
    write(out / "graph.json", f'{head[:-1]},\n"nodes": [\n{nodes}\n]}}\n'.encode())
    counts = f"{out}: {len(export.nodes)} operators, {len(document['parameters'])} parameters"
    return [counts, *(f"remark: {each}" for each in remarks(export, document, module, choose))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", help="FILE.py:make_model, a function that returns the nn.Module")
    parser.add_argument("--input", required=True, help="shape of one sample: 3,32,32; number of tokens: 64")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64", "int64"], help="type of the input; int64 for tokens")
    parser.add_argument("--output", metavar="NAME", help="the output to train, of a module that returns several: a name or a position")
    parser.add_argument("--untie", action="store_true", help="parameters that share memory become parameters of their own")
    parser.add_argument("--out", required=True, type=Path, help="folder to write")
    given = parser.parse_args()
    try:
        try:
            shape = [int(size) for size in given.input.split(",")]
        except ValueError:
            raise Refusal(f"--input is '{given.input}'; expected sizes such as 3,32,32") from None
        module = made_by(given.module)
        for line in import_module(module, shape, getattr(torch, given.dtype), given.out, given.output, given.untie):
            print(line)
    except Refusal as refusal:
        sys.exit(f"import_torch: {refusal}")
    except OSError as error:
        sys.exit(f"import_torch: {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
