# SPDX-License-Identifier: Apache-2.0
"""Which parts of a module are in training, and modules that cannot be exported as they are."""

import contextlib
import unittest.mock

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from importing.refusal import Refusal

TRAINED = "the module is in evaluation as a whole and is imported in training; a module of which any part is in training keeps all modes"


def kept(module):
    """What to say of a module of which some parts are in evaluation, or ""."""
    # A part matters if it has tensors or is a dropout; a ReLU in evaluation is the same as in training.
    parts = [(name, each) for name, each in module.named_modules() if name and not next(each.children(), None)]
    still = [name for name, each in parts if not each.training and (isinstance(each, nn.modules.dropout._DropoutNd) or list(each.buffers()))]
    if not still:
        return ""
    return f"modules in evaluation stay in it (no dropout, statistics of batch norms fixed): {len(still)}, the first '{still[0]}'"


def train_if_in_evaluation(module, undo):
    """Trains a module that is in evaluation as a whole, as from_pretrained() leaves it. Another one keeps its modes, which its
    author has chosen. Returns what to say of it.
    """
    modes = [(each, each.training) for each in module.modules()]
    undo.callback(lambda: [setattr(each, "training", mode) for each, mode in modes])
    if any(mode for _, mode in modes):
        return kept(module)
    module.train()
    return TRAINED


@contextlib.contextmanager
def own_backwards():
    """The names of functions with a backward of their own that are called meanwhile. An exported graph has none of them."""
    found, apply = [], torch.autograd.Function.apply.__func__

    def noted(function, *given, **named):
        if not function.__module__.startswith("torch.") and function.__name__ not in found:
            found.append(function.__name__)
        return apply(function, *given, **named)

    with unittest.mock.patch.object(torch.autograd.Function, "apply", classmethod(noted)):
        yield found


def check_module(module):
    """Refuses what torch.export has no plain words for."""
    inside = {"OptimizedModule": "torch.compile", "DataParallel": "DataParallel", "DistributedDataParallel": "DistributedDataParallel"}
    for name, each in module.named_modules():
        if type(each).__name__ in inside:
            raise Refusal(f"the module '{name}' is wrapped by {inside[type(each).__name__]}; expected the module inside")
        if isinstance(each, _BatchNorm) and each.momentum is None and each.track_running_stats and not is_fixed(module, each):
            raise Refusal(f"the batch norm '{name}' has momentum=None; expected a number")


def is_fixed(module, norm):
    return not norm.training and any(each.training for each in module.modules())
