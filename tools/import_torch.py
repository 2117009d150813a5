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

A forward of several tensors has an --input for each, with its name: --input tokens=128:int64 --input mask=128:bool. The
data set then has a tensor of each name. docs/formats/graph.md describes the files. Whatever this program cannot express is refused in one line. Of a module with
several outputs the one called logits is trained; --output chooses another. tools/to_pytorch.py gives trained weights
back to the module.
"""

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

import torch
from importing.evaluation import remark_on_evaluation
from importing.export import FORMAT, Export
from importing.files import write, write_safetensors
from importing.inputs import TYPES, call_of, ordered, parsed, sample
from importing.outputs import OneOutput, return_only
from importing.refusal import Refusal
from importing.ties import ties_of, untie
from importing.transformers_models import exportable

OURS = f'{{"format": {FORMAT}, '.encode()  # how a graph.json of this program begins
NAMES = ("graph.json", "weights.safetensors", "constants.safetensors", "rest.safetensors")


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


def prepare(module, choose):
    """Makes a module ready to be exported in training."""
    if not module.training:  # as from_pretrained() leaves it; a training module may have parts that are not
        module.train()
    return_only(module, choose)


def exported(module, inputs):
    given, by_name = call_of(inputs, [sample(each, vocabulary=1) for each in inputs])
    batch = {0: torch.export.Dim("batch", min=2)}
    shapes = {name: batch for name in by_name} if by_name else (batch,)
    try:
        with exportable(module):
            return torch.export.export(module, given, by_name, dynamic_shapes=shapes, strict=False)
    except Refusal:
        raise
    except Exception as error:  # torch.export has no common class of them
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        raise Refusal(f"torch.export cannot export the module: {type(error).__name__}: {lines[0]}") from error


def remarks(export, document, module, inputs, choose):
    """What a user should know about an import."""
    if choose.remark:
        yield choose.remark
    for name, known in export.ties.items():
        yield f"'{known}' and '{name}' are one parameter, so no cut lies between their uses (--untie makes two of them)"
    frozen = [name for name in export.constants if name in dict(module.named_parameters())]
    if frozen:
        yield f"parameters that require no gradient are left as they are: {len(frozen)}, the first '{frozen[0]}'"
    written = [document["input"], *document.get("further_inputs", [])]
    samples = [sample(each, described["vocabulary"]) for each, described in zip(inputs, written)]
    if remark := remark_on_evaluation(export.program, module, *call_of(inputs, samples)):
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


def import_module(module, inputs, out, output=None, separate=False):
    """Writes the folder. Returns what there is to say of it, a line each."""
    refuse_foreign(out)
    inputs = ordered(module, inputs)
    choose = OneOutput(output)
    prepare(module, choose)
    if separate:
        untie(module)
    export = Export(exported(module, inputs), ties_of(module), [each.name for each in inputs])
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
    return [counts, *(f"remark: {each}" for each in remarks(export, document, module, inputs, choose))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", help="FILE.py:make_model, a function that returns the nn.Module")
    parser.add_argument(
        "--input", required=True, action="append", metavar="[NAME=]SIZES[:TYPE]",
        help="shape of one sample: 3,32,32; number of tokens: 64; once for each tensor that the forward takes, with its name",
    )  # fmt: skip
    parser.add_argument("--dtype", default="float32", choices=TYPES, help="type of inputs without one; int64 for tokens")
    parser.add_argument("--output", metavar="NAME", help="the output to train, of a module that returns several: a name or a position")
    parser.add_argument("--untie", action="store_true", help="parameters that share memory become parameters of their own")
    parser.add_argument("--out", required=True, type=Path, help="folder to write")
    given = parser.parse_args()
    try:
        inputs = [parsed(text, given.dtype) for text in given.input]
        module = made_by(given.module)
        for line in import_module(module, inputs, given.out, given.output, given.untie):
            print(line)
    except Refusal as refusal:
        sys.exit(f"import_torch: {refusal}")
    except OSError as error:
        sys.exit(f"import_torch: {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
