# SPDX-License-Identifier: Apache-2.0
"""What a module's forward takes: tensors by name, with the shape and the type of a sample."""

import inspect
import re
from dataclasses import dataclass

import torch

from importing.refusal import Refusal

SAMPLE_BATCH = 4  # not 1, which torch.export would take for a constant
TYPES = ("float32", "float64", "int64", "bool")


@dataclass
class Input:
    shape: tuple  # of a sample
    dtype: torch.dtype = torch.float32
    name: str | None = None  # of the forward's parameter; None is its first one, whatever it is called


def parsed(text, dtype):
    """Reads [NAME=]SIZES[:TYPE], as in "128", "3,32,32" and "attention_mask=128:int64"."""
    match = re.fullmatch(r"(?:(\w+)=)?(\d+(?:,\d+)*|)(?::(\w+))?", text)
    if not match or not (match[1] or match[2]):
        raise Refusal(f"--input is '{text}'; expected sizes such as 3,32,32, or NAME=SIZES, or NAME=SIZES:TYPE")
    if match[3] and match[3] not in TYPES:
        raise Refusal(f"--input is '{text}', of the type {match[3]}; expected {', '.join(TYPES)}")
    shape = tuple(int(size) for size in match[2].split(",") if size)
    return Input(shape, getattr(torch, match[3] or dtype), match[1])


def ordered(module, inputs):
    """The inputs in the order of the forward's parameters; one alone may have no name.

    Refuses names that the forward does not have, and a forward that needs other tensors than it is given.
    """
    empty = inspect.Parameter.empty
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [each for each in inspect.signature(module.forward).parameters.values() if each.kind in positional]
    names = [each.name for each in parameters]
    given = [each.name for each in inputs]
    if len(inputs) > 1 and None in given:
        raise Refusal(f"--input is given {len(inputs)} times; expected a name in each, as in {(names or ['x'])[0]}=128")
    if given == [None]:
        given = names[:1]
    for name in given:
        if given.count(name) > 1:
            raise Refusal(f"--input names '{name}' twice")
        if name not in names:
            raise Refusal(f"the module's forward has no parameter '{name}'; expected one of {', '.join(names)}")
    needed = [each.name for each in parameters if each.default is empty]
    if missing := [name for name in needed if name not in given]:
        raise Refusal(
            f"the module's forward takes {', '.join(needed)}; expected --input NAME=SIZES for each, also for {', '.join(missing)}, "
            "or a wrapper that makes it of the others (mask = tokens != 0)"
        )
    return sorted(inputs, key=lambda each: names.index(each.name) if each.name else 0)


def call_of(inputs, tensors):
    """(positional, by name): how a forward is called."""
    if inputs[0].name is None:
        return tuple(tensors), {}
    return (), {each.name: tensor for each, tensor in zip(inputs, tensors)}


def sample(each, vocabulary):
    """A batch; of integers tokens below `vocabulary`, or, if that is 0, ones."""
    size = (SAMPLE_BATCH, *each.shape)
    if each.dtype.is_floating_point:
        return torch.randn(size, dtype=each.dtype)
    if each.dtype == torch.int64 and vocabulary:
        return torch.randint(vocabulary, size)
    return torch.ones(size, dtype=each.dtype)
