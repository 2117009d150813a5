# SPDX-License-Identifier: Apache-2.0
"""Operators that the program does not compute, written in an exported graph as several that it does."""

import operator

import torch
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx

from importing.reader import not_computed, operators
from importing.rewriting import place_of

ATEN = torch.ops.aten
MOST = 2_000  # replacements in a graph; one may need others, such as a layer of a recurrent network


def glu(x, dim=-1):
    values, gates = x.chunk(2, dim)
    return values * torch.sigmoid(gates)


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


def extreme(choose):
    """The larger or smaller of two, of which equal ones share the gradient."""

    def chosen(x, y):
        shape = torch.broadcast_shapes(x.shape, y.shape)
        return choose(torch.stack([x.expand(shape), y.expand(shape)]), 0)

    return chosen


def of_norm_one(x, dim, eps):
    return x / torch.linalg.vector_norm(x, 2, dim, keepdim=True).clamp_min(eps)


def with_weight_norm(direction, length, dim=0):
    others = [each for each in range(direction.dim()) if each != dim]
    return direction * (length / torch.linalg.vector_norm(direction, 2, others, keepdim=True))


def bilinear(x, y, weight, bias=None):
    result = torch.einsum("...i,oij,...j->...o", x, weight, y)
    return result if bias is None else result + bias


# In words of PyTorch that the program knows. Composite operators need no line: PyTorch itself says what they consist of.
INSTEAD = {
    ATEN.__and__.Tensor: torch.bitwise_and,
    ATEN.__or__.Tensor: torch.bitwise_or,
    ATEN.square.default: lambda x: x.pow(2),
    ATEN.floor_divide.default: lambda x, y: torch.div(x, y, rounding_mode="floor"),
    ATEN.addcmul.default: lambda x, a, b, value=1: x + value * (a * b),
    ATEN.lerp.Scalar: lambda x, end, weight: x + weight * (end - x),
    ATEN.mv.default: torch.matmul,
    ATEN.dot.default: lambda x, y: (x * y).sum(),
    ATEN.maximum.default: extreme(torch.amax),
    ATEN.minimum.default: extreme(torch.amin),
    ATEN.celu.default: lambda x, alpha=1.0: ATEN.elu.default(x, alpha, 1.0, 1 / alpha),
    ATEN.glu.default: glu,
    ATEN.hardshrink.default: lambda x, least=0.5: x.masked_fill(x.abs() <= least, 0.0),
    ATEN.softshrink.default: lambda x, least=0.5: x - x.clamp(-least, least),
    ATEN.threshold.default: lambda x, least, value: x.masked_fill(x <= least, value),
    ATEN.reshape_as.default: lambda x, other: x.reshape(other.shape),
    ATEN._unsafe_view.default: lambda x, shape: x.reshape(shape),
    ATEN._to_copy.default: lambda x, dtype=None, **_: x.to(dtype) if dtype else x.clone(),
    ATEN._weight_norm.default: with_weight_norm,
    ATEN.bilinear.default: bilinear,
    ATEN.cosine_similarity.default: lambda x, y, dim=1, eps=1e-8: (of_norm_one(x, dim, eps) * of_norm_one(y, dim, eps)).sum(dim),
    ATEN.log_sigmoid.default: lambda x: -torch.nn.functional.softplus(-x, threshold=40),  # e^-40 is below rounding
}


def replacement(node):
    """The function that computes what the node does by other operators, or None if the node can stay, or there is none."""
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
    if node.target._schema.name in operators():
        return None
    if node.target in INSTEAD:
        return INSTEAD[node.target]
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(node.target.name(), "CompositeImplicitAutograd")
    return node.target.decompose if composite else None


def traced(node, function):
    """The function as a graph of what the node is given, or None if it cannot be one."""
    given = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]
    if not given:
        return None, given

    def call(*tensors):
        known = dict(zip(given, tensors))
        arguments, named = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: known.get(each, each.meta["val"]))
        return function(*arguments, **named)

    values = [each.meta["val"] for each in given]
    written_here = function in INSTEAD.values() or function in (normalised, scaled, normalised_by_sample)
    try:
        with values[0].fake_mode:
            made = make_fx(call, pre_dispatch=written_here)(*values).graph
    except Exception:  # whatever an operator's own parts raise without data
        return None, given
    if any(isinstance(size, torch.SymInt) and not size.node.expr.free_symbols for value in values for size in value.shape):
        raise not_computed(place_of(node))  # its parts are those of one size of the batch, which all sizes of the graph now have
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


def expand(graph):
    """Replaces what the program does not compute, again and again. What nothing replaces stays, and is refused later."""
    replaced, stays = 0, set()
    while replaced < MOST:
        node = next((each for each in graph.nodes if each not in stays and replacement(each)), None)
        if node is None:
            return
        inside, given = traced(node, replacement(node))
        whole = inside and replaces_all(node, inside.output_node().args[0])
        same = inside and any(each.target is node.target and each.target is not ATEN.batch_norm.default for each in inside.nodes)
        if not whole or same or any(each.op == "get_attr" for each in inside.nodes):
            stays.add(node)
            continue
        with graph.inserting_before(node):
            insert(graph, node, inside, given)
        replaced += 1
