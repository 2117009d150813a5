# SPDX-License-Identifier: Apache-2.0
"""Parameters that share memory, such as an embedding and the head that uses it again."""

import torch

from importing.refusal import Refusal


def ties_of(module):
    """For each further name of a parameter, its first name."""
    first, ties = {}, {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if not parameter.numel():
            continue
        known, other = first.setdefault(parameter.untyped_storage().data_ptr(), (name, parameter))
        if known == name:
            continue
        if other.data_ptr() != parameter.data_ptr() or other.shape != parameter.shape or other.stride() != parameter.stride():
            raise Refusal(f"the parameters '{known}' and '{name}' are parts of one memory; expected memory of their own")
        ties[name] = known
    return ties


def untie(module):
    """Gives each name a parameter of its own. Returns the ties that were, and what makes them again."""
    ties, undo = ties_of(module), []
    for name in ties:
        path, _, leaf = name.rpartition(".")
        owner = module.get_submodule(path)
        tied = getattr(owner, leaf)
        undo.append(lambda owner=owner, leaf=leaf, tied=tied: setattr(owner, leaf, tied))
        setattr(owner, leaf, torch.nn.Parameter(tied.detach().clone(), tied.requires_grad))
    return ties, undo
