# SPDX-License-Identifier: Apache-2.0
"""An exported program, written down in our format (docs/formats/graph.md)."""

import math
import operator

import torch
from torch.utils._pytree import tree_leaves

from importing.expanding import expand
from importing.reader import MEMORY_FORMATS, check_node, check_type, reason_against, refused
from importing.refusal import Refusal, type_name
from importing.rewriting import Memory, inline_regions, module_path, name_stochastic_depth, place_of, remove_unread

FORMAT = 1
EMBEDDING = torch.ops.aten.embedding.default
BATCH_NORM = torch.ops.aten.batch_norm.default

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


def is_size(node):
    """Sizes are written as functions of the batch where they are used."""
    return isinstance(node.meta.get("val"), (int, torch.SymInt, torch.SymBool, bool))


class Export:
    def __init__(self, program, ties, input_names):
        self.program, self.graph = program, program.graph
        self.input_names = input_names  # of the tensors that the forward takes, in its order; [None] is one without a name
        self.ties = ties  # name of a parameter → the name under which it is written
        self.names = {}  # node → the reference that stands for it
        self.own = {}  # node → name in the module's state, of its own tensors
        self.weights, self.buffers, self.constants, self.nodes = {}, {}, {}, []
        self.inputs = []

    def document(self):
        self.find_inputs()
        inline_regions(self.program.graph_module)
        name_stochastic_depth(self.graph)
        output = self.output()
        remove_unread(self.graph, output, self.own)
        self.wrong = expand(self.graph)
        output = self.output()  # of which other operators may have been made
        remove_unread(self.graph, output, self.own)
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self.placeholder(node)
        self.statistics = self.running_statistics()
        for node in self.graph.nodes:
            if node.op == "call_function":
                self.call(node)
        if not self.inputs[0].meta["val"].shape[1:]:
            raise Refusal(f"a sample of the first input, '{self.input_names[0]}', has no size; expected sizes in its --input")
        if not output.meta["val"].shape[1:]:
            raise Refusal(
                f"the result of {place_of(output)} has no dimension behind the samples; expected one number of a sample as "
                "[batch, 1], without squeeze(-1)"
            )
        first, *further = [self.described_input(*each) for each in zip(self.inputs, self.input_names)]
        if first["type"] == "int64" and not first["vocabulary"]:
            raise Refusal(f"the input '{first['name']}' is of type int64, but no embedding reads it; expected tokens for an embedding")
        return {
            "format": FORMAT,
            "torch": torch.__version__.split("+")[0],
            "input": first,
            **({"further_inputs": further} if further else {}),
            "output": self.names[output]["value"],
            "output_shape": [int(size) for size in output.meta["val"].shape[1:]],
            "parameters": {name: list(tensor.shape) for name, tensor in self.weights.items()},
            "buffers": {name: list(tensor.shape) for name, tensor in self.buffers.items()},
            "constants": list(self.constants),
            "nodes": self.nodes,
        }

    def find_inputs(self):
        signature = self.program.graph_signature
        named = signature.inputs_to_parameters | signature.inputs_to_buffers | signature.inputs_to_lifted_tensor_constants
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.name in named:
                self.own[node] = named[node.name]
            elif node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
                self.inputs.append(node)
        if len(self.inputs) != len(self.input_names):
            raise Refusal(f"the module takes {len(self.inputs)} tensors; expected --input for each, with its name")
        self.input_names = [name or node.name for name, node in zip(self.input_names, self.inputs)]
        for node in self.graph.nodes:
            if node.name in self.input_names and node not in self.inputs:
                raise Refusal(f"the input '{node.name}' has the name of one of the module's values; expected another name")

    def output(self):
        leaves = [leaf for leaf in tree_leaves(self.graph.output_node().args) if leaf is not None]
        if len(leaves) != 1 or leaves[0].op != "call_function":
            raise Refusal("the module returns its input or one of its own tensors; expected a computed tensor")
        return leaves[0]

    def placeholder(self, node):
        name = self.own.get(node)
        if name is None:
            self.names[node] = {"value": self.input_names[self.inputs.index(node)]}
        elif node.name in self.program.graph_signature.inputs_to_parameters:
            self.parameter(node, name)
        else:
            self.names[node] = {"tensor": name}

    def parameter(self, node, name):
        """Two names of one memory are one parameter, under the first of them. One that is frozen is a constant."""
        name = self.ties.get(name, name)
        tensor = self.program.state_dict[name]
        if not tensor.is_floating_point():
            raise Refusal(f"the parameter '{name}' is {type_name(tensor.dtype)}; expected a floating-point type")
        if not tensor.requires_grad:
            self.names[node] = {"tensor": name}
            return
        if node.users:
            self.weights[name] = tensor
        self.names[node] = {"parameter": name}

    def running_statistics(self):
        """The buffers that batch norms update."""
        found = set()
        for node in self.graph.nodes:
            if node.op == "call_function" and node.target is BATCH_NORM:
                found |= {each for each in node.args[3:5] if each is not None}
        return found

    def tensor(self, name):
        source = self.program.state_dict if name in self.program.state_dict else self.program.constants
        return source[name]

    def call(self, node):
        where = place_of(node)
        if node.target is operator.getitem:
            self.names[node] = {"value": f"{node.args[0].name}.{node.args[1]}"}
            return
        if is_size(node):
            return
        if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
            raise Refusal(f"{where} is no operator of ATen; expected PyTorch's own operators only")
        if reason := reason_against(node.target) or self.wrong.get(node, ""):
            raise refused(where, reason)
        written = {
            "operator": node.target._schema.name,
            "overload": node.target._schema.overload_name,
            "schema": str(node.target._schema),
            "module": module_path(node),
            "arguments": self.arguments(node, where),
            "outputs": self.outputs(node, where),
        }
        check_node(written, where)
        self.nodes.append(written)

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
        if isinstance(value, torch.SymInt):
            return {"size": affine(value, where)}
        if isinstance(value, torch.dtype):
            check_type(value, f"the argument {type_name(value)} of {where}")
            return {"type": type_name(value)}
        if isinstance(value, torch.memory_format) and value in MEMORY_FORMATS:
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, float) and math.isinf(value):
            return {"number": str(value)}
        if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and not math.isnan(value)):
            return value
        raise Refusal(f"{where} has the argument {value!r}, which the format cannot hold")

    def reference(self, node, where):
        if is_size(node):
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
            check_type(each.dtype, f"the result of {where}")
            made.append(
                {"name": name, "shape": [affine(size, where) for size in each.shape], "type": type_name(each.dtype)}
            )
        if not many:
            self.names[node] = {"value": node.name}
        return made

    def described_input(self, entering, name):
        value = entering.meta["val"]
        return {
            "name": name,
            "shape": [int(size) for size in value.shape[1:]],
            "type": type_name(value.dtype),
            "vocabulary": self.vocabulary(entering),
        }

    def vocabulary(self, entering):
        """Rows of the embedding that reads the input or a view of it, 0 if the input is not of tokens."""
        if entering.meta["val"].dtype != torch.int64:
            return 0
        memory = Memory(self.graph)
        rows = [
            int(node.args[0].meta["val"].shape[0])
            for node in self.graph.nodes
            if node.op == "call_function" and node.target is EMBEDDING and memory.of[node.args[1]] is entering
        ]
        return min(rows, default=0)

    def state(self, module):
        """For each name in the module's state, that of the tensor which holds it; and those that no other file has."""
        held, rest = {}, {}
        for name, tensor in module.state_dict().items():
            held[name] = self.ties.get(name, name)
            if name not in self.ties and name not in self.weights | self.buffers | self.constants:
                rest[name] = tensor
        return held, rest
