# SPDX-License-Identifier: Apache-2.0
"""An exported graph, rewritten into operators that all have the same meaning in training, evaluation and any stage."""

import operator
import re
from pathlib import Path

import torch
from torch._ops import HigherOrderOperator, OpOverload

from importing.refusal import Refusal

ATEN = torch.ops.aten
TORCH = str(Path(torch.__file__).parent)


def module_path(node):
    """The path of the module whose forward made the node ("layer1.0.conv1"), "" for the model's own."""
    stack = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    path = stack[-1] if stack and not stack[-1].startswith("_empty") else ""
    return ".".join(part.split("@")[0] for part in path.split("."))


def source_line(node):
    """The innermost line of the node's forward that is not PyTorch's own, as "net.py:12", or ""."""
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [each for each in lines if not each[0].startswith(TORCH)] or lines
    return f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""


def place_of(node):
    line = source_line(node)
    return f"the operator {node.target} of module '{module_path(node)}'" + (f" ({line})" if line else "")


# ---- regions: torch.no_grad() and torch.autocast(enabled=False) are graphs of their own ----


def region_of(module, node):
    """(whether gradients pass, the region's graph, what it is given)."""
    name = node.target.name()
    if name == "wrap_with_set_grad_enabled":
        gradients, callee, *given = node.args
    elif name == "wrap_with_autocast":
        _, _, enabled, _, callee, *given = node.args
        gradients = True
        if enabled:
            raise Refusal(f"the module '{module_path(node)}' turns autocast on; expected train.precision to decide")
    else:
        raise Refusal(f"the module '{module_path(node)}' uses '{name}'; expected PyTorch's own operators only")
    return gradients, module.get_submodule(callee.target), given


def copied(graph, region, given):
    """Copies the region's nodes into the graph, where it inserts, and returns the region's results."""
    known, given = {}, list(given)
    for node in region.graph.nodes:
        if node.op == "placeholder":
            known[node] = given.pop(0)
        elif node.op == "output":
            return [known[each] if isinstance(each, torch.fx.Node) else each for each in node.args[0]]
        else:
            known[node] = graph.node_copy(node, lambda each: known[each])
    raise Refusal("a region of the graph has no end")


def detached(graph, result):
    if not isinstance(result, torch.fx.Node) or not isinstance(result.meta.get("val"), torch.Tensor):
        return result
    made = graph.call_function(ATEN.detach.default, (result,))
    made.meta = dict(result.meta)
    return made


def inline_regions(module):
    """Puts the operators of each region where it is called."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or not isinstance(node.target, HigherOrderOperator):
            continue
        gradients, region, given = region_of(module, node)
        inline_regions(region)
        with graph.inserting_before(node):
            results = copied(graph, region, given)
            if not gradients:
                results = [detached(graph, each) for each in results]
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise Refusal(f"the results of '{node.name}' are used together")
            user.replace_all_uses_with(results[user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)


# ---- stochastic depth ----


def ones_like(graph, memory):
    """The node of a tensor without content, made a node of ones."""
    named = {key: value for key, value in memory.kwargs.items() if key != "memory_format"}
    target = ATEN.new_ones.default if memory.target is ATEN.new_empty.default else ATEN.ones.default
    made = graph.call_function(target, memory.args, named)
    made.meta = dict(memory.meta)
    return made


def name_floors(graph):
    """floor(rand() + p), as in transformers, is p times dropout of ones: an evaluation leaves those alone."""
    for node in list(graph.nodes):
        if node.target not in (ATEN.floor.default, ATEN.floor_.default) or node.args[0].target is not ATEN.add.Tensor:
            continue
        added = node.args[0]
        drawn, kept = added.args
        if not isinstance(kept, float) or drawn.target is not ATEN.rand.default or len(drawn.users) + len(added.users) > 2:
            continue
        with graph.inserting_before(node):
            dropped = graph.call_function(ATEN.dropout.default, (ones_like(graph, drawn), 1 - kept, True))
            scaled = graph.call_function(ATEN.mul.Tensor, (dropped, kept))
        dropped.meta = scaled.meta = dict(node.meta)
        node.replace_all_uses_with(scaled)
        for each in (node, added, drawn):
            graph.erase_node(each)


def name_stochastic_depth(graph):
    """empty().bernoulli_(p).div_(p), as in torchvision and timm, is dropout of ones: an evaluation leaves those alone."""
    name_floors(graph)
    for node in list(graph.nodes):
        if node.target is not ATEN.bernoulli_.float:
            continue
        memory, kept = node.args[:2]
        scaled = next(iter(node.users), None)
        fresh = memory.target in (ATEN.empty.memory_format, ATEN.new_empty.default) and len(memory.users) == 1
        if not fresh or len(node.users) != 1 or scaled.target is not ATEN.div_.Tensor or scaled.args[1] != kept:
            continue
        with graph.inserting_before(scaled):
            dropped = graph.call_function(ATEN.dropout.default, (ones_like(graph, memory), 1 - kept, True))
        dropped.meta = dict(scaled.meta)
        scaled.replace_all_uses_with(dropped)
        for each in (scaled, node, memory):
            graph.erase_node(each)


# ---- what nothing reads ----


class Memory:
    """Which values may lie in the same memory: each has a root, the value that was made first."""

    def __init__(self, graph):
        self.of = {}
        for node in graph.nodes:
            self.of[node] = next((self.of[each] for each in self.shared(node)), node)

    @staticmethod
    def shared(node):
        if node.target is operator.getitem:
            return [node.args[0]] if isinstance(node.args[0], torch.fx.Node) else []
        return [each for each, argument in arguments_of(node) if argument.alias_info is not None]


def arguments_of(node):
    """(node, argument of the schema) for each tensor that an operator is given by position."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return []
    return [
        (each, argument)
        for argument, given in zip(node.target._schema.arguments, node.args)
        for each in (given if isinstance(given, (list, tuple)) else [given])
        if isinstance(each, torch.fx.Node)
    ]


def written_by(node):
    return [each for each, argument in arguments_of(node) if argument.alias_info is not None and argument.alias_info.is_write]


def refuse_write(node, name):
    if name.endswith("num_batches_tracked"):
        raise Refusal(f"the batch norm '{module_path(node)}' has momentum=None; expected a number")
    raise Refusal(
        f"{place_of(node)} writes into '{name}'; expected only batch norm to "
        "change the module's own tensors"
    )


def remove_unread(graph, output, names):
    """Removes nodes that the output does not need. `names` are those of the module's own tensors, by placeholder.

    num_batches_tracked, which batch norms count, is read by nothing, and auxiliary classifiers are not either.
    """
    memory = Memory(graph)
    graph.output_node().args = ((output,),)
    needed, read, writes = {output}, {memory.of[output]}, []
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function":
            continue
        written = [memory.of[each] for each in written_by(node)]
        writes += [(node, root) for root in written if root in names]
        if node in needed or any(root in read for root in written):
            needed.update(node.all_input_nodes)
            read.update(memory.of[each] for each in node.all_input_nodes)
        else:
            graph.erase_node(node)
    for node, root in writes:  # the next step would read another tensor
        if root in read:
            refuse_write(node, names[root])
