# SPDX-License-Identifier: Apache-2.0
"""Which operators of a graph the program can compute without memory, as it does before it takes any.

PyTorch in Python gives the meta device kernels that LibTorch does not have. A child process forgets them and calls each
operator there.
"""

import json
import os

import torch

from importing.reader import exception, filled
from importing.refusal import in_a_line

FAILS = "cannot compute with such an input"
UNKNOWN = "does not say the sizes of its results without computing them"


# ---- the functions of core/nn/meta/meta_kernels.cpp ----


def like_first(x, *_, **__):
    return torch.empty_like(x)


def first(x, *_, **__):
    return x


def into_last(*tensors, out=None):
    *given, made = tensors if out is None else (*tensors, out)
    return made.resize_(torch.broadcast_shapes(*(each.shape for each in given)))


def one_of_first(x, *_):
    return x.new_empty(())


def truth_of_first(x):
    return torch.empty_like(x, dtype=torch.bool)


def deviation(x, dim=None, *, correction=None, keepdim=False):
    return x.sum(list(range(x.dim())) if dim is None else dim, keepdim)


def deviations(x, dim=None, *, correction=None, keepdim=False):
    return (deviation(x, dim, keepdim=keepdim),) * 2


def reverse_difference(x, y, alpha=1):
    return torch.sub(y, x)


def quotient(x, y):
    return torch.div(x, y, rounding_mode="floor")


def chosen(condition, x, y):
    return condition.new_empty(torch.broadcast_shapes(condition.shape, x.shape, y.shape), dtype=torch.result_type(x, y))


def selected(x, dim, index):
    sizes = list(x.shape)
    if sizes:
        sizes[dim] = index.numel()
    return x.new_empty(sizes)


def averaged(x, to):
    return x.new_empty([*x.shape[: -len(to)], *to])


def normalised(x, *_):
    return torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])


def convolved(*given):
    return torch._meta_registrations.meta_conv(*given)


def windows(x, kernel, dilation, padding, stride):
    count = 1
    for size, k, d, p, s in zip(x.shape[-2:], kernel, dilation, padding, stride):
        count *= (size + 2 * p - d * (k - 1) - 1) // s + 1
    return x.new_empty([*x.shape[:-3], x.shape[-3] * kernel[0] * kernel[1], count])


def forget_python():
    """Leaves the meta device the kernels of LibTorch and of the program."""
    torch._meta_registrations._meta_lib_dont_use_me_use_register_meta._destroy()
    ours = torch.library.Library("aten", "IMPL", "Meta")
    for compute, names in filled():
        for name in names:
            if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta"):
                ours.impl(name, globals()[compute])
    return ours


def number(size):
    """A size for the batch of the sample."""
    return size if isinstance(size, int) else int(size.node.hint)


def on_meta(value):
    if isinstance(value, torch.Tensor):
        sizes, strides = map(number, value.shape), map(number, value.stride())
        return torch.empty_strided(tuple(sizes), tuple(strides), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return [on_meta(each) for each in value]
    if isinstance(value, torch.device):
        return torch.device("meta")
    return number(value) if isinstance(value, torch.SymInt) else value


def tensors_of(values):
    values = values if isinstance(values, (list, tuple)) else [values]
    return [each for each in values if isinstance(each, torch.Tensor)]


def lies_in(made, given, node):
    """Whether a result lies in memory of an argument of which the schema does not say so."""
    if exception("SHARING", node.target._schema) is not None:
        return False
    shared, silent = [], []
    for argument, each in zip(node.target._schema.arguments, given):
        (silent if argument.alias_info is None else shared).extend(tensors_of(each))

    def lies(result, among):
        return any(torch._C._is_alias_of(result, each) for each in among)

    return any(lies(each, silent) and not lies(each, shared) for each in made)


def has_unknown_sizes(node):
    values = [each.meta["val"] for each in (node, *node.all_input_nodes)]
    sizes = [size for value in values for each in tensors_of(value) for size in each.shape]
    return any(isinstance(size, torch.SymInt) and size.node.hint is None for size in sizes)


def tried(node):
    """What is wrong with a node, or ""."""
    given, named = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    try:
        given, named = [on_meta(each) for each in given], {name: on_meta(each) for name, each in named.items()}
        with torch.no_grad():
            made = tensors_of(node.target(*given, **named))
        wanted = tensors_of(node.meta["val"])
        same = [a.dtype == b.dtype and list(a.shape) == [number(size) for size in b.shape] for a, b in zip(made, wanted)]
    except Exception as error:
        other = not isinstance(error, NotImplementedError) and "meta" not in str(error) and not has_unknown_sizes(node)
        return f"{FAILS}: {in_a_line(error)}" if other else UNKNOWN
    if (len(made) != len(wanted) or not all(same)) and "lstm" not in str(node.target):
        return UNKNOWN
    return "returns memory of an argument, which its schema does not say" if lies_in(made, given, node) else ""


def is_tried(node):
    """Sizes are written where they are used; what draws, and batch norms, the program computes in its own way."""
    if not isinstance(node.target, torch._ops.OpOverload) or not tensors_of(node.meta.get("val")):
        return False
    return torch.Tag.nondeterministic_seeded not in node.target.tags and node.target is not torch.ops.aten.batch_norm.default


def reasons(nodes):
    """For each node that the program cannot verify without memory, what is wrong."""
    nodes = [each for each in nodes if is_tried(each)]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            kept = forget_python()  # noqa: F841
            found = {place: wrong for place, wrong in enumerate(map(tried, nodes)) if wrong}
            with os.fdopen(writing, "w") as pipe:
                json.dump(found, pipe)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the child that tries operators without memory has ended")
    return {nodes[int(place)]: wrong for place, wrong in json.loads(text).items()}
