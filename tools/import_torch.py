#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a PyTorch module into a folder that the model `graph` trains. The training itself needs no Python.

    tools/import_torch.py FILE.py:make_model --input 3,32,32 --out net/

calls make_model() of FILE.py, which returns an nn.Module in training mode, and exports it with torch.export (tested
with torch 2.11). net/ then has

    graph.json               the operators of the module's forward, in order
    weights.safetensors      parameters and batch-norm statistics under the module's own names
    constants.safetensors    other tensors that the module reads, if there are any

docs/formats/graph.md describes them. Whatever this program cannot express is refused in one line.
"""

import argparse
import importlib.util
import json
import math
import operator
import os
import struct
import sys
from pathlib import Path

import torch
from torch.utils._pytree import tree_leaves

FORMAT = 1
OURS = f'{{"format": {FORMAT}, '.encode()  # how a graph.json of this program begins
NAMES = ("graph.json", "weights.safetensors", "constants.safetensors")
SAMPLE_BATCH = 4  # not 1, which torch.export would take for a constant
TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.bool: "BOOL",
}
ASSERTIONS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range", "lift_fresh")


class Refusal(Exception):
    """What cannot be imported, and why, in one line."""


def type_name(dtype):
    return str(dtype).removeprefix("torch.")


def write_safetensors(path, tensors):
    """Names to tensors, in order. The safetensors package is not needed."""
    header, at, blobs = {}, 0, []
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPES:
            raise Refusal(f"'{name}' has the type {type_name(tensor.dtype)}; expected one of {', '.join(map(type_name, TYPES))}")
        blob = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write(path, struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write(path, content):
    """Replaces a file at once, so that none is ever half written."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)


def affine(size, where):
    """A size as [factor, constant]: factor × batch + constant."""
    if isinstance(size, int):
        return [0, size]
    expression = size.node.expr
    symbols = sorted(expression.free_symbols, key=str)
    if not symbols:
        return [0, int(expression)]
    factor = expression.coeff(symbols[0], 1)
    constant = expression - factor * symbols[0]
    if len(symbols) > 1 or not factor.is_Integer or not constant.expand().is_Integer:
        raise Refusal(f"{where} has the size {expression}; expected a whole number times the batch plus a constant")
    return [int(factor), int(constant.expand())]


def module_path(node):
    """The path of the module whose forward made the node ("layer1.0.conv1"), "" for the model's own."""
    stack = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    path = stack[-1] if stack and not stack[-1].startswith("_empty") else ""
    return ".".join(part.split("@")[0] for part in path.split("."))


class Export:
    """An exported program, written down as our format."""

    def __init__(self, program, module):
        self.program, self.module = program, module
        self.names = {}  # node → the reference that stands for it
        self.weights, self.buffers, self.constants, self.nodes = {}, {}, {}, []
        self.inputs = []

    def document(self):
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self.placeholder(node)
        self.statistics = self.running_statistics()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self.call(node)
        output = self.output()
        if len(self.inputs) != 1:
            raise Refusal(f"the module takes {len(self.inputs)} tensors; expected one (wrap the module to take one)")
        entering = self.inputs[0]
        value = entering.meta["val"]
        return {
            "format": FORMAT,
            "torch": torch.__version__.split("+")[0],
            "input": {
                "name": entering.name,
                "shape": [int(size) for size in value.shape[1:]],
                "type": type_name(value.dtype),
                "vocabulary": self.vocabulary(entering),
            },
            "output": self.names[output]["value"],
            "output_shape": [int(size) for size in output.meta["val"].shape[1:]],
            "parameters": {name: list(tensor.shape) for name, tensor in self.weights.items()},
            "buffers": {name: list(tensor.shape) for name, tensor in self.buffers.items()},
            "constants": list(self.constants),
            "nodes": self.nodes,
        }

    def placeholder(self, node):
        signature = self.program.graph_signature
        if node.name in signature.inputs_to_parameters:
            self.parameter(node, signature.inputs_to_parameters[node.name])
        elif node.name in signature.inputs_to_buffers:
            self.names[node] = {"tensor": signature.inputs_to_buffers[node.name]}
        elif node.name in signature.inputs_to_lifted_tensor_constants:
            self.names[node] = {"tensor": signature.inputs_to_lifted_tensor_constants[node.name]}
        else:
            self.inputs.append(node)
            self.names[node] = {"value": node.name}

    def parameter(self, node, name):
        """Two names of one storage are one parameter, under the first of them."""
        tensor = self.program.state_dict[name]
        if not tensor.is_floating_point():
            raise Refusal(f"the parameter '{name}' is {type_name(tensor.dtype)}; expected a floating-point type")
        if not tensor.requires_grad:
            raise Refusal(f"the parameter '{name}' does not require a gradient; make it a buffer (frozen parameters are not supported)")
        same = [known for known, other in self.weights.items() if other.data_ptr() == tensor.data_ptr() and other.shape == tensor.shape]
        name = same[0] if same and tensor.numel() else name
        if node.users:
            self.weights[name] = tensor
        self.names[node] = {"parameter": name}

    def running_statistics(self):
        """The buffers that batch norms update."""
        found = set()
        for node in self.program.graph.nodes:
            if node.op == "call_function" and node.target is torch.ops.aten.batch_norm.default:
                found |= {each for each in node.args[3:5] if each is not None}
        return found

    def tensor(self, name):
        source = self.program.state_dict if name in self.program.state_dict else self.program.constants
        return source[name]

    def call(self, node):
        where = f"the operator {node.target} of module '{module_path(node)}'"
        if node.target is operator.getitem:
            self.names[node] = {"value": f"{node.args[0].name}.{node.args[1]}"}
            return
        if self.is_size(node):
            return  # sizes are written as functions of the batch where they are used
        if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
            raise Refusal(f"{where} is none of ATen's; expected PyTorch's own operators only")
        if node.target._schema.name.split("::")[1] in ASSERTIONS and not self.makes_used(node):
            return
        if self.counts_batches(node):
            return
        self.check_writes(node, where)
        self.nodes.append(
            {
                "operator": node.target._schema.name,
                "overload": node.target._schema.overload_name,
                "schema": str(node.target._schema),
                "module": module_path(node),
                "arguments": self.arguments(node, where),
                "outputs": self.outputs(node, where),
            }
        )

    @staticmethod
    def is_size(node):
        return isinstance(node.meta.get("val"), (int, torch.SymInt, torch.SymBool, bool))

    @staticmethod
    def makes_used(node):
        return bool(node.users)

    def counts_batches(self, node):
        """num_batches_tracked += 1, which nothing reads where the momentum is a number."""
        if node.target is not torch.ops.aten.add_.Tensor or "tensor" not in self.names.get(node.args[0], {}):
            return False
        if not self.names[node.args[0]]["tensor"].endswith("num_batches_tracked"):
            return False
        if node.users or len(node.args[0].users) > 1:
            raise Refusal(f"the batch norm '{module_path(node)}' has momentum=None; expected a number")
        return True

    def check_writes(self, node, where):
        for argument, value in zip(node.target._schema.arguments, node.args):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            reference = self.names.get(value, {})
            if "tensor" in reference or "parameter" in reference:
                name = reference.get("tensor", reference.get("parameter"))
                raise Refusal(f"{where} writes into '{name}'; expected batch norm to be all that changes the module's own tensors")

    def arguments(self, node, where):
        given = {}
        for argument, value in zip(node.target._schema.arguments, node.args):
            given[argument.name] = value
        given |= node.kwargs
        written = {}
        for name, value in given.items():
            if name in ("device", "pin_memory", "layout"):
                continue  # the stage that computes decides
            if name == "generator" and value is not None:
                raise Refusal(f"{where} has a random generator of its own")
            written[name] = self.written(value, where)
        return written

    def written(self, value, where):
        if isinstance(value, torch.fx.Node):
            return self.reference(value, where)
        if isinstance(value, (list, tuple)):
            return [self.written(each, where) for each in value]
        if isinstance(value, torch.dtype):
            return {"type": type_name(value)}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, float) and not math.isfinite(value):
            return {"number": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise Refusal(f"{where} has the argument {value!r}, which the format cannot hold")

    def reference(self, node, where):
        if self.is_size(node):
            return {"size": affine(node.meta["val"], where)}
        reference = self.names[node]
        if "tensor" not in reference:
            return reference
        name = reference["tensor"]
        if node in self.statistics:
            self.buffers[name] = self.tensor(name)
            return {"buffer": name}
        self.constants[name] = self.tensor(name)
        return {"constant": name}

    def outputs(self, node, where):
        value = node.meta["val"]
        many = isinstance(value, (list, tuple))
        made = []
        for index, each in enumerate(value if many else [value]):
            name = f"{node.name}.{index}" if many else node.name
            if not isinstance(each, torch.Tensor):
                raise Refusal(f"{where} returns {type(each).__name__}; expected tensors")
            made.append(
                {"name": name, "shape": [affine(size, where) for size in each.shape], "type": type_name(each.dtype)}
            )
        if not many:
            self.names[node] = {"value": node.name}
        return made

    def output(self):
        leaves = [leaf for leaf in tree_leaves(self.program.graph.output_node().args) if leaf is not None]
        if len(leaves) != 1:
            raise Refusal(
                f"the module returns {len(leaves)} tensors in training; expected one (return only the logits, by a wrapper)"
            )
        if "value" not in self.names.get(leaves[0], {}):
            raise Refusal("the module returns one of its own tensors; expected what it computes")
        return leaves[0]

    def vocabulary(self, entering):
        """Rows of the embedding that reads the input, 0 if the input is not of tokens."""
        if entering.meta["val"].dtype != torch.int64:
            return 0
        for node in self.program.graph.nodes:
            if node.op == "call_function" and node.target is torch.ops.aten.embedding.default and node.args[1] is entering:
                return int(node.args[0].meta["val"].shape[0])
        raise Refusal("the input is of type int64, but no embedding reads it; expected tokens for an embedding")


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


def exported(module, shape, dtype):
    size = (SAMPLE_BATCH, *shape)
    sample = torch.zeros(size, dtype=dtype) if dtype == torch.int64 else torch.randn(size, dtype=dtype)
    batch = torch.export.Dim("batch", min=2)
    try:
        return torch.export.export(module, (sample,), dynamic_shapes=({0: batch},), strict=False)
    except Exception as error:  # torch.export has no common class of them
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        raise Refusal(f"torch.export cannot export the module: {type(error).__name__}: {lines[0]}") from error


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


def import_module(module, shape, dtype, out):
    refuse_foreign(out)
    export = Export(exported(module, shape, dtype), module)
    document = export.document()
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(out / "weights.safetensors", export.weights | export.buffers)
    if export.constants:
        write_safetensors(out / "constants.safetensors", export.constants)
    else:  # those of an earlier import
        (out / "constants.safetensors").unlink(missing_ok=True)
    nodes = ",\n".join(json.dumps(node, allow_nan=False) for node in document.pop("nodes"))
    head = json.dumps(document, allow_nan=False)
    write(out / "graph.json", f'{head[:-1]},\n"nodes": [\n{nodes}\n]}}\n'.encode())
    return document, len(export.nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", help="FILE.py:make_model, a function that returns the nn.Module")
    parser.add_argument("--input", required=True, help="shape of one sample: 3,32,32")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64", "int64"], help="type of the input")
    parser.add_argument("--out", required=True, type=Path, help="folder to write")
    given = parser.parse_args()
    try:
        try:
            shape = [int(size) for size in given.input.split(",")]
        except ValueError:
            raise Refusal(f"--input is '{given.input}'; expected sizes such as 3,32,32") from None
        document, nodes = import_module(made_by(given.module), shape, getattr(torch, given.dtype), given.out)
    except Refusal as refusal:
        sys.exit(f"import_torch: {refusal}")
    except OSError as error:
        sys.exit(f"import_torch: {error.filename}: {error.strerror}")
    print(f"{given.out}: {nodes} operators, {len(document['parameters'])} parameters")


if __name__ == "__main__":
    main()
