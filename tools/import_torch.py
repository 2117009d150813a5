#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a PyTorch module into a folder that the model `graph` trains. The training itself needs no Python.

    tools/import_torch.py FILE.py:make_model --input 3,32,32 --out net/

calls make_model() of FILE.py, which returns an nn.Module, and exports its training with torch.export (tested with torch
2.9 to 2.11). net/ then has

    graph.json               the operators of the module's forward, in order
    weights.safetensors      parameters and batch-norm statistics under the module's own names
    constants.safetensors    other tensors that the module reads, if there are any
    rest.safetensors         what the module's state has beside these, if there is any

A forward of several tensors has an --input for each, with its name: --input tokens=128:int64 --input mask=128:bool. The
data set then has a tensor of each name. docs/formats/graph.md describes the files. Of a module with several outputs the
one called logits is trained; --output chooses another. A module that is wholly in evaluation is put into training; one of
which any part is in training keeps the mode of each. tools/to_pytorch.py gives trained weights back to the module.

Whatever cannot be expressed is refused in one line, before anything is written.
Exit codes: 0 fine, 1 the module cannot be imported, 2 wrong arguments, 130 interrupted.
"""

import argparse
import importlib.util
import io
import json
import logging
import os
import sys
import sysconfig
import traceback
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    sys.exit("import_torch.py: this Python has no torch, which the model is imported with")
from importing.evaluation import remark_on_evaluation
from importing.export import FORMAT, Export
from importing.files import part_of, replace_all, safetensors
from importing.inputs import TYPES, call_of, ordered, parsed, sample
from importing.modes import check_module, own_backwards, train_if_in_evaluation
from importing.outputs import OneOutput, return_only
from importing.refusal import Refusal, in_a_line, line_of
from importing.ties import ties_of, untie
from importing.transformers_models import exportable

OURS = f'{{"format": {FORMAT}, '.encode()  # how a graph.json of this program begins
OWN = "the function '{}' has a backward of its own, which a graph has not: gradients here are those of what its forward computes"
NOT_OWN = (str(Path(__file__).resolve().parent), sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"])  # of no author
TORCH = str(Path(torch.__file__).parent)
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
    module = getattr(python, function)()  # which may raise anything
    if not isinstance(module, torch.nn.Module):
        raise Refusal(f"{function}() returns {type(module).__name__}; expected an nn.Module")
    return module


@contextmanager
def quiet_if_it_fails():
    """Where torch.export fails it prints and logs the graph so far; its error says what a person needs. Otherwise what is printed stays."""
    said, complained, before = io.StringIO(), io.StringIO(), logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(said), redirect_stderr(complained):
            yield
    finally:
        logging.disable(before)
    sys.stdout.write(said.getvalue())
    sys.stderr.write(complained.getvalue())


def advice_on(error):
    if "DataDependent" not in type(error).__name__:
        return ""
    return "; the path or a size depends on the values of a tensor, which a graph cannot have (torch.where chooses by values)"


def exported(module, inputs):
    given, by_name = call_of(inputs, [sample(each, vocabulary=1) for each in inputs])
    batch = {0: torch.export.Dim("batch", min=2)}
    shapes = {name: batch for name in by_name} if by_name else (batch,)
    try:
        with exportable(module), own_backwards() as backwards, quiet_if_it_fails():
            return torch.export.export(module, given, by_name, dynamic_shapes=shapes, strict=False), backwards
    except Refusal:
        raise
    except Exception as error:  # torch.export has no common class of them
        place = line_of(error, NOT_OWN) or line_of(error, (*NOT_OWN[:1], TORCH), within=sysconfig.get_paths()["purelib"])
        raise Refusal(f"{place}torch.export cannot export the module: {in_a_line(error)}{advice_on(error)}") from error


def remarks(export, document, module, inputs, choose):
    """What a user should know about an import."""
    if choose.remark:
        yield choose.remark
    for name, known in export.ties.items():
        yield f"'{known}' and '{name}' are one parameter, so no cut lies between their uses (model.tie lets a cut part them; --untie makes two parameters of them)"
    frozen = [name for name in export.constants if name in dict(module.named_parameters())]
    if frozen:
        yield f"parameters that require no gradient are left as they are: {len(frozen)}, the first '{frozen[0]}'"
    named = {*export.constants, *document["parameters"], *export.ties, *export.ties.values()}
    unused = [name for name, parameter in module.named_parameters() if name not in named]
    if unused:
        yield f"parameters that the output does not depend on are left out: {len(unused)}, the first '{unused[0]}'"
    written = [document["input"], *document.get("further_inputs", [])]
    samples = [sample(each, described["vocabulary"]) for each, described in zip(inputs, written)]
    if remark := remark_on_evaluation(export.program, module, *call_of(inputs, samples)):
        yield remark


def refuse_foreign(out):
    """A folder may be written again if this program has written it, which its graph.json shows, or the part file of it."""
    ours = False
    head = out / "graph.json"
    for file in (head, part_of(head)):
        if file.is_file() and (file == head or not file.is_symlink()):  # reading a FIFO would never end
            with open(file, "rb") as graph:
                begun = graph.read(len(OURS))
            ours = begun == OURS or (file != head and OURS.startswith(begun))  # an import that was killed
            break
    written = [part for name in (*NAMES, "unfinished") for part in (name, name + ".part")]
    found = [name for name in written if os.path.lexists(out / name)]
    if found and not ours:
        raise Refusal(f"{out} has a file {found[0]}, but no graph.json of an import; give another --out")


def import_module(module, inputs, out, output=None, separate=False):
    """Writes the folder, as the last thing that it does. Returns what there is to say of it, a line each.

    The module is afterwards as it was. Whatever fails is a Refusal, or an OSError of the folder's files.
    """
    with ExitStack() as undo:
        try:
            files, said = imported(module, inputs, out, output, separate, undo)
        except (Refusal, OSError):
            raise
        except Exception as error:  # a module is a program, and torch.export knows not all of them
            raise Refusal(f"{line_of(error, NOT_OWN)}the module cannot be imported: {in_a_line(error)}") from error
    replace_all(out, files, "graph.json", OURS + b'"unfinished": "import the module again"}\n')
    return said


def imported(module, inputs, out, output, separate, undo):
    """The content of each file, and what there is to say."""
    refuse_foreign(out)
    check_module(module)
    inputs = ordered(module, inputs)
    choose = OneOutput(output)
    remark = train_if_in_evaluation(module, undo)
    undo.callback(return_only(module, choose))
    untied = {}
    if separate:
        untied, tie = untie(module)
        for each in tie:
            undo.callback(each)
    program, backwards = exported(module, inputs)
    export = Export(program, ties_of(module), [each.name for each in inputs])
    document = export.document()
    document["state"], rest = export.state(module)
    document["untied"] = untied
    described = [f"remark: {each}" for each in (remark, *remarks(export, document, module, inputs, choose), OWN.format(backwards[0]) if backwards else "") if each]
    counts = f"{out}: {len(export.nodes)} operators, {len(document['parameters'])} parameters"
    nodes = ",\n".join(json.dumps(node, allow_nan=False) for node in document.pop("nodes"))
    head = json.dumps(document, allow_nan=False)
    files = {
        "graph.json": f'{head[:-1]},\n"nodes": [\n{nodes}\n]}}\n'.encode(),
        "weights.safetensors": safetensors(export.weights | export.buffers),
        "constants.safetensors": safetensors(export.constants) if export.constants else None,
        "rest.safetensors": safetensors(rest) if rest else None,
    }
    return files, [counts, *described]


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
    parser.add_argument("--traceback", action="store_true", help="after a refusal, print Python's traceback, too")
    given = parser.parse_args()
    try:
        inputs = [parsed(text, given.dtype) for text in given.input]
        module = made_by(given.module)
        for line in import_module(module, inputs, given.out, given.output, given.untie):
            print(line)
    except KeyboardInterrupt:
        sys.exit(130)
    except BaseException as error:  # also a sys.exit() of make_model()
        sys.exit(f"{shown_trace() if given.traceback else ''}import_torch: {what_failed(error)}")


def shown_trace():
    return "".join(traceback.format_exc())


def what_failed(error):
    if isinstance(error, Refusal):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None and not line_of(error, NOT_OWN):
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, SyntaxError):
        return f"{Path(error.filename or '').name}:{error.lineno}: {error.msg}"
    return f"{line_of(error, NOT_OWN)}make_model: {in_a_line(error)}"


if __name__ == "__main__":
    main()
