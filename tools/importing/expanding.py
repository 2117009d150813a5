# SPDX-License-Identifier: Apache-2.0
"""Operators that the program does not compute, written in an exported graph as several that it does."""

import operator

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx

from importing.reader import reason_against, refused, without_writing
from importing.rewriting import place_of
from importing.trial import FAILS, reasons

ATEN = torch.ops.aten
MOST = 2_000  # replacements in a graph; one may need others, such as a layer of a recurrent network


def normalised(x, weight, bias, mean, variance, training, momentum, eps, cudnn):
    """Batch norm without running statistics, which those of the batch replace in training and evaluation."""
    places = [dimension for dimension in range(x.dim()) if dimension != 1]
    centred = x - x.mean(places, keepdim=True)
    result = centred * torch.rsqrt((centred * centred).mean(places, keepdim=True) + eps)
    return affine(result, weight, bias)


def scaled(x, weight, bias, mean, variance, training, momentum, eps, cudnn):
    """Batch norm with a weight and a bias, which are 1 and 0 where it has none."""
    weight = torch.ones_like(mean) if weight is None else weight
    bias = torch.zeros_like(mean) if bias is None else bias
    return ATEN.batch_norm.default(x, weight, bias, mean, variance, training, momentum, eps, cudnn)


def normalised_by_sample(x, weight, bias, mean, variance, by_input, momentum, eps, cudnn):
    """Instance norm without running statistics."""
    places = list(range(2, x.dim()))
    centred = x - x.mean(places, keepdim=True)
    result = centred * torch.rsqrt((centred * centred).mean(places, keepdim=True) + eps)
    return affine(result, weight, bias)


def affine(x, weight, bias):
    shape = [1, -1] + [1] * (x.dim() - 2)
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def zeros(size, dtype=None, **_):
    return torch.zeros(size, dtype=dtype)


def with_weight_norm(direction, length, dim=0):
    others = [each for each in range(direction.dim()) if each != dim]
    return direction * (length / torch.linalg.vector_norm(direction, 2, others, keepdim=True))


# In words of PyTorch that the program computes. Composite operators need no line: PyTorch says what they consist of.
INSTEAD = {
    ATEN.__and__.Tensor: torch.bitwise_and,
    ATEN.__and__.Scalar: torch.bitwise_and,
    ATEN.__or__.Tensor: torch.bitwise_or,
    ATEN.__or__.Scalar: torch.bitwise_or,
    ATEN.__xor__.Tensor: torch.bitwise_xor,
    ATEN.dot.default: lambda x, y: (x * y).sum(),
    ATEN._unsafe_view.default: lambda x, shape: x.reshape(shape),
    ATEN._to_copy.default: lambda x, dtype=None, **_: x.to(dtype) if dtype else x.clone(),
    ATEN._weight_norm.default: with_weight_norm,
    ATEN.log_sigmoid.default: lambda x: -torch.nn.functional.softplus(-x, threshold=40),  # e^-40 is below rounding
    ATEN.empty.memory_format: zeros,
    ATEN.empty_like.default: lambda x, **_: torch.zeros_like(x),
    ATEN.new_empty.default: lambda x, size, dtype=None, **_: x.new_zeros(size, dtype=dtype),
}


def in_place(target):
    """What changes its first argument, as copying into it what another operator makes."""
    other = without_writing(target)
    return other and (lambda x, *given, **named: ATEN.copy_.default(x, other(x, *given, **named)))


def replacement(node, wrong):
    """The function that computes what the node does by other operators, or None if the node can stay, or there is none.
    `wrong` are nodes that the program cannot verify.
    """
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    values = node.meta.get("val")
    if not all(isinstance(each, torch.Tensor) for each in (values if isinstance(values, (list, tuple)) else [values])):
        return None  # sizes, which are written where they are used
    if node.target is ATEN.batch_norm.default:
        _, weight, bias, mean, *_ = node.args
        return normalised if mean is None else scaled if weight is None or bias is None else None
    if node.target is ATEN.instance_norm.default and node.args[3] is None:
        return normalised_by_sample
    if wrong.get(node, FAILS).startswith(FAILS) and not reason_against(node.target):
        return None
    if node.target in INSTEAD:
        return INSTEAD[node.target]
    if torch._C._dispatch_has_kernel_for_dispatch_key(node.target.name(), "CompositeImplicitAutograd"):
        return node.target.decompose
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return None
    return decomposition_table.get(node.target) or in_place(node.target)


def traced(node, function):
    """The function as a graph of what the node is given, or None if it cannot be one."""
    given = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]
    def call(*tensors):
        known = dict(zip(given, tensors))
        arguments, named = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: known.get(each, each.meta["val"]))
        return function(*arguments, **named)

    values = [each.meta["val"] for each in given]
    made = node.meta["val"]
    written_here = getattr(function, "__module__", "") == __name__ or function in INSTEAD.values()
    try:
        with (made if isinstance(made, torch.Tensor) else made[0]).fake_mode:
            made = make_fx(call, pre_dispatch=written_here)(*values).graph
    except Exception:  # whatever an operator's own parts raise without data
        return None, given
    if any(isinstance(size, torch.SymInt) and not size.node.expr.free_symbols for value in values for size in value.shape):
        raise refused(place_of(node), "has parts that PyTorch knows for one size of the batch only")
    return made, given


def insert(graph, node, inside, given):
    """Puts the nodes of a graph where the node is."""
    known, given = {}, list(given)
    for each in inside.nodes:
        if each.op == "placeholder":
            known[each] = given.pop(0)
        elif each.op == "output" and isinstance(each.args[0], torch.fx.Node):
            node.replace_all_uses_with(known[each.args[0]])
            graph.erase_node(node)
        elif each.op == "output":
            for user in list(node.users):
                user.replace_all_uses_with(known[each.args[0][user.args[1]]])
                graph.erase_node(user)
            graph.erase_node(node)
        else:
            known[each] = graph.node_copy(each, lambda old: known[old])
            known[each].meta = {**node.meta, "val": each.meta.get("val")}


def replaces_all(node, results):
    """Whether each use of the node is one of the results, which are one node or a list of them."""
    if isinstance(results, torch.fx.Node):
        return True
    return all(isinstance(each, torch.fx.Node) for each in results) and all(user.target is operator.getitem for user in node.users)


def is_foreign(node):
    """Whether it is no operator of ATen, such as a primitive that PyTorch's own decompositions are written with."""
    own = isinstance(node.target, OpOverload) and node.target.namespace == "aten"
    return node.op == "call_function" and not own and node.target is not operator.getitem


def expand(graph):
    """Replaces what the program does not compute, again and again. Returns what is wrong with nodes that nothing replaces."""
    replaced, stays, wrong, known = 0, set(), {}, set()
    while replaced < MOST:
        nodes = [each for each in graph.nodes if each.op == "call_function" and each not in known]
        wrong |= reasons(nodes)
        known.update(nodes)
        for node in list(graph.nodes):
            function = None if node in stays else replacement(node, wrong)
            if function is None:
                continue
            inside, given = traced(node, function)
            whole = inside and replaces_all(node, inside.output_node().args[0])
            same = inside and any(each.target is node.target and each.target is not ATEN.batch_norm.default for each in inside.nodes)
            if not whole or same or any(each.op == "get_attr" or is_foreign(each) for each in inside.nodes):
                stays.add(node)
                continue
            with graph.inserting_before(node):
                insert(graph, node, inside, given)
            replaced += 1
        if all(each in known for each in graph.nodes if each.op == "call_function"):
            break
    return wrong
